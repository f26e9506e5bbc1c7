/* heap_queue.c: a binary heap of 16-bit numbers, for many timers: bounded push and pop.
 *
 * Invariants
 *  1. one[1 … count] (one = index - 1) is a heap: no entry goes before its parent, i / 2. An entry is the event's offset from
 *     `base` in words.
 *  2. Order: release time, then priority (high first), then the number of the post, which stands in the event's link. So ties are
 *     first in, first out, and an event put back has its old place.
 *  3. The number of a post is odd, so never 0 (idle); it wraps after 2^31 posts and is compared by the sign of the difference.
 *
 * Pop sinks the hole to a leaf and lets the last entry rise from there. Four children to an entry were tried: push 212, pop 780.
 * The first event whose actor is free is looked for from the root downwards, and not below one that qualifies: with b events of
 * busy actors above it that costs O(b), as in the list.
 */
#include "scheduler.h"

WEFT_INLINE weft_heap *heap_of(weft_queue *q) { return (weft_heap *)(void *)q; }
WEFT_INLINE weft_event *event_at(uint8_t *base, unsigned number) { return (weft_event *)(void *)(base + ((size_t)number << 2)); }

/* The release time of event `number`, where `times` is base + offsetof(weft_event, time): one shift and one load. */
WEFT_INLINE uint32_t time_at(const uint8_t *times, unsigned number) { return *(const uint32_t *)(const void *)(times + ((size_t)number << 2)); }

/* Of two events of the same release time: does a go before b? Out of line: ties are rare, and registers few. */
static bool __attribute__((noinline)) tie_before(weft_heap *h, unsigned number_a, unsigned number_b) {
  const weft_event *a = event_at(h->base, number_a), *b = event_at(h->base, number_b);
  unsigned pa = a->actor->mark >> WEFT_PRIORITY_SHIFT, pb = b->actor->mark >> WEFT_PRIORITY_SHIFT;
  return pa != pb ? pa > pb : (int32_t)((uint32_t)(uintptr_t)a->next - (uint32_t)(uintptr_t)b->next) < 0;
}
static bool before(weft_heap *h, unsigned a, unsigned b) {
  int32_t d = (int32_t)(event_at(h->base, a)->time - event_at(h->base, b)->time);
  return d < 0 || (d == 0 && tie_before(h, a, b));
}

/* The two loops below are functions of their own, count entries in bytes (2i) and leave ties to their callers: so all they need is
 * in the M0+'s low registers, 12 and 24 cycles a level. The order of the subtractions saves a comparison. */
WEFT_INLINE uint16_t *entry(uint16_t *one, unsigned bytes) { return (uint16_t *)(void *)((uint8_t *)one + bytes); }

/* Let ancestors of the hole sink into it while they are later than `time`, two at a time: who goes before the parent's parent goes
 * before the parent. Where the hole has come to. */
WEFT_INLINE unsigned climb_in_line(uint16_t *one, const uint8_t *times, unsigned hole, uint32_t time) {
  unsigned above;
  while ((above = hole >> 3 << 1)) {
    unsigned up = *entry(one, above);
    if ((int32_t)(time - time_at(times, up)) >= 0) break;
    uint16_t *between = entry(one, hole >> 2 << 1);
    *entry(one, hole) = *between;
    *between = (uint16_t)up;
    hole = above;
  }
  if ((above = hole >> 2 << 1)) {
    unsigned up = *entry(one, above);
    if ((int32_t)(time - time_at(times, up)) < 0) {
      *entry(one, hole) = (uint16_t)up;
      hole = above;
    }
  }
  return hole;
}
WEFT_HOT static unsigned __attribute__((noinline)) climb(uint16_t *one, const uint8_t *times, unsigned hole, uint32_t time) {
  return climb_in_line(one, times, hole, time);
}
/* Let the earlier child rise into the hole, down to a leaf of the entries up to `end` (in bytes), then let the hole climb to where the entry
 * behind them belongs. Where it has come to; plus 1: there are two children of the same time. */
WEFT_HOT static unsigned __attribute__((noinline)) sift(uint16_t *one, const uint8_t *times, unsigned hole, unsigned end) {
  unsigned child;
  while ((child = hole + hole) < end) {
    const uint16_t *two = entry(one, child);
    unsigned earlier = two[0], other = two[1];
    int32_t distance = (int32_t)(time_at(times, earlier) - time_at(times, other));
    if (distance >= 0) {
      if (!distance) return hole + 1;
      earlier = other;
      child += 2;
    }
    *entry(one, hole) = (uint16_t)earlier;
    hole = child;
  }
  if (child == end) { /* an only child */
    *entry(one, hole) = *entry(one, child);
    hole = child;
  }
  return climb_in_line(one, times, hole, time_at(times, *entry(one, end + 2)));
}

