/* pio: the ball's controller with programmable IO driving the steps, and Weft actors on one core telling it how fast.
 *
 * A state machine takes counts from its FIFO and makes one pulse of each: count + 38 cycles high, as many low. The motor's actor pushes
 * two pulses at a time, four toggles, as the thesis's third version does, and knows exactly when what it pushes will happen: `begins`.
 *
 * Invariants
 *  1. The FIFO never runs dry: the actor is released LEAD before what was pushed has been used up, and nothing on this core takes that
 *     long.
 *  2. `begins` is exact, in microseconds and cycles: it adds up the cycles that were pushed, and the machine takes exactly these.
 */
#include "controller.h"
#include "weft_mcu/actors.h"

enum { BUTTON_POLL = 1000, CONSOLE_POLL = 500, GATE_POLL = 50, REPORT = 10000, LEAD = 120, PULSES_A_PUSH = 2, POLL_DELAY = GATE_POLL / 2 };
enum { CYCLES_A_US = 125, OVERHEAD = 38 };
enum { PIO0 = 0x50200000, PIO_CTRL = PIO0, PIO_FSTAT = PIO0 + 4, PIO_TXF0 = PIO0 + 0x10, PIO_INSTR_MEM = PIO0 + 0x48, SM0_CLKDIV = PIO0 + 0xc8,
       SM0_EXECCTRL = PIO0 + 0xcc, SM0_PINCTRL = PIO0 + 0xdc, SM0_INSTR = PIO0 + 0xd8, RESET_PIO0 = 1u << 10, FUNCTION_PIO0 = 6 };
/* RP2040 datasheet 3.4. A word from the FIFO has a coarse count, of 32 cycles, in its low half and a fine one in its high half. */
static const uint16_t program[] = {
  0x80a0, /*  0: pull block */
  0xa0c7, /*  1: mov isr, osr      keep it for the low half of the pulse */
  0x6030, /*  2: out x, 16 */
  0x6050, /*  3: out y, 16 */
  0xe001, /*  4: set pins, 1 */
  0x1f45, /*  5: jmp x--, 5 [31] */
  0x0086, /*  6: jmp y--, 6 */
  0xa0e6, /*  7: mov osr, isr */
  0x6030, /*  8: out x, 16 */
  0x6150, /*  9: out y, 16 [1]     so that both halves are equal */
  0xe000, /* 10: set pins, 0 */
  0x1f4b, /* 11: jmp x--, 11 [31] */
  0x008c, /* 12: jmp y--, 12; then wrap to 0 */
};
enum { LAST = sizeof program / sizeof *program - 1 };
static weft_queue queue;
static weft_actor main_actor, motor_actor, poll_actor, console_actor;
static motor stepper;
static command order;
static bool aiming;
static uint32_t mark_position;
static enum state state;

static void pio_init(void) {
  WEFT_REG_CLR(RESETS_RESET) = RESET_PIO0;
  while (!(WEFT_REG(RESETS_RESET_DONE) & RESET_PIO0)) {}
  for (unsigned i = 0; i < sizeof program / sizeof *program; i++) WEFT_REG(PIO_INSTR_MEM + 4 * i) = program[i];
  WEFT_REG(SM0_CLKDIV) = 1u << 16;
  WEFT_REG(SM0_EXECCTRL) = LAST << 12;              /* wrap from there to 0 */
  WEFT_REG(SM0_PINCTRL) = 1u << 26 | PIN_STEP << 5; /* set: one pin */
  WEFT_REG(IO_BANK0_GPIO0_CTRL + 8 * PIN_STEP) = FUNCTION_PIO0;
  WEFT_REG(SM0_INSTR) = 0xe081;                  /* set pindirs, 1 */
  WEFT_REG(PIO_CTRL) = 1;
}

/* ---- the motor ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t begins, begins_cycles; /* when the next pulse pushed will begin: us, and cycles in it */

static uint32_t let_go(weft_event *e, uint32_t release);
static weft_event let_go_event = WEFT_EVENT(let_go, &main_actor);

/* One pulse: two toggles of one period. The count is in cycles, 125/256 of a period; what it cuts off is kept. */
static void push_pulse(void) {
  static uint32_t cut; /* 1/256 cycle */
  uint32_t period = motor_next_period(&stepper, &order, begins);
  (void)motor_next_period(&stepper, &order, begins); /* the second toggle's share of the acceleration */
  period = (period + stepper.period) / 2;
  uint32_t scaled = period * CYCLES_A_US + cut, cycles = scaled >> 8;
  cut = scaled & 255;
  uint32_t count = cycles - OVERHEAD;
  WEFT_REG(PIO_TXF0) = count >> 5 | (count & 31) << 16;
  begins_cycles += 2 * cycles;
  begins += begins_cycles / CYCLES_A_US;
  begins_cycles %= CYCLES_A_US;
  stepper.position += 2;
  /* The mark may fall on a pulse's other toggle; the aim is the hole all the same. */
  bool late = is_mark(stepper.position - 1);
  if (aiming && stepper.period == PERIOD_FAST && (late || is_mark(stepper.position))) {
    aiming = false;
    mark_position = stepper.position - late;
    weft_post(&queue, &let_go_event, begins);
  }
}
static uint32_t push(weft_event *e, uint32_t release) {
  (void)e;
  for (unsigned i = 0; i < PULSES_A_PUSH; i++) push_pulse();
  return begins - LEAD - release;
}
static weft_event push_event = WEFT_EVENT(push, &motor_actor);

/* ---- the state ---------------------------------------------------------------------------------------------------------------------- */

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

/* ---- button, photogates, console ---------------------------------------------------------------------------------------------------- */

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
  } else if (is && !was && release - changed > DEBOUNCE / 8) was = is; /* let go: no press, so no second of waiting */
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
  stepper.position = 1; /* a pulse begins with its first toggle: at `begins` it has been made */
  weft_list_init(&queue, WEFT_LOCAL);
  say(state_names[IDLE]);
  uint32_t now = weft_now32();
  begins = now + MOTOR_START;
  weft_post(&queue, &push_event, begins);
  weft_post(&queue, &button_event, now + BUTTON_POLL);
  weft_post(&queue, &console_event, now + CONSOLE_POLL);
  weft_work(&queue);
  return 0;
}
