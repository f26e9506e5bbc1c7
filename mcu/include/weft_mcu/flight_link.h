/* weft_mcu/flight_link.h: lets a PC fetch the events of the board's flight recorder over a link
 * (mcu/FLIGHT.md). On the PC: `board.flight("board.flight")`.
 *
 *   static weft_link_end ends[] = {…, WEFT_FLIGHT_ENDS};
 *   static weft_flight_link recorder = {.link = &pc, .ends = &ends[2]};
 *   weft_flight_serve(&recorder);     // once, after weft_link_begin or weft_link_uart_start
 *
 * The PC asks with an integer: 0, what time is it? 1, what was recorded? The answer is one value of
 * eight bytes, or several of bytes, of which the last has none.
 *
 * Invariant: one of the two operations is under way, session after session, until the PC retires or
 * poisons one of the two ends.
 */
#ifndef WEFT_MCU_FLIGHT_LINK_H
#define WEFT_MCU_FLIGHT_LINK_H
#include "weft_mcu/flight.h"
#include "weft_mcu/link.h"
#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_FLIGHT_ENDS WEFT_LINK_READER("weft.flight.ask"), WEFT_LINK_WRITER("weft.flight")

typedef struct weft_flight_link {
  weft_link *link;     /* its `out` has at least 144 bytes */
  weft_link_end *ends; /* the two ends of WEFT_FLIGHT_ENDS */

  /* The functions set these. */
  weft_link_op op;
  weft_link_guard guard;
  weft_flight_reader reader;
  bool takes;
  uint8_t value[2 + WEFT_FLIGHT_LEAST];
} weft_flight_link;

/* Begins to answer. Called in the context of the link's calls, once. */
void weft_flight_serve(weft_flight_link *f);

#ifdef __cplusplus
}
#endif
#endif
