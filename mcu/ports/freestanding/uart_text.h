/* uart_text.h: text and numbers over the uart_put of a port. The board.c of each port includes this
 * file once. */
#ifndef WEFT_UART_TEXT_H
#define WEFT_UART_TEXT_H

void uart_puts(const char *text) {
  while (*text) uart_put(*text++);
}
/* Print a number in decimal. The digits are found by subtraction, so that neither a divider nor
 * libgcc is needed; there are at most ten. */
void uart_put_u32(uint32_t value) {
  static const uint32_t tens[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                  10000,      1000,      100,      10,      1};
  bool begun = false;
  for (unsigned i = 0; i < 10; i++) {
    char digit = '0';
    while (value >= tens[i]) value -= tens[i], digit++;
    if (digit != '0' || begun || i == 9) uart_put(digit), begun = true;
  }
}
#endif
