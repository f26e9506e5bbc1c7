/* start.c: from reset to main: memory, clocks, the timer's tick.
 *
 * The crystal (12 MHz) drives clk_ref and, through the watchdog's divider, the 1 MHz tick of the timer; the system PLL makes
 * 125 MHz for clk_sys and clk_peri (VCO 1500 MHz = 12 MHz * 125, divided by 6 and 2). The USB PLL stays off.
 */
#include "weft_mcu/platform.h"

extern uint32_t __weft_bss_start, __weft_bss_end, __weft_data_start, __weft_data_end, __weft_data_load;
int main(void);
void weft_start(void);

enum { SET = 0x2000, CLR = 0x3000, UNTIL = 1 }; /* aliases of a register; UNTIL (addresses are even): wait for these bits */
enum { IO_BANK0 = 1u << 5, PADS_BANK0 = 1u << 8, PLL_SYS = 1u << 12, TIMER = 1u << 21, CORE1 = 1u << 16 };
static const struct { uint32_t address, value; } steps[] = {
  /* Core 1 may still run what was here before a soft reset: force it off, and on again into its boot code. */
  {PSM_FRCE_OFF + SET, CORE1},
  {PSM_FRCE_OFF + UNTIL, CORE1},
  {PSM_FRCE_OFF + CLR, CORE1},
  {RESETS_RESET + CLR, IO_BANK0 | PADS_BANK0 | TIMER},
  {RESETS_RESET_DONE + UNTIL, IO_BANK0 | PADS_BANK0 | TIMER},
  {XOSC_CTRL, 0xaa0},   /* 1-15 MHz */
  {XOSC_CTRL + SET, 0xfabu << 12}, /* on; its start-up time is 4 ms out of reset */
  {XOSC_STATUS + UNTIL, 1u << 31},
  /* clk_sys must not run from the PLL while that is set up: after a soft reset it may. */
  {CLK_SYS_CTRL + CLR, 1},
  {CLK_SYS_SELECTED + UNTIL, 1},
  {CLK_REF_CTRL, 2},    /* the crystal */
  {CLK_REF_SELECTED + UNTIL, 4},
  {RESETS_RESET + SET, PLL_SYS},
  {RESETS_RESET + CLR, PLL_SYS},
  {RESETS_RESET_DONE + UNTIL, PLL_SYS},
  {PLL_SYS_CS, 1},
  {PLL_SYS_FBDIV_INT, 125},
  {PLL_SYS_PWR + CLR, 0x21}, /* power, VCO */
  {PLL_SYS_CS + UNTIL, 1u << 31},
  {PLL_SYS_PRIM, 6u << 16 | 2u << 12},
  {PLL_SYS_PWR + CLR, 8},    /* post-dividers */
  {CLK_SYS_CTRL, 0},    /* auxiliary source: the system PLL */
  {CLK_SYS_CTRL + SET, 1},
  {CLK_SYS_SELECTED + UNTIL, 2},
  {CLK_PERI_CTRL, 1u << 11}, /* from clk_sys */
  {WATCHDOG_TICK, 12 | 1u << 9},
};

/* In flash and without data or bss: it runs before they exist. */
static void clocks(void) {
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
    uint32_t address = steps[i].address, value = steps[i].value;
    if (address & UNTIL)
      while (value & ~WEFT_REG(address - UNTIL)) {}
    else WEFT_REG(address) = value;
  }
}

void weft_start(void) {
  for (uint32_t *p = &__weft_data_start, *from = &__weft_data_load; p != &__weft_data_end && p != from;) *p++ = *from++;
  for (uint32_t *p = &__weft_bss_start; p != &__weft_bss_end;) *p++ = 0;
#if WEFT_DEBUG
  __weft_stack0_end = WEFT_STACK_GUARD;
#endif
  clocks();
  main();
  for (;;) __asm volatile("bkpt 0"); /* main has returned */
}
