/* turns.h: the upper half of a clock of 32 bits. The port.c of a port includes this file, and calls
 * weft_clock_now at least once in each turn of the clock, which takes 71 minutes. Interrupts must
 * be off during a call, and on two cores the caller must hold a lock. */
#ifndef WEFT_CORTEX_M_TURNS_H
#define WEFT_CORTEX_M_TURNS_H
#include "weft_mcu/platform.h"

static uint32_t weft_clock_turns, weft_clock_last;
static inline uint64_t weft_clock_now(void) {
  uint32_t now = weft_now32();
  if (now < weft_clock_last) weft_clock_turns++;
  weft_clock_last = now;
  return (uint64_t)weft_clock_turns << 32 | now;
}
#endif
