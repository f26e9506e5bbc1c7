/* actors: the ball's controller as Weft actors. The motor runs alone on core 1, everything else on
 * core 0.
 *
 * Invariants
 *  1. Only the motor's own event is ever posted to core 1's queue. It is claimed long before each
 *     step, so that no message, print or photogate delays a step. Core 0 controls the motor by the
 *     words of `command`, each with one writer (core 0); the motor notifies core 0 by an event.
 *  2. A photogate's first edge stamps the time and posts its event SETTLE us ahead; the burst's
 *     other edges leave the event there (WEFT_KEEP). The level after SETTLE shows what happened at
 *     the stamp.
 *  3. No action on core 0 waits: printing goes through the console's ring.
 */
#include "controller.h"
#include "weft_mcu/actors.h"

enum { BUTTON_POLL = 1000, CONSOLE_POLL = 500, SETTLE = 40, REPORT = 10000 };
static weft_queue queue0, queue1;
static weft_actor motor_actor, main_actor, button_actor, console_actor;
static motor stepper;
static command order;
static uint32_t
    aiming; /* set by core 0 to request a mark; the motor answers by clearing this flag and posting
             * let_go */
static uint32_t mark_position;
static enum state state;
volatile uint32_t step_due; /* the time at which the current step is due, for the bench */

/* ---- core 1 ---------------------------------------------------------------------------------- */

static weft_event let_go_event; /* defined below */

WEFT_HOT static uint32_t step(weft_event *e, uint32_t release) {
  (void)e;
  step_due = release;
  pin_toggle(PIN_STEP);
  stepper.position++;
  uint32_t delay = motor_next_delay(&stepper, &order, release);
  if (WEFT_PEEK(aiming) && stepper.period == PERIOD_FAST && is_mark(stepper.position)) {
    mark_position = stepper.position;
    WEFT_POKE(aiming, 0);
    weft_post(&queue0, &let_go_event, release);
  }
  return delay;
}
static weft_event step_event = WEFT_EVENT(step, &motor_actor);
static void core1(void) { weft_work(&queue1); }

/* ---- core 0: the state ----------------------------------------------------------------------- */

static void enter(enum state to) {
  state = to;
  say(state_names[to]);
}
static uint32_t estimates;
static void aim(uint32_t time) {
  estimates++;
  WEFT_POKE(order.aim_time, time);
}

static uint32_t unused(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  if (state != ARMED) return WEFT_DONE;
  pin_low(PIN_MAGNET);
  WEFT_POKE(order.fast, 0);
  enter(IDLE);
  return WEFT_DONE;
}
static weft_event unused_event = WEFT_EVENT(unused, &main_actor);

static void arm(uint32_t now) {
  pin_high(PIN_MAGNET);
  WEFT_POKE(order.fast, 1);
  enter(ARMED);
  weft_post_as(&queue0, &unused_event, now + UNUSED, WEFT_MOVE);
}

static uint32_t landed(weft_event *e, uint32_t release) {
  (void)e;
  WEFT_POKE(order.aim_time, 0);
  say_line("estimates ", estimates);
  arm(release);
  return WEFT_DONE;
}
static weft_event landed_event = WEFT_EVENT(landed, &main_actor);

static uint32_t report(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  if (state != DROPPING) return WEFT_DONE;
  say_line("position ", WEFT_PEEK(stepper.position));
  say_line("period/256 ", WEFT_PEEK(stepper.period));
  return REPORT;
}
static weft_event report_event = WEFT_EVENT(report, &main_actor);

static uint32_t let_go(weft_event *e, uint32_t release) {
  (void)e;
  pin_low(PIN_MAGNET);
  estimates = 0;
  WEFT_POKE(order.aim_position, mark_position + drop_toggles());
  aim(release + before_disc[E0]);
  enter(DROPPING);
  weft_post(&queue0, &report_event, release + REPORT);
  weft_post(&queue0, &landed_event, release + before_disc[E0] + AFTER_DROP);
  return WEFT_DONE;
}
static weft_event let_go_event = WEFT_EVENT(let_go, &main_actor);

