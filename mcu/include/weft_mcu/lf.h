/* weft_mcu/lf.h: the C interface against which reaction bodies of Lingua Franca's C target are
 * written, over weft_mcu/reactors.h.
 *
 * In the program's own file (where WEFT_RX_REACTIONS is defined) this header declares the whole
 * interface. In other C files of the program it declares what does not depend on the program's
 * sizes: types, times, printing, threads, request_stop. Such files schedule actions through
 * lf_schedule_action.
 */
#ifndef WEFT_MCU_LF_H
#define WEFT_MCU_LF_H
#ifdef WEFT_RX_REACTIONS
#include "weft_mcu/reactors.h"
#define WEFT_LF_PROGRAM 1
#else
#include "weft_mcu/platform.h"
#define WEFT_LF_PROGRAM 0
#endif
#if defined(WEFT_POSIX) || !defined(__STDC_HOSTED__) || __STDC_HOSTED__
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WEFT_LF_STDIO 1
#else
#include <inttypes.h>
#define WEFT_LF_STDIO 0
#endif

/* ---- types and units ------------------------------------------------------------------------- */
typedef int64_t instant_t;
typedef int64_t interval_t;
typedef uint32_t microstep_t;
typedef struct { instant_t time; microstep_t microstep; } tag_t;
typedef int trigger_handle_t;
#ifndef NO_LF_STRING
typedef char *string;
#endif
#define NSEC(t) ((interval_t)(t))
#define NSECS(t) NSEC(t)
#define USEC(t) ((interval_t)((t) * 1000LL))
#define USECS(t) USEC(t)
#define MSEC(t) ((interval_t)((t) * 1000000LL))
#define MSECS(t) MSEC(t)
#define SEC(t) ((interval_t)((t) * 1000000000LL))
#define SECS(t) SEC(t)
#define SECOND(t) SEC(t)
#define SECONDS(t) SEC(t)
#define MINUTE(t) ((interval_t)((t) * 60000000000LL))
#define MINUTES(t) MINUTE(t)
#define HOUR(t) ((interval_t)((t) * 3600000000000LL))
#define HOURS(t) HOUR(t)
#define DAY(t) ((interval_t)((t) * 86400000000000LL))
#define DAYS(t) DAY(t)
#define WEEK(t) ((interval_t)((t) * 604800000000000LL))
#define WEEKS(t) WEEK(t)
#define NEVER INT64_MIN
#define FOREVER INT64_MAX
#define NEVER_MICROSTEP 0u
#define FOREVER_MICROSTEP UINT32_MAX
#define NEVER_TAG ((tag_t){.time = NEVER, .microstep = NEVER_MICROSTEP})
#define FOREVER_TAG ((tag_t){.time = FOREVER, .microstep = FOREVER_MICROSTEP})
#define ZERO_TAG ((tag_t){.time = 0, .microstep = 0u})
#define BILLION 1000000000LL
#define PRINTF_TIME "%" PRIi64
#define PRINTF_MICROSTEP "%" PRIu32
#define PRINTF_TAG "(" PRINTF_TIME ", " PRINTF_MICROSTEP ")"
#ifndef SUPPRESS_UNUSED_WARNING
#define SUPPRESS_UNUSED_WARNING(x) ((void)(x))
#endif
#define LF_UNUSED(x) ((void)(x))

