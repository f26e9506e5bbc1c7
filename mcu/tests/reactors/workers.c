/* workers.c: R19: a random layered network of reactors is run by 1, 2, 3 and 4 threads; each
 * reactor must have the same sequence of (tag, value).
 *
 * Every reactor folds its inputs into its state, logs the tag and the state, and sets some of its
 * outputs; some reactors schedule actions, some ask for tokens. The log of each reactor is compared
 * with that of a single thread, and a sum over the logs with that of the engine for one core
 * (WORKERS=1).
 */
#ifndef WORKERS
#define WORKERS 4
#endif
enum { LAYERS = 6, WIDE = 9, REACTORS = LAYERS * WIDE, LOGGED = 1 << 10 };
#define WEFT_RX_REACTIONS (54 + 9 + 54)
#define WEFT_RX_TIMERS 9
#define WEFT_RX_EVENTS 64
#define WEFT_RX_TOKENS 1
#define WEFT_RX_WORKERS WORKERS
#define WEFT_RX_TABLE
#include "weft_mcu/reactors.h"
#include "../host/check.h"

typedef WEFT_RX_PORT(uint32_t) port;
typedef WEFT_RX_TOKEN_PORT(uint32_t *) token_port;
typedef WEFT_RX_ACTION(uint32_t) action;
typedef struct reactor {
  weft_rx_timer t;
  port out;
  token_port text;
  action a;
  uint32_t state, number, inputs[3], logged;
  struct { int64_t time; uint32_t step, state; } log[LOGGED];
} reactor;
static reactor all[REACTORS];
weft_rx_reaction weft_rx_reactions[WEFT_RX_REACTIONS];
weft_rx_index weft_rx_triggers[1 << 12] = {WEFT_RX_END};
weft_rx_range weft_rx_timers[WIDE];
weft_rx_index weft_rx_levels[LAYERS + 3];
weft_rx_program weft_rx_programs[1];
static uint32_t seed, rng;
static uint32_t next_random(uint32_t below) {
  rng = rng * 1664525u + 1013904223u;
  return (rng >> 8) % below;
}
static void note(reactor *r) {
  if (r->logged == LOGGED) return;
  r->log[r->logged].time = weft_rx_elapsed();
  r->log[r->logged].step = weft_rx_microstep();
  r->log[r->logged++].state = r->state;
}
static void fold(void *self) {
  reactor *r = self;
  for (int i = 0; i < 3 && r->number >= WIDE; i++) {
    reactor *from = &all[r->inputs[i]];
    if (from->out.is_present) r->state = r->state * 31 + from->out.value;
    if (from->text.is_present) {
      token_port copy = from->text, *in = &copy;
      weft_rx_make_mutable(in, false);
      in->value[1] += r->number;
      r->state = r->state * 7 + in->value[0] + in->value[1];
      weft_rx_release_mutable(in);
    }
  }
  r->state = r->state * 1664525u + r->number;
  note(r);
  if (r->state >> 7 & 3) weft_rx_set(&r->out, r->state);
  if (!(r->state >> 9 & 3)) {
    uint32_t *v = malloc(2 * sizeof *v);
    v[0] = r->state, v[1] = 1;
    weft_rx_set_array(&r->text, v, 2);
  }
  if (!(r->state >> 11 & 7))
    weft_rx_schedule_copy(&r->a, (r->state >> 14 & 3) * 500000, &r->state, 1);
}
static void heard(void *self) {
  reactor *r = self;
  r->state ^= r->a.value;
  note(r);
}
/* The numbers of reactions: first the actions' reactions (one level), then layer by layer. The two
 * reactions of a reactor are in different levels. */
static weft_rx_trig readers_of(uint32_t number, unsigned *used) {
  unsigned at = *used;
  for (uint32_t r = 0; r < REACTORS; r++)
    for (int i = 0; i < 3; i++)
      if (r >= WIDE && all[r].inputs[i] == number) {
        weft_rx_triggers[(*used)++] = REACTORS + r;
        break;
      }
  weft_rx_triggers[(*used)++] = WEFT_RX_END;
  return WEFT_RX_TRIG(at, 0);
}
void weft_rx_wire(void) {
  rng = seed;
  memset(all, 0, sizeof all);
  unsigned used = 1;
  for (uint32_t n = 0; n < REACTORS; n++) {
    reactor *r = &all[n];
    r->number = n;
    r->state = next_random(1 << 20);
    for (int i = 0; i < 3; i++)
      r->inputs[i] = n >= WIDE ? (n / WIDE - 1) * WIDE + next_random(WIDE) : 0;
    r->a = (action)WEFT_RX_VALUE_INIT(uint32_t, WEFT_RX_TRIG_ONE(n), 500000, 0, WEFT_RX_DEFER,
                                      WEFT_RX_LOGICAL);
    weft_rx_reactions[n] = (weft_rx_reaction){heard, r};
    weft_rx_reactions[REACTORS + n] = (weft_rx_reaction){fold, r};
    if (n < WIDE) {
      r->t = (weft_rx_timer)WEFT_RX_TIMER(0, (1 + next_random(3)) * 1000000,
                                          WEFT_RX_TRIG_ONE(REACTORS + n));
      weft_rx_timers[n] = (weft_rx_range){&r->t, 1, 0};
    }
  }
  for (uint32_t n = 0; n < REACTORS; n++) {
    all[n].out = (port)WEFT_RX_OUT(readers_of(n, &used));
    all[n].text = (token_port)WEFT_RX_TOKEN_OUT(all[n].out.trig, sizeof(uint32_t));
  }
  weft_rx_levels[0] = 0;
  for (int l = 0; l <= LAYERS; l++) weft_rx_levels[l + 1] = REACTORS + l * WIDE;
  weft_rx_programs[0] = (weft_rx_program){
      .name = "network", .count = 2 * REACTORS, .ranges = WIDE, .levels = LAYERS + 1};
}
static reactor one[REACTORS];
static void run(unsigned workers) {
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.fast = true;
  o.timeout_ns = WEFT_RX_MSEC(60);
  o.workers = workers;
  CHECK(weft_rx_run(&o) == 0);
}
static void same_with_any_number(void) {
  for (seed = 1; seed <= 5; seed++) {
    run(1);
    memcpy(one, all, sizeof all);
    uint32_t events = 0;
    for (unsigned w = 2; w <= WORKERS; w++) {
      run(w);
      for (int n = 0; n < REACTORS; n++) {
        CHECK(all[n].logged == one[n].logged && !memcmp(all[n].log, one[n].log, sizeof all[n].log));
        events += all[n].logged;
      }
    }
    CHECK(WORKERS == 1 || events > 1000);
  }
  uint32_t sum = 0; /* the engine for one core (WORKERS=1) must log the same sum */
  for (int n = 0; n < REACTORS; n++)
    for (uint32_t i = 0; i < one[n].logged; i++)
      sum = sum * 31 + one[n].log[i].state + (uint32_t)(one[n].log[i].time / 1000) +
            one[n].log[i].step;
  CHECK(sum == 0x0c3072c3);
}
#include "weft_mcu/reactors_run.h"
int main(void) {
  TEST(same_with_any_number);
  return check_end();
}
