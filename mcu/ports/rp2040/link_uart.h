/* link_uart.h: a link (weft_mcu/link.h) over the RP2040's UART 0, served by an actor. It runs one
 * session after another.
 *
 *   static weft_link_uart line = {.link = &pc, .queue = &queue, .actor = &me};
 *   weft_link_uart_start(&line);                 // after uart_init() and weft_list_init()
 *
 * A program calls the link's functions in actions of that actor. After a call that is made outside
 * `over` and `news`, it must call weft_link_uart_kick(). When a session is over and the PC has
 * been notified, the next session begins automatically.
 *
 * Invariant: the interrupt writes `in` and the ring; the actor's actions write everything else. A
 * byte that finds the ring full is counted, and the PC sends its packet again.
 */
#ifndef WEFT_RP2040_LINK_UART_H
#define WEFT_RP2040_LINK_UART_H
#include "board.h"
#include "weft_mcu/actors.h"
#include "weft_mcu/link.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_link_uart {
  weft_link *link;
  weft_queue *queue;
  weft_actor *actor;
  void (*after)(struct weft_link_uart *line); /* called after each turn of the link; may be 0 */
  uint32_t overflows;
  weft_event news, due;
  uint32_t ms, us, over_at;
  uint16_t in, out, sent, length;
  bool ending;
  uint8_t ring[512], line[WEFT_LINK_PACKET];
} weft_link_uart;

void weft_link_uart_start(weft_link_uart *line);
void weft_link_uart_kick(weft_link_uart *line);

#ifdef __cplusplus
}
#endif
#endif
