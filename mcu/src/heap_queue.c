/* heap_queue.c: a binary heap of offsets, for many timers: bounded push, pop, cancel and move.
 *
 * Invariants
 *  1. one[1 … count] (one = index - 1) is a heap: no entry goes before its parent, i / 2. The upper
 *     half of an entry is the event's offset from `base` in words; the lower 14 bits are the upper
 *     bits of the post's number.
 *  2. An event in the heap has a place. It is 4 i, the offset of the event's entry in bytes, or the
 *     place of a descendant: an entry that sinks writes its place, but an entry that rises to its
 *     parent does not, because each pop would pay for that at every level. So an event is found by
 *     walking from its place towards the root. Its link is never 0 (idle). While a core holds the
 *     event (claimed), the place is 0x8000 + the upper bits of the post's number, which are then
 *     stored nowhere else.
 *  3. The order is: release time, then priority (high first), then the number of the post. So
 *     events of equal time and priority are first in, first out, and an event that is put back gets
 *     its old position. The number has 30 bits and is compared by the sign of the difference: an
 *     event may wait while 2^29 others are posted.
 *
 * A pop moves the hole down to a leaf, and then moves the last entry up from there. A heap with
 * four children per entry was tried: its push took 212 cycles, its pop 780. The search for the
 * first event whose actor is free goes down from the root and stops below each event that
 * qualifies. If b events of busy actors stand above that event, the search costs O(b), as in the
 * list.
 */
#define WEFT_OP(name) heap_##name
#include "scheduler.h"

enum { MAX_CAPACITY = 16383, HELD = 0x8000, HIGH = 0x3fff }; /* 4 * MAX_CAPACITY fits a place */

WEFT_INLINE weft_heap *heap_of(weft_queue *q) { return (weft_heap *)(void *)q; }
/* One shift is enough: the shift removes the 14 lower bits, and turns the offset in words into an
 * offset in bytes. */
WEFT_INLINE weft_event *event_at(uint8_t *base, weft_heap_entry entry) {
  return (weft_event *)(void *)(base + (entry >> 14));
}
WEFT_INLINE weft_heap_entry *entry_at(weft_heap_entry *one, unsigned place) {
  return (weft_heap_entry *)(void *)((uint8_t *)one + place);
}

/* Return whether event a goes before event b if both have the same release time. The function is
 * not inlined, since ties are rare and registers are few. */
static bool __attribute__((noinline))
tie_before(uint8_t *base, weft_heap_entry entry_a, weft_heap_entry entry_b) {
  const weft_event *a = event_at(base, entry_a), *b = event_at(base, entry_b);
  unsigned pa = a->actor->mark >> WEFT_PRIORITY_SHIFT, pb = b->actor->mark >> WEFT_PRIORITY_SHIFT;
  if (pa != pb) return pa > pb;
  uint32_t na = entry_a << 16 | a->node.number_low, nb = entry_b << 16 | b->node.number_low;
  return (int32_t)((na - nb) << 2) < 0;
}
static bool before(uint8_t *base, weft_heap_entry a, weft_heap_entry b) {
  int32_t d = (int32_t)(event_at(base, a)->time - event_at(base, b)->time);
  return d < 0 || (d == 0 && tie_before(base, a, b));
}

/* The two loops below count entries in bytes (4 i, a place) and leave ties to other functions.
 * Therefore the low registers of the Cortex-M0+ hold everything that the loops need. */

/* Store an entry that sinks or is new, and write its place into its event. Not used for an entry
 * that rises (invariant 2). */
WEFT_INLINE void put_at(weft_heap_entry *one, uint8_t *base, unsigned place,
                        weft_heap_entry entry) {
  *entry_at(one, place) = entry;
  event_at(base, entry)->node.place = (uint16_t)place;
}
/* Do what climb() does when the parent of the hole has the same release time as `entry`:
 * priority and number decide. */
