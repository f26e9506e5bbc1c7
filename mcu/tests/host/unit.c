/* unit.c: one rule a test, on the fake machine (SEMANTICS.md, part II). Built for the list and the heap (HEAP=0, 1). */
#include "../fake/fake.h"
#include "check.h"
#include <string.h>

#ifndef HEAP
#define HEAP 0
#endif
enum { N = 64 };
static weft_event pool[N];
static weft_lock_t lock;
#if HEAP
static weft_heap queue;
static uint16_t heap_index[N];
static void init(weft_lock_t *l) { weft_heap_init(&queue, l, pool, heap_index, N); }
#else
static weft_queue queue;
static void init(weft_lock_t *l) { weft_list_init(&queue, l); }
#endif
static weft_actor actors[4];
static struct { int event; uint32_t release; uint64_t at; } log_[256];
static int logged;

static void note(weft_event *e, uint32_t release) {
  if (logged < 256) log_[logged].event = (int)(e - pool), log_[logged].release = release, log_[logged].at = fake_now();
  logged++;
}
static uint32_t record(weft_event *e, uint32_t release) {
  note(e, release);
  return WEFT_DONE;
}
static void begin(uint64_t start) {
  fake_reset(7, start);
  memset(pool, 0, sizeof pool);
  memset(actors, 0, sizeof actors);
  lock.held = 0;
  logged = 0;
  init(&lock);
  for (int i = 0; i < N; i++) pool[i] = (weft_event)WEFT_EVENT(record, &actors[0]);
}
static void serve(void) { weft_work(&queue); }
static void run_one_core(void) { (void)fake_run(serve, 0, 1000000); }

