// pin_edges: the changes of two bouncing pins, read by processes (rule M25). The program prints
// `PIN level time`; drivers.mjs plays the button at the other end, and checks the output.
//
//   pin 6, quiet for 5 ms: three reads, a sleep with a full port, reads until the channel retires
//   pin 7, quiet for 200 us: reads until a change after 700 ms, then the reader drops its end
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/pin_edges.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<PinEdge> keys, dial;
constinit PinEdges<4> key{scheduler, 6, 5000}, knob{scheduler, 7, 200};

void show(const char* name, std::uint32_t a, std::uint32_t b) {
  uart_puts(name);
  uart_put(' ');
  uart_put_u32(a);
  uart_put(' ');
  uart_put_u32(b);
  uart_put('\n');
}

Process key_reader(Scheduler&, Reader<PinEdge> in, std::uint32_t start) {
  PinEdge edge{};
  Status s = Status::ok;
  unsigned n = 0;
  // A single read in the source keeps the frame small.
  while ((s = co_await in.read(edge)) == Status::ok) {
    show("key", edge.level, edge.time);
    if (++n == 2) co_await sleep_until(start + 400000);
    if (n == 7) {
      show("key_counts", key.lost(), key.glitches());
      key.close();
    }
  }
  show("key_end", static_cast<std::uint32_t>(s), n);
}

Process knob_reader(Scheduler&, Reader<PinEdge> in, std::uint32_t start) {
  PinEdge edge{};
  while (co_await in.read(edge) == Status::ok) {
    show("knob", edge.level, edge.time);
    if (edge.time - start > 700000) break;
  }
  show("knob_counts", knob.lost(), knob.glitches());
}

// Keeps the scheduler running, so that the test sees what happens after the end of a channel.
Process clock(Scheduler&, std::uint32_t until) { co_await sleep_until(until); }

}  // namespace

extern "C" void weft_isr_io_bank0() {
  key.on_interrupt();
  knob.on_interrupt();
}

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  pin_in_pull_up(6);
  pin_in_pull_up(7);
  key.connect(keys.writer());
  knob.connect(dial.writer());
  const std::uint32_t start = weft_now32();
  (void)scheduler.start(key_reader(scheduler, keys.reader(), start));
  (void)scheduler.start(knob_reader(scheduler, dial.reader(), start));
  (void)scheduler.start(clock(scheduler, start + 800000));
  show("start", start, sizeof key);
  scheduler.run();
  return 0;
}
