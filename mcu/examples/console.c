/* console: commands over UART 0 (115,200 baud): `on`, `off`, `blink MS`, `help`. The receiver's
 * interrupt puts each character into a ring; the actor takes the characters out, assembles lines
 * and obeys them, one line per action. Therefore text can be pasted: characters that come while a
 * line is answered wait in the ring, and characters that find the ring full are counted and
 * reported.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { LED = 25, LINE = 40, UART0_IRQ = 20, RECEIVE = 1 << 4, TIMEOUT = 1 << 6 };
static weft_queue queue;
static weft_actor console, lamp;
static char typed[512], line[LINE + 1];
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
static void command(uint32_t release) {
  uint32_t ms = 0;
  bool number = false;
  if (line[0] == 'b' && line[1] == 'l' && line[2] == 'i' && line[3] == 'n' && line[4] == 'k' &&
      line[5] == ' ')
    for (const char *p = line + 6; *p >= '0' && *p <= '9' && ms < 100000; p++)
      ms = ms * 10 + (uint32_t)(*p - '0'), number = true;
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
}

static uint32_t read_line(weft_event *e, uint32_t release);
static weft_ring characters = WEFT_RING(typed, read_line, &console);
static uint32_t read_line(weft_event *e, uint32_t release) {
  static uint32_t told;
  static bool skip; /* true while the rest of the line is skipped */
  char c;
  while (weft_ring_get(&queue, &characters, &c))
    if (c != '\r' && c != '\n') {
      if (length < LINE && !skip) line[length++] = c;
    } else if (skip) skip = false;
    else if (length) {
      line[length] = 0;
      length = 0;
      uint32_t lost = WEFT_PEEK(characters.overflows) - told;
      told += lost;
      if (!lost) command(release);
      else { /* The gap is somewhere after this line, so no character in the ring can be trusted. */
        for (; weft_ring_get(&queue, &characters, &c); skip = true) lost++;
        uart_put_u32(lost);
        uart_puts(" characters lost\n");
      }
      /* Other events are handled first, then the next line. */
      weft_post_as(&queue, e, release, WEFT_KEEP);
      break;
    }
  return WEFT_DONE;
}

void weft_isr_uart0(void);
void weft_isr_uart0(void) {
  while (!(WEFT_REG(UART0_FR) & 16)) {
    char c = (char)WEFT_REG(UART0_DR);
    weft_ring_put(&queue, &characters, &c);
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
