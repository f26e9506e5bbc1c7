// spi: the requests of two processes on SPI 0, pins 18, 19, 16 (rule M26). drivers_buses.mjs plays
// the parts on its lines.
#include "bus_clients.hpp"
#include "weft_mcu/drivers/spi.hpp"

using namespace weft;
using namespace weft::mcu;

using Bus = Spi<272>;

extern "C" {
volatile std::uint32_t bus_failed, bus_left, bus_bytes, bus_frame, bus_wrong;
clients::Table<Bus::Transfer> bus_tables[2];
}

namespace {
constexpr std::uint32_t kSelects = 1u << 17 | 1u << 20;
constinit Bus bus{clients::scheduler, 0};
constinit Channel<Bus::Transfer> ask[2], answer[2], their_ask[2], their_answer[2];

// Counts the mistakes that start() and connect() do not refuse.
std::uint32_t mistakes() {
#if WEFT_DEBUG
  return 0;  // a debug build stops at the first mistake
#else
  const auto refused = [](int e) { return e == WEFT_E_DRIVER ? 0u : 1u; };
  return refused(bus.connect(ask[0].reader(), answer[0].writer())) +
         refused(bus.start({.sck = 10, .tx = 19, .rx = 16, .selects = kSelects})) +
         refused(bus.start({.sck = 18, .tx = 18, .rx = 16, .selects = kSelects})) +
         refused(bus.start({.sck = 18, .tx = 19, .rx = 17, .selects = kSelects})) +
         refused(bus.start({.sck = 18, .tx = 19, .rx = 16, .selects = 0})) +
         refused(bus.start({.sck = 18, .tx = 19, .rx = 16, .selects = 1u << 30})) +
         refused(bus.start({.sck = 18, .tx = 19, .rx = 16, .selects = 1u << 18}));
#endif
}
}  // namespace

extern "C" void weft_isr_spi0() { bus.on_interrupt(); }

int main() {
  weft_list_init(&clients::events, WEFT_LOCAL);
  // mistakes() drops ends. These two keep the channels from retiring.
  Reader<Bus::Transfer> in = ask[0].reader();
  Writer<Bus::Transfer> out = answer[0].writer();
  std::uint32_t wrong = mistakes();
  int failed = bus.start({.sck = 18, .tx = 19, .rx = 16, .selects = kSelects});
#if !WEFT_DEBUG
  wrong += bus.start({.sck = 18, .tx = 19, .rx = 16, .selects = kSelects}) == WEFT_E_DRIVER ? 0 : 1;
#endif
  bus_wrong = wrong;
  bus_bytes = sizeof bus;
  failed |= clients::leave(bus, their_ask, their_answer, bus_tables[0]);
  failed |= clients::serve(bus, ask, answer, bus_tables);
  bus_frame = clients::serving_frame;
  bus_failed = static_cast<std::uint32_t>(failed);
  bus_left = clients::scheduler.processes();
  return 0;
}