static uint32_t pressed(weft_event *e, uint32_t release) {
  (void)e;
  if (state == IDLE) arm(release);
  else if (state == ARMED) {
    enter(AIMING);
    WEFT_POKE(aiming, 1);
  }
  return WEFT_DONE;
}
static weft_event pressed_event = WEFT_EVENT(pressed, &main_actor);

/* ---- core 0: button, photogates, console ----------------------------------------------------- */

static uint32_t poll_button(weft_event *e, uint32_t release) {
  static uint32_t changed;
  static bool was = true;
  (void)e;
  bool is = pin_read(PIN_BUTTON);
  if (is != was && release - changed > DEBOUNCE) {
    was = is;
    changed = release;
    if (!is) weft_post_as(&queue0, &pressed_event, release, WEFT_KEEP);
  } else if (is && !was && release - changed > DEBOUNCE / 8)
    was = is; /* The button was released, not pressed, so no second of waiting begins. */
  return BUTTON_POLL;
}
static weft_event button_event = WEFT_EVENT(poll_button, &button_actor);

typedef struct gate {
  weft_event event;
  uint32_t pin, stamp, blocked_before, free_before;
  bool blocked;
} gate;

static uint32_t gate_settled(weft_event *e, uint32_t release) {
  gate *g = (gate *)(void *)e;
  (void)release;
  uint32_t stamp = g->stamp;
  bool blocked = pin_read(g->pin);
  if (blocked == g->blocked) return WEFT_DONE; /* The edges were only noise. */
  g->blocked = blocked;
  if (state != DROPPING) return WEFT_DONE;
  aim(stamp + (blocked ? g->blocked_before : g->free_before));
  say_line(blocked ? "blocked at " : "free at ", stamp);
  return WEFT_DONE;
}
/* The photogates belong to the main actor: they change the state that this actor reads, and never
 * have work at the same time as the main actor. */
static gate gates[2] = {
  {WEFT_EVENT(gate_settled, &main_actor), PIN_SENSE1, 0, 0, 0, false},
  {WEFT_EVENT(gate_settled, &main_actor), PIN_SENSE2, 0, 0, 0, false},
};

void weft_isr_io_bank0(void);
WEFT_HOT void weft_isr_io_bank0(void) {
  uint32_t now = weft_now32();
  for (unsigned i = 0; i < 2; i++) {
    uint32_t nibble = 4 * (gates[i].pin % 8);
    if (!(WEFT_REG(IO_BANK0_INTR0 + 4 * (PIN_SENSE1 / 8)) >> nibble & 12)) continue;
    pin_irq_ack(gates[i].pin);
    if (!WEFT_PEEK(gates[i].event.next)) gates[i].stamp = now;
    weft_post_as(&queue0, &gates[i].event, now + SETTLE, WEFT_KEEP);
  }
}

static uint32_t console(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  console_drain();
  return CONSOLE_POLL;
}
static weft_event console_event = WEFT_EVENT(console, &console_actor);

int main(void) {
  pins_init();
  motor_init(&stepper);
  gates[0].blocked_before = before_disc[E1], gates[0].free_before = before_disc[E2];
  gates[1].blocked_before = before_disc[E3], gates[1].free_before = before_disc[E4];
  weft_list_init(&queue0, WEFT_SPINLOCK(0));
  weft_list_init(&queue1, WEFT_SPINLOCK(1));
  say(state_names[IDLE]);
  uint32_t now = weft_now32();
  weft_post(&queue1, &step_event, now + MOTOR_START);
  weft_post(&queue0, &button_event, now + BUTTON_POLL);
  weft_post(&queue0, &console_event, now + CONSOLE_POLL);
  pin_irq_both_edges(PIN_SENSE1);
  pin_irq_both_edges(PIN_SENSE2);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(&queue0);
  return 0;
}
