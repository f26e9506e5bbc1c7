/* heap_queue.c: a binary heap of offsets, for many timers: bounded push, pop, cancel and move.
 *
 * Invariants
 *  1. one[1 … count] (one = index - 1) is a heap: no entry goes before its parent, i / 2. The upper half of an entry is the event's offset
 *     from `base` in words, the lower 14 bits are the upper bits of its post's number.
 *  2. An event in the heap has its place: 4 i, the entry's offset in bytes. So it is found without a search, and its link is not 0 (idle).
 *     While a core holds it (claimed) the place is 0x8000 + the upper bits of the number, which the entry has no more.
 *  3. Order: release time, then priority (high first), then the number of the post. So ties are first in, first out, and an event put back has
 *     its old place. The number has 30 bits and is compared by the sign of the difference: an event may wait while 2^29 others are posted.
 *
 * Pop sinks the hole to a leaf and lets the last entry rise from there. Four children to an entry were tried: push 212, pop 780.
 * The first event whose actor is free is looked for from the root downwards, and not below one that qualifies: with b events of
 * busy actors above it that costs O(b), as in the list.
 */
#include "scheduler.h"

enum { MOST = 16383, HELD = 0x8000, HIGH = 0x3fff }; /* 4 * MOST fits into a place */

WEFT_INLINE weft_heap *heap_of(weft_queue *q) { return (weft_heap *)(void *)q; }
/* One shift: the number's bits end where those of the offset begin, less two. */
WEFT_INLINE weft_event *event_at(uint8_t *base, weft_heap_entry entry) { return (weft_event *)(void *)(base + (entry >> 14)); }
WEFT_INLINE weft_heap_entry *entry_at(weft_heap_entry *one, unsigned place) { return (weft_heap_entry *)(void *)((uint8_t *)one + place); }

/* Of two events of the same release time: does a go before b? Out of line: ties are rare, and registers few. */
static bool __attribute__((noinline)) tie_before(weft_heap *h, weft_heap_entry entry_a, weft_heap_entry entry_b) {
  const weft_event *a = event_at(h->base, entry_a), *b = event_at(h->base, entry_b);
  unsigned pa = a->actor->mark >> WEFT_PRIORITY_SHIFT, pb = b->actor->mark >> WEFT_PRIORITY_SHIFT;
  if (pa != pb) return pa > pb;
  uint32_t na = entry_a << 16 | a->node.number_low, nb = entry_b << 16 | b->node.number_low;
  return (int32_t)((na - nb) << 2) < 0;
}
static bool before(weft_heap *h, weft_heap_entry a, weft_heap_entry b) {
  int32_t d = (int32_t)(event_at(h->base, a)->time - event_at(h->base, b)->time);
  return d < 0 || (d == 0 && tie_before(h, a, b));
}

/* The two loops below are functions of their own, count entries in bytes (4i: places) and leave ties to their callers: so all they need is
 * in the M0+'s low registers. The order of the subtractions saves a comparison. */

WEFT_INLINE void move_to(weft_heap_entry *one, unsigned place, weft_heap_entry entry, weft_event *e) {
  *entry_at(one, place) = entry;
  e->node.place = (uint16_t)place;
}
/* Let ancestors of the hole sink into it while they are later than `time`, two at a time: who goes before the parent's parent goes
 * before the parent. Where the hole has come to. */
WEFT_INLINE unsigned climb_in_line(weft_heap_entry *one, uint8_t *base, unsigned hole, uint32_t time) {
  unsigned above;
  while ((above = hole >> 4 << 2)) {
    weft_heap_entry up = *entry_at(one, above);
    weft_event *e = event_at(base, up);
    if ((int32_t)(time - e->time) >= 0) break;
    unsigned middle = hole >> 3 << 2;
    weft_heap_entry between = *entry_at(one, middle);
    move_to(one, middle, up, e);
    move_to(one, hole, between, event_at(base, between));
    hole = above;
  }
  if ((above = hole >> 3 << 2)) {
    weft_heap_entry up = *entry_at(one, above);
    weft_event *e = event_at(base, up);
    if ((int32_t)(time - e->time) < 0) {
      move_to(one, hole, up, e);
      hole = above;
    }
  }
  return hole;
}
WEFT_HOT static unsigned __attribute__((noinline)) climb(weft_heap_entry *one, uint8_t *base, unsigned hole, uint32_t time) {
  return climb_in_line(one, base, hole, time);
}
/* Let the earlier child rise into the hole, down to a leaf of the entries up to `end` (a place), then let the hole climb to where the entry
 * behind them belongs. Where it has come to; plus 1: there are two children of the same time. */
