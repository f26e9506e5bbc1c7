/* reactors/env.h: the state of an enclave, and the calls by which reactions change it: set ports,
 * make reactions pending, read the time. Part of weft_mcu/reactors.h. */
#ifndef WEFT_RX_ENV_H
#define WEFT_RX_ENV_H
#include "weft_mcu/reactors/types.h"

/* The Cortex-M0+ has neither CTZ nor CLZ, so the lowest bit is found by a multiplication and a
 * table. The table is first in the enclave's state, whose address is in a register anyway. */
#if defined(__ARM_ARCH_6M__) && !WEFT_RX_HOST
#define WEFT_RX_BIT_TABLE 1
#else
#define WEFT_RX_BIT_TABLE 0
#endif
/* With one word, the table has the offsets of reactions in the table of reactions (8 bytes each)
 * instead of the reactions' numbers, which saves a shift. */
#define WEFT_RX_BIT_STEP (WEFT_RX_WORDS <= 1 ? sizeof(weft_rx_reaction) : 1)
typedef struct weft_rx_env {
#if WEFT_RX_BIT_TABLE
  uint8_t bits[32];
#endif
#if WEFT_RX_HEAP
  weft_rx_timer **heap; /* each entry is a chain (by `next`) of nodes with one tag */
  uint32_t count, capacity;
  weft_rx_timer *near; /* the entry inserted last, while it is in the heap */
#else
  weft_rx_timer *head; /* the list of nodes */
#endif
  weft_rx_event *soon, *soon_last; /* events of the next microstep, in order */
  weft_rx_port *present;
  weft_rx_time now; /* the current tag, in ticks, and its microstep */
  uint32_t step;
#if WEFT_RX_STATIC
  weft_rx_time until; /* from this tag on the rare conditions are checked */
#endif
  weft_rx_word
      top; /* the pending reactions; with more than one word: which words (of `middle`) are not 0 */
#if WEFT_RX_WORDS > 1
  weft_rx_word words[WEFT_RX_WORDS];
#endif
#if WEFT_RX_WORDS > WEFT_RX_WORD_BITS
  weft_rx_word middle[(WEFT_RX_WORDS + WEFT_RX_WORD_BITS - 1) / WEFT_RX_WORD_BITS];
#endif
  bool fast, keepalive, stopping, stopped; /* stopping: the current tag is the stop tag */
  uint8_t number;
  uint32_t high; /* how often `now` has wrapped, for 32-bit times that can run ahead of the clock
                    (WEFT_RX_FAST) */
  weft_rx_time start;
  int64_t start_ns;
  weft_rx_event stop; /* the event of the timeout, or of the request to stop */
  bool stop_soon;
  weft_rx_event *free;
#if WEFT_RX_ASYNC
  weft_rx_event *inbox, *inbox_last; /* protected by WEFT_RX_INBOX_LOCK, like `stopped` and all
                                      * fields below */
  uint16_t news;
#if WEFT_RX_ENCLAVES > 1 /* see enclaves.h */
  weft_rx_time next;
  bool idle, blocked, acked, done;
#endif
#endif
#if WEFT_RX_MODES
  bool changing; /* a reaction has set a mode */
  weft_rx_timer *suspended, *suspended_last; /* in the order of their tags */
#endif
#if WEFT_RX_WORKERS > 1
  bool parallel; /* several reactions run in parallel: set, pend and schedule take the lock */
#endif
} weft_rx_env;

static weft_rx_env weft_rx_envs[WEFT_RX_ENCLAVES];
/* The lock is not a field: code outside the program may use it before the start, and while the end
 * of the run clears the fields. */
#define WEFT_RX_INBOX_LOCK WEFT_SPINLOCK(WEFT_RX_SPINLOCK + 1)
#if WEFT_RX_ENCLAVES == 1
WEFT_INLINE weft_rx_env *weft_rx_here(void) { return &weft_rx_envs[0]; }
#elif WEFT_RX_HOST
static _Thread_local weft_rx_env *weft_rx_mine;
WEFT_INLINE weft_rx_env *weft_rx_here(void) { return weft_rx_mine; }
#else
static weft_rx_env *weft_rx_mine[WEFT_CORES];
WEFT_INLINE weft_rx_env *weft_rx_here(void) { return weft_rx_mine[weft_core()]; }
#endif
#if WEFT_RX_WATCHDOGS
static _Thread_local weft_rx_watchdog *weft_rx_watching; /* the watchdog of this thread, or 0 */
#endif
#define WEFT_RX_PROGRAM(env) \
  (WEFT_RX_ENCLAVES == 1 ? &weft_rx_programs[0] : &weft_rx_programs[(env)->number])

