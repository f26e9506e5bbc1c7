/* board_kit.h: what the tests of the ports need beside board.h: an interrupt line that no device
 * uses, checks that are counted, and an end that QEMU understands.
 *
 * BOARD_LINE is the number of the line, BOARD_SLEEPS is 0 for a machine on which weft_wait returns
 * at once (both are given by tests/boards/build). */
#ifndef WEFT_BOARD_KIT_H
#define WEFT_BOARD_KIT_H
#include "board.h"
#include "cortex_m/semihost.h"

#define BOARD_JOIN(a, b) a##b
#define BOARD_NAMED(a, b) BOARD_JOIN(a, b)
#define BOARD_ISR BOARD_NAMED(weft_isr_, BOARD_LINE)
#ifdef __cplusplus
extern "C"
#endif
    void BOARD_ISR(void);

static int board_passed, board_failed;
static inline void board_check(const char *name, bool ok) {
  if (ok) board_passed++;
  else {
    board_failed++;
    uart_puts("FAIL ");
    uart_puts(name);
    uart_puts("\n");
  }
}
WEFT_NORETURN static inline void board_end(void) {
  uart_put_u32((uint32_t)board_passed);
  uart_puts(" passed, ");
  uart_put_u32((uint32_t)board_failed);
  uart_puts(" failed\n");
  semihost_exit(board_failed);
}
#endif
