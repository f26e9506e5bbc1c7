/* start.c: from reset to main: memory, clocks, the timer's tick.
 *
 * The crystal (12 MHz) drives clk_ref and, through the watchdog's divider, the 1 MHz tick of the timer; the system PLL makes
 * 125 MHz for clk_sys and clk_peri (VCO 1500 MHz = 12 MHz * 125, divided by 6 and 2). The USB PLL stays off.
 */
#include "weft_mcu/platform.h"

extern uint32_t __weft_bss_start, __weft_bss_end, __weft_data_start, __weft_data_end, __weft_data_load;
int main(void);
void weft_start(void);

static void clocks(void) {
  enum { IO_BANK0 = 1u << 5, PADS_BANK0 = 1u << 8, PLL_SYS = 1u << 12, TIMER = 1u << 21 };
  WEFT_REG_CLR(RESETS_RESET) = IO_BANK0 | PADS_BANK0 | TIMER;
  while (~WEFT_REG(RESETS_RESET_DONE) & (IO_BANK0 | PADS_BANK0 | TIMER)) {}

  WEFT_REG(XOSC_CTRL) = 0xaa0; /* 1-15 MHz */
  WEFT_REG(XOSC_STARTUP) = 47; /* 1 ms: 12,000 / 256 */
  WEFT_REG_SET(XOSC_CTRL) = 0xfabu << 12;
  while (!(WEFT_REG(XOSC_STATUS) & 1u << 31)) {}

  /* clk_sys must not run from the PLL while that is set up: after a soft reset it may. */
  WEFT_REG_CLR(CLK_SYS_CTRL) = 1;
  while (WEFT_REG(CLK_SYS_SELECTED) != 1) {}
  WEFT_REG(CLK_REF_CTRL) = 2; /* the crystal */
  while (WEFT_REG(CLK_REF_SELECTED) != 4) {}

  WEFT_REG_SET(RESETS_RESET) = PLL_SYS;
  WEFT_REG_CLR(RESETS_RESET) = PLL_SYS;
  while (!(WEFT_REG(RESETS_RESET_DONE) & PLL_SYS)) {}
  WEFT_REG(PLL_SYS_CS) = 1;
  WEFT_REG(PLL_SYS_FBDIV_INT) = 125;
  WEFT_REG_CLR(PLL_SYS_PWR) = 0x21; /* power, VCO */
  while (!(WEFT_REG(PLL_SYS_CS) & 1u << 31)) {}
  WEFT_REG(PLL_SYS_PRIM) = 6u << 16 | 2u << 12;
  WEFT_REG_CLR(PLL_SYS_PWR) = 8; /* post-dividers */

  WEFT_REG(CLK_SYS_CTRL) = 0; /* auxiliary source: the system PLL */
  WEFT_REG_SET(CLK_SYS_CTRL) = 1;
  while (WEFT_REG(CLK_SYS_SELECTED) != 2) {}
  WEFT_REG(CLK_PERI_CTRL) = 1u << 11; /* from clk_sys */
  WEFT_REG(WATCHDOG_TICK) = 12 | 1u << 9;
}

void weft_start(void) {
  /* Core 1 may still run what was here before a soft reset: force it off, and on again into its boot code. */
  WEFT_REG_SET(PSM_FRCE_OFF) = 1u << 16;
  while (!(WEFT_REG(PSM_FRCE_OFF) & 1u << 16)) {}
  WEFT_REG_CLR(PSM_FRCE_OFF) = 1u << 16;
  for (uint32_t *p = &__weft_data_start, *from = &__weft_data_load; p != &__weft_data_end && p != from;) *p++ = *from++;
  for (uint32_t *p = &__weft_bss_start; p != &__weft_bss_end;) *p++ = 0;
#if WEFT_DEBUG
  __weft_stack0_end = WEFT_STACK_GUARD;
#endif
  clocks();
  main();
  for (;;) __asm volatile("bkpt 0"); /* main has returned */
}
