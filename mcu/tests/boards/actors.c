/* actors.c: the rules of actors (SEMANTICS.md, part II) on a real port: its clock, its alarm, its
 * interrupts. actors_heap.c builds this file for the heap. The machine is QEMU with -icount, whose
 * time passes with the instructions, so that every run is the same.
 *
 * On a machine that sleeps (BOARD_SLEEPS), the program comes to its end only if the alarm wakes the
 * core: nothing else does. */
#include "board_kit.h"
#include "weft_mcu/actors.h"

#ifndef HEAP
#define HEAP 0
#endif

enum { N = 16 };
static weft_event pool[N];
static weft_actor actors[3];
#if HEAP
static weft_heap queue;
static weft_heap_entry entries[N];
#else
static weft_queue queue;
#endif
static struct { int event; uint32_t release, late; } log_[64];
static int logged, wanted;
static bool early;

static uint32_t note(weft_event *e, uint32_t release) {
  uint32_t late = weft_now32() - release;
  early |= (int32_t)late < 0;
  if (logged < 64)
    log_[logged].event = (int)(e - pool), log_[logged].release = release, log_[logged].late = late;
  if (++logged == wanted) weft_stop(&queue);
  return WEFT_DONE;
}
static void begin(int n) {
#if HEAP
  weft_heap_init(&queue, WEFT_LOCAL, pool, entries, N);
#else
  weft_list_init(&queue, WEFT_LOCAL);
#endif
  for (int i = 0; i < 3; i++) actors[i] = (weft_actor)WEFT_ACTOR(0);
  for (int i = 0; i < N; i++) pool[i] = (weft_event)WEFT_EVENT(note, &actors[0]);
  logged = 0;
  wanted = n;
  early = false;
}
static bool ran(int n, const char *events) {
  weft_work(&queue);
  bool right = logged == n;
  for (int i = 0; i < n; i++) right &= log_[i].event == events[i] - '0';
  return right;
}

/* M2, M10: times from two microseconds to a second, which may be longer than one period of the
 * alarm's timer. If the port polls, QEMU takes long to emulate a long time. */
static void alarms(void) {
#if BOARD_SLEEPS
  static const uint32_t delays[] = {2, 3, 10, 100, 5000, 99000, 201000, 600000, 1100000};
#else
  static const uint32_t delays[] = {2, 3, 10, 100};
#endif
  uint32_t latest = 0;
  bool right = true;
  for (unsigned i = 0; i < sizeof delays / sizeof *delays; i++) {
    begin(1);
    uint32_t at = weft_now32() + delays[i];
    weft_post(&queue, &pool[0], at);
    right &= ran(1, "0") && log_[0].release == at && !early;
    if (log_[0].late > latest) latest = log_[0].late;
  }
  board_check("alarms (M2)", right);
  board_check("an action starts within 50 us of the instructions' time (M2)", latest < 50);
  uart_puts("latest ");
  uart_put_u32(latest);
  uart_puts(" us\n");
}
/* M5, M6: the order is by time, then priority, then order of posting. */
static void order(void) {
  begin(5);
  actors[1] = (weft_actor)WEFT_ACTOR(1);
  pool[0].actor = &actors[1];
  uint32_t at = weft_now32() + 500;
  weft_post(&queue, &pool[3], at + 1);
  weft_post(&queue, &pool[0], at);
  weft_post(&queue, &pool[1], at);
  weft_post(&queue, &pool[2], at);
  weft_post(&queue, &pool[4], at - 1);
  board_check("order (M5, M6)", ran(5, "40123") && !early);
}
static uint32_t again(weft_event *e, uint32_t release) {
  note(e, release);
  return 37;
}
/* M7: a delay that is returned is counted from the release, so nothing drifts. */
static void returned(void) {
  begin(40);
  pool[0].action = again;
  uint32_t at = weft_now32() + 100;
  weft_post(&queue, &pool[0], at);
  weft_work(&queue);
  bool right = logged == 40;
  for (uint32_t i = 0; i < 40; i++) right &= log_[i].release == at + 37 * i;
  board_check("a returned delay does not drift (M7)", right && !early);
}
/* M8 and the policies of a post. */
static void moved(void) {
  begin(3);
  uint32_t at = weft_now32() + 1000;
  weft_post(&queue, &pool[0], at);
  weft_post(&queue, &pool[1], at + 10);
  weft_post(&queue, &pool[2], at + 20);
  weft_post(&queue, &pool[3], at + 30);
  board_check("cancel (M8)", weft_cancel(&queue, &pool[1]) == WEFT_OK);
  board_check("cancel, idle (M8)", weft_cancel(&queue, &pool[1]) == WEFT_LATE);
  board_check("keep", weft_post_as(&queue, &pool[0], at + 500, WEFT_KEEP) == WEFT_IGNORED);
  board_check("move", weft_post_as(&queue, &pool[2], at + 400, WEFT_MOVE) == WEFT_OK);
  board_check("kept, moved (M8)", ran(3, "032"));
  board_check("times (M8)", log_[2].release == at + 400 && !early);
}

