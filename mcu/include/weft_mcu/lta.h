/* weft_mcu/lta.h: LTA's four functions over this runtime, so that programs written for it compile
 * and run unchanged.
 *
 * LTA (Library for Timing-aware Actors) is the library of the thesis that mcu/ descends from: a
 * queue of its own events, actors by number, 64-bit release times in microseconds since boot.
 * Names, signatures and return codes are LTA's; 0 is success, 1 an error.
 *
 *  - Only event_queue_init takes memory: on the device 32 bytes for each event and 1 for each
 *    actor. With a C library (a host, the pico-sdk) the memory comes from malloc, as in LTA.
 *    Without a C library it comes from what the linker script leaves free behind the program, and
 *    event_queue_deinit gives it back with the last queue. Compile src/lta.c with
 *    -DWEFT_LTA_ARENA=BYTES for a static arena of that size.
 *  - event_t is defined, and the headers that LTA's header includes are included: stdlib.h, and
 *    with the pico-sdk pico/sync.h and pico/stdlib.h. An event_queue_t has other members than
 *    LTA's.
 *  - schedule_event may be called from both cores and from interrupts; work may run on both cores.
 *  - An event whose release time is more than 2^31 us ahead is posted for a nearer time first, and
 *    then posted again; an event with a past release time is invoked at once.
 *  - Events with the same release time are invoked in the order in which they were scheduled.
 *  - Mistakes for which LTA has no check are detected: for an actor that does not exist or a full
 *    queue, schedule_event returns 1 (a debug build panics with the reason).
 */
#ifndef WEFT_MCU_LTA_H
#define WEFT_MCU_LTA_H
#include "weft_mcu/actors.h"
#if defined(__has_include)
#if __has_include(<stdlib.h>)
#include <stdlib.h>
#endif
#if defined(WEFT_PICO_SDK) && \
    __has_include("pico/stdlib.h") /* start-up code of other targets includes the headers of the
                                    * target weft_mcu */
#include "pico/stdlib.h"
#include "pico/sync.h"
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* An action is called with its release time in us since boot, its actor, and the argument given
 * when it was scheduled. */
typedef void (*action)(uint64_t release_time_us, size_t actor_id, void *arg);

/* An event as LTA describes it, for programs that use the type's name. No call takes an event_t. */
typedef struct event {
  uint64_t time; /* the release time in us since boot */
  size_t actor_id;
  action fn;
  void *arg;
} event_t;

typedef struct event_queue {
  weft_queue queue;
  struct event_queue *next; /* the next queue in the list of initialised queues */
  struct lta_event *unused;
  weft_actor *actors;
  size_t num_actors;
  void *memory;
} event_queue_t;

/* Make `queue` an empty queue for at most max_size events at a time (an event that is being invoked
 * does not count) of actors 0 … num_actors-1. Returns 0, or 1 if there is no memory or there are
 * more than WEFT_LTA_QUEUES queues. Must not run concurrently with itself or event_queue_deinit. */
int event_queue_init(event_queue_t *queue, size_t max_size, size_t num_actors);
/* Make work() return on every core, after the action that is running, and give the memory back.
 * May be called only when no core will schedule events again. */
void event_queue_deinit(event_queue_t *queue);
/* Wait for events and invoke them until event_queue_deinit. Each core calls this function once. */
void work(event_queue_t *queue);
/* Invoke fn(release_time_us, actor_id, arg) at release_time_us, or as soon after it as the actor
 * is free. Returns 0, or 1 if the queue is full or the actor does not exist. May be called on any
 * core and in any interrupt. A call takes about 150 cycles. */
int schedule_event(event_queue_t *queue, uint64_t release_time_us, size_t actor_id, action fn,
                   void *arg);

#ifdef __cplusplus
}
#endif
#endif
