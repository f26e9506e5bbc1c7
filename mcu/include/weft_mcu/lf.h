/* weft_mcu/lf.h: the C interface against which reaction bodies of Lingua Franca's C target are
 * written, on top of weft_mcu/reactors.h.
 *
 * In the program's own file (where WEFT_RX_REACTIONS is defined) this header declares the whole
 * interface. In other C files of the program it declares everything that does not depend on the
 * program's sizes: types, times, printing, threads, request_stop, and lf_schedule and its kin for
 * actions whose addresses a reaction has handed out.
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
#include <assert.h> /* upstream's headers include this header and limits.h, and bodies rely on
                     * both */
#include <inttypes.h>
#include <limits.h>
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
#define NEVER_TAG_INITIALIZER {.time = NEVER, .microstep = NEVER_MICROSTEP}
#define FOREVER_TAG_INITIALIZER {.time = FOREVER, .microstep = FOREVER_MICROSTEP}
#define ZERO_TAG ((tag_t){.time = 0, .microstep = 0u})
#define BILLION 1000000000LL
#define PRINTF_TIME "%" PRIi64
#define PRINTF_MICROSTEP "%" PRIu32
#define PRINTF_TAG "(" PRINTF_TIME ", " PRINTF_MICROSTEP ")"
#ifndef SUPPRESS_UNUSED_WARNING
#define SUPPRESS_UNUSED_WARNING(x) ((void)(x))
#endif
#define LF_UNUSED(x) ((void)(x))
#ifndef LF_MAX
#define LF_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define LF_MIN(a, b) (((a) < (b)) ? (a) : (b))
#endif

/* ---- time ------------------------------------------------------------------------------------ */
instant_t lf_time_logical_(void);
interval_t lf_time_logical_elapsed_(void);
instant_t lf_time_physical(void);
interval_t lf_time_physical_elapsed(void);
instant_t lf_time_start(void);
tag_t lf_tag_(void);
void lf_request_stop_(void);
void lf_sleep(interval_t ns);
#define lf_nanosleep(ns) (lf_sleep(ns), 0)
/* Upstream's functions take an environment, while reaction bodies pass no environment; both forms
 * work. */
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

static inline tag_t lf_tag_max(tag_t a, tag_t b) { return lf_tag_compare(a, b) > 0 ? a : b; }
static inline tag_t lf_tag_min(tag_t a, tag_t b) { return lf_tag_compare(a, b) < 0 ? a : b; }
/* Return the last tag before `tag`; NEVER_TAG and FOREVER_TAG are returned unchanged. */
static inline tag_t lf_tag_latest_earlier(tag_t tag) {
  if (tag.time == NEVER || !lf_tag_compare(tag, FOREVER_TAG)) return tag;
  if (tag.microstep) return (tag_t){tag.time, tag.microstep - 1};
  return (tag_t){tag.time - 1, FOREVER_MICROSTEP};
}
/* Return the last tag before `tag` delayed by `interval`. Without a delay (interval < 0), return
 * the tag itself. */
static inline tag_t lf_delay_strict(tag_t tag, interval_t interval) {
  if (tag.time == NEVER || interval < 0) return tag;
  tag_t later = lf_delay_tag(tag, interval);
  return interval ? lf_tag_latest_earlier(later) : tag;
}
#define LF_TIME_BUFFER_LENGTH 64

/* ---- printing, ends, tests ------------------------------------------------------------------- */
#define LOG_LEVEL_ERROR 0
#define LOG_LEVEL_WARNING 1
#define LOG_LEVEL_INFO 2
#define LOG_LEVEL_LOG 3
#define LOG_LEVEL_DEBUG 4
#define LOG_LEVEL_ALL 255
#define ATTRIBUTE_FORMAT_PRINTF(f, s) __attribute__((format(printf, f, s)))
#if WEFT_LF_STDIO
#include <stdarg.h>
/* Write a time with its units, or with commas, into a buffer of LF_TIME_BUFFER_LENGTH. Return
 * the number of characters. */
