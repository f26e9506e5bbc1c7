/* port.c: the start of the clock, its upper half, and the handler of the alarm. */
#include "board.h"
#include "../cortex_m/panic.h"
#include "../cortex_m/turns.h"

enum {
  CLOCK_HFCLKSTART = 0x40000000,
  CLOCK_HFCLKSTARTED = 0x40000100,
  TIMER_START = NRF51_TIMER0 + 0x00,
  TIMER_CLEAR = NRF51_TIMER0 + 0x0c,
  TIMER_COMPARE2 = NRF51_TIMER0 + 0x148,
  TIMER_INTENSET = NRF51_TIMER0 + 0x304,
  TIMER_MODE = NRF51_TIMER0 + 0x504,
  TIMER_BITMODE = NRF51_TIMER0 + 0x508,
  TIMER_PRESCALER = NRF51_TIMER0 + 0x510,
  TIMER_CC2 = NRF51_TIMER0 + 0x548,
};
uint64_t nrf51_now64(void) {
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  uint64_t now = weft_clock_now();
  weft_unlock(WEFT_LOCAL, irq);
  return now;
}
/* TIMER0's line. CC[2] raises it at the turn of the clock, so that weft_clock_now() is called in
 * each turn. */
void weft_isr_8(void);
void weft_isr_8(void) {
  weft_irq_t irq = weft_lock(WEFT_LOCAL);
  WEFT_REG(TIMER_COMPARE2) = 0;
  (void)weft_clock_now();
  if (WEFT_REG(NRF51_COMPARE0)) {
    WEFT_REG(NRF51_COMPARE0) = 0;
    weft_wake();
  }
  weft_unlock(WEFT_LOCAL, irq);
}

void weft_board_start(void) {
  WEFT_REG(CLOCK_HFCLKSTARTED) = 0;
  WEFT_REG(CLOCK_HFCLKSTART) = 1; /* the crystal */
  while (!WEFT_REG(CLOCK_HFCLKSTARTED)) {}
  WEFT_REG(TIMER_MODE) = 0;
  WEFT_REG(TIMER_BITMODE) = 3; /* 32 bits, which TIMER0 alone has */
  WEFT_REG(TIMER_PRESCALER) = 4;
  WEFT_REG(TIMER_CLEAR) = 1;
  WEFT_REG(TIMER_START) = 1;
  WEFT_REG(TIMER_CC2) = 0;
  WEFT_REG(TIMER_COMPARE2) = 0;
  WEFT_REG(NRF51_COMPARE0) = 0;
  WEFT_REG(TIMER_INTENSET) = 5u << 16;
  nvic_enable(NRF51_TIMER0_LINE);
}
/* The text goes to the UART, if the program has called uart_init. */
__attribute__((weak)) void weft_panic(const char *what) {
  __asm volatile("cpsid i" ::: "memory");
  if (uart_is_on()) uart_puts(what);
  weft_stop_at_panic(what);
}
