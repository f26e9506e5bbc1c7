/* reactors/grants.h: the messages between several enclaves: which enclave may begin which tag, and
 * when all of them stop (R20). Part of weft_mcu/reactors_run.h.
 *
 * One lock protects the knowledge that the enclaves have of each other: `next`, `idle`, `blocked`,
 * `acked`, `done`, the inboxes and their news.
 *
 * Invariants
 *  1. An enclave sends nothing for a tag before `next` + the delay of the link. `next` is the time
 *     of the enclave's current tag, or of its first event. A post of an earlier event to the
 *     enclave lowers `next`.
 *  2. Therefore the earliest time at which an enclave can still act is the least of its `next` and
 *     of the times at which something can reach it over links. An enclave begins a tag only if, for
 *     every enclave that links to it, that time plus the link's delay is later than the tag.
 *  3. Enclaves stop together: each enclave announces its current tag and waits. The stop tag is the
 *     microstep after the latest of these tags.
 */
#ifndef WEFT_RX_GRANTS_H
#define WEFT_RX_GRANTS_H
#include "weft_mcu/reactors/stop.h"
#include "weft_mcu/reactors/waiting.h"
#if WEFT_RX_ENCLAVES > 1
static bool weft_rx_stop_all, weft_rx_timed_out;
static int64_t weft_rx_link_ticks[WEFT_RX_LINKS + 1] __attribute__((unused));
static bool weft_rx_stop_decided;
static weft_rx_time weft_rx_stop_time;
static uint32_t weft_rx_stop_step;

/* The following functions are called with the lock held. */
static void weft_rx_tell(weft_rx_env *env) { WEFT_POKE(env->news, 1); }
/* Called when the `next` of some enclave has risen, or the enclave is idle or done. Make the
 * enclaves that this enclave held back check again. Return whether some thread must be woken. */
static bool weft_rx_tell_blocked(weft_rx_env *but) {
  bool any = false;
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++)
    if (weft_rx_envs[i].blocked && &weft_rx_envs[i] != but) {
      weft_rx_envs[i].blocked = false;
      weft_rx_tell(&weft_rx_envs[i]);
      any = true;
    }
  return any;
}
static void weft_rx_begin_stop(void) {
  WEFT_POKE(weft_rx_stop_all, true);
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) weft_rx_tell(&weft_rx_envs[i]);
}
static bool weft_rx_all_idle(void) {
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++)
    if (!weft_rx_envs[i].done &&
        (!weft_rx_envs[i].idle || weft_rx_envs[i].inbox || weft_rx_envs[i].keepalive))
      return false;
  return true;
}
#if WEFT_RX_LINKS
static bool weft_rx_may_begin(weft_rx_env *env, weft_rx_time t) {
  enum { EVER = 1 << 30 };
  int64_t earliest[WEFT_RX_ENCLAVES];
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    weft_rx_env *e = &weft_rx_envs[i];
    bool never = e->done || (e->idle && !e->inbox);
    earliest[i] = e == env ? 0 : never ? INT64_MAX / 2 : (int64_t)(weft_rx_distance)(e->next - t);
#if WEFT_RX_PHYSICAL
    if (e != env && !e->done) {
      int64_t now = (int64_t)(weft_rx_distance)(weft_rx_clock() - t);
      if (now < earliest[i]) earliest[i] = now;
    }
#endif
  }
  for (unsigned round = 0; round < WEFT_RX_ENCLAVES; round++)
    for (unsigned k = 0; k < WEFT_RX_LINKS; k++) {
      int64_t arrives = earliest[weft_rx_links[k].from] + weft_rx_link_ticks[k];
      if (arrives < earliest[weft_rx_links[k].to] && weft_rx_links[k].to != env->number)
        earliest[weft_rx_links[k].to] = arrives;
    }
  for (unsigned k = 0; k < WEFT_RX_LINKS; k++)
    if (weft_rx_links[k].to == env->number && !weft_rx_envs[weft_rx_links[k].from].done &&
        earliest[weft_rx_links[k].from] + weft_rx_link_ticks[k] <= 0)
      return false;
  return true;
}
#endif