static uint32_t slots[4];
static uint32_t taken[16];
static uint32_t took, put;
static uint32_t take(weft_event *e, uint32_t release);
static weft_ring ring = WEFT_RING(slots, take, &actors[2]);
static uint32_t take(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  uint32_t v;
  while (weft_ring_get(&queue, &ring, &v))
    if (took < 16) taken[took++] = v;
  if (took == 4) weft_stop(&queue);
  return WEFT_DONE;
}
/* The interrupt posts an event that no other code posts, and puts more messages into a ring than it
 * has room for. */
void BOARD_ISR(void) {
  weft_post(&queue, &pool[7], weft_now32());
#if !HEAP
  for (; put < 6; put++) (void)weft_ring_put(&queue, &ring, &put);
#endif
}
static uint32_t interrupt(weft_event *e, uint32_t release) {
  nvic_pend(BOARD_LINE);
  return note(e, release);
}
/* M18, M22: an interrupt posts an event and puts messages. */
static void interrupts(void) {
  begin(2);
  took = put = 0;
  ring.overflows = 0;
  pool[6].action = interrupt;
  nvic_enable(BOARD_LINE);
  weft_post_in(&queue, &pool[6], 200);
#if HEAP /* A ring lies outside the memory whose events this heap can number. */
  board_check("an interrupt posts (M18)", ran(2, "67"));
#else
  wanted = 99;
  weft_work(&queue);
  board_check("an interrupt posts (M18)", logged == 2 && log_[1].event == 7);
  bool right = took == 4;
  for (uint32_t i = 0; i < 4; i++) right &= taken[i] == i;
  board_check("a ring: in order, the rest is counted (M22)", right && ring.overflows == 2);
#endif
  nvic_disable(BOARD_LINE);
}

#if !HEAP
static struct { weft_periodic p; weft_deadline d; weft_far f; } large;
static uint32_t missed;
static uint32_t busy(weft_event *e, uint32_t release) {
  note(e, release);
  while (weft_now32() - release < 250) {}
  return WEFT_DONE;
}
static uint32_t miss(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  missed++;
  return WEFT_DONE;
}
/* M12, M13: releases that are past are skipped; an action that cannot begin in time is reported. */
static void periods(void) {
  begin(6);
  large.p = (weft_periodic){.rate = {0, 0, 0, 0}};
  missed = 0;
  uint32_t at = weft_now32() + 500;
  weft_periodic_start(&queue, &large.p, &actors[1], note, at, 100);
  pool[0].action = busy;
  weft_post(&queue, &pool[0], at + 210);
  weft_deadline_init(&large.d, &actors[2], note, miss, 50);
  weft_post(&queue, &large.d.event, at + 220);
  weft_work(&queue);
  weft_periodic_stop(&queue, &large.p);
  board_check("releases that are past are skipped (M12)",
              logged == 6 && large.p.skipped == 1 && log_[5].release == at + 500);
  board_check("a deadline (M13)", missed == 1 && !early);
}
#if BOARD_SLEEPS
static uint64_t far_at;
static bool far_early;
static uint32_t arrive(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  far_early = weft_now64() < far_at;
  weft_stop(&queue);
  return WEFT_DONE;
}
/* M14: 75 minutes are beyond the horizon and beyond a turn of the 32-bit clock. */
static void far(void) {
  begin(99);
  far_at = weft_now64() + 75ull * 60 * 1000000;
  (void)weft_far_post(&queue, &large.f, &actors[0], arrive, far_at);
  weft_work(&queue);
  uint64_t now = weft_now64();
  board_check("75 minutes, and the clock has turned (M14)",
              !far_early && now >= far_at && now - far_at < 1000 && now >> 32 == 1);
}
#endif
#endif
/* The upper half of the clock: a later reading is never less. */
static void clock_is_monotonic(void) {
  uint64_t before = weft_now64();
  bool right = true;
  for (int i = 0; i < 2000; i++) {
    uint64_t now = weft_now64();
    right &= now >= before && (uint32_t)(weft_now32() - (uint32_t)now) < 100;
    before = now;
  }
  board_check("the clock never goes back", right);
}

int main(void) {
  uart_init();
  board_check("there is no second core",
              WEFT_CORES == 2 || weft_start_core(0, WEFT_STACK1, 0) == WEFT_E_CORE);
  clock_is_monotonic();
  alarms();
  order();
  returned();
  moved();
  interrupts();
#if !HEAP
  periods();
#if BOARD_SLEEPS
  far();
  clock_is_monotonic();
#endif
#endif
  board_check("the stack's guard", weft_stack_ok());
  board_end();
}
