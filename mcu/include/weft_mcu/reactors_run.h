/* weft_mcu/reactors_run.h: the engine. A program includes it once, at the end of its file, where
 * its tables are known. */
#ifndef WEFT_MCU_REACTORS_RUN_H
#define WEFT_MCU_REACTORS_RUN_H
#ifndef WEFT_MCU_REACTORS_H
#error "include weft_mcu/reactors.h (or weft_mcu/lf.h) at the top of the file, and this at its end"
#endif
#include "weft_mcu/reactors/enclaves.h"
#include "weft_mcu/reactors/engine.h"
#include "weft_mcu/reactors/life.h"
#include "weft_mcu/reactors/watchdogs.h"
#include "weft_mcu/reactors/wiring.h"
#include "weft_mcu/reactors/workers.h"

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
#if WEFT_RX_RECORDS
  weft_rx_record_open();
#endif
  uint64_t start = weft_rx_clock64();
#if WEFT_RX_ENCLAVES > 1
  weft_rx_run_enclaves(start, options);
#else
  weft_rx_env *env = &weft_rx_envs[0];
  weft_rx_begin(env, (weft_rx_time)start, (uint32_t)(start >> 32), options);
#if !WEFT_RX_STATIC
  static weft_rx_event begin = {.fire = weft_rx_fire_start};
  begin.next = 0; /* `next` may be left over from the start of an earlier run. */
  env->soon = env->soon_last = &begin;
#endif
#if WEFT_RX_WORKERS > 1
  weft_rx_start_workers(env, options->workers);
#endif
#if WEFT_RX_WATCHDOGS
  weft_rx_start_watchdogs();
#endif
  weft_rx_serve(env);
#if WEFT_RX_WATCHDOGS
  weft_rx_end_watchdogs();
#endif
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
#if WEFT_RX_RECORDS
  weft_rx_record_close();
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
