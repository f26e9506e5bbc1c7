/* reactors_cores: two staggered 10 kHz timers of LOOPS units of work, each in an enclave and so on
 * a core of its own (the thesis's version of this program could not run them at once). Pins 2 and 3
 * are high while the timers' reactions work. With LINKED=1 a message with a delay of 1 ms also goes
 * back and forth.
 */
#ifndef LOOPS
#define LOOPS 250
#endif
#ifndef LINKED
#define LINKED 0
#endif
#define WEFT_RX_ENCLAVES 2
#define WEFT_RX_TIMERS 1
#if LINKED
#define WEFT_RX_REACTIONS 3
#define WEFT_RX_LINKS 2
#define WEFT_RX_DELAYS 1
#define WEFT_RX_EVENTS 32 /* ten messages are under way in each direction */
#else
#define WEFT_RX_REACTIONS 1
#endif
#include "weft_mcu/reactors.h"
#include "board.h"
#include "sumsq.h"

typedef WEFT_RX_PORT(uint32_t) port;
typedef struct { weft_rx_timer t; port out; uint32_t got, expected; } Half;
static Half half[2];
#if LINKED
typedef WEFT_RX_DELAY(port) delay;
static delay link[2] = {
    WEFT_RX_DELAY_INIT(WEFT_RX_TRIG_ONE(2), &half[0].out, WEFT_RX_MSEC(1), WEFT_RX_AFTER, 1),
    WEFT_RX_DELAY_INIT(WEFT_RX_TRIG_ONE(2), &half[1].out, WEFT_RX_MSEC(1), WEFT_RX_AFTER, 0)};
#define SEND(i) weft_rx_set(&half[i].out, half[i].out.value + 1)
#define OUT .out = WEFT_RX_OUT(WEFT_RX_TRIG_ONE(1))
#else
#define SEND(i) ((void)0)
#define OUT .out = WEFT_RX_OUT(0)
#endif
WEFT_HOT static void work_a(void *self) {
  (void)self;
  pin_high(2);
  work_loops(LOOPS);
  pin_low(2);
  SEND(0);
}
WEFT_HOT static void work_b(void *self) {
  (void)self;
  pin_high(3);
  work_loops(LOOPS);
  pin_low(3);
  SEND(1);
}
#if LINKED
/* Check that every message arrives, in order: pin 4 or 5 goes high for good if one is lost. */
static void receive(void *self) {
  unsigned i = (unsigned)(uintptr_t)self;
  if (link[1 - i].port.value != ++half[i].expected) pin_high(4 + i);
  half[i].got++;
}
#endif
static Half half[2] = {
  {.t = WEFT_RX_TIMER(WEFT_RX_USEC(100), WEFT_RX_USEC(100), WEFT_RX_TRIG_ONE(0)), OUT},
  {.t = WEFT_RX_TIMER(WEFT_RX_USEC(150), WEFT_RX_USEC(100), WEFT_RX_TRIG_ONE(0)), OUT}};
const weft_rx_reaction weft_rx_reactions[] = {
  {work_a, 0},
#if LINKED
  {weft_rx_delay_send, &link[0].delay}, {receive, (void *)0},
#endif
  {work_b, 0},
#if LINKED
  {weft_rx_delay_send, &link[1].delay}, {receive, (void *)1},
#endif
};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
const weft_rx_range weft_rx_timers[] = {{&half[0].t, 1, 0}, {&half[1].t, 1, 0}};
#if LINKED
const weft_rx_link weft_rx_links[] = {{0, 1, 1000000}, {1, 0, 1000000}};
#endif
const weft_rx_program weft_rx_programs[] = {{.name = "a", .count = WEFT_RX_REACTIONS, .ranges = 1},
                                            {.name = "b",
                                             .count = WEFT_RX_REACTIONS,
                                             .first = WEFT_RX_REACTIONS,
                                             .first_range = 1,
                                             .ranges = 1,
                                             .core = 1}};
#include "weft_mcu/reactors_run.h"

int main(void) {
  pin_out(2), pin_out(3), pin_out(4), pin_out(5);
  return weft_rx_run(0);
}
