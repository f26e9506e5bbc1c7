// commstime: the classic benchmark of a process system. Four processes in a ring of channels count
// up; a consumer checks and times the numbers.
//
//   prefix ──a──► delta ──d──► consumer
//     ▲             │
//     c             b          a loop of the ring is four communications (a, b, c, d)
//     └── succ ◄────┘
//
// The program prints one JSON line over the UART: cycles per loop and per communication, and the
// frame size of each process.
#include "cycles.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

constexpr std::uint32_t kLoops = 1000, kWarm = 16;
constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::uint32_t> a, b, c, d;
std::uint32_t cycles, wrong;

Process prefix(Scheduler&, Reader<std::uint32_t> in, Writer<std::uint32_t> out) {
  std::uint32_t v = 0;
  while (co_await out.write(v) == Status::ok)
    if (co_await in.read(v) != Status::ok) break;
}

Process delta(Scheduler &, Reader<std::uint32_t> in, Writer<std::uint32_t> first,
              Writer<std::uint32_t> second) {
  std::uint32_t v;
  while (co_await in.read(v) == Status::ok) {
    if (co_await first.write(v) != Status::ok) break;
    if (co_await second.write(v) != Status::ok) break;
  }
}

Process succ(Scheduler&, Reader<std::uint32_t> in, Writer<std::uint32_t> out) {
  std::uint32_t v;
  while (co_await in.read(v) == Status::ok)
    if (co_await out.write(v + 1) != Status::ok) break;
}

Process consumer(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t v, start = 0;
  for (std::uint32_t i = 0; i < kWarm + kLoops; ++i) {
    if (i == kWarm) start = cycles_now();
    if (co_await in.read(v) != Status::ok || v != i) ++wrong;
  }
  cycles = cycles_since(start);
}  // The consumer's end closes here; then all processes end, one after the other.

void start(Process p, const char* name) {
  put_figure(name, scheduler.last_frame());
  if (scheduler.start(static_cast<Process&&>(p))) ++wrong;
}

}  // namespace

int main() {
  uart_init();
  cycles_init();
  weft_list_init(&events, WEFT_LOCAL);
  uart_puts("{\"loops\":");
  uart_put_u32(kLoops);
  start(prefix(scheduler, c.reader(), a.writer()), "frame_prefix");
  start(delta(scheduler, a.reader(), b.writer(), d.writer()), "frame_delta");
  start(succ(scheduler, b.reader(), c.writer()), "frame_succ");
  start(consumer(scheduler, d.reader()), "frame_consumer");
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
