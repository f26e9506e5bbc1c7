/* tasks: two interleaved 10 kHz tasks that both cores serve from one queue. Pins 2 and 3 show when
 * each task runs. */
#include "board.h"
#include "weft_mcu/actors.h"

enum { PERIOD = 100 };
static weft_queue queue;
static weft_actor left, right;

static void some_work(void) {
  for (volatile int i = 0; i < 100; i++) {}
}
WEFT_HOT static uint32_t left_task(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_high(2);
  some_work();
  pin_low(2);
  return PERIOD;
}
WEFT_HOT static uint32_t right_task(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_high(3);
  some_work();
  pin_low(3);
  return PERIOD;
}
static void core1(void) { weft_work(&queue); }

int main(void) {
  static weft_event left_event = WEFT_EVENT(left_task, &left),
                    right_event = WEFT_EVENT(right_task, &right);
  pin_out(2);
  pin_out(3);
  weft_list_init(&queue, WEFT_SPINLOCK(0));
  uint32_t first = weft_now32() + PERIOD;
  weft_post(&queue, &left_event, first);
  weft_post(&queue, &right_event, first + PERIOD / 2);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(&queue);
  return 0;
}
