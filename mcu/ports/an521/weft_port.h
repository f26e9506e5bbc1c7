/* The MPS2 board with the AN521 image: two Cortex-M33 without caches. This port has run in QEMU
 * (mps2-an521) only, never on the board.
 *
 * The clock is the FPGA's 32-bit microsecond counter. weft_now64 counts how often the counter
 * wraps, so it must be called at least once an hour. Each core's alarm is a CMSDK timer whose
 * interrupt line is pending but not enabled (SEVONPEND). The timer covers at most 214 s, because it
 * counts 20 times a microsecond in 32 bits; weft_wait restarts it for a longer time. QEMU's WFE
 * returns at once, so there the alarm is never needed.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#define WEFT_CORES 2
#define WEFT_EARLY_US 1
#define WEFT_HOT
#define WEFT_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
enum {
  CPU_ID = 0x5001f000,
  CPUWAIT = 0x50021118,
  FPGAIO_COUNTER = 0x50302018,
  FPGAIO_PRESCALE = 0x5030201c,
  CMSDK_TIMER0 = 0x50000000,
  AN521_ICPR = 0xe000e280,
  SCR = 0xe000ed10,
  TIMER0_LINE = 3,
  ALARM_LONGEST = 100000000,
};
#include "../cortex_m/two_cores.h"
extern uint32_t an521_alarm[2];

uint64_t an521_now64(void);
WEFT_INLINE uint32_t weft_now32(void) { return WEFT_REG(FPGAIO_COUNTER); }
WEFT_INLINE uint64_t weft_now64(void) { return an521_now64(); }
WEFT_INLINE unsigned weft_core(void) { return WEFT_REG(CPU_ID); }
WEFT_INLINE void weft_wait_init(void) { WEFT_REG(SCR) = 16; /* SEVONPEND */ }
/* The timer stops from the first write to the last, so no old alarm fires in between. Interrupts
 * are off, since an interrupt between reading the clock and starting the timer would delay the
 * alarm by its duration. */
WEFT_INLINE void an521_start_timer(unsigned core) {
  uint32_t irq;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(irq)::"memory");
  uint32_t timer = CMSDK_TIMER0 + 0x1000 * core, us = an521_alarm[core] - weft_now32();
  if ((int32_t)us < 1) us = 1; /* The alarm may be late, but it must fire. */
  if (us > ALARM_LONGEST) us = ALARM_LONGEST;
  WEFT_REG(timer) = 0;
  WEFT_REG(timer + 12) = 1; /* INTCLEAR: clear the interrupt */
  WEFT_REG(AN521_ICPR) = 1u << (TIMER0_LINE + core);
  WEFT_REG(timer + 8) = us * 20; /* RELOAD: the period */
  WEFT_REG(timer + 4) = us * 20; /* VALUE: the present count */
  WEFT_REG(timer) = 9;           /* CTRL: on, with interrupt */
  __asm volatile("msr primask, %0" ::"r"(irq) : "memory");
}
WEFT_INLINE void weft_arm(uint32_t t) {
  an521_alarm[weft_core()] = t;
  an521_start_timer(weft_core());
}
WEFT_INLINE void weft_wait(void) {
  __asm volatile("wfe" ::: "memory");
  unsigned core = weft_core();
  if (WEFT_REG(CMSDK_TIMER0 + 0x1000 * core + 12)) an521_start_timer(core);
}
int weft_start_core(void (*fn)(void), void *stack, size_t bytes);
#define WEFT_STACK1 ((void *)0) /* the linker script provides it */
#define WEFT_STACK1_BYTES 0u
WEFT_INLINE int weft_stack_ok(void) { return 1; }
void an521_puts(const char *text); /* semihosting */
WEFT_NORETURN void an521_exit(int status);
#endif
