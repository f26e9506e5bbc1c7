/* moved: core 0 holds an event and waits for it. The interrupt of a pin moves the event, at any
 * cycle around the event's old alarm (M9, M18).
 *
 * The event is released 40 us after `first`, which pin 2 marks. A falling edge of pin 6 moves the
 * event to 30 us after the edge (NEARER: to 3 us after it). `late` is the greatest number of
 * microseconds by which the event was late. The queue holds a second event, 20 minutes away, so
 * that a core that misses its alarm sleeps on.
 */
#include "board.h"
#include "weft_mcu/actors.h"

#ifndef NEARER
#define NEARER 0
#endif
static weft_queue queue;
static weft_actor actor, other;
volatile uint32_t runs, late, moves,
    wanted = 1; /* the expected number of runs: one more for each move that came after the core had
                 * committed to the event */

WEFT_HOT static uint32_t run(weft_event *e, uint32_t release) {
  (void)e;
  uint32_t by = weft_now32() - release;
  if (by > late) late = by;
  runs++;
  return WEFT_DONE;
}
static uint32_t far(weft_event *e, uint32_t release) { return (void)e, (void)release, WEFT_DONE; }
static weft_event event = WEFT_EVENT(run, &actor), distant = WEFT_EVENT(far, &other);

void weft_isr_io_bank0(void);
WEFT_HOT void weft_isr_io_bank0(void) {
  pin_irq_ack(6);
  if (runs) return; /* The event has already run, so it is not moved. */
  moves++;
  if (!event.next) wanted++;
  weft_post_as(&queue, &event, weft_now32() + (NEARER ? 3 : 30), WEFT_MOVE);
}

int main(void) {
  pin_out(2);
  pin_in_pull_up(6);
  weft_list_init(&queue, WEFT_LOCAL);
  pin_irq_both_edges(6);
  uint32_t first = weft_now32() + 1;
  while (weft_now32() != first) {}
  pin_high(2);
  weft_post(&queue, &distant, first + 1000000000);
  weft_post(&queue, &event, first + 40);
  weft_work(&queue);
  return 0;
}
