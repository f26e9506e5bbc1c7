/* rules.c: one scenario for each rule of SEMANTICS.md, part III, in logical time (fast). */
#include "kit.h"

typedef WEFT_RX_PORT(int) int_port;
typedef WEFT_RX_ACTION(int) int_action;
typedef WEFT_RX_DELAY(int_port) int_delay;
static void teller(void *self) { tell((const char *)self); }

/* ---- R1, R3, R5, R12: start, order, timers, stop --------------------------------------------- */
static void timers_and_stop(void) {
  kit_new();
  unsigned a = reaction(teller, "a"), b = reaction(teller, "b"), s = reaction(teller, "start"),
           e = reaction(teller, "end");
  static weft_rx_timer t2, t3;
  t2 = (weft_rx_timer)WEFT_RX_TIMER(0, MS(2), on(1, b));
  t3 = (weft_rx_timer)WEFT_RX_TIMER(MS(1), MS(3), on(1, a));
  timer(&t2), timer(&t3);
  weft_rx_programs[0].startup = on(1, s);
  weft_rx_programs[0].shutdown = on(1, e);
  run_for(MS(8));
  EXPECT("b@0.0 start@0.0 a@1.0 b@2.0 a@4.0 b@4.0 b@6.0 a@7.0 b@8.0 end@8.0 ");
}
static void timeout_of_zero(void) { /* R12: the timeout is 0 */
  kit_new();
  unsigned s = reaction(teller, "start"), e = reaction(teller, "end");
  weft_rx_programs[0].startup = on(1, s);
  weft_rx_programs[0].shutdown = on(1, e);
  run_for(0);
  EXPECT("start@0.0 end@0.0 ");
}
static void nothing_left(void) { /* R12: without keepalive the run stops at the microstep after
                                    the last tag; a later timeout does not delay the stop */
  kit_new();
  unsigned s = reaction(teller, "start"), e = reaction(teller, "end");
  weft_rx_programs[0].startup = on(1, s);
  weft_rx_programs[0].shutdown = on(1, e);
  run_for(-1);
  EXPECT("start@0.0 end@0.1 ");
  run_for(MS(100));
  EXPECT("start@0.0 end@0.1 ");
}
static void a_timer_of_one_run_over_the_other(
    void) { /* many timers with equal and different periods: the order of the queue */
  kit_new();
  static weft_rx_timer t[12];
  static char name[12][4];
  for (int i = 0; i < 12; i++) {
    snprintf(name[i], 4, "%c", 'a' + i);
    unsigned r = reaction(teller, name[i]);
    t[i] = (weft_rx_timer)WEFT_RX_TIMER(MS(i % 3), MS(1 + i / 2), on(1, r));
    timer(&t[i]);
  }
  run_for(MS(40));
  char wanted[sizeof said];
  size_t n = 0;
  for (int ms = 0; ms <= 40; ms++)
    for (int i = 0; i < 12; i++)
      if (ms >= i % 3 && (ms - i % 3) % (1 + i / 2) == 0)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%c@%d.0 ", 'a' + i, ms);
  EXPECT(wanted);
}
static weft_rx_once *to_start[2];
static void start_both(void) { weft_rx_start_once(to_start[0]), weft_rx_start_once(to_start[1]); }
static void once_and_ratio(void) { /* R5: onces and ratios */
  kit_new();
  static weft_rx_once once;
  static weft_rx_ratio third;
  unsigned o = reaction(teller, "once"), r = reaction(teller, "third");
  once = (weft_rx_once)WEFT_RX_ONCE(MS(2), on(1, o));
  third = (weft_rx_ratio)WEFT_RX_RATIO(0, WEFT_RX_TICKS(MS(10)), 3, on(1, r));
  weft_rx_programs[0].start = start_both;
  to_start[0] = &once, to_start[1] = &third.once;
  run_for(MS(11));
  EXPECT("third@0.0 once@2.0 third@3.33333.0 third@6.66667.0 third@10.0 ");
}

/* ---- R4: set --------------------------------------------------------------------------------- */
static struct { int_port out; int n; } src;
static struct { int_port *in; const char *name; } dst[2];
static void set_twice(void *self) {
  (void)self;
  src.n++;
  if (src.n % 2 == 0) return;
  weft_rx_set(&src.out, src.n);
  weft_rx_set(&src.out, src.n * 10);
}
static void show(void *self) {
  int i = (int)(intptr_t)self;
  say("%s=%d,%d@%g ", dst[i].name, dst[i].in->value, dst[i].in->is_present,
      (double)weft_rx_elapsed() / 1e6);
}
static void last_set_wins(void) {
  kit_new();
  unsigned w = reaction(set_twice, 0), r0 = reaction(show, (void *)0),
           r1 = reaction(show, (void *)1);
  src.out = (int_port)WEFT_RX_OUT(on(1, r0));
  src.n = 0;
  for (int i = 0; i < 2; i++) dst[i].in = &src.out, dst[i].name = i ? "watch" : "read";
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(0, MS(1), on(2, w, r1));
  timer(&t);
  run_for(MS(2));
  EXPECT("read=10,1@0 watch=10,1@0 watch=10,0@1 read=30,1@2 watch=30,1@2 ");
}

