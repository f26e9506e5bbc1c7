/* A machine that exists only in tests. Its two cores are coroutines of one thread, interleaved
 * by a seeded random choice at every call of the platform API. Time, alarms, the event register
 * and interrupts are as strict as the hardware's (fake.c). */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#define WEFT_CORES 2
#define WEFT_EARLY_US 1
#define WEFT_HOT
typedef struct { int held; } weft_lock_t;
typedef int weft_irq_t;
extern weft_lock_t fake_local, fake_locks[8];
#define WEFT_SPINLOCKS 8u
#define WEFT_SPINLOCK(n) (&fake_locks[n])
#define WEFT_LOCAL (&fake_local)

uint64_t fake_now(void);
unsigned fake_core(void);
void fake_arm(uint32_t t);
void fake_wait(void);
void fake_wake(void);
int fake_lock(weft_lock_t *l);
void fake_unlock(weft_lock_t *l, int irq);

WEFT_INLINE uint64_t weft_now64(void) { return fake_now(); }
WEFT_INLINE uint32_t weft_now32(void) { return (uint32_t)fake_now(); }
WEFT_INLINE unsigned weft_core(void) { return fake_core(); }
WEFT_INLINE void weft_wait_init(void) {}
WEFT_INLINE void weft_arm(uint32_t t) { fake_arm(t); }
WEFT_INLINE void weft_wait(void) { fake_wait(); }
WEFT_INLINE void weft_wake(void) { fake_wake(); }
WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) { return fake_lock(l); }
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) { fake_unlock(l, irq); }
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) { (void)fake_lock(l); }
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) { fake_unlock(l, 1); }
int weft_start_core(void (*fn)(void), void *stack, size_t bytes);
int weft_stack_ok(void);
#endif
