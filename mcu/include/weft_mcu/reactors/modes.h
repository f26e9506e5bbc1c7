/* reactors/modes.h: modes (R16 to R18). Part of weft_mcu/reactors_run.h.
 *
 * Invariants
 *  1. Between tags, an event in the queue or in `soon` belongs to no mode or to an active one. An
 *     event of an inactive mode waits in `suspended`; its time is the time that remained when its
 *     mode was left.
 *  2. A mode is `started` while its timers and onces are in the queue or suspended.
 *  3. A mode is `renewed` from its reset until it is active: the mode around it may be left at the
 *     same tag. Then its states and its reset triggers wait too.
 *  4. weft_rx_modals lists outer reactors before inner ones, so one pass can find the modes around
 *     a mode.
 */
#ifndef WEFT_RX_MODES_H
#define WEFT_RX_MODES_H
#include "weft_mcu/reactors/actions.h"
#include "weft_mcu/reactors/wiring.h"
#if WEFT_RX_MODES

/* Return the mode to which a node of the queue belongs, or 0 if it belongs to none. */
static weft_rx_mode *weft_rx_mode_of_node(weft_rx_timer *n) {
  if (n->period) return n->mode;
  weft_rx_event *e = weft_rx_as_event(n);
  if (e->fire == weft_rx_fire_action) return ((weft_rx_action *)e->owner)->mode;
#if WEFT_RX_DELAYS
  if (e->fire == weft_rx_fire_delay) return ((weft_rx_delay *)e->owner)->mode;
#endif
  if (e->fire == weft_rx_fire_once || e->fire == weft_rx_fire_ratio)
    return ((weft_rx_once *)(void *)e)->mode;
  return 0;
}
static bool weft_rx_owned(weft_rx_event *e, uint32_t **queued) {
  if (e->fire == weft_rx_fire_action) *queued = &((weft_rx_action *)e->owner)->queued;
#if WEFT_RX_DELAYS
  else if (e->fire == weft_rx_fire_delay) *queued = &((weft_rx_delay *)e->owner)->queued;
#endif
  else return false;
  return true;
}
static void weft_rx_forget(weft_rx_env *env, weft_rx_timer *n) {
  uint32_t *queued;
  weft_rx_event *e = weft_rx_as_event(n);
  if (n->period || !weft_rx_owned(e, &queued)) return;
  if (e->fire == weft_rx_fire_action && ((weft_rx_action *)e->owner)->last == e)
    ((weft_rx_action *)e->owner)->last = 0;
  weft_rx_discard_event(env, e);
}
static void weft_rx_keep_suspended(weft_rx_env *env, weft_rx_timer *n) {
  n->next = 0;
  if (env->suspended) env->suspended_last->next = n;
  else env->suspended = n;
  env->suspended_last = n;
}
static void weft_rx_suspend(weft_rx_env *env, weft_rx_timer *n) {
  uint32_t *queued;
  if (!n->period && weft_rx_owned(weft_rx_as_event(n), &queued)) --*queued;
  n->time -= env->now;
  weft_rx_keep_suspended(env, n);
}
static void weft_rx_resume(weft_rx_env *env, weft_rx_timer *n) {
  weft_rx_time t = n->time + env->now;
  if (n->period) {
    n->time = t;
    weft_rx_insert_timer(env, n);
    return;
  }
  weft_rx_event *e = weft_rx_as_event(n);
  uint32_t step = t == env->now ? env->step + 1 : 0, *queued;
  if (!weft_rx_owned(e, &queued)) {
    e->time = t;
    e->step = step;
    weft_rx_insert_event(env, e);
  } else if (e->fire == weft_rx_fire_action) {
    weft_rx_action *a = (weft_rx_action *)e->owner;
    weft_rx_place(env, e, t, step, &a->latest, &a->latest_step, &a->queued);
  }
#if WEFT_RX_DELAYS
  else {
    weft_rx_delay *d = (weft_rx_delay *)e->owner;
    weft_rx_place(env, e, t, step, &d->latest, &d->latest_step, &d->queued);
  }
#endif
}
/* Begin the mode's timers and onces, counted from now; those with offset 0 occur at microstep
 * `step`. */
