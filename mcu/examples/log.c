/* log: a counter that logs every millisecond, in a few cycles, and an actor of low priority that
 * sends the records while there is nothing else to do. See LOG.md.
 *   weft-rp2040 run .build/mcu/rp2040/log.elf --log */
#include "board.h"
#include "weft_mcu/actors.h"
#include "weft_mcu/log.h"

enum { RECORDS = 100, UART_EMPTY = 1 << 7 };
static weft_actor counter = WEFT_ACTOR(0), sender = WEFT_ACTOR(WEFT_PRIORITY_MAX);
static weft_queue queue;
static weft_log records;
static uint32_t count;

static uint32_t tick(weft_event *e, uint32_t release) {
  (void)e;
  WEFT_LOG(&records, "tick %u, %d us late", count, weft_now32() - release);
  if (++count < RECORDS) return 1000;
  WEFT_LOG(&records, "that was all");
  return WEFT_DONE;
}
/* A packet that fits into the FIFO of the UART is sent when the FIFO is empty, so no code waits. */
static uint32_t send(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  uint8_t packet[WEFT_LOG_ROOM];
  if (!(WEFT_REG(UART0_FR) & UART_EMPTY)) return 500;
  size_t n = weft_log_packet(&records, packet, sizeof packet);
  for (size_t i = 0; i < n; i++) uart_put((char)packet[i]);
  if (!n && count == RECORDS) weft_stop(&queue);
  return 500;
}
static weft_event ticks = WEFT_EVENT(tick, &counter), sending = WEFT_EVENT(send, &sender);

int main(void) {
  uart_init();
  weft_list_init(&queue, WEFT_LOCAL);
  WEFT_LOG(&records, "begin");
  weft_post_in(&queue, &ticks, 1000);
  weft_post_in(&queue, &sending, 1000);
  weft_work(&queue);
  return 0;
}
