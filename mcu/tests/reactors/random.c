/* random.c: random programs are run by the engine and by a slow model of SEMANTICS.md, part III;
 * both traces must be equal. Usage: random [PROGRAMS [FIRST]]
 *
 * A program has nodes in an order. Each node is a reaction, perhaps with a timer, with an action
 * that has a spacing, with inputs from ports of earlier nodes, and with delayed inputs from any
 * node. A body makes its decisions from its state, into which it folds every value that it sees, so
 * any difference shows in every later line of the trace. The model has no queue, no list of present
 * ports and no bitmap: it searches all events for the earliest tag, and goes through all nodes in
 * order.
 */
enum { NODES = 12, INPUTS = 3, DELAYS = NODES, LINES = 4000, WAITING = 1000 };
#ifndef WEFT_RX_REACTIONS
#define WEFT_RX_REACTIONS 40
#endif
#include "kit.h"

typedef struct { int64_t time; uint32_t step, node, state; } line;
typedef struct {
  int offset, period;            /* in ms; period 0 means that there is no timer */
  int min_delay, spacing, policy; /* the action's parameters */
  int inputs[INPUTS], late[2];   /* inputs: nodes before this one; late: delays; -1 means none */
  bool may_stop;
} plan;
static struct { plan nodes[NODES]; struct { int from, ms; } delays[DELAYS]; int timeout; } program;
static uint32_t rng;
static int pick(int below) {
  rng = rng * 1664525u + 1013904223u;
  return (int)((rng >> 8) % (uint32_t)below);
}
static void make_program(uint32_t seed) {
  rng = seed * 2654435761u + 1;
  for (int n = 0; n < NODES; n++) {
    plan *p = &program.nodes[n];
    p->offset = pick(4), p->period = pick(3) ? 0 : 1 + pick(5);
    if (n == 0) p->period = 1 + pick(3);
    p->min_delay = pick(3), p->spacing = pick(2) ? 0 : 1 + pick(4), p->policy = pick(4);
    for (int i = 0; i < INPUTS; i++) p->inputs[i] = n && pick(2) ? pick(n) : -1;
    for (int i = 0; i < 2; i++) p->late[i] = pick(3) ? -1 : pick(DELAYS);
    p->may_stop = !pick(20);
    program.delays[n].from = pick(NODES), program.delays[n].ms = pick(4);
  }
  program.timeout = pick(8) ? 40 + pick(20) : -1;
}

/* ---- the body, the same for model and engine ------------------------------------------------- */
typedef struct {
  bool (*input)(int node, uint32_t *value);
  bool (*delayed)(int delay, uint32_t *value);
  bool (*action)(int node, uint32_t *value);
  void (*set)(int node, uint32_t value);
  int (*schedule)(int node, int extra, uint32_t value);
  void (*stop)(void);
} world;
static uint32_t mix(uint32_t a, uint32_t b) { return (a ^ b) * 0x9e3779b1u + (a >> 15); }
/* If `budget` is false (after many microsteps) the body starts no further activity. */
static void body(const world *w, int n, uint32_t *state, bool budget) {
  const plan *p = &program.nodes[n];
  uint32_t v, s = mix(*state, 1);
  for (int i = 0; i < INPUTS; i++)
    if (p->inputs[i] >= 0 && w->input(p->inputs[i], &v)) s = mix(s, v + (uint32_t)i);
  for (int i = 0; i < 2; i++)
    if (p->late[i] >= 0 && w->delayed(p->late[i], &v)) s = mix(s, v + 10 + (uint32_t)i);
  if (w->action(n, &v)) s = mix(s, v + 20);
  if (s & 3 && budget) w->set(n, s);
  if (!(s >> 2 & 7) && budget) w->set(n, s + 1); /* Only the last set counts. */
  if (!(s >> 5 & 3) && budget)
    for (uint32_t k = 0; k <= (s >> 7 & 1); k++)
      s = mix(s, (uint32_t)(w->schedule(n, (int)(s >> 9 & 3) - 1, s + k) > 0));
  if (p->may_stop && !(s >> 12 & 63)) w->stop();
  *state = s;
}

