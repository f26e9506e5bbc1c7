/* reactors/records.h: writes what the reactions do to a file of the flight recorder (R26), which
 * `weft trace` reads; python/docs/flight.md has the format. Part of weft_mcu/reactors_run.h, on a
 * host, if WEFT_RX_RECORDS is 1. The macro WEFT_RX_RECORD_FILE is then the file's name.
 *
 * Each reaction is a process of the file. The process waits for the tag of its next run:
 *
 *   begin: one record "wait for tag (TIME, MICROSTEP)", since the reaction's last return
 *   return: no record; the time is kept for the next begin
 *
 * Invariants
 *  1 The file has one lane. `lock` protects the lane and its buffer, so records are in the order
 *    of their times, whatever thread a reaction runs on.
 *  2 `since[r]` is touched only by the thread that runs reaction r, and after the last run by the
 *    main thread.
 *  3 A block of records is written out when the buffer is full, and when a reaction begins more
 *    than PATIENCE ns after the block before was written out. A program that a signal ends loses
 *    the records that came after its last block.
 *  4 A file that cannot be written stops no program: one message says so.
 */
#ifndef WEFT_RX_RECORDS_H
#define WEFT_RX_RECORDS_H
#include "weft_mcu/reactors/env.h"
#if WEFT_RX_RECORDS
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  WEFT_RX_RECORD_ROOM = 1 << 16, /* bytes of a block */
  WEFT_RX_RECORD_MAX = 1024,    /* more bytes than one record and its definition take */
  WEFT_RX_RECORD_TEXT = 400      /* the longest text of the format */
};
enum { WEFT_RX_RECORD_PATIENCE = 100000000 }; /* ns */
/* The tags of the format: an operation without a name, with WAITED if the process waited. */
enum {
  WEFT_RX_RECORD_OTHER = 0x0b,
  WEFT_RX_RECORD_WAITED = 0x40,
  WEFT_RX_RECORD_PROCESS = 0x80,
  WEFT_RX_RECORD_START = 0x82,
  WEFT_RX_RECORD_END = 0x83,
  WEFT_RX_RECORD_NAMES = 0x86
};

static struct {
  FILE *file;
  pthread_mutex_t lock;
  unsigned count;        /* of reactions, and of `index`; behind them is the process OUTSIDE */
  uint64_t *since;       /* of each reaction: the end of its last run, or the start */
  uint64_t *index;       /* of each process: the block that defines it << 32 | its number there */
  uint64_t begin;        /* of the file, in ns of the steady clock */
  uint64_t last, passed; /* the time of the last record, and of the last block written out */
  uint32_t block, defined;
  size_t used;
  uint8_t bytes[WEFT_RX_RECORD_ROOM];
} weft_rx_record = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local unsigned weft_rx_recorded; /* the reaction that runs, + 1 */

