// flight: prints what a flight recorder notes of three processes and an actor (rule M24), as bytes
// over the UART, and measures the cost of an event.
//
//   source ──a──► slow (a millisecond a value) ──b──► sink        ticker: an action every 500 us
#include "cycles.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

// The test reads this variable from memory: the cycles of one event, apart from reading the timer.
extern "C" {
std::uint32_t flight_cycles;
}

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::uint32_t> a;
constinit Channel<std::uint32_t, 2> b;
constinit weft_actor ticker = WEFT_ACTOR(0);
weft_event tick;
std::uint32_t ticks;

constexpr weft_flight_name names[] = {{&a, "a"}, {&b, "b"}, {&ticker, "ticker"}, {&tick, "tick"}};

Process source(Scheduler&, Writer<std::uint32_t> out) {
  for (std::uint32_t i = 0; i < 4; ++i)
    if (co_await out.write(i) != Status::ok) break;
}
Process slow(Scheduler&, Reader<std::uint32_t> in, Writer<std::uint32_t> out) {
  std::uint32_t v;
  while (co_await in.read(v) == Status::ok) {
    co_await sleep_until(weft_now32() + 1000);
    if (co_await out.write(v) != Status::ok) break;
  }
}
Process sink(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t v;
  while (co_await in.read(v) == Status::ok) {}
}

std::uint32_t on_tick(weft_event*, std::uint32_t) { return ++ticks < 4 ? 500 : WEFT_DONE; }

void measure() {
  constexpr std::uint32_t kTimes = 16;
  std::uint32_t start = cycles_now();
  for (std::uint32_t i = 0; i < kTimes; ++i) weft_flight_note(&a, &b, WEFT_FLIGHT_OVER);
  const std::uint32_t notes = cycles_since(start);
  std::uint32_t sum = 0;
  start = cycles_now();
  for (std::uint32_t i = 0; i < kTimes; ++i) sum += weft_now32();
  const std::uint32_t times = cycles_since(start);
  asm volatile("" ::"r"(sum));
  flight_cycles = (notes - times) / kTimes;
}
void throw_away() {
  weft_flight_reader reader{};
  std::uint8_t bytes[WEFT_FLIGHT_LEAST];
  while (weft_flight_take(&reader, bytes, sizeof bytes)) {
  }
}

}  // namespace

int main() {
  uart_init();
  cycles_init();
  weft_list_init(&events, WEFT_LOCAL);
  measure();
  throw_away();
  weft_flight_names(names, sizeof names / sizeof names[0]);
  tick = weft_event(WEFT_EVENT(on_tick, &ticker));
  weft_post_in(&events, &tick, 100);
  (void)scheduler.start(source(scheduler, a.writer()), "source");
  (void)scheduler.start(slow(scheduler, a.reader(), b.writer()), "slow");
  (void)scheduler.start(sink(scheduler, b.reader()), "sink");
  scheduler.run();
  weft_flight_reader reader{};
  reader.board = "bench";
  std::uint8_t bytes[256];
  while (const std::size_t n = weft_flight_take(&reader, bytes, sizeof bytes))
    for (std::size_t i = 0; i < n; ++i) uart_put(static_cast<char>(bytes[i]));
  return 0;
}
