/* reactors/stop.h: the stop tag (R12). Part of weft_mcu/reactors_run.h. */
#ifndef WEFT_RX_STOP_H
#define WEFT_RX_STOP_H
#include "weft_mcu/reactors/modes.h"
#include "weft_mcu/reactors/parallel.h"
#include "weft_mcu/reactors/queue.h"

void weft_rx_fire_stop(weft_rx_env *env, weft_rx_event *e) {
  (void)e;
  env->stopping = true;
#if WEFT_RX_ASYNC
  weft_irq_t irq = weft_lock(WEFT_RX_INBOX_LOCK);
  env->stopped = true; /* R13: the stop tag is the last */
  weft_unlock(WEFT_RX_INBOX_LOCK, irq);
#endif
  env->stop.next = 0;
  env->soon = &env->stop; /* weft_rx_serve examines `soon` */
  weft_rx_trigger(env, WEFT_RX_PROGRAM(env)->shutdown);
#if WEFT_RX_MODES
  weft_rx_shut_modes(env);
#endif
}
/* Make the next microstep the stop tag, even if it has other events. */
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
#if WEFT_RX_WATCHDOGS
  if (weft_rx_watching) {
    weft_rx_ask_to_stop();
    return;
  }
#endif
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
#endif
