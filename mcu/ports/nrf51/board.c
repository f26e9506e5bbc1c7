/* board.c: the UART of board.h. */
#include "board.h"

enum {
  UART_STARTRX = 0x40002000,
  UART_STARTTX = 0x40002008,
  UART_TXDRDY = 0x4000211c,
  UART_ENABLE = 0x40002500,
  UART_PSELTXD = 0x4000250c,
  UART_PSELRXD = 0x40002514,
  UART_TXD = 0x4000251c,
  UART_BAUDRATE = 0x40002524,
  ON = 4,
};
void uart_init(void) {
  pin_high(NRF51_UART_TX); /* A line at rest is high, also before the UART drives it. */
  pin_out(NRF51_UART_TX);
  WEFT_REG(NRF51_PIN_CNF0 + 4 * NRF51_UART_RX) = 0;
  WEFT_REG(UART_PSELTXD) = NRF51_UART_TX;
  WEFT_REG(UART_PSELRXD) = NRF51_UART_RX;
  WEFT_REG(UART_BAUDRATE) = 0x01d7e000; /* 115,200 */
  WEFT_REG(UART_ENABLE) = ON;
  WEFT_REG(UART_STARTTX) = 1;
  WEFT_REG(UART_STARTRX) = 1;
}
bool uart_is_on(void) { return WEFT_REG(UART_ENABLE) == ON; }
void uart_put(char c) {
  WEFT_REG(UART_TXDRDY) = 0;
  WEFT_REG(UART_TXD) = (uint8_t)c;
  while (!WEFT_REG(UART_TXDRDY)) {}
}
#include "../freestanding/uart_text.h"
