/* reactors/types.h: the switches of a program, and the types of its tables. Part of
 * weft_mcu/reactors.h. */
#ifndef WEFT_RX_TYPES_H
#define WEFT_RX_TYPES_H
#include "weft_mcu/wait.h"
#if defined(__STDC_HOSTED__) && __STDC_HOSTED__ && !defined(WEFT_RX_BARE)
#include <stdlib.h>
#include <string.h>
#define WEFT_RX_HOSTED 1
#else
#define WEFT_RX_HOSTED 0
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#endif
#ifdef WEFT_POSIX /* the port counts ns */
#define WEFT_RX_HOST 1
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#else
#define WEFT_RX_HOST 0
#endif

#ifndef WEFT_RX_REACTIONS
#error \
    "define WEFT_RX_REACTIONS, the number of reactions, before the include of weft_mcu/reactors.h (REACTORS.md)"
#endif
#ifndef WEFT_RX_TIMERS
#define WEFT_RX_TIMERS 0
#endif
#ifndef WEFT_RX_EVENTS
#define WEFT_RX_EVENTS 0
#endif
#ifndef WEFT_RX_PHYSICAL
#define WEFT_RX_PHYSICAL 0
#endif
#ifndef WEFT_RX_WATCHDOGS
#define WEFT_RX_WATCHDOGS 0
#endif
#ifndef WEFT_RX_DELAYS
#define WEFT_RX_DELAYS 0
#endif
#ifndef WEFT_RX_TOKENS
#define WEFT_RX_TOKENS 0
#endif
#ifndef WEFT_RX_BLOCKS
#define WEFT_RX_BLOCKS 0
#endif
#ifndef WEFT_RX_BLOCK_BYTES
#define WEFT_RX_BLOCK_BYTES 32
#endif
#ifndef WEFT_RX_WORKERS
#define WEFT_RX_WORKERS 1
#endif
#ifndef WEFT_RX_ENCLAVES
#define WEFT_RX_ENCLAVES 1
#endif
#ifndef WEFT_RX_LINKS
#define WEFT_RX_LINKS 0
#endif
#ifndef WEFT_RX_MODES
#define WEFT_RX_MODES 0
#endif
#ifndef WEFT_RX_STATIC
#define WEFT_RX_STATIC 0
#endif
#ifndef WEFT_RX_TRACE
#define WEFT_RX_TRACE 0
#endif
#ifndef WEFT_RX_RECORDS
#define WEFT_RX_RECORDS 0
#endif
#if WEFT_RX_RECORDS && !WEFT_RX_HOST
#error "weft: only a host writes a file of what the reactions do (WEFT_RX_RECORDS)"
#endif
#ifndef WEFT_RX_TABLE
#define WEFT_RX_TABLE const
#define WEFT_RX_WIRED 0
#else
#define WEFT_RX_WIRED 1
#endif
#ifndef WEFT_TICK_NS
#define WEFT_TICK_NS (WEFT_RX_HOST ? 1 : 1000)
#endif
#ifndef WEFT_RX_TIME64
#define WEFT_RX_TIME64 WEFT_RX_HOST
#endif
#ifndef WEFT_RX_FAST /* 1: the option `fast` is allowed; on a host it always is */
#define WEFT_RX_FAST WEFT_RX_HOST
#endif
#ifndef WEFT_RX_STRICT /* 1: a reaction that finds a pool empty stops the program, in release \
                          builds as well; lf/ asks for it */
#define WEFT_RX_STRICT 0
#endif
#define WEFT_RX_FULL(text) \
  (WEFT_RX_STRICT ? (weft_panic("weft: " text), WEFT_E_FULL) : WEFT_MISTAKE(WEFT_E_FULL, text))
#ifndef WEFT_RX_SPINLOCK
#define WEFT_RX_SPINLOCK                                                                  \
  (WEFT_SPINLOCKS >= 16 ? 8u : 0u) /* this one is the pools', the next the inbox's or the \
                                      enclaves', the one after the workers' */
