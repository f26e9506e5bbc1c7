// mistake: in a debug build a process that finds no room is named over the UART.
#include "board.h"
#include "weft_mcu/csp.hpp"

using namespace weft::mcu;

namespace {
constinit weft_queue events{};
constinit Arena<32> frames{};
constinit Scheduler scheduler{&events, frames};
Process nothing(Scheduler&) { co_return; }
}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  if (scheduler.start(nothing(scheduler)) == WEFT_E_ARENA) uart_puts("refused\n");
  return 0;
}
