/* periodic: two interleaved 10 kHz tasks, each of which does `LOOPS` units of work (chapter 7 of
 * the thesis).
 *
 * Pin 2 is high while task A runs, pin 3 while task B runs. SHARED=1: both actors are in one queue
 * that both cores serve; otherwise each core has its own queue, and one task. REPOST=1: the tasks
 * post their events themselves (as LTA's do) instead of returning their period. If the cores are
 * always late, the time from a falling to the next rising edge is the overhead of an event; the
 * time between rising edges shows the jitter of the start.
 */
#include "board.h"
#include "sumsq.h"
#include "weft_mcu/actors.h"

#ifndef LOOPS
#define LOOPS 10
#endif
#ifndef REPOST
#define REPOST 0
#endif
#ifndef SHARED
#define SHARED 0
#endif
enum { PERIOD = 100 };
static weft_queue queue0, queue1;
static weft_actor actor_a, actor_b;
#define QUEUE_A (&queue0)
#define QUEUE_B (SHARED ? &queue0 : &queue1)

WEFT_HOT static uint32_t task_a(weft_event *e, uint32_t release) {
  pin_high(2);
  work_loops(LOOPS);
  pin_low(2);
#if REPOST
  weft_post(QUEUE_A, e, release + PERIOD);
  return WEFT_DONE;
#else
  (void)e, (void)release;
  return PERIOD;
#endif
}
WEFT_HOT static uint32_t task_b(weft_event *e, uint32_t release) {
  pin_high(3);
  work_loops(LOOPS);
  pin_low(3);
#if REPOST
  weft_post(QUEUE_B, e, release + PERIOD);
  return WEFT_DONE;
#else
  (void)e, (void)release;
  return PERIOD;
#endif
}
static weft_event event_a = WEFT_EVENT(task_a, &actor_a), event_b = WEFT_EVENT(task_b, &actor_b);

static void core1(void) { weft_work(QUEUE_B); }

int main(void) {
  pin_out(2);
  pin_out(3);
  weft_list_init(&queue0, WEFT_SPINLOCK(0));
  weft_list_init(&queue1, WEFT_SPINLOCK(1));
  uint32_t first = weft_now32() + PERIOD;
  weft_post(QUEUE_A, &event_a, first);
  weft_post(QUEUE_B, &event_b, first + PERIOD / 2);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(QUEUE_A);
  return 0;
}
