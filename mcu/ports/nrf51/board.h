/* board.h: pins and the UART, for firmware without an SDK. The runtime does not need this file. */
#ifndef WEFT_NRF51_BOARD_H
#define WEFT_NRF51_BOARD_H
#include "../cortex_m/nvic.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  NRF51_OUT = 0x50000504,
  NRF51_OUTSET = 0x50000508,
  NRF51_OUTCLR = 0x5000050c,
  NRF51_IN = 0x50000510,
  NRF51_PIN_CNF0 = 0x50000700,
};
WEFT_INLINE void pin_out(unsigned pin) { WEFT_REG(NRF51_PIN_CNF0 + 4 * pin) = 3; }
WEFT_INLINE void pin_in_pull_up(unsigned pin) { WEFT_REG(NRF51_PIN_CNF0 + 4 * pin) = 0xc; }
WEFT_INLINE void pin_high(unsigned pin) { WEFT_REG(NRF51_OUTSET) = 1u << pin; }
WEFT_INLINE void pin_low(unsigned pin) { WEFT_REG(NRF51_OUTCLR) = 1u << pin; }
WEFT_INLINE bool pin_read(unsigned pin) { return WEFT_REG(NRF51_IN) >> pin & 1; }
WEFT_INLINE void pin_toggle(unsigned pin) {
  if (WEFT_REG(NRF51_OUT) >> pin & 1) pin_low(pin);
  else pin_high(pin);
}

/* The UART at 115,200 baud; the pins are those of the micro:bit's USB. */
#ifndef NRF51_UART_TX
#define NRF51_UART_TX 24u
#define NRF51_UART_RX 25u
#endif
void uart_init(void);
bool uart_is_on(void);
void uart_put(char c);
void uart_puts(const char *text);
void uart_put_u32(uint32_t value); /* in decimal */
#ifdef __cplusplus
}
#endif
#endif
