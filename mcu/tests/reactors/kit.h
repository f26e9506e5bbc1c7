/* kit.h: builds reactors while a test runs, and keeps a log. A scenario fills the tables, runs, and
 * compares its log with the expected one.
 *
 * The same scenarios are compiled with different sizes and switches (tests/reactors/build): one
 * word or three levels of bitmap, list or heap, with and without outside events. Thus every variant
 * of the engine must obey the same rules.
 */
#ifndef KIT_H
#define KIT_H
#ifndef WEFT_RX_REACTIONS
#define WEFT_RX_REACTIONS 40
#endif
#ifndef WEFT_RX_TIMERS
#define WEFT_RX_TIMERS 16
#endif
#define WEFT_RX_EVENTS 16
#define WEFT_RX_DELAYS 1
#define WEFT_RX_TOKENS 1
#define WEFT_RX_TABLE
#ifndef BASE /* the number of the first reaction; reactions with smaller numbers are never
              * triggered */
#define BASE 0
#endif
#include "weft_mcu/reactors.h"
#include "../host/check.h"
#include <stdarg.h>

weft_rx_reaction weft_rx_reactions[WEFT_RX_REACTIONS + 1];
weft_rx_index weft_rx_triggers[1 << 17] = {WEFT_RX_END};
weft_rx_range weft_rx_timers[64];
weft_rx_index weft_rx_levels[WEFT_RX_REACTIONS + 2];
weft_rx_program weft_rx_programs[WEFT_RX_ENCLAVES];
#if WEFT_RX_TRACE
const char *const weft_rx_names[WEFT_RX_REACTIONS + 1];
#endif
static unsigned triggers_used = 1;
void weft_rx_wire(void) {}

static void nothing_to_do(void *self) { (void)self; }
static void kit_new(void) {
  weft_rx_programs[0] = (weft_rx_program){.name = "test", .count = BASE};
  triggers_used = 1;
  for (int i = 0; i < BASE; i++) weft_rx_reactions[i] = (weft_rx_reaction){nothing_to_do, 0};
}
/* Adds the next reaction in the order; returns its number. */
static unsigned reaction(weft_rx_fn fn, void *self) {
  unsigned r = weft_rx_programs[0].count++;
  weft_rx_reactions[r] = (weft_rx_reaction){fn, self};
  return r;
}
/* Makes a trigger of n reactions. */
__attribute__((unused)) static weft_rx_trig on(int n, ...) {
  unsigned at = triggers_used;
  uint64_t mask = 0;
  va_list list;
  va_start(list, n);
  for (int i = 0; i < n; i++) {
    unsigned r = va_arg(list, unsigned);
    weft_rx_triggers[triggers_used++] = r;
    mask |= r < 64 ? (uint64_t)1 << r : 0;
  }
  va_end(list);
  weft_rx_triggers[triggers_used++] = WEFT_RX_END;
  return WEFT_RX_TRIG(at, mask);
}
static void timer(weft_rx_timer *t) {
  weft_rx_timers[weft_rx_programs[0].ranges++] = (weft_rx_range){t, 1, 0};
}

static char said[1 << 16];
static size_t said_length;
__attribute__((unused)) static void __attribute__((format(printf, 1, 2)))
say(const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (said_length < sizeof said - 200)
    said_length += (size_t)vsnprintf(said + said_length, sizeof said - said_length, format, list);
  va_end(list);
}
/* Writes "name@ms.step " of the current tag to the log. */
__attribute__((unused)) static void tell(const char *name) {
  say("%s@%g.%u ", name, (double)weft_rx_elapsed() / 1e6, weft_rx_microstep());
}
__attribute__((unused)) static void run_for(int64_t timeout_ns) {
  said_length = 0, said[0] = 0;
  weft_rx_options o = WEFT_RX_OPTIONS;
  o.fast = true;
  o.no_keepalive = true;
  o.timeout_ns = timeout_ns;
  CHECK(weft_rx_run(&o) == 0);
}
__attribute__((unused)) static void expect_at(int line, const char *wanted) {
  if (!strcmp(said, wanted)) return;
  if (check_bad++ < 3)
    printf("line %d: %s\n  said   %s\n  wanted %s\n", line, check_name, said, wanted);
}
#define EXPECT(wanted) expect_at(__LINE__, wanted)
#define MS(n) WEFT_RX_MSEC(n)
#endif
