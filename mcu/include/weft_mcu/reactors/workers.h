/* reactors/workers.h: runs the reactions of one level together: with threads on a host, with the
 * second core on a device (R19). Part of weft_mcu/reactors_run.h.
 *
 * Only the main thread goes from level to level. Two or more pending reactions of a level become a
 * job; each free thread or core claims the next reaction of the job.
 *
 * Invariants
 *  1. Host: a claim changes `state`, one word with the job's number, the number of its reactions
 *     and how many are claimed. Therefore a claim fails if another job has begun since, and a
 *     claimed reaction belongs to the job whose number was read.
 *  2. A job ends when every claimed reaction is done; `ready` does not change before that.
 */
#ifndef WEFT_RX_WORKERS_H
#define WEFT_RX_WORKERS_H
#include "weft_mcu/reactors/parallel.h"
#include "weft_mcu/reactors/running.h"
#if WEFT_RX_WORKERS > 1

static struct {
#if WEFT_RX_HOST
  _Atomic uint64_t state; /* the job's number << 40 | reactions << 20 | claimed */
  _Atomic uint32_t done, sleeping;
  _Atomic bool quit;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t threads[WEFT_RX_WORKERS];
#else
  volatile uint32_t claimed, count, done; /* protected by the lock */
  volatile bool quit, gone;
#endif
  unsigned workers;
  weft_rx_index ready[WEFT_RX_REACTIONS];
} weft_rx_job;

#if WEFT_RX_HOST
_Static_assert(WEFT_RX_REACTIONS < 1 << 20, "weft: workers have room for 2^20 reactions");
WEFT_INLINE uint32_t weft_rx_claimed(uint64_t state) { return (uint32_t)(state & 0xfffff); }
WEFT_INLINE uint32_t weft_rx_of_job(uint64_t state) { return (uint32_t)(state >> 20 & 0xfffff); }
/* Claim and run reactions until none is left to claim. */
static void weft_rx_work_on(weft_rx_env *env) {
  for (uint64_t state = atomic_load_explicit(&weft_rx_job.state, memory_order_acquire);;) {
    uint32_t i = weft_rx_claimed(state);
    if (i >= weft_rx_of_job(state)) return;
    if (!atomic_compare_exchange_weak_explicit(&weft_rx_job.state, &state, state + 1,
                                               memory_order_acq_rel, memory_order_acquire))
      continue;
    weft_rx_call(env, weft_rx_job.ready[i]);
    atomic_fetch_add_explicit(&weft_rx_job.done, 1, memory_order_release);
    state = atomic_load_explicit(&weft_rx_job.state, memory_order_acquire);
  }
}
static bool weft_rx_work_left(void) {
  uint64_t state = atomic_load(&weft_rx_job.state);
  return weft_rx_claimed(state) < weft_rx_of_job(state) || atomic_load(&weft_rx_job.quit);
}
static void *weft_rx_worker(void *env) {
  enum { SPINS = 2000 };
  while (!atomic_load(&weft_rx_job.quit)) {
    weft_rx_work_on((weft_rx_env *)env);
    for (int i = 0; i < SPINS && !weft_rx_work_left(); i++) {}
    if (weft_rx_work_left()) continue;
    pthread_mutex_lock(&weft_rx_job.mutex);
    atomic_fetch_add(&weft_rx_job.sleeping, 1);
    while (!weft_rx_work_left()) pthread_cond_wait(&weft_rx_job.changed, &weft_rx_job.mutex);
    atomic_fetch_sub(&weft_rx_job.sleeping, 1);
    pthread_mutex_unlock(&weft_rx_job.mutex);
  }
  return 0;
}
static void weft_rx_wake_workers(void) {
  if (!atomic_load(&weft_rx_job.sleeping)) return;
  pthread_mutex_lock(&weft_rx_job.mutex);
  pthread_cond_broadcast(&weft_rx_job.changed);
  pthread_mutex_unlock(&weft_rx_job.mutex);
}
static void weft_rx_do_job(weft_rx_env *env, uint32_t n) {
  uint64_t number = (atomic_load_explicit(&weft_rx_job.state, memory_order_relaxed) >> 40) + 1;
  atomic_store_explicit(&weft_rx_job.done, 0, memory_order_relaxed);
  env->parallel = true;
  atomic_store(&weft_rx_job.state, number << 40 | (uint64_t)n << 20);
  weft_rx_wake_workers();
  weft_rx_work_on(env);
  for (unsigned spins = 0; atomic_load_explicit(&weft_rx_job.done, memory_order_acquire) != n;
       spins++)
    if (spins > 1000) sched_yield();
  env->parallel = false;
}
static void weft_rx_start_workers(weft_rx_env *env, unsigned wanted) {
  weft_rx_job.workers = wanted && wanted < WEFT_RX_WORKERS ? wanted : WEFT_RX_WORKERS;
  atomic_store(&weft_rx_job.quit, false);
  pthread_mutex_init(&weft_rx_job.mutex, 0);
  pthread_cond_init(&weft_rx_job.changed, 0);
  for (unsigned i = 1; i < weft_rx_job.workers; i++)
    if (pthread_create(&weft_rx_job.threads[i], 0, weft_rx_worker, env))
      weft_panic("weft: no thread for a worker");
}
static void weft_rx_stop_workers(void) {
  atomic_store(&weft_rx_job.quit, true);
  weft_rx_wake_workers();
  for (unsigned i = 1; i < weft_rx_job.workers; i++) pthread_join(weft_rx_job.threads[i], 0);
  pthread_mutex_destroy(&weft_rx_job.mutex);
  pthread_cond_destroy(&weft_rx_job.changed);
}
#else
static bool weft_rx_claim(uint32_t *i) {
  weft_lock_thread(WEFT_RX_WORK_LOCK);
  bool got = weft_rx_job.claimed < weft_rx_job.count;
  *i = weft_rx_job.claimed;
  if (got) weft_rx_job.claimed = *i + 1;
  weft_unlock_thread(WEFT_RX_WORK_LOCK);
  return got;
}
static void weft_rx_work_on(weft_rx_env *env) {
  for (uint32_t i; weft_rx_claim(&i);) {
    weft_rx_call(env, weft_rx_job.ready[i]);
    weft_lock_thread(WEFT_RX_WORK_LOCK);
    weft_rx_job.done = weft_rx_job.done + 1;
    weft_unlock_thread(WEFT_RX_WORK_LOCK);
  }
}
/* The program of core 1, which is woken only for a job, or to end. */
static void weft_rx_core1(void) {
  weft_wait_init();
  while (!weft_rx_job.quit) {
    if (weft_rx_job.claimed < weft_rx_job.count) weft_rx_work_on(&weft_rx_envs[0]);
    else weft_wait();
  }
  weft_rx_job.gone = true;
}
static void weft_rx_do_job(weft_rx_env *env, uint32_t n) {
  env->parallel = true;
  weft_lock_thread(WEFT_RX_WORK_LOCK);
  weft_rx_job.claimed = 0;
  weft_rx_job.done = 0;
  weft_rx_job.count = n;
  weft_unlock_thread(WEFT_RX_WORK_LOCK);
  weft_wake();
  weft_rx_work_on(env);
  while (weft_rx_job.done != n) {}
  env->parallel = false;
}
static void weft_rx_start_workers(weft_rx_env *env, unsigned wanted) {
  (void)env;
  weft_rx_job.workers = wanted == 1 ? 1 : 2;
  weft_rx_job.count = 0;
  weft_rx_job.quit = weft_rx_job.gone = false;
  if (weft_rx_job.workers > 1 && weft_start_core(weft_rx_core1, WEFT_STACK1, WEFT_STACK1_BYTES))
    weft_panic("weft: core 1 does not start");
}
static void weft_rx_stop_workers(void) {
  weft_rx_job.quit = true;
  weft_wake();
  while (weft_rx_job.workers > 1 && !weft_rx_job.gone) {}
}
#endif

