/* start.c: from reset to main on a chip with one Cortex-M. weft_reset prepares memory and the guard
 * of the stack, and then starts the port's clock. */
#include "weft_mcu/platform.h"

extern uint32_t __weft_data_load, __weft_data_start, __weft_data_end, __weft_bss_start,
    __weft_bss_end;
weft_lock_t weft_cortex_m_locks[WEFT_SPINLOCKS + 1];
volatile uint32_t weft_cortex_m_woken;
void weft_board_start(void); /* the port's: starts the clock */
void weft_reset(void);
int main(void);

void weft_reset(void) {
  for (uint32_t *p = &__weft_data_start, *from = &__weft_data_load; p != &__weft_data_end;)
    *p++ = *from++;
  for (uint32_t *p = &__weft_bss_start; p != &__weft_bss_end;) *p++ = 0;
  __weft_stack_end = WEFT_STACK_GUARD;
  weft_board_start();
  main();
  for (;;) __asm volatile("wfi"); /* main has returned: handlers still run. */
}
