/* cycles.h: counts the cycles of this core by SysTick (24 bits, so up to 0.13 s), both on a board
 * and in the emulator.
 */
#ifndef WEFT_BENCH_CYCLES_H
#define WEFT_BENCH_CYCLES_H
#include "board.h"
static uint32_t cycles_empty;
WEFT_INLINE uint32_t cycles_now(void) {
  WEFT_BARRIER();
  uint32_t now = WEFT_REG(PPB_SYST_CVR);
  WEFT_BARRIER();
  return now;
}
WEFT_INLINE uint32_t cycles_since(uint32_t start) {
  return ((start - cycles_now()) & 0xffffff) - cycles_empty;
}
WEFT_INLINE void cycles_init(void) {
  WEFT_REG(PPB_SYST_RVR) = 0xffffff;
  WEFT_REG(PPB_SYST_CVR) = 0;
  WEFT_REG(PPB_SYST_CSR) = 5;
  uint32_t start = cycles_now();
  cycles_empty = cycles_since(start);
}
/* Print one figure of a bench as a member of a JSON line. */
static inline void put_figure(const char *name, uint32_t value) {
  uart_puts(",\"");
  uart_puts(name);
  uart_puts("\":");
  uart_put_u32(value);
}
#endif
