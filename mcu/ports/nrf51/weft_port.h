/* The nRF51: one Cortex-M0. It has run in QEMU (microbit) only, never on a chip.
 *
 * The clock is TIMER0, 32 bits wide, 16 MHz divided by 16. The timer has no register that shows its
 * count: a task of the timer captures the count into CC[1]. Between the capture and the read an
 * interrupt may capture again; then the read gives the later time, which is correct too. The alarm
 * is CC[0], which fires on equality. CC[2] fires when the clock turns. Both events raise line 8,
 * whose handler wakes the core if the alarm has fired.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#include "../cortex_m/one_core.h"

enum {
  NRF51_TIMER0 = 0x40008000,
  NRF51_CAPTURE1 = NRF51_TIMER0 + 0x44,
  NRF51_COMPARE0 = NRF51_TIMER0 + 0x140,
  NRF51_CC0 = NRF51_TIMER0 + 0x540,
  NRF51_CC1 = NRF51_TIMER0 + 0x544,
  NRF51_TIMER0_LINE = 8,
};
uint64_t nrf51_now64(void);
void weft_board_start(void);

WEFT_INLINE uint32_t weft_now32(void) {
  WEFT_REG(NRF51_CAPTURE1) = 1;
  return WEFT_REG(NRF51_CC1);
}
WEFT_INLINE uint64_t weft_now64(void) { return nrf51_now64(); }
WEFT_INLINE void weft_wait_init(void) {}
/* The new time is set first, and the event of the old time is cleared second. The NVIC's latch
 * stays as it is, because the turn of the clock raises the same line. A handler that finds no event
 * does nothing. */
WEFT_INLINE void weft_arm(uint32_t t) {
  WEFT_REG(NRF51_CC0) = t;
  WEFT_REG(NRF51_COMPARE0) = 0;
}
#endif
