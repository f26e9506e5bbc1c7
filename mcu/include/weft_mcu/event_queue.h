/* weft_mcu/event_queue.h: events, the marks of actors, and the two kinds of queue (SEMANTICS.md,
 * part II).
 *
 * Invariants
 *  1. An event is in at most one queue, at most once. Its memory belongs to the caller and must
 *     stay until the event is idle.
 *  2. `link` is 0 exactly while the event is idle or a core has committed to its action (the event
 *     may then be posted again).
 *  3. The contents of a queue and the marks of its actors change only under the queue's lock. An
 *     actor belongs to one queue.
 *  4. news.of[core] becomes non-zero whenever a waiting core should examine the queue again; it may
 *     be read without the lock.
 *
 *            weft_post                 take (worker)              commit (worker, <= 1 us before release)
 *   IDLE ------------------> QUEUED ------------------> CLAIMED ------------------> IDLE (action runs)
 *     ^                      ^    |    put_back (worker)  |  |
 *     |                      |    +<----------------------+  |
 *     +-- weft_cancel -------+-------------------------------+       weft_post_as(…, WEFT_MOVE) is cancel and post in one
 *
 * Costs are cycles on the RP2040 (Cortex-M0+, code in SRAM), from call to return, measured by
 * bench/queue.c in the emulator. Unless its comment says otherwise, each call below may be made
 * from any core and at any interrupt priority.
 */
