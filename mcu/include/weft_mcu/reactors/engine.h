/* reactors/engine.h: takes a program from tag to tag. Part of weft_mcu/reactors_run.h.
 *
 * A tag is collected (its timers and events are taken from the queue, presence and pending
 * reactions are set), waited for, run, and ended. In a program that gets no events from outside, a
 * tag is collected before its time, so that at its time the first reaction only has to be called.
 * Otherwise an earlier event may still come, so the tag is collected only when its time has come.
 */
#ifndef WEFT_RX_ENGINE_H
#define WEFT_RX_ENGINE_H

/* ---- the current tag ------------------------------------------------------------------------- */
int64_t weft_rx_logical(void) { return weft_rx_logical_of(weft_rx_here()); }
int64_t weft_rx_start_time(void) { return weft_rx_envs[0].start_ns; }
int64_t weft_rx_elapsed(void) { return weft_rx_logical() - weft_rx_start_time(); }
int64_t weft_rx_physical(void) { return weft_rx_clock_ns(); }
uint32_t weft_rx_microstep(void) { return weft_rx_here()->step; }
bool weft_rx_late(int64_t ns) {
  weft_rx_env *env = weft_rx_here();
  return ns == 0 || (ns > 0 && (weft_rx_distance)(weft_rx_clock() - env->now) >
                                   (weft_rx_distance)weft_rx_ticks(ns));
}
bool weft_rx_check(void *self, const weft_rx_limit *limit, bool invoke) {
  if (limit->ns < 0 || !weft_rx_late(limit->ns)) return false;
  if (invoke) limit->missed(self);
  return true;
}

/* ---- trace ----------------------------------------------------------------------------------- */
#if WEFT_RX_TRACE
#if WEFT_RX_HOST
static _Thread_local bool weft_rx_missed;
#else /* no threads and no thread-local storage, but two cores */
static bool weft_rx_missed_on[WEFT_CORES];
#define weft_rx_missed weft_rx_missed_on[weft_core()]
#endif
void weft_rx_told_missed(void) { weft_rx_missed = true; }
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
void weft_rx_told_missed(void) {}
#endif

#if WEFT_RX_MODES
static bool weft_rx_runs_at_shutdown(weft_rx_env *env, weft_rx_mode *mode, unsigned r);
#endif
/* ---- running --------------------------------------------------------------------------------- */
/* `step` is the unit of r: bytes of the table, or reactions. */
WEFT_INLINE void weft_rx_call_by(weft_rx_env *env, unsigned r, unsigned step) {
  WEFT_RX_TABLE weft_rx_reaction *own = weft_rx_reactions + WEFT_RX_PROGRAM(env)->first;
  WEFT_RX_TABLE weft_rx_reaction *reaction =
      step == 1 ? own + r
                : (WEFT_RX_TABLE weft_rx_reaction *)(const void *)((const uint8_t *)own + r);
#if WEFT_RX_MODES || WEFT_RX_TRACE
  unsigned number = (unsigned)(reaction - weft_rx_reactions);
#endif
#if WEFT_RX_MODES
  weft_rx_mode *mode = weft_rx_mode_of[number];
  if (mode && !mode->active &&
      !weft_rx_runs_at_shutdown(env, mode, number - WEFT_RX_PROGRAM(env)->first))
    return; /* R16, R18 */
#endif
#if WEFT_RX_TRACE
  weft_rx_missed = false;
#endif
  reaction->fn(reaction->self);
#if WEFT_RX_TRACE
  weft_rx_trace(env, number);
#endif
  (void)env;
}
WEFT_INLINE void weft_rx_call(weft_rx_env *env, unsigned r) { weft_rx_call_by(env, r, 1); }
#if WEFT_RX_WORKERS > 1
static void weft_rx_run_pending(weft_rx_env *env); /* workers.h: level by level */
#elif WEFT_RX_WORDS <= 1
WEFT_INLINE void weft_rx_run_pending(weft_rx_env *env) {
  for (weft_rx_word pending; (pending = env->top);) {
    env->top = pending & (pending - 1);
    weft_rx_call_by(env, weft_rx_lowest(env, pending), WEFT_RX_BIT_TABLE ? WEFT_RX_BIT_STEP : 1);
  }
}
#else
/* Run all pending reactions of word w, and those that they make pending in it. */
WEFT_INLINE void weft_rx_run_word(weft_rx_env *env, unsigned w) {
  for (weft_rx_word pending; (pending = env->words[w]);) {
    env->words[w] = pending & (pending - 1);
    weft_rx_call(env, w * WEFT_RX_WORD_BITS + weft_rx_lowest(env, pending));
  }
}
/* A bit of the upper word is cleared when the lower word is empty: until then no reaction before it
 * can become pending (invariant 1 of reactors.h). */
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

