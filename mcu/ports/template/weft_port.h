/* A port to begin with: one core, a clock that other code counts, and waiting by polling. The port
 * compiles and works (slowly); replace each part by the means of your machine. platform.h describes
 * what each call must promise.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#define WEFT_CORES 1        /* if it is 2, weft_core, weft_lock and weft_wake must work for two
                             * cores */
#define WEFT_EARLY_US \
  1 /* 0 if weft_wait returns within a microsecond of the time; more if waking takes longer */
#define WEFT_HOT            /* e.g. __attribute__((section(".ramfunc"))) where flash is slow */

typedef uint32_t weft_lock_t; /* for two cores: a spin lock, a word for LDREX/STREX, … */
typedef uint32_t weft_irq_t;
#define WEFT_SPINLOCKS 4u
extern weft_lock_t template_locks[WEFT_SPINLOCKS + 1];
#define WEFT_SPINLOCK(n) (&template_locks[n])
#define WEFT_LOCAL (&template_locks[WEFT_SPINLOCKS])

extern volatile uint64_t
    template_clock; /* in microseconds: count the clock in a timer interrupt, or read a timer
                     * instead */

WEFT_INLINE uint64_t
weft_now64(void) { /* if the clock is two registers, read high, low, high again */
  uint64_t now = template_clock, again;
  while ((again = template_clock) != now) now = again;
  return now;
}
WEFT_INLINE uint32_t weft_now32(void) { return (uint32_t)weft_now64(); }
WEFT_INLINE unsigned weft_core(void) { return 0; }
WEFT_INLINE void weft_wait_init(void) {}
WEFT_INLINE void weft_arm(uint32_t t) {
  (void)t;
} /* set a compare register, then clear the latches
     (README.md explains why); does nothing as long
     as weft_wait returns at once */
WEFT_INLINE void weft_wait(void) {
} /* WFE, or the machine's own sleep; but a weft_wake that came before must not be lost */
WEFT_INLINE void weft_wake(void) {}                /* SEV */
WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) { /* interrupts off, then the lock */
  (void)l;
  __asm volatile("" ::: "memory");
  return 0;
}
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) {
  (void)l, (void)irq;
  __asm volatile("" ::: "memory");
}
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) { (void)weft_lock(l); }
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) { weft_unlock(l, 0); }
WEFT_INLINE int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  (void)fn, (void)stack, (void)bytes;
  return WEFT_E_CORE;
}
#define WEFT_STACK1 ((void *)0) /* the lowest address of core 1's stack */
#define WEFT_STACK1_BYTES 0u
WEFT_INLINE int weft_stack_ok(void) { return 1; }
#endif
