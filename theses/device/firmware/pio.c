/* pio: the ball's controller with programmable IO, which makes the steps; Weft actors on one core
 * set their speed. The motor's actor pushes two pulses at a time, four toggles, as the thesis's
 * third version does, and knows exactly when the toggles will happen.
 *
 * Invariant: the FIFO never runs dry: the actor is released LEAD before the pushed counts are used
 * up, and no other action on this core takes that long.
 */
#include "steps_pio.h"
#include "weft_mcu/actors.h"

enum {
  BUTTON_POLL = 1000,
  CONSOLE_POLL = 500,
  GATE_POLL = 50,
  REPORT = 10000,
  LEAD = 120,
  PULSES_A_PUSH = 2,
  POLL_DELAY = GATE_POLL / 2
};
static weft_queue queue;
static weft_actor main_actor, motor_actor, poll_actor, console_actor;
static motor stepper;
static command order;
static bool aiming;
static uint32_t mark_position;
static enum state state;

/* ---- the motor ------------------------------------------------------------------------------- */

static pulses steps;

static uint32_t let_go(weft_event *e, uint32_t release);
static weft_event let_go_event = WEFT_EVENT(let_go, &main_actor);

static uint32_t push(weft_event *e, uint32_t release) {
  (void)e;
  for (unsigned i = 0; i < PULSES_A_PUSH; i++) {
    uint32_t mark;
    if (!pulse_push(&steps, &stepper, &order, &mark) || !aiming) continue;
    aiming = false;
    mark_position = mark;
    weft_post(&queue, &let_go_event, steps.begins);
  }
  return steps.begins - LEAD - release;
}
static weft_event push_event = WEFT_EVENT(push, &motor_actor);

/* ---- the state ------------------------------------------------------------------------------- */

static void enter(enum state to) {
  state = to;
  say(state_names[to]);
}
static uint32_t unused(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  if (state != ARMED) return WEFT_DONE;
  pin_low(PIN_MAGNET);
  order.fast = 0;
  enter(IDLE);
  return WEFT_DONE;
}
static weft_event unused_event = WEFT_EVENT(unused, &main_actor);

static void arm(uint32_t now) {
  pin_high(PIN_MAGNET);
  order.fast = 1;
  enter(ARMED);
  weft_post_as(&queue, &unused_event, now + UNUSED, WEFT_MOVE);
}
static uint32_t landed(weft_event *e, uint32_t release) {
  (void)e;
  order.aim_time = 0;
  arm(release);
  return WEFT_DONE;
}
static weft_event landed_event = WEFT_EVENT(landed, &main_actor);

static uint32_t report(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  if (state != DROPPING) return WEFT_DONE;
  say_line("position ", stepper.position);
  say_line("period/256 ", stepper.period);
  return REPORT;
}
static weft_event report_event = WEFT_EVENT(report, &main_actor);

static uint32_t poll_gates(weft_event *e, uint32_t release);
static weft_event gates_event = WEFT_EVENT(poll_gates, &poll_actor);

static uint32_t let_go(weft_event *e, uint32_t release) {
  (void)e;
  pin_low(PIN_MAGNET);
  order.aim_position = mark_position + drop_toggles();
  order.aim_time = release + before_disc[E0];
  enter(DROPPING);
  weft_post(&queue, &gates_event, release + GATE_POLL);
  weft_post(&queue, &report_event, release + REPORT);
  weft_post(&queue, &landed_event, release + before_disc[E0] + AFTER_DROP);
  return WEFT_DONE;
}

/* ---- button, photogates, console ------------------------------------------------------------- */

static uint32_t poll_button(weft_event *e, uint32_t release) {
  static uint32_t changed;
  static bool was = true;
  (void)e;
  bool is = pin_read(PIN_BUTTON);
  if (is != was && release - changed > DEBOUNCE) {
    was = is;
    changed = release;
    if (!is && state == IDLE) arm(release);
    else if (!is && state == ARMED) {
      enter(AIMING);
      aiming = true;
    }
  } else if (is && !was && release - changed > DEBOUNCE / 8)
    was = is; /* The button was released, not pressed, so no second of waiting begins. */
  return BUTTON_POLL;
}
static weft_event button_event = WEFT_EVENT(poll_button, &main_actor);

static uint32_t poll_gates(weft_event *e, uint32_t release) {
  static bool was[2];
  (void)e, (void)release;
  for (unsigned i = 0; i < 2; i++) {
    bool blocked = pin_read(i ? PIN_SENSE2 : PIN_SENSE1);
    if (blocked == was[i]) continue;
    was[i] = blocked;
    uint32_t seen = weft_now32() - POLL_DELAY;
    order.aim_time = seen + before_disc[E1 + 2 * i + !blocked];
    say_line(blocked ? "blocked at " : "free at ", seen);
  }
  return state == DROPPING ? GATE_POLL : WEFT_DONE;
}

static uint32_t console(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  console_drain();
  return CONSOLE_POLL;
}
static weft_event console_event = WEFT_EVENT(console, &console_actor);

int main(void) {
  pins_init();
  pio_init();
  motor_init(&stepper);
  stepper.position = 1; /* A pulse begins with its first toggle, which has been made at `begins`. */
  weft_list_init(&queue, WEFT_LOCAL);
  say(state_names[IDLE]);
  uint32_t now = weft_now32();
  steps.begins = now + MOTOR_START;
  weft_post(&queue, &push_event, steps.begins);
  weft_post(&queue, &button_event, now + BUTTON_POLL);
  weft_post(&queue, &console_event, now + CONSOLE_POLL);
  weft_work(&queue);
  return 0;
}