/* The following functions acquire the lock themselves. */
/* Announce that the next tag is at t, if no event comes. Return false if an event has come. */
static bool weft_rx_publish(weft_rx_env *env, weft_rx_time t) {
#if WEFT_RX_LINKS
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  bool good = !env->news, wake = false;
  if (good && env->next != t) {
    env->next = t;
    wake = weft_rx_tell_blocked(env);
  }
  weft_unlock(WEFT_RX_LOCK, irq);
  if (wake) weft_rx_wake_all();
  return good;
#else
  return (void)t, !WEFT_PEEK(env->news);
#endif
}
/* Return whether the tag at t, which is due, may begin. If not, wait until there is a reason to
 * check again. */
static bool weft_rx_granted(weft_rx_env *env, weft_rx_time t) {
#if WEFT_RX_LINKS
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  bool good = !env->news && weft_rx_may_begin(env, t), news = env->news;
  env->blocked = !good && !news;
  weft_unlock(WEFT_RX_LOCK, irq);
#if WEFT_RX_PHYSICAL /* Perhaps the clock alone has to advance. */
  if (!good && !news) weft_rx_sleep(env, weft_rx_clock() + 1);
#else
  if (!good && !news) weft_rx_enclave_wait(env);
#endif
  return good;
#else
  return (void)env, (void)t, true;
#endif
}
/* Called when nothing is left to do in this enclave. Wait until an event comes, or until every
 * enclave is idle. */
static void weft_rx_idle(weft_rx_env *env) {
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  bool wake = false;
  if (!env->news) {
    env->idle = true;
    wake = weft_rx_tell_blocked(env);
    if (weft_rx_all_idle()) weft_rx_begin_stop(), wake = true;
  }
  weft_unlock(WEFT_RX_LOCK, irq);
  if (wake) weft_rx_wake_all();
#if WEFT_RX_TIME64 || WEFT_RX_HOST
  weft_rx_enclave_wait(env);
#else
  weft_rx_sleep(env, weft_rx_clock() + WEFT_RX_NAP);
#endif
  irq = weft_lock(WEFT_RX_LOCK);
  env->idle = false;
  env->next = env->now;
  weft_unlock(WEFT_RX_LOCK, irq);
}
static bool weft_rx_all_acked(void) {
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++)
    if (!weft_rx_envs[i].acked && !weft_rx_envs[i].done) return false;
  return true;
}
static void weft_rx_decide_stop(void) {
  bool first = true;
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    weft_rx_env *e = &weft_rx_envs[i];
    if (e->done) continue;
    if (first || weft_rx_before(weft_rx_stop_time, e->now) ||
        (e->now == weft_rx_stop_time && e->step > weft_rx_stop_step))
      weft_rx_stop_time = e->now, weft_rx_stop_step = e->step;
    first = false;
  }
  weft_rx_stop_step++;
  weft_rx_stop_decided = true;
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) weft_rx_tell(&weft_rx_envs[i]);
}
/* Called between two tags. Wait until every enclave is between two tags or has ended; then set the
 * stop tag. */
static void __attribute__((noinline)) weft_rx_join_stop(weft_rx_env *env) {
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  env->acked = true;
  while (!weft_rx_stop_decided) {
    if (weft_rx_all_acked()) {
      weft_rx_decide_stop();
      break;
    }
    WEFT_POKE(env->news, 0);
    weft_unlock(WEFT_RX_LOCK, irq);
    weft_rx_wake_all();
    weft_rx_enclave_wait(env);
    irq = weft_lock(WEFT_RX_LOCK);
  }
  weft_unlock(WEFT_RX_LOCK, irq);
  weft_rx_wake_all();
  weft_rx_time t = weft_rx_stop_time;
  if (t == env->now && weft_rx_stop_step == env->step + 1) {
    weft_rx_stop_next(env);
    return;
  }
  if (env->stop.fire && !weft_rx_before(t, env->stop.time)) return; /* The timeout is earlier
                                                                     * than the next microstep. */
  if (env->stop.fire) (void)weft_rx_remove(env, weft_rx_as_node(&env->stop));
  env->stop = (weft_rx_event){.fire = weft_rx_fire_stop, .time = t, .step = weft_rx_stop_step};
  weft_rx_insert_event(env, &env->stop);
}
void weft_rx_request_stop(void) {
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  if (!weft_rx_stop_all && !weft_rx_here()->stopping) weft_rx_begin_stop();
  weft_unlock(WEFT_RX_LOCK, irq);
  weft_rx_wake_all();
}
#endif
#endif
