/* random.c: random two-core schedules on the production code, against an oracle (rules M2-M12).
 *
 * Two cores serve one queue while actions, interrupts and outside code post and cancel; the fake
 * machine interleaves them at every platform call. For each event the oracle keeps the list of
 * releases that have not run yet. It checks:
 *  - an action starts only if a post for exactly its release is open, not before that time, and
 *    while its actor runs no other action;
 *  - whenever all cores sleep, they hold the first events in order whose actors are distinct: a
 *    lost wake-up would show as a runnable event that no core holds;
 *  - while one core is in an action and the other sleeps, no event that the other core could run is
 *    earlier than the event that it holds;
 *  - at the end every open post has run or was cancelled; after a stop the others are in the queue.
 * The test is built once for each kind of queue (HEAP=0, 1), and once for each WEFT_MUTANT, which
 * must fail. Usage: random SEEDS [FIRST]
 */
#include "../fake/fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HEAP
#define HEAP 0
#endif
enum { ACTORS = 4, EVENTS = 9, OPEN = 64 };
#if HEAP
static weft_heap queue;
#define BASE (&queue.queue)
static weft_heap_entry heap_index[EVENTS];
#else
static weft_queue queue;
#define BASE (&queue)
#endif
static weft_lock_t lock;
static weft_actor actors[ACTORS];
typedef struct {
  weft_event event;
  uint32_t open[OPEN];
  int opens;
  bool mover, again;
  uint32_t last;
  uint32_t last_run;
} item;
/* The heap numbers memory from its base in words of 4 bytes, and every event on the host is 8-byte
 * aligned, so each has a number. */
static item items[EVENTS];
static long total_runs, total_quiets;
static int running[ACTORS], actions_left, runs, seed_failed;
static uint64_t seed;
static bool stopping;

#define ORACLE(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      if (!seed_failed++)                                                           \
        printf("seed %llu, %s: not true: %s (line %d)\n", (unsigned long long)seed, \
               HEAP ? "heap" : "list", #condition, __LINE__);                       \
    }                                                                               \
  } while (0)

static void open_add(item *it, uint32_t release) {
  ORACLE(it->opens < OPEN);
  if (it->opens < OPEN) it->open[it->opens++] = release;
}
static bool open_remove(item *it, uint32_t release) {
  for (int i = 0; i < it->opens; i++)
    if (it->open[i] == release) {
      memmove(&it->open[i], &it->open[i + 1], (size_t)(--it->opens - i) * sizeof it->open[0]);
      return true;
    }
  return false;
}

static uint32_t near_release(void) { return (uint32_t)fake_now() + fake_random(60) - 5; }

/* Do a random operation that any context may do. The test changes only the event's open list; the
 * return code tells the test what the runtime has done. */
static void act(void) {
  item *it = &items[fake_random(EVENTS)];
  uint32_t release = near_release();
  if (it->mover) { /* A mover is moved, never cancelled: only its last release must run. */
    it->last = release;
    open_add(it, release);
    ORACLE(weft_post_as(&queue, &it->event, release, WEFT_MOVE) == WEFT_OK);
    return;
  }
  switch (
      it->again
          ? 0
          : fake_random(4)) { /* An event that its worker will release again is only cancelled. */
    case 0: { /* the invariant of the open list before the call: the post that is cancelled is the
                 queued post, which was added last */
      int code = weft_cancel(&queue, &it->event);
      ORACLE(code == WEFT_OK || code == WEFT_LATE);
      if (code != WEFT_OK) break;
      ORACLE(open_remove(it, it->event.time));
      it->again = false;
      break;
    }
    case 1: {
      open_add(it, release);
      int code = weft_post_as(&queue, &it->event, release, WEFT_KEEP);
      ORACLE(code == WEFT_OK || code == WEFT_IGNORED);
      if (code == WEFT_IGNORED) ORACLE(open_remove(it, release));
      break;
    }
    default: {
      open_add(it, release);
      int code = weft_post(&queue, &it->event, release);
      ORACLE(code == WEFT_OK || code == WEFT_E_QUEUED);
      if (code == WEFT_E_QUEUED) ORACLE(open_remove(it, release));
    }
  }
}
/* The other core may post an event while this core cancels it. Therefore only one of the test's own
 * operations may run at a time (the worker's operations may run beside it). */
static int acting;
static void act_alone(void) {
  if (acting) return;
  acting = 1;
  act();
  acting = 0;
}

/* Check, while the other core sleeps and this core is in an action, that there is no earlier event
 * for the other core (M9). */
static void other_has_nothing_to_do(void) {
  unsigned other = !fake_core();
  if (acting || !fake_asleep(other)) return;
  weft_event *held = BASE->claimed[other];
  for (int i = 0; i < EVENTS; i++) {
    weft_event *e = &items[i].event;
    if (e->next && e != held && !(e->actor->mark & WEFT_BUSY))
      ORACLE(held && (int32_t)(e->time - held->time) >= 0);
  }
}

