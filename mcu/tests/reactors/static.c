/* static.c tests R23: a static schedule has the same trace as timers. With TIMERS=1 the same
 * program is compiled with timers. */
#define WEFT_RX_REACTIONS 5
#define WEFT_RX_TABLE
#ifdef TIMERS
#define WEFT_RX_TIMERS 3
#else
#define WEFT_RX_STATIC 1
#endif
#include "weft_mcu/reactors.h"
#include "../host/check.h"

/* Three timers have the periods 2 ms from 0, 3 ms from 1, and 6 ms from 1. The order of the
 * reactions is: three, two, six, a reader of a port of two, the end. */
enum { THREE, TWO, SIX, READ, END };
#define BIT(r) WEFT_RX_TRIG_ONE(r)
typedef WEFT_RX_PORT(int) port;
static port out;
static char said[4096];
static size_t length;
static int64_t stop_at;
static void tell(const char *name) {
  length += (size_t)snprintf(said + length, sizeof said - length, "%s@%g.%u ", name,
                             (double)weft_rx_elapsed() / 1e6, weft_rx_microstep());
}
static void simple(void *self) { tell(self); }
static void two(void *self) {
  tell(self);
  weft_rx_set(&out, out.value + 1);
  if (stop_at && weft_rx_elapsed() == stop_at) weft_rx_request_stop();
}
static void read_it(void *self) {
  (void)self;
  if (out.value % 2 == 0) tell("even");
}
weft_rx_reaction weft_rx_reactions[] = {
    {simple, "three"}, {two, "two"}, {simple, "six"}, {read_it, 0}, {simple, "end"}};
weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
weft_rx_program weft_rx_programs[1];
#ifdef TIMERS
static weft_rx_timer timers[3];
weft_rx_range weft_rx_timers[] = {{timers, 3, sizeof timers[0]}};
#else
#define MS(n) WEFT_RX_TICKS(WEFT_RX_MSEC(n))
/* 0 two; 1 three, six; 2 two; 4 two, three; then every 6 ms: 6 two; 7 three, six; 8 two; 10 two,
 *   three */
weft_rx_slot weft_rx_slots[] = {{0, BIT(TWO)},     {MS(1), BIT(THREE) | BIT(SIX)},
                                {MS(1), BIT(TWO)}, {MS(2), BIT(TWO) | BIT(THREE)},
                                {MS(2), BIT(TWO)}, {MS(1), BIT(THREE) | BIT(SIX)},
                                {MS(1), BIT(TWO)}, {MS(2), BIT(TWO) | BIT(THREE)},
                                WEFT_RX_SLOTS_END};
#endif
void weft_rx_wire(void) {
  length = 0, said[0] = 0;
  out = (port)WEFT_RX_OUT(BIT(READ));
#ifdef TIMERS
  timers[0] = (weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_MSEC(2), BIT(TWO));
  timers[1] = (weft_rx_timer)WEFT_RX_TIMER(WEFT_RX_MSEC(1), WEFT_RX_MSEC(3), BIT(THREE));
  timers[2] = (weft_rx_timer)WEFT_RX_TIMER(WEFT_RX_MSEC(1), WEFT_RX_MSEC(6), BIT(SIX));
  weft_rx_programs[0] =
      (weft_rx_program){.name = "static", .count = 5, .ranges = 1, .shutdown = BIT(END)};
#else
  weft_rx_programs[0] =
      (weft_rx_program){.name = "static", .count = 5, .slots = 8, .loop = 4, .shutdown = BIT(END)};
#endif
}
static void run(int64_t timeout) {
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.fast = true;
  o.timeout_ns = timeout;
  CHECK(weft_rx_run(&o) == 0);
}
static void trace(void) {
  stop_at = 0;
  run(WEFT_RX_MSEC(13));
  CHECK(!strcmp(
      said,
      "two@0.0 three@1.0 six@1.0 two@2.0 even@2.0 three@4.0 two@4.0 two@6.0 even@6.0 three@7.0 six@7.0 two@8.0 three@10.0 two@10.0 "
      "even@10.0 two@12.0 three@13.0 six@13.0 end@13.0 "));
  run(WEFT_RX_USEC(4500)); /* The stop tag is not the tag of a slot. */
  CHECK(!strcmp(said, "two@0.0 three@1.0 six@1.0 two@2.0 even@2.0 three@4.0 two@4.0 end@4.5.0 "));
  run(0);
  CHECK(!strcmp(said, "two@0.0 end@0.0 "));
}
static void request(void) {
  stop_at = WEFT_RX_MSEC(6);
  run(-1);
  CHECK(!strcmp(
      said,
      "two@0.0 three@1.0 six@1.0 two@2.0 even@2.0 three@4.0 two@4.0 two@6.0 even@6.0 end@6.1 "));
}
static void real_time(void) {
  stop_at = 0;
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.timeout_ns = WEFT_RX_MSEC(6);
  int64_t before = weft_rx_clock_ns();
  CHECK(weft_rx_run(&o) == 0 && weft_rx_clock_ns() - before >= WEFT_RX_MSEC(6));
  CHECK(!strcmp(
      said,
      "two@0.0 three@1.0 six@1.0 two@2.0 even@2.0 three@4.0 two@4.0 two@6.0 even@6.0 end@6.0 "));
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(trace);
  TEST(request);
  TEST(real_time);
  return check_end();
}
