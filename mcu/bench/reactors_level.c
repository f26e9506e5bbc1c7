/* reactors_level: four reactions of one level, then one reaction that reads their ports, on one
 * core (CORES=1) or both. Pin 2 is high while core 0 runs one of the four, pin 3 while core 1 runs
 * one; pin 4 is high from the first reaction to the reader. Pin 5 goes high for good if the reader
 * misses a value.
 */
#ifndef CORES
#define CORES 2
#endif
#define WEFT_RX_REACTIONS 5
#define WEFT_RX_TIMERS 1
#define WEFT_RX_WORKERS CORES
#include "weft_mcu/reactors.h"
#include "board.h"
#include "sumsq.h"

typedef WEFT_RX_PORT(uint32_t) port;
static port out[4] = {WEFT_RX_OUT(WEFT_RX_TRIG_ONE(4)), WEFT_RX_OUT(WEFT_RX_TRIG_ONE(4)),
                      WEFT_RX_OUT(WEFT_RX_TRIG_ONE(4)), WEFT_RX_OUT(WEFT_RX_TRIG_ONE(4))};
static weft_rx_timer tick = WEFT_RX_TIMER(WEFT_RX_MSEC(1), WEFT_RX_MSEC(1), WEFT_RX_TRIG(1, 15));
static uint32_t rounds;
WEFT_HOT static void work(void *self) {
  unsigned i = (unsigned)(uintptr_t)self;
  unsigned pin = 2 + weft_core();
  pin_high(4);
  pin_high(pin);
  work_loops(100);
  weft_rx_set(&out[i], rounds + i);
  pin_low(pin);
}
WEFT_HOT static void gather(void *self) {
  (void)self;
  for (unsigned i = 0; i < 4; i++)
    if (!out[i].is_present || out[i].value != rounds + i) pin_high(5);
  rounds++;
  pin_low(4);
}
const weft_rx_reaction weft_rx_reactions[] = {
    {work, (void *)0}, {work, (void *)1}, {work, (void *)2}, {work, (void *)3}, {gather, 0}};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END, 0, 1, 2, 3, WEFT_RX_END};
const weft_rx_range weft_rx_timers[] = {{&tick, 1, 0}};
const weft_rx_index weft_rx_levels[] = {0, 4, 5};
const weft_rx_program weft_rx_programs[] = {
    {.name = "level", .count = 5, .ranges = 1, .levels = 2}};
#include "weft_mcu/reactors_run.h"

int main(void) {
  pin_out(2), pin_out(3), pin_out(4), pin_out(5);
  return weft_rx_run(0);
}