static uint32_t action(weft_event *e, uint32_t release) {
  item *it = (item *)(void *)e;
  int a = (int)(e->actor - actors);
  runs++;
  ORACLE(running[a]++ == 0);                              /* M3: one action of an actor at a time */
  ORACLE((int32_t)((uint32_t)fake_now() - release) >= 0); /* M2: not before its release */
  ORACLE(it->mover ||
         open_remove(it, release)); /* M4: it was posted for this release, and runs once */
  it->last_run = release;
  it->again = false;
  fake_advance(fake_random(4) ? fake_random(3) : fake_random(40));
  other_has_nothing_to_do();
  if (actions_left > 0) {
    actions_left--;
    act_alone();
    act_alone();
  }
  uint32_t again = 0;
  if (actions_left > 0 && !it->mover && !fake_random(3) && !acting) {
    if (!e->next) again = 1 + fake_random(30), open_add(it, release + again), it->again = true;
  }
  running[a]--;
  return again;
}
static void on_interrupt(void) {
  if (actions_left > 0 && !fake_random(3)) actions_left--, act_alone();
}
static void on_outside(void) {
  act_alone();
  if (actions_left > 0) actions_left--, fake_outside_at = fake_now() + 1 + fake_random(100);
}

/* Check, when all cores sleep, that the cores hold the events that they should hold. */
static void on_quiet(void) {
  if (acting || stopping) return;
  total_quiets++;
  weft_event *order[EVENTS];
  int n = 0, held = 0;
  for (int i = 0; i < EVENTS; i++)
    if (items[i].event.next) {
      int at = n++;
      weft_event *e = &items[i].event;
      for (; at && (int32_t)(e->time - order[at - 1]->time) < 0; at--) order[at] = order[at - 1];
      order[at] = e;
    }
  bool taken[ACTORS] = {false};
  uint32_t want[2];
  int wanted = 0;
  for (int i = 0; i < n && wanted < 2; i++) {
    int a = (int)(order[i]->actor - actors);
    if (!taken[a]) taken[a] = true, want[wanted++] = order[i]->time;
  }
  uint32_t have[2];
  for (int c = 0; c < 2; c++)
    if (BASE->claimed[c]) have[held++] = BASE->claimed[c]->time;
  if (held == 2 && (int32_t)(have[1] - have[0]) < 0) {
    uint32_t swap = have[0];
    have[0] = have[1], have[1] = swap;
  }
  ORACLE(held == wanted);
  for (int i = 0; i < held && i < wanted; i++) ORACLE(have[i] == want[i]);
  for (int i = 0; i < ACTORS; i++) ORACLE(!running[i]);
}

static void worker(void) { weft_work(&queue); }

static void one_seed(void) {
  uint64_t start = seed % 3 == 0   ? (1ull << 32) - 400
                   : seed % 3 == 1 ? (1ull << 31) - 300
                                   : 1000; /* so that 32-bit times wrap */
  fake_reset(seed, start);
  memset(items, 0, sizeof items);
  memset(running, 0, sizeof running);
  lock.held = 0;
  acting = runs = 0;
  stopping = false;
#if HEAP
  weft_heap_init(&queue, &lock, items, heap_index, EVENTS);
#else
  weft_list_init(&queue, &lock);
#endif
  int used = 1 + (int)fake_random(ACTORS);
  for (int i = 0; i < ACTORS; i++) actors[i] = (weft_actor)WEFT_ACTOR(fake_random(3));
  for (int i = 0; i < EVENTS; i++)
    items[i].event.action = action, items[i].event.actor = &actors[fake_random((uint32_t)used)];
  items[0].mover = true;
  actions_left = 40;
  fake_interrupt = on_interrupt;
  fake_outside = on_outside;
  fake_outside_at = start + 50;
  fake_quiet = on_quiet;
  fake_run(worker, worker, 4000000);
  on_quiet();
  for (int i = 0; i < EVENTS; i++) {
    ORACLE(!items[i].event.next); /* Nothing is left in the queue. */
    if (!items[i].mover) ORACLE(!items[i].opens);
    else if (items[i].opens) ORACLE(items[i].last_run == items[i].last);
  }
  ORACLE(runs > 0);
  total_runs += runs;
}

int main(int argc, char **argv) {
  uint64_t seeds = argc > 1 ? strtoull(argv[1], 0, 0) : 2000,
           first = argc > 2 ? strtoull(argv[2], 0, 0) : 1;
  printf("random schedules, %s, seeds %llu to %llu\n", HEAP ? "heap" : "list",
         (unsigned long long)first, (unsigned long long)(first + seeds - 1));
  int bad = 0;
  for (seed = first; seed < first + seeds && bad < 3; seed++) {
    seed_failed = 0;
    one_seed();
    bad += seed_failed != 0;
  }
  printf("%ld actions, all asleep %ld times\n", total_runs, total_quiets);
  printf("%d passed, %d failed\n", bad == 0, bad != 0);
  return bad != 0;
}
