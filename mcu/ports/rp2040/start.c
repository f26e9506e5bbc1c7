/* start.c: from reset to main: memory, clocks, the timer's tick.
 *
 * The crystal (12 MHz) drives clk_ref and, through the watchdog's divider, the 1 MHz tick of the
 * timer. The system PLL makes 125 MHz for clk_sys and clk_peri (VCO 1500 MHz = 12 MHz * 125,
 * divided by 6 and 2). The USB PLL stays off.
 */
#include "weft_mcu/platform.h"

extern uint32_t __weft_bss_start, __weft_bss_end, __weft_data_start, __weft_data_end,
    __weft_data_load;
int main(void);
void weft_start(void);

enum {
  SET = 0x2000,
  CLR = 0x3000,
  UNTIL = 0x1000
}; /* SET and CLR are aliases of a register. UNTIL takes the place of an alias that is not used,
    * and means: wait for these bits. */
enum {
  IO_BANK0 = 1u << 5,
  PADS_BANK0 = 1u << 8,
  PLL_SYS = 1u << 12,
  TIMER = 1u << 21,
  CORE1 = 1u << 16
};
/* Each step has 6 bytes: the offset from 0x40000000 in words, and the value in halves, low first. */
#define STEP(address, value)                                     \
  {                                                              \
    (uint16_t)(((address)-0x40000000u) >> 2), (uint16_t)(value), \
        (uint16_t)((uint32_t)(value) >> 16)                      \
  }
static const struct { uint16_t place, low, high; } steps[] = {
  /* Core 1 may still run an earlier program after a soft reset, so it is forced off, then on
   * again into its boot code. */
  STEP(PSM_FRCE_OFF + SET, CORE1),
  STEP(PSM_FRCE_OFF + UNTIL, CORE1),
  STEP(PSM_FRCE_OFF + CLR, CORE1),
  STEP(RESETS_RESET + CLR, IO_BANK0 | PADS_BANK0 | TIMER),
  STEP(RESETS_RESET_DONE + UNTIL, IO_BANK0 | PADS_BANK0 | TIMER),
  STEP(XOSC_CTRL, 0xaa0),   /* 1-15 MHz */
  STEP(XOSC_CTRL + SET, 0xfabu << 12), /* the crystal on; its start-up time is 4 ms out of reset */
  STEP(XOSC_STATUS + UNTIL, 1u << 31),
  /* clk_sys must not use the PLL while the PLL is set up, but after a soft reset it still might. */
  STEP(CLK_SYS_CTRL + CLR, 1),
  STEP(CLK_SYS_SELECTED + UNTIL, 1),
  STEP(CLK_REF_CTRL, 2),    /* clk_ref runs from the crystal */
  STEP(CLK_REF_SELECTED + UNTIL, 4),
  STEP(RESETS_RESET + SET, PLL_SYS),
  STEP(RESETS_RESET + CLR, PLL_SYS),
  STEP(RESETS_RESET_DONE + UNTIL, PLL_SYS),
  STEP(PLL_SYS_CS, 1),
  STEP(PLL_SYS_FBDIV_INT, 125),
  STEP(PLL_SYS_PWR + CLR, 0x21), /* power and VCO on */
  STEP(PLL_SYS_CS + UNTIL, 1u << 31),
  STEP(PLL_SYS_PRIM, 6u << 16 | 2u << 12),
  STEP(PLL_SYS_PWR + CLR, 8),    /* post-dividers on */
  STEP(CLK_SYS_CTRL, 0),    /* auxiliary source: the system PLL */
  STEP(CLK_SYS_CTRL + SET, 1),
  STEP(CLK_SYS_SELECTED + UNTIL, 2),
  STEP(CLK_PERI_CTRL, 1u << 11), /* clk_peri runs from clk_sys */
};

/* The function is in flash and uses neither data nor bss, since it runs before these sections
 * exist. */
static void clocks(void) {
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
    uint32_t address = 0x40000000u + 4u * steps[i].place,
             value = steps[i].low | (uint32_t)steps[i].high << 16;
    if ((address & CLR) == UNTIL)
      while (value & ~WEFT_REG(address - UNTIL)) {}
    else WEFT_REG(address) = value;
  }
  WEFT_REG(WATCHDOG_TICK) = 12 | 1u << 9;
}

void weft_start(void) {
  for (uint32_t *p = &__weft_data_start, *from = &__weft_data_load;
       p != &__weft_data_end && p != from;)
    *p++ = *from++;
  for (uint32_t *p = &__weft_bss_start; p != &__weft_bss_end;) *p++ = 0;
#if WEFT_DEBUG
  __weft_stack0_end = WEFT_STACK_GUARD;
#endif
  clocks();
  main();
  for (;;) __asm volatile("bkpt 0"); /* main has returned. */
}
