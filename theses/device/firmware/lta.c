/* lta: the ball's controller in the style of programs for LTA, through weft_mcu/lta.h: four actors
 * in one queue that both cores serve.
 *
 * Invariants
 *  1. The motor's loop drives everything else: after each toggle it schedules the main actor at
 *     once, which schedules the button or the photogates. Therefore no poll happens just before a
 *     step is due (the thesis, 8.5).
 *  2. State is owned by the actor that is named beside the state; actors inform each other by
 *     scheduling actions with arguments.
 *  3. A fifth actor, the console, prints; no actor waits for the UART.
 */
#include "controller.h"
#include "weft_mcu/lta.h"

enum { MOTOR, MAIN, BUTTON, SENSORS, CONSOLE_ACTOR, ACTORS, EVENTS = 24, CONSOLE_PERIOD = 500 };
/* A gate is polled once in each toggle, so an edge is noticed half a period late on average. */
enum { POLL_DELAY = 31 };
static event_queue_t queue;
volatile uint32_t step_due;

static void main_loop(uint64_t now, size_t actor, void *position);
static void check_button(uint64_t now, size_t actor, void *arg);
static void check_sensors(uint64_t now, size_t actor, void *arg);
static void button_pressed(uint64_t now, size_t actor, void *arg);

/* ---- motor ----------------------------------------------------------------------------------- */
static motor stepper;
static command order;

static void motor_set_fast(uint64_t now, size_t actor, void *fast) {
  (void)now, (void)actor;
  order.fast = (uint32_t)(uintptr_t)fast;
}
static void motor_set_target_position(uint64_t now, size_t actor, void *position) {
  (void)now, (void)actor;
  order.aim_position = (uint32_t)(uintptr_t)position;
}
static void motor_set_target_time(uint64_t now, size_t actor, void *time) {
  (void)now, (void)actor;
  order.aim_time = (uint32_t)(uintptr_t)time;
}
static void motor_loop(uint64_t now, size_t actor, void *arg) {
  (void)actor, (void)arg;
  step_due = (uint32_t)now;
  pin_toggle(PIN_STEP);
  stepper.position++;
  uint32_t delay = motor_next_delay(&stepper, &order, (uint32_t)now);
  schedule_event(&queue, now + delay, MOTOR, motor_loop, 0);
  /* The position's top bit is set if the disc is at full speed. */
  uint32_t at = stepper.position | (stepper.period == PERIOD_FAST ? 1u << 31 : 0);
  schedule_event(&queue, now, MAIN, main_loop, (void *)(uintptr_t)at);
}

/* ---- main ------------------------------------------------------------------------------------ */
static enum state state;
static uint64_t drop_ends, last_used, next_report;

static void enter(enum state to) {
  state = to;
  say(state_names[to]);
}
static void arm(uint64_t now) {
  pin_high(PIN_MAGNET);
  schedule_event(&queue, now, MOTOR, motor_set_fast, (void *)1);
  last_used = now;
  enter(ARMED);
}
static void main_loop(uint64_t now, size_t actor, void *arg) {
  (void)actor;
  uint32_t at = (uint32_t)(uintptr_t)arg, position = at & ~(1u << 31);
  if (state == ARMED && now - last_used > UNUSED) {
    pin_low(PIN_MAGNET);
    schedule_event(&queue, now, MOTOR, motor_set_fast, 0);
    enter(IDLE);
  } else if (state == AIMING && at != position && is_mark(position)) {
    pin_low(PIN_MAGNET);
    uint32_t arrival = (uint32_t)now + before_disc[E0];
    schedule_event(&queue, now, MOTOR, motor_set_target_position,
                   (void *)(uintptr_t)(position + drop_toggles()));
    schedule_event(&queue, now, MOTOR, motor_set_target_time, (void *)(uintptr_t)arrival);
    drop_ends = now + before_disc[E0] + AFTER_DROP;
    next_report = now;
    enter(DROPPING);
  } else if (state == DROPPING && now >= drop_ends) {
    schedule_event(&queue, now, MOTOR, motor_set_target_time, 0);
    arm(now);
  }
  if (state == DROPPING && now >= next_report) {
    next_report = now + 10000;
    say_line("position ", position);
  }
  if (state == DROPPING) schedule_event(&queue, now, SENSORS, check_sensors, 0);
  else schedule_event(&queue, now, BUTTON, check_button, 0);
}
static void button_pressed(uint64_t now, size_t actor, void *arg) {
  (void)actor, (void)arg;
  if (state == IDLE) arm(now);
  else if (state == ARMED) enter(AIMING);
}

/* ---- button ---------------------------------------------------------------------------------- */
static bool button_was = true;
static uint64_t button_changed;

static void check_button(uint64_t now, size_t actor, void *arg) {
  (void)actor, (void)arg;
  bool is = pin_read(PIN_BUTTON);
  if (is == button_was) return;
  if (now - button_changed > DEBOUNCE) {
    button_was = is;
    button_changed = now;
    if (!is) schedule_event(&queue, now, MAIN, button_pressed, 0);
  } else if (is && now - button_changed > DEBOUNCE / 8)
    button_was = is; /* The button was released, not pressed, so no second of waiting begins. */
}

/* ---- sensors --------------------------------------------------------------------------------- */
static bool blocked_was[2];

static void check_sensors(uint64_t now, size_t actor, void *arg) {
  (void)now, (void)actor, (void)arg;
  for (unsigned i = 0; i < 2; i++) {
    bool blocked = pin_read(i ? PIN_SENSE2 : PIN_SENSE1);
    if (blocked == blocked_was[i]) continue;
    blocked_was[i] = blocked;
    uint64_t seen = weft_now64();
    uint32_t arrival = (uint32_t)seen - POLL_DELAY + before_disc[E1 + 2 * i + !blocked];
    schedule_event(&queue, seen, MOTOR, motor_set_target_time, (void *)(uintptr_t)arrival);
  }
}

/* ---- console --------------------------------------------------------------------------------- */
static void console_loop(uint64_t now, size_t actor, void *arg) {
  (void)actor, (void)arg;
  console_drain();
  schedule_event(&queue, now + CONSOLE_PERIOD, CONSOLE_ACTOR, console_loop, 0);
}

static void core1(void) { work(&queue); }

int main(void) {
  pins_init();
  motor_init(&stepper);
  if (event_queue_init(&queue, EVENTS, ACTORS)) weft_panic("ball: no room for the queue");
  say(state_names[IDLE]);
  uint64_t now = weft_now64();
  schedule_event(&queue, now + MOTOR_START, MOTOR, motor_loop, 0);
  schedule_event(&queue, now + CONSOLE_PERIOD, CONSOLE_ACTOR, console_loop, 0);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  work(&queue);
  return 0;
}