#endif
#if WEFT_RX_ENCLAVES > 1 && WEFT_RX_WORKERS > 1
#error "weft: enclaves or workers, not both: each enclave has one core"
#endif
#if WEFT_RX_STATIC && (WEFT_RX_TIMERS || WEFT_RX_EVENTS || WEFT_RX_PHYSICAL || WEFT_RX_DELAYS || \
                       WEFT_RX_MODES || WEFT_RX_ENCLAVES > 1 || WEFT_RX_WATCHDOGS)
#error "weft: a static schedule has no timers, events, delays, modes or enclaves"
#endif
/* 1 if events may come from outside the enclave's own reactions, through the inbox. */
#if WEFT_RX_ENCLAVES > 2 && !WEFT_RX_HOST
#error "weft: a device has an enclave for each of its two cores, no more"
#endif
#define WEFT_RX_ASYNC (WEFT_RX_PHYSICAL || WEFT_RX_ENCLAVES > 1 || WEFT_RX_WATCHDOGS)
#if WEFT_RX_WATCHDOGS && (!WEFT_RX_HOST || WEFT_RX_ENCLAVES > 1)
#error "weft: a program with watchdogs is for a host, and has one enclave"
#endif
#define WEFT_RX_QUEUED (WEFT_RX_TIMERS + WEFT_RX_EVENTS)
#ifndef WEFT_RX_HEAP
#define WEFT_RX_HEAP (WEFT_RX_QUEUED > 64)
#endif

enum { WEFT_E_FULL = -6 }; /* beside the codes of platform.h */
/* WEFT_RX_SAME together with another policy: the spacing applies only to events of one time
 * (R8). A program that uses this defines WEFT_RX_SPACING_0 as 1. */
#ifndef WEFT_RX_SPACING_0
#define WEFT_RX_SPACING_0 0
#endif
enum { WEFT_RX_DEFER, WEFT_RX_DROP, WEFT_RX_REPLACE, WEFT_RX_UPDATE, WEFT_RX_SAME };
enum { WEFT_RX_AFTER, WEFT_RX_PHYSICAL_CONNECTION };
enum { WEFT_RX_RESET = 1, WEFT_RX_HISTORY = 2 };
#define WEFT_RX_LOGICAL 0
#define WEFT_RX_PHYSICAL_IN(enclave) ((enclave) + 1)

/* ---- time ------------------------------------------------------------------------------------ */
#define WEFT_RX_NSEC(n) ((int64_t)(n))
#define WEFT_RX_USEC(n) ((int64_t)(n) * 1000)
#define WEFT_RX_MSEC(n) ((int64_t)(n) * 1000000)
#define WEFT_RX_SEC(n) ((int64_t)(n) * 1000000000)
#define WEFT_RX_FOREVER INT64_MAX
/* Nanoseconds to ticks, rounded to the nearest; a positive time is at least 1 tick (R22). The
 * result is a constant if ns is a constant. With 32-bit times weft_rx_check checks the horizon. */
#define WEFT_RX_TICKS(ns)                                    \
  (WEFT_TICK_NS == 1 ? (int64_t)(ns)                         \
   : (ns) <= 0       ? 0                                     \
   : ((ns) + WEFT_TICK_NS / 2) / WEFT_TICK_NS                \
       ? (int64_t)(((ns) + WEFT_TICK_NS / 2) / WEFT_TICK_NS) \
       : 1)
#if WEFT_RX_TIME64
typedef int64_t weft_rx_time;
typedef int64_t weft_rx_distance;
#define WEFT_RX_HORIZON (INT64_MAX / 4)
#else
typedef uint32_t weft_rx_time; /* wraps; compared by the sign of the difference */
typedef int32_t weft_rx_distance;
#define WEFT_RX_HORIZON ((int64_t)0x7f000000)
#endif

