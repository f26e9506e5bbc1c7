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
  int64_t whole = value; /* little-endian: a shorter type takes the low bytes */
  return weft_rx_schedule_event(a, extra, (weft_rx_payload){.bits = (uint64_t)whole}, true);
}
#ifdef WEFT_POSIX
#include <time.h>
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
#ifndef LOG_LEVEL /* 0 error, 1 warning, 2 info, 3 log, 4 debug */
#define LOG_LEVEL 2
#endif
static void lf_say(FILE *file, const char *before, const char *format, va_list list) {
  fputs(before, file);
  vfprintf(file, format, list);
  fputc('\n', file);
}
#define LF_SAYS(name, level, file, before)            \
  void name(const char *format, ...) {                \
    if (LOG_LEVEL < (level)) return;                  \
    va_list list;                                     \
    va_start(list, format);                           \
    lf_say(file, before, format, list);               \
    va_end(list);                                     \
  }
LF_SAYS(lf_print, 0, stdout, "")
LF_SAYS(lf_print_log, 3, stdout, "LOG: ")
LF_SAYS(lf_print_debug, 4, stdout, "DEBUG: ")
LF_SAYS(lf_print_warning, 1, stderr, "WARNING: ")
LF_SAYS(lf_print_error, 0, stderr, "ERROR: ")
void lf_print_error_and_exit(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fflush(stdout);
  lf_say(stderr, "FATAL ERROR: ", format, list);
  va_end(list);
  exit(EXIT_FAILURE);
}
#endif
#endif