static void __attribute__((noinline))
climb_tie(weft_heap_entry *one, uint8_t *base, unsigned hole, weft_heap_entry entry) {
  unsigned above;
  while ((above = hole >> 3 << 2) && before(base, entry, *entry_at(one, above))) {
    put_at(one, base, hole, *entry_at(one, above));
    hole = above;
  }
  put_at(one, base, hole, entry);
}
/* Put an entry into the hole or above it. Ancestors with a later time sink into the hole, three at
 * a time where possible: an entry that goes before its third ancestor also goes before the two
 * ancestors in between. */
WEFT_HOT static void __attribute__((noinline))
climb(weft_heap_entry *one, uint8_t *base, unsigned hole, weft_heap_entry entry) {
  uint32_t time = event_at(base, entry)->time;
#ifdef WEFT_HEAP_CLIMB
  WEFT_HEAP_CLIMB(one, base, hole, time, entry,
                  tie); /* The loop below, in the port's own assembly. */
#else
  unsigned above;
  while ((above = hole >> 5 << 2)) {
    weft_heap_entry up = *entry_at(one, above);
    if ((int32_t)(time - event_at(base, up)->time) >= 0) break;
    unsigned parent = hole >> 3 << 2;
    put_at(one, base, hole, *entry_at(one, parent));
    hole = parent >> 3 << 2;
    put_at(one, base, parent, *entry_at(one, hole));
    put_at(one, base, hole, up);
    hole = above;
  }
  while ((above = hole >> 3 << 2)) {
    weft_heap_entry up = *entry_at(one, above);
    int32_t distance = (int32_t)(time - event_at(base, up)->time);
    if (!distance) goto tie;
    if (distance > 0) break;
    put_at(one, base, hole, up);
    hole = above;
  }
#endif
  put_at(one, base, hole, entry);
  return;
tie:
  climb_tie(one, base, hole, entry);
}

/* Called when both children of the hole have the same time: the child that goes first rises into
 * the hole. */
static unsigned __attribute__((noinline))
sink_tie(weft_heap_entry *one, uint8_t *base, unsigned hole) {
  unsigned child = hole * 2;
  if (before(base, *entry_at(one, child + 4), *entry_at(one, child))) child += 4;
  *entry_at(one, hole) = *entry_at(one, child);
  return child;
}
/* Remove the entry at a place. The earlier child rises into the hole, level by level, down to a
 * leaf. From there the last entry climbs to its position, which may be above the place where the
 * hole began. */
WEFT_HOT static void __attribute__((noinline)) take_out(weft_heap *h, unsigned hole) {
  unsigned end = 4 * --h->count;
  if (hole == end + 4) return;
  weft_heap_entry *one = h->index - 1;
  /* From the base of all times, a load takes two registers and no addition. */
  uint8_t *times = h->base + offsetof(weft_node, time);
sink:;
#ifdef WEFT_HEAP_SINK
  WEFT_HEAP_SINK(one, times, hole, end,
                 tie); /* The loop below, in the port's own assembly. */
#else
  for (unsigned child; (child = hole + hole) < end; hole = child) {
    weft_heap_entry earlier = *entry_at(one, child), other = *entry_at(one, child + 4);
    int32_t distance = (int32_t)(*(uint32_t *)(void *)(times + (earlier >> 14)) -
                                 *(uint32_t *)(void *)(times + (other >> 14)));
    if (!distance) goto tie;
    if (distance > 0) {
      earlier = other;
      child += 4;
    }
    *entry_at(one, hole) = earlier;
  }
#endif
  if (hole + hole == end) { /* The child is an only child. */
    *entry_at(one, hole) = *entry_at(one, end);
    hole = end;
  }
  climb(one, times - offsetof(weft_node, time), hole, *entry_at(one, end + 4));
  return;
tie:
  hole = sink_tie(one, times - offsetof(weft_node, time), hole);
  goto sink;
}

/* Give an event that is in no queue the number of a new post, and return the number's upper
 * bits. */
