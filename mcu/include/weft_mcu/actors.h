/* weft_mcu/actors.h: structures and calls built on the event queues: stopping a queue, delays and
 * 64-bit times, periodic events, message rings, deadlines.
 *
 * Each larger structure contains an ordinary event. The event's action is a function of the
 * runtime, which then calls the user's action. Therefore a program that uses none of the structures
 * pays nothing for them, and both kinds of queue can carry them. Costs and safety are as in
 * event_queue.h; the calls of event_queue.h post, move and cancel the `event` of a structure.
 */
#ifndef WEFT_MCU_ACTORS_H
#define WEFT_MCU_ACTORS_H
#include "weft_mcu/event_queue.h"

/* A queue of either kind, for those structures below that must remember their queue. */
typedef struct { weft_queue *queue; bool heap; } weft_any;
WEFT_INLINE int weft_any_post(weft_any q, weft_event *e, uint32_t release) {
  return q.heap ? weft_heap_post((weft_heap *)(void *)q.queue, e, release)
                : weft_list_post(q.queue, e, release);
}

/* Post `e` to be released `delay` us from now. Returns WEFT_E_HORIZON if `delay` is WEFT_HORIZON
 * or more, otherwise the result of weft_post. */
#define weft_post_in(q, e, delay)                                                      \
  ((uint32_t)(delay) >= WEFT_HORIZON                                                   \
       ? WEFT_MISTAKE(WEFT_E_HORIZON, "a delay beyond the horizon; use weft_far_post") \
       : weft_post((q), (e), weft_now32() + (uint32_t)(delay)))
/* Post `e` at a 64-bit time. Returns WEFT_E_HORIZON if the time is WEFT_HORIZON or more after now.
 * A time more than 8 s in the past counts as 8 s in the past. */
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

/* Make every weft_work call on this queue return after the action that it is running. Queued events
 * stay queued; weft_resume allows weft_work to be called again. May be called in any context, on
 * any core. */
void weft_stop_(weft_queue *q);
void weft_resume_(weft_queue *q);
#define weft_stop(q) weft_stop_(weft_base(q))
#define weft_resume(q) weft_resume_(weft_base(q))

/* A rate: `per` releases in `us` microseconds. The period `us` / `per` need not be a whole number:
 * WEFT_RATE(125, 2) is every 62.5 us, WEFT_RATE(1000000, 44100) is 44.1 kHz. The sum of the first k
 * delays is floor(k * us / per), so no release is off by a whole microsecond and nothing drifts.
 * `us` and `per` are constants with 1 <= per <= us and per <= 2^31. A rate takes 16 bytes. An
 * action may `return weft_next(&rate);`. */
typedef struct weft_rate { uint32_t whole, rest, per, sum; } weft_rate;
#define WEFT_RATE(us, per_us) {(us) / (per_us), (us) % (per_us), (per_us), 0}
/* Return the delay to the next release, in us. Only the actor that owns the rate may call this. */
WEFT_INLINE uint32_t weft_next(weft_rate *r) {
  uint32_t sum = r->sum + r->rest, whole = WEFT_PEEK(r->whole);
  bool more = sum >= r->per;
  r->sum = more ? sum - r->per : sum;
  return whole + more;
}

/* A periodic event. It acts like an event whose action returns its period, but releases that are
 * already past are skipped and counted, and the event can be stopped from anywhere. It is released
 * at first, first + period, first + 2 period, … without drift. It takes 40 bytes. */
typedef struct weft_periodic {
  weft_event event;
  weft_action action; /* called with &event; its return value is ignored */
  weft_rate rate;     /* rate.whole is 0 while the event is stopped */
  uint32_t skipped;   /* releases skipped since the start */
#if WEFT_DEBUG
  uint32_t runs; /* 1 while the action runs, otherwise 0 */
#endif
} weft_periodic;
/* Start a periodic event that is stopped or new (all zero). A running event may be started anew by
 * its own action, for the same actor. If that action starts it for another actor, a debug build
 * panics; in a release build the new start takes effect, and the rest of the action may overlap
 * with the next. `period` is 1 … 2^30 us. Returns WEFT_E_HORIZON for another period, otherwise
 * the result of weft_post: WEFT_E_QUEUED if the event is queued already. */