/* ---- R6, R7, R8: logical actions ------------------------------------------------------------- */
static int_action act;
static int script[32], script_length,
    script_at; /* pairs of extra ms and a value; ms below -1 mean the end of this call */
static void play(void *self) {
  (void)self;
  while (script_at < script_length) {
    int extra = script[script_at], value = script[script_at + 1];
    script_at += 2;
    if (extra == -2) break;
    int code = weft_rx_schedule_copy(&act, MS(extra), &value, 1);
    if (code <= 0) say("refused%d ", value);
  }
}
static void heard(void *self) {
  (void)self;
  if (act.is_present)
    say("%d@%g.%u ", act.value, (double)weft_rx_elapsed() / 1e6, weft_rx_microstep());
}
static void with_action(int64_t min_delay, int64_t spacing, int policy, int n, ...) {
  kit_new();
  unsigned p = reaction(play, 0), h = reaction(heard, 0);
  act = (int_action)WEFT_RX_VALUE_INIT(int, on(1, h), min_delay, spacing, (uint8_t)policy,
                                       WEFT_RX_LOGICAL);
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(0, MS(10), on(1, p));
  timer(&t);
  va_list list;
  va_start(list, n);
  for (int i = 0; i < n; i++) script[i] = va_arg(list, int);
  va_end(list);
  script_length = n, script_at = 0;
  run_for(MS(50));
}
static void delays_of_actions(void) {
  with_action(0, 0, WEFT_RX_DEFER, 8, 0, 1, 5, 2, 3, 3, -1,
              4); /* R6: -1 ms counts as 0. Event 1 is at microstep 1, so this event goes to 2
                   * (R7). */
  EXPECT("1@0.1 4@0.2 3@3.0 2@5.0 ");
  with_action(MS(2), 0, WEFT_RX_DEFER, 4, 0, 1, 1, 2);
  EXPECT("1@2.0 2@3.0 ");
}
static void same_tag(void) { /* R7: the order of scheduling is kept, and no event is lost */
  with_action(0, 0, WEFT_RX_DEFER, 10, 4, 1, 4, 2, 4, 3, 7, 4, 4, 5);
  EXPECT("1@4.0 2@4.1 3@4.2 5@4.3 4@7.0 ");
  with_action(0, 0, WEFT_RX_DEFER, 6, 0, 1, 0, 2, 0, 3);
  EXPECT("1@0.1 2@0.2 3@0.3 ");
}
static void spacing(void) { /* R8: spacing */
  with_action(0, MS(3), WEFT_RX_DEFER, 6, 1, 1, 1, 2, 2, 3);
  EXPECT("1@1.0 2@4.0 3@7.0 ");
  with_action(0, MS(3), WEFT_RX_DROP, 8, 1, 1, 2, 2, 3, 3, 4, 4);
  EXPECT("refused2 refused3 1@1.0 4@4.0 ");
  with_action(0, MS(3), WEFT_RX_REPLACE, 8, 1, 1, 2, 2, 3, 3, 4, 4);
  EXPECT("refused2 refused3 3@1.0 4@4.0 ");
  with_action(0, MS(3), WEFT_RX_UPDATE, 8, 1, 1, 2, 2, 3, 3, 9, 4);
  EXPECT("3@3.0 4@9.0 ");
  with_action(0, MS(3), WEFT_RX_UPDATE, 4, 0, 1, 1,
              2); /* The event of the next microstep is removed too. */
  EXPECT("2@1.0 ");
  with_action(0, MS(12), WEFT_RX_REPLACE, 8, 0, 1, -2, 0, 0, 2, 0,
              3); /* The last event has been handled, so this event is deferred; while it waits
                   * it is replaced. */
  EXPECT("1@0.1 refused3 3@12.0 ");
}

