/* bad_use.c: a debug build reports each misuse by a panic, other builds return a code, and no
 * state is corrupted (rule M15). The test is built once for each kind of build. */
#include "../fake/fake.h"
#include "check.h"
#include "weft_mcu/lta.h"
#include <string.h>

static weft_queue queue;
static weft_lock_t lock;
static weft_actor actor, other;
static weft_event a, b;
static int ran;
static uint32_t count(weft_event *e, uint32_t release) {
  return (void)e, (void)release, ran++, WEFT_DONE;
}
static void begin(weft_lock_t *l) {
  fake_reset(3, 1ull << 33);
  lock.held = 0;
  memset(&actor, 0, sizeof actor);
  a = b = (weft_event)WEFT_EVENT(count, &actor);
  ran = 0;
  weft_list_init(&queue, l);
}
static void serve(void) { weft_work(&queue); }
/* In a debug build `expression` must panic with a text that contains `word`. Otherwise it must
 * return `code`. */
#if WEFT_DEBUG
#define MISTAKE(expression, code, word)                         \
  do {                                                          \
    fake_panicked = 0;                                          \
    if (!setjmp(fake_outside_panic)) (void)(expression);        \
    CHECK(fake_panicked && strstr(fake_panicked, word) != 0);   \
    lock.held = 0;                                              \
  } while (0)
#else
#define MISTAKE(expression, code, word) CHECK((expression) == (code))
#endif

/* M15, M8: an event is posted twice. */
static void posted_twice(void) {
  begin(&lock);
  CHECK(weft_post(&queue, &a, (uint32_t)fake_now() + 50) == WEFT_OK);
  MISTAKE(weft_post(&queue, &a, (uint32_t)fake_now() + 60), WEFT_E_QUEUED, "in the queue already");
  MISTAKE(weft_post_as(&queue, &a, (uint32_t)fake_now() + 60, WEFT_STRICT), WEFT_E_QUEUED,
          "in the queue already");
  (void)fake_run(serve, 0, 100000);
  CHECK(ran == 1);
}
/* M15, M8: an event is moved while it is in another queue. */
static void moved_while_in_another_queue(void) {
  weft_queue second;
  weft_list_init(&second, &lock);
  begin(&lock);
  CHECK(weft_post(&queue, &a, (uint32_t)fake_now() + 50) == WEFT_OK);
  MISTAKE(weft_post_as(&second, &a, (uint32_t)fake_now() + 60, WEFT_MOVE), WEFT_E_QUEUED,
          "in the queue already");
  CHECK(second.head.next == &second.head);
  (void)fake_run(serve, 0, 100000);
  CHECK(ran == 1);
}
/* M15, M1: an event is posted beyond the horizon. */
static void beyond_the_horizon(void) {
  begin(&lock);
  MISTAKE(weft_post_in(&queue, &a, 1u << 31), WEFT_E_HORIZON, "horizon");
  MISTAKE(weft_post_at(&queue, &a, fake_now() + (1ull << 31)), WEFT_E_HORIZON, "horizon");
#if WEFT_DEBUG /* In 32 bits a time beyond the horizon looks like one far in the past, which the
                * debug build reports. */
  MISTAKE(weft_post(&queue, &a, (uint32_t)fake_now() + (1u << 31) + 5), 0, "horizon");
#endif
  CHECK(!a.next);
  CHECK(queue.head.next == &queue.head);
}
/* M15, M7: an action returns a delay that 32 bits cannot hold. */
static uint32_t minus(weft_event *e, uint32_t release) {
  return (void)e, (void)release, ran++ < 3 ? (uint32_t)-1 : WEFT_DONE;
}
static void returns_a_delay_beyond_the_horizon(void) {
  begin(&lock);
  a.action = minus;
  weft_post(&queue, &a, (uint32_t)fake_now() + 10);
  (void)fake_run(serve, 0, 100000);
#if WEFT_DEBUG
  CHECK(fake_panicked && strstr(fake_panicked, "horizon"));
#endif
  CHECK(ran == 1); /* The event is never early (rule 8.5): it is done after one run. */
}
/* M15, M1: an hour from now looks like 11 minutes ago. */
static void posted_for_an_hour_from_now(void) {
#if WEFT_DEBUG
  begin(&lock);
  MISTAKE(weft_post(&queue, &a, (uint32_t)fake_now() + 3600u * 1000000u), 0, "horizon");
#endif
}
/* M15, M3: an actor is used in two queues. */
static void actor_in_two_queues(void) {
#if WEFT_DEBUG
  weft_queue second;
  weft_list_init(&second, &lock);
  begin(&lock);
  CHECK(weft_post(&queue, &a, (uint32_t)fake_now() + 50) == WEFT_OK);
  MISTAKE(weft_post(&second, &b, (uint32_t)fake_now() + 50), 0, "two queues");
#endif
}
/* M15: an action must not serve a queue. */
static uint32_t serves(weft_event *e, uint32_t release) {
  (void)e, (void)release, ran++;
  if (ran == 1) weft_work(&queue);
  return WEFT_DONE;
}
static void works_inside_an_action(void) {
#if WEFT_DEBUG
  begin(&lock);
  a.action = serves;
  weft_post(&queue, &a, (uint32_t)fake_now() + 10);
  (void)fake_run(serve, 0, 100000);
  CHECK(fake_panicked && strstr(fake_panicked, "weft_work is called in an action"));
#else
  (void)serves;
#endif
}
/* M15, M18: a message has a different size from the ring's messages. */
static uint32_t slots[4];
static weft_ring ring = WEFT_RING(slots, count, &actor);
static void message_of_another_size(void) {
#if WEFT_DEBUG
  begin(&lock);
  uint64_t wide = 1;
  MISTAKE(weft_ring_put(&queue, &ring, &wide), 0, "another size");
#else
  (void)ring;
#endif
}
/* Another core uses a queue that has no lock. */
static int second_core_code;
static void post_from_core1(void) { second_core_code = weft_post(&queue, &b, weft_now32() + 10); }
static void serve_then_end(void) { weft_work(&queue); }
/* M15, M18: a queue without a lock is used by a second core. */
static void queue_without_lock_shared(void) {
#if WEFT_DEBUG
  begin(WEFT_LOCAL);
  weft_post(&queue, &a, (uint32_t)fake_now() + 10); /* Core 0 owns the queue from now on. */
  (void)fake_run(0, post_from_core1, 100000);
  CHECK(fake_panicked && strstr(fake_panicked, "without a lock"));
  begin(WEFT_LOCAL);
  weft_post(&queue, &a, (uint32_t)fake_now() + 10);
  (void)fake_run(0, serve_then_end, 100000);
  CHECK(fake_panicked && strstr(fake_panicked, "without a lock"));
#else
  (void)post_from_core1, (void)serve_then_end,
      (void)second_core_code; /* WEFT_LOCAL is the caller's promise; it is not checked and costs
                               * nothing */
#endif
}
/* M15: a stack overflows. */
static void stack_overflow(void) {
#if WEFT_DEBUG
  begin(&lock);
  weft_post(&queue, &a, (uint32_t)fake_now() + 10);
  fake_stack_broken = 1;
  (void)fake_run(serve, 0, 100000);
  CHECK(fake_panicked && strstr(fake_panicked, "stack"));
#endif
}
/* M15, M7: an action posts its event and also returns a delay. */
static uint32_t both(weft_event *e, uint32_t release) {
  ran++;
  if (ran > 1) return WEFT_DONE;
  weft_post(&queue, e, release + 5);
  return 7;
}
static void posts_itself_and_returns_a_delay(void) {
  begin(&lock);
  a.action = both;
  weft_post(&queue, &a, (uint32_t)fake_now() + 10);
  (void)fake_run(serve, 0, 100000);
#if WEFT_DEBUG
  CHECK(fake_panicked && strstr(fake_panicked, "returns a delay"));
#else
  CHECK(ran == 2);
#endif
}
/* M15, M12: an action starts its periodic event for another actor, and the other core runs the
 * event before that action has ended. */