static uint64_t weft_rx_record_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- bytes ----------------------------------------------------------------------------------- */
static void weft_rx_record_byte(unsigned byte) {
  weft_rx_record.bytes[weft_rx_record.used++] = (uint8_t)byte;
}
static void weft_rx_record_number(uint64_t n) {
  for (; n > 0x7f; n >>= 7) weft_rx_record_byte((unsigned)(n & 0x7f) | 0x80);
  weft_rx_record_byte((unsigned)n);
}
static void weft_rx_record_text(const char *text) {
  size_t length = strlen(text);
  if (length > WEFT_RX_RECORD_TEXT) { /* A character of several bytes is not cut. */
    length = WEFT_RX_RECORD_TEXT;
    while (length && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  }
  weft_rx_record_number(length);
  memcpy(weft_rx_record.bytes + weft_rx_record.used, text, length);
  weft_rx_record.used += length;
}
/* Write a number in ten bytes, so that it can be replaced later by a larger one. */
static void weft_rx_record_wide(uint64_t n) {
  for (int i = 0; i < 9; i++, n >>= 7) weft_rx_record_byte((unsigned)(n & 0x7f) | 0x80);
  weft_rx_record_byte((unsigned)n);
}

/* ---- pieces ---------------------------------------------------------------------------------- */
static void weft_rx_record_piece(char letter, const uint8_t *content, size_t size) {
  uint8_t head[] = {(uint8_t)letter, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                    (uint8_t)(size >> 24)};
  FILE *file = weft_rx_record.file;
  if (fwrite(head, 1, sizeof head, file) == sizeof head &&
      (!size || fwrite(content, 1, size, file) == size))
    return;
  fprintf(stderr, "weft: the trace %s is cut off: %s\n", WEFT_RX_RECORD_FILE, strerror(errno));
  fclose(file);
  weft_rx_record.file = 0;
}
/* Write the head. The times of the file are ns, so any second moment of the clock will do until
 * the end is known. */
static void weft_rx_record_head(uint64_t end) {
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  weft_rx_record.used = 0;
  uint64_t begin = weft_rx_record.begin;
  uint64_t system = weft_rx_record_clock(CLOCK_REALTIME) -
                    weft_rx_record_clock(CLOCK_MONOTONIC) + end;
  uint64_t numbers[] = {begin, begin, end, end, system, (uint64_t)getpid(), 0};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) weft_rx_record_wide(numbers[i]);
  weft_rx_record_text(host);
  weft_rx_record_text(weft_rx_programs[0].name);
  weft_rx_record_text("weft_mcu");
  weft_rx_record_piece('H', weft_rx_record.bytes, weft_rx_record.used);
  weft_rx_record.used = 0;
}
/* Write the block out, and begin the next one at the time `now`. */
static void weft_rx_record_pass(uint64_t now) {
  if (weft_rx_record.used && weft_rx_record.file) {
    weft_rx_record_piece('B', weft_rx_record.bytes, weft_rx_record.used);
    if (weft_rx_record.file) fflush(weft_rx_record.file);
  }
  weft_rx_record.used = 0;
  weft_rx_record.block++;
  weft_rx_record.defined = 0;
  weft_rx_record.last = weft_rx_record.passed = now;
}
/* Make room for a record at the time `now`, and define its process. Return the process's number. */
static uint64_t weft_rx_record_room(unsigned who, uint64_t now) {
  if (weft_rx_record.used + WEFT_RX_RECORD_MAX > WEFT_RX_RECORD_ROOM) weft_rx_record_pass(now);
  if (!weft_rx_record.used) {
    weft_rx_record_number(0); /* the lane */
    weft_rx_record_number(weft_rx_record.last);
  }
  uint64_t *known = &weft_rx_record.index[who];
  if (*known >> 32 != weft_rx_record.block) {
    *known = (uint64_t)weft_rx_record.block << 32 | weft_rx_record.defined++;
    weft_rx_record_byte(WEFT_RX_RECORD_PROCESS);
    bool outside = who == weft_rx_record.count; /* It has the id -1: a thread that is no process. */
    weft_rx_record_number(outside ? 1 : 2 * ((uint64_t)who + 1));
    weft_rx_record_text(outside ? "outside of reactions" : weft_rx_names[who]);
  }
  return (uint32_t)*known;
}
static void weft_rx_record_stamp(unsigned tag, uint64_t process, uint64_t now) {
  weft_rx_record_byte(tag);
  weft_rx_record_number(now - weft_rx_record.last);
  weft_rx_record_number(process);
  weft_rx_record.last = now;
}
/* Write the record of an operation named `text`, which has waited since `since`. An operation that
 * has not waited has the `since` 0. */
static void weft_rx_record_over(unsigned who, const char *text, uint64_t since, uint64_t now) {
  uint64_t process = weft_rx_record_room(who, now);
  weft_rx_record_byte(WEFT_RX_RECORD_NAMES);
  weft_rx_record_text(text);
  weft_rx_record_stamp(WEFT_RX_RECORD_OTHER | (since ? WEFT_RX_RECORD_WAITED : 0), process, now);
  weft_rx_record_number(0); /* no place */
  if (since) weft_rx_record_number(now - since);
}

