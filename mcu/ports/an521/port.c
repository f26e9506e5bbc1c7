/* port.c: start-up of both cores, the upper half of the clock, semihosting. Both cores start at
 * the same reset entry, which picks a stack by the core's number. */
#include "../cortex_m/semihost.h"
#include "../cortex_m/turns.h"

weft_lock_t weft_cortex_m_locks[WEFT_SPINLOCKS + 1];
uint32_t an521_alarm[2];
static void (*volatile core1_program)(void);
int main(void);
extern uint32_t __bss_start, __bss_end;

uint64_t an521_now64(void) {
  weft_irq_t irq = weft_lock(WEFT_SPINLOCK(WEFT_SPINLOCKS - 1));
  uint64_t now = weft_clock_now();
  weft_unlock(WEFT_SPINLOCK(WEFT_SPINLOCKS - 1), irq);
  return now;
}
void an521_puts(const char *text) { semihost_puts(text); }
void an521_exit(int status) { semihost_exit(status); }
__attribute__((weak)) void weft_panic(const char *what) {
  an521_puts(what);
  an521_exit(77);
}
int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  (void)stack, (void)bytes; /* The linker script provides the stack. */
  if (core1_program) return WEFT_MISTAKE(WEFT_E_CORE, "core 1 is already running");
  core1_program = fn;
  __asm volatile("dsb");
  WEFT_REG(CPUWAIT) = 0;
  return WEFT_OK;
}

void an521_begin(void);
__attribute__((used)) void an521_begin(void) {
  if (weft_core() == 0) {
    for (uint32_t *p = &__bss_start; p != &__bss_end;) *p++ = 0;
    WEFT_REG(FPGAIO_PRESCALE) = 19; /* 20 MHz to 1 MHz */
    WEFT_REG(FPGAIO_COUNTER) = 0;
    an521_exit(main());
  }
  core1_program();
  for (;;) __asm volatile("wfe");
}
void weft_reset(void);
__attribute__((naked)) void weft_reset(void) {
  __asm volatile(
      "ldr r0, =0x5001f000\n\tldr r0, [r0]\n\tcmp r0, #0\n\tldr r1, =__weft_stack\n\tbeq 1f\n\tldr r1, =__stack1\n1: mov sp, r1\n\tb an521_begin\n\t.ltorg");
}
void weft_isr_hardfault(void);
void weft_isr_hardfault(void) { an521_exit(78); }
