/* reactors/actions.h: schedules the events of actions with their spacing, of delays, onces and
 * ratios. Part of weft_mcu/reactors_run.h.
 *
 * Invariants
 *  1. `queued` of an action or delay counts its events in the queue and in `soon`; `latest` is no
 *     earlier than any of them.
 *  2. No two events of the same owner have the same tag (R7).
 *  3. An event's payload is the value itself if the value has 8 bytes or fewer; otherwise it is a
 *     block that contains the value, or a token, to which the event holds a reference.
 */
#ifndef WEFT_RX_ACTIONS_H
#define WEFT_RX_ACTIONS_H
#include "weft_mcu/reactors/parallel.h"
#include "weft_mcu/reactors/tokens.h"
#include "weft_mcu/reactors/waiting.h"

/* Return whether `owner` already has an event for this tag. */
static bool __attribute__((noinline))
weft_rx_taken(weft_rx_env *env, void *owner, weft_rx_time t, uint32_t step) {
  if (t == env->now && step == env->step + 1)
    for (weft_rx_event *e = env->soon; e; e = weft_rx_as_event(e->next))
      if (e->owner == owner) return true;
#if !WEFT_RX_HEAP
  for (weft_rx_timer *n = env->head; n && !weft_rx_before(t, n->time); n = n->next) {
#else
  uint32_t place = 0;
  for (weft_rx_timer *n = 0; (n = weft_rx_each(env, &place, n));) {
#endif
    if (n->time == t && !n->period && weft_rx_as_event(n)->step == step &&
        weft_rx_as_event(n)->owner == owner)
      return true;
  }
  return false;
}

/* Put the event into `soon` or the queue, at (t, step) or the next microstep that is free for its
 * owner. */
WEFT_INLINE void weft_rx_place(weft_rx_env *env, weft_rx_event *e, weft_rx_time t, uint32_t step,
                               weft_rx_time *latest, uint32_t *latest_step, uint32_t *queued) {
  if (__builtin_expect(*queued != 0, 0)) {
    if (!weft_rx_before(*latest, t) && !(t == *latest && step > *latest_step))
      while (weft_rx_taken(env, e->owner, t, step)) step++;
    if (weft_rx_before(*latest, t) || (t == *latest && step > *latest_step))
      *latest = t, *latest_step = step;
  } else *latest = t, *latest_step = step;
  ++*queued;
  e->period = 0;
  e->time = t;
  e->step = step;
  if (t == env->now && step == env->step + 1) {
    e->next = 0;
    if (env->soon) env->soon_last->next = weft_rx_as_node(e);
    else env->soon = e;
    env->soon_last = e;
  } else weft_rx_insert_event(env, e);
}

/* ---- values ---------------------------------------------------------------------------------- */
WEFT_INLINE void weft_rx_copy_value(void *to, const void *from, uint32_t size) {
  if (size == 4) memcpy(to, from, 4);
  else if (size == 8) memcpy(to, from, 8);
  else memcpy(to, from, size);
}
/* Make a payload of the `size` bytes at `value`. Return false if there is no block for these
 * bytes. */
WEFT_INLINE bool weft_rx_pack(weft_rx_payload *payload, const void *value, uint32_t size) {
  void *to = payload->bytes;
  if (size > sizeof payload->bytes) {
    to = payload->block = weft_rx_alloc(size);
    if (!to) return false;
  }
  weft_rx_copy_value(to, value, size);
  return true;
}
WEFT_INLINE void weft_rx_unpack(weft_rx_payload *payload, void *value, uint32_t size) {
  if (size <= sizeof payload->bytes) weft_rx_copy_value(value, payload->bytes, size);
  else {
    memcpy(value, payload->block, size);
    weft_rx_free(payload->block);
  }
}
static void weft_rx_discard_payload(uint8_t flags, uint32_t size, weft_rx_payload *payload) {
#if WEFT_RX_TOKENS
  if (flags & WEFT_RX_IS_TOKEN) {
    weft_rx_drop_token(payload->token);
    return;
  }
#endif
  (void)flags;
  if (size > sizeof payload->bytes) weft_rx_free(payload->block);
}

/* ---- actions (R6 to R9) ---------------------------------------------------------------------- */
WEFT_INLINE void weft_rx_discard_action_event(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_action *a = (weft_rx_action *)e->owner;
  if (e->has_value) weft_rx_discard_payload(a->flags, a->size, &e->payload);
  a->queued--;
  if (a->last == e) a->last = 0;
  weft_rx_free_event(env, e);
}
void weft_rx_fire_action(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_action *a = (weft_rx_action *)e->owner;
#if WEFT_RX_MODES
  /* The event came from outside, or was scheduled when its mode was left. */
  if (a->mode && !a->mode->active) {
    weft_rx_discard_action_event(env, e);
    return;
  }
#endif
  a->queued--;
  if (a->last == e) a->last = 0;
  a->has_value = e->has_value;
  if (e->has_value) {
#if WEFT_RX_TOKENS
    if (a->flags & WEFT_RX_IS_TOKEN) weft_rx_put_token(a, e->payload.token);
    else
#endif
      weft_rx_unpack(&e->payload, (uint8_t *)a + a->value_at, a->size);
  }
  weft_rx_free_event(env, e);
  weft_rx_appear(env, (weft_rx_port *)(void *)a);
}
/* Return the full time of the event scheduled last. 32-bit times alone can be compared only over
 * half their range, and hours may have passed since that event. `spaced` is 1 + the upper bits
 * of its time. */
enum { WEFT_RX_LOW_BITS = 31 };
WEFT_INLINE int64_t weft_rx_last_in_full(const weft_rx_action *a) {
#if WEFT_RX_TIME64
  return a->last_time;
#else
  return ((int64_t)(a->spaced - 1) << WEFT_RX_LOW_BITS) +
         (a->last_time & ((1u << WEFT_RX_LOW_BITS) - 1));
#endif
}
static int __attribute__((noinline))
weft_rx_space(weft_rx_env *env, weft_rx_action *a, weft_rx_event *e, weft_rx_time *t,
              uint32_t *step) {
  weft_rx_event *last = a->last;
  int64_t now = weft_rx_in_full(env), full = now + (weft_rx_distance)(*t - env->now),
          due = weft_rx_last_in_full(a) + (int64_t)a->min_spacing;
  /* Only an event that still waits counts for the spacing. */
  const bool same = WEFT_RX_SPACING_0 && (a->policy & WEFT_RX_SAME);
  const unsigned policy =
      WEFT_RX_SPACING_0 ? a->policy & ~(unsigned)WEFT_RX_SAME : a->policy;
  /* R8: an event keeps its distance from the event before it */
  if (a->spaced && full < due && (!same || (last && full == due - (int64_t)a->min_spacing))) {
    if (last && env->stop.fire && !env->stop_soon && weft_rx_before(env->stop.time, last->time))
      last = 0; /* The last event is later than the timeout, so it will never be released. */
    if (policy == WEFT_RX_DROP) return 0;
    if (policy == WEFT_RX_REPLACE && last) {
      if (last->has_value) weft_rx_discard_payload(a->flags, a->size, &last->payload);
      last->payload = e->payload;
      last->has_value = e->has_value;
      e->has_value = 0;
      return 0;
    }
    if (policy == WEFT_RX_UPDATE && last) {
      if (last->time == env->now) { /* The last event is in `soon`: remove it from that list. */
        weft_rx_event **at = &env->soon, *before = 0;
        while (*at && *at != last) before = *at, at = (weft_rx_event **)(void *)&(*at)->next;
        if (*at) {
          *at = weft_rx_as_event(last->next);
          if (env->soon_last == last) env->soon_last = before;
        } else (void)weft_rx_remove(env, weft_rx_as_node(last));
      } else (void)weft_rx_remove(env, weft_rx_as_node(last));
      weft_rx_discard_action_event(env, last);
    } else {
      if (due - now >= WEFT_RX_HORIZON)
        return WEFT_MISTAKE(
            WEFT_E_HORIZON,
            "an action's spacing defers an event beyond the horizon of this tick; define a longer WEFT_TICK_NS, or WEFT_RX_TIME64=1");
      *t = (weft_rx_time)due, *step = 0;
      full = due;
    }
  }
  a->spaced = WEFT_RX_TIME64 ? 1 : 1 + (uint32_t)(full >> WEFT_RX_LOW_BITS);
  a->last_time = *t;
  a->last = e;
  return 1;
}
/* Put e, an event of a, at (t, step) or at a tag that the spacing allows. Return 0 if e was not put
 * and its value has been given back; less than 0 if e was not put and the caller owns its value
 * again. */
WEFT_INLINE int weft_rx_put_action(weft_rx_env *env, weft_rx_action *a, weft_rx_event *e,
                                   weft_rx_time t, uint32_t step) {
  int code = a->min_spacing ? weft_rx_space(env, a, e, &t, &step) : 1;
  if (__builtin_expect(code <= 0, 0)) {
    if (!code && e->has_value) weft_rx_discard_payload(a->flags, a->size, &e->payload);
    weft_rx_free_event(env, e);
    return code;
  }
  weft_rx_place(env, e, t, step, &a->latest, &a->latest_step, &a->queued);
  return 1;
}
#if WEFT_RX_ASYNC
/* Move an event from outside into the queue, at the time that it carries; events with the same time
 * keep the inbox's order. */
void weft_rx_admit_action(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_action *a = (weft_rx_action *)e->owner;
  weft_rx_time t = e->time;
  uint32_t step = 0;
  if (!weft_rx_before(env->now, t)) t = env->now, step = env->step + 1;
  e->fire = weft_rx_fire_action;
  weft_rx_payload payload = e->payload;
  bool has_value = e->has_value;
  if (weft_rx_put_action(env, a, e, t, step) < 0 && has_value)
    weft_rx_discard_payload(a->flags, a->size, &payload);
}
static int weft_rx_post(weft_rx_env *env, weft_rx_event *e, weft_rx_time after, bool now);
static int __attribute__((noinline))
weft_rx_schedule_outside(weft_rx_action *a, weft_rx_time delay, weft_rx_payload payload,
                         bool has_value) {
  weft_rx_env *env = &weft_rx_envs[a->origin - 1];
  weft_rx_event *e = weft_rx_new_outside_event();
  if (!e)
    return WEFT_MISTAKE(WEFT_E_FULL, "the pool of events is empty; define a larger WEFT_RX_EVENTS");
  e->owner = a;
  e->payload = payload;
  e->has_value = has_value;
  e->fire = weft_rx_admit_action;
  return weft_rx_post(env, e, delay, true);
}
#endif
#if WEFT_RX_WATCHDOGS
/* Keep an event of a handler until the handler has returned. */
static void weft_rx_hold_back(weft_rx_event *e) {
  weft_rx_watchdog *w = weft_rx_watching;
  e->next = 0;
  if (w->held) w->held_last->next = weft_rx_as_node(e);
  else w->held = e;
  w->held_last = e;
}
/* Schedule a logical action from the handler of a watchdog: the delay counts from the expiry. */
static int weft_rx_schedule_watched(weft_rx_action *a, weft_rx_time delay, weft_rx_payload payload,
                                    bool has_value) {
  weft_rx_event *e = weft_rx_new_outside_event();
  if (!e) return WEFT_E_FULL;
  e->owner = a;
  e->payload = payload;
  e->has_value = has_value;
  e->fire = weft_rx_admit_action;
  e->time = (weft_rx_time)(weft_rx_watching->at / WEFT_TICK_NS) + delay;
  weft_rx_hold_back(e);
  return 1;
}
#endif
WEFT_INLINE int weft_rx_schedule_here(weft_rx_env *env, weft_rx_action *a, weft_rx_time delay,
                                      weft_rx_payload payload, bool has_value) {
  if (__builtin_expect(env->stopping, 0)) return 0; /* R13: at the stop tag nothing is scheduled */
  weft_rx_event *e = weft_rx_new_event(env);
  if (__builtin_expect(!e, 0))
    return WEFT_RX_FULL("the pool of events is empty; define a larger WEFT_RX_EVENTS");
  e->owner = a;
  e->payload = payload;
  e->has_value = has_value;
  e->fire = weft_rx_fire_action;
  return delay ? weft_rx_put_action(env, a, e, env->now + delay, 0)
               : weft_rx_put_action(env, a, e, env->now, env->step + 1);
}
WEFT_HOT_PART(weft_rx_schedule_event)
int weft_rx_schedule_event(weft_rx_action *a, int64_t extra, weft_rx_payload payload,
                           bool has_value) {
  if (extra < 0) extra = 0; /* R6: a negative delay counts as 0 */
  int code;
  if (extra >= WEFT_RX_HORIZON - (int64_t)a->min_delay)
    code = WEFT_MISTAKE(
        WEFT_E_HORIZON,
        "an action is scheduled beyond the horizon of this tick; define a longer WEFT_TICK_NS, or WEFT_RX_TIME64=1");
#if WEFT_RX_ASYNC
#if WEFT_RX_WATCHDOGS
  else if (weft_rx_watching && !a->origin)
    code = weft_rx_schedule_watched(a, a->min_delay + (weft_rx_time)extra, payload, has_value);
#endif
  else if (a->origin)
    code = weft_rx_schedule_outside(a, a->min_delay + (weft_rx_time)extra, payload, has_value);
#endif
  else {
    weft_rx_env *env = weft_rx_here();
#if WEFT_RX_WORKERS > 1
    bool entered = weft_rx_enter(env);
#endif
    code = weft_rx_schedule_here(env, a, a->min_delay + (weft_rx_time)extra, payload, has_value);
#if WEFT_RX_WORKERS > 1
    weft_rx_leave(entered);
#endif
    if (code == 0 && env->stopping && has_value)
      weft_rx_discard_payload(a->flags, a->size, &payload);
  }
  if (code < 0 && has_value) weft_rx_discard_payload(a->flags, a->size, &payload);
  return code;
}
int weft_rx_schedule_bytes(weft_rx_action *a, int64_t extra, const void *value, size_t length) {
  weft_rx_payload payload = {0};
#if WEFT_RX_TOKENS
  if (a->flags & WEFT_RX_IS_TOKEN) {
    void *copy = weft_rx_alloc(length * a->size);
    if (!copy) return WEFT_E_FULL;
    memcpy(copy, value, length * a->size);
    return weft_rx_schedule_owned(a, extra, copy, length);
  }
#endif
  (void)length;
  if (!weft_rx_pack(&payload, value, a->size)) return WEFT_E_FULL;
  return weft_rx_schedule_event(a, extra, payload, true);
}
#if WEFT_RX_TOKENS
int weft_rx_schedule_held(weft_rx_action *a, int64_t extra, weft_rx_token *token) {
  if (!token) return weft_rx_schedule_event(a, extra, (weft_rx_payload){0}, false);
  weft_rx_hold_token(token);
  if (!(a->flags & WEFT_RX_IS_TOKEN)) { /* Plain values travel without a token. */
    int code = weft_rx_schedule_bytes(a, extra, token->value, 1);
    weft_rx_drop_token(token);
    return code;
  }
  return weft_rx_schedule_event(a, extra, (weft_rx_payload){.token = token}, true);
}
#endif
int weft_rx_schedule_owned(weft_rx_action *a, int64_t extra, void *value, size_t length) {
#if WEFT_RX_TOKENS
  if (a->flags & WEFT_RX_IS_TOKEN) {
    weft_rx_token *t = weft_rx_token_for(a, value, length);
    if (!t) {
      weft_rx_free(value);
      return WEFT_E_FULL;
    }
    return weft_rx_schedule_held(a, extra, t);
  }
#endif
  int code = value ? weft_rx_schedule_bytes(a, extra, value, length)
                   : weft_rx_schedule_event(a, extra, (weft_rx_payload){0}, false);
  weft_rx_free(value);
  return code;
}

/* ---- delays (R10) ---------------------------------------------------------------------------- */
#if WEFT_RX_DELAYS
WEFT_INLINE weft_rx_port *weft_rx_delay_port(weft_rx_delay *d) {
  return d->to_port ? d->to_port : (weft_rx_port *)(void *)(d + 1);
}
void weft_rx_fire_delay(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_delay *d = (weft_rx_delay *)e->owner;
  weft_rx_port *port = weft_rx_delay_port(d);
  d->queued--;
#if WEFT_RX_TOKENS
  if (port->flags & WEFT_RX_IS_TOKEN) {
    if (e->payload.token) weft_rx_put_token(port, e->payload.token);
  } else
#endif
    weft_rx_unpack(&e->payload, (uint8_t *)port + d->value_at, d->size);
  weft_rx_free_event(env, e);
  weft_rx_appear(env, port);
}
#if WEFT_RX_ASYNC
void weft_rx_admit_delay(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_delay *d = (weft_rx_delay *)e->owner;
  weft_rx_time t = e->time;
  uint32_t step = e->step;
  if (!weft_rx_before(env->now, t))
    t = env->now, step = env->step + 1; /* Only a physical connection reaches this branch. */
  e->fire = weft_rx_fire_delay;
  weft_rx_place(env, e, t, step, &d->latest, &d->latest_step, &d->queued);
}
#endif
void weft_rx_delay_send(void *delay) {
  weft_rx_delay *d = (weft_rx_delay *)delay;
  weft_rx_env *env = weft_rx_here();
  if (env->stopping) return;
#if WEFT_RX_WORKERS > 1
  bool entered = weft_rx_enter(env);
#endif
  weft_rx_event *e;
  bool local = d->kind == WEFT_RX_AFTER && d->to == env->number;
#if WEFT_RX_ASYNC
  e = local ? weft_rx_new_event(env) : weft_rx_new_outside_event();
#else
  e = weft_rx_new_event(env);
#endif
  bool packed = false;
  if (e) {
    e->owner = d;
    e->has_value = 1;
#if WEFT_RX_TOKENS
    if (weft_rx_delay_port(d)->flags & WEFT_RX_IS_TOKEN) {
      e->payload.token = *weft_rx_view_of(d->from).token;
      weft_rx_hold_token(e->payload.token);
      packed = true;
    } else
#endif
      packed = weft_rx_pack(&e->payload, (uint8_t *)d->from + d->value_at, d->size);
    if (!packed) weft_rx_free_event(env, e);
  }
  if (!packed)
    weft_panic(
        "weft: the pool of events or blocks is empty in a delayed connection; define a larger WEFT_RX_EVENTS or WEFT_RX_BLOCKS");
  if (local) {
    e->fire = weft_rx_fire_delay;
    if (d->interval)
      weft_rx_place(env, e, env->now + d->interval, 0, &d->latest, &d->latest_step, &d->queued);
    else weft_rx_place(env, e, env->now, env->step + 1, &d->latest, &d->latest_step, &d->queued);
  }
#if WEFT_RX_ASYNC
  else {
    weft_rx_env *to = &weft_rx_envs[d->to];
    e->fire = weft_rx_admit_delay;
    e->step = 0;
    if (d->kind == WEFT_RX_AFTER) e->time = env->now + d->interval;
    (void)weft_rx_post(to, e, d->interval, d->kind != WEFT_RX_AFTER);
  }
#else
  else { /* A physical connection in a program without the inbox carries the time of sending. */
    weft_rx_time t = weft_rx_clock() + d->interval;
    e->fire = weft_rx_fire_delay;
    if (weft_rx_before(env->now, t))
      weft_rx_place(env, e, t, 0, &d->latest, &d->latest_step, &d->queued);
    else weft_rx_place(env, e, env->now, env->step + 1, &d->latest, &d->latest_step, &d->queued);
  }
#endif
#if WEFT_RX_WORKERS > 1
  weft_rx_leave(entered);
#endif
}
#endif

/* ---- delays of a static schedule (R23) ------------------------------------------------------- */
#if WEFT_RX_STATIC
WEFT_INLINE void weft_rx_hold_copy(void *to, const void *from, uint32_t size) {
  if (size == 4 && !(((uintptr_t)to | (uintptr_t)from) & 3))
    __builtin_memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), 4);
  else __builtin_memcpy(to, from, size);
}
void weft_rx_hold_send(void *hold) {
  weft_rx_hold *h = (weft_rx_hold *)hold;
  weft_rx_env *env = weft_rx_here();
  if (env->stopping) return;
  if (h->count == h->capacity)
    weft_panic("weft: more is on its way in a delayed connection than its schedule knows of");
  uint32_t at = (uint32_t)h->first + h->count++;
  if (at >= h->capacity) at -= h->capacity;
  h->due[at] = env->now + h->interval;
  weft_rx_hold_copy((uint8_t *)h->values + at * h->size, (const uint8_t *)h->from + h->value_at,
                    h->size);
}
/* Called at a tag at which a value can arrive, before the tag's reactions. It is possible that no
 * value was sent. */