/* ---- time ------------------------------------------------------------------------------------ */
instant_t lf_time_logical_(void);
interval_t lf_time_logical_elapsed_(void);
instant_t lf_time_physical(void);
interval_t lf_time_physical_elapsed(void);
instant_t lf_time_start(void);
tag_t lf_tag_(void);
void lf_request_stop_(void);
void lf_sleep(interval_t ns);
/* Upstream's functions take an environment, reaction bodies pass none; both forms work. */
#define lf_time_logical(...) lf_time_logical_()
#define lf_time_logical_elapsed(...) lf_time_logical_elapsed_()
#define lf_tag(...) lf_tag_()
#define lf_request_stop(...) lf_request_stop_()
static inline int lf_tag_compare(tag_t a, tag_t b) {
  if (a.time != b.time) return a.time < b.time ? -1 : 1;
  return a.microstep < b.microstep ? -1 : a.microstep > b.microstep;
}
static inline instant_t lf_time_add(instant_t a, interval_t b) {
  if (a == NEVER || b == NEVER) return NEVER;
  if (a == FOREVER || b == FOREVER) return FOREVER;
  instant_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? FOREVER : NEVER) : sum;
}
static inline interval_t lf_time_subtract(instant_t a, instant_t b) {
  if (a == FOREVER || b == NEVER) return FOREVER;
  if (a == NEVER || b == FOREVER) return NEVER;
  interval_t difference;
  return __builtin_sub_overflow(a, b, &difference) ? (b > 0 ? NEVER : FOREVER) : difference;
}
static inline tag_t lf_tag_add(tag_t a, tag_t b) {
  instant_t time = lf_time_add(a.time, b.time);
  return (tag_t){time, b.time > 0 ? b.microstep : a.microstep + b.microstep};
}
static inline tag_t lf_delay_tag(tag_t tag, interval_t interval) {
  if (interval == NEVER) return tag;
  if (tag.time == FOREVER || interval == FOREVER) return FOREVER_TAG;
  return interval > 0 ? (tag_t){lf_time_add(tag.time, interval), 0}
                      : (tag_t){tag.time, tag.microstep + 1};
}

