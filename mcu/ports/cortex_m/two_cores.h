/* two_cores.h: the locks of a chip with two Cortex-M33 (or others that have LDREX and STREX), and
 * waking by the event register. A port defines `weft_cortex_m_locks` in its port.c.
 *
 * The two cores see each other's exclusive accesses only if the memory system watches these. On a
 * chip whose SRAM is not shareable by default, bit EXTEXCLALL of ACTLR must be set on both cores
 * before the first lock is taken.
 */
#ifndef WEFT_CORTEX_M_TWO_CORES_H
#define WEFT_CORTEX_M_TWO_CORES_H
#include <stdint.h>

typedef struct { uint32_t word; } weft_lock_t;
typedef uint32_t weft_irq_t;
#define WEFT_SPINLOCKS 8u
extern weft_lock_t weft_cortex_m_locks[WEFT_SPINLOCKS + 1];
#define WEFT_SPINLOCK(n) (&weft_cortex_m_locks[n])
#define WEFT_LOCAL (&weft_cortex_m_locks[WEFT_SPINLOCKS])

WEFT_INLINE void weft_wake(void) { __asm volatile("dsb\n\tsev" ::: "memory"); }
WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) {
  weft_irq_t irq;
  uint32_t got;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(irq)::"memory");
  if (l != WEFT_LOCAL)
    __asm volatile(
        "1: ldrex %0, [%1]\n\tcmp %0, #0\n\tbne 1b\n\tstrex %0, %2, [%1]\n\tcmp %0, #0\n\tbne 1b\n\tdmb"
        : "=&r"(got)
        : "r"(&l->word), "r"(1)
        : "cc", "memory");
  return irq;
}
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) {
  if (l != WEFT_LOCAL) __asm volatile("dmb\n\tstr %1, [%0]" ::"r"(&l->word), "r"(0) : "memory");
  __asm volatile("msr primask, %0" ::"r"(irq) : "memory");
}
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) { (void)weft_lock(l); }
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) { weft_unlock(l, 0); }
#endif
