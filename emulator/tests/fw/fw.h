/* The registers and start-up code that the emulator's own test images share. The images use no SDK,
 * since they must test the chip and not a library. */
#pragma once
#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SIO 0xd0000000u
#define TIMER 0x40054000u
#define UART0 0x40034000u
#define IO_BANK0 0x40014000u
#define NVIC_ISER REG(0xe000e100)
#define NVIC_ICER REG(0xe000e180)
#define NVIC_ISPR REG(0xe000e200)
#define NVIC_ICPR REG(0xe000e280)
#define SCR REG(0xe000ed10)

extern void (*const vectors[48])(void);

static inline void wfe(void) { __asm volatile("wfe" ::: "memory"); }
static inline void wfi(void) { __asm volatile("wfi" ::: "memory"); }
static inline void sev(void) { __asm volatile("sev" ::: "memory"); }
static inline void mask(void) { __asm volatile("cpsid i" ::: "memory"); }
static inline void unmask(void) { __asm volatile("cpsie i" ::: "memory"); }

/* Ends the run as failed if `holds` is 0. */
static inline void check(int holds) {
  if (!holds)
    __asm volatile("bkpt 2");
}

static inline void pin_out(unsigned n) {
  REG(IO_BANK0 + 8 * n + 4) = 5;
  REG(SIO + 0x24) = 1u << n;
}
static inline void pin_high(unsigned n) { REG(SIO + 0x14) = 1u << n; }
static inline void pin_low(unsigned n) { REG(SIO + 0x18) = 1u << n; }

/* Starts core 1 by the bootrom's handshake (datasheet 2.8.2). */
void start_core1(void (*entry)(void), uint32_t stack);