/* The hole has two children of the same time: let the one that goes first rise into it. */
static unsigned __attribute__((noinline)) descend_tie(weft_heap *h, unsigned hole) {
  uint16_t *one = h->index - 1;
  unsigned child = hole * 2;
  if (before(h, *entry(one, child + 2), *entry(one, child))) child += 2;
  *entry(one, hole) = *entry(one, child);
  return child;
}
/* The parent of the hole has the release time of event n: they go by priority and number. */
static void __attribute__((noinline)) rise_tie(weft_heap *h, unsigned hole, unsigned n) {
  uint16_t *one = h->index - 1;
  unsigned above;
  while ((above = hole >> 2 << 1) && before(h, n, *entry(one, above))) {
    *entry(one, hole) = *entry(one, above);
    hole = above;
  }
  *entry(one, hole) = (uint16_t)n;
}
/* Put event n into the hole that has climbed to its place, but for ties. */
WEFT_INLINE void settle(weft_heap *h, uint16_t *one, const uint8_t *times, unsigned hole, unsigned n) {
  unsigned above = hole >> 2 << 1;
  if (above && __builtin_expect(time_at(times, *entry(one, above)) == time_at(times, n), 0)) rise_tie(h, hole, n);
  else *entry(one, hole) = (uint16_t)n;
}
/* Let event n rise from the hole. */
WEFT_INLINE void rise(weft_heap *h, unsigned hole, unsigned n) {
  uint16_t *one = h->index - 1;
  const uint8_t *times = h->base + offsetof(weft_event, time);
  settle(h, one, times, climb(one, times, hole, time_at(times, n)), n);
}

/* Take out entry i: sink the hole to a leaf, then let the last entry rise from there (above i as well, if i was within). */
WEFT_HOT static void __attribute__((noinline)) take_out(weft_heap *h, unsigned i) {
  unsigned last = h->count, hole = i * 2;
  h->count = last - 1;
  if (i == last) return;
  uint16_t *one = h->index - 1;
  const uint8_t *times = h->base + offsetof(weft_event, time);
  while ((hole = sift(one, times, hole, last * 2 - 2)) & 1) hole = descend_tie(h, hole - 1);
  settle(h, one, times, hole, one[last]);
}

WEFT_INLINE int heap_put(weft_heap *h, weft_event *e) {
  size_t offset = (size_t)((uintptr_t)e - (uintptr_t)h->base);
  unsigned count = h->count;
  if (offset >> 18 || count >= h->capacity)
    return WEFT_MISTAKE(WEFT_E_ARENA, "an event outside the heap's memory, or more events than its capacity");
  h->count = ++count;
  rise(h, 2 * count, (unsigned)(offset >> 2));
  return WEFT_OK;
}

WEFT_INLINE int heap_insert(weft_queue *q, weft_event *e) {
  weft_heap *h = heap_of(q);
  e->next = (weft_node *)(uintptr_t)(h->posts += 2); /* odd: never 0 */
  int code = heap_put(h, e);
  if (code) e->next = 0;
  return code;
}

WEFT_INLINE void heap_put_back(weft_queue *q, weft_event *e) { (void)heap_put(heap_of(q), e); }

/* The first entry whose actor is free, 0 if none; the root's is busy. */
static unsigned __attribute__((noinline)) first_below(weft_heap *h) {
  uint16_t *one = h->index - 1, todo[20]; /* at most one a level waits here, and the two of the last */
  unsigned best = 0, n = 0;
  todo[n++] = 1;
  while (n) {
    unsigned i = todo[--n];
    if (best && !before(h, one[i], one[best])) continue;
    if (!(event_at(h->base, one[i])->actor->mark & WEFT_BUSY)) best = i;
    else
      for (unsigned child = 2 * i; child <= 2 * i + 1 && child <= h->count; child++) todo[n++] = (uint16_t)child;
  }
  return best;
}

WEFT_INLINE weft_event *heap_take(weft_queue *q) {
  weft_heap *h = heap_of(q);
  if (!h->count) return 0;
  unsigned i = 1;
  weft_event *e = event_at(h->base, h->index[0]);
  unsigned mark = e->actor->mark;
  if (__builtin_expect(mark & WEFT_BUSY, 0)) {
    i = first_below(h);
    if (!i) return 0;
    e = event_at(h->base, h->index[i - 1]);
    mark = e->actor->mark;
  }
  e->actor->mark = (uint8_t)(mark + WEFT_BUSY);
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

static int heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq);
static const weft_ops heap_ops = {heap_insert, heap_post_rare, heap_insert, heap_put_back, heap_take, heap_goes_first, heap_remove};

WEFT_HOT static int __attribute__((noinline)) heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq) {
  return weft_post_rare_with(heap_ops, q, e, release, irq);
}

void weft_heap_init(weft_heap *q, weft_lock_t *lock, void *base, uint16_t *index, uint32_t capacity) {
  weft_queue_init(&q->queue, lock);
  q->base = (uint8_t *)base;
  q->index = index;
  q->count = 0;
  q->capacity = capacity > 65535 ? 65535 : capacity;
  q->posts = 1;
}
WEFT_HOT int weft_heap_post(weft_heap *q, weft_event *e, uint32_t release) { return weft_post_with(heap_ops, &q->queue, e, release); }
WEFT_HOT void weft_heap_work(weft_heap *q) { weft_work_with(heap_ops, &q->queue); }
int weft_heap_post_as(weft_heap *q, weft_event *e, uint32_t release, weft_policy policy) {
  return weft_post_as_with(heap_ops, &q->queue, e, release, policy);
}
int weft_heap_cancel(weft_heap *q, weft_event *e) { return weft_cancel_with(heap_ops, &q->queue, e); }
