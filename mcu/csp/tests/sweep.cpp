// sweep: a short program of timed reads, a port and plain communications. The emulator interrupts
// the program before every instruction. The interrupt handler (line 5, pended by the test) posts a
// value into a port. Every value must arrive exactly once, and every read must end by a value or by
// its deadline. The program ends with bkpt 0 if all is well, otherwise with the number of the
// failure.
#include "board.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

// Variables that the test reads. Between the beginning and the end of the stretch, each interrupt
// must be answered by exactly one value.
extern "C" volatile std::uint32_t sweep_stretch, sweep_interrupts;
volatile std::uint32_t sweep_stretch, sweep_interrupts;

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::uint32_t> posted, passed;
constinit Port<std::uint32_t, 2> port{scheduler};
std::uint32_t values, timeouts, relayed, wrong;

Process reader(Scheduler&, Reader<std::uint32_t> in, Writer<std::uint32_t> out) {
  const std::uint32_t start = weft_now32();
  for (std::uint32_t i = 1; i <= 2; ++i) {
    std::uint32_t x = 0;
    switch (co_await in.read_until(x, start + 20 * i)) {
      case Status::ok:
        wrong += x != 42;
        ++values;
        break;
      case Status::timed_out:
        wrong += static_cast<std::int32_t>(weft_now32() - (start + 20 * i)) < 0;
        ++timeouts;
        break;
      default: ++wrong;
    }
    wrong += (co_await out.write(i)) != Status::ok;
  }
  // A value that arrived after the last deadline is still available.
  std::uint32_t x = 0;
  sweep_stretch = 2;
  if (co_await in.read_until(x, weft_now32() + 20) == Status::ok) ++values;
}
Process relay(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t x;
  while (co_await in.read(x) == Status::ok) relayed += x;
}

}  // namespace

extern "C" void weft_isr_usb() {
  WEFT_REG(PPB_NVIC_ICPR) = 1u << 5;
  if (sweep_interrupts == 0 && port.post_value(42)) sweep_interrupts = 1;
}
#define EXPECT(n, condition) \
  if (!(condition)) __asm volatile("bkpt " #n)

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  port.connect(posted.writer());
  (void)scheduler.start(reader(scheduler, posted.reader(), passed.writer()));
  (void)scheduler.start(relay(scheduler, passed.reader()));
  WEFT_REG(PPB_NVIC_ISER) = 1u << 5;
  sweep_stretch = 1;
  scheduler.run();
  WEFT_REG(PPB_NVIC_ICER) = 1u << 5;
  EXPECT(1, wrong == 0);
  EXPECT(2, values == sweep_interrupts);
  EXPECT(3, relayed == 3);
  EXPECT(4, values + timeouts == 2 || values + timeouts == 3);
  EXPECT(5, scheduler.processes() == 0);
  return 0;
}