/* Return the lowest pending reaction, which stays pending; WEFT_RX_END if there is none. */
static weft_rx_index weft_rx_lowest_pending(weft_rx_env *env) {
  unsigned step = WEFT_RX_BIT_TABLE ? WEFT_RX_BIT_STEP : 1;
  while (env->top) {
    unsigned t = weft_rx_lowest(env, env->top) / step;
#if WEFT_RX_WORDS <= 1
    return (weft_rx_index)t;
#elif WEFT_RX_WORDS <= WEFT_RX_WORD_BITS
    if (env->words[t])
      return (weft_rx_index)(t * WEFT_RX_WORD_BITS + weft_rx_lowest(env, env->words[t]) / step);
    env->top &= env->top - 1;
#else
    if (env->middle[t]) {
      unsigned w = t * WEFT_RX_WORD_BITS + weft_rx_lowest(env, env->middle[t]) / step;
      if (env->words[w])
        return (weft_rx_index)(w * WEFT_RX_WORD_BITS + weft_rx_lowest(env, env->words[w]) / step);
      env->middle[t] &= env->middle[t] - 1;
    } else env->top &= env->top - 1;
#endif
  }
  return WEFT_RX_END;
}
static void weft_rx_unpend(weft_rx_env *env, weft_rx_index r) {
#if WEFT_RX_WORDS <= 1
  env->top &= ~((weft_rx_word)1 << r);
#else
  env->words[r >> WEFT_RX_WORD_SHIFT] &= ~((weft_rx_word)1 << (r & (WEFT_RX_WORD_BITS - 1)));
#endif
}
static void weft_rx_run_pending(weft_rx_env *env) {
  WEFT_RX_TABLE weft_rx_program *program = WEFT_RX_PROGRAM(env);
  WEFT_RX_TABLE weft_rx_index *ends = &weft_rx_levels[program->first_level + 1];
  bool alone = weft_rx_job.workers < 2 || !program->levels;
  for (weft_rx_index r; (r = weft_rx_lowest_pending(env)) != WEFT_RX_END;) {
    weft_rx_unpend(env, r);
    if (alone) {
      weft_rx_call(env, r);
      continue;
    }
    while (*ends <= r) ends++;
    weft_rx_index next = weft_rx_lowest_pending(env);
    if (next >= *ends) { /* no reaction, or the next is of a later level: no thread is woken for
                            a single reaction */
      weft_rx_call(env, r);
      continue;
    }
    uint32_t n = 0;
    for (weft_rx_job.ready[n++] = r; next < *ends; next = weft_rx_lowest_pending(env)) {
      weft_rx_unpend(env, next);
      weft_rx_job.ready[n++] = next;
    }
    weft_rx_do_job(env, n);
  }
}
#endif
#endif
