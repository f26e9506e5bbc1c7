/* stats.c: tests the counts of a queue with WEFT_STATS=1 (this file is built only with it). */
#include "../fake/fake.h"
#include "check.h"

static weft_queue queue;
static weft_lock_t lock;
static weft_actor actors[2];
static uint32_t slow(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  fake_advance(100);
  return WEFT_DONE;
}
static uint32_t quick(weft_event *e, uint32_t release) { return (void)e, (void)release, WEFT_DONE; }
static void serve(void) { weft_work(&queue); }

static void counts(void) {
  fake_reset(3, 1000);
  weft_event a = WEFT_EVENT(slow, &actors[0]), b = WEFT_EVENT(quick, &actors[0]),
             c = WEFT_EVENT(quick, &actors[1]);
  weft_list_init(&queue, &lock);
  weft_post(&queue, &a, 1100);
  weft_post(&queue, &b, 1110); /* runs about 90 us late, behind `a` */
  weft_post(&queue, &c, 5000);
  weft_stats s;
  weft_stats_read(&queue, &s, false);
  CHECK(s.depth == 3 && s.depth_max == 3 && !s.actions[0]);
  (void)fake_run(serve, 0, 100000);
  weft_stats_read(&queue, &s, true);
  CHECK(s.depth == 0 && s.depth_max == 3);
  CHECK(s.actions[0] == 3 && !s.actions[1]);
  CHECK(s.lateness_max >= 90 && s.lateness_max < 160);
  unsigned total = 0;
  for (int i = 0; i < WEFT_LATENESS_BUCKETS; i++) total += s.lateness[i];
  CHECK(total == 3);
  CHECK(s.lateness[7] + s.lateness[8] == 1); /* Event b is late by 64 … 255 us. */
  CHECK(s.busy_us[0] >= 100);
  weft_stats_read(&queue, &s, false);
  CHECK(!s.actions[0] && !s.lateness_max && s.since > 1000);
}
static void depth_after_cancel_and_move(void) {
  fake_reset(3, 1000);
  weft_event a = WEFT_EVENT(quick, &actors[0]), b = WEFT_EVENT(quick, &actors[0]);
  weft_list_init(&queue, &lock);
  weft_post(&queue, &a, 2000);
  weft_post(&queue, &b, 2100);
  weft_post_as(&queue, &b, 1500, WEFT_MOVE);
  weft_cancel(&queue, &a);
  weft_stats s;
  weft_stats_read(&queue, &s, false);
  CHECK(s.depth == 1 && s.depth_max == 2);
}
int main(void) {
  TEST(counts);
  TEST(depth_after_cancel_and_move);
  return check_end();
}
