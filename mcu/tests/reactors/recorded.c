/* recorded: pingpong.c with three pings and a flight recorder (rule M24). What its reactions have
 * done goes as bytes into the file that the argument names;
 * micropython/tests/test_link_mcu.py reads them. */
#define PINGS 3
#define main run_pings
#include "pingpong.c"
#undef main
#include "weft_mcu/flight.h"

int main(int argc, char **argv) {
  static const weft_flight_name names[] = {{&weft_rx_reactions[0], "serve"},
                                           {&weft_rx_reactions[2], "ponged"},
                                           {&weft_rx_reactions[3], "received"}};
  weft_flight_names(names, sizeof names / sizeof names[0]);
  (void)run_pings();
  FILE *out = argc > 1 ? fopen(argv[1], "wb") : 0;
  if (!out) return 1;
  weft_flight_reader reader = {.board = "pings"};
  uint8_t bytes[WEFT_FLIGHT_LEAST];
  for (size_t n; (n = weft_flight_take(&reader, bytes, sizeof bytes));) fwrite(bytes, 1, n, out);
  return fclose(out);
}