/* ---- reactions and triggers ------------------------------------------------------------------ */
#if WEFT_RX_HOST
typedef uint64_t weft_rx_word;
typedef uint32_t weft_rx_index;
#define WEFT_RX_WORD_BITS 64
#define WEFT_RX_WORD_SHIFT 6
#define WEFT_RX_END UINT32_MAX
#else
typedef uint32_t weft_rx_word;
typedef uint16_t weft_rx_index;
#define WEFT_RX_WORD_BITS 32
#define WEFT_RX_WORD_SHIFT 5
#define WEFT_RX_END UINT16_MAX
#endif
#define WEFT_RX_WORDS ((WEFT_RX_REACTIONS + WEFT_RX_WORD_BITS - 1) / WEFT_RX_WORD_BITS)
/* How many levels of bitmap there are: one word; a word over words; or a word over words over
 * words. */
#define WEFT_RX_DEPTH (WEFT_RX_WORDS <= 1 ? 1 : WEFT_RX_WORDS <= WEFT_RX_WORD_BITS ? 2 : 3)
#if WEFT_RX_HOST ? WEFT_RX_REACTIONS <= 64 : WEFT_RX_REACTIONS <= 32
#define WEFT_RX_MASKS 1
typedef weft_rx_word weft_rx_trig;
#define WEFT_RX_TRIG(at, mask) (0 ? (weft_rx_trig)(at) : (weft_rx_trig)(mask))
#define WEFT_RX_TRIG_ONE(r) ((weft_rx_trig)((weft_rx_trig)1 << (r)))
#else
#define WEFT_RX_MASKS 0
typedef weft_rx_index weft_rx_trig;
#define WEFT_RX_TRIG(at, mask) (1 ? (weft_rx_trig)(at) : (weft_rx_trig)(mask))
#define WEFT_RX_ONE_BIT ((weft_rx_trig)((weft_rx_trig)1 << (8 * sizeof(weft_rx_trig) - 1)))
#define WEFT_RX_TRIG_ONE(r) ((weft_rx_trig)(WEFT_RX_ONE_BIT | (r)))
#endif
typedef void (*weft_rx_fn)(void *self);
typedef struct { weft_rx_fn fn; void *self; } weft_rx_reaction;

/* ---- ports ----------------------------------------------------------------------------------- */
struct weft_rx_port;
#define WEFT_RX_PORT_FIELDS                                                                    \
  struct weft_rx_port *next; /* the next port in the list of present ports */                  \
  weft_rx_trig trig;                                                                           \
  bool is_present;                                                                             \
  uint8_t flags
typedef struct weft_rx_port { WEFT_RX_PORT_FIELDS; } weft_rx_port;
enum { WEFT_RX_IS_TOKEN = 1, WEFT_RX_IS_ACTION = 2 };
typedef char weft_rx_plain; /* the type of `weft_rx_kind` distinguishes plain from token ports at
                             * compile time */
typedef unsigned char weft_rx_tokens;
#define WEFT_RX_PORT(T)              \
  struct {                           \
    union {                          \
      weft_rx_port head;             \
      struct {                       \
        WEFT_RX_PORT_FIELDS;         \
      };                             \
      weft_rx_plain weft_rx_kind[1]; \
    };                               \
    T value;                         \
  }
#define WEFT_RX_OUT(the_trig) {.head = {.trig = (the_trig)}}

typedef struct weft_rx_token {
  void *value;
  size_t length, element_size;
  uint32_t ref_count;
  void (*destructor)(void *value);
  void *(*copy_constructor)(void *value);
  struct weft_rx_token *next_free;
} weft_rx_token;
#define WEFT_RX_TOKEN_FIELDS(T)                                                                \
  T value;                                                                                     \
  weft_rx_token *token;                                                                        \
  size_t length, element_size;                                                                 \
  void (*destructor)(void *value);                                                             \
  void *(*copy_constructor)(void *value);                                                      \
  uint32_t readers /* the number of reactions that read the port; 0 if the number is not known */
