/* link_uart.c: the functions of link_uart.h. Sending uses polling: the FIFO holds 32 characters,
 * which take 2.7 ms, and is checked once a ms. */
#include "link_uart.h"

enum { UART0_IRQ = 20, RECEIVE = 1 << 4, TIMEOUT = 1 << 6, EMPTY = 1 << 4, FULL = 1 << 5 };
enum { ROSC_RANDOMBIT = 0x4006001c, FAR = 60000 };
static weft_link_uart *the_line; /* There is only one UART 0. */

static uint32_t random_word(void) {
  uint32_t n = weft_now32() * 2654435761u;
  for (unsigned i = 0; i < 32; i++) n ^= (WEFT_REG(ROSC_RANDOMBIT) & 1) << i;
  return n;
}
static uint32_t now_ms(weft_link_uart *u) {
  uint32_t passed = (weft_now32() - u->us) / 1000;
  u->us += passed * 1000;
  return u->ms += passed;
}

static void turn(weft_link_uart *u) {
  weft_link *l = u->link;
  uint32_t now = now_ms(u), in = WEFT_PEEK(u->in), wait;
  while (u->out != in) {
    unsigned from = u->out % sizeof u->ring, n = (uint16_t)(in - u->out),
             most = sizeof u->ring - from;
    if (n > most) n = most;
    weft_link_input(l, u->ring + from, n, now);
    WEFT_POKE(u->out, (uint16_t)(u->out + n));
  }
  for (;;) {
    if (u->sent == u->length) {
      u->sent = 0;
      u->length = (uint16_t)weft_link_output(l, u->line, now);
      if (!u->length) break;
    }
    while (u->sent < u->length && !(WEFT_REG(UART0_FR) & FULL))
      WEFT_REG(UART0_DR) = u->line[u->sent++];
    if (u->sent < u->length) break;
  }
  if (l->why && !u->ending) u->ending = true, u->over_at = now;
  if (u->ending && !u->length && (weft_link_settled(l) || now - u->over_at >= 3 * l->again)) {
    u->ending = false;
    weft_link_begin(l, random_word(), random_word(), now);
  }
  if (u->after) u->after(u);
  wait = u->length ? 1 : weft_link_due(l, now);
  if (u->ending && wait > l->again) wait = l->again;
  weft_post_as(u->queue, &u->due,
               weft_now32() + 1000 * (wait < 1     ? 1
                                      : wait < FAR ? wait
                                                   : FAR),
               WEFT_MOVE);
}
/* The events lie in the structure, so the structure could be found from an event; but there is
 * only one UART 0. */
static uint32_t on_event(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  turn(the_line);
  return WEFT_DONE;
}

void weft_link_uart_kick(weft_link_uart *u) {
  weft_post_as(u->queue, &u->news, weft_now32(), WEFT_KEEP);
}

void weft_link_uart_start(weft_link_uart *u) {
  the_line = u;
  u->news = (weft_event)WEFT_EVENT(on_event, u->actor);
  u->due = (weft_event)WEFT_EVENT(on_event, u->actor);
  u->us = weft_now32();
  weft_link_begin(u->link, random_word(), random_word(), u->ms);
  WEFT_REG(UART0_IMSC) = RECEIVE | TIMEOUT;
  WEFT_REG(PPB_NVIC_ISER) = 1u << UART0_IRQ;
  weft_link_uart_kick(u);
}

void weft_isr_uart0(void);
void weft_isr_uart0(void) {
  weft_link_uart *u = the_line;
  while (!(WEFT_REG(UART0_FR) & EMPTY)) {
    uint8_t b = (uint8_t)WEFT_REG(UART0_DR);
    if ((uint16_t)(u->in - WEFT_PEEK(u->out)) < sizeof u->ring) {
      u->ring[u->in % sizeof u->ring] = b;
      WEFT_POKE(u->in, (uint16_t)(u->in + 1));
    } else
      u->overflows++;
  }
  WEFT_REG(UART0_ICR) = RECEIVE | TIMEOUT;
  weft_link_uart_kick(u);
}
