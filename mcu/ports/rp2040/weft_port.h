/* The RP2040 through its registers: two Cortex-M0+, the 1 MHz timer, hardware spin locks, the event
 * register.
 *
 * Each core sleeps in WFE. Its alarm (0 for core 0, 1 for core 1) is enabled in the timer but not
 * in the NVIC, and SEVONPEND is set: when the alarm's line becomes pending, the core receives an
 * event and no handler runs. A line that is already pending gives no second event. Therefore
 * weft_arm clears the line after it has set the alarm, because the old alarm may fire until then.
 * If the new alarm fires in between and is cleared, its time has come; the caller notices this,
 * because the caller looks at the clock after arming (the timer fires on equality only).
 *
 * Ordering: the M0+ has no write buffer and performs accesses in program order, so a lock needs
 * nothing more than a compiler barrier here.
 *
 * With the pico-sdk define WEFT_PICO_SDK. Alarms 0 and 1 must be free (the SDK's default pool uses
 * 3), and the program must own the spin locks that it chooses by WEFT_SPINLOCK(n).
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#if (defined(PICO_RP2350) && PICO_RP2350) || (defined(__ARM_ARCH) && __ARM_ARCH > 6) || defined(__riscv)
#error \
    "weft_mcu's port rp2040 is for the RP2040: the timer and the locks of the RP2350 are at other addresses. Build for PICO_BOARD=pico, or take the port rp2350, for programs of the pico-sdk (mcu/ports/rp2350)"
#endif
#include "rp2040_regs.h"
#ifdef WEFT_PICO_SDK
#include "sdk_handlers.h"
#endif

#define WEFT_CORES 2
#ifndef WEFT_EARLY_US
#define WEFT_EARLY_US 1
#endif
#ifdef WEFT_PICO_SDK
/* The SDK copies this section to SRAM. */
#define WEFT_HOT __attribute__((section(".time_critical.weft_hot")))
#define WEFT_HOT_PART(name) __attribute__((section(".time_critical.weft_hot." #name)))
#else
#define WEFT_HOT __attribute__((section(".weft_hot")))
#define WEFT_HOT_PART(name) __attribute__((section(".weft_hot." #name)))
#endif

/* What a core does while it waits (POWER.md). 0: WFE, and every clock of the chip runs. 1: WFE with
 * SLEEPDEEP; while both cores wait, only the blocks that weft_sleep_keep has named have clocks. */
#ifndef WEFT_SLEEP
#define WEFT_SLEEP 0
#endif

typedef volatile uint32_t weft_lock_t;
typedef uint32_t weft_irq_t;
#define WEFT_SPINLOCKS 32
#define WEFT_SPINLOCK(n) \
  ((weft_lock_t *)(uintptr_t)((uint32_t)SIO_SPINLOCK0 + 4u * (n))) /* n: 0 … 31 */
/* An ordinary word that is never zero. This lock is the second word of an aligned pair, so the low
 * half of its address is not zero either (WEFT_NEWS). */
extern struct weft_local { uint32_t unused; weft_lock_t lock; } weft_local;
#define WEFT_LOCAL (&weft_local.lock)

/* The address of a lock has two non-zero halves: 0xd000 and 0x0100 … 0x017c for a spin lock, 0x20xx
 * and a multiple of 8, plus 4, for the local lock. */
#define WEFT_NEWS(lock) ((uint32_t)(uintptr_t)(lock))

#define WEFT_BARRIER() __asm volatile("" ::: "memory")