static weft_periodic periodic;
static int actions, leaves;
static uint32_t ticks(weft_event *e, uint32_t release) {
  (void)release;
  if (++actions == 1) {
    (void)weft_periodic_start(&queue, &periodic, &other, ticks, weft_now32(), 50);
    /* Wait until the other core has run the action. */
    while (actions < 2 && !fake_panicked) fake_point();
    leaves = 1;
  } else if (actions == 2) {
    while (!leaves) fake_point();
    for (int i = 0; i < 60; i++) fake_point();
  } else weft_stop(&queue);
  return (void)e, WEFT_DONE;
}
static void periodic_for_another_actor(void) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    begin(&lock);
    fake_reset(seed, 1ull << 33);
    memset(&other, 0, sizeof other);
    memset(&periodic, 0, sizeof periodic);
    actions = leaves = 0;
    uint32_t first = (uint32_t)fake_now() + 10;
    CHECK(weft_periodic_start(&queue, &periodic, &actor, ticks, first, 50) == 0);
    (void)fake_run(serve, serve, 100000);
#if WEFT_DEBUG
    CHECK(fake_panicked && strstr(fake_panicked, "another actor"));
#else
    CHECK(!fake_panicked);
    CHECK(actions == 3); /* The first action has run, and two actions of the other actor have
                          * run. */
    CHECK(!(actor.mark & WEFT_BUSY) && !(other.mark & WEFT_BUSY));
#endif
  }
}
/* M15, M16: mistakes with LTA's functions are reported. */
static void lta_action(uint64_t release, size_t id, void *arg) {
  (void)release, (void)id, (void)arg, ran++;
}
static event_queue_t lta;
static void lta_serve(void) { work(&lta); }
static void lta_mistakes(void) {
  fake_reset(3, 100);
  ran = 0;
  CHECK(event_queue_init(&lta, 1u << 30, 4) ==
        1); /* The memory does not suffice: every build returns a code, as LTA does. */
  CHECK(event_queue_init(&lta, 4, SIZE_MAX / 2) == 1);
  CHECK(event_queue_init(&lta, 2, 3) == 0);
  MISTAKE(schedule_event(&lta, 200, 3, lta_action, 0), 1, "no such actor");
  CHECK(schedule_event(&lta, 200, 2, lta_action, 0) == 0);
  CHECK(schedule_event(&lta, 200, 0, lta_action, 0) == 0);
  MISTAKE(schedule_event(&lta, 200, 0, lta_action, 0), 1, "full");
  (void)fake_run(lta_serve, 0, 100000);
  CHECK(ran == 2);
  CHECK(schedule_event(&lta, 300, 1, lta_action, 0) == 0); /* Now there is room again. */
  event_queue_deinit(&lta);
}

int main(void) {
  TEST(posted_twice);
  TEST(moved_while_in_another_queue);
  TEST(beyond_the_horizon);
  TEST(returns_a_delay_beyond_the_horizon);
  TEST(posted_for_an_hour_from_now);
  TEST(actor_in_two_queues);
  TEST(works_inside_an_action);
  TEST(message_of_another_size);
  TEST(queue_without_lock_shared);
  TEST(stack_overflow);
  TEST(posts_itself_and_returns_a_delay);
  TEST(periodic_for_another_actor);
  TEST(lta_mistakes);
  (void)other;
  return check_end();
}