static void weft_rx_start_mode(weft_rx_env *env, weft_rx_mode *mode, uint32_t step) {
  mode->started = true;
#if WEFT_RX_TIMERS
  WEFT_RX_TABLE weft_rx_program *program = WEFT_RX_PROGRAM(env);
  for (unsigned k = 0; k < program->ranges; k++)
    for (uint32_t i = 0; i < weft_rx_timers[program->first_range + k].count; i++) {
      weft_rx_timer *timer = weft_rx_in_range(&weft_rx_timers[program->first_range + k], i);
      if (timer->mode != mode) continue;
      timer->time = env->now + timer->offset;
      weft_rx_insert_timer(env, timer);
    }
#endif
  for (weft_rx_once *once = mode->onces; once; once = once->more) {
    once->mode = mode;
    once->event.time = env->now + once->offset;
    once->event.step = once->offset ? 0 : step;
    if (once->event.fire == weft_rx_fire_ratio) ((weft_rx_ratio *)(void *)once)->sum = 0;
    weft_rx_insert_event(env, &once->event);
  }
}
/* Find out which modes are active now. The startup of a mode is triggered when the mode is active
 * for the first time. */
static void weft_rx_activate(void) {
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++) {
    bool live = !(*m)->outer || (*m)->outer->active;
    for (unsigned i = 0; i < (*m)->count; i++)
      (*m)->modes[i].active = live && &(*m)->modes[i] == (*m)->current;
  }
}
static void weft_rx_enter_active(weft_rx_env *env, uint32_t step) {
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++)
    for (unsigned i = 0; i < (*m)->count; i++) {
      weft_rx_mode *mode = &(*m)->modes[i];
      if (!mode->active) continue;
      if (mode->renewed) {
        mode->renewed = false;
        if (mode->reset_state) mode->reset_state(mode->self);
        weft_rx_trigger(env, mode->reset);
      }
      if (!mode->started) weft_rx_start_mode(env, mode, step);
      if (!mode->entered) weft_rx_trigger(env, mode->startup);
      mode->entered = true;
    }
}
static void weft_rx_begin_modes(weft_rx_env *env) {
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++) {
    (*m)->current = (*m)->initial;
    (*m)->change = 0;
    for (unsigned i = 0; i < (*m)->count; i++) {
      weft_rx_mode *mode = &(*m)->modes[i];
      mode->entered = mode->started = mode->wiped = mode->renewed = false;
    }
  }
  weft_rx_activate();
  weft_rx_enter_active(env, env->step);
}
void weft_rx_change_mode(weft_rx_mode *mode, int how) {
  weft_rx_env *env = weft_rx_here();
#if WEFT_RX_WORKERS > 1
  bool entered = weft_rx_enter(env);
#endif
  mode->modal->next = mode;
  mode->modal->change = (uint8_t)how;
  env->changing = true;
#if WEFT_RX_WORKERS > 1
  weft_rx_leave(entered);
#endif
}
/* The node n, which is out of the queue, may belong to a mode that was wiped or is not active. If
 * so, suspend or discard the node and return true. */
static bool weft_rx_leaves(weft_rx_env *env, weft_rx_timer *n) {
  weft_rx_mode *mode = weft_rx_mode_of_node(n);
  if (!mode || (mode->active && !mode->wiped)) return false;
  if (!mode->wiped) weft_rx_suspend(env, n);
  else {
    uint32_t *queued;
    if (!n->period && weft_rx_owned(weft_rx_as_event(n), &queued)) --*queued;
    weft_rx_forget(env, n);
  }
  return true;
}
static void weft_rx_fire_nothing(weft_rx_env *env, weft_rx_event *e) { (void)env, (void)e; }
/* Carry out, at the end of a tag, the mode changes that the tag has set. The next tag is the next
 * microstep. */
