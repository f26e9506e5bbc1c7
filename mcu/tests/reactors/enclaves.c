/* enclaves.c: R19, R20: two enclaves are linked both ways, in fast time. Each enclave must do what
 * a single engine would do; the test computes this step by step.
 *
 * Enclave 0 sends k at k ms. Enclave 1 receives k 2 ms later and folds the value into its state, as
 * it does at each tick of a timer of its own (0.7 ms). Enclave 1 sends the state back, which
 * arrives 3 ms later.
 */
#define WEFT_RX_REACTIONS 4
#define WEFT_RX_TIMERS 1
#define WEFT_RX_EVENTS 8
#define WEFT_RX_DELAYS 1
#define WEFT_RX_ENCLAVES 2
#define WEFT_RX_LINKS 2
#define WEFT_RX_TABLE
#include "weft_mcu/reactors.h"
#include "../host/check.h"

typedef WEFT_RX_PORT(uint32_t) port;
typedef WEFT_RX_DELAY(port) delay;
enum { LAST = 400 };
static struct { weft_rx_timer t; port out; uint32_t n, got[2 * LAST], at_us[2 * LAST]; } a;
static struct { weft_rx_timer t; port out; uint32_t state; } b;
static delay there, back;
static int64_t stop_at;
static int64_t stopped_at[2];
static uint32_t stopped_step[2];

static void send(void *self) {
  (void)self;
  weft_rx_set(&a.out, a.n % LAST);
  if (stop_at && weft_rx_elapsed() == stop_at) weft_rx_request_stop();
}
static void receive(void *self) {
  (void)self;
  a.got[a.n] = back.port.value;
  a.at_us[a.n++] = (uint32_t)(weft_rx_elapsed() / 1000);
}
static void fold(void *self) {
  (void)self;
  b.state = b.state * 31 + there.port.value;
  weft_rx_set(&b.out, b.state);
}
static void own(void *self) { (void)self, b.state = b.state * 17 + 1; }
static void end(void *self) {
  int i = (int)(intptr_t)self;
  stopped_at[i] = weft_rx_elapsed(), stopped_step[i] = weft_rx_microstep();
}
weft_rx_reaction weft_rx_reactions[] = {
    {receive, 0}, {send, 0}, {weft_rx_delay_send, &there.delay}, {end, (void *)0},
    {fold, 0},    {own, 0},  {weft_rx_delay_send, &back.delay},  {end, (void *)1}};
weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
weft_rx_range weft_rx_timers[] = {{&a.t, 1, 0}, {&b.t, 1, 0}};
const weft_rx_link weft_rx_links[] = {{0, 1, 2000000}, {1, 0, 3000000}};
weft_rx_program weft_rx_programs[2];
#define ONE(r) WEFT_RX_TRIG_ONE(r)
void weft_rx_wire(void) {
  memset(&a, 0, sizeof a), memset(&b, 0, sizeof b), memset(&there, 0, sizeof there),
      memset(&back, 0, sizeof back);
  a.t = (weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_MSEC(1), ONE(1));
  b.t = (weft_rx_timer)WEFT_RX_TIMER(0, WEFT_RX_USEC(700), ONE(1));
  a.out = (port)WEFT_RX_OUT(ONE(2));
  b.out = (port)WEFT_RX_OUT(ONE(2));
  weft_rx_wire_delay(&there.delay, &there.port, sizeof(uint32_t), ONE(0), &a.out, WEFT_RX_MSEC(2),
                     WEFT_RX_AFTER, 1);
  weft_rx_wire_delay(&back.delay, &back.port, sizeof(uint32_t), ONE(0), &b.out, WEFT_RX_MSEC(3),
                     WEFT_RX_AFTER, 0);
  weft_rx_programs[0] = (weft_rx_program){.name = "a", .count = 4, .ranges = 1, .shutdown = ONE(3)};
  weft_rx_programs[1] = (weft_rx_program){.name = "b",
                                          .count = 4,
                                          .first = 4,
                                          .first_range = 1,
                                          .ranges = 1,
                                          .shutdown = ONE(3),
                                          .core = 1};
}
static void expect(unsigned until_ms) {
  uint32_t state = 0, n = 0, back_at[LAST + 1], back_value[LAST + 1], sent[LAST + 1], backs = 0;
  for (uint32_t us = 0; us <= until_ms * 1000; us += 100) {
    if (us % 1000 == 0 &&
        us >= 2000) { /* the value that was sent 2 ms before arrives; the reactions run in order:
                       * fold, own */
      state = state * 31 + sent[us / 1000 - 2];
      back_at[backs] = us + 3000, back_value[backs++] = state;
    }
    if (us % 700 == 0) state = state * 17 + 1;
    if (n < backs && back_at[n] == us) { /* Enclave 0 first receives, then sends. */
      CHECK(n < a.n && a.got[n] == back_value[n] && a.at_us[n] == us);
      n++;
    }
    if (us % 1000 == 0) sent[us / 1000] = n % LAST;
  }
  CHECK(a.n == n && n > 0);
}
static void run(int64_t timeout) {
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.fast = true;
  o.timeout_ns = timeout;
  CHECK(weft_rx_run(&o) == 0);
}
static void same_as_one(void) {
  stop_at = 0;
  for (int round = 0; round < 10; round++) {
    run(WEFT_RX_MSEC(LAST));
    expect(LAST);
    CHECK(stopped_at[0] == WEFT_RX_MSEC(LAST) && stopped_at[1] == WEFT_RX_MSEC(LAST) &&
          stopped_step[0] == 0 && stopped_step[1] == 0);
  }
}
static void stop_together(void) {
  stop_at = WEFT_RX_MSEC(50);
  for (int round = 0; round < 20; round++) {
    run(-1);
    CHECK(stopped_at[0] == stopped_at[1] && stopped_step[0] == stopped_step[1] &&
          stopped_at[0] >= stop_at);
  }
}
static void in_real_time(void) {
  stop_at = 0;
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.timeout_ns = WEFT_RX_MSEC(30);
  int64_t before = weft_rx_clock_ns();
  CHECK(weft_rx_run(&o) == 0);
  CHECK(weft_rx_clock_ns() - before >= WEFT_RX_MSEC(30));
  expect(30);
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(same_as_one);
  TEST(stop_together);
  TEST(in_real_time);
  return check_end();
}
