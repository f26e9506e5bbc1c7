/* weft_mcu/flight.h: the flight recorder of a board (rule M24, mcu/FLIGHT.md). A ring in memory
 * keeps the last events of the actors, reactions and CSP processes, for `weft trace` on a PC.
 *
 * -DWEFT_FLIGHT=256, for the whole program, keeps the last 256 events of each core. The number is a
 * power of two. Without WEFT_FLIGHT nothing is kept, and code and structures are the same as if
 * this file did not exist.
 *
 * Invariants
 *  1 Only the worker of a core notes events, in its actions, reactions and processes, and never in
 *    an interrupt. Each core has a ring of its own. So a note needs no lock.
 *  2 While the rings are read, each note overwrites the first event of its ring, which was copied
 *    before. So no event is overwritten before it is read. New events are lost then, and counted.
 */
#ifndef WEFT_MCU_FLIGHT_H
#define WEFT_MCU_FLIGHT_H
#include "weft_mcu/platform.h"
#ifndef WEFT_FLIGHT
#define WEFT_FLIGHT 0
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What has happened. An operation that need not wait is one event, OVER. An operation that waits is
 * two events, WAITS and GOES_ON. An action or a reaction is two events, BEGINS and RETURNS. */
enum {
  WEFT_FLIGHT_START = 1,   /* who: a CSP process */
  WEFT_FLIGHT_END = 2,     /* who: a CSP process */
  WEFT_FLIGHT_WAITS = 3,   /* who, place, the operation */
  WEFT_FLIGHT_OVER = 4,    /* who, place, the operation, its outcome */
  WEFT_FLIGHT_GOES_ON = 5, /* who, place, the operation, its outcome */
  WEFT_FLIGHT_BEGINS = 6,  /* who: an actor or a reaction; place: the event, or 0 */
  WEFT_FLIGHT_RETURNS = 7  /* who: an actor or a reaction */
};
/* Where the parts of an event's last word begin. The parts are: what has happened; the operation,
 * by the numbers of the PC's format; a weft::Status; whether the channel has a buffer. */
enum { WEFT_FLIGHT_OP = 8, WEFT_FLIGHT_STATUS = 16, WEFT_FLIGHT_BUFFERED = 1 << 24 };
enum {
  WEFT_FLIGHT_READ = 0,
  WEFT_FLIGHT_WRITE = 1,
  WEFT_FLIGHT_SELECT_INPUT = 3,
  WEFT_FLIGHT_SELECT_OUTPUT = 4,
  WEFT_FLIGHT_SELECT = 5,
  WEFT_FLIGHT_SLEEP = 7
};

/* The name of an actor, an event, a reaction, a channel or an end of a link. */
typedef struct weft_flight_name {
  const void *thing;
  const char *name;
} weft_flight_name;

#if WEFT_FLIGHT
#if (WEFT_FLIGHT & (WEFT_FLIGHT - 1)) != 0 || WEFT_FLIGHT < 8
#error "WEFT_FLIGHT is a number of events: a power of two, at least 8"
#endif
#ifndef WEFT_FLIGHT_PROCESSES
#define WEFT_FLIGHT_PROCESSES 32 /* later CSP processes share the last name */
#endif
/* Notes an event. Called in the worker of a core. */
void weft_flight_note(const void *who, const void *place, uint32_t what);
/* Notes an event of an actor, unless the actor is hidden. A CSP scheduler hides its actor: what its
 * processes do is noted, and its actions would only fill the ring. */
#define weft_flight_action(actor, place, what)                                 \
  do {                                                                         \
    if ((actor) != weft_flight_hidden) weft_flight_note((actor), (place), (what)); \
  } while (0)
extern const void *weft_flight_hidden;
/* Gives the things in this table their names; a second call replaces the table. The table must live
 * as long as the program. A thing without a name is shown by its address. */
void weft_flight_names(const weft_flight_name *names, unsigned count);
/* Returns the address that stands in events for a new CSP process of this name (0: no name). */
const void *weft_flight_process(const char *name);
#else
#define weft_flight_note(who, place, what) ((void)0)
#define weft_flight_action(actor, place, what) ((void)0)
WEFT_INLINE void weft_flight_names(const weft_flight_name *names, unsigned count) {
  (void)names, (void)count;
}
#endif

/* Takes the events out of the rings, as bytes for `weft trace`, piece by piece:
 *
 *   weft_flight_reader r = {.board = "squares"};
 *   while ((n = weft_flight_take(&r, bytes, sizeof bytes))) send(bytes, n);
 *
 * From the first call until the call that returns 0 nothing is recorded. */
typedef struct weft_flight_reader {
  const char *board; /* the board's name, for people; 0: "board" */
  uint8_t stage;
  uint32_t index, lane;
} weft_flight_reader;
enum { WEFT_FLIGHT_LEAST = 88 }; /* bytes: the smallest `room`; a name is cut off at 60 */
/* Writes some of the bytes to `to`. Returns their number, 0 after the last. */
size_t weft_flight_take(weft_flight_reader *r, uint8_t *to, size_t room);

#ifdef __cplusplus
}
#endif
#endif
