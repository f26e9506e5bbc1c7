/* reactors_wake: measures the time from a pin's edge, through its interrupt and a physical action,
 * to a reaction, which sets pin 7. A timer of 1 ms runs at the same time (pin 8); the order of the
 * action's values is checked in the timer's tags. Pin 9 goes high for good if a value is lost. The
 * emulator drives pin 6.
 */
#define WEFT_RX_REACTIONS 2
#define WEFT_RX_TIMERS 1
#define WEFT_RX_EVENTS 8
#define WEFT_RX_PHYSICAL 1
#include "weft_mcu/reactors.h"
#include "board.h"

typedef WEFT_RX_ACTION(uint32_t) action;
static action edge =
    WEFT_RX_VALUE_INIT(uint32_t, WEFT_RX_TRIG_ONE(0), 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
static weft_rx_timer tick = WEFT_RX_TIMER(0, WEFT_RX_MSEC(1), WEFT_RX_TRIG_ONE(1));
static uint32_t sent, got;

void weft_isr_io_bank0(void);
WEFT_HOT void weft_isr_io_bank0(void) {
  pin_irq_ack(6);
  uint32_t n = ++sent;
  if (weft_rx_schedule_copy(&edge, 0, &n, 1) <= 0) pin_high(9);
}
WEFT_HOT static void on_edge(void *self) {
  (void)self;
  pin_toggle(7);
  if (edge.value != ++got) pin_high(9);
}
WEFT_HOT static void on_tick(void *self) {
  (void)self;
  pin_toggle(8);
}
const weft_rx_reaction weft_rx_reactions[] = {{on_edge, 0}, {on_tick, 0}};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
const weft_rx_range weft_rx_timers[] = {{&tick, 1, 0}};
const weft_rx_program weft_rx_programs[] = {{.name = "wake", .count = 2, .ranges = 1}};
#include "weft_mcu/reactors_run.h"

int main(void) {
  pin_out(7), pin_out(8), pin_out(9);
  pin_in_pull_up(6);
  pin_irq_both_edges(6);
  return weft_rx_run(0);
}
