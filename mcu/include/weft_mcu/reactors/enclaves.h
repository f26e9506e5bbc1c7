/* reactors/enclaves.h: several enclaves, each with a core or thread of its own (R20). Part of
 * weft_mcu/reactors_run.h.
 *
 * One lock guards what the enclaves know of each other: `next`, `idle`, `blocked`, `acked`, `done`,
 * the inboxes and their news.
 *
 * Invariants
 *  1. An enclave sends nothing for a tag before `next` + the delay of the link. `next` is the time
 *     of its current tag, or that of its first event. Whoever posts an earlier event to the enclave
 *     lowers `next`.
 *  2. So the earliest time at which an enclave can still act is the least of its `next` and of what
 *     can reach it over links. An enclave begins a tag only if, for every enclave that links to it,
 *     that time plus the link's delay is later than the tag.
 *  3. Enclaves stop together: each one announces its current tag and waits. The stop tag is the
 *     microstep after the latest of these tags.
 */
#ifndef WEFT_RX_ENCLAVES_H
#define WEFT_RX_ENCLAVES_H
#if WEFT_RX_MODES
#error "weft: modes and enclaves do not go together yet; leave the enclaves out"
#endif
#define WEFT_RX_LOCK WEFT_RX_INBOX_LOCK
static bool weft_rx_stop_decided;
static weft_rx_time weft_rx_stop_time;
static uint32_t weft_rx_stop_step;

#if WEFT_RX_HOST
static pthread_cond_t weft_rx_changed;
static void weft_rx_wake_all(void) { pthread_cond_broadcast(&weft_rx_changed); }
/* Wait until there is news, or until a time (ns of the clock; 0: no time). */
static void weft_rx_wait_until_ns(weft_rx_env *env, int64_t ns) {
  struct timespec t = {0, 0};
  if (ns) { /* the condition variable uses the monotonic clock */
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

/* Call the following functions with the lock held. */
static void weft_rx_tell(weft_rx_env *env) { WEFT_POKE(env->news, 1); }
/* The `next` of some enclave has risen, or the enclave is idle or done: let the enclaves that it
 * held back look again. True: some thread must be woken. */
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

/* The following functions take the lock themselves. */
/* Announce that the next tag is at t, if no event comes. False: an event has come. */
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
/* May the tag at t, which is due, begin? If not, wait until there is a reason to look again. */
static bool weft_rx_granted(weft_rx_env *env, weft_rx_time t) {
#if WEFT_RX_LINKS
  weft_irq_t irq = weft_lock(WEFT_RX_LOCK);
  bool good = !env->news && weft_rx_may_begin(env, t), news = env->news;
  env->blocked = !good && !news;
  weft_unlock(WEFT_RX_LOCK, irq);
#if WEFT_RX_PHYSICAL /* perhaps only the clock must go on */
  if (!good && !news) weft_rx_sleep(env, weft_rx_clock() + 1);
#else
  if (!good && !news) weft_rx_enclave_wait(env);
#endif
  return good;
#else
  return (void)env, (void)t, true;
#endif
}
/* Nothing is left to do here: wait until an event comes, or until no enclave has anything left. */
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
/* This enclave stands between two tags. Wait until every enclave does, or has ended; then set the
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
  if (env->stop.fire && !weft_rx_before(t, env->stop.time)) return; /* the timeout is earlier */
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
    WEFT_POKE(weft_rx_timed_out, true); /* the other enclaves, idle or not, go on to that tag */
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
  unsigned here = WEFT_RX_PROGRAM(&weft_rx_envs[0])->core ? 1 : 0; /* the enclave that runs on
                                                                      core 0 */
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
