/* reactors: measures the cost of a tag and of a reaction. Pin 2 is high while a reaction runs. The
 * program is always late, so the time between two reactions is overhead.
 *
 * TIMERS timers of one period fire one after the other; each triggers CHAIN reactions, which raise
 * pin 2 in turn. With PORTS the reactions trigger one another through ports; otherwise the timer
 * triggers them all.
 *   PHYSICAL=1: events from outside are possible. STATIC=1: a static schedule.
 */
#ifndef CHAIN
#define CHAIN 1
#endif
#ifndef TIMERS
#define TIMERS 1
#endif
#ifndef PORTS
#define PORTS 0
#endif
#ifndef SPARE /* the number of reactions before these, which are never triggered; they make the
               * bitmap longer than one word */
#define SPARE 0
#endif
#define WEFT_RX_REACTIONS (SPARE + CHAIN)
#ifndef STATIC
#define STATIC 0
#endif
#if STATIC
#define WEFT_RX_STATIC 1
#else
#define WEFT_RX_TIMERS TIMERS
#endif
#ifdef PHYSICAL
#define WEFT_RX_PHYSICAL 1
#endif
#include "weft_mcu/reactors.h"
#include "board.h"

#ifndef PERIOD_US /* By default the period is shorter than a reaction. */
#define PERIOD_US 15
#endif
enum { PERIOD = PERIOD_US };
#define NTH(i) WEFT_RX_TRIG_ONE(SPARE + (i))
#if PORTS
typedef WEFT_RX_PORT(uint32_t) port;
static port out[CHAIN] = {WEFT_RX_OUT(NTH(1 % CHAIN))
#if CHAIN > 2
  , WEFT_RX_OUT(NTH(2)), WEFT_RX_OUT(NTH(3 % CHAIN))
#endif
};
#endif
/* Do the same work for each reaction: about 2,000 cycles. */
WEFT_INLINE void work(void) {
  for (uint32_t n = 600; n; n--) __asm volatile("");
}
WEFT_HOT static void react(void *self) {
  (void)self;
  pin_high(2);
  work();
#if PORTS
  unsigned i = (unsigned)(uintptr_t)self;
  if (i < CHAIN - 1) weft_rx_set(&out[i], i);
#endif
  pin_low(2);
}
WEFT_RX_TABLE weft_rx_reaction weft_rx_reactions[] = {
#if SPARE == 40
#define R {react, 0}
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
    R,
#endif
    {react, (void *)0},
#if CHAIN > 1
    {react, (void *)1},
#endif
#if CHAIN > 2
    {react, (void *)2},
    {react, (void *)3},
#endif
};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
#define ALL (PORTS || SPARE ? NTH(0) : WEFT_RX_TRIG(0, (1u << CHAIN) - 1))
#if STATIC
const weft_rx_slot weft_rx_slots[] = {{PERIOD, ALL}, {PERIOD, ALL}, WEFT_RX_SLOTS_END};
const weft_rx_program weft_rx_programs[] = {
    {.name = "bench", .count = SPARE + CHAIN, .slots = 2, .loop = 0}};
#else
static weft_rx_timer timers[] = {WEFT_RX_TIMER(0, PERIOD * 1000, ALL)
#if TIMERS > 1
  , WEFT_RX_TIMER(PERIOD * 500, PERIOD * 1000, ALL)
#endif
#if TIMERS > 2
  , WEFT_RX_TIMER(1000000000, 1000000000, ALL)
#endif
};
const weft_rx_range weft_rx_timers[] = {{timers, TIMERS, sizeof timers[0]}};
const weft_rx_program weft_rx_programs[] = {{.name = "bench", .count = SPARE + CHAIN, .ranges = 1}};
#endif
#include "weft_mcu/reactors_run.h"

int main(void) {
  pin_out(2);
  return weft_rx_run(0);
}
