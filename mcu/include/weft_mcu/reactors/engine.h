/* reactors/engine.h: takes a program from tag to tag. Part of weft_mcu/reactors_run.h.
 *
 * A tag is collected (its timers and events are taken from the queue, presence and pending
 * reactions are set), waited for, run, and ended. In a program that receives no events from
 * outside, a tag is collected before its time, so that at its time the first reaction only has to
 * be called. Otherwise an earlier event may still come, so the tag is collected only when its time
 * has come.
 */
#ifndef WEFT_RX_ENGINE_H
#define WEFT_RX_ENGINE_H
#include "weft_mcu/reactors/grants.h"
#include "weft_mcu/reactors/stop.h"
#include "weft_mcu/reactors/workers.h"

WEFT_INLINE void weft_rx_advance(weft_rx_env *env, weft_rx_time t) {
#if !WEFT_RX_TIME64 && WEFT_RX_FAST
  if (t < env->now) env->high++;
#endif
  env->now = t;
}

/* ---- events from outside (R9) ---------------------------------------------------------------- */
#if WEFT_RX_ASYNC
#if !WEFT_RX_TIME64
/* 32-bit times can be compared only over half their range. An event that comes must be later than
 * `now`, however long the program was idle. Therefore `now` follows the clock at a distance, which
 * is half of the time that WEFT_RX_HORIZON leaves for late events. weft_rx_follow is called before
 * any event from outside is examined, and at least once in WEFT_RX_NAP ticks. */
enum { WEFT_RX_BEHIND = 1 << 23 };
static void __attribute__((noinline)) weft_rx_follow(weft_rx_env *env, weft_rx_time t) {
  weft_rx_timer *first = weft_rx_first(env);
  bool free = !env->soon && (!first || weft_rx_before(t, first->time));
#if WEFT_RX_LINKS
  /* No enclave sends for a tag before its `next`. */
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
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
/* Move all events that have been posted so far into the queue. */
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
/* Return true if the time t has come and no earlier event can come any more. Return false if an
 * event has come, so that the caller must check again. */
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
/* Remove the timers and events at (now, step) from the queue. */
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
/* Do what weft_rx_take_tag does, for a tag that begins with the timer n and so has microstep 0. */
WEFT_INLINE void weft_rx_take_timers(weft_rx_env *env, weft_rx_timer *n, weft_rx_time t) {
#if !WEFT_RX_HEAP
  weft_rx_timer *x = n->next;
  /* The timer is alone at this tag. The search for its new place begins at its old place. */
  if (__builtin_expect(!x || x->time != t, 1)) {
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
/* Collect any tag except that of a timer alone. Return false if there is nothing to run yet and the
 * caller must check for events again. */
WEFT_HOT_PART(weft_rx_collect)
static bool __attribute__((noinline)) weft_rx_collect(weft_rx_env *env) {
  if (env->stopping) return false;
  weft_rx_timer *first = weft_rx_first(env);
#if WEFT_RX_ENCLAVES > 1
  bool waits = env->keepalive || WEFT_PEEK(weft_rx_timed_out) ||
               env->acked; /* acked: the stop tag is known, and the enclave waits for it */
#else
  bool waits = env->keepalive;
#endif
  if (!env->soon &&
      (!first || (!waits && weft_rx_as_event(first) == &env->stop && !weft_rx_several(env)))) {
#if WEFT_RX_ENCLAVES > 1
    weft_rx_idle(env); /* Wait until an event comes, or until every enclave is idle. */
    weft_rx_drain(env);
    return false;
#endif
    if (!env->keepalive) weft_rx_stop_next(env); /* There is nothing left to wait for. */
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
      weft_rx_drain(env); /* An event that has come meanwhile may belong to this very tag. */
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

/* Run the loop until the stop tag has run. The stop tag leaves an event in `soon`, so the loop need
 * not check for the stop tag at every tag. */
WEFT_HOT_PART(weft_rx_serve) static void __attribute__((noinline)) weft_rx_serve(weft_rx_env *env) {
  for (;;) {
    weft_rx_timer *n = weft_rx_first(env);
    if (__builtin_expect(!env->soon && n && n->period,
                         1)) { /* a tag that begins with timers, and so has microstep 0 */
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
/* The functions below run a static schedule (R23): the table gives the tags, and there is no queue.
 * Rare conditions (the stop tag, a request to stop, 2^30 ticks gone by) are checked only at tags
 * from env->until on. */
enum { WEFT_RX_OFTEN = 1 << 30 };
static void weft_rx_set_until(weft_rx_env *env, weft_rx_time t) {
  env->until = t + WEFT_RX_OFTEN;
  if (env->stop.fire && weft_rx_before(env->stop.time, env->until)) env->until = env->stop.time;
}
/* Handle the rare conditions at t, which is not before env->until. Return true if the stop tag
 * is set up. */
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
  if (!slot->gap) { /* The first slot is that of the start tag. */
    weft_rx_trigger(env, slot->trig);
    slot++;
  }
  if (env->stop.fire && t == env->stop.time) weft_rx_fire_stop(env, &env->stop);
  weft_rx_set_until(env, t);
  weft_rx_run_pending(env);
  weft_rx_end_tag(env);
  if (env->stopping) return;
  for (;;) {
    t = env->now + slot->gap; /* not kept in a register while reactions run, because reactions
                                 need the registers */
    if (__builtin_expect(!weft_rx_before(t, env->until),
                         0)) { /* also the table's end, whose gap is 2^31 */
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
    if (!env->top) __builtin_unreachable(); /* weft_rx_wrong has checked that there is a table. */
#endif
    weft_rx_run_pending(env);
    weft_rx_end_tag(env);
  }
  weft_rx_run_pending(env);
  weft_rx_end_tag(env);
}
#endif
#endif