#define WEFT_RX_TOKEN_PORT(T)         \
  struct {                            \
    union {                           \
      weft_rx_port head;              \
      struct {                        \
        WEFT_RX_PORT_FIELDS;          \
      };                              \
      weft_rx_tokens weft_rx_kind[1]; \
    };                                \
    WEFT_RX_TOKEN_FIELDS(T);          \
  }
#define WEFT_RX_TOKEN_OUT(the_trig, the_size) \
  { .head = {.trig = (the_trig), .flags = WEFT_RX_IS_TOKEN}, .element_size = (the_size) }
/* the common form of all token ports; memcpy reads and writes the value */
typedef WEFT_RX_TOKEN_PORT(void *) weft_rx_token_port;

/* ---- modes ----------------------------------------------------------------------------------- */
struct weft_rx_mode;
struct weft_rx_modal;
struct weft_rx_once;
typedef struct weft_rx_mode {
  const char *name;
  struct weft_rx_modal *modal;
  void *self;
  void (*reset_state)(void *self);
  weft_rx_trig startup, reset, shutdown;
  struct weft_rx_once *onces;
  bool entered; /* whether the mode was active at some tag so far */
  bool active;  /* whether the mode is active, with the mode around it */
  bool started, wiped, renewed; /* see reactors/modes.h */
} weft_rx_mode;
typedef struct weft_rx_modal {
  weft_rx_mode *modes, *initial, *outer;
  uint16_t count;
  uint8_t change; /* 0, or how to enter `next` */
  weft_rx_mode *current, *next;
} weft_rx_modal;

/* ---- the nodes of the queue ------------------------------------------------------------------ */
#if WEFT_RX_MODES
#define WEFT_RX_MODE_FIELD weft_rx_mode *mode;
#define WEFT_RX_OFFSET_FIELD weft_rx_time offset;
#else
#define WEFT_RX_MODE_FIELD
#define WEFT_RX_OFFSET_FIELD
#endif
/* `time` is the next time (before the start, the offset). `period` 0 marks a node that is not a
 * timer. */
#define WEFT_RX_NODE_FIELDS                                                                    \
  struct weft_rx_timer *next;                                                                  \
  weft_rx_time time, period
typedef struct weft_rx_timer {
  WEFT_RX_NODE_FIELDS;
  weft_rx_trig trig;
  WEFT_RX_MODE_FIELD
  WEFT_RX_OFFSET_FIELD
} weft_rx_timer;
typedef union {
  uint64_t bits;
  void *block;
  weft_rx_token *token;
  uint8_t bytes[8];
} weft_rx_payload;
struct weft_rx_env;
typedef struct weft_rx_event {
  WEFT_RX_NODE_FIELDS; /* period: 0 */
  uint32_t step;
  void (*fire)(struct weft_rx_env *, struct weft_rx_event *);
  void *owner; /* the action or delay; 0 for an event of another kind */
  weft_rx_payload payload;
  uint8_t has_value, from_outside;
} weft_rx_event;
#define WEFT_RX_TIMER(the_offset, the_period, the_trig)                   \
  {                                                                       \
    .time = (weft_rx_time)WEFT_RX_TICKS(the_offset),                      \
    .period = (weft_rx_time)WEFT_RX_TICKS(the_period), .trig = (the_trig) \
  }
#define WEFT_RX_TIMER_IN(the_mode, the_offset, the_period, the_trig)                          \
  {                                                                                           \
    .time = (weft_rx_time)WEFT_RX_TICKS(the_offset),                                          \
    .period = (weft_rx_time)WEFT_RX_TICKS(the_period), .trig = (the_trig), .mode = (the_mode) \
  }

