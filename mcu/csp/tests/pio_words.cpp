// pio_words: two state machines of PIO 1 (rule M29). drivers_streams.mjs watches the pin.
//
//   machine 0 sends back each word inverted: a process writes 100 words, another one compares
//   machine 1 makes a pulse on pin 9 for each word, of word + 2 ticks
//   with `pio_kind` 0 interrupts are off for a while, and machine 0 meets a full FIFO
//   with `pio_kind` 1 the process that compares sleeps first, until words are lost
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/pio.hpp"

using namespace weft;
using namespace weft::mcu;

extern "C" {
volatile std::uint32_t pio_kind, pio_failed, pio_refused, pio_right, pio_wrong, pio_lost,
    pio_stalls, pio_left, pio_bytes, pio_frame;
}

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Pio<32> inverter{scheduler, 1, 0};
constinit Pio<1> pulser{scheduler, 1, 1};
constinit Channel<std::uint32_t> to_invert, inverted, pulses;

enum { WORDS = 100, PULSES = 12, PIN = 9 };

// out x, 32; mov isr, ~x; push block; jmp 0
constexpr std::uint16_t kInvert[] = {0x6020, 0xa0c9, 0x8020, 0x0000};
// set pindirs, 1; pull block; mov x, osr; set pins, 1; jmp x-- 4; set pins, 0; jmp 1
constexpr std::uint16_t kPulse[] = {0xe081, 0x80a0, 0xa027, 0xe001, 0x0044, 0xe000, 0x0001};

constexpr PioSetup kInverter{.program = kInvert, .length = 4, .origin = 5, .pins = 0,
                             .clkdiv = 1u << 16, .execctrl = 3u << 12,
                             .shiftctrl = 1u << 17 | 3u << 18, .pinctrl = 0};
constexpr PioSetup kPulser{.program = kPulse, .length = 7, .origin = 25, .pins = 1u << PIN,
                           .clkdiv = 2u << 16, .execctrl = 6u << 12,
                           .shiftctrl = 3u << 18, .pinctrl = 1u << 26 | PIN << 5};

std::uint32_t word(std::uint32_t i) { return i * 0x9e3779b9u; }

Process ask(Scheduler&, Writer<std::uint32_t> out) {
  for (std::uint32_t i = 0; i < WORDS; ++i) {
    if (pio_kind == 0 && i == 50) __asm volatile("cpsid i" ::: "memory");
    if (pio_kind == 0 && i == 57) __asm volatile("cpsie i" ::: "memory");
    (void)co_await out.write(word(i));
  }
}
Process compare(Scheduler&, Reader<std::uint32_t> in) {
  std::uint32_t got = 0, i = 0;
  if (pio_kind == 1) co_await sleep_until(weft_now32() + 5000);
  for (; i < WORDS; ++i) {
    if (co_await in.read_until(got, weft_now32() + 5000) != Status::ok) break;
    if (got == ~word(i))
      pio_right = pio_right + 1;
    else
      pio_wrong = pio_wrong + 1;
  }
  inverter.close();
}
Process pulse(Scheduler&, Writer<std::uint32_t> out) {
  for (std::uint32_t i = 0; i < PULSES; ++i) (void)co_await out.write(100 + 50 * i);
  co_await sleep_until(weft_now32() + 1000);
}

std::uint32_t refused() {
#if WEFT_DEBUG
  return 6;  // a debug build stops at the first mistake
#else
  static constinit Pio<1> none{scheduler, 2, 0}, other{scheduler, 0, 4};
  const auto refuses = [](auto& p, PioSetup s, std::uint32_t length, std::uint32_t origin) {
    s.length = length;
    s.origin = origin;
    return p.start(s, {}, {}) == WEFT_E_DRIVER ? 1u : 0u;
  };
  return refuses(none, kInverter, 4, 0) + refuses(other, kInverter, 4, 0) +
         refuses(inverter, kInverter, 0, 0) + refuses(inverter, kInverter, 4, 29) +
         refuses(inverter, kInverter, 33, 0) + refuses(inverter, kInverter, 1, 32);
#endif
}

}  // namespace

extern "C" void weft_isr_pio1_0() {
  inverter.on_interrupt();
  pulser.on_interrupt();
}

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  pio_refused = refused();
  int failed = inverter.start(kInverter, inverted.writer(), to_invert.reader());
  pio_frame = scheduler.last_frame();
  failed |= pulser.start(kPulser, {}, pulses.reader());
  failed |= scheduler.start(ask(scheduler, to_invert.writer()));
  failed |= scheduler.start(compare(scheduler, inverted.reader()));
  failed |= scheduler.start(pulse(scheduler, pulses.writer()));
  pio_failed = static_cast<std::uint32_t>(failed);
  pio_bytes = sizeof inverter;
  scheduler.run();
  pio_lost = inverter.lost();
  pio_stalls = inverter.stalls();
  pio_left = scheduler.processes();
  return 0;
}
