/* modes.c tests R16 to R18. A reactor has modes A and B; in B there is a reactor with modes X and
 * Y. Each mode has a timer that writes to the log, and an action. */
#define WEFT_RX_MODES 1
#include "kit.h"

static weft_rx_modal outer, inner;
static weft_rx_mode ab[2], xy[2];
weft_rx_modal *weft_rx_modals[] = {&outer, &inner, 0};
weft_rx_mode *weft_rx_mode_of[WEFT_RX_REACTIONS + 1];
typedef WEFT_RX_ACTION(int) int_action;
static weft_rx_timer ticks[4], turn;
static int_action late[2];
static int state[2];
static struct { weft_rx_mode *to; int how; } turns[16];
static int turn_at;
static const char *const tick_names[] = {"a", "b", "x", "y"};

static void tick(void *self) { tell(tick_names[(int)(intptr_t)self]); }
static void change(void *self) {
  (void)self;
  if (turns[turn_at].to) weft_rx_set_mode(turns[turn_at].to, turns[turn_at].how);
  turn_at++;
}
static void forget_state(void *self) { *(int *)self = 0; }
static void teller(void *self) { tell((const char *)self); }
static void count_up(void *self) { (void)self, say("n%d ", ++state[1]); }
static void heard(void *self) {
  int_action *a = self;
  say("heard%d@%g.%u ", a->value, (double)weft_rx_elapsed() / 1e6, weft_rx_microstep());
}
static void put(void *self) {
  int_action *a = self;
  int v = a->value + 1;
  weft_rx_schedule_copy(a, MS(4), &v, 1);
}
static unsigned in(weft_rx_mode *mode, unsigned r) {
  weft_rx_mode_of[r] = mode;
  return r;
}
static void set_up(int64_t every) {
  kit_new();
  memset(weft_rx_mode_of, 0, sizeof weft_rx_mode_of);
  outer = (weft_rx_modal){.modes = ab, .count = 2, .initial = &ab[0]};
  inner = (weft_rx_modal){.modes = xy, .count = 2, .initial = &xy[0], .outer = &ab[1]};
  for (int i = 0; i < 2; i++) {
    ab[i] = (weft_rx_mode){.name = i ? "B" : "A", .modal = &outer};
    xy[i] = (weft_rx_mode){.name = i ? "Y" : "X", .modal = &inner};
  }
  unsigned c = reaction(change, 0);
  for (int i = 0; i < 4; i++) {
    weft_rx_mode *mode = i < 2 ? &ab[i] : &xy[i - 2];
    unsigned r = in(mode, reaction(tick, (void *)(intptr_t)i));
    ticks[i] = (weft_rx_timer)WEFT_RX_TIMER_IN(mode, i == 1 ? MS(1) : 0, MS(3), on(1, r));
    timer(&ticks[i]);
  }
  turn = (weft_rx_timer)WEFT_RX_TIMER(every, every, on(1, c));
  timer(&turn);
  turn_at = 0;
  memset(turns, 0, sizeof turns);
}
#define TURN(i, mode, the_how) turns[i].to = (mode), turns[i].how = (the_how)

