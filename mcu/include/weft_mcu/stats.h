/* weft_mcu/stats.h: the counts that a queue keeps about itself when the whole program is built with
 * -DWEFT_STATS=1. When that switch is off (the default), code and structures are the same as if
 * this file did not exist; tests/size compares the bytes.
 *
 * All numbers change under the queue's lock; weft_stats_read() takes a consistent copy.
 */
#ifndef WEFT_MCU_STATS_H
#define WEFT_MCU_STATS_H
#include <stdint.h>
#ifndef WEFT_STATS
#define WEFT_STATS 0
#endif
enum { WEFT_LATENESS_BUCKETS = 16 };

typedef struct weft_stats {
  uint32_t lateness[WEFT_LATENESS_BUCKETS]; /* the number of actions started 0, 1, 2-3, 4-7, … us
                                               after their release; the last bucket counts all
                                               later ones */
  uint32_t lateness_max;                    /* in us */
  uint32_t actions[WEFT_CORES];             /* the number of actions that each core has run */
  uint32_t busy_us[WEFT_CORES];             /* the time that each core has spent in actions, in
                                             * us (wraps) */
  uint32_t since; /* the time at which counting began, in us: load = busy_us / (now - since) */
  uint32_t depth, depth_max;                /* the number of events queued or claimed: now, and
                                             * the highest so far */
} weft_stats;
#endif
