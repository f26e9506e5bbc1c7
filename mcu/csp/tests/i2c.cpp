// i2c: the requests of two processes on I2C 0, pins 4 and 5 (rule M26). drivers_buses.mjs plays the
// parts on the bus.
#include "bus_clients.hpp"
#include "weft_mcu/drivers/i2c.hpp"

using namespace weft;
using namespace weft::mcu;

using Bus = I2c<40>;

extern "C" {
volatile std::uint32_t bus_failed, bus_left, bus_bytes, bus_frame, bus_wrong;
clients::Table<Bus::Transfer> bus_tables[2];
}

namespace {
constinit Bus bus{clients::scheduler, 0};
constinit Channel<Bus::Transfer> ask[2], answer[2], their_ask[2], their_answer[2];

// Counts the mistakes that start() and connect() do not refuse.
std::uint32_t mistakes() {
#if WEFT_DEBUG
  return 0;  // a debug build stops at the first mistake
#else
  const auto refused = [](int e) { return e == WEFT_E_DRIVER ? 0u : 1u; };
  return refused(bus.connect(ask[0].reader(), answer[0].writer())) +
         refused(bus.start({.sda = 6, .scl = 5, .hz = 400000})) +
         refused(bus.start({.sda = 4, .scl = 4, .hz = 400000})) +
         refused(bus.start({.sda = 4, .scl = 5, .hz = 1999})) +
         refused(bus.start({.sda = 4, .scl = 5, .hz = 1000001}));
#endif
}
}  // namespace

extern "C" void weft_isr_i2c0() { bus.on_interrupt(); }

int main() {
  weft_list_init(&clients::events, WEFT_LOCAL);
  // mistakes() drops ends. These two keep the channels from retiring.
  Reader<Bus::Transfer> in = ask[0].reader();
  Writer<Bus::Transfer> out = answer[0].writer();
  std::uint32_t wrong = mistakes();
  int failed = bus.start({.sda = 4, .scl = 5, .hz = 400000});
#if !WEFT_DEBUG
  wrong += bus.start({.sda = 4, .scl = 5, .hz = 400000}) == WEFT_E_DRIVER ? 0 : 1;
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
