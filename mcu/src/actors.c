/* actors.c: the functions of weft_mcu/actors.h: stopping, 64-bit times, periodic events, message
 * rings, deadlines.
 *
 * Invariant: this code changes a queue only by calls of that queue. The action of each structure's
 * `event` is a function of this file, which finds the structure from the event's address; therefore
 * the event is the first member.
 */
#include "weft_mcu/actors.h"

#if WEFT_DEBUG
const void *weft_serves[WEFT_CORES];
#endif

void weft_stop_(weft_queue *q) {
  weft_irq_t irq = weft_lock(q->lock);
  q->stop = 1;
  WEFT_POKE(q->news.all, WEFT_NEWS(q->lock));
  weft_unlock(q->lock, irq);
  weft_wake();
}

void weft_resume_(weft_queue *q) {
  weft_irq_t irq = weft_lock(q->lock);
  q->stop = 0;
  weft_unlock(q->lock, irq);
}

/* A release that is further in the past counts as this far in the past (us): half of the time that
 * WEFT_HORIZON leaves for late events. */
enum { PAST = 1u << 23 };

int weft_at(uint64_t release, uint32_t *low) {
  uint64_t now = weft_now64();
  if (release >= now + WEFT_HORIZON) return WEFT_E_HORIZON;
  *low = release + PAST < now ? (uint32_t)now - PAST : (uint32_t)release;
  return WEFT_OK;
}
int weft_list_post_at(weft_queue *q, weft_event *e, uint64_t release) {
  uint32_t low;
  int code = weft_at(release, &low);
  return code ? WEFT_MISTAKE(code, "a release time beyond the horizon; use weft_far_post")
              : weft_list_post(q, e, low);
}
int weft_heap_post_at(weft_heap *q, weft_event *e, uint64_t release) {
  uint32_t low;
  int code = weft_at(release, &low);
  return code ? WEFT_MISTAKE(code, "a release time beyond the horizon; use weft_far_post")
              : weft_heap_post(q, e, low);
}

static weft_any any_of(weft_queue *queue, bool heap) { return (weft_any){queue, heap}; }

enum { HOP = 1u << 30 };

/* ---- periodic ---- */
#if WEFT_DEBUG
#define weft_periodic_runs(p, yes) ((void)((p)->runs = (yes)))
#else
#define weft_periodic_runs(p, yes) ((void)0)
#endif
static uint32_t periodic_action(weft_event *e, uint32_t release) {
  weft_periodic *p = (weft_periodic *)(void *)e;
  /* The event was stopped after a core had committed to its action. */
  if (!WEFT_PEEK(p->rate.whole)) return WEFT_DONE;
  weft_actor *actor = e->actor;
  weft_periodic_runs(p, 1);
  p->action(e, release);
  weft_periodic_runs(p, 0);
  /* The action has started the event anew, and the new post counts. If the new start is for
   * another actor, the other core may already have taken the event. */
  if (WEFT_PEEK(e->next) || e->actor != actor) return WEFT_DONE;
  uint32_t step = 0, late = weft_now32() - release;
  for (;; p->skipped++) {
    step += weft_next(&p->rate);
    /* The event's own action, or other code meanwhile, has stopped the event. */
    if (!WEFT_PEEK(p->rate.whole)) return WEFT_DONE;
    if (step >= late) return step;
  }
}
int weft_periodic_init(weft_periodic *p, weft_actor *a, weft_action action, weft_rate rate) {
  if (!rate.whole || rate.whole > HOP)
    return WEFT_MISTAKE(WEFT_E_HORIZON, "a period must be 1 us to 2^30 us");
  /* The event is already running: the post that follows reports this. */
  if (p->event.next) return WEFT_OK;
#if WEFT_DEBUG
  uint32_t runs = p->runs;
  if (runs && p->rate.whole && p->event.actor != a)
    weft_panic("weft: a periodic event is started anew in its own action for another actor; stop it first,"
               " or use another weft_periodic");
#endif
  *p = (weft_periodic){.event = WEFT_EVENT(periodic_action, a), .action = action, .rate = rate};
#if WEFT_DEBUG
  p->runs = runs;
#endif
  return WEFT_OK;
}

