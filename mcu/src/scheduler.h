/* scheduler.h: the worker, and post, re-post and cancel, written once for every kind of queue.
 *
 * A kind of queue defines WEFT_OP(name) before it includes this file, and afterwards defines the
 * operations that are declared below; everything in this file is inlined into the file of that
 * kind. (A constant table of functions gave the same code, except at -Og, where GCC does not inline
 * indirect calls.)
 *
 * The protocol (checked as a Promela model in tests/model/claim.pml, and on this very code with
 * random schedules in tests/host)
 *  - Before it waits for a release time, a worker takes the first event whose actor is free and
 *    marks the actor, so at the release it only has to call the action. While it waits, the event
 *    is in claimed[core].
 *  - A change of the event that a waiting core should hold (by a post or a withdrawn claim) sets
 *    the news flag of every core under the lock and wakes all cores. A waiting core clears its own
 *    flag under the lock when it claims, and checks the flag before every sleep. weft_wake is
 *    remembered, so no news is lost in between.
 *  - A waiting core that has news puts its claim back before it scans again, because an earlier
 *    event of its own actor counts too.
 *  - Freeing an actor after an action is not news, because there are at most two cores. The events
 *    that the other, sleeping core passed over before its claim belong to this actor alone, and
 *    this core takes the first of them at once.
 *  - About a microsecond before the release the worker commits: under the lock it confirms the
 *    claim and makes the event idle. From then on it checks no flag and cannot be stopped; it polls
 *    the clock and calls the action.
 */
#ifndef WEFT_SCHEDULER_H
#define WEFT_SCHEDULER_H
#include "weft_mcu/event_queue.h"
#include "weft_mcu/flight.h"
#include "weft_mcu/wait.h"

enum { WEFT_TIED = 100 };
#ifndef WEFT_OP
#error \
    "define WEFT_OP(name), the name of this kind of queue's operation, before the include of scheduler.h"
#endif
WEFT_INLINE int WEFT_OP(insert_alone)(
    weft_queue *,
    weft_event *); /* insert in a common case; returns WEFT_TIED, having done nothing, in any
                    * other */
static int WEFT_OP(post_rare)(weft_queue *, weft_event *, uint32_t,
                              weft_irq_t); /* weft_post_rare_with, not inlined */
WEFT_INLINE int WEFT_OP(insert)(
    weft_queue *, weft_event *); /* insert by e->time, behind events of the same time and
                                  * priority */
/* Insert in front of events with the same time and priority. */
WEFT_INLINE void WEFT_OP(put_back)(weft_queue *, weft_event *);
WEFT_INLINE weft_event *WEFT_OP(take)(
    weft_queue *); /* remove the first event whose actor is free, and mark that actor; 0 if
                    * there is none */
WEFT_INLINE bool WEFT_OP(goes_first)(
    weft_queue *, uint32_t); /* whether every event in the queue is later than this time */
WEFT_INLINE void WEFT_OP(hold)(weft_queue *,
                               weft_event *); /* make the event not idle, as if it had been
                                               * posted and taken */
WEFT_INLINE bool WEFT_OP(remove)(weft_queue *,
                                 weft_event *); /* take the event out of the queue; false if it
                                                 * is not in the queue */

/* Announce a change that waiting cores must see. The caller holds the lock, and calls weft_wake
 * afterwards. */
WEFT_INLINE void weft_news(weft_queue *q) {
  if (WEFT_MUTANT != 1) WEFT_POKE(q->news.all, WEFT_NEWS(q->lock));
}

/* Free an actor; the caller holds the lock. */
WEFT_INLINE void weft_release(weft_actor *a) { a->mark = (uint8_t)(a->mark - WEFT_BUSY); }

#if WEFT_DEBUG
WEFT_INLINE void weft_check_owner(weft_queue *q) {
  if (q->lock != WEFT_LOCAL) return;
  if (q->owner < 0) q->owner = (int32_t)weft_core();
  else if (q->owner != (int32_t)weft_core())
    weft_panic("weft: a queue without a lock is used by two cores; give it a lock of its own");
}
/* A time that is this far past (in us; 4.5 minutes) is treated as a time beyond the horizon, not as
 * a late post. */
enum { WEFT_PAST = 1 << 28 };
WEFT_INLINE void weft_check_release(uint32_t release) {
  if ((int32_t)(release - weft_now32()) < -WEFT_PAST)
    weft_panic(
        "weft: a release time beyond the horizon of 2^31 us (or 2^28 us past); use weft_far_post");
}
WEFT_INLINE void weft_check_actor(weft_queue *q, weft_event *e) {
  if (e->actor->queue == q) return;
  if (e->actor->queue)
    weft_panic(
        "weft: the events of an actor are posted to two queues; an actor belongs to one (rule M3)");
  e->actor->queue = q;
}
/* The queue that each core serves, or 0. */
extern const void *weft_serves[WEFT_CORES];
WEFT_INLINE void weft_check_serves(const void *q) {
  if (q && weft_serves[weft_core()])
    weft_panic(
        "weft: weft_work is called in an action, or from an interrupt; an action must return");
  weft_serves[weft_core()] = q;
}
WEFT_INLINE void weft_check_stack(void) {
  if (!weft_stack_ok())
    weft_panic("weft: the stack of this core has overflowed; its guard word is overwritten");
}
#else
#define weft_check_actor(q, e) ((void)0)
#define weft_check_serves(q) ((void)0)
#define weft_check_owner(q) ((void)0)
#define weft_check_release(release) ((void)0)
#define weft_check_stack() ((void)0)
#endif

