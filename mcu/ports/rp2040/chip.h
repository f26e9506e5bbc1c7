/* chip.h: what the drivers (mcu/DRIVERS.md) must know of the RP2040 beside the addresses of
 * rp2040_regs.h. The file of this name in ports/rp2350 has the same names. */
#ifndef WEFT_CHIP_H
#define WEFT_CHIP_H
#include "weft_mcu/platform.h"

enum {
  CHIP_HZ = 125000000, /* of clk_sys and clk_peri */
  CHIP_BLOCK = 0x4000, /* from UART 0 to UART 1; the same for SPI and I2C */
  /* Bits of RESETS. UART 1, SPI 1, I2C 1 and PIO 1 have the next bit. */
  CHIP_RESET_ADC = 0,
  CHIP_RESET_DMA = 2,
  CHIP_RESET_I2C = 3,
  CHIP_RESET_PIO = 10,
  CHIP_RESET_PLL_USB = 13,
  CHIP_RESET_PWM = 14,
  CHIP_RESET_SPI = 16,
  CHIP_RESET_UART = 22,
  /* Interrupts. UART 1, SPI 1 and I2C 1 have the next number, PIO 1 the number after that. */
  CHIP_IRQ_PWM = 4,
  CHIP_IRQ_PIO = 7,
  CHIP_IRQ_DMA = 11,
  CHIP_IRQ_PINS = 13,
  CHIP_IRQ_SPI = 18,
  CHIP_IRQ_UART = 20,
  CHIP_IRQ_I2C = 23,
  /* Offsets of registers: from INTE of the pins to INTS, and to INTE of core 1; INTE of a PIO. */
  CHIP_PINS_STATUS = 0x20,
  CHIP_PINS_CORE = 0x30,
  CHIP_PIO_INTE = 0x12c,
  /* The control word of a DMA channel: the first bit of a field, or the bit. */
  CHIP_DMA_ADC = 36, /* the request of the ADC */
  CHIP_DMA_REQUEST = 15,
  CHIP_DMA_NEXT = 11,
  CHIP_DMA_RING_WRITES = 1 << 10,
  CHIP_DMA_RING = 6,
  CHIP_DMA_RISING_WRITES = 1 << 5,
  /* The watchdog: its counter's steps a microsecond (erratum RP2040-E1), and the bits of everything
   * but the two oscillators. */
  CHIP_WATCHDOG = 0x40058000,
  CHIP_WATCHDOG_STEPS = 2,
  CHIP_PSM_WDSEL = 0x40010008,
  CHIP_WDSEL_ALL = 0x1fffc,
};

WEFT_INLINE void chip_interrupt_on(unsigned irq) { WEFT_REG(PPB_NVIC_ISER) = 1u << irq; }
/* Gives the pin to a function of the table in the datasheet (2.19.2). */
WEFT_INLINE void chip_pin(unsigned pin, unsigned function) {
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * pin) = function;
}
WEFT_INLINE void chip_leave_reset(uint32_t blocks) {
  WEFT_REG_CLR(RESETS_RESET) = blocks;
  while (blocks & ~WEFT_REG(RESETS_RESET_DONE)) {}
}
#endif