/* ---- what the engine calls ------------------------------------------------------------------- */
static void weft_rx_record_close(void) {
  pthread_mutex_lock(&weft_rx_record.lock);
  uint64_t now = weft_rx_record_clock(CLOCK_MONOTONIC);
  for (unsigned r = 0; weft_rx_record.file && r < weft_rx_record.count; r++) {
    if (!weft_rx_names[r]) continue;
    /* A reaction whose body calls exit() still runs, and waits for nothing. */
    if (r + 1 != weft_rx_recorded)
      weft_rx_record_over(r, "wait for the end", weft_rx_record.since[r], now);
    uint64_t process = weft_rx_record_room(r, now);
    weft_rx_record_stamp(WEFT_RX_RECORD_END, process, now);
    weft_rx_record_byte(0); /* returned */
    weft_rx_record_text("");
  }
  if (weft_rx_record.file) weft_rx_record_pass(now);
  if (weft_rx_record.file) weft_rx_record_piece('Z', 0, 0);
  if (weft_rx_record.file) {
    fseek(weft_rx_record.file, 8, SEEK_SET);
    weft_rx_record_head(now);
  }
  if (weft_rx_record.file) fclose(weft_rx_record.file);
  weft_rx_record.file = 0;
  free(weft_rx_record.since);
  free(weft_rx_record.index);
  weft_rx_record.since = weft_rx_record.index = 0;
  pthread_mutex_unlock(&weft_rx_record.lock);
}
static void weft_rx_record_open(void) {
  static const uint8_t magic[] = {0x89, 'W', 'E', 'F', 'T', '\n', 0x1a, 1};
  static bool asked;
  unsigned count = 0;
  for (unsigned e = 0; e < WEFT_RX_ENCLAVES; e++) count += weft_rx_programs[e].count;
  weft_rx_record.count = count;
  weft_rx_record.since = (uint64_t *)calloc(count + 1u, sizeof(uint64_t));
  weft_rx_record.index = (uint64_t *)calloc(count + 1u, sizeof(uint64_t));
  if (!weft_rx_record.since || !weft_rx_record.index) weft_panic("weft: no memory for the trace");
  weft_rx_record.file = fopen(WEFT_RX_RECORD_FILE, "wb");
  if (!weft_rx_record.file || fwrite(magic, 1, sizeof magic, weft_rx_record.file) < sizeof magic) {
    fprintf(stderr, "weft: the trace %s cannot be written: %s\n", WEFT_RX_RECORD_FILE,
            strerror(errno));
    if (weft_rx_record.file) fclose(weft_rx_record.file);
    weft_rx_record.file = 0;
    return;
  }
  uint64_t now = weft_rx_record.begin = weft_rx_record_clock(CLOCK_MONOTONIC);
  weft_rx_record_head(now + 1000000000u);
  if (weft_rx_record.file) weft_rx_record_pass(now);
  for (unsigned r = 0; weft_rx_record.file && r < count; r++) {
    weft_rx_record.since[r] = now;
    if (!weft_rx_names[r]) continue; /* the reaction of a delay */
    uint64_t process = weft_rx_record_room(r, now);
    weft_rx_record_stamp(WEFT_RX_RECORD_START, process, now);
  }
  if (!asked) atexit(weft_rx_record_close);
  asked = true;
}
/* Note that reaction `number` begins. */
static void weft_rx_record_begins(weft_rx_env *env, unsigned number) {
  weft_rx_recorded = number + 1;
  if (!weft_rx_names[number]) return;
  char text[64];
  snprintf(text, sizeof text, "wait for tag (%lld, %u)",
           (long long)(weft_rx_logical_of(env) - weft_rx_start_time()), (unsigned)env->step);
  pthread_mutex_lock(&weft_rx_record.lock);
  uint64_t now = weft_rx_record_clock(CLOCK_MONOTONIC);
  if (weft_rx_record.file) {
    weft_rx_record_over(number, text, weft_rx_record.since[number], now);
    if (now - weft_rx_record.passed > WEFT_RX_RECORD_PATIENCE) weft_rx_record_pass(now);
  }
  pthread_mutex_unlock(&weft_rx_record.lock);
}
static void weft_rx_record_returns(unsigned number) {
  weft_rx_recorded = 0;
  if (weft_rx_record.since) weft_rx_record.since[number] = weft_rx_record_clock(CLOCK_MONOTONIC);
}
/* Note an event of the reaction that runs on this thread. */
void weft_rx_record_event(const char *text) {
  pthread_mutex_lock(&weft_rx_record.lock);
  unsigned who = weft_rx_recorded ? weft_rx_recorded - 1 : weft_rx_record.count;
  if (weft_rx_record.file)
    weft_rx_record_over(who, text, 0, weft_rx_record_clock(CLOCK_MONOTONIC));
  pthread_mutex_unlock(&weft_rx_record.lock);
}
void weft_rx_record_value(const char *text, long long value) {
  char whole[WEFT_RX_RECORD_TEXT + 1];
  snprintf(whole, sizeof whole, "%.*s: %lld", WEFT_RX_RECORD_TEXT - 24, text, value);
  weft_rx_record_event(whole);
}
#endif
#endif
