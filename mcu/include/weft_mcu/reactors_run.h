/* weft_mcu/reactors_run.h: the engine. A program includes it once, at the end of its file, where
 * its tables are known. */
#ifndef WEFT_MCU_REACTORS_RUN_H
#define WEFT_MCU_REACTORS_RUN_H
#ifndef WEFT_MCU_REACTORS_H
#error "include weft_mcu/reactors.h (or weft_mcu/lf.h) at the top of the file, and this at its end"
#endif
#if WEFT_RX_HOST
static weft_rx_event *weft_rx_chunks; /* every block of events allocated so far, chained by
                                         `owner` */
#endif
#include "weft_mcu/reactors/queue.h"
#include "weft_mcu/reactors/tokens.h"
#include "weft_mcu/reactors/actions.h"
#include "weft_mcu/reactors/engine.h"
#include "weft_mcu/reactors/wiring.h"
static void weft_rx_discard_event(weft_rx_env *env, weft_rx_event *e);
#if WEFT_RX_MODES
#include "weft_mcu/reactors/modes.h"
#endif
#if WEFT_RX_WORKERS > 1
#include "weft_mcu/reactors/workers.h"
#endif

#if !WEFT_RX_STATIC
static void weft_rx_fire_start(weft_rx_env *env, weft_rx_event *e) {
  (void)e;
  weft_rx_trigger(env, WEFT_RX_PROGRAM(env)->startup);
#if WEFT_RX_MODES
  weft_rx_begin_modes(env);
#endif
}
#endif
/* Give back an event and whatever value it holds. */
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
         i--;) { /* the last first: of equal ones each goes to the front */
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
  irq = weft_lock(WEFT_RX_INBOX_LOCK); /* code outside may look at `stopped` at any moment */
  *env = (weft_rx_env){.number = env->number, .stopped = true};
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#else
  *env = (weft_rx_env){.number = env->number};
#endif
}

#if WEFT_RX_ENCLAVES > 1
#include "weft_mcu/reactors/enclaves.h"
#endif

int weft_rx_run(const weft_rx_options *options) {
  weft_rx_options defaults = WEFT_RX_OPTIONS;
  if (!options) options = &defaults;
#if WEFT_RX_WIRED
  weft_rx_wire();
#endif
  const char *wrong = weft_rx_wrong(options);
  if (wrong) weft_panic(wrong);
  weft_wait_init();
#if WEFT_RX_TRACE
  weft_rx_trace_open();
#endif
  uint64_t start = weft_rx_clock64();
#if WEFT_RX_ENCLAVES > 1
  weft_rx_run_enclaves(start, options);
#else
  weft_rx_env *env = &weft_rx_envs[0];
  weft_rx_begin(env, (weft_rx_time)start, (uint32_t)(start >> 32), options);
#if !WEFT_RX_STATIC
  static weft_rx_event begin = {.fire = weft_rx_fire_start};
  begin.next = 0; /* left over from the start of an earlier run */
  env->soon = env->soon_last = &begin;
#endif
#if WEFT_RX_WORKERS > 1
  weft_rx_start_workers(env, options->workers);
#endif
  weft_rx_serve(env);
#if WEFT_RX_WORKERS > 1
  weft_rx_stop_workers();
#endif
  weft_rx_end(env);
#endif
#if WEFT_RX_HOST
  while (weft_rx_chunks) {
    weft_rx_event *chunk = weft_rx_chunks;
    weft_rx_chunks = (weft_rx_event *)chunk->owner;
    free(chunk);
  }
#if WEFT_RX_ASYNC
  while (weft_rx_outside_events) {
    weft_rx_event *e = weft_rx_outside_events;
    weft_rx_outside_events = weft_rx_as_event(e->next);
    free(e);
  }
#endif
#if WEFT_RX_TRACE
  weft_rx_trace_close();
#endif
#endif
  return 0;
}
#if WEFT_RX_HOST
#include "weft_mcu/reactors/host.h"
#endif
#ifdef WEFT_MCU_LF_H
#include "weft_mcu/reactors/lf_run.h"
#endif
#endif
