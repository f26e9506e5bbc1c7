/* board.h: pins and, for firmware without an SDK, the UART. The runtime does not need this file. */
#ifndef WEFT_RP2040_BOARD_H
#define WEFT_RP2040_BOARD_H
#include "chip.h"
#ifdef __cplusplus
extern "C" {
#endif

WEFT_INLINE void pin_out(unsigned pin) {
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * pin) = 5; /* SIO */
  WEFT_REG(SIO_GPIO_OE_SET) = 1u << pin;
}
WEFT_INLINE void pin_in_pull_up(unsigned pin) {
  WEFT_REG(PADS_BANK0_GPIO0 + 4 * pin) = 0x5a; /* input enabled, Schmitt trigger, pull-up, 4 mA */
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * pin) = 5;
}
WEFT_INLINE void pin_high(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_SET) = 1u << pin; }
WEFT_INLINE void pin_low(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_CLR) = 1u << pin; }
WEFT_INLINE void pin_toggle(unsigned pin) { WEFT_REG(SIO_GPIO_OUT_XOR) = 1u << pin; }
WEFT_INLINE bool pin_read(unsigned pin) { return WEFT_REG(SIO_GPIO_IN) >> pin & 1; }
/* Make both edges of a pin raise IO_IRQ_BANK0 on core 0 (weft_isr_io_bank0). */
WEFT_INLINE void pin_irq_both_edges(unsigned pin) {
  WEFT_REG(IO_BANK0_INTR0 + 4 * (pin / 8)) = 12u
                                             /* Clear the edges that came before this call. */
                                             << 4 * (pin % 8);
  WEFT_REG_SET(IO_BANK0_PROC0_INTE0 + 4 * (pin / 8)) = 12u << 4 * (pin % 8);
  WEFT_REG(PPB_NVIC_ISER) = 1u << 13;
}
WEFT_INLINE void pin_irq_ack(unsigned pin) {
  WEFT_REG(IO_BANK0_INTR0 + 4 * (pin / 8)) = 12u << 4 * (pin % 8);
}

#ifndef WEFT_PICO_SDK /* the SDK has functions of these names */
void uart_init(void); /* UART 0 on pins 0 and 1, 115,200 baud at clk_peri = 125 MHz */
void uart_put(char c);
void uart_puts(const char *text);
void uart_put_u32(uint32_t value); /* in decimal */
#endif
#ifdef __cplusplus
}
#endif
#endif