#define weft_periodic_start(q, p, actor, action, first, period)  \
  weft_periodic_start_rate((q), (p), (actor), (action), (first), \
                           ((weft_rate)WEFT_RATE((period), 1)))
/* Start a periodic event as weft_periodic_start does, with a rate instead of a period:
 * weft_periodic_start_rate(q, p, actor, action, first, (weft_rate)WEFT_RATE(125, 2)). */
#define weft_periodic_start_rate(q, p, actor, action, first, rate)     \
  (weft_periodic_init((p), (actor), (action), (rate)) ? WEFT_E_HORIZON \
                                                      : weft_post((q), &(p)->event, (first)))
int weft_periodic_init(weft_periodic *p, weft_actor *a, weft_action action, weft_rate rate);
/* Stop a periodic event. After the return none of its actions starts, except an action to which a
 * core has already committed (WEFT_LATE). */
#define weft_periodic_stop(q, p) (WEFT_POKE((p)->rate.whole, 0u), weft_cancel((q), &(p)->event))

/* A message ring for an actor: any sender copies messages in, the actor's action copies them out
 * in order. A message that finds the ring full is counted and dropped; no sender waits. A static
 * ring:
 *
 *   static sample slots[16];
 *
 *   static weft_ring samples = WEFT_RING(slots, consume, &actor);
 *
 *   // `consume` is an action; it is called when there are messages.
 *   // Any core and any interrupt may put (M18): WEFT_OK, WEFT_FULL, or an error of weft_post.
 *   weft_ring_put(&queue, &samples, &s);
 *   while (weft_ring_get(&queue, &samples, &s)) …  // in `consume`
 *
 * `queue` is the receiver's queue. Its lock protects the ring, so interrupts are off while a
 * message is copied: for at most 76 cycles for 4 bytes, and 8 more for each further byte. One
 * run of the action may take many messages, or find none if the previous run took them all. An
 * action that leaves messages in the ring posts its event again: weft_post_as(q, e, release,
 * WEFT_KEEP). A ring takes 32 bytes and the slots. */
typedef struct weft_ring {
  weft_event event;
  uint8_t *slots;
  uint16_t bytes, capacity; /* bytes of one message; the number of messages for which the ring
                             * has room */
  uint16_t first, count;
  uint32_t overflows; /* messages dropped since the start; wraps */
} weft_ring;
#define WEFT_RING(the_slots, the_action, the_actor)                                  \
  {                                                                                  \
    WEFT_EVENT(the_action, the_actor), (uint8_t *)(the_slots), sizeof(the_slots)[0], \
        sizeof(the_slots) / sizeof(the_slots)[0], 0, 0, 0                            \
  }
int weft_ring_put_(weft_any q, weft_ring *r, const void *message);
bool weft_ring_get_(weft_queue *q, weft_ring *r, void *message);
#if WEFT_DEBUG
#define WEFT_RING_FITS(r, message)                                                          \
  ((void)(sizeof *(message) == (r)->bytes                                                   \
              ? 0                                                                           \
              : (weft_panic("weft: a message of another size than those of its ring"), 0)))
#else
#define WEFT_RING_FITS(r, message) ((void)0)
#endif
#define weft_ring_put(q, r, message) \
  (WEFT_RING_FITS((r), (message)), weft_ring_put_(weft_any_of(q), (r), (message)))
#define weft_ring_get(q, r, message) \
  (WEFT_RING_FITS((r), (message)), weft_ring_get_(weft_base(q), (r), (message)))

/* A deadline: if the action cannot start by release + within, `missed` is called instead, for the
 * same actor and by the same rules. A deadline takes 28 bytes. */
typedef struct weft_deadline {
  weft_event event;
  weft_action action, missed;
  uint32_t within; /* in us, below 2^31 */
} weft_deadline;
void weft_deadline_init(weft_deadline *d, weft_actor *a, weft_action action, weft_action missed,
                        uint32_t within);

/* An event with a 64-bit release time, at any distance. While the time is beyond the horizon, the
 * event waits in the queue for a nearer time and is then posted again, which wakes the queue about
 * once in 17 minutes. If the time is long past, the event is released immediately. It takes 40
 * bytes. */
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
