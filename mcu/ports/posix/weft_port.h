/* The port for a host with threads: for trying programs out, and for tests under the sanitizers.
 * Time is real or virtual; virtual time advances only when every core waits (weft_posix_virtual).
 *
 * A core is a thread: the main program is core 0, weft_start_core makes core 1. There are no
 * interrupts. Any other thread may post to a queue that has a lock (virtual time does not wait for
 * such a thread). weft_wait sleeps to the exact time, so nothing is polled.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#include <pthread.h>

#define WEFT_POSIX 1
#define WEFT_CORES 2
#define WEFT_EARLY_US 0
#define WEFT_HOT
typedef struct { pthread_mutex_t mutex; } weft_lock_t;
typedef int weft_irq_t;
#define WEFT_SPINLOCKS 8u
extern weft_lock_t weft_posix_locks[WEFT_SPINLOCKS + 1];
#define WEFT_SPINLOCK(n) (&weft_posix_locks[n])
#define WEFT_LOCAL (&weft_posix_locks[WEFT_SPINLOCKS])

uint64_t weft_posix_now(void);
/* Return the clock in ns since 1970. The clock is read once and continued by the monotonic
 * clock; with virtual time it is weft_now64() * 1000. */
int64_t weft_posix_now_ns(void);
unsigned weft_posix_core(void);
void weft_posix_arm(uint32_t t);
void weft_posix_wait(void);
void weft_posix_wake(void);
/* Use virtual time, beginning at `start` us. Must be called before any other function. */
void weft_posix_virtual(uint64_t start);
/* Block the main program until core 1's function has returned. With virtual time the main program
 * counts as waiting during this call. */
void weft_posix_join(void);

WEFT_INLINE uint64_t weft_now64(void) { return weft_posix_now(); }
WEFT_INLINE uint32_t weft_now32(void) { return (uint32_t)weft_posix_now(); }
WEFT_INLINE unsigned weft_core(void) { return weft_posix_core(); }
WEFT_INLINE void weft_wait_init(void) {}
WEFT_INLINE void weft_arm(uint32_t t) { weft_posix_arm(t); }
WEFT_INLINE void weft_wait(void) { weft_posix_wait(); }
WEFT_INLINE void weft_wake(void) { weft_posix_wake(); }
WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) {
  if (l != WEFT_LOCAL) pthread_mutex_lock(&l->mutex);
  return 0;
}
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) {
  (void)irq;
  if (l != WEFT_LOCAL) pthread_mutex_unlock(&l->mutex);
}
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) { (void)weft_lock(l); }
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) { weft_unlock(l, 0); }
int weft_start_core(void (*fn)(void), void *stack, size_t bytes);
WEFT_INLINE int weft_stack_ok(void) { return 1; }
#endif
