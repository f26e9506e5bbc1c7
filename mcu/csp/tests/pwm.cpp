// pwm: a process sets the slice of pins 6 and 7 (rule M28). drivers_streams.mjs watches the pins.
//
// The table of settings is written without a pause up to `fast`, then one setting every 3 ms; then
// the writer ends.
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/pwm.hpp"

using namespace weft;
using namespace weft::mcu;

extern "C" {
volatile std::uint32_t pwm_ready, pwm_failed, pwm_wrong, pwm_refused, pwm_bytes, pwm_frame,
    pwm_small, pwm_left;
struct {
  std::uint32_t count, fast;  // settings; the first `fast` come without a pause
  PwmSetting settings[40];
} volatile pwm_table;
}

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Pwm slice{scheduler, 3};
constinit Channel<PwmSetting> settings;

Process writer(Scheduler&, Writer<PwmSetting> out) {
  for (std::uint32_t i = 0; i < pwm_table.count; ++i) {
    if (i >= pwm_table.fast) co_await sleep_until(weft_now32() + 3000);
    const volatile PwmSetting& s = pwm_table.settings[i];
    if (co_await out.write(PwmSetting{s.hz, s.a, s.b}) != Status::ok) co_return;
  }
  co_await sleep_until(weft_now32() + 3000);
}

std::uint32_t mistakes() {
#if WEFT_DEBUG
  return 0;  // a debug build stops at the first mistake
#else
  static constinit Arena<32> nothing{};
  static constinit Scheduler small{&events, nothing};
  static constinit Pwm other{small, 2}, none{scheduler, 8};
  static constinit Channel<PwmSetting> unused;
  pwm_small = other.start({.pins = 1u << 4, .lowest = 100}, unused.reader()) == WEFT_E_ARENA &&
              !unused.reader();
  const auto refused = [](Pwm& p, PwmLine line) {
    return p.start(line, settings.reader()) == WEFT_E_DRIVER ? 0u : 1u;
  };
  return refused(none, {.pins = 1u << 16, .lowest = 100}) +
         refused(slice, {.pins = 1u << 5, .lowest = 100}) +
         refused(slice, {.pins = 1u << 6 | 1u << 8, .lowest = 100}) +
         refused(slice, {.pins = 0, .lowest = 100}) +
         refused(slice, {.pins = 1u << 30, .lowest = 100}) +
         refused(slice, {.pins = 1u << 6, .lowest = 7}) +
         refused(slice, {.pins = 1u << 6, .lowest = 250001});
#endif
}

}  // namespace

extern "C" void weft_isr_pwm() { slice.on_interrupt(); }

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  Reader<PwmSetting> kept = settings.reader();
  pwm_wrong = mistakes();
  int failed = slice.start({.pins = 1u << 6 | 1u << 7, .lowest = 1000}, std::move(kept));
  pwm_frame = scheduler.last_frame();
#if !WEFT_DEBUG
  pwm_wrong = pwm_wrong +
              (slice.start({.pins = 1u << 6, .lowest = 1000}, settings.reader()) == WEFT_E_DRIVER
                   ? 0
                   : 1);
#endif
  failed |= scheduler.start(writer(scheduler, settings.writer()));
  pwm_failed = static_cast<std::uint32_t>(failed);
  pwm_bytes = sizeof slice;
  pwm_ready = 1;
  scheduler.run();
  pwm_refused = slice.refused();
  pwm_left = scheduler.processes();
  return 0;
}
