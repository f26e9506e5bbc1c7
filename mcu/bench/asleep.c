/* asleep: an actor toggles pin 2 every millisecond. In between the core sleeps; with -DWEFT_SLEEP=1
 * in the chip's state SLEEP, in which only the blocks that are needed have clocks (POWER.md).
 * run.mjs reads the times in each state, and compares the edges. */
#include "board.h"
#include "weft_mcu/actors.h"

static weft_queue events;
static weft_actor lamp = WEFT_ACTOR(0);
static uint32_t toggle(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_toggle(2);
  return 1000;
}
static weft_event beat = WEFT_EVENT(toggle, &lamp);

int main(void) {
  weft_list_init(&events, WEFT_LOCAL);
  pin_out(2);
#if WEFT_SLEEP
  weft_sleep_keep(0, 0);
#endif
  weft_post(&events, &beat, 3000);
  weft_work(&events);
  return 0;
}