void weft_rx_fire_once(struct weft_rx_env *, weft_rx_event *);
void weft_rx_fire_ratio(struct weft_rx_env *, weft_rx_event *);
typedef struct weft_rx_once {
  weft_rx_event event;
  weft_rx_time offset;
  weft_rx_trig trig;
  struct weft_rx_once *more;
  WEFT_RX_MODE_FIELD
} weft_rx_once;
#define WEFT_RX_ONCE(the_offset, the_trig)                                                   \
  {                                                                                          \
    .event = {.fire = weft_rx_fire_once}, .offset = (weft_rx_time)WEFT_RX_TICKS(the_offset), \
    .trig = (the_trig)                                                                       \
  }
#define WEFT_RX_ONCE_IN(the_mode, the_offset, the_trig)                                      \
  {                                                                                          \
    .event = {.fire = weft_rx_fire_once}, .offset = (weft_rx_time)WEFT_RX_TICKS(the_offset), \
    .trig = (the_trig), .mode = (the_mode)                                                   \
  }
/* A period of ticks / per: `whole` ticks, plus `rest` / `per`, whose sum is carried over. */
typedef struct weft_rx_ratio {
  weft_rx_once once;
  weft_rx_time whole;
  uint32_t rest, per, sum;
} weft_rx_ratio;
#define WEFT_RX_RATIO(the_offset, ticks, the_per, the_trig)                     \
  {                                                                             \
    .once = {.event = {.fire = weft_rx_fire_ratio},                             \
             .offset = (weft_rx_time)WEFT_RX_TICKS(the_offset),                 \
             .trig = (the_trig)},                                               \
    .whole = (ticks) / (the_per), .rest = (ticks) % (the_per), .per = (the_per) \
  }

/* ---- actions --------------------------------------------------------------------------------- */
#define WEFT_RX_ACTION_MEMBERS                                                                  \
  WEFT_RX_PORT_FIELDS;                                                                          \
  bool has_value;                                                                               \
  uint8_t policy, origin, value_at; /* origin: 0 logical, else 1 + the enclave; value_at: where \
                                       the value is in the struct */                            \
  uint32_t size;                    /* bytes of the value; of a token: bytes of an element */   \
  weft_rx_time min_delay, min_spacing;                                                          \
  weft_rx_time last_time, latest; /* the times of the event scheduled last and of the greatest \
                                     tag queued */                                              \
  uint32_t latest_step, queued, spaced; /* spaced: last_time is set (weft_rx_last_in_full) */   \
  weft_rx_event *last /* the event scheduled last, while it waits and there is a spacing */     \
      WEFT_RX_ACTION_MODE
#if WEFT_RX_MODES
#define WEFT_RX_ACTION_MODE ; weft_rx_mode *mode
#else
#define WEFT_RX_ACTION_MODE
#endif
typedef struct weft_rx_action { WEFT_RX_ACTION_MEMBERS; } weft_rx_action;
#define WEFT_RX_ACTION_UNION(KIND) \
  union {                          \
    weft_rx_port head;             \
    weft_rx_action action;         \
    struct {                       \
      WEFT_RX_ACTION_MEMBERS;      \
    };                             \
    KIND weft_rx_kind[1];          \
  }
#define WEFT_RX_ACTION(T)                \
  struct {                               \
    WEFT_RX_ACTION_UNION(weft_rx_plain); \
    T value;                             \
  }
/* An action of plain values whose reaction bodies nevertheless ask for a token. The token exists
 * while one of these bodies runs. */
#define WEFT_RX_HELD_ACTION(T)           \
  struct {                               \
    WEFT_RX_ACTION_UNION(weft_rx_plain); \
    T value;                             \
    weft_rx_token *token;                \
  }
#define WEFT_RX_TOKEN_ACTION(T)           \
  struct {                                \
    WEFT_RX_ACTION_UNION(weft_rx_tokens); \
    WEFT_RX_TOKEN_FIELDS(T);              \
  }