static void __attribute__((noinline)) weft_rx_change_modes(weft_rx_env *env) {
  env->changing = false;
  if (env->stopping) return;
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++) {
    weft_rx_modal *modal = *m;
    bool around = modal->outer && modal->outer->wiped; /* The mode around was reset, so all is as
                                                        * at the start. */
    if (around) modal->current = modal->initial;
    else if (modal->change) modal->current = modal->next;
    for (unsigned i = 0; i < modal->count; i++)
      modal->modes[i].wiped =
          around || (modal->change == WEFT_RX_RESET && &modal->modes[i] == modal->current);
    modal->change = 0;
  }
  weft_rx_activate();
  /* Go through all waiting nodes. Nodes of wiped modes are discarded, nodes of inactive modes are
   * suspended, and nodes of modes that are active again are resumed. */
  weft_rx_timer *stay = 0, *suspended = env->suspended, *n, *next;
  env->suspended = 0;
  weft_rx_event *soon = env->soon, *following;
  env->soon = 0;
  for (; soon; soon = following) {
    following = weft_rx_as_event(soon->next);
    n = weft_rx_as_node(soon);
    if (weft_rx_leaves(env, n)) continue;
    n->next = 0;
    if (env->soon) env->soon_last->next = n;
    else env->soon = soon;
    env->soon_last = soon;
  }
  while ((n = weft_rx_first(env))) {
    (void)weft_rx_take_first(env);
    if (weft_rx_leaves(env, n)) continue;
    n->next = stay; /* `stay` has the reverse order: below, each node is inserted in front. */
    stay = n;
  }
  for (n = stay; n; n = next) {
    next = n->next;
    if (n->period) weft_rx_insert_timer(env, n);
    else weft_rx_insert_event(env, weft_rx_as_event(n));
  }
  for (n = suspended; n; n = next) {
    next = n->next;
    weft_rx_mode *mode = weft_rx_mode_of_node(n);
    if (mode->wiped) weft_rx_forget(env, n);
    else if (mode->active) weft_rx_resume(env, n);
    else weft_rx_keep_suspended(env, n);
  }
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++)
    for (unsigned i = 0; i < (*m)->count; i++) {
      weft_rx_mode *mode = &(*m)->modes[i];
      if (!mode->wiped) continue;
      mode->started = false;
      mode->renewed = mode == (*m)->current;
    }
  weft_rx_enter_active(env, env->step + 1);
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++)
    for (unsigned i = 0; i < (*m)->count; i++) (*m)->modes[i].wiped = false;
  static weft_rx_event entry = {
      .fire = weft_rx_fire_nothing}; /* the tag at which the new modes are active, even if it has
                                      * no other event */
  entry.next = 0;
  if (env->soon) env->soon_last->next = weft_rx_as_node(&entry);
  else env->soon = &entry;
  env->soon_last = &entry;
}
static void weft_rx_shut_modes(weft_rx_env *env) {
  for (weft_rx_modal *WEFT_RX_TABLE *m = weft_rx_modals; *m; m++)
    for (unsigned i = 0; i < (*m)->count; i++)
      if ((*m)->modes[i].entered) weft_rx_trigger(env, (*m)->modes[i].shutdown);
}
/* Return whether reaction r of an inactive mode runs at the stop tag. It runs if shutdown triggers
 * it and the mode was ever active. */
static bool weft_rx_runs_at_shutdown(weft_rx_env *env, weft_rx_mode *mode, unsigned r) {
  if (!env->stopping) return false;
  for (; mode; mode = mode->modal->outer) {
    if (!mode->entered) continue;
#if WEFT_RX_MASKS
    if (mode->shutdown >> r & 1) return true;
#else
    if (mode->shutdown & WEFT_RX_ONE_BIT) {
      if ((mode->shutdown & ~WEFT_RX_ONE_BIT) == r) return true;
      continue;
    }
    for (WEFT_RX_TABLE weft_rx_index *list = &weft_rx_triggers[mode->shutdown];
         *list != WEFT_RX_END; list++)
      if (*list == r) return true;
#endif
  }
  return false;
}
static void weft_rx_end_modes(weft_rx_env *env) {
  for (weft_rx_timer *n = env->suspended, *next; n; n = next) {
    next = n->next;
    weft_rx_forget(env, n);
  }
  env->suspended = 0;
}
#endif
#endif
