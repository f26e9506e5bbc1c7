/* unit.c: one test for each rule, on the fake machine (SEMANTICS.md, part II). The tests are built
 * for the list and for the heap (HEAP=0, 1). */
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
static weft_heap_entry heap_index[N];
static void init(weft_lock_t *l) { weft_heap_init(&queue, l, pool, heap_index, N); }
#else
static weft_queue queue;
static void init(weft_lock_t *l) { weft_list_init(&queue, l); }
#endif
static weft_actor actors[4];
static struct { int event; uint32_t release; uint64_t at; } log_[256];
static int logged;

static void note(weft_event *e, uint32_t release) {
  if (logged < 256)
    log_[logged].event = (int)(e - pool), log_[logged].release = release,
    log_[logged].at = fake_now();
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

/* M2, M5, M6: the order is by release time, then priority, then order of posting. Random posts
 * are compared with a stable sort. */
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
/* M4, M5, M8: the order is also kept with cancels and moves in between; an event that is moved
 * counts as posted anew. The order is also kept where the numbers of a heap's posts wrap. */
static void order_is_kept_by_cancels_and_moves(void) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    begin(5000);
    fake_reset(seed, 5000);
#if HEAP
    queue.posts = (uint32_t[]){0, 0xffe0, 0x3fffffe0, 0xffffffe0}[seed % 4];
#endif
    int number[N] = {0}, posts = 0, left = 0; /* 0 means not queued */
    unsigned span = seed % 3 ? 6 : 200, kept = 0;
    for (int i = 0; i < 4; i++) actors[i] = (weft_actor)WEFT_ACTOR(fake_random(3));
    for (int i = 0; i < N; i++) pool[i].actor = &actors[fake_random(4)];
    for (int step = 0; step < 300; step++) {
      int i = (int)fake_random(N);
      uint32_t release = 6000 + fake_random(span);
      switch (fake_random(4)) {
        case 0:
          kept += weft_cancel(&queue, &pool[i]) != (number[i] ? WEFT_OK : WEFT_LATE), number[i] = 0;
          break;
        case 1:
          kept += weft_post_as(&queue, &pool[i], release, WEFT_KEEP) !=
                  (number[i] ? WEFT_IGNORED : WEFT_OK);
          if (!number[i]) number[i] = ++posts;
          break;
        default:
          kept += weft_post_as(&queue, &pool[i], release, WEFT_MOVE) != WEFT_OK,
              number[i] = ++posts;
      }
    }
    CHECK(!kept);
    uint32_t times[N];
    for (int i = 0; i < N; i++) times[i] = pool[i].time, left += number[i] != 0;
    run_one_core();
    CHECK(logged == left);
    for (int k = 0; k < logged; k++) {
      int i = log_[k].event, j = k ? log_[k - 1].event : i;
      CHECK(number[i] && log_[k].release == times[i]);
      int32_t later = (int32_t)(times[i] - times[j]);
      int pi = pool[i].actor->mark, pj = pool[j].actor->mark;
      CHECK(later > 0 || (!later && (pi < pj || (pi == pj && number[i] >= number[j]))));
    }
  }
}
static uint32_t again_once(weft_event *e, uint32_t release) {
  note(e, release);
  return logged == 1 ? 100 : WEFT_DONE;
}
static void post_others(void) {
  if (logged != 1) return;
  weft_post(&queue, &pool[1], 1200); /* at the time of the held event, but posted after it */
  /* This event goes before the event that is held, so the held event is put back. */
  weft_post(&queue, &pool[2], 1150);
  fake_quiet = 0;
}
/* M5, M7, M9: an action asks for its event again, and the core holds the event and then puts it
 * back: the event counts as posted before the events that were posted since. */
static void held_event_keeps_its_order(void) {
  begin(1000);
  pool[0].action = again_once;
  pool[1].actor = &actors[1], pool[2].actor = &actors[2];
  weft_post(&queue, &pool[0], 1100);
  fake_quiet = post_others;
  run_one_core();
  CHECK(logged == 4 && log_[1].event == 2 && log_[2].event == 0 && log_[3].event == 1);
}
static uint32_t forty_times(weft_event *e, uint32_t release) {
  static uint32_t before;
  if (!logged) before = release;
  CHECK((int32_t)(release - before) >= 0);
  before = release;
  note(e, release);
  if (release >= 6000) return WEFT_DONE;
  if (release % 3) return 25;
  weft_post(&queue, e, release + 25);
  return WEFT_DONE;
}
/* M4, M5: actors have the same period, and some are due in the same microsecond. Some of them
 * return the next delay, others post their event. One event waits far behind. */
