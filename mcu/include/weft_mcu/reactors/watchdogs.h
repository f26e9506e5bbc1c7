/* reactors/watchdogs.h: watchdogs (R25), on a host. Part of weft_mcu/reactors_run.h.
 *
 * A watchdog has a thread, which waits for the expiry and calls the handler:
 *
 *      not started ──weft_rx_start_watchdog──► started ──the clock──► handler ──► not started
 *           ▲                                    │  ▲                    │
 *           └───────weft_rx_stop_watchdog────────┘  └──started again─────┘
 *
 * Invariants
 *  1. The thread holds the reactor's lock, except while it waits. Each reaction of the reactor
 *     holds this lock too. So `expires` and `ended` are read and written under the lock.
 *  2. The thread touches no field of the enclave: the events that it makes go through the inbox.
 *  3. The events that a handler schedules are posted when the handler has returned, in one step
 *     with the watchdog's own event. So all events that are for one tag are there at that tag.
 */
#ifndef WEFT_RX_WATCHDOGS_H
#define WEFT_RX_WATCHDOGS_H
#include "weft_mcu/reactors/actions.h"
#include "weft_mcu/reactors/stop.h"
#if WEFT_RX_WATCHDOGS
void weft_rx_start_watchdog(weft_rx_watchdog *w, int64_t extra) {
  int64_t expires = weft_rx_logical() + w->timeout + extra;
  w->expires = expires < 0 ? 0 : expires;
  pthread_cond_signal(&w->changed);
}
void weft_rx_stop_watchdog(weft_rx_watchdog *w) {
  w->expires = -1;
  pthread_cond_signal(&w->changed);
}

/* ---- events of the thread -------------------------------------------------------------------- */
static void weft_rx_fire_ask(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_free_event(env, e);
  weft_rx_stop_next(env);
}
/* Put a handler's request to stop at the tag of its expiry; if that tag is past, stop now. */
static void weft_rx_admit_ask(weft_rx_env *env, weft_rx_event *e) {
  if (!weft_rx_before(env->now, e->time)) {
    weft_rx_fire_ask(env, e);
    return;
  }
  e->fire = weft_rx_fire_ask;
  e->period = 0;
  e->step = 0;
  weft_rx_insert_event(env, e);
}
void weft_rx_ask_to_stop(void) {
  weft_rx_event *e = weft_rx_new_outside_event();
  if (!e) weft_panic("weft: no memory for an event");
  e->owner = 0;
  e->has_value = false;
  e->fire = weft_rx_admit_ask;
  e->time = (weft_rx_time)(weft_rx_watching->at / WEFT_TICK_NS);
  weft_rx_hold_back(e);
}
/* Post what the handler of w has scheduled. */
static void weft_rx_post_held(weft_rx_watchdog *w) {
  weft_rx_env *env = &weft_rx_envs[0];
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  bool stopped = env->stopped;
  if (!stopped) {
    if (env->inbox) env->inbox_last->next = weft_rx_as_node(w->held);
    else env->inbox = w->held;
    env->inbox_last = w->held_last;
    WEFT_POKE(env->news, 1);
  }
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
  if (!stopped) weft_rx_wake_all();
  else
    for (weft_rx_event *e = w->held, *next; e; e = next) {
      next = weft_rx_as_event(e->next);
      weft_rx_discard_event(env, e);
    }
  w->held = 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */
/* Wait until there is a change, or until a time (ns of the clock). */
static void weft_rx_wait_for_change(weft_rx_watchdog *w, int64_t ns) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  int64_t at = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ns - weft_rx_clock_ns();
  t = (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
  (void)pthread_cond_timedwait(&w->changed, w->lock, &t);
}
static void *weft_rx_watch(void *watchdog) {
  weft_rx_watchdog *w = (weft_rx_watchdog *)watchdog;
  weft_rx_watching = w;
  pthread_mutex_lock(w->lock);
  while (!w->ended) {
    if (w->expires < 0) pthread_cond_wait(&w->changed, w->lock);
    else if (weft_rx_clock_ns() < w->expires) weft_rx_wait_for_change(w, w->expires);
    else {
      w->at = w->expires;
      w->expires = -1; /* before the handler, which may start the watchdog again */
      if (weft_rx_schedule_watched(&w->action, 0, (weft_rx_payload){0}, false) < 0)
        weft_panic("weft: no memory for an event");
      w->handler(w->self);
      weft_rx_post_held(w);
    }
  }
  pthread_mutex_unlock(w->lock);
  return 0;
}

/* ---- the beginning and the end of a run ------------------------------------------------------ */
static void weft_rx_start_watchdogs(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  for (unsigned i = 0; i < WEFT_RX_WATCHDOGS; i++) {
    weft_rx_watchdog *w = weft_rx_watchdogs[i];
    /* The watchdogs of a reactor are next to each other in the table. */
    if (!i || weft_rx_watchdogs[i - 1]->lock != w->lock) pthread_mutex_init(w->lock, 0);
    pthread_cond_init(&w->changed, &attributes);
    w->expires = -1;
    w->ended = false;
  }
  for (unsigned i = 0; i < WEFT_RX_WATCHDOGS; i++)
    if (pthread_create(&weft_rx_watchdogs[i]->thread, 0, weft_rx_watch, weft_rx_watchdogs[i]))
      weft_panic("weft: no thread for a watchdog");
  pthread_condattr_destroy(&attributes);
}
static void weft_rx_end_watchdogs(void) {
  for (unsigned i = 0; i < WEFT_RX_WATCHDOGS; i++) {
    weft_rx_watchdog *w = weft_rx_watchdogs[i];
    pthread_mutex_lock(w->lock);
    w->ended = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(w->lock);
    pthread_join(w->thread, 0);
    pthread_cond_destroy(&w->changed);
  }
}
#endif
#endif
