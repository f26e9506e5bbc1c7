/* port.c: the port for a host. One mutex protects everything in this file; `changed` is signalled
 * whenever a waiting core should check again. */
#include "weft_mcu/platform.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

weft_lock_t weft_posix_locks[WEFT_SPINLOCKS + 1] = {
    [0 ... WEFT_SPINLOCKS] = {PTHREAD_MUTEX_INITIALIZER}};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local unsigned this_core;
static struct { bool event, armed, waiting; uint32_t alarm; } cores[2];
static bool virtual_time, core1_exists;
static unsigned alive = 1;
static uint64_t virtual_now, epoch;
static int64_t since_1970; /* the time in ns at which the monotonic clock was 0 */
static pthread_t core1;

static int64_t read_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static uint64_t monotonic(void) { return (uint64_t)read_ns(CLOCK_MONOTONIC) / 1000u; }
static void begin(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  epoch = monotonic();
  since_1970 = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC);
}
static uint64_t now_locked(void) { return virtual_time ? virtual_now : monotonic() - epoch; }

uint64_t weft_posix_now(void) {
  pthread_once(&once, begin);
  pthread_mutex_lock(&mutex);
  uint64_t now = now_locked();
  pthread_mutex_unlock(&mutex);
  return now;
}
int64_t weft_posix_now_ns(void) {
  pthread_once(&once, begin);
  return virtual_time ? (int64_t)weft_posix_now() * 1000 : read_ns(CLOCK_MONOTONIC) + since_1970;
}
unsigned weft_posix_core(void) { return this_core; }

void weft_posix_virtual(uint64_t start) {
  pthread_once(&once, begin);
  virtual_time = true;
  virtual_now = start;
}
void weft_posix_arm(uint32_t t) {
  pthread_mutex_lock(&mutex);
  cores[this_core].armed = true;
  cores[this_core].alarm = t;
  pthread_mutex_unlock(&mutex);
}
void weft_posix_wake(void) {
  pthread_once(&once, begin);
  pthread_mutex_lock(&mutex);
  cores[0].event = cores[1].event = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
/* Return the time until this core's alarm, in us; UINT32_MAX if there is no alarm, 0 if the
 * alarm's time has passed. */
static uint32_t until(unsigned core) {
  if (!cores[core].armed) return UINT32_MAX;
  int32_t distance = (int32_t)(cores[core].alarm - (uint32_t)now_locked());
  return distance > 0 ? (uint32_t)distance : 0;
}
/* In virtual time, advance to the first alarm if all running cores wait and none has been woken. */
static void go_on(void) {
  unsigned waiting = 0;
  uint32_t nearest = UINT32_MAX;
  for (unsigned c = 0; c < 2; c++) {
    if (cores[c].event && cores[c].waiting) return;
    waiting += cores[c].waiting;
    if (cores[c].waiting && until(c) < nearest) nearest = until(c);
  }
  if (waiting < alive || nearest == UINT32_MAX) return;
  virtual_now += nearest;
  pthread_cond_broadcast(&changed);
}
void weft_posix_wait(void) {
  unsigned c = this_core;
  pthread_mutex_lock(&mutex);
  cores[c].waiting = true;
  while (!cores[c].event && until(c)) {
    if (virtual_time) {
      go_on();
      if (!until(c)) break;
      pthread_cond_wait(&changed, &mutex);
    } else if (cores[c].armed) {
      uint64_t at = monotonic() + until(c);
      struct timespec t = {(time_t)(at / 1000000u), (long)(at % 1000000u) * 1000};
      pthread_cond_timedwait(&changed, &mutex, &t);
    } else pthread_cond_wait(&changed, &mutex);
  }
  if (!until(c)) cores[c].armed = false;
  cores[c].event = cores[c].waiting = false;
  pthread_mutex_unlock(&mutex);
}

static void *run_core1(void *fn) {
  this_core = 1;
  ((void (*)(void))fn)();
  pthread_mutex_lock(&mutex);
  alive--;
  if (virtual_time) go_on();
  pthread_mutex_unlock(&mutex);
  return 0;
}
int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  (void)stack, (void)bytes; /* pthreads have stacks of their own. */
  pthread_once(&once, begin);
  pthread_mutex_lock(&mutex);
  bool twice = core1_exists;
  core1_exists = true;
  if (!twice) alive++;
  pthread_mutex_unlock(&mutex);
  if (twice) return WEFT_MISTAKE(WEFT_E_CORE, "core 1 is already running");
  return pthread_create(&core1, 0, run_core1, (void *)fn) ? WEFT_E_CORE : WEFT_OK;
}
void weft_posix_join(void) {
  pthread_mutex_lock(&mutex);
  bool any = core1_exists;
  alive--;
  if (virtual_time) go_on();
  pthread_mutex_unlock(&mutex);
  if (any) pthread_join(core1, 0);
  pthread_mutex_lock(&mutex);
  alive++;
  core1_exists = false;
  pthread_mutex_unlock(&mutex);
}
__attribute__((weak)) void weft_panic(const char *what) {
  fprintf(stderr, "%s\n", what);
  abort();
}