/* ---- the model ------------------------------------------------------------------------------- */
typedef struct {
  int time;
  uint32_t step;
  int action, delay;
  uint32_t value;
  bool used;
  uint32_t number;
} event;
static struct {
  int time;
  uint32_t step, state[NODES], number;
  event events[WAITING];
  bool out[NODES], late[DELAYS], act[NODES], stopping, stop_asked;
  uint32_t out_value[NODES], late_value[DELAYS], act_value[NODES];
  int last_time[NODES];
  bool spaced[NODES];
  uint32_t last_number[NODES]; /* the number of the event that was scheduled last */
  line lines[LINES];
  int n;
} m;
static event *waiting(uint32_t number) {
  for (int i = 0; i < WAITING; i++)
    if (m.events[i].used && m.events[i].number == number) return &m.events[i];
  return 0;
}
static bool taken(int action, int delay, int time, uint32_t step) {
  for (int i = 0; i < WAITING; i++) {
    event *e = &m.events[i];
    if (e->used && e->action == action && e->delay == delay && e->time == time && e->step == step)
      return true;
  }
  return false;
}
static uint32_t put_event(int action, int delay, int time, uint32_t step, uint32_t value) {
  while (taken(action, delay, time, step)) step++; /* R7: the next free microstep is used */
  for (int i = 0; i < WAITING; i++)
    if (!m.events[i].used) {
      m.events[i] = (event){time, step, action, delay, value, true, ++m.number};
      return m.number;
    }
  fprintf(stderr, "the model has room for %d events\n", WAITING);
  abort();
}
static bool m_input(int n, uint32_t *v) { return *v = m.out_value[n], m.out[n]; }
static bool m_delayed(int d, uint32_t *v) { return *v = m.late_value[d], m.late[d]; }
static bool m_action(int n, uint32_t *v) { return *v = m.act_value[n], m.act[n]; }
static void m_set(int n, uint32_t v) { m.out[n] = true, m.out_value[n] = v; }
static int m_schedule(int n, int extra, uint32_t v) {
  const plan *p = &program.nodes[n];
  if (m.stopping) return 0; /* R13: nothing is scheduled at the stop */
  int delay = p->min_delay + (extra > 0 ? extra : 0), time = m.time + delay;
  uint32_t step = delay ? 0 : m.step + 1;
  if (p->spacing) { /* R8: an event keeps its distance from the last */
    event *last = m.spaced[n] ? waiting(m.last_number[n]) : 0;
    if (last && program.timeout >= 0 && last->time > program.timeout)
      last = 0; /* The event will never be released. */
    if (m.spaced[n] && time < m.last_time[n] + p->spacing) {
      if (p->policy == WEFT_RX_DROP) return 0;
      if (p->policy == WEFT_RX_REPLACE && last) return last->value = v, 0;
      if (p->policy == WEFT_RX_UPDATE && last) last->used = false;
      else time = m.last_time[n] + p->spacing, step = 0;
    }
    m.spaced[n] = true, m.last_time[n] = time;
  }
  m.last_number[n] = put_event(n, -1, time, step, v);
  return 1;
}
static void m_stop(void) { m.stop_asked = true; }
static void run_model(void) {
  static const world w = {m_input, m_delayed, m_action, m_set, m_schedule, m_stop};
  memset(&m, 0, sizeof m);
  for (int n = 0; n < NODES; n++) m.state[n] = (uint32_t)n;
  for (bool first = true; !m.stopping; first = false) {
    int time = INT32_MAX;
    uint32_t step = 0;
    if (first) time = 0;
    else {
      for (int n = 0; n < NODES; n++) { /* the next tick of each timer */
        const plan *p = &program.nodes[n];
        if (!p->period) continue;
        int next = p->offset;
        while (next <= m.time) next += p->period;
        if (next < time) time = next, step = 0;
      }
      for (int i = 0; i < WAITING; i++) {
        event *e = &m.events[i];
        if (e->used && (e->time < time || (e->time == time && e->step < step)))
          time = e->time, step = e->step;
      }
      if (program.timeout >= 0 && time >= program.timeout && !(time == INT32_MAX))
        time = time > program.timeout ? program.timeout : time;
      bool now = m.stop_asked || time == INT32_MAX; /* R12: is this the stop tag? */
      if (now) time = m.time, step = m.step + 1;
      if (time == program.timeout && step == 0) m.stopping = true;
      if (now) m.stopping = true;
    }
    if (first && program.timeout == 0) m.stopping = true;
    m.time = time, m.step = step;
    bool triggered[NODES] = {false};
    memset(m.out, 0, sizeof m.out), memset(m.late, 0, sizeof m.late),
        memset(m.act, 0, sizeof m.act);
    for (int i = 0; i < WAITING; i++) {
      event *e = &m.events[i];
      if (!e->used || e->time != time || e->step != step) continue;
      e->used = false;
      if (e->delay < 0) m.act[e->action] = true, m.act_value[e->action] = e->value;
      else m.late[e->delay] = true, m.late_value[e->delay] = e->value;
    }
    for (int n = 0; n < NODES; n++) {
      const plan *p = &program.nodes[n];
      triggered[n] =
          (p->period && !step && time >= p->offset && (time - p->offset) % p->period == 0) ||
          m.act[n];
      for (int i = 0; i < INPUTS; i++) triggered[n] |= p->inputs[i] >= 0 && m.out[p->inputs[i]];
      for (int i = 0; i < 2; i++) triggered[n] |= p->late[i] >= 0 && m.late[p->late[i]];
      if (!triggered[n] || m.n == LINES) continue;
      body(&w, n, &m.state[n], m.step < 4);
      m.lines[m.n++] = (line){time * 1000000LL, step, (uint32_t)n, m.state[n]};
    }
    for (int d = 0; d < DELAYS && !m.stopping; d++) /* R10: delays pass their values on */
      if (m.out[program.delays[d].from])
        put_event(-1, d, m.time + program.delays[d].ms, program.delays[d].ms ? 0 : m.step + 1,
                  m.out_value[program.delays[d].from]);
  }
}

