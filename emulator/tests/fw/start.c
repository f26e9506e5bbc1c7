/* Contains the vectors, the reset handler, and the start of core 1. The handlers are weak: a test
 * defines the handlers that it uses. */
#include "fw.h"

extern uint32_t __bss_start, __bss_end, __stack0, __data_start, __data_end, __data_load;
int main(void);

void reset(void) {
  uint32_t *from = &__data_load;
  for (uint32_t *p = &__data_start; p < &__data_end;)
    *p++ = *from++;
  for (uint32_t *p = &__bss_start; p < &__bss_end;)
    *p++ = 0;
  main();
  for (;;)
    __asm volatile("bkpt 0");
}

void unexpected(void) {
  for (;;)
    __asm volatile("bkpt 1");
}

#define WEAK(name) __attribute__((weak, alias("unexpected"))) void name(void)
WEAK(hardfault);
WEAK(svcall);
WEAK(pendsv);
WEAK(systick);
WEAK(timer0);
WEAK(timer1);
WEAK(io_bank0);
WEAK(sio_proc0);
WEAK(sio_proc1);
WEAK(uart0);
WEAK(pio0);

__attribute__((section(".vectors"), used)) void (*const vectors[48])(void) = {
    (void (*)(void)) & __stack0,
    reset,
    [3] = hardfault,
    [11] = svcall,
    [14] = pendsv,
    [15] = systick,
    [16] = timer0,
    [17] = timer1,
    [23] = pio0,
    [29] = io_bank0,
    [31] = sio_proc0,
    [32] = sio_proc1,
    [36] = uart0,
};

static void push(uint32_t word) {
  while (!(REG(SIO + 0x50) & 2)) {
  }
  REG(SIO + 0x54) = word;
  sev();
}

static uint32_t pop(void) {
  while (!(REG(SIO + 0x50) & 1))
    wfe();
  return REG(SIO + 0x58);
}

void start_core1(void (*entry)(void), uint32_t stack) {
  const uint32_t words[6] = {0, 0, 1, (uint32_t)vectors, stack, (uint32_t)entry};
  for (unsigned i = 0; i < 6;) {
    if (words[i] == 0) {
      while (REG(SIO + 0x50) & 1)
        (void)REG(SIO + 0x58);
      sev();
    }
    push(words[i]);
    i = pop() == words[i] ? i + 1 : 0;
  }
}
