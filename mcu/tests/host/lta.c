/* lta.c: a program in LTA's style, which differs from a program for LTA only in its include, on
 * two fake cores (rules M16, M17). */
#include "weft_mcu/lta.h" /* first, because it must need no other header */
#include "../fake/fake.h"
#include "check.h"
#include <string.h>

static event_queue_t q;
static uint64_t times[64];
static size_t ids[64];
static int n, busy[4];
static void serve(void) { work(&q); }
static void note(uint64_t t, size_t id) {
  if (n < 64) times[n] = t, ids[n] = id;
  n++;
}

static void loop(uint64_t t, size_t id, void *arg) {
  CHECK(busy[id]++ == 0);
  CHECK(fake_now() >= t);
  note(t, id);
  fake_advance(3);
  CHECK(arg == &busy[id]);
  if (t < (1ull << 32) + 1000) CHECK(schedule_event(&q, t + 100, id, loop, arg) == 0);
  busy[id]--;
}
/* M16: times have 64 bits, and an event that is being run leaves room for the next event
 * (max_size is 2, and two events are queued or running). */
static void periodic_over_the_wrap(void) {
  for (uint64_t seed = 1; seed < 30; seed++) {
    fake_reset(seed, (1ull << 32) - 1000);
    n = 0;
    memset(busy, 0, sizeof busy);
    CHECK(event_queue_init(&q, 2, 3) == 0);
    CHECK(schedule_event(&q, (1ull << 32) - 500, 0, loop, &busy[0]) == 0);
    CHECK(schedule_event(&q, (1ull << 32) - 450, 2, loop, &busy[2]) == 0);
    (void)fake_run(serve, serve, 1000000);
    CHECK(n == 32);
    for (int i = 0; i < n; i++)
      CHECK(times[i] ==
            (1ull << 32) - 500 + (ids[i] == 2 ? 50 : 0) +
                100 * (uint64_t)(times[i] - ((1ull << 32) - 500) - (ids[i] == 2 ? 50 : 0)) / 100);
    event_queue_deinit(&q);
  }
}
static void once(uint64_t t, size_t id, void *arg) {
  (void)arg;
  CHECK(fake_now() >= t);
  note(t, id);
}
/* M16: an event with a time in the past runs immediately, before later events. */
static void order_and_far_times(void) {
  static const uint64_t when[] = {700, 5, 1ull << 34, 600, 600, (1ull << 31) + 5, 600, 0};
  fake_reset(5, 500);
  n = 0;
  CHECK(event_queue_init(&q, 8, 8) == 0);
  for (size_t i = 0; i < 8; i++) CHECK(schedule_event(&q, when[i], i, once, 0) == 0);
  (void)fake_run(serve, 0, 1000000);
  CHECK(n == 8);
  static const size_t expected[] = {7, 1, 3, 4, 6, 0, 5, 2};
  for (int i = 0; i < 8; i++) CHECK(ids[i] == expected[i] && times[i] == when[expected[i]]);
  event_queue_deinit(&q);
}
/* M17: there may be four queues at a time; their memory is reused. */
static void several_queues_and_reuse(void) {
  fake_reset(5, 500);
  event_queue_t more[5];
  for (int i = 0; i < 4; i++) CHECK(event_queue_init(&more[i], 4, 4) == 0);
  CHECK(event_queue_init(&more[4], 4, 4) == 1); /* Only four queues are possible at a time. */
  for (int i = 0; i < 4; i++) event_queue_deinit(&more[i]);
  for (int i = 0; i < 100; i++) {
    CHECK(event_queue_init(&q, 100, 50) == 0);
    event_queue_deinit(&q);
  }
}
/* LTA's header defines the type of an event and includes the headers that LTA's own header includes
 * (no other header here defines div_t). */
static void header_is_whole(void) {
  event_t e = {.time = 1ull << 40, .actor_id = 3, .fn = once, .arg = 0};
  struct event *same = &e;
  CHECK(same->time == 1ull << 40 && sizeof(div_t) && e.actor_id == 3 && e.fn == once && !e.arg);
}
/* M16, M17: a request for too much memory is refused, and memory that was given back can be
 * allocated again. */
static void memory_is_what_is_asked_for(void) {
  fake_reset(5, 500);
  CHECK(event_queue_init(&q, SIZE_MAX / 8, 1) == 1);
  CHECK(event_queue_init(&q, 1, SIZE_MAX / 2) == 1);
  CHECK(event_queue_init(&q, 5000, 5000) == 0); /* more than fits into any fixed arena */
  for (size_t i = 0; i < 5000; i++) CHECK(schedule_event(&q, 600 + i, i, once, 0) == 0);
  n = 0;
  CHECK(schedule_event(&q, 600, 0, once, 0) == 1);
  (void)fake_run(serve, 0, 10000000);
  CHECK(n == 5000);
  event_queue_deinit(&q);
}
static void stop(uint64_t t, size_t id, void *arg) {
  (void)t, (void)id, (void)arg;
  event_queue_deinit(&q);
}
/* M16: deinit lets work() return. */
static void deinit_lets_work_return(void) {
  fake_reset(5, 500);
  CHECK(event_queue_init(&q, 4, 4) == 0);
  CHECK(schedule_event(&q, 600, 0, stop, 0) == 0);
  CHECK(fake_run(serve, serve, 100000));
}

int main(void) {
  TEST(periodic_over_the_wrap);
  TEST(order_and_far_times);
  TEST(several_queues_and_reuse);
  TEST(header_is_whole);
  TEST(memory_is_what_is_asked_for);
  TEST(deinit_lets_work_return);
  return check_end();
}
