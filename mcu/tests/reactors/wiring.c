/* wiring.c: R22, R24: mistakes in the tables are reported before the start, and no reaction
 * runs; with ticks of 1 us and 32-bit times. */
#define WEFT_TICK_NS 1000
#define WEFT_RX_TIME64 0
#define WEFT_RX_FAST 1
#include "kit.h"
#include <setjmp.h>

static jmp_buf caught;
static const char *panic_text;
WEFT_NORETURN void weft_panic(const char *what) {
  panic_text = what;
  longjmp(caught, 1);
}
static int ran;
static void run_it(void *self) { (void)self, ran++; }
static void refused_with(const char *part, weft_rx_options o) {
  panic_text = "";
  ran = 0;
  if (!setjmp(caught)) (void)weft_rx_run(&o);
  CHECK(strstr(panic_text, part));
  if (!strstr(panic_text, part)) printf("  said: %s\n", panic_text);
  CHECK(ran == 0);
}
static weft_rx_timer t;
static void with_timer(weft_rx_timer wrong) {
  kit_new();
  unsigned r = reaction(run_it, 0);
  t = wrong;
  if (!t.trig) t.trig = on(1, r);
  timer(&t);
}
static void mistakes(void) { /* R24: mistakes are reported */
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.timeout_ns = 0;
  o.fast = true;
  kit_new();
  reaction(0, 0);
  refused_with("no function", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(0, 0, 0));
  refused_with("no period", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(WEFT_RX_SEC(3600), WEFT_RX_MSEC(1), 0));
  refused_with("offset", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_SEC(3600), 0));
  refused_with("horizon", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_MSEC(1), on(1, BASE + 30)));
  refused_with("triggers a reaction that is not there", o);
  kit_new();
  reaction(run_it, 0);
  weft_rx_programs[0].startup = on(1, BASE + 9);
  refused_with("startup or shutdown", o);
  kit_new();
  weft_rx_programs[0].count = WEFT_RX_REACTIONS + 1;
  refused_with("more reactions", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_MSEC(1), 0));
  weft_rx_timers[0].count = 2;
  refused_with("stride", o);
  with_timer((weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_MSEC(1), 0));
  weft_rx_timers[0] = (weft_rx_range){0, 1, 0};
  refused_with("no first", o);
  kit_new();
  o.timeout_ns = WEFT_RX_SEC(3600);
  refused_with("timeout", o);
}
static weft_rx_void_action a;
static int codes[4];
static void schedule_far(void *self) {
  (void)self;
  codes[0] = weft_rx_schedule(&a, WEFT_RX_SEC(3600));
  codes[1] = weft_rx_schedule(&a, WEFT_RX_SEC(2000));
}
static void beyond_the_horizon(void) { /* R22: times beyond the horizon */
  kit_new();
  unsigned s = reaction(schedule_far, 0), r = reaction(run_it, 0);
  a = (weft_rx_void_action)WEFT_RX_ACTION_INIT(on(1, r), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  weft_rx_programs[0].startup = on(1, s);
  ran = 0;
  run_for(-1);
  CHECK(codes[0] == WEFT_E_HORIZON && codes[1] > 0 && ran == 1);
}
static int64_t elapsed_at_end;
static void end_after_nine(void *self) {
  (void)self;
  elapsed_at_end = weft_rx_elapsed();
  if (ran == 10) weft_rx_request_stop();
}
static void times_that_wrap(
    void) { /* 32 bits of us are 71 minutes, so the program runs three hours in steps of 20
             * minutes */
  kit_new();
  unsigned r = reaction(run_it, 0);
  t = (weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_SEC(1200), on(1, r));
  timer(&t);
  unsigned e = reaction(end_after_nine, 0);
  t.trig = on(2, r, e);
  ran = 0;
  run_for(-1);
  CHECK(ran == 10 && elapsed_at_end == WEFT_RX_SEC(9 * 1200));
}
static void rounding(void) { /* R22: rounding */
  CHECK(WEFT_RX_TICKS(1) == 1 && WEFT_RX_TICKS(0) == 0 && WEFT_RX_TICKS(-5) == 0 &&
        WEFT_RX_TICKS(1499) == 1 && WEFT_RX_TICKS(1500) == 2 && WEFT_RX_TICKS(62500) == 63);
  CHECK(weft_rx_ticks(WEFT_RX_SEC(1)) == 1000000);
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(mistakes);
  TEST(beyond_the_horizon);
  TEST(times_that_wrap);
  TEST(rounding);
  return check_end();
}
