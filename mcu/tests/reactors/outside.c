/* outside.c: R9, R10, R12, R13, R14: events from other threads, in real time. No check depends on
 * how long anything takes. */
#define WEFT_RX_PHYSICAL 1
#include "kit.h"
#include <pthread.h>

typedef WEFT_RX_PORT(int) int_port;
typedef WEFT_RX_ACTION(int) int_action;
typedef WEFT_RX_TOKEN_ACTION(int *) ints_action;
typedef WEFT_RX_DELAY(int_port) int_delay;
enum { SENDERS = 3, EACH = 300 };
static int_action in[SENDERS];
static ints_action arrays;
static pthread_t threads[SENDERS];
static int got[SENDERS], wrong, refused;
static int64_t last_time, sent_at[SENDERS][EACH];

static void *sender(void *self) {
  int i = (int)(intptr_t)self;
  for (int n = 0; n < EACH; n++) {
    __atomic_store_n(&sent_at[i][n], weft_rx_clock_ns(), __ATOMIC_RELEASE);
    if (weft_rx_schedule_copy(&in[i], 0, &n, 1) <= 0) refused++;
    if (i == 0) {
      int *v = malloc(sizeof *v);
      *v = n;
      weft_rx_schedule_value(&arrays, 0, v, 1);
    }
  }
  return 0;
}
static void start_threads(void *self) {
  (void)self;
  for (int i = 0; i < SENDERS; i++)
    CHECK(!pthread_create(&threads[i], 0, sender, (void *)(intptr_t)i));
}
static void receive(void *self) { /* values come in order, not before they were sent, and tags
                                   * ascend */
  int i = (int)(intptr_t)self;
  int n = in[i].value;
  wrong += n != got[i] || weft_rx_logical() < __atomic_load_n(&sent_at[i][n], __ATOMIC_ACQUIRE) ||
           weft_rx_logical() < last_time || weft_rx_physical() < weft_rx_logical();
  last_time = weft_rx_logical();
  got[i]++;
  int all = 0;
  for (int k = 0; k < SENDERS; k++) all += got[k];
  if (all == SENDERS * EACH) weft_rx_request_stop();
}
static int array_sum;
static void receive_array(void *self) { (void)self, array_sum += arrays.value[0]; }
static void run_real(void) {
  said_length = 0, said[0] = 0;
  CHECK(weft_rx_run(0) == 0);
}
/* R14: when no event is left, the run waits for physical actions, because the program has some. */
static void from_threads(void) {
  kit_new();
  unsigned s = reaction(start_threads, 0);
  for (int i = 0; i < SENDERS; i++) {
    unsigned r = reaction(receive, (void *)(intptr_t)i);
    in[i] =
        (int_action)WEFT_RX_VALUE_INIT(int, on(1, r), 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
    got[i] = 0;
  }
  unsigned a = reaction(receive_array, 0);
  arrays = (ints_action)WEFT_RX_TOKEN_ACTION_INIT(int, on(1, a), 0, 0, WEFT_RX_DEFER,
                                                  WEFT_RX_PHYSICAL_IN(0));
  weft_rx_programs[0].startup = on(1, s);
  wrong = refused = array_sum = 0;
  last_time = 0;
  run_real();
  for (int i = 0; i < SENDERS; i++) pthread_join(threads[i], 0);
  CHECK(wrong == 0 && refused == 0);
  for (int i = 0; i < SENDERS; i++) CHECK(got[i] == EACH);
  CHECK(array_sum <= EACH * (EACH - 1) / 2);
  int v = 1;
  CHECK(weft_rx_schedule_copy(&in[0], 0, &v, 1) == 0); /* R13: the run is over */
  int *gone = malloc(sizeof *gone);
  CHECK(weft_rx_schedule_value(&arrays, 0, gone, 1) == 0); /* The value is freed, too. */
}
/* A thread ends a wait that would last an hour; the timer that is due in an hour never fires. */
static int_action wake;
static void *wake_it(void *self) {
  int v = 7;
  (void)self;
  weft_rx_schedule_copy(&wake, WEFT_RX_MSEC(1), &v, 1);
  return 0;
}
static void start_one(void *self) {
  (void)self;
  CHECK(!pthread_create(&threads[0], 0, wake_it, 0));
}
static void woken(void *self) {
  (void)self;
  say("woken%d ", wake.value);
  weft_rx_request_stop();
}
static void never(void *self) { (void)self, say("never "); }
static void ends_a_wait(void) {
  kit_new();
  unsigned s = reaction(start_one, 0), w = reaction(woken, 0), n = reaction(never, 0);
  wake = (int_action)WEFT_RX_VALUE_INIT(int, on(1, w), WEFT_RX_MSEC(1), 0, WEFT_RX_DEFER,
                                        WEFT_RX_PHYSICAL_IN(0));
  static weft_rx_timer hour;
  hour = (weft_rx_timer)WEFT_RX_TIMER(WEFT_RX_SEC(3600), WEFT_RX_SEC(3600), on(1, n));
  timer(&hour);
  weft_rx_programs[0].startup = on(1, s);
  run_real();
  pthread_join(threads[0], 0);
  EXPECT("woken7 ");
}
/* The policy `drop` keeps the first of many events within the spacing. A reaction may schedule a
 * physical action too. */
static int_action spaced;
static void burst(void *self) {
  (void)self;
  for (int i = 0; i < 5; i++) weft_rx_schedule_copy(&spaced, 0, &i, 1);
}
static void first_only(void *self) { (void)self, say("got%d ", spaced.value); }
static void stop_later(void *self) { (void)self, weft_rx_request_stop(); }
static void drop_from_outside(void) {
  kit_new();
  unsigned b = reaction(burst, 0), f = reaction(first_only, 0), e = reaction(stop_later, 0);
  spaced = (int_action)WEFT_RX_VALUE_INIT(int, on(1, f), 0, WEFT_RX_SEC(100), WEFT_RX_DROP,
                                          WEFT_RX_PHYSICAL_IN(0));
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(WEFT_RX_MSEC(5), WEFT_RX_MSEC(5), on(1, e));
  timer(&t);
  weft_rx_programs[0].startup = on(1, b);
  run_real();
  EXPECT("got0 ");
}
/* A physical connection gives the tag the time of sending. Therefore the tag is not before the
 * sender's clock, and is later than the sender's tag. */
static int_port out;
static int_delay connection;
static int64_t sent;
static void send(void *self) {
  (void)self;
  weft_rx_set(&out, 3);
  sent = weft_rx_physical();
}
static void at_far_end(void *self) {
  (void)self;
  say("%d %d ", connection.port.value, weft_rx_logical() >= sent);
  weft_rx_request_stop();
}
static void physical_connection(void) {
  kit_new();
  unsigned s = reaction(send, 0), d = reaction(weft_rx_delay_send, &connection.delay),
           r = reaction(at_far_end, 0);
  memset(&connection, 0, sizeof connection);
  out = (int_port)WEFT_RX_OUT(on(1, d));
  weft_rx_wire_delay(&connection.delay, &connection.port, sizeof(int), on(1, r), &out, 0,
                     WEFT_RX_PHYSICAL_CONNECTION, 0);
  weft_rx_programs[0].startup = on(1, s);
  run_real();
  EXPECT("3 1 ");
}
/* A reaction that keeps the processor busy makes the next reaction miss its deadline. */
static void busy(void *self) {
  (void)self;
  for (int64_t until = weft_rx_physical() + WEFT_RX_MSEC(3); weft_rx_physical() < until;) {}
}
static void too_late(void *self) { (void)self, say("late "); }
static void in_time(void *self) {
  WEFT_RX_DEADLINE(self, WEFT_RX_MSEC(2), too_late);
  say("in time ");
}
static void deadline_missed(void) {
  kit_new();
  unsigned b = reaction(busy, 0), d = reaction(in_time, 0), e = reaction(stop_later, 0);
  weft_rx_programs[0].startup = on(3, b, d, e);
  run_real();
  EXPECT("late ");
}
/* R9: an event that is scheduled before the start, by main or by an interrupt that is already
 * enabled, is present at the start tag. */
static int_action early;
static void on_early(void *self) {
  (void)self;
  say("early%d ", early.value);
  tell("at");
  if (early.value == 2) weft_rx_request_stop();
}
static void before_the_start(void) {
  kit_new();
  unsigned s = reaction(first_only, 0), e = reaction(on_early, 0);
  early = (int_action)WEFT_RX_VALUE_INIT(int, on(1, e), 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
  spaced = (int_action)WEFT_RX_VALUE_INIT(int, 0, 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
  weft_rx_programs[0].startup = on(1, s);
  for (int i = 1; i <= 2; i++) CHECK(weft_rx_schedule_copy(&early, 0, &i, 1) > 0);
  run_real();
  EXPECT("got0 early1 at@0.0 early2 at@0.1 ");
}
/* R13: at the stop tag no event can be scheduled any more, not even by a reaction. */
static void at_the_end(void *self) {
  (void)self;
  int v = 1;
  say("scheduled%d ", weft_rx_schedule_copy(&spaced, 0, &v, 1));
  int *array = malloc(sizeof *array);
  say("%d ", weft_rx_schedule_value(&arrays, 0, array, 1)); /* The array is freed too. */
}
static void physical_at_the_stop(void) {
  kit_new();
  unsigned s = reaction(stop_later, 0), e = reaction(at_the_end, 0), f = reaction(first_only, 0);
  spaced =
      (int_action)WEFT_RX_VALUE_INIT(int, on(1, f), 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0));
  arrays = (ints_action)WEFT_RX_TOKEN_ACTION_INIT(int, on(1, f), 0, 0, WEFT_RX_DEFER,
                                                  WEFT_RX_PHYSICAL_IN(0));
  weft_rx_programs[0].startup = on(1, s);
  weft_rx_programs[0].shutdown = on(1, e);
  run_real();
  EXPECT("scheduled0 0 ");
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(before_the_start); /* Runs before the start of the first run. */
  TEST(from_threads);
  TEST(ends_a_wait);
  TEST(drop_from_outside);
  TEST(physical_connection);
  TEST(deadline_missed);
  TEST(physical_at_the_stop);
  return check_end();
}
