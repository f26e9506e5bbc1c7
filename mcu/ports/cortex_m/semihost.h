/* semihost.h: text and an exit status for QEMU or a debugger. If there is neither, the breakpoint
 * is a fault. */
#ifndef WEFT_CORTEX_M_SEMIHOST_H
#define WEFT_CORTEX_M_SEMIHOST_H
#include "weft_mcu/platform.h"

WEFT_INLINE uintptr_t semihost(uintptr_t operation, uintptr_t argument) {
  register uintptr_t r0 __asm("r0") = operation, r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
WEFT_INLINE void semihost_puts(const char *text) { (void)semihost(4, (uintptr_t)text); }
WEFT_NORETURN static inline void semihost_exit(int status) {
  uintptr_t block[2] = {0x20026, (uintptr_t)status};
  for (;;) (void)semihost(0x20, (uintptr_t)block);
}
#endif
