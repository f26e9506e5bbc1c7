/* nvic.h: the interrupt controller of every Cortex-M. Lines are numbered from 0, as in the manual
 * of the chip. */
#ifndef WEFT_CORTEX_M_NVIC_H
#define WEFT_CORTEX_M_NVIC_H
#include "weft_mcu/platform.h"

enum {
  NVIC_ISER = 0xe000e100,
  NVIC_ICER = 0xe000e180,
  NVIC_ISPR = 0xe000e200,
  NVIC_ICPR = 0xe000e280,
};
WEFT_INLINE void nvic_enable(unsigned line) {
  WEFT_REG(NVIC_ISER + line / 32 * 4) = 1u << line % 32;
}
WEFT_INLINE void nvic_disable(unsigned line) {
  WEFT_REG(NVIC_ICER + line / 32 * 4) = 1u << line % 32;
}
/* Make the line pending, as if its device had raised it. */
WEFT_INLINE void nvic_pend(unsigned line) {
  WEFT_REG(NVIC_ISPR + line / 32 * 4) = 1u << line % 32;
  __asm volatile("dsb\n\tisb" ::: "memory");
}
WEFT_INLINE void nvic_clear(unsigned line) {
  WEFT_REG(NVIC_ICPR + line / 32 * 4) = 1u << line % 32;
}
#endif
