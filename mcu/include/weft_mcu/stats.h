/* weft_mcu/stats.h: what a queue counts about itself when the whole program is built with
 * -DWEFT_STATS=1. When that is off (the default), code and structures are the same as if this file
 * did not exist; tests/size compares the bytes.
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
  uint32_t lateness[WEFT_LATENESS_BUCKETS]; /* actions started 0, 1, 2-3, 4-7, … us after their
                                               release; the last takes the rest */
  uint32_t lateness_max;                    /* us */
  uint32_t actions[WEFT_CORES];             /* actions run by each core */
  uint32_t busy_us[WEFT_CORES];             /* time each core spent in actions, us (wraps) */
  uint32_t since; /* when counting began, us: load = busy_us / (now - since) */
  uint32_t depth, depth_max;                /* events queued or claimed: now, and at most */
} weft_stats;
#endif
