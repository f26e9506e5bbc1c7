/* rp2350_regs.h: the registers that the drivers use, named as in the RP2040's datasheet
 * (ports/rp2040/rp2040_regs.h), at the addresses of the RP2350. */
#ifndef WEFT_RP2350_REGS_H
#define WEFT_RP2350_REGS_H
#include "weft_mcu/platform.h"
#ifndef WEFT_REG
#define WEFT_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#endif
#define WEFT_REG_SET(address) WEFT_REG((address) + 0x2000u) /* writes set bits */
#define WEFT_REG_CLR(address) WEFT_REG((address) + 0x3000u) /* writes clear bits */

enum {
  SIO_GPIO_IN = 0xd0000004,
  SIO_GPIO_OUT_SET = 0xd0000018,
  SIO_GPIO_OUT_CLR = 0xd0000020,
  SIO_GPIO_OUT_XOR = 0xd0000028,
  SIO_GPIO_OE_SET = 0xd0000038,
  PPB_NVIC_ISER = 0xe000e100,
  RESETS_RESET = 0x40020000,
  RESETS_RESET_DONE = 0x40020008,
  PLL_USB_CS = 0x40058000,
  PLL_USB_PWR = 0x40058004,
  PLL_USB_FBDIV_INT = 0x40058008,
  PLL_USB_PRIM = 0x4005800c,
  CLK_ADC_CTRL = 0x4001006c,
  IO_BANK0_GPIO0_CTRL = 0x40028004,
  IO_BANK0_INTR0 = 0x40028230,
  IO_BANK0_PROC0_INTE0 = 0x40028248,
  PADS_BANK0_GPIO0 = 0x40038004,
  ADC_CS = 0x400a0000,
  ADC_FCS = 0x400a0008,
  ADC_FIFO = 0x400a000c,
  ADC_DIV = 0x400a0010,
  DMA_CH0_READ_ADDR = 0x50000000,
  DMA_INTE0 = 0x50000404,
  DMA_INTS0 = 0x5000040c,
  DMA_CHAN_ABORT = 0x50000464,
  PWM_CH0_CSR = 0x400a8000,
  PWM_INTR = 0x400a80f4,
  PWM_INTE = 0x400a80f8,
  PWM_INTS = 0x400a8100,
  SPI0_SSPCR0 = 0x40080000,
  I2C0_IC_CON = 0x40090000,
  PIO0_CTRL = 0x50200000,
  UART0_DR = 0x40070000,
};
#endif
