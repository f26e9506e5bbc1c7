/* wake: measures the time from an interrupt to the action that it posts, on a core that sleeps.
 *
 * An edge on pin 6 interrupts core 0, whose handler posts to the queue of core 0, or to that of
 * core 1 (OTHER=1); the action toggles pin 8 or 9. With CLAIMED=1 each core also waits for a timer
 * far away, whose event must then be put back; with CLAIMED=0 it has no other event.
 */
#include "board.h"
#include "weft_mcu/actors.h"

#ifndef CLAIMED
#define CLAIMED 0
#endif
static weft_queue queue0, queue1;
static weft_actor actor0, actor1, idle;

WEFT_HOT static uint32_t react0(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_toggle(8);
  return WEFT_DONE;
}
WEFT_HOT static uint32_t react1(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_toggle(9);
  return WEFT_DONE;
}
__attribute__((unused)) static weft_event event0 = WEFT_EVENT(react0, &actor0),
                                          event1 = WEFT_EVENT(react1, &actor1);

#ifndef OTHER
#define OTHER 0
#endif
void weft_isr_io_bank0(void);
WEFT_HOT void weft_isr_io_bank0(void) {
  pin_irq_ack(6);
  weft_post(OTHER ? &queue1 : &queue0, OTHER ? &event1 : &event0, weft_now32());
}

#if CLAIMED
static uint32_t never(weft_event *e, uint32_t release) { return (void)e, (void)release, 1000000; }
static weft_event far0 = WEFT_EVENT(never, &idle), far1 = WEFT_EVENT(never, &idle);
#endif
static void core1(void) { weft_work(&queue1); }

int main(void) {
  pin_out(8);
  pin_out(9);
  pin_in_pull_up(6);
  weft_list_init(&queue0, WEFT_SPINLOCK(0));
  weft_list_init(&queue1, WEFT_SPINLOCK(1));
#if CLAIMED
  weft_post_in(&queue0, &far0, 1000000);
  weft_post_in(&queue1, &far1, 1000000);
#endif
  (void)idle;
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  pin_irq_both_edges(6);
  weft_work(&queue0);
  return 0;
}