/* ---- stop (R12) ------------------------------------------------------------------------------ */
#if WEFT_RX_MODES
static void weft_rx_shut_modes(weft_rx_env *env);
#endif
void weft_rx_fire_stop(weft_rx_env *env, weft_rx_event *e) {
  (void)e;
  env->stopping = true;
#if WEFT_RX_ASYNC
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  env->stopped = true; /* R13 */
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#endif
  env->stop.next = 0;
  env->soon = &env->stop; /* weft_rx_serve looks into `soon` */
  weft_rx_trigger(env, WEFT_RX_PROGRAM(env)->shutdown);
#if WEFT_RX_MODES
  weft_rx_shut_modes(env);
#endif
}
/* Make the next microstep, whatever it was meant for, the stop tag. */
static void weft_rx_stop_next(weft_rx_env *env) {
  if (env->stopping || env->stop_soon) return;
  env->stop_soon = true;
#if WEFT_RX_STATIC
  env->until = env->now;
#else
  if (env->stop.fire) (void)weft_rx_remove(env, weft_rx_as_node(&env->stop));
  env->stop = (weft_rx_event){.fire = weft_rx_fire_stop, .time = env->now, .step = env->step + 1};
  if (env->soon) env->soon_last->next = weft_rx_as_node(&env->stop);
  else env->soon = &env->stop;
  env->soon_last = &env->stop;
#endif
}
#if WEFT_RX_ENCLAVES == 1
void weft_rx_request_stop(void) {
  weft_rx_env *env = weft_rx_here();
#if WEFT_RX_WORKERS > 1
  bool entered = weft_rx_enter(env);
#endif
  weft_rx_stop_next(env);
#if WEFT_RX_WORKERS > 1
  weft_rx_leave(entered);
#endif
}
#endif

/* ---- waiting --------------------------------------------------------------------------------- */
#if !WEFT_RX_ASYNC
static const uint16_t weft_rx_no_news = 0;
#define WEFT_RX_NEWS(env) (&weft_rx_no_news)
#else
#define WEFT_RX_NEWS(env) (&(env)->news)
#endif
#if WEFT_RX_ENCLAVES > 1
#if WEFT_RX_HOST
static void weft_rx_enclave_sleep(weft_rx_env *env, weft_rx_time t); /* enclaves.h */
#endif
static bool weft_rx_publish(weft_rx_env *env, weft_rx_time t);
static bool weft_rx_granted(weft_rx_env *env, weft_rx_time t);
static void weft_rx_idle(weft_rx_env *env);
static void weft_rx_join_stop(weft_rx_env *env);
static void weft_rx_wake_all(void);
static bool weft_rx_stop_all, weft_rx_timed_out;
static int64_t weft_rx_link_ticks[WEFT_RX_LINKS + 1] __attribute__((unused));
#else
#define weft_rx_wake_all() weft_wake()
#endif
/* Sleep until t or until there is news. It may return early. */
WEFT_INLINE void weft_rx_sleep(weft_rx_env *env, weft_rx_time t) {
  (void)env;
#if WEFT_RX_ENCLAVES > 1 && WEFT_RX_HOST
  weft_rx_enclave_sleep(env, t);
#elif !WEFT_RX_HOST && WEFT_TICK_NS == 1000 && !WEFT_RX_TIME64
  weft_wait_until(t, WEFT_RX_NEWS(env));
#else
  int64_t us = ((int64_t)(weft_rx_distance)(t - weft_rx_clock()) * WEFT_TICK_NS + 999) / 1000;
  if (us <= 0) return;
  weft_wait_until(weft_now32() + (uint32_t)(us < 1 << 30 ? us : 1 << 30), WEFT_RX_NEWS(env));
#endif
}
/* Wait until t, even if events come. */
WEFT_INLINE void weft_rx_await(weft_rx_env *env, weft_rx_time t) {
  if (__builtin_expect(!weft_rx_before(weft_rx_clock(), t), 1)) return;
  if (WEFT_RX_FAST && env->fast) return;
#if WEFT_RX_HOST || WEFT_TICK_NS != 1000 || WEFT_RX_TIME64
  while (weft_rx_before(weft_rx_clock(), t)) weft_rx_sleep(env, t);
#else
  if ((int32_t)(t - weft_now32()) > WEFT_EARLY_US) weft_rx_sleep(env, t);
  while ((int32_t)(t - weft_now32()) > 0) {}
#endif
}

