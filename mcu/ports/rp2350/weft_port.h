/* The RP2350 with its two Cortex-M33, in a program of the pico-sdk. No RP2350 has run it.
 *
 * The alarms are those of the RP2040 (../rp2040/weft_port.h): alarm 0 for core 0 and alarm 1 for
 * core 1 of TIMER0, enabled in the timer, not in the NVIC, with SEVONPEND set. What differs:
 *
 *  - The timer has another base, and its INTR and INTE are 8 bytes further on.
 *  - The M33 has a write buffer. weft_arm reads the timer's INTR back after clearing it. The read
 *    returns after the write has reached the timer, so the line is down before the NVIC's latch is
 *    cleared.
 *  - A lock is a word (../cortex_m/two_cores.h), not a hardware spin lock, because by erratum
 *    RP2350-E2 writes to other registers of SIO release spin locks. The SDK sets EXTEXCLALL on both
 *    cores, which such locks need.
 *
 * The program must leave alarms 0 and 1 of TIMER0 free.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H
#if !(defined(PICO_RP2350) && PICO_RP2350)
#error "weft_mcu's port rp2350 is for the RP2350: build for a board that has one, as PICO_BOARD=pico2"
#endif
#ifdef __riscv
#error \
    "weft_mcu's port rp2350 is for the Cortex-M33: build for PICO_PLATFORM=rp2350-arm-s, because there is no port for the RISC-V cores yet"
#endif

#define WEFT_CORES 2
#ifndef WEFT_EARLY_US
#define WEFT_EARLY_US 1
#endif
/* The SDK copies this section to SRAM. */
#define WEFT_HOT __attribute__((section(".time_critical.weft_hot")))
#define WEFT_HOT_PART(name) __attribute__((section(".time_critical.weft_hot." #name)))

/* A test puts a fake in the place of the registers (tests/rp2350). */
#ifndef WEFT_FAKE_REGISTERS
#define WEFT_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define WEFT_REG_READ(address) WEFT_REG(address)
#define WEFT_REG_WRITE(address, value) (void)(WEFT_REG(address) = (value))
#include "../cortex_m/two_cores.h"
#include "../rp2040/sdk_handlers.h"
WEFT_INLINE void weft_wait(void) { __asm volatile("wfe" ::: "memory"); }
#endif

enum {
  RP2350_SIO_CPUID = 0xd0000000,
  RP2350_TIMER0 = 0x400b0000,
  RP2350_ALARM0 = RP2350_TIMER0 + 0x10,
  RP2350_TIMERAWH = RP2350_TIMER0 + 0x24,
  RP2350_TIMERAWL = RP2350_TIMER0 + 0x28,
  RP2350_INTR = RP2350_TIMER0 + 0x3c,
  RP2350_INTE = RP2350_TIMER0 + 0x40,
  RP2350_SET = 0x2000, /* writes to this alias of a register set bits */
  RP2350_NVIC_ICPR = 0xe000e280,
  RP2350_SCR = 0xe000ed10,
  RP2350_SEVONPEND = 16,
};
WEFT_INLINE uint32_t weft_now32(void) { return WEFT_REG_READ(RP2350_TIMERAWL); }
WEFT_INLINE uint64_t weft_now64(void) {
  uint32_t high = WEFT_REG_READ(RP2350_TIMERAWH), low, again;
  while (low = WEFT_REG_READ(RP2350_TIMERAWL), again = WEFT_REG_READ(RP2350_TIMERAWH),
         again != high)
    high = again;
  return (uint64_t)high << 32 | low;
}
WEFT_INLINE unsigned weft_core(void) { return WEFT_REG_READ(RP2350_SIO_CPUID); }
WEFT_INLINE void weft_wait_init(void) {
  WEFT_REG_WRITE(RP2350_SCR, WEFT_REG_READ(RP2350_SCR) | RP2350_SEVONPEND);
  WEFT_REG_WRITE(RP2350_INTE + RP2350_SET, 1u << weft_core());
}
WEFT_INLINE void weft_arm(uint32_t t) {
  unsigned core = weft_core();
  uint32_t line = 1u << core;
  if (WEFT_MUTANT != 8) WEFT_REG_WRITE(RP2350_ALARM0 + 4 * core, t);
  WEFT_REG_WRITE(RP2350_INTR, line);
  if (WEFT_MUTANT != 9) (void)WEFT_REG_READ(RP2350_INTR);
  WEFT_REG_WRITE(RP2350_NVIC_ICPR, line);
  if (WEFT_MUTANT == 8) WEFT_REG_WRITE(RP2350_ALARM0 + 4 * core, t); /* mutant: set too late */
}
int weft_start_core(void (*fn)(void), void *stack, size_t bytes);
WEFT_INLINE int weft_stack_ok(void) { return 1; }
/* The stack for core 1 that the SDK's linker script provides, in scratch X. */
extern uint32_t __StackOneBottom, __StackOneTop;
#define WEFT_STACK1 ((void *)&__StackOneBottom)
#define WEFT_STACK1_BYTES ((size_t)((uintptr_t)&__StackOneTop - (uintptr_t)&__StackOneBottom))
#endif
