/* port.c: starts the second core and reports a mistake, both by the pico-sdk. */
#include "weft_mcu/platform.h"

#include "pico/multicore.h"
#include "pico/platform.h"

weft_lock_t weft_cortex_m_locks[WEFT_SPINLOCKS + 1];
static uint8_t core1_runs;

int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  if (core1_runs || weft_core()) return WEFT_MISTAKE(WEFT_E_CORE, "core 1 is already running");
  core1_runs = 1;
  multicore_launch_core1_with_stack(fn, stack, bytes);
  return WEFT_OK;
}
__attribute__((weak)) void weft_panic(const char *what) { panic("%s", what); }
