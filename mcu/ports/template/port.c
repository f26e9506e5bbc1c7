/* port.c: what of a port is not inline: its locks, its clock, and where a mistake is told. */
#include "weft_mcu/platform.h"
weft_lock_t template_locks[WEFT_SPINLOCKS + 1];
volatile uint64_t template_clock;
__attribute__((weak)) void weft_panic(const char *what) {
  (void)what; /* write it where somebody reads it */
  for (;;) {}
}