typedef union {
  weft_rx_port head;
  weft_rx_action action;
  struct {
    WEFT_RX_ACTION_MEMBERS;
  };
  weft_rx_plain weft_rx_kind[1];
} weft_rx_void_action;
typedef WEFT_RX_TOKEN_ACTION(void *) weft_rx_token_action;
#define WEFT_RX_ACTION_FIELDS(the_trig, the_delay, the_spacing, the_policy, the_origin) \
  {                                                                                     \
    .trig = (the_trig), .flags = WEFT_RX_IS_ACTION, .policy = (the_policy),             \
    .origin = (the_origin), .min_delay = (weft_rx_time)WEFT_RX_TICKS(the_delay),        \
    .min_spacing = (weft_rx_time)WEFT_RX_TICKS(the_spacing)                             \
  }
#define WEFT_RX_ACTION_INIT(the_trig, the_delay, the_spacing, the_policy, the_origin) \
  {.action = WEFT_RX_ACTION_FIELDS(the_trig, the_delay, the_spacing, the_policy, the_origin)}
#define WEFT_RX_VALUE_AT(T) ((uint8_t)offsetof(WEFT_RX_ACTION(T), value))
#define WEFT_RX_VALUE_INIT(T, the_trig, the_delay, the_spacing, the_policy, the_origin) \
  {                                                                                     \
    .action = {                                                                         \
      .trig = (the_trig),                                                               \
      .flags = WEFT_RX_IS_ACTION,                                                       \
      .policy = (the_policy),                                                           \
      .origin = (the_origin),                                                           \
      .size = sizeof(T),                                                                \
      .value_at = WEFT_RX_VALUE_AT(T),                                                  \
      .min_delay = (weft_rx_time)WEFT_RX_TICKS(the_delay),                              \
      .min_spacing = (weft_rx_time)WEFT_RX_TICKS(the_spacing)                           \
    }                                                                                   \
  }
#define WEFT_RX_TOKEN_ACTION_INIT(element_T, the_trig, the_delay, the_spacing, the_policy, \
                                  the_origin)                                              \
  {                                                                                        \
    .action = {.trig = (the_trig),                                                         \
               .flags = WEFT_RX_IS_ACTION | WEFT_RX_IS_TOKEN,                              \
               .policy = (the_policy),                                                     \
               .origin = (the_origin),                                                     \
               .size = sizeof(element_T),                                                  \
               .min_delay = (weft_rx_time)WEFT_RX_TICKS(the_delay),                        \
               .min_spacing = (weft_rx_time)WEFT_RX_TICKS(the_spacing)},                   \
    .element_size = sizeof(element_T)                                                      \
  }

/* ---- watchdogs (R25; reactors/watchdogs.h) --------------------------------------------------- */
#if WEFT_RX_WATCHDOGS
#include <pthread.h>
typedef struct weft_rx_watchdog {
  union {
    weft_rx_port head;
    weft_rx_action action; /* is present when the watchdog has expired */
    struct {
      WEFT_RX_ACTION_MEMBERS;
    };
  };
  void (*handler)(void *self);
  void *self;
  pthread_mutex_t *lock; /* the reactor's; it protects the three fields below */
  int64_t timeout;       /* in ns */
  int64_t expires;       /* in ns of the clock; -1 while the watchdog is not started */
  bool ended;            /* whether the thread must end */
  /* The next three members are for the watchdog's own thread. */
  int64_t at;                       /* the expiry that the handler handles */
  weft_rx_event *held, *held_last; /* what the handler has scheduled so far */
  pthread_cond_t changed;
  pthread_t thread;
} weft_rx_watchdog;
#define WEFT_RX_WATCHDOG_INIT(the_trig, the_timeout, the_handler, the_self, the_lock)              \
  {                                                                                                \
    .action = WEFT_RX_ACTION_FIELDS(the_trig, 0, 0, WEFT_RX_DEFER, WEFT_RX_PHYSICAL_IN(0)),        \
    .handler = (the_handler), .self = (the_self), .lock = (the_lock), .timeout = (the_timeout),    \
    .expires = -1                                                                                  \
  }
