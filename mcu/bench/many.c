/* many: N actors of one period on one core, which is always late. It measures the cycles per event,
 * from the end of one action to the beginning of the next, including the few instructions of an
 * action that only counts. Besides these events, one event waits for a time a second away, as in
 * most programs.
 *
 * The program prints one JSON line on the UART for each combination of list or heap, N = 10 or 50,
 * releases a microsecond apart or all in one microsecond, and actions that return their period or
 * post.
 */
#include "cycles.h"
#include "weft_mcu/actors.h"

enum { MAX_EVENTS = 50, WARM = 1000, COUNTED = 2000, PERIOD = 10 };
static weft_queue list;
static weft_heap heap;
static weft_heap_entry numbers[MAX_EVENTS + 1];
static weft_actor actors[MAX_EVENTS + 1];
static weft_event events[MAX_EVENTS + 1];
static uint32_t count, began, took;

WEFT_INLINE void counts(weft_queue *q) {
  if (count == WARM) began = cycles_now();
  if (count++ == WARM + COUNTED) {
    took = cycles_since(began);
    weft_stop(q);
  }
}
WEFT_HOT static uint32_t returns_list(weft_event *e, uint32_t release) {
  return (void)e, (void)release, counts(&list), PERIOD;
}
WEFT_HOT static uint32_t returns_heap(weft_event *e, uint32_t release) {
  return (void)e, (void)release, counts(&heap.queue), PERIOD;
}
WEFT_HOT static uint32_t posts_list(weft_event *e, uint32_t release) {
  counts(&list);
  weft_post(&list, e, release + PERIOD);
  return WEFT_DONE;
}
WEFT_HOT static uint32_t posts_heap(weft_event *e, uint32_t release) {
  counts(&heap.queue);
  weft_post(&heap, e, release + PERIOD);
  return WEFT_DONE;
}
static uint32_t nothing(weft_event *e, uint32_t release) {
  return (void)e, (void)release, WEFT_DONE;
}

#define MEASURE(q, action, n, apart)                                                            \
  do {                                                                                          \
    uint32_t start = weft_now32() + 100;                                                        \
    for (unsigned i = 0; i < (n); i++) {                                                        \
      actors[i] = (weft_actor)WEFT_ACTOR(0);                                                    \
      events[i] = (weft_event)WEFT_EVENT(action, &actors[i]);                                   \
      weft_post(q, &events[i], start + i * (apart));                                            \
    }                                                                                           \
    events[MAX_EVENTS] = (weft_event)WEFT_EVENT(nothing, &actors[MAX_EVENTS]);                              \
    weft_post(q, &events[MAX_EVENTS], start + 1000000);                                               \
    count = 0;                                                                                  \
    weft_work(q);                                                                               \
    uart_puts(",\"" #action "_" #n "_" #apart "\":");                                           \
    uart_put_u32(took / COUNTED);                                                               \
  } while (0)
#define LIST(action, n, apart) weft_list_init(&list, WEFT_LOCAL); MEASURE(&list, action, n, apart)
#define HEAP(action, n, apart)                                  \
  weft_heap_init(&heap, WEFT_LOCAL, events, numbers, MAX_EVENTS + 1); \
  MEASURE(&heap, action, n, apart)

int main(void) {
  uart_init();
  cycles_init();
  uart_puts("{\"bench\":\"many\"");
  LIST(returns_list, 10, 1);
  LIST(returns_list, 50, 1);
  LIST(returns_list, 50, 0);
  LIST(posts_list, 10, 1);
  LIST(posts_list, 50, 1);
  LIST(posts_list, 50, 0);
  HEAP(returns_heap, 10, 1);
  HEAP(returns_heap, 50, 1);
  HEAP(returns_heap, 50, 0);
  HEAP(posts_heap, 10, 1);
  HEAP(posts_heap, 50, 1);
  HEAP(posts_heap, 50, 0);
  uart_puts("}\n");
  __asm volatile("bkpt 0");
  return 0;
}
