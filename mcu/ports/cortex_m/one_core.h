/* one_core.h: what every chip with one Cortex-M has in common: the lock, waiting and waking. A
 * port of such a chip includes this header and adds a clock and an alarm.
 *
 * Waiting is WFI with interrupts off, and a word instead of the event register:
 *
 *   weft_wake, from the core or its handlers ──► weft_cortex_m_woken = 1
 *   weft_wait: interrupts off; WFI unless the word is set; the word = 0; interrupts on
 *
 * Invariants
 *  1. WFI ends when an enabled interrupt becomes pending, also while PRIMASK holds its handler
 *     back. So a wake that comes between the check of the word and WFI is not lost.
 *  2. The handler of the alarm calls weft_wake. An alarm that fires before weft_wait is therefore
 *     remembered by the word.
 *
 * WFE with SEVONPEND, as on the RP2040, would save the entry of the alarm's handler. WFI is used
 * because QEMU's WFE returns at once, so that QEMU would never need the alarm and would not test
 * it.
 */
#ifndef WEFT_CORTEX_M_ONE_CORE_H
#define WEFT_CORTEX_M_ONE_CORE_H
#include <stddef.h>
#include <stdint.h>

#define WEFT_CORES 1
#ifndef WEFT_EARLY_US
#define WEFT_EARLY_US 1
#endif
#ifndef WEFT_HOT
#define WEFT_HOT
#endif
#define WEFT_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

typedef uint32_t weft_lock_t;
typedef uint32_t weft_irq_t;
#define WEFT_SPINLOCKS 8u
extern weft_lock_t weft_cortex_m_locks[WEFT_SPINLOCKS + 1];
#define WEFT_SPINLOCK(n) (&weft_cortex_m_locks[n])
#define WEFT_LOCAL (&weft_cortex_m_locks[WEFT_SPINLOCKS])
extern volatile uint32_t weft_cortex_m_woken;

WEFT_INLINE unsigned weft_core(void) { return 0; }
WEFT_INLINE void weft_wake(void) { weft_cortex_m_woken = 1; }
WEFT_INLINE void weft_wait(void) {
  __asm volatile("cpsid i" ::: "memory");
  if (!weft_cortex_m_woken) __asm volatile("dsb\n\twfi" ::: "memory");
  weft_cortex_m_woken = 0;
  __asm volatile("cpsie i\n\tisb" ::: "memory");
}
/* On one core a lock is only the switching off of interrupts. */
WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) {
  (void)l;
  weft_irq_t irq;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(irq)::"memory");
  return irq;
}
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) {
  (void)l;
  __asm volatile("msr primask, %0" ::"r"(irq) : "memory");
}
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) {
  (void)l;
  __asm volatile("cpsid i" ::: "memory");
}
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) {
  (void)l;
  __asm volatile("cpsie i" ::: "memory");
}
WEFT_INLINE int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  (void)fn, (void)stack, (void)bytes;
  return WEFT_E_CORE;
}
#define WEFT_STACK1 ((void *)0)
#define WEFT_STACK1_BYTES 0u
/* start.c writes the guard into the last word of the stack. */
enum { WEFT_STACK_GUARD = 0x57454654 };
extern uint32_t __weft_stack_end;
WEFT_INLINE int weft_stack_ok(void) { return __weft_stack_end == WEFT_STACK_GUARD; }
/* The part of the RAM that the linker script leaves free. If lta.c is linked, it takes memory from
 * this part. */
extern uint8_t __weft_free_begin, __weft_free_end;
#define WEFT_FREE_BEGIN (&__weft_free_begin)
#define WEFT_FREE_END (&__weft_free_end)
#endif