WEFT_INLINE void weft_rx_advance(weft_rx_env *env, weft_rx_time t) {
#if !WEFT_RX_TIME64 && WEFT_RX_FAST
  if (t < env->now) env->high++;
#endif
  env->now = t;
}

/* ---- what comes from outside (R9) ------------------------------------------------------------ */
#if WEFT_RX_ASYNC
static void weft_rx_discard_event(weft_rx_env *env, weft_rx_event *e);
/* Post an event from any thread, core or interrupt. If `now`, its time is `after` from the present;
 * otherwise e->time is set already. */
static int weft_rx_post(weft_rx_env *env, weft_rx_event *e, weft_rx_time after, bool now) {
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  bool stopped = env->stopped;
  if (!stopped) {
    if (now) e->time = weft_rx_clock() + after;
    e->next = 0;
    if (env->inbox) env->inbox_last->next = weft_rx_as_node(e);
    else env->inbox = e;
    env->inbox_last = e;
    WEFT_POKE(env->news, 1);
#if WEFT_RX_ENCLAVES > 1
    if (env->idle || weft_rx_before(e->time, env->next)) env->next = e->time;
#endif
  }
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
  if (!stopped) {
    weft_rx_wake_all();
    return 1;
  }
  weft_rx_discard_event(env, e);
  return 0;
}
#if !WEFT_RX_TIME64
/* 32-bit times can be compared only over half their range. An event that comes must be later than
 * `now`, however long the program was idle. So `now` follows the clock at a distance: half of what
 * WEFT_RX_HORIZON leaves for late events. This is called before any event from outside is looked
 * at, and at least once in WEFT_RX_NAP ticks. */
enum { WEFT_RX_BEHIND = 1 << 23, WEFT_RX_NAP = 1 << 30 };
static void __attribute__((noinline)) weft_rx_follow(weft_rx_env *env, weft_rx_time t) {
  weft_rx_timer *first = weft_rx_first(env);
  bool free = !env->soon && (!first || weft_rx_before(t, first->time));
#if WEFT_RX_LINKS
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK); /* no enclave sends for a tag before its `next` */
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    weft_rx_env *e = &weft_rx_envs[i];
    bool sends = e != env && !e->done && (!e->idle || e->inbox);
    free = free && (!sends || weft_rx_before(t, e->next));
  }
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#endif
  if (!free) return;
  weft_rx_advance(env, t);
  env->step = 0;
}
#endif
/* Move everything posted so far into the queue. */
static void __attribute__((noinline)) weft_rx_drain(weft_rx_env *env) {
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  weft_rx_event *e = env->inbox;
  env->inbox = 0;
  WEFT_POKE(env->news, 0);
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#if !WEFT_RX_TIME64
  weft_rx_time t = weft_rx_clock() - WEFT_RX_BEHIND;
  if (weft_rx_before(env->now, t) && !env->fast) weft_rx_follow(env, t);
#endif
  while (e) {
    weft_rx_event *next = weft_rx_as_event(e->next);
    e->fire(env, e);
    e = next;
  }
#if WEFT_RX_ENCLAVES > 1
  if (WEFT_PEEK(weft_rx_stop_all) && !env->acked) weft_rx_join_stop(env);
#endif
}
/* True: t has come, and no earlier event can come any more. False: an event came; look again. */
WEFT_INLINE bool weft_rx_reach(weft_rx_env *env, weft_rx_time t) {
  for (;;) {
    bool due = (WEFT_RX_FAST && env->fast) || !weft_rx_before(weft_rx_clock(), t);
    if (WEFT_PEEK(env->news)) {
      weft_rx_drain(env);
      return false;
    }
#if WEFT_RX_ENCLAVES > 1
    if (!weft_rx_publish(env, t)) continue;
    if (due) return weft_rx_granted(env, t);
#endif
    if (due) return true;
    weft_rx_sleep(env, t);
  }
}
#endif

