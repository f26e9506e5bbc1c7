/* chip.h: what the drivers (mcu/DRIVERS.md) must know of the RP2350. The file of this name in
 * ports/rp2040 has the same names, with comments. The numbers are those of the RP2350's datasheet;
 * tests/rp2350/drivers.cpp compares them with the headers of the pico-sdk. */
#ifndef WEFT_CHIP_H
#define WEFT_CHIP_H
#include "rp2350_regs.h"

enum {
  CHIP_HZ = 150000000,
  CHIP_BLOCK = 0x8000,
  CHIP_RESET_ADC = 0,
  CHIP_RESET_DMA = 2,
  CHIP_RESET_I2C = 4,
  CHIP_RESET_PIO = 11,
  CHIP_RESET_PLL_USB = 15,
  CHIP_RESET_PWM = 16,
  CHIP_RESET_SPI = 18,
  CHIP_RESET_UART = 26,
  CHIP_IRQ_PWM = 8,
  CHIP_IRQ_PIO = 15,
  CHIP_IRQ_DMA = 10,
  CHIP_IRQ_PINS = 21,
  CHIP_IRQ_SPI = 31,
  CHIP_IRQ_UART = 33,
  CHIP_IRQ_I2C = 36,
  CHIP_PINS_STATUS = 0x30,
  CHIP_PINS_CORE = 0x48,
  CHIP_PIO_INTE = 0x170,
  CHIP_DMA_ADC = 48,
  CHIP_DMA_REQUEST = 17,
  CHIP_DMA_NEXT = 13,
  CHIP_DMA_RING_WRITES = 1 << 12,
  CHIP_DMA_RING = 8,
  CHIP_DMA_RISING_WRITES = 1 << 6,
  CHIP_WATCHDOG = 0x400d8000,
  CHIP_WATCHDOG_STEPS = 1,
  CHIP_PSM_WDSEL = 0x40018008,
  CHIP_WDSEL_ALL = 0x1fffff3,
};

WEFT_INLINE void chip_interrupt_on(unsigned irq) {
  WEFT_REG(PPB_NVIC_ISER + 4 * (irq / 32)) = 1u << irq % 32;
}
/* After a reset the RP2350 isolates the pads, and their inputs are off. */
WEFT_INLINE void chip_pin(unsigned pin, unsigned function) {
  WEFT_REG_SET(PADS_BANK0_GPIO0 + 4 * pin) = 1u << 6; /* the input is on */
  WEFT_REG_CLR(PADS_BANK0_GPIO0 + 4 * pin) = 1u << 7; /* the output is not disabled */
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * pin) = function;
  WEFT_REG_CLR(PADS_BANK0_GPIO0 + 4 * pin) = 1u << 8; /* no isolation */
}
WEFT_INLINE void chip_leave_reset(uint32_t blocks) {
  WEFT_REG_CLR(RESETS_RESET) = blocks;
  while (blocks & ~WEFT_REG(RESETS_RESET_DONE)) {}
}
#endif
