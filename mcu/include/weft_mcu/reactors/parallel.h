/* reactors/parallel.h: the lock of reactions that run together (R19). Part of
 * weft_mcu/reactors_run.h.
 *
 * Invariant: while `parallel` is set, the lock protects everything that several reactions may touch
 * (pending, present, the queue, free events). While it is not set no thread takes the lock.
 */
#ifndef WEFT_RX_PARALLEL_H
#define WEFT_RX_PARALLEL_H
#include "weft_mcu/reactors/env.h"
#if WEFT_RX_WORKERS > 1
#define WEFT_RX_WORK_LOCK WEFT_SPINLOCK(WEFT_RX_SPINLOCK + 2)

WEFT_INLINE bool weft_rx_enter(weft_rx_env *env) {
  if (!env->parallel) return false;
  weft_lock_thread(WEFT_RX_WORK_LOCK);
  return true;
}
WEFT_INLINE void weft_rx_leave(bool entered) {
  if (entered) weft_unlock_thread(WEFT_RX_WORK_LOCK);
}
void weft_rx_set_parallel(weft_rx_env *env, weft_rx_port *p) {
  bool entered = weft_rx_enter(env);
  if (!p->is_present) weft_rx_appear(env, p);
  weft_rx_leave(entered);
}
#endif
#endif