extern weft_rx_watchdog *WEFT_RX_TABLE weft_rx_watchdogs[WEFT_RX_WATCHDOGS];
/* Hold a reactor's lock until the end of the block. A reactor with watchdogs has a lock, so that no
 * handler runs while one of its reactions runs. */
#define WEFT_RX_ALONE(the_lock)                                                     \
  pthread_mutex_t *const weft_rx_alone __attribute__((cleanup(weft_rx_let_in), unused)) = \
      (pthread_mutex_lock(the_lock), (the_lock))
__attribute__((unused)) static void weft_rx_let_in(pthread_mutex_t *const *lock) {
  pthread_mutex_unlock(*lock);
}
void weft_rx_start_watchdog(weft_rx_watchdog *w, int64_t extra);
void weft_rx_stop_watchdog(weft_rx_watchdog *w);
#endif

/* ---- delays ---------------------------------------------------------------------------------- */
typedef struct weft_rx_delay {
  weft_rx_port *from, *to_port;
  weft_rx_time interval, latest;
  uint32_t latest_step, queued;
  uint32_t size;  /* the size of the value */
  uint8_t value_at, kind, to;
  WEFT_RX_MODE_FIELD
} weft_rx_delay;
/* The port follows directly after the delay. */
#define WEFT_RX_DELAY(port_T) struct { weft_rx_delay delay; port_T port; }
#define WEFT_RX_KIND_FLAGS(p) \
  _Generic((p)->weft_rx_kind, weft_rx_plain * : 0, weft_rx_tokens * : WEFT_RX_IS_TOKEN)
#define WEFT_RX_DELAY_INIT(the_trig, the_from, delay_ns, the_kind, the_enclave) \
  {                                                                             \
    .delay = {.from = (weft_rx_port *)(void *)(the_from),                       \
              .interval = (weft_rx_time)WEFT_RX_TICKS(delay_ns),                \
              .size = sizeof((the_from)->value),                                \
              .value_at = (uint8_t)offsetof(__typeof__(*(the_from)), value),    \
              .kind = (the_kind),                                               \
              .to = (the_enclave)},                                             \
    .port = {                                                                   \
      .head = {.trig = (the_trig), .flags = WEFT_RX_KIND_FLAGS(the_from)}       \
    }                                                                           \
  }
#define weft_rx_wire_delay(the_delay, the_port, the_size, the_trig, the_from, ns, the_kind, \
                           the_enclave)                                                     \
  do {                                                                                      \
    weft_rx_delay *weft_d = (the_delay);                                                    \
    weft_d->from = (weft_rx_port *)(void *)(the_from);                                      \
    weft_d->to_port = &(the_port)->head;                                                    \
    weft_d->interval = (weft_rx_time)weft_rx_ticks(ns);                                     \
    weft_d->size = (the_size);                                                              \
    weft_d->value_at = (uint8_t)offsetof(__typeof__(*(the_port)), value);                   \
    weft_d->kind = (the_kind);                                                              \
    weft_d->to = (the_enclave);                                                             \
    (the_port)->head.trig = (the_trig);                                                     \
    (the_port)->head.flags = WEFT_RX_KIND_FLAGS(the_port);                                  \
  } while (0)
void weft_rx_delay_send(void *delay);
#if WEFT_RX_STATIC
/* A delayed connection of a static schedule. Values on their way wait in a ring, and the table
 * triggers weft_rx_hold_arrive whenever a value may arrive. */