WEFT_INLINE uint32_t weft_now32(void) { return WEFT_REG(TIMER_TIMERAWL); }
WEFT_INLINE uint64_t weft_now64(void) {
  uint32_t high = WEFT_REG(TIMER_TIMERAWH), low, again;
  while (low = WEFT_REG(TIMER_TIMERAWL), again = WEFT_REG(TIMER_TIMERAWH), again != high)
    high = again;
  return (uint64_t)high << 32 | low;
}
WEFT_INLINE unsigned weft_core(void) { return WEFT_REG(SIO_CPUID); }
WEFT_INLINE void weft_wake(void) { __asm volatile("sev" ::: "memory"); }
WEFT_INLINE void weft_wait(void) { __asm volatile("wfe" ::: "memory"); }
WEFT_INLINE void weft_wait_init(void) {
  WEFT_REG(PPB_SCR) = 16 | (WEFT_SLEEP ? 4 : 0); /* SEVONPEND, SLEEPDEEP */
  WEFT_REG_SET(TIMER_INTE) = 1u << weft_core();
}
#if WEFT_SLEEP
/* Chooses the blocks that have clocks while both cores sleep, as bits of SLEEP_EN0 and SLEEP_EN1
 * (RP2040 datasheet 2.15.7). The timer and the watchdog, which ticks the timer, always have theirs;
 * so have the pins, for their interrupts. Without this call every block has its clock. */
WEFT_INLINE void weft_sleep_keep(uint32_t blocks0, uint32_t blocks1) {
  WEFT_REG(CLK_SLEEP_EN0) = blocks0 | 1u << 8 | 1u << 11; /* IO, PADS */
  WEFT_REG(CLK_SLEEP_EN1) = blocks1 | 1u << 5 | 1u << 12; /* TIMER, WATCHDOG */
}
#endif
WEFT_INLINE void weft_arm(uint32_t t) {
  unsigned core = weft_core();
  uint32_t line = 1u << core;
  if (WEFT_MUTANT != 8) WEFT_REG(TIMER_ALARM0 + 4 * core) = t;
  WEFT_REG(TIMER_INTR) = line;     /* first the timer's latch, which holds the line up … */
  WEFT_REG(PPB_NVIC_ICPR) = line; /* … then the NVIC's latch, which a raised line would set again */
  if (WEFT_MUTANT == 8)
    WEFT_REG(TIMER_ALARM0 + 4 * core) =
        t; /* mutant: an old alarm leaves the line up, so the new one makes no edge */
}

WEFT_INLINE weft_irq_t weft_lock(weft_lock_t *l) {
  weft_irq_t irq;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=h"(irq)::"memory");
  while (!*l) {}
  WEFT_BARRIER();
  return irq;
}
WEFT_INLINE void weft_unlock(weft_lock_t *l, weft_irq_t irq) {
  WEFT_BARRIER();
  *l =
      (uint32_t)(uintptr_t)l; /* Any value gives a spin lock back; a local lock must not become
                               * 0. */
  __asm volatile("msr primask, %0" ::"h"(irq) : "memory");
}
WEFT_INLINE void weft_lock_thread(weft_lock_t *l) {
  __asm volatile("cpsid i" ::: "memory");
  while (!*l) {}
  WEFT_BARRIER();
}
WEFT_INLINE void weft_unlock_thread(weft_lock_t *l) {
  WEFT_BARRIER();
  *l = (uint32_t)(uintptr_t)l;
  __asm volatile("cpsie i" ::: "memory");
}

/* For data of this core and its interrupts alone: two instructions less than the local lock. */
#define WEFT_IRQ_OFF() weft_irq_off()
#define WEFT_IRQ_ON(irq) __asm volatile("msr primask, %0" ::"r"(irq) : "memory")
WEFT_INLINE weft_irq_t weft_irq_off(void) {
  weft_irq_t irq;
  __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(irq)::"memory");
  return irq;
}

/* The search of the sorted list (src/list_queue.c) from `at` on takes 11 cycles for each entry
 * passed; GCC's code would take 14 cycles. next->time is at offset 4. */