/* ---- the engine ------------------------------------------------------------------------------ */
typedef WEFT_RX_PORT(uint32_t) port;
typedef WEFT_RX_ACTION(uint32_t) action;
typedef WEFT_RX_DELAY(port) delay;
static struct { weft_rx_timer t; port out; action a; uint32_t state; } node[NODES];
static delay delays[DELAYS];
static line lines[LINES];
static int told;
static bool e_input(int n, uint32_t *v) { return *v = node[n].out.value, node[n].out.is_present; }
static bool e_delayed(int d, uint32_t *v) {
  return *v = delays[d].port.value, delays[d].port.is_present;
}
static bool e_action(int n, uint32_t *v) { return *v = node[n].a.value, node[n].a.is_present; }
static void e_set(int n, uint32_t v) { weft_rx_set(&node[n].out, v); }
static int e_schedule(int n, int extra, uint32_t v) {
  return weft_rx_schedule_copy(&node[n].a, MS(extra), &v, 1);
}
static void react(void *self) {
  static const world w = {e_input, e_delayed, e_action, e_set, e_schedule, weft_rx_request_stop};
  int n = (int)(intptr_t)self;
  if (told == LINES) return;
  body(&w, n, &node[n].state, weft_rx_microstep() < 4);
  lines[told++] = (line){weft_rx_elapsed(), weft_rx_microstep(), (uint32_t)n, node[n].state};
}
static weft_rx_trig all_of(const bool *set) {
  unsigned at = triggers_used;
  uint64_t mask = 0;
  for (unsigned r = 0; r < NODES + DELAYS; r++)
    if (set[r]) {
      weft_rx_triggers[triggers_used++] = BASE + r;
      mask |= BASE + r < 64 ? (uint64_t)1 << (BASE + r) : 0;
    }
  weft_rx_triggers[triggers_used++] = WEFT_RX_END;
  return WEFT_RX_TRIG(at, mask);
}
static void run_engine(void) {
  kit_new();
  memset(node, 0, sizeof node), memset(delays, 0, sizeof delays);
  told = 0;
  for (int n = 0; n < NODES; n++) reaction(react, (void *)(intptr_t)n);
  for (int d = 0; d < DELAYS; d++) reaction(weft_rx_delay_send, &delays[d].delay);
  for (int n = 0; n < NODES; n++) {
    const plan *p = &program.nodes[n];
    bool readers[NODES + DELAYS] = {false};
    for (int r = 0; r < NODES; r++)
      for (int i = 0; i < INPUTS; i++) readers[r] |= program.nodes[r].inputs[i] == n;
    for (int d = 0; d < DELAYS; d++) readers[NODES + d] = program.delays[d].from == n;
    node[n].state = (uint32_t)n;
    node[n].out = (port)WEFT_RX_OUT(all_of(readers));
    node[n].a = (action)WEFT_RX_VALUE_INIT(uint32_t, WEFT_RX_TRIG_ONE(BASE + n), MS(p->min_delay),
                                           MS(p->spacing), (uint8_t)p->policy, WEFT_RX_LOGICAL);
    if (!p->period) continue;
    node[n].t =
        (weft_rx_timer)WEFT_RX_TIMER(MS(p->offset), MS(p->period), WEFT_RX_TRIG_ONE(BASE + n));
    timer(&node[n].t);
  }
  for (int d = 0; d < DELAYS; d++) {
    bool readers[NODES + DELAYS] = {false};
    for (int r = 0; r < NODES; r++)
      readers[r] = program.nodes[r].late[0] == d || program.nodes[r].late[1] == d;
    weft_rx_wire_delay(&delays[d].delay, &delays[d].port, sizeof(uint32_t), all_of(readers),
                       &node[program.delays[d].from].out, MS(program.delays[d].ms), WEFT_RX_AFTER,
                       0);
  }
  run_for(program.timeout < 0 ? -1 : MS(program.timeout));
}
static bool same(const line *a, const line *b) {
  return a->time == b->time && a->step == b->step && a->node == b->node && a->state == b->state;
}
static uint32_t programs = 400, first_seed = 1;
static void traces_are_equal(void) {
  int with_steps = 0, ended = 0, total = 0;
  for (uint32_t seed = first_seed; seed < first_seed + programs; seed++) {
    make_program(seed);
    if (program.timeout < 0)
      /* A timer never ends on its own, so the program needs a stop. */
      program.nodes[0].may_stop = true, program.timeout = 200;
    run_model();
    run_engine();
    int i = 0;
    while (i < told && i < m.n && same(&lines[i], &m.lines[i])) i++;
    if (told != m.n || i != told) {
      CHECK(!"a trace differs");
      printf(
          "seed %u: %d lines, the model %d; the first that differs is %d: %lld.%u node %u, the model %lld.%u node %u\n",
          (unsigned)seed, told, m.n, i, (long long)lines[i].time, lines[i].step, lines[i].node,
          (long long)m.lines[i].time, m.lines[i].step, m.lines[i].node);
      if (check_bad > 3) return;
    }
    total += told;
    for (int k = 0; k < told; k++) with_steps += lines[k].step > 0;
    ended += m.stop_asked;
  }
  CHECK(total > (int)programs * 50 && with_steps > total / 20 && ended > 0);
}
#include "weft_mcu/reactors_run.h"
int main(int argc, char **argv) {
  if (argc > 1) programs = (uint32_t)atoi(argv[1]);
  if (argc > 2) first_seed = (uint32_t)atoi(argv[2]);
  TEST(traces_are_equal);
  return check_end();
}
