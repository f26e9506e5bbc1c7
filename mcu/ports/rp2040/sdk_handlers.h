/* sdk_handlers.h: the names of interrupt handlers in a program of the pico-sdk, for the RP2040 and
 * the RP2350. A handler that a program defines as weft_isr_NAME is then the SDK's handler of that
 * interrupt. So one source serves with and without the SDK. A program that calls
 * irq_set_exclusive_handler for an interrupt must not define that interrupt's weft_isr_NAME. */
#ifndef WEFT_RP2040_SDK_HANDLERS_H
#define WEFT_RP2040_SDK_HANDLERS_H
#if __has_include("hardware/regs/intctrl.h")
#include "hardware/regs/intctrl.h"
#endif
#if defined(PICO_RP2350) && PICO_RP2350
#define weft_isr_pwm isr_pwm_wrap_0
#else
#define weft_isr_pwm isr_pwm_wrap
#endif
#define weft_isr_pio0_0 isr_pio0_0
#define weft_isr_pio0_1 isr_pio0_1
#define weft_isr_pio1_0 isr_pio1_0
#define weft_isr_pio1_1 isr_pio1_1
#define weft_isr_dma0 isr_dma_0
#define weft_isr_dma1 isr_dma_1
#define weft_isr_io_bank0 isr_io_bank0
#define weft_isr_spi0 isr_spi0
#define weft_isr_spi1 isr_spi1
#define weft_isr_uart0 isr_uart0
#define weft_isr_uart1 isr_uart1
#define weft_isr_adc isr_adc_fifo
#define weft_isr_i2c0 isr_i2c0
#define weft_isr_i2c1 isr_i2c1
#endif
