/* port.c: the parts of a port that are not inline: its locks, its clock, and the function that
 * reports a mistake. */
#include "weft_mcu/platform.h"
weft_lock_t template_locks[WEFT_SPINLOCKS + 1];
volatile uint64_t template_clock;
__attribute__((weak)) void weft_panic(const char *what) {
  (void)what; /* Replace this: write the text to a place where a person will read it. */
  for (;;) {}
}
