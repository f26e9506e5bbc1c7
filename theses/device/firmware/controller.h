/* controller.h: the parts that the three controllers of the tunnelling ball share: pins, constants,
 * the motor's speed law, the console.
 *
 * Times are in microseconds; a period is the time of one toggle of the step pin, in 1/256 us. A
 * position is a count of toggles since the start, when a hole was under the tube. A pulse is two
 * toggles, and there are two holes, so a hole is under the tube at every multiple of HALF_TURN.
 *
 *           button               button, at speed              position             time
 *   IDLE ------------> ARMED ------------------> AIMING ------------------> DROPPING ------> ARMED
 *    ^  slow            |  magnet on, fast        the same                   magnet off, the speed follows the estimates
 *    +------------------+ not used for two minutes
 */
#ifndef BALL_CONTROLLER_H
#define BALL_CONTROLLER_H
#include "board.h"

enum { PIN_STEP = 16, PIN_BUTTON = 17, PIN_MAGNET = 22, PIN_SENSE1 = 27, PIN_SENSE2 = 26 };
enum state { IDLE, ARMED, AIMING, DROPPING };

#ifndef PULSES_PER_TURN
#define PULSES_PER_TURN 1600
#endif
enum { HALF_TURN = PULSES_PER_TURN };
/* Toggle periods, in 1/256 us, for 1600 pulses a turn: 3000 us idle; 62.5 us are 5 turns a second.
 * The thesis's program has 60. */
#define PERIOD(us_at_1600) ((uint32_t)((us_at_1600) * 256.0 * 1600 / PULSES_PER_TURN + 0.5))
enum {
  PERIOD_IDLE = PERIOD(3000),
#if THESIS_CONSTANTS
  PERIOD_FAST = PERIOD(60),
  PERIOD_MIN = PERIOD(50),
  PERIOD_MAX = PERIOD(70),
#else
  PERIOD_FAST = PERIOD(62.5),
  PERIOD_MIN = PERIOD(62.5 * 50 / 60),
  PERIOD_MAX = PERIOD(62.5 * 70 / 60), /* the thesis's range, relative to PERIOD_FAST */
#endif
  ACCELERATION =
      1024, /* a toggle's period differs from the previous one by at most 1/ACCELERATION of it */
  MOTOR_START = 4000000,
  DEBOUNCE = 1000000,
  UNUSED = 120000000,
  AFTER_DROP = 50000, /* the time from the predicted arrival to the next ball */
};

/* The times by which these events precede the moment when the ball is half through the disc: the
 * magnet lets go, gate 1 is blocked, gate 1 is free again, gate 2 is blocked, gate 2 is free again.
 * The values are calibrated for a nominal fall on the device of theses/device (a test recomputes
 * them); the thesis's own values are for its own device. */
enum { E0, E1, E2, E3, E4, ESTIMATES };
#if THESIS_CONSTANTS
static const uint32_t before_disc[ESTIMATES] = {286300, 25300, 21800, 4800, 1600};
#else
static const uint32_t before_disc[ESTIMATES] = {296946, 28562, 23686, 4994, 506};
#endif

/* The state of the motor. Only the code that makes the steps uses `position` and the schedule; the
 * orders for that code are in struct command. */
typedef struct motor {
  uint32_t position; /* toggles done */
  uint32_t period;   /* the period of the next toggle */
  uint32_t fraction; /* the fraction of a microsecond dropped from the last due time, in 1/256 us */
} motor;

/* The orders for the motor. Each is one word and has one writer. `aim_time` is written last and
 * read first. */
typedef struct command {
  uint32_t fast;         /* 0 means idle speed */
  uint32_t aim_position; /* the position at which the motor must be at `aim_time` */
  uint32_t aim_time;     /* 0 means no aim */
} command;

static inline void motor_init(motor *m) { *m = (motor){0, PERIOD_IDLE, 0}; }

/* Return the period for the next toggle, given that the present toggle was due at `now`. The
 * period approaches the wanted speed as fast as the motor can follow. */
static inline uint32_t motor_next_period(motor *m, const command *c, uint32_t now) {
  uint32_t wanted = WEFT_PEEK(c->fast) ? PERIOD_FAST : PERIOD_IDLE, time = WEFT_PEEK(c->aim_time);
  if (time) {
    int32_t toggles = (int32_t)(WEFT_PEEK(c->aim_position) - m->position),
            left = (int32_t)(time - now);
    if (toggles > 0) {
      wanted = left > 0 ? ((uint32_t)left << 8) / (uint32_t)toggles : 0;
      if (wanted < PERIOD_MIN) wanted = PERIOD_MIN;
      if (wanted > PERIOD_MAX) wanted = PERIOD_MAX;
    }
  }
  uint32_t most = m->period / ACCELERATION + 1;
  if (wanted > m->period + most) wanted = m->period + most;
  else if (wanted + most < m->period) wanted = m->period - most;
  return m->period = wanted;
}
/* Return the result of motor_next_period in whole microseconds; the remainder is carried to the
 * next toggle. */
static inline uint32_t motor_next_delay(motor *m, const command *c, uint32_t now) {
  uint32_t exact = motor_next_period(m, c, now) + m->fraction;
  m->fraction = exact & 255;
  return exact >> 8;
}
/* Return the number of toggles from the release to the arrival at full speed; and return whether a
 * release at `position` brings a hole under the tube. */
static inline uint32_t drop_toggles(void) {
  return (before_disc[E0] * 256 + PERIOD_FAST / 2) / PERIOD_FAST;
}
static inline bool is_mark(uint32_t position) {
  return (position + drop_toggles()) % HALF_TURN == 0;
}

/* The console never waits: text goes into a ring, and console_drain moves as much to the UART as
 * the UART has room for. Only one core may write. */
enum { CONSOLE = 1024 };
static char console_ring[CONSOLE];
static uint32_t console_in, console_out;
static inline void say(const char *text) {
  for (; *text && console_in - console_out < CONSOLE; text++)
    console_ring[console_in++ % CONSOLE] = *text;
}
static inline void say_u32(uint32_t value) {
  char digits[11];
  unsigned n = sizeof digits;
  digits[--n] = 0;
  do digits[--n] = (char)('0' + value % 10);
  while (value /= 10);
  say(&digits[n]);
}
static inline void say_line(const char *what, uint32_t value) {
  say(what);
  say_u32(value);
  say("\n");
}
static inline void console_drain(void) {
  while (console_out != console_in && !(WEFT_REG(UART0_FR) & 32))
    WEFT_REG(UART0_DR) = (uint8_t)console_ring[console_out++ % CONSOLE];
}
static const char *const state_names[] = {"idle\n", "armed\n", "aiming\n", "dropping\n"};

static inline void pins_init(void) {
  uart_init();
  pin_out(PIN_STEP);
  pin_out(PIN_MAGNET);
  pin_in_pull_up(PIN_BUTTON);
  pin_in_pull_up(PIN_SENSE1); /* The photogates drive both levels. */
  pin_in_pull_up(PIN_SENSE2);
}
#endif
