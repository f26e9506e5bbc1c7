// mistake: each MISTAKE is a misuse of processes and channels, which a debug build must report over
// the UART; a release build refuses or continues, as run.mjs expects.
#include "board.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

#ifndef MISTAKE
#define MISTAKE 1
#endif

namespace {
constinit weft_queue events{};
#if MISTAKE == 1
constinit Arena<32> frames{};
#else
constinit Arena<1024> frames{};
#endif
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::uint32_t> a, b;
#if MISTAKE == 1  // There is no room for a process's frame.
Process nothing(Scheduler&) { co_return; }
#elif MISTAKE == 2  // Two processes wait for each other.
Process left(Scheduler&, Reader<std::uint32_t> in, Writer<std::uint32_t> out) {
  std::uint32_t v;
  co_await in.read(v);
  co_await out.write(v);
}
#elif MISTAKE == 3  // A port is not connected.
constinit Port<std::uint32_t, 4> port{scheduler};
#else  // An hour is beyond the horizon of 32-bit times; the deadline does not come early.
Process waits(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t v = 0;
  const Status s = co_await in.read_until(v, weft_now32() + 3600u * 1000000u);
  uart_puts(s == Status::ok && v == 5 ? "the value\n" : "early\n");
}
Process late(Scheduler&, Writer<std::uint32_t> out) {
  co_await sleep_until(weft_now32() + 5000);
  co_await out.write(5);
}
#endif
}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
#if MISTAKE == 1
  if (scheduler.start(nothing(scheduler)) == WEFT_E_ARENA) uart_puts("refused\n");
#elif MISTAKE == 2
  scheduler.start(left(scheduler, a.reader(), b.writer()));
  scheduler.start(left(scheduler, b.reader(), a.writer()));
  scheduler.run();
#elif MISTAKE == 3
  uart_puts(port.post_value(5) ? "accepted\n" : "refused\n");
#else
  scheduler.start(waits(scheduler, a.reader()));
  scheduler.start(late(scheduler, a.writer()));
  scheduler.run();
#endif
  return 0;
}
