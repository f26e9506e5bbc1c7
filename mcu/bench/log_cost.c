/* log_cost: cycles of a record, and its bytes on the wire. The result is one JSON line. */
#include "cycles.h"
#include "weft_mcu/log.h"

static weft_log records;
static volatile uint32_t wide = 0x12345678;
static uint8_t packet[254];

/* Return how many bytes a record with a 32-bit argument adds to a packet that has one before it. */
static uint32_t bytes(uint32_t gap, uint32_t value) {
  WEFT_LOG(&records, "first");
  size_t alone = weft_log_packet(&records, packet, sizeof packet);
  WEFT_LOG(&records, "first");
  uint32_t t = weft_now32();
  while (weft_now32() - t < gap) {}
  WEFT_LOG(&records, "second %u", value);
  return (uint32_t)(weft_log_packet(&records, packet, sizeof packet) - alone);
}

int main(void) {
  uart_init();
  cycles_init();
  uint32_t value = wide, cost[4], start, from;
  start = cycles_now();
  WEFT_LOG(&records, "none");
  cost[0] = cycles_since(start);
  start = cycles_now();
  WEFT_LOG(&records, "one %u", value);
  cost[1] = cycles_since(start);
  start = cycles_now();
  WEFT_LOG(&records, "two %u %u", value, value);
  cost[2] = cycles_since(start);
  while (weft_log_packet(&records, packet, sizeof packet)) {}
  for (unsigned i = 0; i < 10; i++) WEFT_LOG(&records, "ten %u", value);
  from = cycles_now();
  (void)weft_log_packet(&records, packet, sizeof packet);
  cost[3] = cycles_since(from);
  uart_puts("{\"slots\":");
  uart_put_u32(WEFT_LOG_SLOTS);
  put_figure("none", cost[0]);
  put_figure("one", cost[1]);
  put_figure("two", cost[2]);
  put_figure("packet_of_ten", cost[3]);
  put_figure("bytes", bytes(1000, value));
  put_figure("bytes_small", bytes(1000, 100));
  put_figure("bytes_later", bytes(100000, value));
  uart_puts("}\n");
  return 0;
}
