/* weft_mcu/platform.h: the functions and constants that the runtime requires of a machine.
 *
 * A port is one directory with a `weft_port.h` (found through the include path) that defines
 * everything below as inline functions, and the few lines of start-up code that the machine needs.
 * `ports/template` compiles, and its comments describe what to fill in; README.md has the page
 * "Writing a port". Times are in microseconds.
 *
 *   weft_lock_t          a lock between two cores: a spin lock, a word, a mutex
 *   weft_irq_t           what weft_lock() returns: the interrupt state to restore
 *   WEFT_CORES           how many cores may serve a queue: 1 or 2
 *   WEFT_EARLY_US        how long before a release time a sleeping core is woken; it polls the rest
 *   WEFT_HOT             attribute of functions that belong in the fastest memory
 *   WEFT_HOT_PART(name)  the same, in a section of its own that the linker can leave out; without
 *                        it: WEFT_HOT
 *
 *   uint32_t weft_now32(void)       the clock, low 32 bits. Any context, any core.
 *   uint64_t weft_now64(void)       the clock; it never goes back. Any context, any core.
 *   unsigned weft_core(void)        the number of this core: 0 … WEFT_CORES - 1
 *   void weft_wait_init(void)       once per core, before its first weft_wait
 *   void weft_arm(uint32_t t)       make weft_wait of this core return at t at the latest. A later
 *                                   call replaces an earlier one, whose alarm may still fire until
 *                                   then: see "Writing a port". If t is now or past, nothing is
 *                                   promised: the caller looks at the clock after arming.
 *   void weft_wait(void)            sleep until weft_wake, an interrupt, or the armed time. It may
 *                                   return early, for no reason. Like WFE, it must return
 *                                   at once if weft_wake was called since its last return.
 *   void weft_wake(void)            every core's weft_wait returns, or its next one does. Any
 *                                   context, any core.
 *   weft_irq_t weft_lock(l)         turn interrupts off on this core, then take the lock. Any
 *                                   context. Not recursive.
 *   void weft_unlock(l, irq)        give the lock back and restore the interrupt state
 *   void weft_lock_thread(l)        the same for a caller outside interrupt handlers that runs with
 *   void weft_unlock_thread(l)      interrupts on, the worker; may take two cycles instead of six
 *   weft_lock_t *WEFT_SPINLOCK(n)   the port's locks, n = 0 … WEFT_SPINLOCKS - 1; lta.h takes the
 *                                   last four
 *   weft_lock_t *WEFT_LOCAL         a lock that never waits, for a queue that only one core and its
 *                                   own interrupts use
 *   int weft_start_core(fn, stack, bytes)
 *                                   run fn on core 1, once. 0, or WEFT_E_CORE if there is no core 1
 *                                   or it runs already
 *   WEFT_STACK1, WEFT_STACK1_BYTES  a stack for core 1 that nothing else uses; reactors with
 *                                   enclaves or workers start core 1 on it
 *   void weft_panic(text)           does not return: debug builds report a mistake here (over UART
 *                                   on a board, to stderr on a host). On a Cortex-M it ends with
 *                                   weft_stop_at_panic (ports/cortex_m/panic.h)
 *   int weft_stack_ok(void)         debug builds: whether the guard word at the end of this core's
 *                                   stack is intact
 */
#ifndef WEFT_MCU_PLATFORM_H
#define WEFT_MCU_PLATFORM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return codes; 0 is success. `weft-rp2040 explain CODE` says more of each. In a debug build
 * (-DWEFT_DEBUG=1) the mistakes marked * panic instead. */
enum {
  WEFT_OK = 0,
  WEFT_LATE = 1, /* cancel, re-post: a core has committed to the event's action, or the event was
                    in no queue; nothing has been withdrawn */
  WEFT_IGNORED = 2,    /* WEFT_KEEP: the event was already queued and stays as it was */
  WEFT_FULL = 3,       /* weft_ring_put: there is no room; the message is counted and dropped */
  WEFT_E_QUEUED = -1,  /* * the event is already in the queue */
  WEFT_E_HORIZON = -2, /* * the release time is WEFT_HORIZON us or more from now */
  WEFT_E_ARENA = -3, /* * the event lies outside the memory that its heap can number, or the heap
                        has no room for more events */
  WEFT_E_CORE = -4,  /* * core 1 is started twice or from core 1, or a process is started by a
                        scheduler that did not make it. Without a panic: this chip has no core 1 */
  WEFT_E_DRIVER = -5, /* * a driver is started twice or not yet, or with pins, a speed or a place
                         that it cannot use. Without a panic: the flash is damaged */
};

/* How far ahead an event can be posted: the 2^31 us over which 32-bit times can be compared,
 * less 17 s for events that are late. */
#define WEFT_HORIZON ((1u << 31) - (1u << 24))

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define WEFT_NORETURN __attribute__((noreturn))
#define WEFT_INLINE static inline __attribute__((always_inline))
#else
#error "weft_mcu needs GCC or clang"
#endif
WEFT_NORETURN void weft_panic(const char *what);
/* Compile-time mutants of the two-core protocol and of arming. Tests build each mutant and must see
 * the mutant fail. The value is 0 in every product. */
#ifndef WEFT_MUTANT
#define WEFT_MUTANT 0
#endif
#include "weft_port.h"
#ifndef WEFT_HOT_PART
#define WEFT_HOT_PART(name) WEFT_HOT
#endif
#ifdef __cplusplus
}
#endif

/* WEFT_NEWS is a 32-bit word whose low and high halves are both non-zero. The word is cheap to
 * compute where the lock has just been used. */
#ifndef WEFT_NEWS
#define WEFT_NEWS(lock) ((uint32_t)0x00010001)
#endif
/* Report a mistake of the caller: by a panic in a debug build, by a return code otherwise. */
#if WEFT_DEBUG
#define WEFT_MISTAKE(code, text) (weft_panic("weft: " text), (code))
#else
#define WEFT_MISTAKE(code, text) (code)
#endif

/* Read a word without its lock, as a hint that is confirmed under the lock. */
#define WEFT_PEEK(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WEFT_POKE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

#endif