#if WEFT_STATS
WEFT_INLINE void weft_count_in(weft_queue *q) {
  if (++q->stats.depth > q->stats.depth_max) q->stats.depth_max = q->stats.depth;
}
WEFT_INLINE void weft_count_out(weft_queue *q) { q->stats.depth--; }
WEFT_INLINE void weft_count_action(weft_queue *q, unsigned core, uint32_t release,
                                   uint32_t started) {
  uint32_t late = (int32_t)(started - release) > 0 ? started - release : 0;
  unsigned bucket = late ? 32u - (unsigned)__builtin_clz(late) : 0;
  q->stats.lateness[bucket < WEFT_LATENESS_BUCKETS ? bucket : WEFT_LATENESS_BUCKETS - 1]++;
  if (late > q->stats.lateness_max) q->stats.lateness_max = late;
  q->stats.actions[core]++;
  q->stats.busy_us[core] += weft_now32() - started;
}
#else
#define weft_count_in(q) ((void)0)
#define weft_count_out(q) ((void)0)
#endif

/* Finish a post: tell the other core, and release the lock. */
WEFT_INLINE int weft_posted(weft_queue *q, weft_lock_t *lock, weft_irq_t irq, int code) {
  if (WEFT_MUTANT != 1) WEFT_POKE(q->news.all, WEFT_NEWS(lock));
  weft_unlock(lock, irq);
  if (WEFT_MUTANT != 6) weft_wake();
  return code;
}
/* Handle the rare cases of a post, with the lock held. Each queue calls this function from a
 * function that is kept out of line: the arguments would occupy registers that the common case
 * needs. */
WEFT_INLINE int weft_post_rare_with(weft_queue *q, weft_event *e, uint32_t release,
                                    weft_irq_t irq) {
  if (e->next) {
    weft_unlock(q->lock, irq);
    return WEFT_MISTAKE(
        WEFT_E_QUEUED,
        "an event is posted that is in the queue already; use weft_post_as, or another event");
  }
  e->time = release;
  int code = WEFT_OP(insert)(q, e);
  if (!code) weft_count_in(q);
  return weft_posted(q, q->lock, irq, code);
}
WEFT_INLINE int weft_post_with(weft_queue *q, weft_event *e, uint32_t release) {
  weft_check_owner(q);
  weft_check_actor(q, e);
  weft_check_release(release);
  weft_lock_t *lock = q->lock;
  weft_irq_t irq = weft_lock(lock);
  if (__builtin_expect(e->next != 0, 0)) return WEFT_OP(post_rare)(q, e, release, irq);
  e->time = release;
  int code = WEFT_OP(insert_alone)(q, e);
  if (__builtin_expect(code == WEFT_TIED, 0)) return WEFT_OP(post_rare)(q, e, release, irq);
  if (!code) weft_count_in(q);
  return weft_posted(q, lock, irq, code);
}

/* Take e out of the queue, or away from a waiting core; the caller holds the lock. Return false if
 * e is neither in the queue nor held by a core. */
WEFT_INLINE bool weft_withdraw(weft_queue *q, weft_event *e) {
  if (!e->next) return false;
  for (unsigned core = 0; core < WEFT_CORES; core++)
    if (q->claimed[core] == e) {
      q->claimed[core] = 0;
      weft_release(e->actor);
      weft_news(q);
      e->next = 0;
      weft_count_out(q);
      return true;
    }
  if (!WEFT_OP(remove)(q, e)) return false;
  e->next = 0;
  weft_count_out(q);
  return true;
}

WEFT_INLINE int weft_post_as_with(weft_queue *q, weft_event *e, uint32_t release,
                                  weft_policy policy) {
  weft_check_owner(q);
  if (!e->next) weft_check_actor(q, e);
  weft_check_release(release);
  weft_irq_t irq = weft_lock(q->lock);
  int code = WEFT_OK;
  if (e->next && policy == WEFT_KEEP) code = WEFT_IGNORED;
  else if (e->next && (policy != WEFT_MOVE || !weft_withdraw(q, e)))
    code = WEFT_E_QUEUED; /* also if the event is in another queue */
  else {
    e->time = release;
    code = WEFT_OP(insert)(q, e);
    if (!code) weft_count_in(q);
    weft_news(q);
  }
  weft_unlock(q->lock, irq);
  weft_wake();
#if WEFT_DEBUG
  if (code == WEFT_E_QUEUED) weft_panic("weft: an event is posted that is in the queue already");
#endif
  return code;
}

