/* list_queue.c: the queue that is a sorted list.
 *
 * Invariants
 *  1. The list is a ring through q->head, ordered by release time, then priority (high first), then
 *     order of posting. Times are compared by the sign of their difference, so all must lie within
 *     2^31 us.
 *  2. q->near is in the ring: code that takes that node out sets q->near to the previous node.
 */
#define WEFT_OP(name) list_##name
#include "scheduler.h"

WEFT_INLINE unsigned priority_of(weft_node *n) {
  return ((weft_event *)(void *)n)->actor->mark >> WEFT_PRIORITY_SHIFT;
}

WEFT_INLINE void link_between(weft_node *at, weft_event *e, weft_node *next) {
  e->next = next;
  at->next = &e->node;
}

/* Insert e behind the events with its time and priority, or in front of them. The search begins at
 * the event that was inserted last, if that event goes before e. Thus an event whose actor has the
 * same period as other actors finds its place right behind that event, however many actors there
 * are and however many events wait far behind. */
WEFT_HOT static int __attribute__((noinline))
insert_either(weft_queue *q, weft_event *e, bool in_front) {
  uint32_t time = e->time;
  unsigned priority = priority_of(&e->node) + in_front;
  weft_node *at = q->near, *next;
  if (at != &q->head) {
    int32_t distance = (int32_t)(at->time - time);
    if (distance >= 0 && (distance || priority_of(at) < priority)) at = &q->head;
  }
#ifdef WEFT_SEARCH_RING
  WEFT_SEARCH_RING(&q->head, time, at, next,
                   end); /* the loop below, in the port's own assembly */
#else
  for (;; at = next) {
    next = at->next;
    if (next == &q->head) goto end;
    int32_t distance = (int32_t)(next->time - time);
    if (distance > 0) goto end;
    if (!distance) break;
  }
#endif
  do { /* passes the events with the same time */
    if (priority_of(next) < priority) break;
    at = next;
    next = at->next;
  } while (next != &q->head && next->time == time);
end:
  link_between(at, e, next);
  q->near = &e->node;
  return WEFT_OK;
}
WEFT_INLINE int list_insert(weft_queue *q, weft_event *e) { return insert_either(q, e, false); }
WEFT_INLINE void list_put_back(weft_queue *q, weft_event *e) { (void)insert_either(q, e, true); }

/* Insert e in one of the two common cases, which are inlined: a time before all others, and the
 * place right behind the event that was inserted last. */
WEFT_INLINE int list_insert_alone(weft_queue *q, weft_event *e) {
  uint32_t time = e->time;
  weft_node *next = q->first;
  if (next == &q->head || (int32_t)(next->time - time) > 0) {
    link_between(&q->head, e, next);
    return WEFT_OK;
  }
  weft_node *at = q->near;
  if (at == &q->head) return WEFT_TIED;
  int32_t distance = (int32_t)(at->time - time);
  if (distance >= 0 && (distance || priority_of(at) < priority_of(&e->node))) return WEFT_TIED;
  next = at->next;
  if (next != &q->head && (int32_t)(next->time - time) <= 0) return WEFT_TIED;
  q->near = &e->node;
  __asm("" : "+r"(at)); /* Without this statement GCC would merge the two stores and move
                         * registers for that. */
  link_between(at, e, next);
  return WEFT_OK;
}
static int list_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq);

WEFT_INLINE weft_event *list_take(weft_queue *q) {
  for (weft_node *at = &q->head, *next; (next = at->next) != &q->head; at = next) {
    weft_event *e = (weft_event *)(void *)next;
    unsigned mark = e->actor->mark;
    if (__builtin_expect(mark & WEFT_BUSY, 0)) continue;
    e->actor->mark = (uint8_t)(mark + WEFT_BUSY);
    at->next = next->next;
    if (__builtin_expect(q->near == next, 0)) q->near = at;
    return e;
  }
  return 0;
}

WEFT_INLINE bool list_goes_first(weft_queue *q, uint32_t time) {
  weft_node *next = q->head.next;
  return next == &q->head || (int32_t)(next->time - time) > 0;
}

WEFT_INLINE void list_hold(weft_queue *q, weft_event *e) { (void)q, e->next = &e->node; }

WEFT_INLINE bool list_remove(weft_queue *q, weft_event *e) {
  for (weft_node *at = &q->head; at->next != &q->head; at = at->next)
    if (at->next == &e->node) {
      at->next = e->next;
      if (q->near == &e->node) q->near = at;
      return true;
    }
  return false;
}

WEFT_HOT static int __attribute__((noinline))
list_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq) {
  return weft_post_rare_with(q, e, release, irq);
}

void weft_list_init(weft_queue *q, weft_lock_t *lock) {
  weft_queue_init(q, lock);
  q->first = q->near = &q->head;
}
WEFT_HOT int weft_list_post(weft_queue *q, weft_event *e, uint32_t release) {
  return weft_post_with(q, e, release);
}
WEFT_HOT void weft_list_work(weft_queue *q) { weft_work_with(q); }
int weft_list_post_as(weft_queue *q, weft_event *e, uint32_t release, weft_policy policy) {
  return weft_post_as_with(q, e, release, policy);
}
int weft_list_cancel(weft_queue *q, weft_event *e) { return weft_cancel_with(q, e); }
