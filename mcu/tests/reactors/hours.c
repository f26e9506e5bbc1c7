/* hours.c: R6, R8, R9, R22 if no event comes for longer than half the range of a 32-bit time. Ticks
 * are 1 us, as on a device, and time is virtual. Core 1 stands for the world outside the
 * program. */
#define WEFT_TICK_NS 1000
#define WEFT_RX_TIME64 0
#define WEFT_RX_PHYSICAL 1
#include "kit.h"

#define MINUTES(n) ((uint64_t)(n) * 60000000)
typedef WEFT_RX_ACTION(int) int_action;
static int_action press, later, spaced;
static uint64_t begun;
static int64_t extra;
static const int *presses; /* in minutes after the start; 0 at the end */

static void wait_for_minute(int minute) {
  for (uint64_t t = begun + MINUTES(minute), now; (now = weft_now64()) < t;) {
    weft_arm((uint32_t)(t - now < 1 << 30 ? t : now + (1 << 30)));
    weft_wait();
  }
}
static void outside(void) {
  for (int n = 0; presses[n]; n++) {
    wait_for_minute(presses[n]);
    CHECK(weft_rx_schedule_copy(&press, extra, &n, 1) > 0);
  }
}
static void start_outside(void *self) {
  (void)self;
  begun = weft_now64();
  CHECK(!weft_start_core(outside, 0, 0));
}
/* Write "name minutes.microstep us-late " to the log. */
static void tell_minute(const char *name) {
  say("%s%g.%u %lld ", name, (double)weft_rx_elapsed() / 60e9, weft_rx_microstep(),
      (long long)(weft_rx_physical() - weft_rx_logical()) / 1000);
}
static void on_press(void *self) {
  (void)self;
  tell_minute("press");
  CHECK(!weft_rx_late(WEFT_RX_MSEC(1)));
  weft_rx_schedule_copy(&later, 0, &press.value, 1);
}
static void on_later(void *self) {
  (void)self;
  tell_minute("later");
  if (!presses[later.value + 1]) weft_rx_request_stop();
}
static void run_virtual(void) {
  said_length = 0, said[0] = 0;
  CHECK(weft_rx_run(0) == 0);
  weft_posix_join();
}
static void new_pressed(const int *minutes, int64_t its_extra) {
  kit_new();
  presses = minutes;
  extra = its_extra;
  unsigned s = reaction(start_outside, 0), p = reaction(on_press, 0), l = reaction(on_later, 0);
  press = (int_action)WEFT_RX_VALUE_INIT(int, on(1, p), 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
  later = (int_action)WEFT_RX_VALUE_INIT(int, on(1, l), WEFT_RX_SEC(60), 0, WEFT_RX_DEFER,
                                         WEFT_RX_LOGICAL);
  weft_rx_programs[0].startup = on(1, s);
}
/* R9: the tag of an outside event is the physical time, however long ago the previous event was. */
static void after_a_long_silence(void) {
  static const int minutes[] = {36, 76, 150, 260, 0};
  new_pressed(minutes, 0);
  run_virtual();
  EXPECT("press36.0 0 later37.0 0 press76.0 0 later77.0 0 press150.0 0 later151.0 0 press260.0 0 "
         "later261.0 0 ");
}
/* The same holds beside a timer. The last tag and the event are further apart than 32 bits can
 * express, but both times are near the clock. */
static void tick(void *self) { (void)self, say("tick%g ", (double)weft_rx_elapsed() / 60e9); }
static void far_from_the_last_tag(void) {
  static const int minutes[] = {28, 0};
  new_pressed(minutes, 20 * WEFT_RX_SEC(60));
  static weft_rx_timer half_hour;
  unsigned t = reaction(tick, 0);
  half_hour = (weft_rx_timer)WEFT_RX_TIMER(30 * WEFT_RX_SEC(60), 30 * WEFT_RX_SEC(60), on(1, t));
  timer(&half_hour);
  run_virtual();
  EXPECT("tick30 press48.0 0 later49.0 0 ");
}
/* R8: an event of long ago does not delay a later event. */
static int rounds;
static void each_20_minutes(void *self) {
  (void)self;
  if (rounds % 2 == 0) CHECK(weft_rx_schedule_copy(&spaced, 0, &rounds, 1) > 0);
  if (++rounds == 10) weft_rx_request_stop();
}
static void on_spaced(void *self) { (void)self, say("%d ", spaced.value), tell_minute("@"); }
static void spaced_by_hours(int policy) {
  kit_new();
  rounds = 0;
  static weft_rx_timer t;
  unsigned r = reaction(each_20_minutes, 0), s = reaction(on_spaced, 0);
  t = (weft_rx_timer)WEFT_RX_TIMER(0, 20 * WEFT_RX_SEC(60), on(1, r));
  timer(&t);
  spaced = (int_action)WEFT_RX_VALUE_INIT(int, on(1, s), 0, WEFT_RX_SEC(60), policy, WEFT_RX_LOGICAL);
  run_virtual();
  EXPECT("0 @0.1 0 2 @40.1 0 4 @80.1 0 6 @120.1 0 8 @160.1 0 ");
}
static void spacing_of_long_ago(void) {
  spaced_by_hours(WEFT_RX_DEFER);
  spaced_by_hours(WEFT_RX_DROP);
  spaced_by_hours(WEFT_RX_REPLACE);
  spaced_by_hours(WEFT_RX_UPDATE);
}
/* R8, R22: a spacing defers no event beyond the horizon. */
static void burst(void *self) {
  (void)self;
  int v = 0;
  CHECK(weft_rx_schedule_copy(&spaced, 0, &v, 1) > 0);
  v = 1;
  CHECK(weft_rx_schedule_copy(&spaced, 0, &v, 1) > 0);
  v = 2;
  CHECK(weft_rx_schedule_copy(&spaced, 0, &v, 1) == WEFT_E_HORIZON);
}
static void spaced_then_stop(void *self) {
  on_spaced(self);
  if (spaced.value) weft_rx_request_stop();
}
static void spacing_beyond_the_horizon(void) {
  kit_new();
  unsigned b = reaction(burst, 0), s = reaction(spaced_then_stop, 0);
  spaced = (int_action)WEFT_RX_VALUE_INIT(int, on(1, s), 0, 20 * WEFT_RX_SEC(60), WEFT_RX_DEFER,
                                          WEFT_RX_LOGICAL);
  weft_rx_programs[0].startup = on(1, b);
  run_virtual();
  EXPECT("0 @0.1 0 1 @20.0 0 ");
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  /* The clock's 32 bits must wrap during the run. */
  weft_posix_virtual(((uint64_t)1 << 32) - MINUTES(50));
  TEST(after_a_long_silence);
  TEST(far_from_the_last_tag);
  TEST(spacing_of_long_ago);
  TEST(spacing_beyond_the_horizon);
  return check_end();
}
