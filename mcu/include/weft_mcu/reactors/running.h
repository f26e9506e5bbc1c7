/* reactors/running.h: runs the pending reactions of the current tag, and ends the tag. Part of
 * weft_mcu/reactors_run.h.
 */
#ifndef WEFT_RX_RUNNING_H
#define WEFT_RX_RUNNING_H
#include "weft_mcu/flight.h"
#include "weft_mcu/reactors/modes.h"
#include "weft_mcu/reactors/records.h"
#include "weft_mcu/reactors/tokens.h"

/* ---- the current tag ------------------------------------------------------------------------- */
int64_t weft_rx_logical(void) {
#if WEFT_RX_WATCHDOGS
  if (weft_rx_watching) return weft_rx_watching->at; /* Another thread has the current tag. */
#endif
  return weft_rx_logical_of(weft_rx_here());
}
int64_t weft_rx_start_time(void) { return weft_rx_envs[0].start_ns; }
int64_t weft_rx_elapsed(void) { return weft_rx_logical() - weft_rx_start_time(); }
int64_t weft_rx_physical(void) { return weft_rx_clock_ns(); }
uint32_t weft_rx_microstep(void) {
#if WEFT_RX_WATCHDOGS
  if (weft_rx_watching) return 0;
#endif
  return weft_rx_here()->step;
}
bool weft_rx_late(int64_t ns) {
  weft_rx_env *env = weft_rx_here();
  return ns == 0 || (ns > 0 && (weft_rx_distance)(weft_rx_clock() - env->now) >
                                   (weft_rx_distance)weft_rx_ticks(ns));
}
bool weft_rx_check(void *self, const weft_rx_limit *limit, bool invoke) {
  if (limit->ns < 0 || !weft_rx_late(limit->ns)) return false;
  if (invoke && limit->missed) limit->missed(self);
  return true;
}

/* ---- trace ----------------------------------------------------------------------------------- */
#if WEFT_RX_TRACE
#if WEFT_RX_HOST
static _Thread_local bool weft_rx_missed;
#else /* There are no threads and no thread-local storage, but two cores. */
static bool weft_rx_missed_on[WEFT_CORES];
#define weft_rx_missed weft_rx_missed_on[weft_core()]
#endif
static void weft_rx_trace_missed(void) { weft_rx_missed = true; }
#ifndef WEFT_RX_TRACE_HOOK
#include <stdio.h>
static FILE *weft_rx_trace_file;
static void weft_rx_trace_open(void) {
  const char *name = getenv("WEFT_RX_TRACE");
  if (name) weft_rx_trace_file = name[0] == '-' && !name[1] ? stderr : fopen(name, "w");
}
static void weft_rx_trace_close(void) {
  if (weft_rx_trace_file && weft_rx_trace_file != stderr) fclose(weft_rx_trace_file);
  weft_rx_trace_file = 0;
}
#define WEFT_RX_TRACE_HOOK(time, microstep, number, name, missed)                             \
  do {                                                                                        \
    if (weft_rx_trace_file && (name))                                                         \
      fprintf(weft_rx_trace_file, "%lld %u %s%s\n", (long long)(time), (unsigned)(microstep), \
              (name), (missed) ? "!" : "");                                                   \
  } while (0)
#else
static void weft_rx_trace_open(void) {}
static void weft_rx_trace_close(void) {}
#endif
static void weft_rx_trace(weft_rx_env *env, unsigned number) {
  WEFT_RX_TRACE_HOOK(weft_rx_logical_of(env) - weft_rx_start_time(), env->step, number,
                     weft_rx_names[number], weft_rx_missed);
}
#else
static void weft_rx_trace_missed(void) {}
#endif
void weft_rx_told_missed(void) {
  weft_rx_trace_missed();
#if WEFT_RX_RECORDS
  weft_rx_record_event("deadline missed");
#endif
}