#ifndef WEFT_MCU_EVENT_QUEUE_H
#define WEFT_MCU_EVENT_QUEUE_H
#include "weft_mcu/platform.h"
#include "weft_mcu/stats.h"
#ifdef __cplusplus
extern "C" {
#endif

/* An actor is one byte, which contains the priority of the actor and whether a core holds the
 * actor. A zero-initialised actor is free and has the lowest priority. */
typedef struct weft_actor {
  uint8_t mark; /* bit 0: busy; bits 1-7: priority */
#if WEFT_DEBUG
  const void *queue; /* the queue to which the actor belongs; 0 if not known yet */
#endif
} weft_actor;
enum { WEFT_BUSY = 1, WEFT_PRIORITY_SHIFT = 1, WEFT_PRIORITY_MAX = 127 };
/* Makes an actor of a priority from 0 to WEFT_PRIORITY_MAX. A constant outside that range does
 * not compile: the array below would have a negative size. */
#if WEFT_DEBUG
#define WEFT_ACTOR(priority) {WEFT_PRIORITY_MARK(priority), 0}
#else
#define WEFT_ACTOR(priority) {WEFT_PRIORITY_MARK(priority)}
#endif
#define WEFT_PRIORITY_MARK(priority) \
  (uint8_t)(((priority) << WEFT_PRIORITY_SHIFT) + 0 * WEFT_IN_RANGE((priority), WEFT_PRIORITY_MAX))
#define WEFT_IN_RANGE(x, most) \
  sizeof(char[__builtin_constant_p(x) && (unsigned long)(x) > (most) ? -1 : 1])

typedef struct weft_node {
  union {
    struct weft_node *next; /* in the list: the following node; 0 in either kind of queue: idle */
    struct {
      uint16_t place, number_low;
    }; /* in the heap: the place of its entry, and half of the post's number */
  };
  uint32_t time; /* the release time in us */
} weft_node;

typedef struct weft_event weft_event;
/* An action is called with the event and the release time for which the event was posted (the
 * event may already have been posted again). The action runs outside any lock with interrupts on,
 * and an actor runs one action at a time. The action must not block. The event is idle while its
 * action runs. The action returns 0 (WEFT_DONE), or a delay: the same event is then released again
 * that many us (1 … 2^31-1) after `release`. A greater value, such as (uint32_t)-1, is WEFT_DONE (a
 * debug build panics). This is how a periodic actor is written: it does not drift, and costs half
 * of a weft_post. If the action has already posted the event, that post counts (a debug build
 * panics). */
typedef uint32_t (*weft_action)(weft_event *event, uint32_t release);
enum { WEFT_DONE = 0 };

/* An event takes 16 bytes. The caller may write only `action` and `actor`, and only while the event
 * is idle. An action that needs data has the event inside a structure of its own. */
struct weft_event {
  union {
    struct { struct weft_node *next; uint32_t time; };
    weft_node node;
  };
  weft_action action;
  weft_actor *actor;
};
#define WEFT_EVENT(the_action, the_actor) {{{0, 0}}, (the_action), (the_actor)}

/* The sorted list, which is also the first member of every other kind of queue. It takes 28 bytes
 * (without statistics). */
typedef struct weft_queue {
  union {
    weft_node head; /* the list is a ring through this node, whose time is not used */
    struct {
      weft_node *first, *near;
    }; /* near: the event in the list at which the next insertion may begin, or the head */
  };
  union { uint32_t all; uint16_t of[2]; } news; /* of[i] is not 0 if core i must check again */
  weft_lock_t *lock;
  weft_event *claimed[WEFT_CORES]; /* the event that each core holds while it waits */
  uint32_t stop;
#if WEFT_DEBUG
  int32_t owner; /* the only core that may use a WEFT_LOCAL queue; -1 if not known yet */
#endif
#if WEFT_STATS
  weft_stats stats;
#endif
} weft_queue;

/* The index heap, for many timers. Its events must lie in the 256 KB above `base`. For each
 * event the heap keeps a word with the event's offset and half of the post's number. */
typedef uint32_t weft_heap_entry;
typedef struct weft_heap {
  weft_queue queue;
  uint8_t *base;
  weft_heap_entry *
      index; /* index[0 … count-1] is a binary heap ordered by (time, priority, number of the
              * post) */
  uint32_t count, capacity;
  uint32_t posts;
} weft_heap;

/* The effect of a post if the event is already in the queue. */
typedef enum {
  WEFT_STRICT, /* a mistake: WEFT_E_QUEUED, and a panic in a debug build; the event stays as it
                * was */
  WEFT_MOVE,   /* the event is moved to the new release time */
  WEFT_KEEP,   /* the event stays at its old release time: WEFT_IGNORED */
} weft_policy;

/* Make `q` an empty queue. `lock` is a lock that nothing else uses, or WEFT_LOCAL for a queue that
 * only one core and its interrupts use (a debug build panics if another core posts to it). Must not
 * be called while the queue is in use. */
void weft_list_init(weft_queue *q, weft_lock_t *lock);
/* Do what weft_list_init does, for a heap of at most `capacity` events (16,383 at most). The
 * events must lie in the 65,536 words above `base`; `index` is an array of `capacity` entries. */
void weft_heap_init(weft_heap *q, weft_lock_t *lock, void *base, weft_heap_entry *index,
                    uint32_t capacity);

int weft_list_post(weft_queue *q, weft_event *e, uint32_t release);
int weft_heap_post(weft_heap *q, weft_event *e, uint32_t release);
int weft_list_post_as(weft_queue *q, weft_event *e, uint32_t release, weft_policy policy);
int weft_heap_post_as(weft_heap *q, weft_event *e, uint32_t release, weft_policy policy);
int weft_list_cancel(weft_queue *q, weft_event *e);
int weft_heap_cancel(weft_heap *q, weft_event *e);
void weft_list_work(weft_queue *q);
void weft_heap_work(weft_heap *q);

#ifdef __cplusplus
}
static inline int weft_post(weft_queue *q, weft_event *e, uint32_t t) {
  return weft_list_post(q, e, t);
}
static inline int weft_post(weft_heap *q, weft_event *e, uint32_t t) {
  return weft_heap_post(q, e, t);
}
static inline int weft_post_as(weft_queue *q, weft_event *e, uint32_t t, weft_policy p) {
  return weft_list_post_as(q, e, t, p);
}
static inline int weft_post_as(weft_heap *q, weft_event *e, uint32_t t, weft_policy p) {
  return weft_heap_post_as(q, e, t, p);
}
static inline int weft_cancel(weft_queue *q, weft_event *e) { return weft_list_cancel(q, e); }
static inline int weft_cancel(weft_heap *q, weft_event *e) { return weft_heap_cancel(q, e); }
static inline void weft_work(weft_queue *q) { weft_list_work(q); }
static inline void weft_work(weft_heap *q) { weft_heap_work(q); }
static inline weft_queue *weft_base(weft_queue *q) { return q; }
static inline weft_queue *weft_base(weft_heap *q) { return &q->queue; }
#else
#define WEFT_EITHER(q, verb) \
  _Generic((q), weft_heap * : weft_heap_##verb, weft_queue * : weft_list_##verb)

/* weft_post(q, e, release): queue `e` for the microsecond `release`; if that is past, the event
 * is released at once. Returns WEFT_OK or WEFT_E_QUEUED; a heap may also return WEFT_E_ARENA.
 * All release times in a queue must lie within 2^31 us of each other, so post less than
 * WEFT_HORIZON (35.5 minutes) ahead. Because times have 32 bits, a time beyond the horizon looks
 * like a past one: a debug build panics if it is more than 2^28 us (4.5 minutes) past.
 * weft_post_in and weft_post_at always check and return WEFT_E_HORIZON; weft_far_post takes any
 * time. Cost in a list: 44 cycles before all other events, 66 behind the event posted last;
 * otherwise 11 more for each entry passed from the head. Cost in a heap: see RESULTS.md. */
#define weft_post(q, e, release) WEFT_EITHER(q, post)((q), (e), (release))
/* weft_post_as(q, e, release, policy): does what weft_post does, for an event that may be in the
 * queue already. */
#define weft_post_as(q, e, release, policy) WEFT_EITHER(q, post_as)((q), (e), (release), (policy))
/* weft_cancel(q, e): remove `e`. Returns WEFT_OK if the action of `e` will not run. Returns
 * WEFT_LATE if `e` was not in the queue, because it was idle or because a core has committed to its
 * action (up to WEFT_EARLY_US + 1 before the release). `e` must not be in another queue. The cost
 * is linear in a list and logarithmic in a heap; the same is true of a move. */
#define weft_cancel(q, e) WEFT_EITHER(q, cancel)((q), (e))
/* weft_work(q): serve the queue on this core until weft_stop(q). It is called from the core's main
 * program with interrupts on, at most once per core at a time; both cores may serve the same queue
 * if it has a lock. */
#define weft_work(q) WEFT_EITHER(q, work)(q)
#define weft_base(q)                                          \
  _Generic((q), weft_heap *                                   \
           : &((weft_heap *)(void *)(q))->queue, weft_queue * \
           : (weft_queue *)(void *)(q))
#endif
#endif
