// Time, sleep and the serial port of the emulated board.
//
// Invariants
// - TIMER0 counts time: 25 MHz, 32 bits, downwards. It is read at least once in 100 s, because long
//   sleeps are cut into pieces, so that no wrap-around is missed.
// - A sleep arms TIMER1 once and waits for its interrupt with interrupts disabled. No handler runs,
//   so a count of instructions contains only those of the program. Any other interrupt ends the
//   wait too.
#include <string.h>

#include "py/mphal.h"
#include "py/obj.h"
#include "py/runtime.h"
#include "py/stream.h"
#include "uart.h"

typedef struct {
  volatile uint32_t CTRL, VALUE, RELOAD, INTCLEAR;
} timer_regs;
#define TIMER0 ((timer_regs*)0x40000000)
#define TIMER1 ((timer_regs*)0x40001000)
#define TIMER1_IRQ (9)
#define TIMER_EN (1)
#define TIMER_IRQ_EN (8)
#define NVIC_ISER (*(volatile uint32_t*)0xe000e100)
#define NVIC_ICPR (*(volatile uint32_t*)0xe000e280)
#define UART_STATE (*(volatile uint32_t*)0x40004004)

#define PER_US (25)
#define CHUNK_US (100000000)

static uint32_t last_count;  // the value of TIMER0 when it was last read
static uint32_t rest;        // the counts, less than a microsecond, that are not in `micros` yet
static uint64_t micros;      // microseconds since the start
static uint32_t millis;  // milliseconds since the start; a 64-bit division would link the unwinder
static uint32_t millis_rest;  // the microseconds that are not in `millis` yet

void weft_board_init(void) {
  if (!(TIMER0->CTRL & TIMER_EN)) {
    TIMER0->RELOAD = 0xffffffff;
    TIMER0->VALUE = 0xffffffff;
    TIMER0->CTRL = TIMER_EN;
    last_count = 0xffffffff;
  }
  TIMER1->CTRL = 0;
  TIMER1->INTCLEAR = 1;
  NVIC_ICPR = 1u << TIMER1_IRQ;
}

static uint64_t now_us(void) {
  uint32_t held = weft_board_hold_interrupts();
  uint32_t count = TIMER0->VALUE;
  rest += last_count - count;
  last_count = count;
  uint32_t passed = rest / PER_US;
  rest %= PER_US;
  micros += passed;
  millis_rest += passed;
  millis += millis_rest / 1000;
  millis_rest %= 1000;
  uint64_t now = micros;
  weft_board_let_interrupts(held);
  return now;
}

mp_uint_t mp_hal_ticks_us(void) { return (mp_uint_t)now_us(); }

mp_uint_t mp_hal_ticks_ms(void) {
  now_us();
  return millis;
}

// The counter runs at 25 MHz: with -icount shift=0 one count is exactly 40 instructions.
mp_uint_t mp_hal_ticks_cpu(void) { return -TIMER0->VALUE; }

uint64_t mp_hal_time_ns(void) { return now_us() * 1000; }

// Sleeps for `us` microseconds, or until an interrupt is pending.
static void sleep_us(uint32_t us) {
  uint32_t held = weft_board_hold_interrupts();
  TIMER1->CTRL = 0;
  TIMER1->INTCLEAR = 1;
  NVIC_ICPR = 1u << TIMER1_IRQ;
  TIMER1->RELOAD = 0;
  TIMER1->VALUE = us * PER_US;
  TIMER1->CTRL = TIMER_EN | TIMER_IRQ_EN;
  NVIC_ISER = 1u << TIMER1_IRQ;
  __asm volatile("dsb\nwfi\nisb" ::: "memory");
  TIMER1->CTRL = 0;
  TIMER1->INTCLEAR = 1;
  NVIC_ICPR = 1u << TIMER1_IRQ;
  weft_board_let_interrupts(held);
}

// Sleeps for `ms` milliseconds, but at most 10: characters of the UART cause no interrupt, so the
// caller must poll for them.
void weft_board_sleep_ms(int ms) {
  sleep_us(ms < 0 || ms > 10 ? 10000 : ms == 0 ? 1 : (uint32_t)ms * 1000);
}

void mp_hal_delay_us(mp_uint_t us) {
  uint64_t end = now_us() + us;
  for (uint64_t now; (now = now_us()) < end;) {
    uint64_t left = end - now;
    if (left < 20) {
      continue;
    }
    sleep_us(left > CHUNK_US ? CHUNK_US : (uint32_t)left - 10);
  }
}

void mp_hal_delay_ms(mp_uint_t ms) {
  uint64_t end = now_us() + (uint64_t)ms * 1000;
  for (uint64_t now; (now = now_us()) < end;) {
    mp_event_handle_nowait();
    uint64_t left = end - now;
    sleep_us(left > 10000 ? 10000 : left < 1 ? 1 : (uint32_t)left);
  }
}

uintptr_t mp_hal_stdio_poll(uintptr_t wanted) {
  uintptr_t ready = wanted & MP_STREAM_POLL_WR;
  if ((wanted & MP_STREAM_POLL_RD) && (UART_STATE & 2)) {
    ready |= MP_STREAM_POLL_RD;
  }
  return ready;
}

int mp_hal_stdin_rx_chr(void) {
  for (;;) {
    int c = uart_rx_chr();
    if (c >= 0) {
      return c;
    }
    mp_event_wait_ms(10);
  }
}

mp_uint_t mp_hal_stdout_tx_strn(const char* text, size_t length) {
  uart_tx_strn(text, length);
  return length;
}