WEFT_INLINE int weft_cancel_with(weft_queue *q, weft_event *e) {
  weft_check_owner(q);
  weft_irq_t irq = weft_lock(q->lock);
  bool out = weft_withdraw(q, e);
  weft_unlock(q->lock, irq);
  weft_wake();
  return out ? WEFT_OK : WEFT_LATE;
}

/* Wait with e claimed until e is nearly due; the lock is held on entry and on return. Return
 * true to commit to e, false to scan again. */
WEFT_INLINE bool weft_wait_for(weft_queue *q, weft_event *e, unsigned core, uint32_t release) {
  if (WEFT_MUTANT != 3) WEFT_POKE(q->news.of[core], 0);
  q->claimed[core] = e;
  if (WEFT_MUTANT == 5) e->actor->mark &= (uint8_t)~WEFT_BUSY; /* mutant: claimed, but not marked */
  weft_unlock_thread(q->lock);
  if (WEFT_MUTANT == 3) WEFT_POKE(q->news.of[core], 0); /* mutant: the flag is cleared too late */
  weft_wait_until(release, &q->news.of[core]);
  weft_lock_thread(q->lock);
  if (q->claimed[core] != e && WEFT_MUTANT != 4)
    return false; /* The event was withdrawn: the canceller has freed the actor. */
  q->claimed[core] = 0;
  if (!q->news.of[core]) return true;
  if (WEFT_MUTANT != 2) weft_release(e->actor);
  WEFT_OP(put_back)(q, e);
  return false;
}

/* Return whether some action (of e or of another event) has posted e already, although e's action
 * asks for e again. In that case that post counts. */
WEFT_INLINE bool weft_posted_meanwhile(const weft_event *e) {
  if (__builtin_expect(!e->next, 1)) return false;
#if WEFT_DEBUG
  weft_panic("weft: an action has posted its event and returns a delay for it as well");
#endif
  return true;
}

/* Serve the queue. An event that asks to be released again before any other event in its queue
 * is not put into the queue: the core keeps the event and its actor. The effect is the same as
 * inserting the event and taking it out, and no other core needs to know. */
WEFT_INLINE void weft_work_with(weft_queue *q) {
  unsigned core = weft_core();
  weft_wait_init();
  weft_check_owner(q);
  weft_check_serves(q);
  weft_lock_thread(q->lock);
  while (!q->stop) {
    weft_event *e = WEFT_OP(take)(q);
    if (__builtin_expect(!e, 0)) {
      WEFT_POKE(q->news.of[core], 0);
      weft_unlock_thread(q->lock);
      weft_wait_news(&q->news.of[core]);
      weft_lock_thread(q->lock);
      continue;
    }
    uint32_t release = e->time;
    for (;;) {
      int32_t late = (int32_t)(weft_now32() - release);
      if (late < -WEFT_EARLY_US && !weft_wait_for(q, e, core, release)) break;
      weft_node *idle = 0;
      __asm(""
            : "+r"(idle)); /* Without this statement GCC would keep a zero in a high register over
                              the whole loop, and pay for it here. */
      e->next = idle;
      weft_count_out(q);
      weft_unlock_thread(q->lock);
      weft_actor *actor = e->actor;
      weft_action action = e->action;
      if (late < 0)
        while ((int32_t)(weft_now32() - release) < 0) {}
#if WEFT_STATS
      uint32_t started = weft_now32();
#endif
      weft_flight_action(actor, e, WEFT_FLIGHT_BEGINS);
      uint32_t again = action(e, release);
      weft_flight_action(actor, 0, WEFT_FLIGHT_RETURNS);
      weft_check_stack();
      weft_lock_thread(q->lock);
#if WEFT_STATS
      weft_count_action(q, core, release, started);
#endif
#if WEFT_DEBUG
      if ((int32_t)again < 0)
        weft_panic("weft: an action returns a delay beyond the horizon; use weft_far_post");
#endif
      if (__builtin_expect((int32_t)again <= 0, 1) || weft_posted_meanwhile(e)) {
        weft_release(actor);
        break;
      }
#if WEFT_DEBUG
      if (e->actor != actor)
        weft_panic("weft: an action has changed its event's actor and returns a delay for it");
#endif
      release += again;
      e->time = release;
      weft_count_in(q);
      if (WEFT_OP(goes_first)(q, release) && !q->stop) {
        WEFT_OP(hold)(q, e);
        continue;
      }
      weft_release(actor);
      (void)WEFT_OP(insert)(q, e); /* A heap still has the room that the event had. */
      weft_news(q);
      weft_wake();
      break;
    }
  }
  weft_unlock_thread(q->lock);
  weft_check_serves(0);
}

WEFT_INLINE void weft_queue_init(weft_queue *q, weft_lock_t *lock) {
  q->news.all = 0;
  q->lock = lock;
  for (unsigned core = 0; core < WEFT_CORES; core++) q->claimed[core] = 0;
  q->stop = 0;
#if WEFT_DEBUG
  q->owner = -1;
#endif
#if WEFT_STATS
  q->stats = (weft_stats){.since = weft_now32()};
#endif
}
#endif
