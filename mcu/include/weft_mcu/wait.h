/* weft_mcu/wait.h: waits until a certain time has come or there is news.
 *
 * News is a half word of this core that other cores and interrupts set before they call weft_wake,
 * at any moment. The waiting core clears it under the same lock under which it checks for work.
 * Therefore news that is set after that check is never missed: weft_wake is remembered.
 */
#ifndef WEFT_MCU_WAIT_H
#define WEFT_MCU_WAIT_H
#include "weft_mcu/platform.h"

WEFT_INLINE void weft_wait_news(const uint16_t *news) {
  while (!WEFT_PEEK(*news)) weft_wait();
}
/* Wait until WEFT_EARLY_US before t, or until there is news; the caller must find out which of the
 * two has happened. A caller that needs t to the cycle polls the clock for the rest of the time. */
WEFT_INLINE void weft_wait_until(uint32_t t, const uint16_t *news) {
  weft_arm(t - WEFT_EARLY_US);
  while ((int32_t)(t - weft_now32()) > WEFT_EARLY_US && !WEFT_PEEK(*news)) weft_wait();
}
#endif