static void only_the_active_mode_runs(void) {
  set_up(MS(100));
  run_for(MS(7));
  EXPECT("a@0.0 a@3.0 a@6.0 ");
}
static void reset_begins_anew(
    void) { /* R17: the offset counts from the entry; 0 is the entry's tag */
  set_up(MS(4));
  TURN(0, &ab[1], WEFT_RX_RESET);
  TURN(1, &ab[0], WEFT_RX_RESET);
  run_for(MS(11));
  EXPECT("a@0.0 a@3.0 x@4.1 b@5.0 x@7.0 b@8.0 a@8.1 a@11.0 ");
}
static void history_goes_on(void) { /* the remaining times: a had 2 ms left at 4, b 3 ms at 8 and
                                     * x 2 ms */
  set_up(MS(4));
  TURN(0, &ab[1], WEFT_RX_HISTORY);
  TURN(1, &ab[0], WEFT_RX_HISTORY);
  TURN(2, &ab[1], WEFT_RX_HISTORY);
  run_for(MS(15));
  EXPECT("a@0.0 a@3.0 x@4.1 b@5.0 x@7.0 b@8.0 a@10.0 x@14.0 b@15.0 ");
}
static void reset_of_itself(void) {
  set_up(MS(4));
  TURN(0, &ab[0], WEFT_RX_RESET);
  run_for(MS(8));
  EXPECT("a@0.0 a@3.0 a@4.1 a@7.0 ");
}
static void inner_modes(
    void) { /* After a reset of the outer mode everything is as at the start; after its history
             * everything is as it was left. */
  set_up(MS(2));
  TURN(0, &ab[1], WEFT_RX_RESET);
  TURN(1, &xy[1], WEFT_RX_RESET);
  TURN(2, &ab[0], WEFT_RX_HISTORY);
  TURN(3, &ab[1], WEFT_RX_HISTORY);
  TURN(4, &ab[0], WEFT_RX_HISTORY);
  TURN(5, &ab[1], WEFT_RX_RESET);
  run_for(MS(13));
  EXPECT("a@0.0 x@2.1 b@3.0 y@4.1 b@6.0 a@7.0 y@9.0 a@12.0 x@12.1 b@13.0 ");
}
static void last_set_mode_wins(void) {
  set_up(MS(4));
  unsigned again = reaction(change, 0);
  turn.trig = on(2, BASE + 0u, again);
  TURN(0, &ab[1], WEFT_RX_RESET);
  TURN(1, &ab[0], WEFT_RX_HISTORY);
  run_for(MS(7));
  EXPECT("a@0.0 a@3.0 a@6.0 ");
}
static void startup_reset_shutdown(void) { /* R18; reset state */
  set_up(MS(2));
  unsigned sa = in(&ab[0], reaction(teller, "startA")), sb = in(&ab[1], reaction(teller, "startB")),
           sy = in(&xy[1], reaction(teller, "startY")), rb = in(&ab[1], reaction(teller, "resetB")),
           ea = in(&ab[0], reaction(teller, "endA")), eb = in(&ab[1], reaction(teller, "endB")),
           ey = in(&xy[1], reaction(teller, "endY")), n = in(&ab[1], reaction(count_up, 0));
  ab[0].startup = on(1, sa), ab[1].startup = on(1, sb), xy[1].startup = on(1, sy);
  ab[1].reset = on(1, rb);
  ab[0].shutdown = on(1, ea), ab[1].shutdown = on(1, eb), xy[1].shutdown = on(1, ey);
  ab[1].self = &state[1], ab[1].reset_state = forget_state;
  state[1] = 0;
  for (int i = 0; i < 4; i++) ticks[i].trig = i == 1 ? on(1, n) : on(0);
  TURN(0, &ab[1], WEFT_RX_HISTORY); /* n1 comes at 3 */
  TURN(1, &ab[0], WEFT_RX_RESET);
  TURN(2, &ab[1], WEFT_RX_HISTORY); /* 2 of 3 ms remain: n2 at 8 */
  TURN(3, &ab[1], WEFT_RX_RESET);   /* n1 comes at 9 */
  TURN(4, &ab[0], WEFT_RX_RESET);
  run_for(MS(11));
  EXPECT("startA@0.0 startB@2.1 n1 n2 resetB@8.1 n1 endA@11.0 endB@11.0 ");
}
static void actions_wait(void) { /* an event of a mode that is left waits; a reset drops it */
  set_up(MS(2));
  unsigned p = in(&ab[0], reaction(put, &late[0])), h = in(&ab[0], reaction(heard, &late[0]));
  late[0] = (int_action)WEFT_RX_VALUE_INIT(int, on(1, h), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  late[0].action.mode = &ab[0];
  for (int i = 0; i < 4; i++) ticks[i].trig = on(0);
  ab[0].startup = on(2, p, p);
  TURN(0, &ab[1], WEFT_RX_RESET); /* A is left at 2, with 2 ms to wait */
  TURN(1, 0, 0);
  TURN(2, &ab[0], WEFT_RX_HISTORY); /* A is entered again at 6 */
  run_for(MS(9));
  EXPECT("heard1@8.0 ");
  set_up(MS(2));
  p = in(&ab[0], reaction(put, &late[0])), h = in(&ab[0], reaction(heard, &late[0]));
  late[0] = (int_action)WEFT_RX_VALUE_INIT(int, on(1, h), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL);
  late[0].action.mode = &ab[0];
  for (int i = 0; i < 4; i++) ticks[i].trig = on(0);
  ab[0].startup = on(1, p);
  TURN(0, &ab[1], WEFT_RX_RESET);
  TURN(1, &ab[0], WEFT_RX_RESET);
  run_for(MS(9));
  EXPECT("");
  CHECK(late[0].queued == 0);
}
static weft_rx_once once;
static void onces_of_a_mode(void) {
  set_up(MS(4));
  unsigned o = in(&ab[1], reaction(teller, "once"));
  for (int i = 0; i < 4; i++) ticks[i].trig = on(0);
  once = (weft_rx_once)WEFT_RX_ONCE_IN(&ab[1], MS(1), on(1, o));
  ab[1].onces = &once;
  TURN(0, &ab[1], WEFT_RX_RESET);
  TURN(1, &ab[1], WEFT_RX_RESET);
  run_for(MS(12));
  EXPECT("once@5.0 once@9.0 ");
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(only_the_active_mode_runs);
  TEST(reset_begins_anew);
  TEST(history_goes_on);
  TEST(reset_of_itself);
  TEST(inner_modes);
  TEST(last_set_mode_wins);
  TEST(startup_reset_shutdown);
  TEST(actions_wait);
  TEST(onces_of_a_mode);
  return check_end();
}