WEFT_HOT static unsigned __attribute__((noinline)) sift(weft_heap_entry *one, uint8_t *base, unsigned hole, unsigned end) {
  unsigned child;
  while ((child = hole + hole) < end) {
    const weft_heap_entry *two = entry_at(one, child);
    weft_heap_entry earlier = two[0], other = two[1];
    weft_event *e = event_at(base, earlier), *o = event_at(base, other);
    int32_t distance = (int32_t)(e->time - o->time);
    if (distance >= 0) {
      if (!distance) return hole + 1;
      earlier = other;
      e = o;
      child += 4;
    }
    move_to(one, hole, earlier, e);
    hole = child;
  }
  if (child == end) { /* an only child */
    weft_heap_entry only = *entry_at(one, child);
    move_to(one, hole, only, event_at(base, only));
    hole = child;
  }
  return climb_in_line(one, base, hole, event_at(base, *entry_at(one, end + 4))->time);
}

/* The hole has two children of the same time: let the one that goes first rise into it. */
static unsigned __attribute__((noinline)) descend_tie(weft_heap *h, unsigned hole) {
  weft_heap_entry *one = h->index - 1;
  unsigned child = hole * 2;
  if (before(h, *entry_at(one, child + 4), *entry_at(one, child))) child += 4;
  move_to(one, hole, *entry_at(one, child), event_at(h->base, *entry_at(one, child)));
  return child;
}
/* The parent of the hole has the release time of `entry`: they go by priority and number. */
static unsigned __attribute__((noinline)) rise_tie(weft_heap *h, unsigned hole, weft_heap_entry entry) {
  weft_heap_entry *one = h->index - 1;
  unsigned above;
  while ((above = hole >> 3 << 2) && before(h, entry, *entry_at(one, above))) {
    move_to(one, hole, *entry_at(one, above), event_at(h->base, *entry_at(one, above)));
    hole = above;
  }
  return hole;
}
/* Put an entry into the hole that has climbed to its place, but for ties. */
WEFT_INLINE void settle(weft_heap *h, weft_heap_entry *one, uint8_t *base, unsigned hole, weft_heap_entry entry) {
  weft_event *e = event_at(base, entry);
  unsigned above = hole >> 3 << 2;
  if (above && __builtin_expect(event_at(base, *entry_at(one, above))->time == e->time, 0)) hole = rise_tie(h, hole, entry);
  move_to(one, hole, entry, e);
}

/* Take out the entry at a place: sink the hole to a leaf, then let the last entry rise from there (above the place as well, if it was within). */
WEFT_HOT static void __attribute__((noinline)) take_out(weft_heap *h, unsigned hole) {
  unsigned last = h->count;
  h->count = last - 1;
  if (hole == last * 4) return;
  weft_heap_entry *one = h->index - 1;
  uint8_t *base = h->base;
  while ((hole = sift(one, base, hole, last * 4 - 4)) & 1) hole = descend_tie(h, hole - 1);
  settle(h, one, base, hole, one[last]);
}

/* Give an event that is in no queue the number of a new post. */
WEFT_INLINE void heap_hold(weft_queue *q, weft_event *e) {
  uint32_t number = ++heap_of(q)->posts;
  e->node.number_low = (uint16_t)number;
  e->node.place = (uint16_t)(HELD | (number >> 16 & HIGH));
}
/* Put in an event that has a number. */
WEFT_INLINE int heap_put(weft_heap *h, weft_event *e) {
  size_t offset = (size_t)((uintptr_t)e - (uintptr_t)h->base);
  unsigned count = h->count;
  if (offset >> 18 || count >= h->capacity) {
    e->next = 0;
    return WEFT_MISTAKE(WEFT_E_ARENA, "an event outside the heap's memory, or more events than its capacity");
  }
  h->count = ++count;
  weft_heap_entry *one = h->index - 1;
  settle(h, one, h->base, climb(one, h->base, 4 * count, e->time), (weft_heap_entry)offset << 14 | (e->node.place & HIGH));
  return WEFT_OK;
}

