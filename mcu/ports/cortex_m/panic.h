/* panic.h: how weft_panic stops a core of a Cortex-M, after it has written the text to the UART.
 *
 * Invariant: the number of the breakpoint, and the text's address in r0, are what
 * `weft-rp2040 explain` says of them (rule M15), and what the emulator's report of a stop reads.
 */
#ifndef WEFT_CORTEX_M_PANIC_H
#define WEFT_CORTEX_M_PANIC_H
#include "weft_mcu/platform.h"

WEFT_NORETURN static inline void weft_stop_at_panic(const char *what) {
  register const char *text __asm("r0") = what;
  for (;;) __asm volatile("bkpt 77" ::"r"(text));
}
#endif
