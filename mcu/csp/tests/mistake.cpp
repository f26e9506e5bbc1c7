// mistake: a debug build must report over the UART that a process's frame finds no room.
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
