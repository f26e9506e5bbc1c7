/* alarm.c: the alarms of ports/rp2350 against a fake of TIMER0, of the NVIC and of the core's write
 * buffer. An alarm is armed while the old one may fire, with the clock advancing between any two
 * accesses; the new alarm must give an event.
 *
 * The fake, from the RP2350's datasheet (12.8) and the ARMv8-M manual: an alarm fires when the clock
 * becomes equal to it; the line is up while INTR and INTE have the bit; the NVIC's latch is set by
 * an edge of the line, and again after it is cleared while the line is up; an event is given when
 * the latch is set that was not set before (SEVONPEND). A write to the timer waits in the buffer
 * until the next access to the timer, or until `drain` accesses have passed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WEFT_FAKE_REGISTERS
#define PICO_RP2350 1
static uint32_t fake_read(uint32_t address);
static void fake_write(uint32_t address, uint32_t value);
#define WEFT_REG_READ(address) fake_read((uint32_t)(address))
#define WEFT_REG_WRITE(address, value) fake_write((uint32_t)(address), (value))
typedef int weft_lock_t;
typedef int weft_irq_t;
static inline void weft_wait(void) {}
#include "weft_mcu/platform.h"

static uint32_t clock_, schedule, drain, alarm_, core, other, scr;
static unsigned accesses;
static bool armed, intr, inte, latch, event, buffered[2];
static uint32_t waiting[2];

/* The line goes to the NVIC. */
static void settle(void) {
  if (intr && inte && !latch) latch = event = true;
}
static void tick(void) {
  clock_++;
  if (armed && clock_ == alarm_) armed = false, intr = true;
  settle();
}
static void flush(void) {
  if (buffered[0]) alarm_ = waiting[0], armed = true, buffered[0] = false;
  if (buffered[1]) intr = false, buffered[1] = false;
  settle();
}
/* Before access n the clock advances by bit n of the schedule. */
static void access(void) {
  if (schedule >> accesses++ & 1) tick();
  if (drain && !--drain) flush();
}
static uint32_t fake_read(uint32_t address) {
  access();
  if (address == RP2350_SIO_CPUID) return core;
  if (address == RP2350_SCR) return scr;
  flush();
  if (address == RP2350_TIMERAWL) return clock_;
  if (address == RP2350_INTR) return intr ? 1u << core : 0;
  return 0;
}
static void fake_write(uint32_t address, uint32_t value) {
  access();
  uint32_t bit = 1u << core;
  if (address == RP2350_SCR) scr = value;
  else if (address == RP2350_INTE + RP2350_SET) inte |= value == bit;
  else if (address == RP2350_NVIC_ICPR) {
    if (value == bit) latch = false;
    settle();
  } else if (address == RP2350_ALARM0 + 4 * core) waiting[0] = value, buffered[0] = true;
  else if (address == RP2350_INTR && value == bit) waiting[1] = value, buffered[1] = true;
  else other++;
}

int main(void) {
  unsigned passed = 0, lost = 0, wrong = 0;
  for (core = 0; core < 2; core++)
    for (uint32_t old = 100; old < 112; old++)
      for (uint32_t new_ = 100; new_ < 116; new_++)
        for (unsigned slow = 1; slow < 6; slow++)
          for (uint32_t pace = 0; pace < 256; pace++) {
            clock_ = 99, accesses = 0, schedule = 0, other = scr = 0;
            armed = intr = inte = latch = event = buffered[0] = buffered[1] = false;
            drain = 1000;
            weft_wait_init();
            wrong += !inte || scr != RP2350_SEVONPEND;
            weft_arm(old);
            flush();
            while (clock_ < 103) tick();
            event = false; /* The core has woken, for any reason, and checks for work. */
            accesses = 0, schedule = pace, drain = slow;
            weft_arm(new_);
            /* The loop of weft_wait_until: an event that comes for another reason is followed by
             * the next wait. */
            bool woken = true;
            while (woken && (int32_t)(weft_now32() - new_) < 0) {
              for (int i = 0; i < 40 && !event; i++) tick();
              woken = event;
              event = false;
            }
            wrong += other != 0;
            if (woken) passed++;
            else lost++;
          }
  printf("%u arrangements in which the core wakes or its time has come, %u in which it sleeps on\n",
         passed, lost);
  printf("%d passed, %d failed\n", !lost + !wrong, (lost != 0) + (wrong != 0));
  return lost || wrong;
}
