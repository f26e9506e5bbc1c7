/* board.c: the UART of board.h. */
#include "board.h"

void uart_init(void) {
  WEFT_REG_CLR(RESETS_RESET) = 1u << 22;
  while (!(WEFT_REG(RESETS_RESET_DONE) & 1u << 22)) {}
  WEFT_REG(UART0_IBRD) = 67; /* 125 MHz / (16 * 115200) = 67.817 */
  WEFT_REG(UART0_FBRD) = 52;
  WEFT_REG(UART0_LCR_H) = 0x70; /* 8 bits, FIFOs on */
  WEFT_REG(UART0_CR) = 0x301;   /* on, in both directions */
  WEFT_REG(IO_BANK0_GPIO0_CTRL) = 2;
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8) = 2;
}
void uart_put(char c) {
  while (WEFT_REG(UART0_FR) & 32) {}
  WEFT_REG(UART0_DR) = (uint8_t)c;
}
#include "../freestanding/uart_text.h"