void weft_rx_hold_arrive(void *hold) {
  weft_rx_hold *h = (weft_rx_hold *)hold;
  weft_rx_env *env = weft_rx_here();
  if (!h->count || h->due[h->first] != env->now) return;
  weft_rx_hold_copy((uint8_t *)h->to + h->value_at, (const uint8_t *)h->values + h->first * h->size,
                    h->size);
  if (++h->first == h->capacity) h->first = 0;
  h->count--;
  weft_rx_appear(env, h->to);
}
#endif

/* ---- onces and ratios (R5) ------------------------------------------------------------------- */
void weft_rx_fire_once(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_trigger(env, ((weft_rx_once *)(void *)e)->trig);
}
void weft_rx_fire_ratio(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_ratio *r = (weft_rx_ratio *)(void *)e;
  weft_rx_trigger(env, r->once.trig);
  weft_rx_time gap = r->whole;
  if ((r->sum += r->rest) >= r->per) r->sum -= r->per, gap++;
  e->time = env->now + gap;
  weft_rx_insert_event(env, e);
}
/* Start a once, with its offset counted from the current tag. Before the start the current tag
 * is microstep -1 of the start time, so an offset of 0 means the start tag. */
int weft_rx_start_once(weft_rx_once *once) {
  weft_rx_env *env = weft_rx_here();
  once->event.time = env->now + once->offset;
  once->event.step = once->offset ? 0 : env->step + 1;
  if (once->event.fire == weft_rx_fire_ratio) ((weft_rx_ratio *)(void *)once)->sum = 0;
  weft_rx_insert_event(env, &once->event);
  return WEFT_OK;
}

