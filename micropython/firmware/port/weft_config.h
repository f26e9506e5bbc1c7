// QEMU's port with time, select and asyncio, a file system in memory and interrupts. It includes
// the port's own configuration and changes that.
#include "mpconfigport.h"

#undef MICROPY_PY_SELECT
#define MICROPY_PY_SELECT (1)
#undef MICROPY_PY_SYS_STDIO_BUFFER  // sys.stdin.buffer, as boards with USB have it: a link's line
#define MICROPY_PY_SYS_STDIO_BUFFER (1)
#undef MICROPY_PY_TIME
#define MICROPY_PY_TIME (1)
#undef MICROPY_PY_ASYNCIO
#define MICROPY_PY_ASYNCIO (1)

// With nothing to do the processor sleeps until the next event, at most so many milliseconds (-1:
// for ever).
void weft_board_sleep_ms(int ms);
#define MICROPY_INTERNAL_WFE(ms) weft_board_sleep_ms(ms)

// Hard interrupts run on the stack of what they interrupt; the scheduler's queue is changed with
// them held.
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
