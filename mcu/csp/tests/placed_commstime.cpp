// placed_commstime: examples/commstime.cpp with placeable processes (weft/anywhere.hpp), to compare
// their cycles and bytes with those of that example's processes (tests/run.mjs).
#include <weft/anywhere.hpp>

#include "cycles.h"

using weft::mcu::Arena;
using weft::mcu::Channel;
using weft::mcu::Scheduler;

namespace {

using Int = std::uint32_t;

constexpr Int kLoops = 1000, kWarm = 16;
constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<Int> a, b, c, d;
Int cycles, wrong;

weft::Process prefix(weft::Reader<Int> source, weft::Writer<Int> out) {
  Int v = 0;
  for (;;) {
    co_await out.write(v);
    v = co_await source.read();
  }
}
WEFT_PLACEABLE(prefix, source, out)

weft::Process delta(weft::Reader<Int> source, weft::Writer<Int> first, weft::Writer<Int> second) {
  while (auto v = co_await source.next()) {
    co_await first.write(*v);
    co_await second.write(*v);
  }
}
WEFT_PLACEABLE(delta, source, first, second)

weft::Process succ(weft::Reader<Int> source, weft::Writer<Int> out) {
  while (auto v = co_await source.next()) co_await out.write(*v + 1);
}
WEFT_PLACEABLE(succ, source, out)

weft::Process consumer(weft::Reader<Int> source) {
  Int start = 0;
  for (Int i = 0; i < kWarm + kLoops; ++i) {
    if (i == kWarm) start = cycles_now();
    const Int v = co_await source.read();
    if (v != i) ++wrong;
  }
  cycles = cycles_since(start);
}
WEFT_PLACEABLE(consumer, source)

void started(int code, const char* name) {
  put_figure(name, scheduler.last_frame());
  if (code) ++wrong;
}

}  // namespace

int main() {
  uart_init();
  cycles_init();
  weft_list_init(&events, WEFT_LOCAL);
  uart_puts("{\"loops\":");
  uart_put_u32(kLoops);
  started(scheduler.start<prefix>(c.reader(), a.writer()), "frame_prefix");
  started(scheduler.start<delta>(a.reader(), b.writer(), d.writer()), "frame_delta");
  started(scheduler.start<succ>(b.reader(), c.writer()), "frame_succ");
  started(scheduler.start<consumer>(d.reader()), "frame_consumer");
  scheduler.run();
  put_figure("wrong", wrong);
  put_figure("cycles_loop", cycles / kLoops);
  put_figure("cycles_communication", cycles / kLoops / 4);
  put_figure("transfers", static_cast<std::uint32_t>(d.transfers()));
  put_figure("left", scheduler.processes());
  put_figure("arena", scheduler.arena_used());
  put_figure("channel", sizeof a);
  put_figure("scheduler", sizeof scheduler);
  uart_puts("}\n");
  return 0;
}
