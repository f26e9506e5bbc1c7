// drivers: the drivers that weather.cpp does not use, in a program of the pico-sdk. It counts its
// starts in the flash; samples the ADC; lets PWM set pin 25 high a quarter of the time; sends words
// through a program of the PIO; and writes what it finds to the SDK's stdio. run.mjs drives pin 17.
#include <cstdio>

#include "pico/stdlib.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/adc.hpp"
#include "weft_mcu/drivers/flash_store.hpp"
#include "weft_mcu/drivers/pin_edges.hpp"
#include "weft_mcu/drivers/pio.hpp"
#include "weft_mcu/drivers/pwm.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {
using Store = FlashStore<16>;
constinit weft_queue events{};
constinit Arena<4096> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Store store{scheduler, {.origin = 0x1f0000, .sectors = 16}};
constinit AdcStream<2, 8> adc{scheduler};
constinit PinEdges<4> button{scheduler, 17, 1000};
constinit Pwm lamp{scheduler, 4};
constinit Pio<4> inverter{scheduler, 0, 2};
constinit Channel<Store::Request> to_store, from_store;
constinit Channel<AdcBlock<8>> blocks;
constinit Channel<PinEdge> presses;
constinit Channel<PwmSetting> settings;
constinit Channel<std::uint32_t> from_pio, to_pio;

// out x, 32; mov isr, ~x; push; jmp 0
constexpr std::uint16_t kInvert[] = {0x6020, 0xa0c9, 0x8020, 0x0000};

Process all(Scheduler&, Writer<Store::Request> ask, Reader<Store::Request> answer,
            Reader<AdcBlock<8>> samples, Reader<PinEdge> edges, Writer<PwmSetting> set,
            Writer<std::uint32_t> words, Reader<std::uint32_t> inverted) {
  Store::Request r{.op = StoreOp::get, .status = {}, .count = 0, .key = "starts", .bytes = {0}};
  (void)co_await ask.write(r);
  (void)co_await answer.read(r);
  if (r.status == StoreStatus::absent) r.bytes[0] = 0;
  r.op = StoreOp::set;
  r.count = 1;
  ++r.bytes[0];
  (void)co_await ask.write(r);
  (void)co_await answer.read(r);
  std::printf("start %u: %u\n", r.bytes[0], static_cast<unsigned>(r.status));
  AdcBlock<8> block{};
  (void)co_await samples.read(block);
  std::printf("sample %u\n", block.samples[7]);
  adc.close();
  std::uint32_t word = 0;
  (void)co_await words.write(0x12345678);
  (void)co_await inverted.read(word);
  std::printf("word %lx\n", static_cast<unsigned long>(word));
  inverter.close();
  (void)co_await set.write(PwmSetting{.hz = 1000, .a = 0, .b = 16384});
  PinEdge edge{};
  (void)co_await edges.read(edge);
  std::printf("level %lu\n", static_cast<unsigned long>(edge.level));
  button.close();
}
}  // namespace

extern "C" void weft_isr_io_bank0() { button.on_interrupt(); }
extern "C" void weft_isr_dma0() { adc.on_interrupt(); }
extern "C" void weft_isr_pwm() { lamp.on_interrupt(); }
extern "C" void weft_isr_pio0_0() { inverter.on_interrupt(); }

int main() {
  stdio_init_all();
  weft_list_init(&events, WEFT_LOCAL);
  pin_in_pull_up(17);
  int e = store.start();
  e |= store.connect(to_store.reader(), from_store.writer());
  e |= adc.start({.inputs = 1, .hz = 10000, .dma = 0}, blocks.writer());
  button.connect(presses.writer());
  e |= lamp.start({.pins = 1u << 25, .lowest = 1000}, settings.reader());
  e |= inverter.start({.program = kInvert, .length = 4, .origin = 0, .pins = 0,
                       .clkdiv = 1 << 16, .execctrl = 3 << 12, .shiftctrl = 1 << 17 | 3 << 18,
                       .pinctrl = 0},
                      from_pio.writer(), to_pio.reader());
  e |= scheduler.start(all(scheduler, to_store.writer(), from_store.reader(), blocks.reader(),
                           presses.reader(), settings.writer(), to_pio.writer(),
                           from_pio.reader()));
  std::printf("starts %d\n", e);
  scheduler.run();
  std::printf("done\n");
  return 0;
}