WEFT_INLINE int heap_insert(weft_queue *q, weft_event *e) {
  heap_hold(q, e);
  return heap_put(heap_of(q), e);
}
WEFT_INLINE void heap_put_back(weft_queue *q, weft_event *e) { (void)heap_put(heap_of(q), e); }

/* The place of the first entry whose actor is free, 0 if none; the root's is busy. */
static unsigned __attribute__((noinline)) first_below(weft_heap *h) {
  weft_heap_entry *one = h->index - 1;
  uint16_t todo[20]; /* at most one a level waits here, and the two of the last */
  unsigned best = 0, n = 0;
  todo[n++] = 1;
  while (n) {
    unsigned i = todo[--n];
    if (best && !before(h, one[i], one[best])) continue;
    if (!(event_at(h->base, one[i])->actor->mark & WEFT_BUSY)) best = i;
    else
      for (unsigned child = 2 * i; child <= 2 * i + 1 && child <= h->count; child++) todo[n++] = (uint16_t)child;
  }
  return 4 * best;
}

WEFT_INLINE weft_event *heap_take(weft_queue *q) {
  weft_heap *h = heap_of(q);
  if (!h->count) return 0;
  unsigned place = 4;
  weft_heap_entry entry = h->index[0];
  weft_event *e = event_at(h->base, entry);
  unsigned mark = e->actor->mark;
  if (__builtin_expect(mark & WEFT_BUSY, 0)) {
    place = first_below(h);
    if (!place) return 0;
    entry = h->index[place / 4 - 1];
    e = event_at(h->base, entry);
    mark = e->actor->mark;
  }
  e->actor->mark = (uint8_t)(mark + WEFT_BUSY);
  e->node.place = (uint16_t)(HELD | (entry & HIGH));
  take_out(h, place);
  return e;
}

WEFT_INLINE bool heap_goes_first(weft_queue *q, uint32_t time) {
  weft_heap *h = heap_of(q);
  return !h->count || (int32_t)(event_at(h->base, h->index[0])->time - time) > 0;
}

/* Its place says where it is, and the entry there whether it is of this queue at all. */
WEFT_INLINE bool heap_remove(weft_queue *q, weft_event *e) {
  weft_heap *h = heap_of(q);
  unsigned place = e->node.place;
  if (place - 4 >= 4 * h->count || (place & 3) || event_at(h->base, h->index[place / 4 - 1]) != e) return false;
  take_out(h, place);
  return true;
}

static int heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq);
static const weft_ops heap_ops = {heap_insert, heap_post_rare, heap_insert, heap_put_back, heap_take, heap_goes_first, heap_hold, heap_remove};

WEFT_HOT static int __attribute__((noinline)) heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq) {
  return weft_post_rare_with(heap_ops, q, e, release, irq);
}

void weft_heap_init(weft_heap *q, weft_lock_t *lock, void *base, weft_heap_entry *index, uint32_t capacity) {
  weft_queue_init(&q->queue, lock);
  q->base = (uint8_t *)base;
  q->index = index;
  q->count = 0;
  q->capacity = capacity > MOST ? MOST : capacity;
  q->posts = 0;
}
WEFT_HOT int weft_heap_post(weft_heap *q, weft_event *e, uint32_t release) { return weft_post_with(heap_ops, &q->queue, e, release); }
WEFT_HOT void weft_heap_work(weft_heap *q) { weft_work_with(heap_ops, &q->queue); }
int weft_heap_post_as(weft_heap *q, weft_event *e, uint32_t release, weft_policy policy) {
  return weft_post_as_with(heap_ops, &q->queue, e, release, policy);
}
int weft_heap_cancel(weft_heap *q, weft_event *e) { return weft_cancel_with(heap_ops, &q->queue, e); }
