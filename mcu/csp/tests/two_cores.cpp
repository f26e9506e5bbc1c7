// two_cores: an actor on core 1 posts a value every 37 us into a port of core 0. Processes on core
// 0 check that all values arrive in order.
#include "board.h"
#include "weft_mcu/csp.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

constexpr std::uint32_t kValues = 200;
constinit weft_queue events{}, others{};
constinit Arena<512> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::uint32_t> c;
constinit Port<std::uint32_t, 4> port{scheduler};
constinit weft_actor maker{};
std::uint32_t made, got, wrong, last_status;

std::uint32_t make(weft_event*, std::uint32_t) {
  port.post_value(made++);
  return made < kValues ? 37u : static_cast<std::uint32_t>(WEFT_DONE);
}
constinit weft_event event = WEFT_EVENT(make, &maker);
void core1() { weft_work(&others); }

Process reader(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t x;
  while (got < kValues) {
    if (co_await in.read_until(x, weft_now32() + 5000) != Status::ok) break;
    wrong += x != got++;
    // Now and then the reader sleeps for the time of three values, which the ring keeps.
    if (x % 16 == 0) co_await sleep_until(weft_now32() + 3 * 37);
  }
  port.close();
  last_status = static_cast<std::uint32_t>(co_await in.read(x));
}

}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_SPINLOCK(0));
  weft_list_init(&others, WEFT_SPINLOCK(1));
  port.connect(c.writer());
  (void)scheduler.start(reader(scheduler, c.reader()));
  weft_post_in(&others, &event, 100);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  scheduler.run();
  for (std::uint32_t v : {got, wrong, port.dropped(), last_status}) {
    uart_put_u32(v);
    uart_put(' ');
  }
  return 0;
}