/* ---- collecting ------------------------------------------------------------------------------ */
/* Make the first trigger of a tag pending, when nothing is pending yet. */
WEFT_INLINE void weft_rx_begin_pending(weft_rx_env *env, weft_rx_trig trig) {
#if WEFT_RX_MASKS
  env->top = trig;
#else
  weft_rx_trigger(env, trig);
#endif
}
#if !WEFT_RX_STATIC
/* Take the timers and events at (now, step) out of the queue. */
WEFT_HOT_PART(weft_rx_take_tag)
static void __attribute__((noinline))
weft_rx_take_tag(weft_rx_env *env, weft_rx_time t, uint32_t step) {
  for (weft_rx_timer *n; (n = weft_rx_first(env)) && n->time == t;) {
    if (n->period) {
      (void)weft_rx_take_first(env);
      weft_rx_trigger(env, n->trig);
      n->time = t + n->period;
      weft_rx_insert_timer(env, n);
      continue;
    }
    weft_rx_event *e = weft_rx_as_event(n);
    if (e->step != step) break;
    (void)weft_rx_take_first(env);
    e->fire(env, e);
  }
}
/* The same for a tag that begins with the timer n, so has microstep 0. */
WEFT_INLINE void weft_rx_take_timers(weft_rx_env *env, weft_rx_timer *n, weft_rx_time t) {
#if !WEFT_RX_HEAP
  weft_rx_timer *x = n->next;
  if (__builtin_expect(!x || x->time != t, 1)) { /* alone: the timer goes back, from its place on */
    weft_rx_time next = t + n->period;
    weft_rx_timer **at = &env->head;
    *at = x;
    weft_rx_begin_pending(env, n->trig);
    for (; x && weft_rx_before(x->time, next); x = *at) at = &x->next;
    n->next = x;
    n->time = next;
    *at = n;
    return;
  }
#endif
  (void)n;
  weft_rx_take_tag(env, t, 0);
}
/* Collect any tag except that of a timer alone. False: nothing to run yet; look again. */
WEFT_HOT_PART(weft_rx_collect)
static bool __attribute__((noinline)) weft_rx_collect(weft_rx_env *env) {
  if (env->stopping) return false;
  weft_rx_timer *first = weft_rx_first(env);
#if WEFT_RX_ENCLAVES > 1
  bool waits = env->keepalive || WEFT_PEEK(weft_rx_timed_out) ||
               env->acked; /* acked: the stop tag is known, and is waited for */
#else
  bool waits = env->keepalive;
#endif
  if (!env->soon &&
      (!first || (!waits && weft_rx_as_event(first) == &env->stop && !weft_rx_several(env)))) {
#if WEFT_RX_ENCLAVES > 1
    weft_rx_idle(env); /* until an event comes, or no enclave has anything left */
    weft_rx_drain(env);
    return false;
#endif
    if (!env->keepalive) weft_rx_stop_next(env); /* nothing is left to wait for */
#if WEFT_RX_ASYNC
    else {
#if WEFT_RX_TIME64
      weft_wait_news(&env->news);
#else
      weft_rx_sleep(env, weft_rx_clock() + WEFT_RX_NAP);
#endif
      weft_rx_drain(env);
      return false;
    }
#else
    else
      weft_panic(
          "weft: keepalive would wait for ever: nothing can come from outside; leave it out, or give a timeout");
#endif
  }
  if (env->soon) {
#if WEFT_RX_ASYNC
    if (WEFT_PEEK(env->news))
      weft_rx_drain(env); /* an event that has come by now may belong to this very tag */
#endif
    weft_rx_event *e = env->soon;
    env->soon = 0;
    env->step++;
    while (e) {
      weft_rx_event *next = weft_rx_as_event(e->next);
      e->fire(env, e);
      e = next;
    }
    weft_rx_take_tag(env, env->now, env->step);
    return true;
  }
  weft_rx_time t = first->time;
  uint32_t step = weft_rx_step_of(first);
#if WEFT_RX_ASYNC
  if (!weft_rx_reach(env, t)) return false;
#endif
  weft_rx_advance(env, t);
  env->step = step;
  weft_rx_take_tag(env, t, step);
#if !WEFT_RX_ASYNC
  weft_rx_await(env, t);
#endif
  return true;
}

