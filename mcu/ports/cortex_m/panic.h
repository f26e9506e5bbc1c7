/* panic.h: how weft_panic stops a core of a Cortex-M, after it has written the text to the UART.
 *
 * Invariant: the number of the breakpoint is 77, and r0 has the text's address (rule M15).
 * `weft-rp2040 explain` says so, and the emulator's report of a stop reads the text there.
 */
#ifndef WEFT_CORTEX_M_PANIC_H
#define WEFT_CORTEX_M_PANIC_H
#include "weft_mcu/platform.h"

WEFT_NORETURN static inline void weft_stop_at_panic(const char *what) {
  register const char *text __asm("r0") = what;
  for (;;) __asm volatile("bkpt 77" ::"r"(text));
}
#endif