size_t lf_readable_time(char *buffer, instant_t time);
size_t lf_comma_separated_time(char *buffer, instant_t time);
/* Compute the time for which a number and a unit, as in a program's options, stand. Returns -1 if
 * `number` is not a number, -2 if `unit` is not a unit. */
int lf_time_parse(const char *number, const char *unit, interval_t *result);
/* Give the messages up to `level` to `function` instead of writing them to the standard output;
 * 0 restores the standard output. */
typedef void(print_message_function_t)(const char *format, va_list arguments);
void lf_register_print_function(print_message_function_t *function, int level);
void lf_vprint(const char *format, va_list list);
void lf_vprint_info(const char *format, va_list list);
void lf_vprint_log(const char *format, va_list list);
void lf_vprint_debug(const char *format, va_list list);
void lf_vprint_warning(const char *format, va_list list);
void lf_vprint_error(const char *format, va_list list);
WEFT_NORETURN void lf_vprint_error_and_exit(const char *format, va_list list);
void lf_print_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
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
#else /* On a device without a C library, messages are lost and an error stops the program. */
#define lf_print(...) ((void)0)
#define lf_print_info(...) ((void)0)
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
#define LF_ASSERTN(condition, ...) LF_TEST(!(condition), __VA_ARGS__)
#define LF_ASSERT_NON_NULL(pointer) LF_TEST((pointer) != 0, "a pointer is null")

/* ---- threads (a host) ------------------------------------------------------------------------ */
#ifdef WEFT_POSIX
#include <pthread.h>
typedef pthread_t lf_thread_t;
typedef pthread_mutex_t lf_mutex_t;
typedef struct { pthread_cond_t cond; lf_mutex_t *mutex; } lf_cond_t;
#define lf_thread_create(thread, fn, arg) pthread_create((thread), 0, (fn), (arg))
#define lf_thread_join(thread, result) pthread_join((thread), (result))
#define lf_thread_self() pthread_self()
/* Upstream's number of a program that is no federate. */
static inline uint16_t lf_fed_id(void) { return UINT16_MAX; }
int lf_thread_id(void); /* numbers count from 0, in the order in which threads ask for theirs */
/* A thread that holds a mutex can lock the mutex again, as upstream. */
static inline int lf_mutex_init(lf_mutex_t *m) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, 1 /* PTHREAD_MUTEX_RECURSIVE, whose name needs _GNU_SOURCE */);
  int failed = pthread_mutex_init(m, &kind);
  pthread_mutexattr_destroy(&kind);
  return failed;
}
static inline int lf_mutex_lock(lf_mutex_t *m) { return pthread_mutex_lock(m); }
static inline int lf_mutex_unlock(lf_mutex_t *m) { return pthread_mutex_unlock(m); }
static inline int lf_cond_init(lf_cond_t *c, lf_mutex_t *m) {
  c->mutex = m;
  return pthread_cond_init(&c->cond, 0);
}
static inline int lf_cond_wait(lf_cond_t *c) { return pthread_cond_wait(&c->cond, c->mutex); }
static inline int lf_cond_signal(lf_cond_t *c) { return pthread_cond_signal(&c->cond); }
static inline int lf_cond_broadcast(lf_cond_t *c) { return pthread_cond_broadcast(&c->cond); }
#define LF_MUTEX_INIT(m) LF_ASSERTN(lf_mutex_init(m), "a mutex cannot be made")
#define LF_MUTEX_LOCK(m) LF_ASSERTN(lf_mutex_lock(m), "a mutex cannot be locked")
#define LF_MUTEX_UNLOCK(m) LF_ASSERTN(lf_mutex_unlock(m), "a mutex cannot be unlocked")
#define LF_COND_INIT(c, m) LF_ASSERTN(lf_cond_init(c, m), "a condition cannot be made")
#define LF_COND_WAIT(c) LF_ASSERTN(lf_cond_wait(c), "a condition cannot be waited for")
#define LF_COND_SIGNAL(c) LF_ASSERTN(lf_cond_signal(c), "a condition cannot be signalled")
#define LF_COND_BROADCAST(c) LF_ASSERTN(lf_cond_broadcast(c), "a condition cannot be broadcast")
#define lf_available_cores() ((int)sysconf(_SC_NPROCESSORS_ONLN))
#include <unistd.h>
#endif
void lf_critical_section_enter_(void);
void lf_critical_section_exit_(void);
#define lf_critical_section_enter(...) lf_critical_section_enter_()
#define lf_critical_section_exit(...) lf_critical_section_exit_()
#define LF_CRITICAL_SECTION_ENTER(...) lf_critical_section_enter_()
#define LF_CRITICAL_SECTION_EXIT(...) lf_critical_section_exit_()
/* Events of the user's own in a trace. Without tracing they are dropped, as upstream does. */
#define register_user_trace_event(self, text) ((void)(self), (void)(text), 1)
#if WEFT_RX_RECORDS
void weft_rx_record_event(const char *text);
void weft_rx_record_value(const char *text, long long value);
#define tracepoint_user_event(self, text) ((void)(self), weft_rx_record_event(text))
#define tracepoint_user_value(self, text, value) \
  ((void)(self), weft_rx_record_value((text), (long long)(value)))