static void actors_of_one_period(void) {
  for (int n = 1; n < 12; n++)
    for (int every = 0; every < 4; every++) {
      begin(4000);
      for (int i = 0; i < n; i++)
        pool[i].action = forty_times, weft_post(&queue, &pool[i], 5000 + (uint32_t)(i * every));
      pool[N - 1].actor = &actors[1];
      weft_post(&queue, &pool[N - 1], 1000000);
      run_one_core();
      int wanted = 1;
      for (int i = 0; i < n; i++)
        for (uint32_t t = 5000 + (uint32_t)(i * every), last = 0; last < 6000; last = t, t += 25)
          wanted++;
      CHECK(logged == wanted);
    }
}
static uint32_t posts_last(weft_event *e, uint32_t release) {
  note(e, release);
  weft_post(&queue, &pool[3], 3000);
  return WEFT_DONE;
}
/* M4: the event at which the list would begin its search is removed, and another event is
 * posted. */
static void post_after_the_last_inserted_has_run(void) {
  begin(1000);
  pool[1].action = posts_last;
  weft_post(&queue, &pool[2], 2000);
  weft_post(&queue, &pool[0], 1100);
  weft_post(&queue, &pool[1], 1200);
  run_one_core();
  CHECK(logged == 4 && log_[2].event == 2 && log_[3].event == 3);
}
/* M2: an action never starts before the release time, even across the wrap of 32-bit time, and
 * with an alarm set to now or the past. */
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
/* M7: an event that its action asks for again is released at release + delay, however late the
 * action ran. */
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
  CHECK(log_[2].event == 1); /* Event 1 was due before the third release. */
}
/* M8: the effect of a post if its event is already in the queue. */
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
  CHECK(weft_cancel(&queue, &pool[1]) == WEFT_OK); /* By now the other core holds the event. */
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
    weft_post(&queue, &pool[0], 1100); /* its action runs for 100 us */
    weft_post(&queue, &pool[1], 1110); /* has the same actor, so it must wait */
    weft_post(&queue, &pool[2], 1120); /* has another actor, so it must not wait */
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
/* M11: stop makes every worker return after its action; events that are queued stay, and run
 * after resume. */
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
/* M10: a core with no due event sleeps. It sleeps twice for an event a second away, without
 * polling. */