/* ---- printing, ends, tests ------------------------------------------------------------------- */
#if WEFT_LF_STDIO
void lf_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lf_print_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lf_print_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lf_print_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lf_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
WEFT_NORETURN void lf_print_error_and_exit(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
#define lf_print_error_system_failure(format, ...) lf_print_error_and_exit(format, ##__VA_ARGS__)
#define LF_PRINT_LOG(...) lf_print_log(__VA_ARGS__)
#define LF_PRINT_DEBUG(...) lf_print_debug(__VA_ARGS__)
#else /* a device without a C library: what is printed is lost, an error stops */
#define lf_print(...) ((void)0)
#define lf_print_log(...) ((void)0)
#define lf_print_debug(...) ((void)0)
#define lf_print_warning(...) ((void)0)
#define lf_print_error(...) ((void)0)
#define lf_print_error_and_exit(format, ...) weft_panic(format)
#endif
#define LF_TEST(condition, ...)                          \
  do {                                                   \
    if (!(condition)) lf_print_error_and_exit(__VA_ARGS__); \
  } while (0)
#define lf_assert(condition, ...) LF_TEST(condition, __VA_ARGS__)
#define LF_ASSERT(condition, ...) LF_TEST(condition, __VA_ARGS__)
#define LF_ASSERT_NON_NULL(pointer) LF_TEST((pointer) != 0, "a pointer is null")

/* ---- threads (a host) ------------------------------------------------------------------------ */
#ifdef WEFT_POSIX
#include <pthread.h>
typedef pthread_t lf_thread_t;
typedef pthread_mutex_t lf_mutex_t;
typedef pthread_cond_t lf_cond_t;
#define lf_thread_create(thread, fn, arg) pthread_create((thread), 0, (fn), (arg))
#define lf_thread_join(thread, result) pthread_join((thread), (result))
#define lf_mutex_init(m) pthread_mutex_init((m), 0)
#define lf_mutex_lock(m) pthread_mutex_lock(m)
#define lf_mutex_unlock(m) pthread_mutex_unlock(m)
#define lf_cond_wait(c, m) pthread_cond_wait((c), (m))
#define lf_cond_signal(c) pthread_cond_signal(c)
#define lf_cond_broadcast(c) pthread_cond_broadcast(c)
#define LF_MUTEX_INIT(m) lf_mutex_init(&(m))
#define LF_MUTEX_LOCK(m) lf_mutex_lock(&(m))
#define LF_MUTEX_UNLOCK(m) lf_mutex_unlock(&(m))
#define lf_available_cores() ((int)sysconf(_SC_NPROCESSORS_ONLN))
#include <unistd.h>
#endif
void lf_critical_section_enter_(void);
void lf_critical_section_exit_(void);
#define lf_critical_section_enter(...) lf_critical_section_enter_()
#define lf_critical_section_exit(...) lf_critical_section_exit_()

/* ---- ports, actions, tokens, modes: in the program's file ------------------------------------ */
#if WEFT_LF_PROGRAM
typedef weft_rx_token lf_token_t;
typedef weft_rx_token_port lf_port_base_t;
#define lf_set(port, v) weft_rx_set((port), (v))
#define lf_set_present(port) weft_rx_set_present(port)
#define lf_set_token(port, t) weft_rx_set_token((port), (t))
#define lf_set_array(port, v, n) weft_rx_set_array((port), (v), (n))
#define lf_set_destructor(port, fn) ((void)((port)->destructor = (void (*)(void *))(fn)))
#define lf_set_copy_constructor(port, fn) \
  ((void)((port)->copy_constructor = (void *(*)(void *))(fn)))
/* An action may arrive as a `void *`, which is how threads get theirs. Its first member is the
 * weft_rx_action. */
#define WEFT_LF_ACTION(a) ((weft_rx_action *)(void *)(a))
#define lf_schedule(a, extra) \
  weft_rx_schedule_event(WEFT_LF_ACTION(a), WEFT_RX_TICKS_OF(extra), (weft_rx_payload){0}, false)
#define lf_schedule_int(a, extra, v) \
  weft_rx_schedule_int(WEFT_LF_ACTION(a), WEFT_RX_TICKS_OF(extra), (v))
#define lf_schedule_copy(a, extra, value, n) \
  weft_rx_schedule_bytes(WEFT_LF_ACTION(a), WEFT_RX_TICKS_OF(extra), (value), (size_t)(n))
#define lf_schedule_value(a, extra, value, n) \
  weft_rx_schedule_owned(WEFT_LF_ACTION(a), WEFT_RX_TICKS_OF(extra), (value), (size_t)(n))
#define lf_schedule_token(a, extra, t) \
  weft_rx_schedule_held(WEFT_LF_ACTION(a), WEFT_RX_TICKS_OF(extra), (t))
#define lf_new_token(port_or_action, value, n) \
  weft_rx_token_for((port_or_action), (value), (size_t)(n))
#define lf_writable_copy(port) weft_rx_writable(port)
#define lf_set_mode(mode) weft_rx_change_mode((mode), _lf_##mode##_change_type)
#define lf_check_deadline(self, invoke) weft_rx_check((self), &weft_rx_limit_here, (invoke))
#define lf_reactor_name(self) ((self)->_lf_name)
#define lf_reactor_full_name(self) ((self)->_lf_full_name)
/* Schedule an action with an int as its value. Whatever arithmetic type of up to 8 bytes the action
 * has, it gets the int's low bytes, as upstream's copy does. */
int weft_rx_schedule_int(weft_rx_action *a, int64_t extra, int value);

/* Iterates over the present channels of the multiport `p`, whose width is p_width. */
typedef struct lf_multiport_iterator_t {
  weft_rx_port **channels;
  int width, at;
} lf_multiport_iterator_t;
static inline int lf_multiport_next(lf_multiport_iterator_t *i) {
  while (++i->at < i->width)
    if (i->channels[i->at]->is_present) return i->at;
  i->at = i->width;
  return -1;
}
static inline lf_multiport_iterator_t lf_multiport_iterator_at(void *channels, int width) {
  return (lf_multiport_iterator_t){(weft_rx_port **)channels, width, -1};
}
#define lf_multiport_iterator(port) lf_multiport_iterator_at((void *)(port), port##_width)
#endif
/* For other files: `action` is the address of the action's struct, which a reaction has handed
 * out. */
int lf_schedule_action(void *action, interval_t extra);
#endif
