/* fake.c: the fake machine of fake.h.
 *
 * Invariants: one coroutine runs at a time. Every call of the platform is a point where the random
 * choice may go to the other core, to an interrupt of this core (if it has interrupts on), or to
 * the clock. An alarm fires only when the clock becomes equal to it, like the RP2040's: an alarm
 * armed for now or the past never fires. Each core remembers one wake, whether it sleeps or is
 * about to.
 */
#include "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 256 * 1024 };
typedef struct {
  ucontext_t context;
  char stack[STACK];
  void (*program)(void);
  bool alive, asleep, event, masked, in_interrupt, armed;
  uint32_t alarm;
} core_t;
static core_t cores[2];
static ucontext_t outer;
static unsigned current;
static uint64_t now, rng;
static long budget, waits;
weft_lock_t fake_local, fake_locks[8];
void (*fake_interrupt)(void), (*fake_quiet)(void), (*fake_outside)(void);
uint64_t fake_outside_at;
int fake_stack_broken;
const char *fake_panicked;
#if WEFT_DEBUG
extern const void *weft_serves[WEFT_CORES];
#endif
jmp_buf fake_outside_panic;

uint32_t fake_random(uint32_t n) { /* xorshift64* */
  rng ^= rng >> 12, rng ^= rng << 25, rng ^= rng >> 27;
  return (uint32_t)((rng * 2685821657736338717ull) >> 33) % n;
}
static void tick(void) {
  now++;
  for (int i = 0; i < 2; i++)
    if (cores[i].armed && cores[i].alarm == (uint32_t)now)
      cores[i].armed = false, cores[i].event = true;
  if (fake_outside_at && now == fake_outside_at) {
    fake_outside_at = 0;
    for (int i = 0; i < 2; i++)
      cores[i].event |=
          cores[i].alive; /* The interrupt wakes its core; the choice below determines which core
                           * runs. */
  }
}
static bool inside; /* a core runs; otherwise the test itself calls the platform, and no core
                     * runs */
static void leave(void) {
  if (!inside) return;
  core_t *self = &cores[current];
  swapcontext(&self->context, &outer);
}
static void interrupt(void (*handler)(void)) {
  core_t *self = &cores[current];
  self->in_interrupt = true;
  handler();
  self->in_interrupt = false;
  self->event = true;
}
static bool outside_due;
void fake_point(void) {
  core_t *self = &cores[current];
  if (--budget < 0) {
    fprintf(stderr, "FAIL livelock: too many platform calls\n");
    exit(1);
  }
  if (!inside) return;
  if (fake_random(8) == 0) {
    uint64_t at = fake_outside_at;
    tick();
    if (at && !fake_outside_at) outside_due = true;
  }
  if (!self->masked && !self->in_interrupt) {
    if (outside_due && fake_outside) outside_due = false, interrupt(fake_outside);
    if (fake_interrupt && fake_random(16) == 0) interrupt(fake_interrupt);
  }
  if (fake_random(3) == 0) leave();
}
void fake_advance(uint32_t us) {
  while (us--) {
    uint64_t at = fake_outside_at;
    tick();
    if (at && !fake_outside_at) outside_due = true;
    fake_point();
  }
}
bool fake_asleep(unsigned core) {
  return cores[core].alive && cores[core].asleep && !cores[core].event;
}
long fake_waits(void) { return waits; }
uint64_t fake_now(void) {
  fake_point();
  return now;
}
unsigned fake_core(void) { return current; }
void fake_arm(uint32_t t) {
  fake_point();
  cores[current].armed = true;
  cores[current].alarm = t;
  fake_point();
}
void fake_wait(void) {
  fake_point();
  core_t *self = &cores[current];
  waits++;
  if (!self->event) {
    self->asleep = true;
    leave();
    self->asleep = false;
  }
  self->event = false;
  fake_point();
}
void fake_wake(void) {
  cores[0].event = cores[1].event = true;
  fake_point();
}
int fake_lock(weft_lock_t *l) {
  core_t *self = &cores[current];
  fake_point();
  int was = !self->masked;
  self->masked = true;
  while (l->held) {
    if (--budget < 0) {
      fprintf(stderr, "FAIL a lock is held for ever\n");
      exit(1);
    }
    leave();
  }
  l->held = 1;
  fake_point();
  return was;
}
void fake_unlock(weft_lock_t *l, int irq) {
  fake_point();
  l->held = 0;
  cores[current].masked = !irq;
  fake_point();
}
int weft_start_core(void (*fn)(void), void *stack, size_t bytes) {
  (void)fn, (void)stack, (void)bytes;
  return WEFT_E_CORE;
}
int weft_stack_ok(void) { return !fake_stack_broken; }
void weft_panic(const char *what) {
  fake_panicked = what;
  cores[current].alive = false;
  if (!inside) longjmp(fake_outside_panic, 1);
  for (;;) leave();
}

static void enter(void) {
  core_t *self = &cores[current];
  self->program();
  self->alive = false;
  for (;;) leave();
}
void fake_reset(uint64_t seed, uint64_t start) {
  rng = seed * 0x9e3779b97f4a7c15ull + 1;
  now = start;
  waits = 0;
  for (int i = 0; i < 2; i++)
    cores[i].alive = cores[i].asleep = cores[i].event = cores[i].masked = cores[i].armed =
        cores[i].in_interrupt = false;
  fake_interrupt = fake_quiet = fake_outside = 0;
  fake_outside_at = 0;
  outside_due = false;
  fake_stack_broken = 0;
  fake_panicked = 0;
#if WEFT_DEBUG
  /* A panic may have left weft_work without clearing weft_serves. */
  for (int i = 0; i < WEFT_CORES; i++) weft_serves[i] = 0;
#endif
  fake_local.held = 0;
  for (int i = 0; i < 8; i++) fake_locks[i].held = 0;
  current = 0;
  budget = 1000000;
}
static void prepare(core_t *c, void (*program)(void)) {
  c->program = program;
  c->alive = program != 0;
  c->asleep = c->masked = false;
  if (!c->alive) return;
  getcontext(&c->context);
  c->context.uc_stack.ss_sp = c->stack;
  c->context.uc_stack.ss_size = STACK;
  c->context.uc_link = 0;
  makecontext(&c->context, enter, 0);
}
bool fake_run(void (*core0)(void), void (*core1)(void), long limit) {
  budget = limit;
  prepare(&cores[0], core0);
  prepare(&cores[1], core1);
  while (cores[0].alive || cores[1].alive) {
    bool can[2];
    for (int i = 0; i < 2; i++) can[i] = cores[i].alive && !(cores[i].asleep && !cores[i].event);
    if (!can[0] && !can[1]) {
      if (fake_quiet) fake_quiet();
      uint64_t next = 0;
      for (int i = 0; i < 2; i++)
        if (cores[i].alive && cores[i].armed) {
          uint64_t at = now + (uint32_t)(cores[i].alarm - (uint32_t)now);
          /* The times are equal already, so the hardware waits for the wrap. */
          if (at == now) at += 1ull << 32;
          if (!next || at < next) next = at;
        }
      if (fake_outside_at && (!next || fake_outside_at < next)) next = fake_outside_at;
      if (!next || next - now > 1ull << 31) return false;
      now = next - 1;
      uint64_t at = fake_outside_at;
      tick();
      if (at && !fake_outside_at) outside_due = true;
      continue;
    }
    current = can[0] && can[1] ? fake_random(2) : can[1];
    inside = true;
    swapcontext(&outer, &cores[current].context);
    inside = false;
  }
  return true;
}
