/* list_queue.c: the sorted list.
 *
 * Invariants: a ring through q->head, ordered by release time, then priority (high first), then order of posting. Times are compared
 * by the sign of their difference, so all must lie within 2^31 us. The head takes part in the search as its own sentinel: its time
 * is set one later than the one looked for, which leaves a single comparison an entry (8 cycles).
 */
#include "scheduler.h"

WEFT_INLINE unsigned priority_of(weft_node *n) { return ((weft_event *)(void *)n)->actor->mark >> WEFT_PRIORITY_SHIFT; }

/* The node after which an event of this time belongs, before any others of the same time. */
WEFT_INLINE weft_node *before_ties(weft_queue *q, uint32_t time) {
  weft_node *at = &q->head, *next;
  q->head.time = time + 1;
  for (;;) {
    next = at->next;
    if ((int32_t)(next->time - time) >= 0) return at;
    at = next;
  }
}

WEFT_INLINE int list_insert(weft_queue *q, weft_event *e) {
  uint32_t time = e->time;
  weft_node *at = before_ties(q, time), *next = at->next;
  if (__builtin_expect(next->time == time, 0)) {
    unsigned priority = priority_of(&e->node);
    do {
      if (priority_of(next) < priority) break;
      at = next;
      next = at->next;
    } while (next->time == time);
  }
  e->next = next;
  at->next = &e->node;
  return WEFT_OK;
}

WEFT_INLINE void list_put_back(weft_queue *q, weft_event *e) {
  uint32_t time = e->time;
  weft_node *at = before_ties(q, time), *next = at->next;
  unsigned priority = priority_of(&e->node);
  while (next->time == time && priority_of(next) > priority) {
    at = next;
    next = at->next;
  }
  e->next = next;
  at->next = &e->node;
}

WEFT_INLINE weft_event *list_take(weft_queue *q) {
  weft_node *at = &q->head, *next;
  while ((next = at->next) != &q->head) {
    weft_event *e = (weft_event *)(void *)next;
    weft_actor *a = e->actor;
    unsigned mark = a->mark;
    if (__builtin_expect(!(mark & WEFT_BUSY), 1)) {
      a->mark = (uint8_t)(mark + WEFT_BUSY);
      at->next = next->next;
      return e;
    }
    a->mark = (uint8_t)(mark | WEFT_WANTED);
    at = next;
  }
  return 0;
}

WEFT_INLINE bool list_goes_first(weft_queue *q, uint32_t time) {
  q->head.time = time + 1;
  return (int32_t)(q->head.next->time - time) > 0;
}

WEFT_INLINE bool list_remove(weft_queue *q, weft_event *e) {
  for (weft_node *at = &q->head; at->next != &q->head; at = at->next)
    if (at->next == &e->node) {
      at->next = e->next;
      return true;
    }
  return false;
}

static const weft_ops list_ops = {list_insert, list_put_back, list_take, list_goes_first, list_remove};

void weft_list_init(weft_queue *q, weft_lock_t *lock) {
  weft_queue_init(q, lock);
  q->head.next = &q->head;
}
WEFT_HOT int weft_list_post(weft_queue *q, weft_event *e, uint32_t release) { return weft_post_with(list_ops, q, e, release); }
WEFT_HOT void weft_list_work(weft_queue *q) { weft_work_with(list_ops, q); }
int weft_list_post_as(weft_queue *q, weft_event *e, uint32_t release, weft_policy policy) {
  return weft_post_as_with(list_ops, q, e, release, policy);
}
int weft_list_cancel(weft_queue *q, weft_event *e) { return weft_cancel_with(list_ops, q, e); }