typedef struct weft_rx_hold {
  weft_rx_port *from, *to;
  weft_rx_time interval, *due; /* `due` has `capacity` times, one for each value */
  void *values;
  uint32_t size; /* the size of one value */
  uint16_t capacity, first, count;
  uint8_t value_at;
} weft_rx_hold;
#define WEFT_RX_HOLD(port_T) struct { weft_rx_hold hold; port_T port; }
#define WEFT_RX_HOLD_INIT(the_trig, the_from, the_to, delay_ns, the_values, the_due, the_capacity) \
  {                                                                                                \
    .hold = {.from = (weft_rx_port *)(void *)(the_from),                                           \
             .to = (weft_rx_port *)(void *)(the_to),                                               \
             .interval = (weft_rx_time)WEFT_RX_TICKS(delay_ns),                                    \
             .due = (the_due),                                                                     \
             .values = (the_values),                                                               \
             .size = sizeof((the_from)->value),                                                    \
             .capacity = (the_capacity),                                                           \
             .value_at = (uint8_t)offsetof(__typeof__(*(the_from)), value)},                       \
    .port = {                                                                                      \
      .head = {.trig = (the_trig)}                                                                 \
    }                                                                                              \
  }
void weft_rx_hold_send(void *hold);
void weft_rx_hold_arrive(void *hold);
#endif

/* ---- the program's tables -------------------------------------------------------------------- */
typedef struct { weft_rx_timer *first; uint32_t count, stride; } weft_rx_range;
typedef struct { weft_rx_time gap; weft_rx_trig trig; } weft_rx_slot;
#define WEFT_RX_LAST_GAP \
  (WEFT_RX_TIME64 ? (weft_rx_time)(INT64_MAX / 4) : (weft_rx_time)0x80000000u)
#define WEFT_RX_SLOTS_END {WEFT_RX_LAST_GAP, 0} /* marks the end, after the last slot */
typedef struct { uint8_t from, to; int64_t delay_ns; } weft_rx_link;
typedef struct {
  const char *name;
  weft_rx_index count, first, first_range, ranges, first_level, levels, slots, loop;
  weft_rx_trig startup, shutdown;
  void (*start)(void);
  uint8_t core;
} weft_rx_program;
typedef struct {
  bool fast, keepalive, no_keepalive;
  int64_t timeout_ns; /* in ns; less than 0: no timeout */
  unsigned workers;   /* 0 stands for WEFT_RX_WORKERS */
} weft_rx_options;
#define WEFT_RX_OPTIONS ((weft_rx_options){.timeout_ns = -1})
extern WEFT_RX_TABLE weft_rx_reaction weft_rx_reactions[];
extern WEFT_RX_TABLE weft_rx_index weft_rx_triggers[];
extern WEFT_RX_TABLE weft_rx_range weft_rx_timers[];
extern WEFT_RX_TABLE weft_rx_index weft_rx_levels[];
extern WEFT_RX_TABLE weft_rx_slot weft_rx_slots[];
extern weft_rx_modal *WEFT_RX_TABLE weft_rx_modals[];
extern weft_rx_mode *WEFT_RX_TABLE weft_rx_mode_of[];
extern const char *const weft_rx_names[];
extern const weft_rx_link weft_rx_links[];
extern WEFT_RX_TABLE weft_rx_program weft_rx_programs[WEFT_RX_ENCLAVES];

/* ---- a duration in ticks --------------------------------------------------------------------- */
#if WEFT_RX_HOST
WEFT_INLINE int64_t weft_rx_ticks(int64_t ns) { return WEFT_RX_TICKS(ns); }
#else
/* Divide bit by bit. The function takes 900 cycles, and 600 bytes less than the library's 64-bit
 * division. The compiler divides constants. */
__attribute__((unused)) static int64_t __attribute__((noinline)) weft_rx_ticks(int64_t ns) {
  if (ns <= 0) return 0;
  uint64_t rest = (uint64_t)ns + WEFT_TICK_NS / 2, result = 0;
  uint32_t high = 0;
  for (int i = 0; i < 64; i++) {
    high = high << 1 | (uint32_t)(rest >> 63);
    rest <<= 1;
    result <<= 1;
    if (high >= WEFT_TICK_NS) high -= WEFT_TICK_NS, result |= 1;
  }
  return result ? (int64_t)result : 1;
}
#endif
#endif
