/* two_cores: the runtime in a program of the pico-sdk, with the SDK's start-up, clocks, stdio,
 * floating point, multicore and flash, and with Weft's actors on both cores. run.mjs reads its
 * output. A failed check is printed and ends in exit status 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/clocks.h"
#include "hardware/flash.h"
#include "hardware/sync.h"
#include "pico/multicore.h"
#include "pico/stdlib.h"
#include "weft_mcu/actors.h"

enum { PIN_0 = 2, PIN_1 = 3, PERIOD_0 = 100, PERIOD_1 = 70, RELEASES = 200, ROUNDS = 50 };

/* One periodic actor on each core, and the observations of that actor. */
typedef struct {
  weft_event event; /* the first member, so that the action finds the other members through it */
  unsigned pin, core, times, wrong_core;
  uint32_t period, late; /* in us */
} task;

static weft_queue own[2];
static weft_actor actors[4];
static task tasks[2];
static weft_event ping, pong;
static unsigned volatile rounds;

static uint32_t __time_critical_func(tick)(weft_event *e, uint32_t release) {
  task *t = (task *)(void *)e;
  gpio_xor_mask(1u << t->pin);
  uint32_t late = time_us_32() - release;
  if (late > t->late) t->late = late;
  if (get_core_num() != t->core) t->wrong_core++;
  if (++t->times < RELEASES) return t->period;
  return WEFT_DONE;
}

/* A message goes back and forth between the cores, each time by a post to the other core's
 * queue. */
static uint32_t to_core1(weft_event *e, uint32_t release) {
  (void)e;
  weft_post(&own[1], &pong, release + 20);
  return WEFT_DONE;
}
static uint32_t to_core0(weft_event *e, uint32_t release) {
  (void)e;
  if (++rounds < ROUNDS) weft_post(&own[0], &ping, release + 20);
  return WEFT_DONE;
}
static uint32_t end(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  weft_stop(&own[0]);
  weft_stop(&own[1]);
  return WEFT_DONE;
}

static void core1(void) {
  multicore_fifo_push_blocking(get_core_num());
  weft_work(&own[1]);
  multicore_fifo_push_blocking(77);
}

static void check(bool holds, const char *what) {
  if (holds) return;
  printf("not so: %s\n", what);
  exit(1);
}

/* Test the SDK's library over the boot ROM: bits, memory, both precisions. */
static void rom(void) {
  static uint8_t from[64], to[64];
  volatile uint32_t x = 0x00f01000;
  check(__builtin_popcount(x) == 5 && __builtin_clz(x) == 8 && __builtin_ctz(x) == 12,
        "bit functions");
  for (unsigned i = 0; i < sizeof from; i++) from[i] = (uint8_t)i;
  memset(to, 0xaa, sizeof to);
  memcpy(to + 3, from + 5, 41);
  check(to[2] == 0xaa && to[3] == 5 && to[43] == 45 && to[44] == 0xaa, "memcpy and memset");
  volatile float f = 2.0f;
  volatile double d = 2.0;
  check(f * f + 1.5f == 5.5f && f / 8.0f == 0.25f && (int)(f * -1.25f) == -2, "single precision");
  check(d * d + 1.5 == 5.5 && d / 8.0 == 0.25 && (int)(d * -1.25) == -2, "double precision");
  printf("sqrt %.6f %.12f sin %.6f %.12f exp %.5f\n", (double)sqrtf(f), sqrt(d), (double)sinf(f),
         sin(d), exp(d));
}

/* Erase the last sector of the flash, program it and read it back; boot2 then enables execution
 * from flash again. */
static void flash(void) {
  static uint8_t page[FLASH_PAGE_SIZE];
  const uint32_t where = PICO_FLASH_SIZE_BYTES - FLASH_SECTOR_SIZE;
  for (unsigned i = 0; i < sizeof page; i++) page[i] = (uint8_t)(i ^ 0x5a);
  uint32_t irq = save_and_disable_interrupts();
  flash_range_erase(where, FLASH_SECTOR_SIZE);
  flash_range_program(where, page, sizeof page);
  restore_interrupts(irq);
  const uint8_t *there = (const uint8_t *)(XIP_NOCACHE_NOALLOC_BASE + where);
  check(!memcmp(there, page, sizeof page) && there[sizeof page] == 0xff, "flash");
}

int main(void) {
  stdio_init_all();
  printf("clk_sys %lu Hz\n", (unsigned long)clock_get_hz(clk_sys));
  hardware_alarm_claim(0); /* The runtime uses one alarm on each core, and the SDK must not
                            * use them. */
  hardware_alarm_claim(1);
  rom();
#if PICO_RP2350 /* The locks of that port are words of its own. */
  weft_list_init(&own[0], WEFT_SPINLOCK(0));
  weft_list_init(&own[1], WEFT_SPINLOCK(1));
#else
  weft_list_init(&own[0], WEFT_SPINLOCK((unsigned)spin_lock_claim_unused(true)));
  weft_list_init(&own[1], WEFT_SPINLOCK((unsigned)spin_lock_claim_unused(true)));
#endif
  multicore_launch_core1(core1);
  printf("core %lu runs\n", (unsigned long)multicore_fifo_pop_blocking());

  uint32_t start = time_us_32() + 200;
  for (unsigned i = 0; i < 2; i++) {
    gpio_init(i ? PIN_1 : PIN_0);
    gpio_set_dir(i ? PIN_1 : PIN_0, GPIO_OUT);
    tasks[i] = (task){.event = WEFT_EVENT(tick, &actors[i]),
                      .pin = i ? PIN_1 : PIN_0,
                      .core = i,
                      .period = i ? PERIOD_1 : PERIOD_0};
    weft_post(&own[i], &tasks[i].event, start);
  }
  ping = (weft_event)WEFT_EVENT(to_core1, &actors[2]);
  pong = (weft_event)WEFT_EVENT(to_core0, &actors[3]);
  weft_post(&own[0], &ping, start + 7);
  static weft_event last = WEFT_EVENT(end, &actors[2]);
  weft_post(&own[0], &last, start + RELEASES * PERIOD_0 + 5);
  weft_work(&own[0]);
  check(multicore_fifo_pop_blocking() == 77, "core 1 has left its queue");

  for (unsigned i = 0; i < 2; i++)
    printf("core %u: %u releases, %u on the wrong core, at most %lu us late\n", i, tasks[i].times,
           tasks[i].wrong_core, (unsigned long)tasks[i].late);
  printf("%u rounds\n", rounds);
  uint32_t before = time_us_32();
  sleep_ms(3); /* The SDK's own alarms work beside those of the runtime. */
  uint32_t slept = time_us_32() - before;
  check(slept >= 3000 && slept < 3100, "sleep_ms");
  multicore_reset_core1();
  flash();
  printf("done\n");
  return 0;
}
