/* lta.c: LTA's four functions (weft_mcu/lta.h).
 *
 * Invariants: an event of the arena is posted or in its queue's `unused` list (under the queue's
 * lock), never both. It goes back to `unused` before its action runs, so an action can always
 * schedule one more event. The queue of an event is found through the actor's mark, which lies in
 * the array of exactly one queue.
 */
#include "weft_mcu/lta.h"

#if !defined(WEFT_LTA_ARENA) && __STDC_HOSTED__
#include <stdlib.h>
#define WEFT_LTA_MALLOC 1
#elif !defined(WEFT_LTA_ARENA) && !defined(WEFT_FREE_BEGIN)
#define WEFT_LTA_ARENA (sizeof(void *) * 4096)
#endif
enum { WEFT_LTA_QUEUES = 4 };

typedef struct lta_event {
  weft_event event;
  action fn;
  void *arg; /* in an unused event: the next unused event */
  uint64_t release;
} lta_event;

static event_queue_t *queues;

/* Memory for one queue. When the last queue is deinitialised, all of the memory is given back. */
#ifdef WEFT_LTA_MALLOC
static void *take(size_t bytes) { return malloc(bytes); }
static void give(event_queue_t *q) { free(q->memory); }
#else
#ifdef WEFT_LTA_ARENA
static _Alignas(8) uint8_t arena[WEFT_LTA_ARENA];
#define ARENA_BEGIN ((uintptr_t)arena)
#define ARENA_END (ARENA_BEGIN + sizeof arena)
#else /* the memory that the program leaves free */
#define ARENA_BEGIN (((uintptr_t)WEFT_FREE_BEGIN + 7) & ~(uintptr_t)7)
#define ARENA_END ((uintptr_t)WEFT_FREE_END)
#endif
static size_t arena_used;
static void *take(size_t bytes) {
  if (bytes > ARENA_END - ARENA_BEGIN - arena_used) return 0;
  void *memory = (void *)(ARENA_BEGIN + arena_used);
  arena_used += (bytes + 7) & ~(size_t)7;
  return memory;
}
static void give(event_queue_t *q) {
  (void)q;
  if (!queues) arena_used = 0;
}
#endif

/* Post the event at e->release. If that time is beyond the horizon, post the event for a nearer
 * time on the way. */
static uint32_t hop(weft_event *e, uint32_t release);
static uint32_t invoke(weft_event *e, uint32_t release);
enum { HOP = 1 << 30 };
static int post(event_queue_t *q, lta_event *e) {
  uint32_t low;
  e->event.action = invoke;
  if (weft_at(e->release, &low)) {
    e->event.action = hop;
    low = weft_now32() + HOP;
  }
  return weft_list_post(&q->queue, &e->event, low);
}

static event_queue_t *queue_of(weft_actor *a) {
  event_queue_t *q = queues;
  while ((size_t)(a - q->actors) >= q->num_actors) q = q->next;
  return q;
}

static uint32_t hop(weft_event *e, uint32_t release) {
  (void)release;
  (void)post(queue_of(e->actor), (lta_event *)(void *)e);
  return WEFT_DONE;
}

static uint32_t invoke(weft_event *event, uint32_t low) {
  (void)low;
  lta_event *e = (lta_event *)(void *)event;
  event_queue_t *q = queue_of(event->actor);
  size_t actor = (size_t)(event->actor - q->actors);
  action fn = e->fn;
  void *arg = e->arg;
  uint64_t release = e->release;
  weft_irq_t irq = weft_lock(q->queue.lock);
  e->arg = q->unused;
  q->unused = e;
  weft_unlock(q->queue.lock, irq);
  fn(release, actor, arg);
  return WEFT_DONE;
}

int event_queue_init(event_queue_t *q, size_t max_size, size_t num_actors) {
  unsigned number = 0;
  for (event_queue_t *other = queues; other; other = other->next) number++;
  if (number >= WEFT_LTA_QUEUES || max_size > SIZE_MAX / 2 / sizeof(lta_event) ||
      num_actors > SIZE_MAX / 4 / sizeof(weft_actor))
    return 1;
  lta_event *events = take(max_size * sizeof(lta_event) + num_actors * sizeof(weft_actor));
  if (!events) return 1;
  q->memory = events;
  q->actors = (weft_actor *)&events[max_size];
  q->num_actors = num_actors;
  q->unused = 0;
  for (size_t i = max_size; i--;) {
    events[i] = (lta_event){.event = {.action = invoke}, .arg = q->unused};
    q->unused = &events[i];
  }
  for (size_t i = 0; i < num_actors; i++) q->actors[i] = (weft_actor)WEFT_ACTOR(0);
  weft_list_init(&q->queue, WEFT_SPINLOCK(WEFT_SPINLOCKS - 1 - number));
  q->next = queues;
  queues = q;
  return 0;
}

void event_queue_deinit(event_queue_t *q) {
  weft_stop(&q->queue);
  for (event_queue_t **at = &queues; *at; at = &(*at)->next)
    if (*at == q) {
      *at = q->next;
      give(q);
      break;
    }
}

void work(event_queue_t *q) { weft_list_work(&q->queue); }

int schedule_event(event_queue_t *q, uint64_t release_time_us, size_t actor_id, action fn,
                   void *arg) {
  if (actor_id >= q->num_actors)
    return WEFT_MISTAKE(
        1, "schedule_event: there is no such actor; see num_actors of event_queue_init");
  weft_irq_t irq = weft_lock(q->queue.lock);
  lta_event *e = q->unused;
  if (e) q->unused = e->arg;
  weft_unlock(q->queue.lock, irq);
  if (!e)
    return WEFT_MISTAKE(1, "schedule_event: the queue is full; see max_size of event_queue_init");
  e->event.actor = &q->actors[actor_id];
  e->fn = fn;
  e->arg = arg;
  e->release = release_time_us;
  return post(q, e) == WEFT_OK ? 0 : 1;
}
