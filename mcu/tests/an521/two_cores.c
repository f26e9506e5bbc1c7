/* two_cores: the runtime on two Cortex-M33 with LDREX/STREX locks, in QEMU. Two cores serve one
 * queue: a list, a heap, and lta.h's queue. The last line is `N passed, N failed`; the exit status
 * is the number of failures. */
#include "weft_mcu/lta.h"

enum { EVENTS = 12, ACTORS = 4, ROUNDS = 200 };
static weft_actor actors[ACTORS];
static weft_event events[EVENTS + 1]; /* the last one ends the round */
static weft_heap_entry numbers[EVENTS + 1];
static weft_queue list;
static weft_heap heap;
static bool use_heap;
static uint32_t runs[EVENTS], inside[ACTORS], overlaps, early, left, by_core[2], seed;
static volatile uint32_t job, done1; /* core 1 serves the queue of `job`, then sets done1 */
static event_queue_t lta;
static uint32_t lta_runs, lta_wrong;

static uint32_t next_random(uint32_t n) {
  return (seed = seed * 1664525u + 1013904223u) / 65536u % n;
}
static int post(weft_event *e, uint32_t t) {
  return use_heap ? weft_post(&heap, e, t) : weft_post(&list, e, t);
}
static uint32_t act(weft_event *e, uint32_t release) {
  unsigned i = (unsigned)(e - events), a = (unsigned)(e->actor - actors);
  if (inside[a]) overlaps++;
  inside[a] = 1;
  for (volatile int k = 0; k < 20; k++) {}
  if ((int32_t)(weft_now32() - release) < 0) early++;
  runs[i]++;
  by_core[weft_core()]++;
  inside[a] = 0;
  if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) == 0) post(&events[EVENTS], release);
  if (runs[i] == ROUNDS) return WEFT_DONE;
  if (i % 2) return 5 + i;
  post(e, release + 3 + i);
  return WEFT_DONE;
}
static uint32_t end(weft_event *e, uint32_t release) {
  (void)e, (void)release;
  if (use_heap) weft_stop(&heap);
  else weft_stop(&list);
  return WEFT_DONE;
}
static void lta_action(uint64_t t, size_t id, void *arg) {
  if (weft_now64() < t || arg != &lta_runs) lta_wrong++;
  if (inside[id]) lta_wrong++;
  inside[id] = 1;
  inside[id] = 0;
  if (__atomic_add_fetch(&lta_runs, 1, __ATOMIC_SEQ_CST) == 600) event_queue_deinit(&lta);
  else if (schedule_event(&lta, t + 10, id, lta_action, arg)) lta_wrong++;
}
static void core1(void) {
  for (uint32_t seen = 0;;) {
    while (job == seen) weft_wait();
    seen = job;
    if (seen == 1) weft_work(&list);
    else if (seen == 2) weft_work(&heap);
    else work(&lta);
    done1 = seen;
    weft_wake();
  }
}
static int passed, failed;
static void check(const char *name, bool ok) {
  if (ok) passed++;
  else {
    failed++;
    an521_puts("FAIL ");
    an521_puts(name);
    an521_puts("\n");
  }
}
static void both(bool with_heap) {
  use_heap = with_heap;
  overlaps = early = by_core[0] = by_core[1] = 0;
  left = EVENTS * ROUNDS;
  if (with_heap) weft_heap_init(&heap, WEFT_SPINLOCK(0), events, numbers, EVENTS + 1);
  else weft_list_init(&list, WEFT_SPINLOCK(0));
  events[EVENTS] = (weft_event)WEFT_EVENT(end, &actors[0]);
  uint32_t start = weft_now32() + 50;
  for (unsigned i = 0; i < EVENTS; i++) {
    runs[i] = 0;
    events[i] = (weft_event)WEFT_EVENT(act, &actors[i % ACTORS]);
    post(&events[i], start + next_random(20));
  }
  job = with_heap ? 2 : 1;
  weft_wake();
  if (with_heap) weft_work(&heap);
  else weft_work(&list);
  while (done1 != job) weft_wait();
  bool all = true;
  for (unsigned i = 0; i < EVENTS; i++) all &= runs[i] == ROUNDS;
  check("every event ran as often as it was posted (M4)", all);
  check("one action of an actor at a time (M3)", !overlaps);
  check("none early (M2)", !early);
  check("both cores took part", by_core[0] && by_core[1]);
}
static void put_number(int n) {
  char text[4] = {(char)('0' + n / 10 % 10), (char)('0' + n % 10), 0, 0};
  an521_puts(n < 10 ? text + 1 : text);
}
int main(void) {
  seed = 1;
  an521_puts("seed 1\n");
  check("core 1 starts", weft_start_core(core1, 0, 0) == WEFT_OK);
  check("once", weft_start_core(core1, 0, 0) == WEFT_E_CORE);
  both(false);
  both(true);
  check("lta: init", event_queue_init(&lta, 8, 4) == 0);
  for (size_t i = 0; i < 4; i++)
    check("lta: schedule", schedule_event(&lta, weft_now64() + 100, i, lta_action, &lta_runs) == 0);
  job = 3;
  weft_wake();
  work(&lta);
  while (done1 != 3) weft_wait();
  check("lta: runs", lta_runs >= 600 && lta_runs < 604);
  check("lta: right", !lta_wrong);
  put_number(passed);
  an521_puts(" passed, ");
  put_number(failed);
  an521_puts(" failed\n");
  return failed;
}
