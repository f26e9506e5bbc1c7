/* threads.c: tests the posix port. Two threads serve one queue while a third posts, under
 * ThreadSanitizer (in real time if REAL=1, otherwise in virtual time). The checks do not depend on
 * the machine's speed. Usage: threads [SEED] */
#include "check.h"
#include "weft_mcu/actors.h"
#include <string.h>

#ifndef REAL
#define REAL 0
#endif
enum { EVENTS = 8, ACTORS = 3, ROUNDS = 400 };
static weft_queue queue;
static weft_actor actors[ACTORS];
static weft_event events[EVENTS], finish;
/* All accesses to `left` are atomic. */
static int inside[ACTORS], overlaps, early, left = ROUNDS * EVENTS;
static int runs[EVENTS];
static unsigned rng[EVENTS];

static unsigned next_random(unsigned *state, unsigned n) {
  return (*state = *state * 1664525u + 1013904223u) / 65536u % n;
}

static uint32_t act(weft_event *e, uint32_t release) {
  int i = (int)(e - events), a = (int)(e->actor - actors);
  if (inside[a]++)
    overlaps++; /* not atomic, so that a second action of this actor would also be a data race
                 * for TSan */
  if ((int32_t)(weft_now32() - release) < 0) early++;
  runs[i]++;
  inside[a]--;
  if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0) weft_post(&queue, &finish, release);
  if (runs[i] == ROUNDS) return WEFT_DONE;
  if (next_random(&rng[i], 2)) return 1 + next_random(&rng[i], 20);
  weft_post(&queue, e, release + next_random(&rng[i], 20));
  return WEFT_DONE;
}
static uint32_t end(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  weft_stop(&queue);
  return WEFT_DONE;
}
static void core1(void) { weft_work(&queue); }
#if REAL
static weft_event pokes[2];
static int poked; /* incremented by two actors, and so possibly by both cores at the same time */
static uint32_t poke(weft_event *e, uint32_t release) {
  return (void)e, (void)release, __atomic_add_fetch(&poked, 1, __ATOMIC_RELAXED), WEFT_DONE;
}
static void *outside(void *unused) { /* A thread that is not a core posts and cancels. */
  (void)unused;
  for (int i = 0; i < 2000; i++) {
    weft_event *e = &pokes[i % 2];
    (void)weft_post_as(&queue, e, weft_now32() + 5, i % 3 ? WEFT_KEEP : WEFT_MOVE);
    if (i % 5 == 0) (void)weft_cancel(&queue, e);
  }
  return 0;
}
#endif

static void two_threads_serve_one_queue(void) {
#if !REAL
  weft_posix_virtual((1ull << 32) - 1000);
#endif
  weft_list_init(&queue, WEFT_SPINLOCK(0));
  finish = (weft_event)WEFT_EVENT(end, &actors[0]);
  for (int i = 0; i < EVENTS; i++) {
    events[i] = (weft_event)WEFT_EVENT(act, &actors[i % ACTORS]);
    weft_post(&queue, &events[i], weft_now32() + 20 + (uint32_t)i);
  }
  CHECK(weft_start_core(core1, 0, 0) == WEFT_OK);
#if REAL
  CHECK(weft_start_core(core1, 0, 0) == WEFT_E_CORE);
  for (int i = 0; i < 2; i++) pokes[i] = (weft_event)WEFT_EVENT(poke, &actors[i]);
  pthread_t thread;
  pthread_create(&thread, 0, outside, 0);
#endif
  weft_work(&queue);
  weft_posix_join();
#if REAL
  pthread_join(thread, 0);
#endif
  CHECK(!overlaps);
  CHECK(!early);
  for (int i = 0; i < EVENTS; i++) CHECK(runs[i] == ROUNDS);
}
int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  printf("seed %u\n", seed);
  for (unsigned i = 0; i < EVENTS; i++) rng[i] = seed * 977 + i;
  TEST(two_threads_serve_one_queue);
  return check_end();
}
