/* board.h: the text of a program in QEMU, by semihosting. The board's UART and its pins are not
 * used. */
#ifndef WEFT_AN521_BOARD_H
#define WEFT_AN521_BOARD_H
#include "../cortex_m/nvic.h"
#ifdef __cplusplus
extern "C" {
#endif

WEFT_INLINE void uart_init(void) {}
void uart_put(char c);
void uart_puts(const char *text);
void uart_put_u32(uint32_t value); /* in decimal */
#ifdef __cplusplus
}
#endif
#endif