/* ---- R10: delays ----------------------------------------------------------------------------- */
static int_delay later;
static void count_out(void *self) {
  (void)self;
  weft_rx_set(&src.out, ++src.n);
}
static void arrived(void *self) {
  (void)self,
      say("%d@%g.%u ", later.port.value, (double)weft_rx_elapsed() / 1e6, weft_rx_microstep());
}
static void with_delay(int64_t ns) {
  kit_new();
  unsigned w = reaction(count_out, 0), r = reaction(arrived, 0),
           d = reaction(weft_rx_delay_send, &later.delay);
  memset(&later, 0, sizeof later);
  src.out = (int_port)WEFT_RX_OUT(on(1, d));
  src.n = 0;
  weft_rx_wire_delay(&later.delay, &later.port, sizeof later.port.value, on(1, r), &src.out, ns,
                     WEFT_RX_AFTER, 0);
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(0, MS(1), on(1, w));
  timer(&t);
  run_for(MS(4));
}
static void after(void) {
  with_delay(0);
  EXPECT("1@0.1 2@1.1 3@2.1 4@3.1 ");
  with_delay(WEFT_RX_USEC(2500)); /* Several values are under way together. */
  EXPECT("1@2.5.0 2@3.5.0 ");
  with_delay(MS(1));
  EXPECT("1@1.0 2@2.0 3@3.0 4@4.0 ");
}

