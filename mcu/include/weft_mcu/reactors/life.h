/* reactors/life.h: begins and ends the run of an enclave. Part of weft_mcu/reactors_run.h. */
#ifndef WEFT_RX_LIFE_H
#define WEFT_RX_LIFE_H
#include "weft_mcu/reactors/stop.h"

#if !WEFT_RX_STATIC
static void weft_rx_fire_start(weft_rx_env *env, weft_rx_event *e) {
  (void)e;
  weft_rx_trigger(env, WEFT_RX_PROGRAM(env)->startup);
#if WEFT_RX_MODES
  weft_rx_begin_modes(env);
#endif
}
#endif
static void weft_rx_begin(weft_rx_env *env, weft_rx_time start, uint32_t high,
                          const weft_rx_options *options) {
  WEFT_RX_TABLE weft_rx_program *program = WEFT_RX_PROGRAM(env);
#if WEFT_RX_ASYNC
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  env->stopped = false;
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#endif
  env->now = env->start = start;
  env->high = high;
#if WEFT_RX_BIT_TABLE
  for (unsigned i = 0; i < 32; i++)
    env->bits[0x077cb531u << i >> 27] = (uint8_t)(i * WEFT_RX_BIT_STEP);
#endif
  env->step = UINT32_MAX; /* the microstep before the start tag */
  env->start_ns = weft_rx_logical_of(env);
  env->fast = options->fast;
  env->keepalive = options->keepalive || (WEFT_RX_PHYSICAL && !options->no_keepalive);
#if WEFT_RX_HEAP
#if WEFT_RX_HOST
  env->capacity = WEFT_RX_QUEUED + 8;
  env->heap = (weft_rx_timer **)malloc(env->capacity * sizeof *env->heap);
  if (!env->heap) weft_panic("weft: no memory for the queue");
#else
  static weft_rx_timer *places[WEFT_RX_ENCLAVES][WEFT_RX_QUEUED + 1];
  env->heap = places[env->number];
  env->capacity = WEFT_RX_QUEUED + 1;
#endif
#endif
  if (options->timeout_ns >= 0)
    env->stop = (weft_rx_event){.fire = weft_rx_fire_stop,
                                .time = start + (weft_rx_time)weft_rx_ticks(options->timeout_ns)};
#if !WEFT_RX_STATIC
  if (env->stop.fire) weft_rx_insert_event(env, &env->stop);
#if WEFT_RX_TIMERS
  for (unsigned k = 0; k < program->ranges; k++)
    for (uint32_t i = weft_rx_timers[program->first_range + k].count;
         i--;) { /* from the last to the first, since of several timers with equal times each is
                  * inserted in front */
      weft_rx_timer *timer = weft_rx_in_range(&weft_rx_timers[program->first_range + k], i);
#if WEFT_RX_MODES
      timer->offset = timer->time;
      if (timer->mode) continue;
#endif
      timer->time += start;
      weft_rx_insert_timer(env, timer);
    }
#endif
#endif
  if (program->start) program->start();
}
static void weft_rx_end(weft_rx_env *env) {
#if WEFT_RX_ASYNC
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  env->stopped = true;
  weft_rx_event *late = env->inbox;
  env->inbox = 0;
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
  while (late) {
    weft_rx_event *next = weft_rx_as_event(late->next);
    weft_rx_discard_event(env, late);
    late = next;
  }
#endif
#if !WEFT_RX_STATIC
  weft_rx_timer *n;
  while ((n = weft_rx_first(env))) {
    (void)weft_rx_take_first(env);
    if (!n->period) weft_rx_discard_event(env, weft_rx_as_event(n));
  }
  for (weft_rx_event *e = env->soon, *next; e; e = next) {
    next = weft_rx_as_event(e->next);
    weft_rx_discard_event(env, e);
  }
  env->soon = 0;
#if WEFT_RX_MODES
  weft_rx_end_modes(env);
#endif
#endif
#if WEFT_RX_HEAP && WEFT_RX_HOST
  free(env->heap);
#endif
#if WEFT_RX_ASYNC
  irq = weft_lock(WEFT_RX_INBOX_LOCK); /* Code outside may read `stopped` at any moment. */
  *env = (weft_rx_env){.number = env->number, .stopped = true};
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#else
  *env = (weft_rx_env){.number = env->number};
#endif
}
#endif