static void idle_does_no_work(void) {
  begin(1000);
  weft_post(&queue, &pool[0], 1000000);
  run_one_core();
  CHECK(logged == 1);
  CHECK(fake_waits() <= 4);
}
static uint32_t late_hit, late_missed;
static uint32_t hit(weft_event *e, uint32_t release) {
  return (void)e, (void)release, late_hit++, WEFT_DONE;
}
static uint32_t missed(weft_event *e, uint32_t release) {
  return (void)e, (void)release, late_missed++, WEFT_DONE;
}
static weft_deadline *deadline_in_pool(int i) { return (weft_deadline *)(void *)&pool[i]; }
/* M13: a deadline. */
static void deadline(void) {
  for (int within = 20; within <= 200; within += 180) {
    begin(1000);
    late_hit = late_missed = 0;
    weft_deadline *d = deadline_in_pool(
        10); /* it takes two entries of the pool, since a heap numbers any memory in its range */
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
  if (logged == 2) fake_advance(33); /* The action overruns three periods. */
  if (logged == 4) weft_periodic_stop(&queue, periodic_);
  return 12345;
}
/* M12: a periodic event skips releases that it has missed, and stops. */
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
static uint32_t restarting(weft_event *e, uint32_t release) {
  note(e, release);
  if (logged == 2) {
    weft_periodic_stop(&queue, periodic_);
    CHECK(weft_periodic_start_rate(&queue, periodic_, &actors[0], restarting, release + 25,
                                   (weft_rate)WEFT_RATE(15, 2)) == WEFT_OK);
  }
  if (logged == 5) weft_periodic_stop(&queue, periodic_);
  return 0;
}
/* M12: a periodic event is started anew by its own action. */
static void periodic_started_anew_by_its_own_action(void) {
  begin(1000);
  periodic_ = (weft_periodic *)(void *)&pool[10];
  memset(periodic_, 0, sizeof *periodic_);
  CHECK(weft_periodic_start(&queue, periodic_, &actors[0], restarting, 1100, 10) == WEFT_OK);
  run_one_core();
  CHECK(logged == 5);
  CHECK(log_[1].release == 1110 && log_[2].release == 1135);
  /* The releases are every 7.5 us from the start on. */
  CHECK(log_[3].release == 1142 && log_[4].release == 1150);
}
/* M14: 64-bit times at any distance; the event of a far time is posted again on the way. */
static uint64_t far_at;
static uint32_t far_action(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  far_at = fake_now();
  return WEFT_DONE;
}
static void far_times(void) {
  static const uint64_t releases[] = {5,          1500,       1ull << 31,        (1ull << 31) + 1,
                                      3ull << 31, 1ull << 32, (1ull << 32) + 77, 20ull << 32};
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
/* M1: times beyond the horizon. */
static void horizon(void) {
  begin(1ull << 40);
  CHECK(weft_post_at(&queue, &pool[0], (1ull << 40) + WEFT_HORIZON + 1000) == WEFT_E_HORIZON);
  CHECK(weft_post_at(&queue, &pool[0], (1ull << 40) + WEFT_HORIZON - 1000) == WEFT_OK);
  /* The time 17 is long past, so the event is released immediately. */
  CHECK(weft_post_at(&queue, &pool[1], 17) == WEFT_OK);
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
/* M7: if the action posts its event, that post counts and the return value is ignored. */
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
  weft_heap_entry two[2];
  /* The event's address is out of range. Only the address is checked before the refusal, but this
   * test uses a real event far away. */
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

/* M12: for any k, the first k delays of a rate add up to floor(k * us / per) us; 62.5 us is 2
 * releases in 125 us. */
static void rates_do_not_drift(void) {
  weft_rate half = WEFT_RATE(125, 2), audio = WEFT_RATE(1000000, 44100), whole = WEFT_RATE(100, 1);
  uint64_t sums[3] = {0, 0, 0};
  unsigned wrong = 0;
  for (uint64_t k = 1; k <= 200000; k++) {
    sums[0] += weft_next(&half), sums[1] += weft_next(&audio), sums[2] += weft_next(&whole);
    wrong += sums[0] != k * 125 / 2 || sums[1] != k * 1000000 / 44100 || sums[2] != k * 100;
  }
  CHECK(!wrong);
}
static uint32_t takes_long(weft_event *e, uint32_t release) {
  note(e, release);
  actors[1] = (weft_actor)WEFT_ACTOR(WEFT_PRIORITY_MAX);
  pool[1].actor = &actors[1], pool[2].actor = &actors[2];
  weft_post(&queue, &pool[2], release + 10);
  weft_post(&queue, &pool[1], release + 20);
  fake_advance(300);
  log_[9].at = fake_now();
  return WEFT_DONE;
}
/* M6: the event of the highest priority waits for the action that runs, and for all events that
 * were released before it.
 */
static void priority_never_preempts(void) {
  begin(1000);
  pool[0].action = takes_long;
  weft_post(&queue, &pool[0], 1100);
  run_one_core();
  CHECK(logged == 3 && log_[1].event == 2 && log_[2].event == 1);
  CHECK(log_[1].at >= log_[9].at && log_[9].at >= 1400);
}
static uint32_t in_parts(weft_event *e, uint32_t release) {
  note(e, release);
  fake_advance(100);
  if (log_[8].event++ < 3) weft_post_in(&queue, e, 0);
  return WEFT_DONE;
}
/* M5: a long piece of work is split into parts, each posted for now: events that have become due
 * run first. */
static void parts_let_others_go_first(void) {
  begin(1000);
  memset(log_, 0, sizeof log_);
  pool[0].action = in_parts;
  pool[1].actor = &actors[1], pool[2].actor = &actors[2];
  weft_post(&queue, &pool[0], 1100);
  weft_post(&queue, &pool[1], 1150);
  weft_post(&queue, &pool[2], 1290);
  run_one_core();
  CHECK(logged == 6 && log_[1].event == 1 && log_[2].event == 0 && log_[3].event == 2);
}
static weft_periodic *stepper;
static uint32_t step(weft_event *e, uint32_t release) {
  note(e, release);
  if (logged == 5) fake_advance(200);
  if (logged == 40) weft_periodic_stop(&queue, stepper);
  return WEFT_DONE;
}
/* M12: releases are every 62.5 us, although one action takes more than three periods. The missed
 * releases are skipped and counted. */
static void fractional_period(void) {
  begin(1000);
  stepper = (weft_periodic *)(void *)&pool[10];
  memset(stepper, 0, sizeof *stepper);
  CHECK(weft_periodic_start_rate(&queue, stepper, &actors[0], step, 1100,
                                 ((weft_rate)WEFT_RATE(1, 2))) == WEFT_E_HORIZON);
  CHECK(weft_periodic_start_rate(&queue, stepper, &actors[0], step, 1100,
                                 ((weft_rate)WEFT_RATE(125, 2))) == WEFT_OK);
  run_one_core();
  CHECK(logged == 40 && stepper->skipped == 3);
  for (uint32_t i = 0, k = 0; i < 40; i++, k += i == 5 ? 4 : 1)
    CHECK(log_[i].release == 1100 + k * 125 / 2);
}
typedef struct { uint8_t bytes[5]; } message;
static message slots[7];
static uint32_t taken_last, taken_sum, put_sum, put_next, refused, wrong_order, batch;
static uint32_t take_some(weft_event *e, uint32_t release);
#define ring (*(weft_ring *)(void *)&pool[40]) /* The ring lies where a heap can number its
                                                * event. */
static message numbered(uint32_t n) {
  return (message){{(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n * 7), (uint8_t)~n, 42}};
}
static uint32_t take_some(weft_event *e, uint32_t release) {
  message m;
  for (uint32_t left = batch; left && weft_ring_get(&queue, &ring, &m); left--) {
    uint32_t n = (uint32_t)m.bytes[0] | (uint32_t)m.bytes[1] << 8;
    message whole = numbered(n);
    wrong_order += n <= taken_last || memcmp(&m, &whole, sizeof m) != 0;
    taken_last = n;
    taken_sum += n;
    fake_point();
  }
  if (ring.count) weft_post_as(&queue, e, release, WEFT_KEEP);
  return WEFT_DONE;
}
static void put_one(void) { /* Never interrupts itself, so the messages have an order. */
  static bool within;
  if (within || put_next > 300) return;
  within = true;
  message m = numbered(++put_next);
  int code = weft_ring_put(&queue, &ring, &m);
  if (code == WEFT_OK) put_sum += put_next;
  else refused += code == WEFT_FULL;
  within = false;
}
static uint32_t put_often(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  put_one();
  return put_next > 300 ? WEFT_DONE : 1 + fake_random(6);
}
/* M22: an interrupt and an actor put messages on two cores. Accepted messages come out once, whole
 * and in order; the others are counted. */
static void ring_keeps_what_it_accepts(void) {
  uint32_t lost = 0, kept = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin(5000);
    fake_reset(seed, 5000);
    ring = (weft_ring)WEFT_RING(slots, take_some, &actors[2]);
    taken_last = taken_sum = put_sum = put_next = refused = wrong_order = 0;
    batch = 1 + (uint32_t)(seed % 3) * 4;
    fake_interrupt = put_one;
    pool[0].action = put_often;
    weft_post(&queue, &pool[0], 5100);
    (void)fake_run(serve, serve, 4000000);
    CHECK(put_next > 300 && !wrong_order && taken_sum == put_sum && !ring.count);
    CHECK(ring.overflows == refused);
    lost += refused, kept += taken_sum;
  }
  CHECK(lost && kept); /* Otherwise the test would prove nothing. */
}
#undef ring

int main(void) {
  TEST(order_is_time_priority_post);
  TEST(order_is_kept_by_cancels_and_moves);
  TEST(held_event_keeps_its_order);
  TEST(actors_of_one_period);
  TEST(post_after_the_last_inserted_has_run);
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
  TEST(periodic_started_anew_by_its_own_action);
  TEST(priority_never_preempts);
  TEST(parts_let_others_go_first);
  TEST(rates_do_not_drift);
  TEST(fractional_period);
  TEST(ring_keeps_what_it_accepts);
  TEST(far_times);
  TEST(horizon);
  TEST(post_in_action_stands);
#if HEAP
  TEST(heap_refuses_what_it_cannot_number);
#endif
  TEST(sizes);
  return check_end();
}