WEFT_INLINE unsigned heap_number(weft_heap *h, weft_event *e) {
  uint32_t number = ++h->posts;
  e->node.number_low = (uint16_t)number;
  return number >> 16 & HIGH;
}
WEFT_INLINE void heap_hold(weft_queue *q, weft_event *e) {
  e->node.place = (uint16_t)(HELD | heap_number(heap_of(q), e));
}
/* Insert an event that has a number; `high` is the number's upper bits. */
WEFT_INLINE int heap_put(weft_heap *h, weft_event *e, unsigned high) {
  size_t offset = (size_t)((uintptr_t)e - (uintptr_t)h->base);
  unsigned count = h->count;
  if (offset >> 18 || count >= h->capacity) {
    e->next = 0;
    return WEFT_MISTAKE(WEFT_E_ARENA,
                        "an event outside the heap's memory, or more events than its capacity");
  }
  h->count = ++count;
  climb(h->index - 1, h->base, 4 * count, (weft_heap_entry)offset << 14 | high);
  return WEFT_OK;
}

WEFT_INLINE int heap_insert(weft_queue *q, weft_event *e) {
  return heap_put(heap_of(q), e, heap_number(heap_of(q), e));
}
WEFT_INLINE int heap_insert_alone(weft_queue *q, weft_event *e) { return heap_insert(q, e); }
WEFT_INLINE void heap_put_back(weft_queue *q, weft_event *e) {
  (void)heap_put(heap_of(q), e, e->node.place & HIGH);
}

/* Return the place of the first entry whose actor is free, or 0 if there is none. Called when
 * the actor of the root is busy. */
static unsigned __attribute__((noinline)) first_below(weft_heap *h) {
  weft_heap_entry *one = h->index - 1;
  uint16_t todo[20]; /* at most one entry of each level waits here, and two entries of the last
                      * level */
  unsigned best = 0, n = 0;
  todo[n++] = 1;
  while (n) {
    unsigned i = todo[--n];
    if (best && !before(h->base, one[i], one[best])) continue;
    if (!(event_at(h->base, one[i])->actor->mark & WEFT_BUSY)) best = i;
    else
      for (unsigned child = 2 * i; child <= 2 * i + 1 && child <= h->count; child++)
        todo[n++] = (uint16_t)child;
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

/* Remove the event, which is at its place or above that place. The search also finds out whether
 * the event is in this queue at all. */
WEFT_INLINE bool heap_remove(weft_queue *q, weft_event *e) {
  weft_heap *h = heap_of(q);
  weft_heap_entry *one = h->index - 1;
  for (unsigned place = e->node.place >> 2 << 2; place; place = place >> 3 << 2)
    if (place <= 4 * h->count && event_at(h->base, *entry_at(one, place)) == e) {
      take_out(h, place);
      return true;
    }
  return false;
}

static int heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq);

WEFT_HOT static int __attribute__((noinline))
heap_post_rare(weft_queue *q, weft_event *e, uint32_t release, weft_irq_t irq) {
  return weft_post_rare_with(q, e, release, irq);
}

void weft_heap_init(weft_heap *q, weft_lock_t *lock, void *base, weft_heap_entry *index,
                    uint32_t capacity) {
  weft_queue_init(&q->queue, lock);
  q->base = (uint8_t *)base;
  q->index = index;
  q->count = 0;
  q->capacity = capacity > MAX_CAPACITY ? MAX_CAPACITY : capacity;
  q->posts = 0;
}
WEFT_HOT int weft_heap_post(weft_heap *q, weft_event *e, uint32_t release) {
  return weft_post_with(&q->queue, e, release);
}
WEFT_HOT void weft_heap_work(weft_heap *q) { weft_work_with(&q->queue); }
int weft_heap_post_as(weft_heap *q, weft_event *e, uint32_t release, weft_policy policy) {
  return weft_post_as_with(&q->queue, e, release, policy);
}
int weft_heap_cancel(weft_heap *q, weft_event *e) { return weft_cancel_with(&q->queue, e); }
