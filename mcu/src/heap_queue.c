/* heap_queue.c: the binary heap of 16-bit numbers, for many timers: bounded push and pop.
 *
 * Invariants
 *  1. index[0 … count-1] is a heap: no entry goes before its parent. An entry is the event's offset from `base` in words.
 *  2. Order: release time, then priority (high first), then the number of the post, which stands in the event's link. So ties are
 *     first in, first out, and an event put back has its old place.
 *  3. The number of a post is never 0 (idle); it wraps after 2^32 posts and is compared by the sign of the difference.
 *
 * The first event whose actor is free is looked for from the root downwards, and not below an event that qualifies: with b events
 * of busy actors above it that costs O(b), as in the list. Pop sinks the hole to a leaf and lets the last entry rise from there.
 */
#include "scheduler.h"

WEFT_INLINE weft_heap *heap_of(weft_queue *q) { return (weft_heap *)(void *)q; }
WEFT_INLINE weft_event *event_at(uint8_t *base, unsigned number) { return (weft_event *)(void *)(base + ((size_t)number << 2)); }

/* Of two events of the same release time: does a go before b? */
static bool __attribute__((noinline)) tie_before(const weft_event *a, const weft_event *b) {
  unsigned pa = a->actor->mark >> WEFT_PRIORITY_SHIFT, pb = b->actor->mark >> WEFT_PRIORITY_SHIFT;
  return pa != pb ? pa > pb : (int32_t)((uint32_t)(uintptr_t)a->next - (uint32_t)(uintptr_t)b->next) < 0;
}
WEFT_INLINE bool before(const weft_event *a, const weft_event *b) {
  int32_t d = (int32_t)(a->time - b->time);
  return d < 0 || (__builtin_expect(d == 0, 0) && tie_before(a, b));
}

/* Let event e, numbered n, rise from the hole at i. Entry i is given 1-based: the parent of i is i / 2. */
WEFT_INLINE void rise(uint16_t *one, uint8_t *base, unsigned i, unsigned n, const weft_event *e) {
  while (i > 1) {
    unsigned up = one[i >> 1];
    if (!before(e, event_at(base, up))) break;
    one[i] = (uint16_t)up;
    i >>= 1;
  }
  one[i] = (uint16_t)n;
}

/* Take out entry i (1-based). */
WEFT_INLINE void take_out(weft_heap *h, unsigned i) {
  uint16_t *one = h->index - 1;
  uint8_t *base = h->base;
  unsigned last = h->count--, n = one[last], child;
  if (i == last) return;
  const weft_event *moved = event_at(base, n);
  /* An entry taken from within may have to give way to one that belongs above it. */
  while ((child = i * 2) < last) {
    unsigned left = one[child];
    if (child + 1 < last) {
      unsigned right = one[child + 1];
      if (before(event_at(base, right), event_at(base, left))) {
        left = right;
        child++;
      }
    }
    one[i] = (uint16_t)left;
    i = child;
  }
  rise(one, base, i, n, moved);
}

WEFT_INLINE int heap_put(weft_heap *h, weft_event *e) {
  size_t offset = (size_t)((uintptr_t)e - (uintptr_t)h->base);
  if (offset >> 18 || h->count >= h->capacity) return WEFT_E_ARENA;
  rise(h->index - 1, h->base, ++h->count, (unsigned)(offset >> 2), e);
  return WEFT_OK;
}

WEFT_INLINE int heap_insert(weft_queue *q, weft_event *e) {
  weft_heap *h = heap_of(q);
  uint32_t number = h->posts + 1;
  if (!number) number = 1;
  h->posts = number;
  e->next = (weft_node *)(uintptr_t)number;
  int code = heap_put(h, e);
  if (code) e->next = 0;
  return code;
}

WEFT_INLINE void heap_put_back(weft_queue *q, weft_event *e) { (void)heap_put(heap_of(q), e); }

/* The first entry (1-based) whose actor is free, 0 if none; the root's is busy. */
static unsigned __attribute__((noinline)) first_below(weft_heap *h) {
  uint16_t *one = h->index - 1, todo[34];
  unsigned best = 0, n = 0;
  todo[n++] = 1;
  while (n) {
    unsigned i = todo[--n];
    if (i > h->count) continue;
    weft_event *e = event_at(h->base, one[i]);
    if (best && !before(e, event_at(h->base, one[best]))) continue;
    if (!(e->actor->mark & WEFT_BUSY)) best = i;
    else {
      todo[n++] = (uint16_t)(2 * i);
      todo[n++] = (uint16_t)(2 * i + 1);
    }
  }
  return best;
}

WEFT_INLINE weft_event *heap_take(weft_queue *q) {
  weft_heap *h = heap_of(q);
  if (!h->count) return 0;
  unsigned i = 1;
  weft_event *e = event_at(h->base, h->index[0]);
  if (__builtin_expect(e->actor->mark & WEFT_BUSY, 0)) {
    i = first_below(h);
    if (!i) return 0;
    e = event_at(h->base, h->index[i - 1]);
  }
  e->actor->mark |= WEFT_BUSY;
  take_out(h, i);
  return e;
}

WEFT_INLINE bool heap_goes_first(weft_queue *q, uint32_t time) {
  weft_heap *h = heap_of(q);
  return !h->count || (int32_t)(event_at(h->base, h->index[0])->time - time) > 0;
}

WEFT_INLINE bool heap_remove(weft_queue *q, weft_event *e) {
  weft_heap *h = heap_of(q);
  size_t offset = (size_t)((uintptr_t)e - (uintptr_t)h->base);
  for (unsigned i = 0; i < h->count; i++)
    if (h->index[i] == offset >> 2) {
      take_out(h, i + 1);
      return true;
    }
  return false;
}

static int heap_post_rare(weft_queue *q, weft_event *e, weft_irq_t irq);
static const weft_ops heap_ops = {heap_insert, heap_post_rare, heap_insert, heap_put_back, heap_take, heap_goes_first, heap_remove};

WEFT_HOT static int __attribute__((noinline)) heap_post_rare(weft_queue *q, weft_event *e, weft_irq_t irq) {
  return weft_post_rare_with(heap_ops, q, e, irq);
}

void weft_heap_init(weft_heap *q, weft_lock_t *lock, void *base, uint16_t *index, uint32_t capacity) {
  weft_queue_init(&q->queue, lock);
  q->base = (uint8_t *)base;
  q->index = index;
  q->count = 0;
  q->capacity = capacity > 65535 ? 65535 : capacity;
  q->posts = 0;
}
WEFT_HOT static int heap_post(weft_queue *q, weft_event *e, uint32_t release) { return weft_post_with(heap_ops, q, e, release); }
int weft_heap_post(weft_heap *q, weft_event *e, uint32_t release) {
  int code = heap_post(&q->queue, e, release);
  return code == WEFT_E_ARENA ? WEFT_MISTAKE(code, "an event outside the heap's memory, or more events than its capacity") : code;
}
WEFT_HOT void weft_heap_work(weft_heap *q) { weft_work_with(heap_ops, &q->queue); }
int weft_heap_post_as(weft_heap *q, weft_event *e, uint32_t release, weft_policy policy) {
  int code = weft_post_as_with(heap_ops, &q->queue, e, release, policy);
  return code == WEFT_E_ARENA ? WEFT_MISTAKE(code, "an event outside the heap's memory, or more events than its capacity") : code;
}
int weft_heap_cancel(weft_heap *q, weft_event *e) { return weft_cancel_with(heap_ops, &q->queue, e); }
