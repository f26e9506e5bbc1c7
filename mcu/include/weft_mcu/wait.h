/* weft_mcu/wait.h: waiting until a time or news, apart from what is waited for.
 *
 * News is a half word of this core that others set and follow with weft_wake; it may be set at any
 * moment. Who waits clears it under the lock under which it looks for work, so what is set after
 * that look is never missed: weft_wake is remembered.
 */
#ifndef WEFT_MCU_WAIT_H
#define WEFT_MCU_WAIT_H
#include "weft_mcu/platform.h"

WEFT_INLINE void weft_wait_news(const uint16_t *news) {
  while (!WEFT_PEEK(*news)) weft_wait();
}
/* Returns WEFT_EARLY_US before t, or at news: the caller looks which. The rest up to t is polled by
 * who needs it to the cycle. */
WEFT_INLINE void weft_wait_until(uint32_t t, const uint16_t *news) {
  weft_arm(t - WEFT_EARLY_US);
  while ((int32_t)(t - weft_now32()) > WEFT_EARLY_US && !WEFT_PEEK(*news)) weft_wait();
}
#endif
