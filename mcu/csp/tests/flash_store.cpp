// flash_store: the requests of two processes to a store in the last 32 KB of the flash (rule M30).
// drivers_flash.mjs writes the requests into memory before main(), reads the answers, and cuts the
// power.
#include "bus_clients.hpp"
#include "weft_mcu/drivers/flash_store.hpp"

using namespace weft;
using namespace weft::mcu;

using Store = FlashStore<256>;

extern "C" {
volatile std::uint32_t bus_started, bus_bytes, bus_frame, bus_wrong, bus_formatted, bus_left;
clients::Table<Store::Request> bus_tables[2];
}

namespace {
constinit Store store{clients::scheduler, {.origin = 0x1f8000, .sectors = 8}};
constinit Channel<Store::Request> ask[2], answer[2];

#if !WEFT_DEBUG  // a debug build stops at the first mistake
constinit FlashStore<> odd{clients::scheduler, {.origin = 0x1f8100, .sectors = 4}};
constinit FlashStore<> few{clients::scheduler, {.origin = 0x1f8000, .sectors = 3}};
constinit FlashStore<> beyond{clients::scheduler, {.origin = 0x1f8000, .sectors = 9}};
constinit FlashStore<> outside{clients::scheduler, {.origin = 0x201000, .sectors = 4}};
constinit FlashStore<> another{clients::scheduler, {.origin = 0x1f8000, .sectors = 4}};
constinit FlashStore<> taken{clients::scheduler, {.origin = 0, .sectors = 4}};
#endif

// Counts the mistakes that start() and connect() do not refuse. If this program lies in flash, a
// place inside the program is another mistake. `later`: the store has been started.
std::uint32_t mistakes([[maybe_unused]] bool later) {
#if WEFT_DEBUG
  return 0;
#else
  const auto refused = [](int e) { return e == WEFT_E_DRIVER ? 0u : 1u; };
  if (later) return refused(store.start()) + refused(another.start());
  return refused(store.connect(ask[0].reader(), answer[0].writer())) + refused(odd.start()) +
         refused(few.start()) + refused(beyond.start()) + refused(outside.start()) +
         (weft_flash_taken() ? refused(taken.start()) : 0);
#endif
}
}  // namespace

int main() {
  weft_list_init(&clients::events, WEFT_LOCAL);
  // mistakes() drops ends. These two keep the channels from retiring.
  Reader<Store::Request> in = ask[0].reader();
  Writer<Store::Request> out = answer[0].writer();
  std::uint32_t wrong = mistakes(false);
  bus_bytes = sizeof store;
  bus_started = static_cast<std::uint32_t>(store.start()) + 1;
  bus_formatted = store.formatted();
  wrong += mistakes(true);
  bus_wrong = wrong;
  (void)clients::serve(store, ask, answer, bus_tables);
  bus_frame = clients::serving_frame;
  bus_left = clients::scheduler.processes();
  return 0;
}