#else
#define tracepoint_user_event(self, text) ((void)(self), (void)(text))
#define tracepoint_user_value(self, text, value) ((void)(self), (void)(text), (void)(value))
#endif

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
/* An action may be given as a `void *`, as threads receive their actions. The first member
 * of an action's struct is the weft_rx_action. */
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
/* Where the reaction's deadline is stored if its body sets it: in its reactor, or only in the
 * body if it was declared without one. */
static int64_t *const weft_rx_deadline_here __attribute__((unused)) = 0;
#define lf_update_deadline(self, limit) \
  ((void)(self), (void)(weft_rx_deadline_here ? *weft_rx_deadline_here = (limit) : 0))
#define lf_check_deadline(self, invoke)                                                           \
  weft_rx_check((self),                                                                           \
                weft_rx_deadline_here                                                             \
                    ? &(weft_rx_limit){*weft_rx_deadline_here, weft_rx_limit_here.missed}          \
                    : &weft_rx_limit_here,                                                        \
                (invoke))
#if WEFT_RX_WATCHDOGS
#define NUMBER_OF_WATCHDOGS WEFT_RX_WATCHDOGS
typedef weft_rx_watchdog watchdog_t;
/* Both macros are used in a reaction or handler of the watchdog's reactor. */
#define lf_watchdog_start(w, extra) weft_rx_start_watchdog((w), (extra))
#define lf_watchdog_stop(w) weft_rx_stop_watchdog(w)
#endif
#define lf_reactor_name(self) ((self)->_lf_name)
#define lf_reactor_full_name(self) ((self)->_lf_full_name)
/* Schedule an action with an int as its value. An action of any arithmetic type of up to 8 bytes
 * receives the low bytes of the int, as by upstream's copy. */
int weft_rx_schedule_int(weft_rx_action *a, int64_t extra, int value);

/* Iterates over the present channels of the multiport `p`, which has p_width channels. */
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
/* For other C files of the program. `action` is the address of the action's struct, which a
 * reaction has handed out. */
int lf_schedule_action(void *action, interval_t extra);
int lf_schedule_action_int(void *action, interval_t extra, int value);
int lf_schedule_action_copy(void *action, interval_t extra, const void *value, size_t length);
int lf_schedule_action_value(void *action, interval_t extra, void *value, size_t length);
#if !WEFT_LF_PROGRAM
#define lf_schedule(a, extra) lf_schedule_action((a), (extra))
#define lf_schedule_int(a, extra, v) lf_schedule_action_int((a), (extra), (v))
#define lf_schedule_copy(a, extra, v, n) lf_schedule_action_copy((a), (extra), (v), (n))
#define lf_schedule_value(a, extra, v, n) lf_schedule_action_value((a), (extra), (v), (n))
#endif
#endif