/* ---- pending reactions ----------------------------------------------------------------------- */
WEFT_INLINE unsigned weft_rx_lowest(weft_rx_env *env, weft_rx_word word) {
  (void)env;
#if WEFT_RX_HOST
  return (unsigned)__builtin_ctzll(word);
#elif WEFT_RX_BIT_TABLE
  return env->bits[((word & -word) * 0x077cb531u) >> 27];
#else
  return (unsigned)__builtin_ctz(word);
#endif
}
WEFT_INLINE void weft_rx_pend(weft_rx_env *env, unsigned r) {
#if WEFT_RX_WORDS <= 1
  env->top |= (weft_rx_word)1 << r;
#else
  unsigned w = r >> WEFT_RX_WORD_SHIFT;
  env->words[w] |= (weft_rx_word)1 << (r & (WEFT_RX_WORD_BITS - 1));
#if WEFT_RX_WORDS <= WEFT_RX_WORD_BITS
  env->top |= (weft_rx_word)1 << w;
#else
  unsigned m = w >> WEFT_RX_WORD_SHIFT;
  env->middle[m] |= (weft_rx_word)1 << (w & (WEFT_RX_WORD_BITS - 1));
  env->top |= (weft_rx_word)1 << m;
#endif
#endif
}
WEFT_INLINE void weft_rx_trigger(weft_rx_env *env, weft_rx_trig trig) {
#if WEFT_RX_MASKS
  env->top |= trig;
#else
  if (trig & WEFT_RX_ONE_BIT) weft_rx_pend(env, (unsigned)(trig & ~WEFT_RX_ONE_BIT));
  else
    for (WEFT_RX_TABLE weft_rx_index *r = &weft_rx_triggers[trig]; *r != WEFT_RX_END; r++)
      weft_rx_pend(env, *r);
#endif
}

/* ---- presence (R4) --------------------------------------------------------------------------- */
WEFT_INLINE void weft_rx_appear(weft_rx_env *env, weft_rx_port *p) {
  p->is_present = true;
  p->next = env->present;
  env->present = p;
  weft_rx_trigger(env, p->trig);
}
#if WEFT_RX_WORKERS > 1
void weft_rx_set_parallel(weft_rx_env *env, weft_rx_port *p);
#endif
WEFT_INLINE void weft_rx_set_head(weft_rx_port *p) {
  weft_rx_env *env = weft_rx_here();
#if WEFT_RX_WORKERS > 1
  if (env->parallel) {
    weft_rx_set_parallel(env, p);
    return;
  }
#endif
  if (!p->is_present) weft_rx_appear(env, p);
}
#define weft_rx_set_present(p) weft_rx_set_head(&(p)->head)

/* ---- tokens, blocks (reactors/tokens.h) ------------------------------------------------------ */
void *weft_rx_alloc(size_t bytes);
void weft_rx_free(void *block);
weft_rx_token *weft_rx_new_token(size_t element_size, void *value, size_t length);
void weft_rx_adopt_token(void *port, weft_rx_token *token);
void weft_rx_set_token_at(void *port, weft_rx_token *token);
weft_rx_token *weft_rx_token_for(void *port, void *value, size_t length);
weft_rx_token *weft_rx_writable(void *port);
void weft_rx_hold_token(weft_rx_token *token);
void weft_rx_drop_token(weft_rx_token *token);
void weft_rx_own_copy(void *port_copy, bool last);
weft_rx_token *weft_rx_value_token(weft_rx_action *action);
void weft_rx_let_go(weft_rx_token **token);
void weft_rx_done_copy(void *port_copy);
/* Set a pointer, which becomes a token of one element. */
void weft_rx_set_pointer(void *port, void *value);
WEFT_INLINE void weft_rx_set_plain(void *port, void *value) {
  (void)value, weft_rx_set_head((weft_rx_port *)port);
}
#define weft_rx_set(p, v)                                                             \
  do {                                                                                \
    __typeof__(p) weft_p = (p);                                                       \
    weft_p->value = (v);                                                              \
    _Generic(weft_p->weft_rx_kind, weft_rx_plain *                                    \
             : weft_rx_set_plain, weft_rx_tokens *                                    \
             : weft_rx_set_pointer)((void *)weft_p,                                   \
                                    *(void **)(void *)WEFT_RX_VALUE_POINTER(weft_p)); \
  } while (0)
#define WEFT_RX_VALUE_POINTER(p)                        \
  _Generic((p)->weft_rx_kind, weft_rx_plain *           \
           : (void *)&weft_rx_nothing, weft_rx_tokens * \
           : (void *)&(p)->value)
static void *weft_rx_nothing __attribute__((unused));
#define weft_rx_set_token(p, t) weft_rx_set_token_at((p), (t))
#define weft_rx_set_array(p, v, n) weft_rx_adopt_token((p), weft_rx_token_for((p), (v), (n)))
#define weft_rx_make_mutable(p, last) weft_rx_own_copy((p), (last))
#define weft_rx_release_mutable(p) weft_rx_done_copy(p)

