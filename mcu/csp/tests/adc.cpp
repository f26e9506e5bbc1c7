// adc: a process reads blocks of samples (rule M27). drivers_streams.mjs sets `adc_kind` before
// main(), drives the inputs, and checks each block in adc_seen().
//
//   0: 200 blocks of input 0, 100,000 samples a second
//   1: the same; the process sleeps for 10 ms after 20 blocks
//   2: the same; interrupts are off for 1, 1.5 and 2.1 ms after 20, 40 and 60 blocks
//   3: inputs 1, 3 and 4 in turns, 44,100 a second in all
//   4: input 0 at 500,000 a second
//   5: close() after 20 blocks
//   6: the reader ends after 20 blocks, and another process sleeps for 20 ms
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/adc.hpp"

using namespace weft;
using namespace weft::mcu;

using Stream = AdcStream<4, 64>;

extern "C" {
volatile std::uint32_t adc_kind, adc_failed, adc_wrong, adc_lost, adc_overruns, adc_bytes, adc_end,
    adc_ready;
[[gnu::noinline]] void adc_seen(const Stream::Block* block) { __asm volatile("" ::"r"(block)); }
}

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Stream stream{scheduler};
constinit Channel<Stream::Block> blocks;

void hold_interrupts_off(std::uint32_t us) {
  const std::uint32_t start = weft_now32();
  __asm volatile("cpsid i" ::: "memory");
  while (weft_now32() - start < us) {}
  __asm volatile("cpsie i" ::: "memory");
}

Process reader(Scheduler&, Reader<Stream::Block> in) {
  Stream::Block block;
  Status s;
  for (std::uint32_t n = 0; (s = co_await in.read(block)) == Status::ok;) {
    adc_seen(&block);
    if (++n == 200) stream.close();
    if (n == 20 && adc_kind == 1) co_await sleep_until(weft_now32() + 10000);
    if (adc_kind == 2) {
      if (n == 20) hold_interrupts_off(1000);
      if (n == 40) hold_interrupts_off(1500);
      if (n == 60) hold_interrupts_off(2100);
    }
    if (n == 20 && adc_kind == 5) stream.close();
    if (n == 20 && adc_kind == 6) co_return;
  }
  adc_end = static_cast<std::uint32_t>(s);
}
Process sleeper(Scheduler&) { co_await sleep_until(weft_now32() + 40000); }

std::uint32_t mistakes() {
#if WEFT_DEBUG
  return 0;  // a debug build stops at the first mistake
#else
  const auto refused = [](AdcLine line, Writer<Stream::Block> out) {
    return stream.start(line, std::move(out)) == WEFT_E_DRIVER ? 0u : 1u;
  };
  return refused({.inputs = 0, .hz = 1000, .dma = 0}, blocks.writer()) +
         refused({.inputs = 0x20, .hz = 1000, .dma = 0}, blocks.writer()) +
         refused({.inputs = 1, .hz = 732, .dma = 0}, blocks.writer()) +
         refused({.inputs = 1, .hz = 500001, .dma = 0}, blocks.writer()) +
         refused({.inputs = 1, .hz = 1000, .dma = 11}, blocks.writer()) +
         refused({.inputs = 1, .hz = 1000, .dma = 0}, {});
#endif
}

}  // namespace

extern "C" void weft_isr_dma0() { stream.on_interrupt(); }

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  Writer<Stream::Block> kept = blocks.writer();
  adc_wrong = mistakes();
  const AdcLine line{.inputs = adc_kind == 3 ? 0x1au : 1u,
                     .hz = adc_kind == 3 ? 44100u : adc_kind == 4 ? 500000u : 100000u,
                     .dma = 3};
  int failed = scheduler.start(reader(scheduler, blocks.reader()));
  failed |= stream.start(line, std::move(kept));
#if !WEFT_DEBUG
  adc_wrong = adc_wrong + (stream.start(line, blocks.writer()) == WEFT_E_DRIVER ? 0 : 1);
#endif
  if (adc_kind == 6) failed |= scheduler.start(sleeper(scheduler));
  adc_failed = static_cast<std::uint32_t>(failed);
  adc_bytes = sizeof stream;
  adc_ready = 1;
  scheduler.run();
  adc_lost = stream.lost();
  adc_overruns = stream.overruns();
  return 0;
}