/* ---- running --------------------------------------------------------------------------------- */
/* Call reaction r. `step` is the unit of r: bytes of the table, or reactions. */
WEFT_INLINE void weft_rx_call_by(weft_rx_env *env, unsigned r, unsigned step) {
  WEFT_RX_TABLE weft_rx_reaction *own = weft_rx_reactions + WEFT_RX_PROGRAM(env)->first;
  WEFT_RX_TABLE weft_rx_reaction *reaction =
      step == 1 ? own + r
                : (WEFT_RX_TABLE weft_rx_reaction *)(const void *)((const uint8_t *)own + r);
#if WEFT_RX_MODES || WEFT_RX_TRACE || WEFT_RX_RECORDS
  unsigned number = (unsigned)(reaction - weft_rx_reactions);
#endif
#if WEFT_RX_MODES
  weft_rx_mode *mode = weft_rx_mode_of[number];
  if (mode && !mode->active &&
      !weft_rx_runs_at_shutdown(env, mode, number - WEFT_RX_PROGRAM(env)->first))
    return; /* R16, R18: a reaction of an inactive mode does not run */
#endif
#if WEFT_RX_TRACE
  weft_rx_missed = false;
#endif
#if WEFT_RX_RECORDS
  weft_rx_record_begins(env, number);
#endif
  weft_flight_note(reaction, 0, WEFT_FLIGHT_BEGINS);
  reaction->fn(reaction->self);
  weft_flight_note(reaction, 0, WEFT_FLIGHT_RETURNS);
#if WEFT_RX_RECORDS
  weft_rx_record_returns(number);
#endif
#if WEFT_RX_TRACE
  weft_rx_trace(env, number);
#endif
  (void)env;
}
WEFT_INLINE void weft_rx_call(weft_rx_env *env, unsigned r) { weft_rx_call_by(env, r, 1); }
#if WEFT_RX_WORKERS > 1 /* defined in workers.h: runs reactions level by level */
#elif WEFT_RX_WORDS <= 1
WEFT_INLINE void weft_rx_run_pending(weft_rx_env *env) {
  for (weft_rx_word pending; (pending = env->top);) {
    env->top = pending & (pending - 1);
    weft_rx_call_by(env, weft_rx_lowest(env, pending), WEFT_RX_BIT_TABLE ? WEFT_RX_BIT_STEP : 1);
  }
}
#else
/* Run all pending reactions of word w, and the reactions of w that become pending meanwhile. */
WEFT_INLINE void weft_rx_run_word(weft_rx_env *env, unsigned w) {
  for (weft_rx_word pending; (pending = env->words[w]);) {
    env->words[w] = pending & (pending - 1);
    weft_rx_call(env, w * WEFT_RX_WORD_BITS + weft_rx_lowest(env, pending));
  }
}
/* The bit of a word in the word above is cleared only when the word is empty. Until then no
 * reaction of an earlier word can become pending (invariant 1 of reactors.h). */
WEFT_HOT_PART(weft_rx_run_pending) static void weft_rx_run_pending(weft_rx_env *env) {
  for (weft_rx_word top; (top = env->top);) {
    unsigned t = weft_rx_lowest(env, top);
#if WEFT_RX_WORDS <= WEFT_RX_WORD_BITS
    weft_rx_run_word(env, t);
#else
    for (weft_rx_word middle; (middle = env->middle[t]);) {
      unsigned m = weft_rx_lowest(env, middle);
      weft_rx_run_word(env, t * WEFT_RX_WORD_BITS + m);
      env->middle[t] &= ~((weft_rx_word)1 << m);
    }
#endif
    env->top &= ~((weft_rx_word)1 << t);
  }
}
#endif

/* ---- the end of a tag (R4, R15) -------------------------------------------------------------- */
WEFT_INLINE void weft_rx_end_tag(weft_rx_env *env) {
  weft_rx_port *p = env->present;
  if (!p) return;
  do {
    weft_rx_port *next = p->next;
    p->is_present = false;
#if WEFT_RX_TOKENS
    if (p->flags & WEFT_RX_IS_TOKEN) weft_rx_end_token(p);
#endif
    p = next;
  } while (p);
  env->present = 0;
}
#endif
