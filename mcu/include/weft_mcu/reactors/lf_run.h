/* reactors/lf_run.h: the functions of weft_mcu/lf.h. Part of weft_mcu/reactors_run.h if the program
 * includes lf.h. */
#ifndef WEFT_RX_LF_RUN_H
#define WEFT_RX_LF_RUN_H
#include "weft_mcu/lf.h"

instant_t lf_time_logical_(void) { return weft_rx_logical(); }
interval_t lf_time_logical_elapsed_(void) { return weft_rx_elapsed(); }
instant_t lf_time_physical(void) { return weft_rx_physical(); }
interval_t lf_time_physical_elapsed(void) { return weft_rx_physical() - weft_rx_start_time(); }
instant_t lf_time_start(void) { return weft_rx_start_time(); }
tag_t lf_tag_(void) { return (tag_t){weft_rx_logical(), weft_rx_microstep()}; }
void lf_request_stop_(void) { weft_rx_request_stop(); }
int lf_schedule_action(void *action, interval_t extra) {
  return weft_rx_schedule_event((weft_rx_action *)action, weft_rx_ticks(extra),
                                (weft_rx_payload){0}, false);
}
int weft_rx_schedule_int(weft_rx_action *a, int64_t extra, int value) {
  if (a->flags & WEFT_RX_IS_TOKEN || a->size > 8)
    return weft_rx_schedule_bytes(a, extra, &value, 1);
  int64_t whole = value; /* The machine is little-endian, so a shorter type takes the low bytes. */
  return weft_rx_schedule_event(a, extra, (weft_rx_payload){.bits = (uint64_t)whole}, true);
}
int lf_schedule_action_int(void *action, interval_t extra, int value) {
  return weft_rx_schedule_int((weft_rx_action *)action, weft_rx_ticks(extra), value);
}
int lf_schedule_action_copy(void *action, interval_t extra, const void *value, size_t length) {
  return weft_rx_schedule_bytes((weft_rx_action *)action, weft_rx_ticks(extra), value, length);
}
int lf_schedule_action_value(void *action, interval_t extra, void *value, size_t length) {
  return weft_rx_schedule_owned((weft_rx_action *)action, weft_rx_ticks(extra), value, length);
}
#ifdef WEFT_POSIX
#include <time.h>
int lf_thread_id(void) {
  static int count;
  static __thread int own;
  if (!own) own = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  return own - 1;
}
static pthread_mutex_t lf_critical = PTHREAD_MUTEX_INITIALIZER;
void lf_critical_section_enter_(void) { pthread_mutex_lock(&lf_critical); }
void lf_critical_section_exit_(void) { pthread_mutex_unlock(&lf_critical); }
void lf_sleep(interval_t ns) {
  if (ns <= 0) return;
  struct timespec t = {(time_t)(ns / BILLION), (long)(ns % BILLION)};
  while (nanosleep(&t, &t)) {}
}
#else
void lf_critical_section_enter_(void) {}
void lf_critical_section_exit_(void) {}
void lf_sleep(interval_t ns) {
  for (uint64_t until = weft_now64() + (uint64_t)(ns > 0 ? ns / 1000 : 0); weft_now64() < until;) {}
}
#endif
#if WEFT_LF_STDIO
#include <stdarg.h>
#ifndef LOG_LEVEL /* 0: error; 1: warning; 2: info; 3: log; 4: debug */
#define LOG_LEVEL 2
#endif
static print_message_function_t *lf_printer;
static int lf_printer_level = -1;
void lf_register_print_function(print_message_function_t *function, int level) {
  lf_printer = function, lf_printer_level = level;
}
/* Write a message of `level` if the program's level, or the level of its print function, asks
 * for it. */
static void lf_say(FILE *file, int level, const char *before, const char *format, va_list list) {
  if (level > LOG_LEVEL && level > lf_printer_level) return;
  if (lf_printer) {
    size_t size = strlen(before) + strlen(format) + 2;
    char *whole = (char *)malloc(size);
    if (!whole) weft_panic("weft: no memory for a message");
    snprintf(whole, size, "%s%s\n", before, format);
    lf_printer(whole, list);
    free(whole);
    return;
  }
  fputs(before, file);
  vfprintf(file, format, list);
  fputc('\n', file);
}
#define LF_SAYS(name, vname, level, file, before)                     \
  void vname(const char *format, va_list list) {                      \
    lf_say(file, level, before, format, list);                        \
  }                                                                   \
  void name(const char *format, ...) {                                \
    va_list list;                                                     \
    va_start(list, format);                                           \
    vname(format, list);                                              \
    va_end(list);                                                     \
  }
LF_SAYS(lf_print, lf_vprint, 0, stdout, "")
LF_SAYS(lf_print_info, lf_vprint_info, 2, stdout, "")
LF_SAYS(lf_print_log, lf_vprint_log, 3, stdout, "LOG: ")
LF_SAYS(lf_print_debug, lf_vprint_debug, 4, stdout, "DEBUG: ")
LF_SAYS(lf_print_warning, lf_vprint_warning, 1, stderr, "WARNING: ")
LF_SAYS(lf_print_error, lf_vprint_error, 0, stderr, "ERROR: ")
void lf_vprint_error_and_exit(const char *format, va_list list) {
  fflush(stdout);
  lf_say(stderr, 0, "FATAL ERROR: ", format, list);
  exit(EXIT_FAILURE);
}
void lf_print_error_and_exit(const char *format, ...) {
  va_list list;
  va_start(list, format);
  lf_vprint_error_and_exit(format, list);
}
size_t lf_comma_separated_time(char *buffer, instant_t time) {
  char digits[24], *to = buffer;
  int count = snprintf(digits, sizeof digits, "%lld", (long long)time);
  for (int at = 0; at < count; at++) {
    *to++ = digits[at];
    int left = count - 1 - at;
    if (left && left % 3 == 0 && digits[at] != '-') *to++ = ',';
  }
  *to = 0;
  return (size_t)(to - buffer);
}
/* The text is that of upstream, whose programs have buffers of 64 characters. A number that is no
 * more than one of a unit is written in the next smaller unit, and nothing is written for a time
 * before 0. */
size_t lf_readable_time(char *buffer, instant_t time) {
  static const struct { const char *name; int64_t ns;
  } units[] = {{"weeks", 604800 * BILLION}, {"d", 86400 * BILLION}, {"h", 3600 * BILLION},
               {"min", 60 * BILLION},       {"s", BILLION}};
  char *to = buffer;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (time <= units[i].ns) continue;
    to += lf_comma_separated_time(to, time / units[i].ns);
    time %= units[i].ns;
    to += sprintf(to, " %s%s", units[i].name, time ? ", " : "");
  }
  if (time > 0) {
    const char *unit = "ns";
    if (time % 1000000 == 0) unit = "ms", time /= 1000000;
    else if (time % 1000 == 0) unit = "us", time /= 1000;
    to += lf_comma_separated_time(to, time);
    to += sprintf(to, " %s", unit);
  } else if (to == buffer) to += sprintf(to, "0");
  return (size_t)(to - buffer);
}
#if WEFT_RX_HOST
#include "weft_mcu/reactors/host.h"
int lf_time_parse(const char *number, const char *unit, interval_t *result) {
  if (weft_rx_duration(number, "ns") < 0) return -1;
  int64_t ns = weft_rx_duration(number, unit);
  if (ns < 0) return -2;
  *result = ns;
  return 0;
}
#endif
#endif
#endif
