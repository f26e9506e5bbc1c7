/* reactors/waiting.h: how an enclave sleeps until a time or until there is news, and how the
 * enclave is woken. Part of weft_mcu/reactors_run.h.
 */
#ifndef WEFT_RX_WAITING_H
#define WEFT_RX_WAITING_H
#include "weft_mcu/reactors/env.h"
#if !WEFT_RX_ASYNC
static const uint16_t weft_rx_no_news = 0;
#define WEFT_RX_NEWS(env) (&weft_rx_no_news)
#else
#define WEFT_RX_NEWS(env) (&(env)->news)
#endif
#if WEFT_RX_ENCLAVES > 1
#define WEFT_RX_LOCK WEFT_RX_INBOX_LOCK
#if WEFT_RX_HOST
static pthread_cond_t weft_rx_changed;
static void weft_rx_wake_all(void) { pthread_cond_broadcast(&weft_rx_changed); }
/* Wait until there is news, or until a time (ns of the clock; 0 means no time). */
static void weft_rx_wait_until_ns(weft_rx_env *env, int64_t ns) {
  struct timespec t = {0, 0};
  if (ns) { /* The condition variable uses the monotonic clock. */
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t at = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ns - weft_rx_clock_ns();
    t = (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
  }
  pthread_mutex_lock(&WEFT_RX_LOCK->mutex);
  while (!env->news && (!ns || weft_rx_clock_ns() < ns)) {
    if (ns) (void)pthread_cond_timedwait(&weft_rx_changed, &WEFT_RX_LOCK->mutex, &t);
    else pthread_cond_wait(&weft_rx_changed, &WEFT_RX_LOCK->mutex);
  }
  pthread_mutex_unlock(&WEFT_RX_LOCK->mutex);
}
static void weft_rx_enclave_sleep(weft_rx_env *env, weft_rx_time t) {
  weft_rx_wait_until_ns(env, t * WEFT_TICK_NS);
}
static void weft_rx_enclave_wait(weft_rx_env *env) { weft_rx_wait_until_ns(env, 0); }
#else
static void weft_rx_wake_all(void) { weft_wake(); }
static void weft_rx_enclave_wait(weft_rx_env *env) { weft_wait_news(&env->news); }
#endif
#else
#define weft_rx_wake_all() weft_wake()
#endif
/* The longest time, in ticks, that a program with 32-bit times sleeps (weft_rx_follow). */
enum { WEFT_RX_NAP = 1 << 30 };
/* Sleep until t or until there is news. May return early. */
WEFT_INLINE void weft_rx_sleep(weft_rx_env *env, weft_rx_time t) {
  (void)env;
#if WEFT_RX_ENCLAVES > 1 && WEFT_RX_HOST
  weft_rx_enclave_sleep(env, t);
#elif !WEFT_RX_HOST && WEFT_TICK_NS == 1000 && !WEFT_RX_TIME64
  weft_wait_until(t, WEFT_RX_NEWS(env));
#else
  int64_t us = ((int64_t)(weft_rx_distance)(t - weft_rx_clock()) * WEFT_TICK_NS + 999) / 1000;
  if (us <= 0) return;
  weft_wait_until(weft_now32() + (uint32_t)(us < 1 << 30 ? us : 1 << 30), WEFT_RX_NEWS(env));
#endif
}
/* Wait until t, even if events come. */
WEFT_INLINE void weft_rx_await(weft_rx_env *env, weft_rx_time t) {
  if (__builtin_expect(!weft_rx_before(weft_rx_clock(), t), 1)) return;
  if (WEFT_RX_FAST && env->fast) return;
#if WEFT_RX_HOST || WEFT_TICK_NS != 1000 || WEFT_RX_TIME64
  while (weft_rx_before(weft_rx_clock(), t)) weft_rx_sleep(env, t);
#else
  if ((int32_t)(t - weft_now32()) > WEFT_EARLY_US) weft_rx_sleep(env, t);
  while ((int32_t)(t - weft_now32()) > 0) {}
#endif
}
#endif
