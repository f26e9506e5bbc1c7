/* weft_mcu/flight_link.h: lets a PC fetch the events of the board's flight recorder over a link
 * (mcu/FLIGHT.md). On the PC: `board.flight("board.flight")`.
 *
 *   static weft_link_end ends[] = {…, WEFT_FLIGHT_ENDS};
 *   static weft_flight_link recorder = {.link = &pc, .ends = &ends[2]};
 *   weft_flight_serve(&recorder);     // once, after weft_link_begin or weft_link_uart_start
 *
 * The PC writes an integer: 0 asks for the time, 1 for what was recorded. The answer to 0 is one
 * value of eight bytes; the answer to 1 is several values of bytes, of which the last is empty.
 *
 * Invariant: a read or a write at one of the two ends is under way, in one session after another,
 * until the PC retires or poisons one of the two ends.
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
  weft_link *link;     /* the program sets it; its `out` has at least 144 bytes */
  weft_link_end *ends; /* the two ends of WEFT_FLIGHT_ENDS */

  /* The functions set the following members. */
  weft_link_op op;
  weft_link_guard guard;
  weft_flight_reader reader;
  bool takes;
  uint8_t value[2 + WEFT_FLIGHT_LEAST];
} weft_flight_link;

/* Begins to answer the PC. Called once, in the context in which the link's functions are called. */
void weft_flight_serve(weft_flight_link *f);

#ifdef __cplusplus
}
#endif
#endif
