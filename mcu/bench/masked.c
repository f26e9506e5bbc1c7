/* masked: how long each call keeps interrupts off in the worst case, with n = 10, 100 and 10,000
 * events in the queue. The emulator measures (tests/firmware/masked.mjs); `section` names
 * what is measured: 1000 * the queue (1 list, 2 heap of equal times, 3 heap) + 100 * the
 * call + the power of ten.
 *
 * For a ring, the calls 4 and 64 put in a message of that many bytes, and 5 and 65 take one out.
 *
 * In the heap the new event climbs to the top. The heap's worst case is that all releases are in
 * one microsecond, since every level then has to compare priority and order. In the list the new
 * event goes behind all events except the one that was inserted last, where the search begins.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { MAX_EVENTS = 10000, POST = 1, CANCEL = 2, MOVE = 3, WORK = 4, BUSY = 5, KEEP = 6, STOP = 7 };
static weft_queue list;
static weft_heap heap;
static weft_actor ordinary = WEFT_ACTOR(1), urgent = WEFT_ACTOR(2), low = WEFT_ACTOR(0);
static weft_event events[MAX_EVENTS + 2];
static weft_heap_entry numbers[MAX_EVENTS + 2];
volatile uint32_t section, ran;

static uint32_t nothing(weft_event *e, uint32_t release) {
  return (void)e, (void)release, ran++, WEFT_DONE;
}
static uint32_t stop_list(weft_event *e, uint32_t release) {
  return (void)e, (void)release, weft_stop(&list), WEFT_DONE;
}
static uint32_t stop_heap(weft_event *e, uint32_t release) {
  return (void)e, (void)release, weft_stop(&heap), WEFT_DONE;
}
static weft_event halt;
static const uint16_t powers[] = {1, 2, 4}, counts[] = {10, 100, MAX_EVENTS};

/* Fill the queue with n events of `the_actor`, `apart` us from each other; the event that ends the
 * program is queued behind them. */
#define FILL(q, n, the_actor, apart)                                              \
  do {                                                                            \
    for (unsigned i = 0; i < (n); i++) {                                          \
      events[i] = (weft_event)WEFT_EVENT(nothing, the_actor);                     \
      weft_post(q, &events[i], start + i * (apart));                              \
    }                                                                             \
  } while (0)
/* The heap finds an event by a walk from the place to which the event last sank. The function sets
 * that place as if the event had risen from a leaf. */
static void from_a_leaf(weft_event *e, unsigned n) {
  while (e->node.place * 2u <= 4 * n) e->node.place = (uint16_t)(e->node.place * 2);
}
#define SECTION(call) (section = which * 1000u + (call) * 100u + power)
#define MEASURE(q, init, halting)                                                        \
  do {                                                                                   \
    for (unsigned k = 0; k < 3; k++) {                                                   \
      unsigned power = powers[k], n = counts[k];                                         \
      uint32_t apart = which == 2 ? 0 : 2, start = weft_now32() + 10000000;              \
      weft_event *e = &events[n - 1], *extra = &events[n];                               \
      init;                                                                              \
      FILL(q, n, &ordinary, apart);                                                      \
      *extra = (weft_event)WEFT_EVENT(nothing, which == 1 ? &ordinary : &urgent);        \
      uint32_t behind = which == 1 ? start + (n - 1) * apart - 1 : start - (which == 3); \
      SECTION(POST);                                                                     \
      weft_post(q, extra, behind);                                                       \
      SECTION(KEEP);                                                                     \
      weft_post_as(q, extra, behind, WEFT_KEEP);                                         \
      if (which != 1) from_a_leaf(&events[0], n);                                        \
      SECTION(CANCEL);                                                                   \
      weft_cancel(q, which == 1 ? e : &events[0]);                                       \
      section = 0;                                                                       \
      weft_post(q, which == 1 ? e : &events[0], behind + 1);                             \
      if (which != 1) from_a_leaf(extra, n);                                             \
      SECTION(MOVE);                                                                     \
      weft_post_as(q, which == 1 ? e : extra, behind - (which == 1), WEFT_MOVE);         \
      SECTION(STOP);                                                                     \
      weft_stop(q);                                                                      \
      section = 0;                                                                       \
      init;                                                                              \
      start = weft_now32() - 10000000;                                                   \
      FILL(q, n, &ordinary, apart);                                                      \
      halt = (weft_event)WEFT_EVENT(halting, &low);                                      \
      events[MAX_EVENTS + 1] = halt;                                                           \
      weft_post(q, &events[MAX_EVENTS + 1], start + 1000000);                                  \
      SECTION(WORK);                                                                     \
      weft_work(q);                                                                      \
      section = 0;                                                                       \
      init;                                                                              \
      FILL(q, n, &ordinary, apart);                                                      \
      ordinary.mark |= WEFT_BUSY;                                                        \
      events[MAX_EVENTS + 1] = halt;                                                           \
      weft_post(q, &events[MAX_EVENTS + 1], start + 1000000);                                  \
      SECTION(BUSY);                                                                     \
      weft_work(q);                                                                      \
      section = 0;                                                                       \
      ordinary.mark &= (uint8_t)~WEFT_BUSY;                                              \
    }                                                                                    \
  } while (0)

static uint8_t words[4][4], blocks[4][64];
static weft_ring small = WEFT_RING(words, nothing, &ordinary),
                 large = WEFT_RING(blocks, nothing, &ordinary);

int main(void) {
  weft_list_init(&list, WEFT_SPINLOCK(0));
  section = 4;
  weft_ring_put(&list, &small, words[3]);
  section = 5;
  weft_ring_get(&list, &small, words[3]);
  section = 64;
  weft_ring_put(&list, &large, blocks[3]);
  section = 65;
  weft_ring_get(&list, &large, blocks[3]);
  section = 0;
  unsigned which = 1;
  MEASURE(&list, weft_list_init(&list, WEFT_SPINLOCK(0)), stop_list);
  which = 2;
  MEASURE(&heap, weft_heap_init(&heap, WEFT_SPINLOCK(0), events, numbers, MAX_EVENTS + 2), stop_heap);
  which = 3;
  MEASURE(&heap, weft_heap_init(&heap, WEFT_SPINLOCK(0), events, numbers, MAX_EVENTS + 2), stop_heap);
  __asm volatile("bkpt 0");
  return 0;
}
