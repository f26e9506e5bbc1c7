// watchdog: two named processes that show that they live (rule M25). drivers.mjs writes `dog_kind`
// before the program begins, and reads the other words when the watchdog has reset the chip.
//
//   0: the pump is silent after 100 ms. 1: a process holds the scheduler from 100 ms on. 2: the
//   pump leaves after 100 ms, and the sensor after 300 ms. 3: the pump ends after 100 ms, and does
//   not call leave().
#include "cycles.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/watchdog.hpp"

using namespace weft;
using namespace weft::mcu;

extern "C" {
volatile std::uint32_t dog_kind = 9, dog_ready, dog_seen, dog_silent, dog_alive_cycles, dog_bytes;
}

namespace {

constinit weft_queue events{};
constinit Arena<512> frames{};
constinit Scheduler scheduler{&events, frames};
enum { PUMP, SENSOR };
constinit Watchdog<2> dog{scheduler, 20000, {{"pump", 50000}, {"sensor", 5000}}};

Process pump(Scheduler&, std::uint32_t start) {
  while (weft_now32() - start < 100000) {
    dog.alive(PUMP);
    co_await sleep_until(weft_now32() + 10000);
  }
  if (dog_kind == 2) dog.leave(PUMP);
  if (dog_kind == 1)
    for (;;) {}
  if (dog_kind == 0) co_await sleep_until(start + 10000000);
}

Process sensor(Scheduler&, std::uint32_t start) {
  while (weft_now32() - start < 300000) {
    const std::uint32_t began = cycles_now();
    dog.alive(SENSOR);
    dog_alive_cycles = cycles_since(began);
    if (const char* name = dog.silent()) dog_silent = static_cast<unsigned char>(*name);
    co_await sleep_until(weft_now32() + 1000);
  }
  dog.leave(SENSOR);
  co_await sleep_until(start + 1000000);
}

}  // namespace

int main() {
  cycles_init();
  weft_list_init(&events, WEFT_LOCAL);
  const char* name = dog.reset_by();
  dog_seen = name ? static_cast<unsigned char>(*name) : 0;
  dog_bytes = sizeof dog;
  dog_ready = 1;
  dog.start();
  const std::uint32_t start = weft_now32();
  (void)scheduler.start(pump(scheduler, start));
  (void)scheduler.start(sensor(scheduler, start));
  scheduler.run();
  return 0;
}
