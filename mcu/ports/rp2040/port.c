/* port.c: starts the second core, and reports a mistake on a board. */
#include "weft_mcu/platform.h"

#include "../cortex_m/panic.h"

_Alignas(8) struct weft_local weft_local = {0, 1};

/* Send one word to core 1's boot code and return its answer. The boot code waits for the sequence
 * 0, 0, 1, vectors, stack, entry, and echoes every word; after a wrong echo the caller begins the
 * sequence again (RP2040 datasheet, 2.8.2). */
static uint32_t say(uint32_t word) {
  if (!word) {
    while (WEFT_REG(SIO_FIFO_ST) & 1) (void)WEFT_REG(SIO_FIFO_RD);
    weft_wake();
  }
  while (!(WEFT_REG(SIO_FIFO_ST) & 2)) {}
  WEFT_REG(SIO_FIFO_WR) = word;
  weft_wake();
  while (!(WEFT_REG(SIO_FIFO_ST) & 1)) weft_wait();
  return WEFT_REG(SIO_FIFO_RD);
}

static uint8_t core1_runs;

int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  if (core1_runs || weft_core()) return WEFT_MISTAKE(WEFT_E_CORE, "core 1 is already running");
  core1_runs = 1;
#if !defined(WEFT_PICO_SDK) && WEFT_DEBUG
  *(uint32_t *)stack = WEFT_STACK_GUARD;
#endif
  uint32_t words[6] = {0,
                       0,
                       1,
                       WEFT_REG(PPB_VTOR),
                       (uint32_t)(uintptr_t)stack + (uint32_t)bytes,
                       (uint32_t)(uintptr_t)fn};
  for (unsigned i = 0; i < 6; i = say(words[i]) == words[i] ? i + 1 : 0) {}
  return WEFT_OK;
}

/* Write the text to UART 0, if it is set up, and stop this core at a breakpoint, with the text's
 * address in r0. The function is weak: a program may define its own weft_panic. */
__attribute__((weak)) void weft_panic(const char *what) {
  __asm volatile("cpsid i" ::: "memory");
  if (!(WEFT_REG(RESETS_RESET) & 1u << 22))
    for (const char *next = what; *next; next++) {
      while (WEFT_REG(UART0_FR) & 32) {}
      WEFT_REG(UART0_DR) = (uint8_t)*next;
    }
  weft_stop_at_panic(what);
}
