/* queue: measures the cost of the queues in cycles, and prints one JSON line on the UART.
 *
 * weft_post is counted from its first instruction to its return (the cost of a call of an empty
 * function is subtracted). The figures for the heap's push and pop are the largest of 10,000
 * measurements each, without the lock. They measure the parts that weft_post and the worker use, so
 * heap_queue.c is part of this program.
 */
#include "../src/heap_queue.c"
#include "cycles.h"

enum { MANY = 10000, SHORT = 20 };
static weft_queue list;
static weft_heap heap;
static weft_actor actor;
static weft_event event[MANY];
static weft_heap_entry heap_numbers[MANY];

static uint32_t nothing(weft_event *e, uint32_t release) {
  return (void)e, (void)release, WEFT_DONE;
}
static weft_event *__attribute__((noinline)) pop(void) { return heap_take(&heap.queue); }
/* Return the cost of a call to its caller: the cost of calling an empty function, less that
 * function's own two instructions (3 cycles). */
static int __attribute__((noipa)) empty(weft_queue *q, weft_event *e, uint32_t release) {
  return (void)q, (void)e, (void)release, 0;
}
static uint32_t call_cost(void) {
  uint32_t start = cycles_now();
  empty(&list, &event[0], start);
  return cycles_since(start) - 3;
}
static int __attribute__((noinline)) push_(weft_event *e) { return heap_insert(&heap.queue, e); }
static uint32_t rng = 1;
static uint32_t next_random(void) { return rng = rng * 1664525u + 1013904223u; }

/* Fill the heap with releases by `kind` (0: falling, so that each rises to the root; 1: random, no
 * two equal; 2: random out of 4,096), then empty it. Store the largest and the mean cost of a push
 * and of a pop. */
static void fill_and_empty(int kind, uint32_t *push, uint32_t *take, uint32_t *mean_push,
                           uint32_t *mean_take) {
  uint32_t base = weft_now32() + 1000000, sum_push = 0, sum_take = 0;
  uint32_t call = call_cost();
  *push = *take = 0;
  weft_heap_init(&heap, WEFT_SPINLOCK(0), event, heap_numbers, MANY);
  for (unsigned i = 0; i < MANY; i++) {
    event[i] = (weft_event)WEFT_EVENT(nothing, &actor);
    uint32_t start, release = base + (kind == 0   ? MANY - i
                                      : kind == 1 ? i * 2654435761u >> 8
                                                  : next_random() >> 20);
    event[i].time = release;
    start = cycles_now();
    push_(&event[i]);
    uint32_t took = cycles_since(start) - call;
    sum_push += took;
    if (took > *push) *push = took;
  }
  uint32_t last = 0;
  for (unsigned i = 0; i < MANY; i++) {
    uint32_t start = cycles_now();
    weft_event *e = pop();
    uint32_t took = cycles_since(start) - call;
    sum_take += took;
    if (took > *take) *take = took;
    actor.mark = 0;
    if (i && (int32_t)(e->time - last) < 0) uart_puts("not in order\n");
    last = e->time;
  }
  *mean_push = sum_push / MANY; /* The division is libgcc's, outside the measured part. */
  *mean_take = sum_take / MANY;
}

int main(void) {
  uart_init();
  cycles_init();
  uart_puts("{\"bench\":\"queue\"");
  /* The list: a post into an empty queue; behind the event that was inserted last; behind n
   * others from the head, because the event that was inserted last is later. */
  uint32_t cost[SHORT + 1], behind = 0;
  for (unsigned n = 0; n <= SHORT; n++) {
    weft_list_init(&list, WEFT_SPINLOCK(0));
    uint32_t base = weft_now32() + 1000000, start;
    for (unsigned i = 0; i < SHORT + 2; i++) event[i] = (weft_event)WEFT_EVENT(nothing, &actor);
    for (unsigned i = 0; i < n; i++) {
      start = cycles_now();
      weft_list_post(&list, &event[i], base + i);
      behind = cycles_since(start) - call_cost();
    }
    if (n) weft_list_post(&list, &event[SHORT + 1], base + 1000);
    start = cycles_now();
    weft_list_post(&list, &event[n], base + n);
    cost[n] = cycles_since(start) - call_cost();
  }
  put_figure("post_empty", cost[0]);
  put_figure("post_behind_last", behind);
  put_figure("post_behind_one", cost[1]);
  put_figure("entry_passed", (cost[SHORT] - cost[1]) / (SHORT - 1));
  uint32_t push, take, mean_push, mean_take;
  fill_and_empty(0, &push, &take, &mean_push, &mean_take);
  put_figure("heap_push_worst", push);
  put_figure("heap_pop_worst", take);
  fill_and_empty(1, &push, &take, &mean_push, &mean_take);
  put_figure("heap_push_random_worst", push);
  put_figure("heap_push_random_mean", mean_push);
  put_figure("heap_pop_random_worst", take);
  put_figure("heap_pop_random_mean", mean_take);
  fill_and_empty(2, &push, &take, &mean_push, &mean_take);
  put_figure("heap_push_ties_worst", push);
  put_figure("heap_pop_ties_worst", take);
  put_figure("heap_pop_ties_mean", mean_take);
  uart_puts("}\n");
  __asm volatile("bkpt 0");
  return 0;
}
