/* weft_mcu/actors.h: what stands on the queues: stopping, delays and 64-bit times, periodic events,
 * rings of messages, deadlines.
 *
 * The larger variants hold an ordinary event whose action is a function of the runtime that then
 * calls the user's. So they cost nothing to those who do not use them, and both queues carry them.
 * Costs and safety as in event_queue.h; a variant's `event` is posted, moved and cancelled with the
 * calls of event_queue.h.
 */
#ifndef WEFT_MCU_ACTORS_H
#define WEFT_MCU_ACTORS_H
#include "weft_mcu/event_queue.h"

/* A queue of either kind, for the structures below that must remember theirs. */
typedef struct { weft_queue *queue; bool heap; } weft_any;
WEFT_INLINE int weft_any_post(weft_any q, weft_event *e, uint32_t release) {
  return q.heap ? weft_heap_post((weft_heap *)(void *)q.queue, e, release)
                : weft_list_post(q.queue, e, release);
}

/* Post `delay` us from now: WEFT_E_HORIZON from WEFT_HORIZON on. Otherwise as weft_post. */
#define weft_post_in(q, e, delay)                                                      \
  ((uint32_t)(delay) >= WEFT_HORIZON                                                   \
       ? WEFT_MISTAKE(WEFT_E_HORIZON, "a delay beyond the horizon; use weft_far_post") \
       : weft_post((q), (e), weft_now32() + (uint32_t)(delay)))
/* Post at a 64-bit time: WEFT_E_HORIZON if it is WEFT_HORIZON or more after now. One more than 8 s
 * past counts as 8 s past. */
int weft_at(uint64_t release, uint32_t *low);
#define weft_post_at(q, e, release64) weft_post_at_((q), (e), (release64))
#ifndef __cplusplus
#define weft_post_at_(q, e, release64)       \
  _Generic((q), weft_heap *                  \
           : weft_heap_post_at, weft_queue * \
           : weft_list_post_at)((q), (e), (release64))
#endif