/* ---- ring ---- */
static void copy(uint8_t *to, const uint8_t *from, unsigned bytes) {
  while (bytes--) *to++ = *from++;
}
int weft_ring_put_(weft_any q, weft_ring *r, const void *message) {
  weft_irq_t irq = weft_lock(q.queue->lock);
  bool room = r->count < r->capacity;
  if (room) {
    unsigned at = r->first + r->count++;
    if (at >= r->capacity) at -= r->capacity;
    copy(r->slots + (size_t)at * r->bytes, (const uint8_t *)message, r->bytes);
  } else r->overflows++;
  weft_unlock(q.queue->lock, irq);
  if (!room) return WEFT_FULL;
  /* If the event is already queued, its action has not begun and will find the message. If the
   * action has just taken the message, the action runs once more and finds nothing. */
  uint32_t now = weft_now32();
  int code = q.heap ? weft_heap_post_as((weft_heap *)(void *)q.queue, &r->event, now, WEFT_KEEP)
                    : weft_list_post_as(q.queue, &r->event, now, WEFT_KEEP);
  return code < 0 ? code : WEFT_OK;
}
bool weft_ring_get_(weft_queue *q, weft_ring *r, void *message) {
  weft_irq_t irq = weft_lock(q->lock);
  bool any = r->count != 0;
  if (any) {
    copy((uint8_t *)message, r->slots + (size_t)r->first * r->bytes, r->bytes);
    r->count--;
    if (++r->first == r->capacity) r->first = 0;
  }
  weft_unlock(q->lock, irq);
  return any;
}

/* ---- deadline ---- */
static uint32_t deadline_action(weft_event *e, uint32_t release) {
  weft_deadline *d = (weft_deadline *)(void *)e;
  return ((int32_t)(weft_now32() - release) > (int32_t)d->within ? d->missed : d->action)(e,
                                                                                          release);
}
void weft_deadline_init(weft_deadline *d, weft_actor *a, weft_action action, weft_action missed,
                        uint32_t within) {
  *d = (weft_deadline){.event = WEFT_EVENT(deadline_action, a),
                       .action = action,
                       .missed = missed,
                       .within = within};
}

/* ---- far ---- */
static uint32_t far_hop(weft_event *e, uint32_t release);
static int far_post(weft_far *f) {
  uint32_t low;
  bool far = weft_at(f->release, &low) != WEFT_OK;
  if (far) low = weft_now32() + HOP;
  f->event.action = far ? far_hop : f->action;
  return weft_any_post(any_of(f->queue, f->heap), &f->event, low);
}
static uint32_t far_hop(weft_event *e, uint32_t release) {
  (void)release;
  (void)far_post((weft_far *)(void *)e);
  return WEFT_DONE;
}
int weft_far_post_(weft_any q, weft_far *f, weft_actor *a, weft_action action, uint64_t release) {
  if (f->event.next)
    return WEFT_MISTAKE(WEFT_E_QUEUED, "a far event is posted that is in the queue already");
  *f = (weft_far){.event = WEFT_EVENT(action, a),
                  .action = action,
                  .queue = q.queue,
                  .release = release,
                  .heap = q.heap};
  return far_post(f);
}

#if WEFT_STATS
void weft_stats_read_(weft_queue *q, weft_stats *copy, bool reset) {
  weft_irq_t irq = weft_lock(q->lock);
  *copy = q->stats;
  if (reset) {
    uint32_t depth = q->stats.depth;
    q->stats = (weft_stats){.since = weft_now32(), .depth = depth, .depth_max = depth};
  }
  weft_unlock(q->lock, irq);
}
#endif