/* ---- R12, R13: a request --------------------------------------------------------------------- */
static void ask_to_stop(void *self) {
  (void)self;
  tell("ask");
  int v = 1;
  CHECK(weft_rx_schedule_copy(&act, MS(5), &v, 1) > 0); /* The event is dropped at the stop. */
  weft_rx_request_stop();
  weft_rx_request_stop();
  /* The next event comes at the stop tag, where it is present. */
  CHECK(weft_rx_schedule_copy(&act, 0, &v, 1) > 0);
}
static void last_words(void *self) {
  (void)self;
  tell("end");
  int v = 2;
  CHECK(weft_rx_schedule_copy(&act, 0, &v, 1) == 0); /* R13: at the stop tag nothing is scheduled */
  weft_rx_request_stop();
}
static void stop_on_request(void) {
  kit_new();
  unsigned a = reaction(ask_to_stop, 0), h = reaction(heard, 0), e = reaction(last_words, 0);
  act = (int_action)WEFT_RX_VALUE_INIT(int, on(1, h), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(MS(3), MS(1), on(1, a));
  timer(&t);
  weft_rx_programs[0].shutdown = on(1, e);
  run_for(MS(20));
  EXPECT("ask@3.0 1@3.1 end@3.1 ");
}

/* ---- R11: deadlines -------------------------------------------------------------------------- */
static void missed(void *self) { (void)self, tell("missed"); }
static void always_missed(void *self) {
  WEFT_RX_DEADLINE(self, 0, missed);
  tell("met");
}
static void never_missed(void *self) { /* With `fast`, physical time is behind logical time. */
  WEFT_RX_DEADLINE(self, WEFT_RX_SEC(3600), missed);
  CHECK(!weft_rx_check(self, &weft_rx_limit_here, true));
  tell("met");
}
static void deadlines(void) {
  kit_new();
  unsigned a = reaction(always_missed, 0), b = reaction(never_missed, 0);
  weft_rx_programs[0].startup = on(2, a, b);
  run_for(-1);
  EXPECT("missed@0.0 met@0.0 ");
}

/* ---- R15: tokens ----------------------------------------------------------------------------- */
typedef WEFT_RX_TOKEN_PORT(int *) ints_port;
typedef WEFT_RX_TOKEN_ACTION(int *) ints_action;
typedef WEFT_RX_DELAY(ints_port) ints_delay;
static ints_port array;
static ints_action held;
static ints_delay slow;
static int freed;
static void count_free(void *p) { freed++, free(p); }
static void make_array(void *self) {
  (void)self;
  int *v = malloc(3 * sizeof *v);
  for (int i = 0; i < 3; i++) v[i] = i + 1;
  weft_rx_set_array(&array, v, 3);
}
static void scale(void *self) { /* a mutable input */
  ints_port copy = array, *in = &copy;
  weft_rx_make_mutable(in, false);
  for (size_t i = 0; i < in->length; i++) in->value[i] *= (int)(intptr_t)self;
  say("scaled %d,%d,%d ", in->value[0], in->value[1], in->value[2]);
  weft_rx_release_mutable(in);
}
static void look(void *self) {
  (void)self;
  say("whole %d,%d,%d ", array.value[0], array.value[1], array.value[2]);
  CHECK(weft_rx_schedule_token(&held, MS(2), array.token) > 0);
}
static void look_later(void *self) {
  (void)self, say("held %zu: %d@%g ", held.length, held.value[2], (double)weft_rx_elapsed() / 1e6);
}
static void look_delayed(void *self) {
  (void)self, say("delayed %d@%g ", slow.port.value[2], (double)weft_rx_elapsed() / 1e6);
}
static void tokens(void) {
  kit_new();
  unsigned m = reaction(make_array, 0), s = reaction(scale, (void *)10), l = reaction(look, 0),
           r = reaction(look_later, 0), d = reaction(look_delayed, 0),
           send = reaction(weft_rx_delay_send, &slow.delay);
  array = (ints_port)WEFT_RX_TOKEN_OUT(on(3, s, l, send), sizeof(int));
  array.destructor = count_free;
  held =
      (ints_action)WEFT_RX_TOKEN_ACTION_INIT(int, on(1, r), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  memset(&slow, 0, sizeof slow);
  weft_rx_wire_delay(&slow.delay, &slow.port, sizeof slow.port.value, on(1, d), &array, MS(1),
                     WEFT_RX_AFTER, 0);
  static weft_rx_timer t;
  t = (weft_rx_timer)WEFT_RX_TIMER(0, MS(4), on(1, m));
  timer(&t);
  freed = 0;
  run_for(MS(5));
  EXPECT(
      "scaled 10,20,30 whole 1,2,3 delayed 3@1 held 3: 3@2 scaled 10,20,30 whole 1,2,3 delayed 3@5 ");
  CHECK(freed ==
        4); /* two arrays and two copies; the one that is under way at the stop is freed too */
}
static int *last_value;
static void own(void *self) { /* There is only one reader, so the reader gets the token itself. */
  (void)self;
  ints_port copy = array, *in = &copy;
  weft_rx_make_mutable(in, true);
  CHECK(in->value == last_value);
  weft_rx_token *t = weft_rx_writable(&array);
  CHECK(t != array.token); /* Now two parties hold the token, so the reader gets another token,
                            * which it may change. */
  weft_rx_hold_token(t);
  weft_rx_drop_token(t);
  weft_rx_release_mutable(in);
}
static void make_one(void *self) {
  (void)self;
  int *v = malloc(sizeof *v);
  *v = 7;
  last_value = v;
  weft_rx_set(&array, v);
  weft_rx_set(&array, v); /* The same pointer again is the same token. */
  CHECK(array.length == 1 && array.token->ref_count == 1);
}
static void set_again(
    void *self) { /* The last token set at a tag counts; the previous one is freed. */
  (void)self;
  make_one(0), make_one(0);
  CHECK(freed == 1);
}
static void one_reader(void) {
  kit_new();
  unsigned m = reaction(set_again, 0), o = reaction(own, 0);
  array = (ints_port)WEFT_RX_TOKEN_OUT(on(1, o), sizeof(int));
  array.destructor = count_free;
  freed = 0;
  weft_rx_programs[0].startup = on(1, m);
  run_for(-1);
  CHECK(freed == 3);
}
typedef struct { int64_t a, b, c; } wide;
typedef WEFT_RX_ACTION(wide) wide_action;
static wide_action broad;
static void schedule_wide(void *self) {
  (void)self;
  for (int64_t i = 0; i < 3; i++)
    CHECK(weft_rx_schedule_copy(&broad, MS(i), &((wide){i, i + 1, i + 2}), 1) > 0);
}
static void heard_wide(void *self) {
  (void)self, say("%d,%d,%d ", (int)broad.value.a, (int)broad.value.b, (int)broad.value.c);
}
static void wide_values(void) {
  kit_new();
  unsigned s = reaction(schedule_wide, 0), h = reaction(heard_wide, 0);
  broad = (wide_action)WEFT_RX_VALUE_INIT(wide, on(1, h), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  weft_rx_programs[0].startup = on(1, s);
  run_for(MS(1)); /* The third value is still waiting, and is freed. */
  EXPECT("0,1,2 1,2,3 ");
}
/* ---- many microsteps ------------------------------------------------------------------------- */
static weft_rx_void_action again;
static int rounds;
static void go_round(void *self) {
  (void)self;
  if (rounds < 100000) rounds++, weft_rx_schedule(&again, 0);
  else tell("done");
}
static void microsteps(void) { /* R2: there may be more than 2^16 microsteps */
  kit_new();
  unsigned g = reaction(go_round, 0);
  again = (weft_rx_void_action)WEFT_RX_ACTION_INIT(on(1, g), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  weft_rx_programs[0].startup = on(1, g);
  rounds = 0;
  run_for(-1);
  EXPECT("done@0.100000 ");
}

#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(timers_and_stop);
  TEST(timeout_of_zero);
  TEST(nothing_left);
  TEST(a_timer_of_one_run_over_the_other);
  TEST(once_and_ratio);
  TEST(last_set_wins);
  TEST(delays_of_actions);
  TEST(same_tag);
  TEST(spacing);
  TEST(after);
  TEST(stop_on_request);
  TEST(deadlines);
  TEST(tokens);
  TEST(one_reader);
  TEST(wide_values);
  TEST(microsteps);
  return check_end();
}