/* M2, M5, M6: by release time, then priority, then order of posting; random posts against a stable sort. */
static void order_is_time_priority_post(void) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    begin(seed % 2 ? (1ull << 32) - 30 : 5000);
    fake_reset(seed, seed % 2 ? (1ull << 32) - 30 : 5000);
    for (int i = 0; i < 4; i++) actors[i] = (weft_actor)WEFT_ACTOR(fake_random(3));
    int n = 1 + (int)fake_random(N), expected[N];
    uint32_t base = (uint32_t)fake_now();
    for (int i = 0; i < n; i++) {
      pool[i].actor = &actors[fake_random(4)];
      weft_post(&queue, &pool[i], base + 40 + fake_random(8));
      int at = i;
      for (; at; at--) {
        weft_event *before = &pool[expected[at - 1]];
        int32_t d = (int32_t)(pool[i].time - before->time);
        if (d > 0 || (d == 0 && pool[i].actor->mark <= before->actor->mark)) break;
        expected[at] = expected[at - 1];
      }
      expected[at] = i;
    }
    run_one_core();
    CHECK(logged == n);
    for (int i = 0; i < n; i++) CHECK(log_[i].event == expected[i]);
  }
}
/* M2: never before the release time, also across the wrap of 32-bit time, and for an alarm set to now or the past. */
static void starts_at_its_release(void) {
  for (uint64_t start = (1ull << 32) - 40; start < (1ull << 32) + 10; start++)
    for (int ahead = -3; ahead < 8; ahead++) {
      begin(start);
      uint32_t release = (uint32_t)(start + (uint64_t)(int64_t)ahead);
      weft_post(&queue, &pool[0], release);
      run_one_core();
      CHECK(logged == 1 && log_[0].release == release);
      CHECK((int32_t)((uint32_t)log_[0].at - release) >= 0);
    }
}
static uint32_t five_times(weft_event *e, uint32_t release) {
  note(e, release);
  fake_advance(release == 1110 ? 35 : 3);
  return release < 1140 ? 10 : WEFT_DONE;
}
/* M7: an event that its action asks for again is released at release + delay, however late the action ran. */
static void returned_delay_does_not_drift(void) {
  begin(1000);
  pool[0].action = five_times;
  weft_post(&queue, &pool[0], 1100);
  weft_post(&queue, &pool[1], 1115);
  run_one_core();
  CHECK(logged == 6);
  int seen = 0;
  for (int i = 0; i < logged; i++)
    if (log_[i].event == 0) CHECK(log_[i].release == 1100u + 10u * (uint32_t)seen++);
  CHECK(log_[2].event == 1); /* it was due before the third release */
}
/* M8: what a post of a queued event does. */
static void policies(void) {
  begin(1000);
  CHECK(weft_post(&queue, &pool[0], 1100) == WEFT_OK);
  CHECK(weft_post(&queue, &pool[0], 1050) == WEFT_E_QUEUED);
  CHECK(weft_post_as(&queue, &pool[0], 1050, WEFT_KEEP) == WEFT_IGNORED);
  CHECK(weft_post_as(&queue, &pool[1], 1090, WEFT_KEEP) == WEFT_OK);
  CHECK(weft_post_as(&queue, &pool[1], 1120, WEFT_STRICT) == WEFT_E_QUEUED);
  CHECK(weft_post_as(&queue, &pool[1], 1120, WEFT_MOVE) == WEFT_OK);
  CHECK(weft_post_as(&queue, &pool[2], 1110, WEFT_MOVE) == WEFT_OK);
  run_one_core();
  CHECK(logged == 3);
  CHECK(log_[0].event == 0 && log_[0].release == 1100);
  CHECK(log_[1].event == 2 && log_[1].release == 1110);
  CHECK(log_[2].event == 1 && log_[2].release == 1120);
}
static void cancel_withdraws_or_is_late(void) {
  begin(1000);
  for (int i = 0; i < 20; i++) weft_post(&queue, &pool[i], 1100 + (uint32_t)(i * 7 % 20));
  for (int i = 0; i < 20; i += 2) CHECK(weft_cancel(&queue, &pool[i]) == WEFT_OK);
  CHECK(weft_cancel(&queue, &pool[0]) == WEFT_LATE);
  CHECK(weft_cancel(&queue, &pool[30]) == WEFT_LATE);
  run_one_core();
  CHECK(logged == 10);
  for (int i = 0; i < logged; i++) CHECK(log_[i].event % 2 == 1);
}
static uint32_t cancel_claimed(weft_event *e, uint32_t release) {
  note(e, release);
  CHECK(weft_cancel(&queue, &pool[1]) == WEFT_OK); /* the other core holds it by now */
  return WEFT_DONE;
}
static void cancel_takes_a_claim_back(void) {
  for (uint64_t seed = 1; seed < 50; seed++) {
    begin(1000);
    fake_reset(seed, 1000);
    pool[0].action = cancel_claimed;
    pool[1].actor = &actors[1];
    weft_post(&queue, &pool[0], 1100);
    weft_post(&queue, &pool[1], 1900);
    weft_post(&queue, &pool[2], 2000);
    (void)fake_run(serve, serve, 100000);
    CHECK(logged == 2 && log_[1].event == 2);
    CHECK(!(actors[1].mark & WEFT_BUSY));
  }
}
/* M3, M4: the events of a busy actor are passed over while others run. */
static uint32_t slow(weft_event *e, uint32_t release) {
  note(e, release);
  fake_advance(100);
  note(e, release);
  return WEFT_DONE;
}
static void busy_actor_is_passed_over(void) {
  for (uint64_t seed = 1; seed < 50; seed++) {
    begin(1000);
    fake_reset(seed, 1000);
    pool[0].action = slow;
    pool[2].actor = &actors[1];
    weft_post(&queue, &pool[0], 1100); /* runs 100 us */
    weft_post(&queue, &pool[1], 1110); /* the same actor: must wait */
    weft_post(&queue, &pool[2], 1120); /* another: must not */
    (void)fake_run(serve, serve, 100000);
    CHECK(logged == 4);
    CHECK(log_[0].event == 0 && log_[1].event == 2 && log_[2].event == 0 && log_[3].event == 1);
  }
}
static uint32_t stop_it(weft_event *e, uint32_t release) {
  note(e, release);
  weft_stop(&queue);
  return 10;
}
/* M11: stop returns every worker after its action; what is queued stays and runs after resume. */
static void stop_and_resume(void) {
  begin(1000);
  pool[0].action = stop_it;
  pool[1].actor = &actors[1];
  weft_post(&queue, &pool[0], 1010);
  weft_post(&queue, &pool[1], 1500);
  CHECK(fake_run(serve, serve, 100000));
  CHECK(logged == 1);
  weft_resume(&queue);
  pool[0].action = record;
  (void)fake_run(serve, serve, 100000);
  CHECK(logged == 3 && log_[1].event == 0 && log_[1].release == 1020 && log_[2].event == 1);
}
/* M10: with nothing due a core sleeps: two sleeps for an event a millisecond away, not a poll. */
static void idle_does_no_work(void) {
  begin(1000);
  weft_post(&queue, &pool[0], 1000000);
  run_one_core();
  CHECK(logged == 1);
  CHECK(fake_waits() <= 4);
}
static uint32_t late_hit, late_missed;
static uint32_t hit(weft_event *e, uint32_t release) { return (void)e, (void)release, late_hit++, WEFT_DONE; }
static uint32_t missed(weft_event *e, uint32_t release) { return (void)e, (void)release, late_missed++, WEFT_DONE; }
static weft_deadline *deadline_in_pool(int i) { return (weft_deadline *)(void *)&pool[i]; }
/* M13 */
static void deadline(void) {
  for (int within = 20; within <= 200; within += 180) {
    begin(1000);
    late_hit = late_missed = 0;
    weft_deadline *d = deadline_in_pool(10); /* takes two entries of the pool: the heap numbers any memory in its range */
    weft_deadline_init(d, &actors[0], hit, missed, (uint32_t)within);
    pool[0].action = slow;
    weft_post(&queue, &pool[0], 1100);
    weft_post(&queue, &d->event, 1105);
    run_one_core();
    CHECK(within == 20 ? late_missed == 1 && !late_hit : late_hit == 1 && !late_missed);
  }
}
static weft_periodic *periodic_;
static uint32_t pulse(weft_event *e, uint32_t release) {
  note(e, release);
  if (logged == 2) fake_advance(33); /* overruns three periods */
  if (logged == 4) weft_periodic_stop(&queue, periodic_);
  return 12345;
}
/* M12 */
static void periodic_skips_and_stops(void) {
  begin(1000);
  periodic_ = (weft_periodic *)(void *)&pool[10];
  memset(periodic_, 0, sizeof *periodic_);
  CHECK(weft_periodic_start(&queue, periodic_, &actors[0], pulse, 1100, 0) == WEFT_E_HORIZON);
  CHECK(weft_periodic_start(&queue, periodic_, &actors[0], pulse, 1100, 10) == WEFT_OK);
  CHECK(weft_periodic_start(&queue, periodic_, &actors[0], pulse, 1100, 10) == WEFT_E_QUEUED);
  run_one_core();
  CHECK(logged == 4);
  CHECK(log_[1].release == 1110 && log_[2].release >= 1150 && (log_[2].release - 1100) % 10 == 0);
  CHECK(periodic_->skipped >= 3);
  CHECK(log_[3].release == log_[2].release + 10);
}
/* M14: 64-bit times: any distance; far ones hop. */
static uint64_t far_at;
static uint32_t far_action(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  far_at = fake_now();
  return WEFT_DONE;
}
static void far_times(void) {
  static const uint64_t releases[] = {5, 1500, 1ull << 31, (1ull << 31) + 1, 3ull << 31, 1ull << 32, (1ull << 32) + 77, 20ull << 32};
  for (unsigned i = 0; i < sizeof releases / sizeof *releases; i++) {
    begin(1000);
    weft_far *f = (weft_far *)(void *)&pool[20];
    memset(f, 0, sizeof *f);
    far_at = 0;
    CHECK(weft_far_post(&queue, f, &actors[0], far_action, releases[i]) == WEFT_OK);
    CHECK(weft_far_post(&queue, f, &actors[0], far_action, releases[i]) == WEFT_E_QUEUED);
    run_one_core();
    CHECK(far_at >= releases[i] && far_at < (releases[i] > 1000 ? releases[i] : 1000) + 50);
  }
}
/* M1: beyond the horizon. */
static void horizon(void) {
  begin(1ull << 40);
  CHECK(weft_post_at(&queue, &pool[0], (1ull << 40) + WEFT_HORIZON + 1000) == WEFT_E_HORIZON);
  CHECK(weft_post_at(&queue, &pool[0], (1ull << 40) + WEFT_HORIZON - 1000) == WEFT_OK);
  CHECK(weft_post_at(&queue, &pool[1], 17) == WEFT_OK); /* long past: at once */
  CHECK(weft_post_in(&queue, &pool[2], WEFT_HORIZON) == WEFT_E_HORIZON);
  CHECK(weft_post_in(&queue, &pool[2], 100) == WEFT_OK);
  run_one_core();
  CHECK(logged == 3 && log_[0].event == 1 && log_[1].event == 2 && log_[2].event == 0);
}
static uint32_t posts_itself_and_asks(weft_event *e, uint32_t release) {
  note(e, release);
  if (logged == 1) {
    weft_post(&queue, e, release + 5);
    return 100;
  }
  return WEFT_DONE;
}
/* M7: a post in the action stands, what it returns is ignored. */
static void post_in_action_stands(void) {
  begin(1000);
  pool[0].action = posts_itself_and_asks;
  weft_post(&queue, &pool[0], 1100);
  run_one_core();
  CHECK(logged == 2 && log_[1].release == 1105);
}
#if HEAP
static void heap_refuses_what_it_cannot_number(void) {
  begin(1000);
  weft_event *outside = (weft_event *)(void *)((char *)pool + (1 << 18) + 8);
  weft_heap small;
  uint16_t two[2];
  /* an event object at an address out of range: only its address is looked at before it is refused, so use a real one far away */
  static char arena[(1 << 18) + 4096];
  outside = (weft_event *)(void *)(((uintptr_t)arena + (1 << 18) + 64) & ~(uintptr_t)15);
  *outside = (weft_event)WEFT_EVENT(record, &actors[0]);
  weft_heap_init(&small, &lock, (void *)((uintptr_t)arena & ~(uintptr_t)15), two, 2);
  CHECK(weft_post(&small, outside, 1100) == WEFT_E_ARENA);
  CHECK(!outside->next);
  weft_event *inside = (weft_event *)(void *)(((uintptr_t)arena + 64) & ~(uintptr_t)15);
  for (int i = 0; i < 3; i++) inside[i] = (weft_event)WEFT_EVENT(record, &actors[0]);
  CHECK(weft_post(&small, &inside[0], 1100) == WEFT_OK);
  CHECK(weft_post(&small, &inside[1], 1100) == WEFT_OK);
  CHECK(weft_post(&small, &inside[2], 1100) == WEFT_E_ARENA);
  CHECK(!inside[2].next && small.count == 2);
}
#endif
static void sizes(void) {
  CHECK(sizeof(weft_event) == 4 * sizeof(void *) || sizeof(void *) != 4);
  CHECK(sizeof(weft_actor) == 1);
}

int main(void) {
  TEST(order_is_time_priority_post);
  TEST(starts_at_its_release);
  TEST(returned_delay_does_not_drift);
  TEST(policies);
  TEST(cancel_withdraws_or_is_late);
  TEST(cancel_takes_a_claim_back);
  TEST(busy_actor_is_passed_over);
  TEST(stop_and_resume);
  TEST(idle_does_no_work);
  TEST(deadline);
  TEST(periodic_skips_and_stops);
  TEST(far_times);
  TEST(horizon);
  TEST(post_in_action_stands);
#if HEAP
  TEST(heap_refuses_what_it_cannot_number);
#endif
  TEST(sizes);
  return check_end();
}
