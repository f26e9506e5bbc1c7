/* reactors_many: MANY reactors, each with a timer and a reaction of its own, and no two timers fire
 * at one time. Pin 2 is high while a reaction runs. The times are so close that the program is
 * always late, so the time between two reactions is the cost of a tag that fires one of MANY
 * timers. At the end the program prints one JSON line on the UART.
 */
#ifndef MANY
#define MANY 8000
#endif
#define WEFT_RX_REACTIONS MANY
#define WEFT_RX_TIMERS MANY
#define WEFT_RX_TABLE
#include "weft_mcu/reactors.h"
#include "cycles.h"

enum { ROUNDS = 2 };
static weft_rx_timer timers[MANY];
weft_rx_reaction weft_rx_reactions[MANY];
weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
weft_rx_range weft_rx_timers[] = {{timers, MANY, sizeof timers[0]}};
weft_rx_program weft_rx_programs[] = {{.name = "many", .count = MANY, .ranges = 1}};
static uint32_t fired, wrong, last;

WEFT_HOT static void react(void *self) {
  pin_high(2);
  uint32_t i = (uint32_t)(uintptr_t)self;
  if (fired && last + 1 != (i ? i : MANY)) wrong++; /* The reactors fire in turn. */
  last = i;
  if (++fired == ROUNDS * MANY) weft_rx_request_stop();
  pin_low(2);
}
/* The numbers of the reactions do not follow their times, so both levels of the bitmap are used
 * in irregular order. */
void weft_rx_wire(void) {
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t r = i * 3 % MANY; /* MANY is not a multiple of 3 */
    timers[i] = (weft_rx_timer)WEFT_RX_TIMER(0, 1000000, WEFT_RX_TRIG_ONE(r));
    timers[i].time = 1 + i;
    timers[i].period = MANY;
    weft_rx_reactions[r] = (weft_rx_reaction){react, (void *)(uintptr_t)i};
  }
}
#include "weft_mcu/reactors_run.h"

int main(void) {
  uart_init();
  pin_out(2);
  (void)weft_rx_run(0);
  uart_puts("{\"bench\":\"reactors_many\"");
  put_figure("reactors", MANY);
  put_figure("fired", fired);
  put_figure("wrong", wrong);
  put_figure("bytes_each", sizeof timers[0] + sizeof weft_rx_reactions[0]);
  put_figure("bytes_in_heap", sizeof(weft_rx_timer *));
  uart_puts("}\n");
  __asm volatile("bkpt 0");
  return 0;
}