#define WEFT_SEARCH_RING(head, time, at, next, end)                         \
  do {                                                                      \
    uint32_t weft_distance;                                                 \
    __asm goto("1: ldr %[n], [%[a]]\n\tcmp %[n], %[h]\n\tbeq %l[" #end      \
               "]\n\t"                                                      \
               "ldr %[d], [%[n], #4]\n\tsub %[d], %[d], %[t]\n\tbpl 2f\n\t" \
               "mov %[a], %[n]\n\tb 1b\n"                                   \
               "2: bne %l[" #end "]"                                        \
               : [a] "+&l"(at), [n] "=&l"(next), [d] "=&l"(weft_distance)   \
               : [h] "l"(head), [t] "l"(time)                               \
               : "cc", "memory"                                             \
               : end);                                                      \
  } while (0)

/* The body of weft_flight_note (src/flight.c), a naked function, with `lanes` for its variable of
 * that name. With its call this takes 40 cycles, apart from reading the timer; GCC's code for the
 * same takes 50. */
#define WEFT_FLIGHT_NOTE(lanes)                                                                  \
  __asm("push {r4, r5}\n\tmov r4, #0xd0\n\tlsl r4, r4, #24\n\tldr r4, [r4]\n\tldr r5, 1f\n\t" \
        "lsl r4, r4, #4\n\tadd r4, r5\n\tldr r3, [r4, #4]\n\tldr r5, [r4]\n\tand r5, r3\n\t"    \
        "ldr r3, [r4, #8]\n\tadd r5, r3\n\tldr r3, 2f\n\tldr r3, [r3]\n\t"                    \
        "stmia r5!, {r0-r3}\n\tldr r5, [r4]\n\tadd r5, #16\n\tstr r5, [r4]\n\t"               \
        "pop {r4, r5}\n\tbx lr\n\t.align 2\n1: .word " #lanes "\n2: .word 0x40054028")

/* The loops of the heap (heap_queue.c) are also in assembly for speed: they need all low registers,
 * without a move between registers. These loops are not used without optimisation, because one low
 * register is then the frame pointer. */
#ifdef __OPTIMIZE__
#define WEFT_HEAP_SINK(one, times, hole, end, tie)                                                 \
  do {                                                                                             \
    register uint32_t weft_a __asm("r4"), weft_b __asm("r5"), weft_x, weft_y, weft_child;          \
    __asm goto(                                                                                    \
        "b 2f\n"                                                                                   \
        "1: add %[x], %[o], %[c]\n\tldm %[x]!, {r4, r5}\n\tlsr %[y], r4, #14\n\tlsr %[x], r5, #14\n\t" \
        "ldr %[y], [%[t], %[y]]\n\tldr %[x], [%[t], %[x]]\n\tsub %[y], %[y], %[x]\n\tbpl 3f\n\t"   \
        "str r4, [%[o], %[h]]\n\tmov %[h], %[c]\n"                                                 \
        "2: add %[c], %[h], %[h]\n\tcmp %[c], %[e]\n\tblo 1b\n\tb 4f\n"                            \
        "3: beq %l[" #tie                                                                          \
        "]\n\tadd %[c], #4\n\tstr r5, [%[o], %[h]]\n\tmov %[h], %[c]\n\t"                          \
        "add %[c], %[c]\n\tcmp %[c], %[e]\n\tblo 1b\n4:"                                           \
        : [h] "+&l"(hole), "=&l"(weft_a),                                                          \
          "=&l"(weft_b), [x] "=&l"(weft_x), [y] "=&l"(weft_y), [c] "=&l"(weft_child)               \
        : [o] "l"(one), [t] "l"(times), [e] "h"(end)                                               \
        : "cc", "memory"                                                                           \
        : tie);                                                                                    \
  } while (0)
/* The entry is kept in lr, which is free; freeing another register costs four cycles more. */
#define WEFT_HEAP_CLIMB(one, base, hole, time, entry, tie)                                         \
  do {                                                                                             \
    __label__ weft_tied;                                                                           \
    register uint32_t weft_kept __asm("lr") = (entry);                                             \
    uint32_t weft_above, weft_up, weft_e, weft_x, weft_m;                                          \
    __asm goto(                                                                                    \
        "lsr %[a], %[h], #5\n\tlsl %[a], #2\n\tbeq 4f\n"                                           \
        "1: ldr %[u], [%[o], %[a]]\n\tlsr %[e], %[u], #14\n\tadd %[e], %[e], %[b]\n\t"             \
        "ldr %[x], [%[e], #4]\n\tcmp %[t], %[x]\n\tbpl 4f\n\t"                                     \
        "lsr %[m], %[h], #3\n\tlsl %[m], #2\n\tldr %[x], [%[o], %[m]]\n\tstr %[x], [%[o], %[h]]\n\t" \
        "lsr %[x], #14\n\tstrh %[h], [%[b], %[x]]\n\t"                                             \
        "lsr %[h], %[m], #3\n\tlsl %[h], #2\n\tldr %[x], [%[o], %[h]]\n\tstr %[x], [%[o], %[m]]\n\t" \
        "lsr %[x], #14\n\tstrh %[m], [%[b], %[x]]\n\t"                                             \
        "str %[u], [%[o], %[h]]\n\tstrh %[h], [%[e]]\n\tmov %[h], %[a]\n\t"                        \
        "lsr %[a], %[h], #5\n\tlsl %[a], #2\n\tbne 1b\n\tb 4f\n"                                   \
        "3: str %[u], [%[o], %[h]]\n\tstrh %[h], [%[e]]\n\tmov %[h], %[a]\n"                       \
        "4: lsr %[a], %[h], #3\n\tlsl %[a], #2\n\tbeq 5f\n\t"                                      \
        "ldr %[u], [%[o], %[a]]\n\tlsr %[e], %[u], #14\n\tadd %[e], %[e], %[b]\n\t"                \
        "ldr %[x], [%[e], #4]\n\tcmp %[t], %[x]\n\tbmi 3b\n\tbeq %l[weft_tied]\n5:"                \
        : [h] "+&l"(hole), [a] "=&l"(weft_above), [u] "=&l"(weft_up), [e] "=&l"(weft_e),           \
          [x] "=&l"(weft_x), [m] "=&l"(weft_m), "+r"(weft_kept)                                    \
        : [o] "l"(one), [b] "l"(base), [t] "h"(time)                                               \
        : "cc", "memory"                                                                           \
        : weft_tied);                                                                              \
    (entry) = weft_kept;                                                                           \
    break;                                                                                         \
  weft_tied:                                                                                       \
    (entry) = weft_kept;                                                                           \
    goto tie;                                                                                      \
  } while (0)
#endif

int weft_start_core(void (*fn)(void), void *stack, size_t bytes);
#ifdef WEFT_PICO_SDK
WEFT_INLINE int weft_stack_ok(void) { return 1; }
/* The stack for core 1 that the SDK's linker script provides, in scratch X. */
extern uint32_t __StackOneBottom, __StackOneTop;
#define WEFT_STACK1 ((void *)&__StackOneBottom)
#define WEFT_STACK1_BYTES ((size_t)((uintptr_t)&__StackOneTop - (uintptr_t)&__StackOneBottom))
#else
/* The last word of each core's stack (scratch Y: core 0, scratch X: core 1) holds a guard value
 * from the start. */
extern uint32_t __weft_stack0_end, __weft_stack1_end;
enum { WEFT_STACK_GUARD = 0x57454654 };
WEFT_INLINE int weft_stack_ok(void) {
  return (weft_core() ? __weft_stack1_end : __weft_stack0_end) == WEFT_STACK_GUARD;
}
/* The part of the 256 KB that the linker script leaves free behind the program. If lta.c is linked,
 * it takes memory from this part. */
extern uint8_t __weft_free_begin, __weft_free_end;
#define WEFT_FREE_BEGIN (&__weft_free_begin)
#define WEFT_FREE_END (&__weft_free_end)
/* The stack of core 1 in scratch X, for weft_start_core(fn, WEFT_STACK1, WEFT_STACK1_BYTES). */
#define WEFT_STACK1 ((void *)&__weft_stack1_end)
#define WEFT_STACK1_BYTES 4096u
#endif
#endif