/* ---- time ------------------------------------------------------------------------------------ */
WEFT_INLINE bool weft_rx_before(weft_rx_time a, weft_rx_time b) {
  return (weft_rx_distance)(a - b) < 0;
}
/* Return the time of the clock, in ticks and in ns. */
WEFT_INLINE int64_t weft_rx_clock_ns(void) {
#if WEFT_RX_HOST
  return weft_posix_now_ns();
#else
  return (int64_t)weft_now64() * 1000;
#endif
}
WEFT_INLINE weft_rx_time weft_rx_clock(void) {
#if WEFT_RX_HOST
  return (weft_rx_time)(weft_posix_now_ns() / WEFT_TICK_NS);
#elif WEFT_TICK_NS == 1000 && !WEFT_RX_TIME64
  return weft_now32();
#elif WEFT_TICK_NS == 1000
  return (weft_rx_time)weft_now64();
#else
  return (weft_rx_time)(weft_now64() / (WEFT_TICK_NS / 1000));
#endif
}
WEFT_INLINE uint64_t weft_rx_clock64(void) {
#if WEFT_RX_HOST
  return (uint64_t)(weft_posix_now_ns() / WEFT_TICK_NS);
#elif WEFT_TICK_NS == 1000
  return weft_now64();
#else
  return weft_now64() / (WEFT_TICK_NS / 1000);
#endif
}
/* Return the full time of the current tag. A 32-bit time of a program that waits for the clock
 * is within 2^31 ticks of the clock. */
WEFT_INLINE int64_t weft_rx_in_full(weft_rx_env *env) {
#if WEFT_RX_TIME64
  return env->now;
#elif WEFT_RX_FAST
  return (int64_t)((uint64_t)env->high << 32 | env->now);
#else
  uint64_t clock = weft_rx_clock64();
  return (int64_t)clock + (int32_t)(env->now - (uint32_t)clock);
#endif
}
WEFT_INLINE int64_t weft_rx_logical_of(weft_rx_env *env) {
  return weft_rx_in_full(env) * WEFT_TICK_NS;
}
int64_t weft_rx_logical(void);   /* the current tag's time in ns */
int64_t weft_rx_elapsed(void);   /* the current tag's time since the start, in ns */
int64_t weft_rx_physical(void);  /* the clock in ns */
int64_t weft_rx_start_time(void);
uint32_t weft_rx_microstep(void);
/* Return whether physical time is later than the tag by more than `ns`. A deadline of 0 is
 * always missed (R11). */
bool weft_rx_late(int64_t ns);

/* ---- actions, modes, stop (reactors/actions.h, modes.h, engine.h) ---------------------------- */
int weft_rx_schedule_event(weft_rx_action *a, int64_t extra, weft_rx_payload payload,
                           bool has_value);
int weft_rx_schedule_bytes(weft_rx_action *a, int64_t extra, const void *value, size_t length);
int weft_rx_schedule_owned(weft_rx_action *a, int64_t extra, void *value, size_t length);
int weft_rx_schedule_held(weft_rx_action *a, int64_t extra, weft_rx_token *token);
#define weft_rx_schedule(a, extra_ns) \
  weft_rx_schedule_event(&(a)->action, WEFT_RX_TICKS_OF(extra_ns), (weft_rx_payload){0}, false)
#define weft_rx_schedule_copy(a, extra_ns, value, n) \
  weft_rx_schedule_bytes(&(a)->action, WEFT_RX_TICKS_OF(extra_ns), (value), (n))
#define weft_rx_schedule_value(a, extra_ns, value, n) \
  weft_rx_schedule_owned(&(a)->action, WEFT_RX_TICKS_OF(extra_ns), (value), (n))
#define weft_rx_schedule_token(a, extra_ns, token) \
  weft_rx_schedule_held(&(a)->action, WEFT_RX_TICKS_OF(extra_ns), (token))
#define WEFT_RX_TICKS_OF(ns) \
  (__builtin_constant_p(ns) ? WEFT_RX_TICKS((int64_t)(ns)) : weft_rx_ticks((int64_t)(ns)))
void weft_rx_request_stop(void);
#if WEFT_RX_WATCHDOGS
void weft_rx_ask_to_stop(void); /* on the thread of a watchdog */
#endif
void weft_rx_change_mode(weft_rx_mode *mode, int how);
#define weft_rx_set_mode(mode, how) weft_rx_change_mode((mode), (how))
int weft_rx_start_once(weft_rx_once *once);
#define weft_rx_start_ratio(ratio) weft_rx_start_once(&(ratio)->once)

/* ---- deadlines ------------------------------------------------------------------------------- */
typedef struct { int64_t ns; void (*missed)(void *self); } weft_rx_limit;
static const weft_rx_limit weft_rx_limit_here __attribute__((unused)) = {-1, 0};
#define WEFT_RX_DEADLINE(self, limit_ns, handler)                                       \
  const weft_rx_limit weft_rx_limit_here __attribute__((unused)) = {(limit_ns), (handler)}; \
  if (weft_rx_late(weft_rx_limit_here.ns)) {                                            \
    weft_rx_told_missed();                                                              \
    weft_rx_limit_here.missed(self);                                                    \
    return;                                                                             \
  }                                                                                     \
  (void)0
bool weft_rx_check(void *self, const weft_rx_limit *limit, bool invoke);
void weft_rx_told_missed(void);
int weft_rx_run(const weft_rx_options *options);
int weft_rx_main(int argc, char **argv, weft_rx_options defaults);
#if WEFT_RX_WIRED
void weft_rx_wire(void);
#endif
#endif