/* ---- events that are not scheduled (R9, R13) ------------------------------------------------- */
/* Give back an event and any value that it holds. */
__attribute__((unused)) static void weft_rx_discard_event(weft_rx_env *env, weft_rx_event *e) {
  bool action = e->fire == weft_rx_fire_action;
#if WEFT_RX_ASYNC
  action = action || e->fire == weft_rx_admit_action;
#endif
  if (action) {
    weft_rx_action *a = (weft_rx_action *)e->owner;
    if (e->has_value) weft_rx_discard_payload(a->flags, a->size, &e->payload);
    weft_rx_free_event(env, e);
    return;
  }
#if WEFT_RX_WATCHDOGS
  if (e->from_outside && !e->owner) weft_rx_free_event(env, e); /* a request to stop */
#endif
#if WEFT_RX_DELAYS
  bool delay = e->fire == weft_rx_fire_delay;
#if WEFT_RX_ASYNC
  delay = delay || e->fire == weft_rx_admit_delay;
#endif
  if (delay) {
    weft_rx_delay *d = (weft_rx_delay *)e->owner;
    weft_rx_discard_payload(weft_rx_delay_port(d)->flags, d->size, &e->payload);
    weft_rx_free_event(env, e);
  }
#endif
}
#if WEFT_RX_ASYNC
/* Post an event from any thread, core or interrupt. If `now` is set, the event's time is `after`
 * from the present; otherwise e->time is already set. */
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
#endif
#endif
