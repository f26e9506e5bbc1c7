/* console: commands over UART 0 (115,200 baud): `on`, `off`, `blink MS`, `help`. The receiver's interrupt collects characters and
 * posts a line; the actor that reads it is never preempted by itself and shares nothing with the interrupt but one buffer that it owns
 * while the event is queued.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { LED = 25, LINE = 40, UART0_IRQ = 20, RECEIVE = 1 << 4, TIMEOUT = 1 << 6 };
static weft_queue queue;
static weft_actor console, lamp;
static char line[LINE + 1];
static unsigned length;
static uint32_t half_period;

static uint32_t toggle(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  pin_toggle(LED);
  return half_period;
}
static weft_event blinking = WEFT_EVENT(toggle, &lamp);

static bool same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}
static uint32_t command(weft_event *e, uint32_t release) {
  (void)e;
  uint32_t ms = 0;
  bool number = false;
  if (line[0] == 'b' && line[1] == 'l' && line[2] == 'i' && line[3] == 'n' && line[4] == 'k' && line[5] == ' ')
    for (const char *p = line + 6; *p >= '0' && *p <= '9' && ms < 100000; p++) ms = ms * 10 + (uint32_t)(*p - '0'), number = true;
  weft_cancel(&queue, &blinking);
  if (same(line, "on")) pin_high(LED), uart_puts("on\n");
  else if (same(line, "off")) pin_low(LED), uart_puts("off\n");
  else if (number && ms) {
    half_period = ms * 1000;
    weft_post(&queue, &blinking, release);
    uart_puts("blink ");
    uart_put_u32(ms);
    uart_puts(" ms\n");
  } else uart_puts("on | off | blink MS\n");
  length = 0;
  return WEFT_DONE;
}
static weft_event entered = WEFT_EVENT(command, &console);

void weft_isr_uart0(void);
void weft_isr_uart0(void) {
  while (!(WEFT_REG(UART0_FR) & 16)) {
    char c = (char)WEFT_REG(UART0_DR);
    if (entered.next) continue; /* the last line is still being waited for: type slower */
    if (c == '\r' || c == '\n') {
      if (!length) continue;
      line[length] = 0;
      weft_post_as(&queue, &entered, weft_now32(), WEFT_KEEP);
    } else if (length < LINE) line[length++] = c;
  }
  WEFT_REG(UART0_ICR) = RECEIVE | TIMEOUT;
}

int main(void) {
  pin_out(LED);
  uart_init();
  weft_list_init(&queue, WEFT_LOCAL);
  WEFT_REG(UART0_IMSC) = RECEIVE | TIMEOUT;
  WEFT_REG(PPB_NVIC_ISER) = 1u << UART0_IRQ;
  uart_puts("weft\n");
  weft_work(&queue);
  return 0;
}