#if WEFT_RX_MODES
static void weft_rx_change_modes(weft_rx_env *env);
#endif
/* The loop, until the stop tag has run. The stop tag leaves an event in `soon`, so that the loop
 * need not ask for it at every tag. */
WEFT_HOT_PART(weft_rx_serve) static void __attribute__((noinline)) weft_rx_serve(weft_rx_env *env) {
  for (;;) {
    weft_rx_timer *n = weft_rx_first(env);
    if (__builtin_expect(!env->soon && n && n->period,
                         1)) { /* a tag that begins with timers, so of microstep 0 */
      weft_rx_time t = n->time;
#if WEFT_RX_ASYNC
      if (!weft_rx_reach(env, t)) continue;
#endif
      weft_rx_advance(env, t);
      env->step = 0;
      weft_rx_take_timers(env, n, t);
#if !WEFT_RX_ASYNC
      weft_rx_await(env, t);
#endif
    } else if (!weft_rx_collect(env)) {
      if (env->stopping) return;
      continue;
    }
    weft_rx_run_pending(env);
    weft_rx_end_tag(env);
#if WEFT_RX_MODES
    if (env->changing) weft_rx_change_modes(env);
#endif
  }
}
#else
/* A static schedule (R23): the table gives the tags, and there is no queue to look at. Rare things
 * (the stop tag, a request to stop, 2^30 ticks gone by) are checked only at tags from env->until
 * on. */
enum { WEFT_RX_OFTEN = 1 << 30 };
static void weft_rx_set_until(weft_rx_env *env, weft_rx_time t) {
  env->until = t + WEFT_RX_OFTEN;
  if (env->stop.fire && weft_rx_before(env->stop.time, env->until)) env->until = env->stop.time;
}
/* What to do at t, which is not before env->until. True: the stop tag is set up. */
static bool __attribute__((noinline))
weft_rx_rare(weft_rx_env *env, weft_rx_time t, weft_rx_trig trig) {
  if (env->stop_soon) {
    env->step++;
    weft_rx_fire_stop(env, &env->stop);
    return true;
  }
  if (env->stop.fire && !weft_rx_before(t, env->stop.time)) {
    if (t == env->stop.time) weft_rx_trigger(env, trig);
    env->now = env->stop.time;
    env->step = 0;
    weft_rx_fire_stop(env, &env->stop);
    weft_rx_await(env, env->now);
    return true;
  }
  weft_rx_set_until(env, t);
  return false;
}
WEFT_HOT_PART(weft_rx_serve) static void __attribute__((noinline)) weft_rx_serve(weft_rx_env *env) {
  WEFT_RX_TABLE weft_rx_program *program = WEFT_RX_PROGRAM(env);
  WEFT_RX_TABLE weft_rx_slot *slot = weft_rx_slots, *end = slot + program->slots;
  weft_rx_time t = env->now;
  env->step = 0;
  weft_rx_trigger(env, program->startup);
  if (!slot->gap) { /* the first slot is the start tag's */
    weft_rx_trigger(env, slot->trig);
    slot++;
  }
  if (env->stop.fire && t == env->stop.time) weft_rx_fire_stop(env, &env->stop);
  weft_rx_set_until(env, t);
  weft_rx_run_pending(env);
  weft_rx_end_tag(env);
  if (env->stopping) return;
  for (;;) {
    t = env->now + slot->gap; /* not kept in a register while reactions run: they need the
                                 registers */
    if (__builtin_expect(!weft_rx_before(t, env->until),
                         0)) { /* so is the time of the table's end, whose gap is 2^31 */
      if (slot == end) {
        slot = weft_rx_slots + program->loop;
        if (slot == end) {
          weft_rx_stop_next(env);
          (void)weft_rx_rare(env, t, 0);
          break;
        }
        t = env->now + slot->gap;
      }
      if (!weft_rx_before(t, env->until) && weft_rx_rare(env, t, slot->trig)) break;
    }
    weft_rx_begin_pending(env, slot->trig);
    slot++;
    weft_rx_advance(env, t);
    weft_rx_await(env, t);
#if WEFT_RX_MASKS
    if (!env->top) __builtin_unreachable(); /* weft_rx_wrong has checked it */
#endif
    weft_rx_run_pending(env);
    weft_rx_end_tag(env);
  }
  weft_rx_run_pending(env);
  weft_rx_end_tag(env);
}
#endif
#endif
