/* blink: blinks the LED of a Pico at 1 Hz, exactly on time forever. It needs one actor and one
 * periodic event, no interrupt, and 17 bytes. */
#include "board.h"
#include "weft_mcu/actors.h"

enum { LED = 25, HALF_PERIOD = 500000 };
static weft_queue queue;
static weft_actor blinker;

static uint32_t toggle(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_toggle(LED);
  return HALF_PERIOD;
}

int main(void) {
  static weft_event tick = WEFT_EVENT(toggle, &blinker);
  pin_out(LED);
  weft_list_init(&queue, WEFT_LOCAL);
  weft_post_in(&queue, &tick, HALF_PERIOD);
  weft_work(&queue);
  return 0;
}
