/* reactors/queue.h: the queue of timers and events: a sorted list, or for more than 64 entries a
 * heap of chains. Part of weft_mcu/reactors_run.h.
 *
 * Invariants
 *  1. Order: time, then microstep. A timer has microstep 0 and comes before events of its time and
 *     microstep.
 *  2. Heap: an entry is a chain, by `next`, of nodes with the same tag, in the order of insertion.
 *     Two entries may have the same tag; each of them is then a chain of its own.
 *  3. `near` is an entry of the heap, or 0.
 */
#ifndef WEFT_RX_QUEUE_H
#define WEFT_RX_QUEUE_H
#include "weft_mcu/reactors/env.h"

WEFT_INLINE weft_rx_event *weft_rx_as_event(weft_rx_timer *n) { return (weft_rx_event *)(void *)n; }
WEFT_INLINE weft_rx_timer *weft_rx_as_node(weft_rx_event *e) { return (weft_rx_timer *)(void *)e; }
WEFT_INLINE uint32_t weft_rx_step_of(weft_rx_timer *n) {
  return n->period ? 0 : weft_rx_as_event(n)->step;
}

#if !WEFT_RX_HEAP
WEFT_INLINE weft_rx_timer *weft_rx_first(weft_rx_env *env) { return env->head; }
/* Insert a timer before all nodes of its time, so that the search passes none of those nodes. */
WEFT_INLINE void weft_rx_insert_timer(weft_rx_env *env, weft_rx_timer *n) {
  weft_rx_timer **at = &env->head, *x;
  weft_rx_time time = n->time;
  while ((x = *at) && weft_rx_before(x->time, time)) at = &x->next;
  n->next = x;
  *at = n;
}
static void weft_rx_insert_event(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_timer **at = &env->head, *x;
  while ((x = *at) && (weft_rx_before(x->time, e->time) ||
                       (x->time == e->time && weft_rx_step_of(x) <= e->step)))
    at = &x->next;
  e->next = x;
  *at = weft_rx_as_node(e);
}
static bool weft_rx_remove(weft_rx_env *env, weft_rx_timer *n) {
  for (weft_rx_timer **at = &env->head; *at; at = &(*at)->next)
    if (*at == n) {
      *at = n->next;
      return true;
    }
  return false;
}
/* Visit every node once, in any order; *place is 0 at first. The queue must not change
 * meanwhile. */
WEFT_INLINE weft_rx_timer *weft_rx_each(weft_rx_env *env, uint32_t *place, weft_rx_timer *last) {
  (void)place;
  return last ? last->next : env->head;
}
/* Return whether there is more than one node. */
WEFT_INLINE bool weft_rx_several(weft_rx_env *env) { return env->head && env->head->next; }
/* Remove the first node. */
WEFT_INLINE weft_rx_timer *weft_rx_take_first(weft_rx_env *env) {
  weft_rx_timer *n = env->head;
  env->head = n->next;
  return n;
}
#else
/* The microsteps are compared only if the times are equal, which is rare. */
WEFT_INLINE bool weft_rx_earlier(weft_rx_timer *a, weft_rx_timer *b) {
  return a->time == b->time ? weft_rx_step_of(a) < weft_rx_step_of(b)
                            : weft_rx_before(a->time, b->time);
}
WEFT_INLINE bool weft_rx_same_tag(weft_rx_timer *a, weft_rx_timer *b) {
  return a->time == b->time && weft_rx_step_of(a) == weft_rx_step_of(b);
}
WEFT_INLINE weft_rx_timer *weft_rx_first(weft_rx_env *env) { return env->count ? env->heap[0] : 0; }
WEFT_HOT_PART(weft_rx_insert) static void weft_rx_insert(weft_rx_env *env, weft_rx_timer *n) {
  weft_rx_timer *near = env->near;
  n->next = 0;
  if (near &&
      weft_rx_same_tag(
          near,
          n)) { /* behind the first node of the chain: the order within a chain does not matter */
    n->next = near->next;
    near->next = n;
    return;
  }
  weft_rx_timer **heap = env->heap;
  uint32_t i = env->count, up = i;
  while (up && weft_rx_earlier(n, heap[(up - 1) / 2])) up = (up - 1) / 2;
  if (up && weft_rx_same_tag(n, heap[(up - 1) / 2])) {
    weft_rx_timer *with = heap[(up - 1) / 2];
    n->next = with->next;
    with->next = n;
    env->near = with;
    return;
  }
#if WEFT_RX_HOST
  if (i == env->capacity) {
    env->capacity = 2 * env->capacity;
    heap = env->heap = (weft_rx_timer **)realloc(env->heap, env->capacity * sizeof *env->heap);
    if (!heap) weft_panic("weft: no memory for the queue");
  }
#endif
  env->count = i + 1;
  for (; i != up; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = n;
  env->near = n;
}
WEFT_INLINE void weft_rx_insert_timer(weft_rx_env *env, weft_rx_timer *n) {
  weft_rx_insert(env, n);
}
WEFT_INLINE void weft_rx_insert_event(weft_rx_env *env, weft_rx_event *e) {
  weft_rx_insert(env, weft_rx_as_node(e));
}
/* Move the hole at i down, and put the last entry where it fits. */
WEFT_HOT_PART(weft_rx_close) static void weft_rx_close(weft_rx_env *env, uint32_t i) {
  weft_rx_timer **heap = env->heap, *last = heap[--env->count];
  uint32_t count = env->count;
  if (i == count) return;
  for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
    if (child + 1 < count && weft_rx_earlier(heap[child + 1], heap[child])) child++;
    if (!weft_rx_earlier(heap[child], last)) break;
    heap[i] = heap[child];
  }
  /* The loop is needed only after a removal from the middle. */
  while (i && weft_rx_earlier(last, heap[(i - 1) / 2])) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = last;
}
WEFT_INLINE weft_rx_timer *weft_rx_take_first(weft_rx_env *env) {
  weft_rx_timer *n = env->heap[0], *rest = n->next;
  if (rest) { /* The rest of the chain becomes this entry: the tags are equal, so the order
               * holds. */
    env->heap[0] = rest;
    if (env->near == n) env->near = rest;
  } else {
    if (env->near == n) env->near = 0;
    weft_rx_close(env, 0);
  }
  return n;
}
static bool weft_rx_remove(weft_rx_env *env, weft_rx_timer *n) {
  for (uint32_t i = 0; i < env->count; i++)
    for (weft_rx_timer **at = &env->heap[i]; *at; at = &(*at)->next)
      if (*at == n) {
        if (env->near == n) env->near = 0;
        *at = n->next;
        if (!env->heap[i]) {
          env->heap[i] = n; /* Comparisons on the way down may read this entry. */
          weft_rx_close(env, i);
        }
        return true;
      }
  return false;
}
WEFT_INLINE weft_rx_timer *weft_rx_each(weft_rx_env *env, uint32_t *place, weft_rx_timer *last) {
  if (last && last->next) return last->next;
  return *place < env->count ? env->heap[(*place)++] : 0;
}
WEFT_INLINE bool weft_rx_several(weft_rx_env *env) {
  return env->count > 1 || (env->count && env->heap[0]->next);
}
#endif
#endif