#ifdef __cplusplus
extern "C" {
#endif
int weft_list_post_at(weft_queue *q, weft_event *e, uint64_t release);
int weft_heap_post_at(weft_heap *q, weft_event *e, uint64_t release);

/* Make every weft_work of the queue return, each after the action it is in. What is queued stays
 * queued; weft_resume lets weft_work be called again. Any context, any core. */
void weft_stop_(weft_queue *q);
void weft_resume_(weft_queue *q);
#define weft_stop(q) weft_stop_(weft_base(q))
#define weft_resume(q) weft_resume_(weft_base(q))

/* A rate: `per` times in `us` microseconds, which need not be whole when divided: WEFT_RATE(125, 2)
 * is every 62.5 us, WEFT_RATE(1000000,
 * 44100) is 44.1 kHz. The sum of the first k delays is floor(k * us / per): no delay is off by a
 *        microsecond, and nothing drifts. us and per
 * are constants, 1 <= per <= us and per <= 2^31. 16 bytes. An action may `return
 * weft_next(&rate);`. */
typedef struct weft_rate { uint32_t whole, rest, per, sum; } weft_rate;
#define WEFT_RATE(us, per_us) {(us) / (per_us), (us) % (per_us), (per_us), 0}
/* The next delay, us. One context at a time: the actor's. */
WEFT_INLINE uint32_t weft_next(weft_rate *r) {
  uint32_t sum = r->sum + r->rest, whole = WEFT_PEEK(r->whole);
  bool more = sum >= r->per;
  r->sum = more ? sum - r->per : sum;
  return whole + more;
}

/* Periodic, with what `return period;` in an action does not give: releases that are already past
 * are left out and counted, and it can be stopped from anywhere. Released at first, first + period,
 * first + 2 period, … without drift. 40 bytes. */
typedef struct weft_periodic {
  weft_event event;
  weft_action action; /* called with &event; what it returns is ignored */
  weft_rate rate;     /* rate.whole 0: stopped */
  uint32_t skipped;   /* releases left out since the start */
#if WEFT_DEBUG
  uint32_t runs; /* its action does */
#endif
} weft_periodic;
/* Start one that is stopped or new (zero), or, in its own action and for the same actor, one that
 * runs (for another actor a debug build names it; otherwise that start stands, and the rest of the
 * action may overlap with its next). period: 1 … 2^30 us, else WEFT_E_HORIZON; WEFT_E_QUEUED if it
 * is queued already. */
#define weft_periodic_start(q, p, actor, action, first, period)  \
  weft_periodic_start_rate((q), (p), (actor), (action), (first), \
                           ((weft_rate)WEFT_RATE((period), 1)))
/* The same with a weft_rate: weft_periodic_start_rate(q, p, actor, action, first,
 * (weft_rate)WEFT_RATE(125, 2)). */
#define weft_periodic_start_rate(q, p, actor, action, first, rate)     \
  (weft_periodic_init((p), (actor), (action), (rate)) ? WEFT_E_HORIZON \
                                                      : weft_post((q), &(p)->event, (first)))
int weft_periodic_init(weft_periodic *p, weft_actor *a, weft_action action, weft_rate rate);
/* End it: no action starts after the return, but for one a core has committed to (WEFT_LATE). */
#define weft_periodic_stop(q, p) (WEFT_POKE((p)->rate.whole, 0u), weft_cancel((q), &(p)->event))

/* Ring: messages for an actor, copied in by whoever has them and out by its action, in order. What
 * finds it full is counted and not kept; nobody waits. Static:
 *
 *   static sample slots[16];
 *   static weft_ring samples = WEFT_RING(slots, consume, &actor);   // consume: an action; it is called when there is something
 *
 *   weft_ring_put(&queue, &samples, &s);                            // any core, any interrupt (M18): WEFT_OK or WEFT_FULL; or what weft_post says
 *   while (weft_ring_get(&queue, &samples, &s)) …                   // in consume
 *
 * `queue` is the receiver's, and its lock guards the ring: interrupts are off while a message is
 * copied: 76 cycles at most for 4 bytes, 8 for each more. One run of the
 * action may take many messages; it may find none, if the one before took them all. An action that
 * leaves some there posts its event again: weft_post_as(q, e, release, WEFT_KEEP). 32 bytes and the
 * slots. */
typedef struct weft_ring {
  weft_event event;
  uint8_t *slots;
  uint16_t bytes, capacity; /* of a message; in messages */
  uint16_t first, count;
  uint32_t overflows; /* messages not kept since the start; wraps */
} weft_ring;
#define WEFT_RING(the_slots, the_action, the_actor)                                  \
  {                                                                                  \
    WEFT_EVENT(the_action, the_actor), (uint8_t *)(the_slots), sizeof(the_slots)[0], \
        sizeof(the_slots) / sizeof(the_slots)[0], 0, 0, 0                            \
  }
int weft_ring_put_(weft_any q, weft_ring *r, const void *message);
bool weft_ring_get_(weft_queue *q, weft_ring *r, void *message);
#define weft_ring_put(q, r, message) weft_ring_put_(weft_any_of(q), (r), (message))
#define weft_ring_get(q, r, message) weft_ring_get_(weft_base(q), (r), (message))

/* Deadline: if the action cannot start by release + within, `missed` is called in its place (same
 * actor, same rules). 28 bytes. */
typedef struct weft_deadline {
  weft_event event;
  weft_action action, missed;
  uint32_t within; /* us, below 2^31 */
} weft_deadline;
void weft_deadline_init(weft_deadline *d, weft_actor *a, weft_action action, weft_action missed,
                        uint32_t within);

/* Far: a 64-bit release time, any distance. While it is beyond the horizon the event waits in the
 * queue for a nearer time (waking its queue about once in 17 minutes) and moves on by itself. 40
 * bytes. Times long past run at once. */
typedef struct weft_far {
  weft_event event;
  weft_action action;
  weft_queue *queue;
  uint64_t release;
  bool heap;
} weft_far;
int weft_far_post_(weft_any q, weft_far *f, weft_actor *a, weft_action action, uint64_t release);
#define weft_far_post(q, f, actor, action, release) \
  weft_far_post_(weft_any_of(q), (f), (actor), (action), (release))

#if WEFT_STATS
void weft_stats_read_(weft_queue *q, weft_stats *copy, bool reset);
#define weft_stats_read(q, copy, reset) weft_stats_read_(weft_base(q), (copy), (reset))
#endif
#ifdef __cplusplus
}
static inline weft_any weft_any_of(weft_queue *q) { return weft_any{q, false}; }
static inline weft_any weft_any_of(weft_heap *q) { return weft_any{&q->queue, true}; }
static inline int weft_post_at_(weft_queue *q, weft_event *e, uint64_t t) {
  return weft_list_post_at(q, e, t);
}
static inline int weft_post_at_(weft_heap *q, weft_event *e, uint64_t t) {
  return weft_heap_post_at(q, e, t);
}
#else
#define weft_any_of(q) \
  ((weft_any){weft_base(q), _Generic((q), weft_heap * : true, weft_queue * : false)})
#endif
#endif
