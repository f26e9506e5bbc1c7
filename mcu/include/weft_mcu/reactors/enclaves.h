/* reactors/enclaves.h: runs several enclaves, each on a core or thread of its own (R20). Part of
 * weft_mcu/reactors_run.h. */
#ifndef WEFT_RX_ENCLAVES_H
#define WEFT_RX_ENCLAVES_H
#include "weft_mcu/reactors/engine.h"
#include "weft_mcu/reactors/life.h"
#if WEFT_RX_ENCLAVES > 1
#if WEFT_RX_MODES
#error "weft: modes and enclaves do not go together yet; leave the enclaves out"
#endif
static weft_rx_event weft_rx_begins[WEFT_RX_ENCLAVES];
static void weft_rx_run_one(weft_rx_env *env) {
#if WEFT_RX_HOST
  weft_rx_mine = env;
#else
  weft_wait_init();
#endif
  weft_rx_serve(env);
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  env->done = true;
  if (!weft_rx_stop_all)
    WEFT_POKE(weft_rx_timed_out, true); /* The other enclaves, idle or not, continue to the
                                         * timeout's tag. */
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    weft_rx_envs[i].blocked = false;
    weft_rx_tell(&weft_rx_envs[i]);
  }
  weft_unlock(WEFT_RX_LOCK, irq);
  weft_rx_wake_all();
}
#if WEFT_RX_HOST
static void *weft_rx_enclave_thread(void *env) {
  return weft_rx_run_one((weft_rx_env *)env), (void *)0;
}
#else
static void weft_rx_core1(void) { weft_rx_run_one(weft_rx_mine[1]); }
#endif
static void weft_rx_run_enclaves(uint64_t start, const weft_rx_options *options) {
  weft_rx_stop_all = weft_rx_stop_decided = weft_rx_timed_out = false;
#if WEFT_RX_HOST
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&weft_rx_changed, &attributes);
  pthread_condattr_destroy(&attributes);
#endif
#if WEFT_RX_LINKS
  for (unsigned k = 0; k < WEFT_RX_LINKS; k++)
    weft_rx_link_ticks[k] = weft_rx_ticks(weft_rx_links[k].delay_ns);
#endif
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    weft_rx_env *env = &weft_rx_envs[i];
    env->number = (uint8_t)i;
    env->next = (weft_rx_time)start;
    env->idle = env->blocked = env->acked = env->done = false;
#if WEFT_RX_HOST
    weft_rx_mine = env;
#else
    weft_rx_mine[weft_core()] = env;
#endif
    weft_rx_begin(env, (weft_rx_time)start, (uint32_t)(start >> 32), options);
    weft_rx_begins[i] = (weft_rx_event){.fire = weft_rx_fire_start};
    env->soon = env->soon_last = &weft_rx_begins[i];
  }
#if WEFT_RX_HOST
  static pthread_t threads[WEFT_RX_ENCLAVES];
  for (unsigned i = 1; i < WEFT_RX_ENCLAVES; i++)
    if (pthread_create(&threads[i], 0, weft_rx_enclave_thread, &weft_rx_envs[i]))
      weft_panic("weft: no thread for an enclave");
  weft_rx_run_one(&weft_rx_envs[0]);
  for (unsigned i = 1; i < WEFT_RX_ENCLAVES; i++) pthread_join(threads[i], 0);
  pthread_cond_destroy(&weft_rx_changed);
#else
  /* `here` is the enclave that runs on core 0. */
  unsigned here = WEFT_RX_PROGRAM(&weft_rx_envs[0])->core ? 1 : 0;
  weft_rx_mine[0] = &weft_rx_envs[here];
  weft_rx_mine[1] = &weft_rx_envs[1 - here];
  if (weft_start_core(weft_rx_core1, WEFT_STACK1, WEFT_STACK1_BYTES))
    weft_panic("weft: core 1 does not start");
  weft_rx_run_one(weft_rx_mine[0]);
  while (!WEFT_PEEK(weft_rx_mine[1]->done)) weft_wait();
#endif
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) weft_rx_end(&weft_rx_envs[i]);
}
#endif
#endif
