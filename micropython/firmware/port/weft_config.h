// The configuration of QEMU's port with time, select, asyncio, a file system in memory and
// interrupts. This file includes the port's own configuration, and changes parts of it.
#include "mpconfigport.h"

#undef MICROPY_PY_SELECT
#define MICROPY_PY_SELECT (1)
#undef MICROPY_PY_SYS_STDIO_BUFFER  // sys.stdin.buffer, which a link uses on boards with USB
#define MICROPY_PY_SYS_STDIO_BUFFER (1)
#undef MICROPY_PY_TIME
#define MICROPY_PY_TIME (1)
#undef MICROPY_PY_ASYNCIO
#define MICROPY_PY_ASYNCIO (1)

// When MicroPython has nothing to do, the processor sleeps until the next event, for at most `ms`
// milliseconds (-1: without a limit).
void weft_board_sleep_ms(int ms);
#define MICROPY_INTERNAL_WFE(ms) weft_board_sleep_ms(ms)

// A hard interrupt runs on the stack of the code that it interrupts. So MicroPython changes the
// queue of its scheduler with interrupts disabled.
#include <stdint.h>
static inline uint32_t weft_board_hold_interrupts(void) {
  uint32_t state;
  __asm volatile("mrs %0, primask\ncpsid i" : "=r"(state)::"memory");
  return state;
}
static inline void weft_board_let_interrupts(uint32_t state) {
  __asm volatile("msr primask, %0" ::"r"(state) : "memory");
}
#define MICROPY_BEGIN_ATOMIC_SECTION() weft_board_hold_interrupts()
#define MICROPY_END_ATOMIC_SECTION(state) weft_board_let_interrupts(state)
