// driver_mistakes: misuse of the drivers, which a debug build must name over UART 0 (rule M15).
// drivers_buses.mjs sets `mistake` before main(). The tests of the drivers check that a release
// build refuses the same mistakes.
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/adc.hpp"
#include "weft_mcu/drivers/flash_store.hpp"
#include "weft_mcu/drivers/i2c.hpp"
#include "weft_mcu/drivers/pio.hpp"
#include "weft_mcu/drivers/pwm.hpp"
#include "weft_mcu/drivers/spi.hpp"

using namespace weft;
using namespace weft::mcu;

extern "C" {
volatile std::uint32_t mistake;
}

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
constinit I2c<8> wire{scheduler, 0};
constinit Spi<8> spi{scheduler, 0};
constinit AdcStream<1, 8> adc{scheduler};
constinit Pwm pwm{scheduler, 3};
constinit FlashStore<8> store{scheduler, {.origin = 0x1f0000, .sectors = 4}};
constinit FlashStore<8> longer{scheduler, {.origin = 0x1f0000, .sectors = 5}};
constinit FlashStore<8> crooked{scheduler, {.origin = 0x1f0001, .sectors = 4}};
constinit Pio<1> pio{scheduler, 0, 0};
constinit Channel<I2c<8>::Transfer> to_wire, from_wire;
constinit Channel<Spi<8>::Transfer> to_spi, from_spi;
constinit Channel<FlashStore<8>::Request> to_store, from_store;
constinit Channel<AdcBlock<8>> blocks;
constinit Channel<PwmSetting> settings;

template <class T>
Process once(Scheduler&, Writer<T> out, T value) {
  (void)co_await out.write(value);
}

// g++ 12 gives this function a wrong frame: the first statement awaits in a condition. Other
// compilers give it a correct frame.
Process no_variable(Scheduler&, Writer<PwmSetting> out) {
  if (co_await out.write({}) != Status::ok) co_return;
  out.poison();
}

constexpr I2cLine kWire{.sda = 4, .scl = 5, .hz = 100000};
constexpr SpiLine kSpi{.sck = 18, .tx = 19, .rx = 16, .selects = 1u << 17};
constexpr PwmLine kPwm{.pins = 1u << 6, .lowest = 100};
constexpr AdcLine kAdc{.inputs = 1, .hz = 1000, .dma = 0};

void i2c_request(I2c<8>::Transfer request) {
  (void)wire.start(kWire);
  (void)wire.connect(to_wire.reader(), from_wire.writer());
  (void)scheduler.start(once(scheduler, to_wire.writer(), request));
}
void spi_request(Spi<8>::Transfer request) {
  (void)spi.start(kSpi);
  (void)spi.connect(to_spi.reader(), from_spi.writer());
  (void)scheduler.start(once(scheduler, to_spi.writer(), request));
}
void store_request(FlashStore<8>::Request request) {
  (void)store.start();
  (void)store.connect(to_store.reader(), from_store.writer());
  (void)scheduler.start(once(scheduler, to_store.writer(), request));
}
void pwm_setting(PwmSetting setting) {
  (void)pwm.start(kPwm, settings.reader());
  (void)scheduler.start(once(scheduler, settings.writer(), setting));
}

void pio_program(std::uint32_t length) {
  static constexpr std::uint16_t kNothing[] = {0x0000};
  (void)pio.start({.program = kNothing, .length = length, .origin = 0, .pins = 0, .clkdiv = 1 << 16,
                   .execctrl = 0, .shiftctrl = 0, .pinctrl = 0},
                  {}, {});
}

void make() {
  switch (mistake) {
    case 1: (void)wire.connect(to_wire.reader(), from_wire.writer()); break;
    case 2: (void)wire.start(kWire), (void)wire.start(kWire); break;
    case 3: (void)wire.start({.sda = 6, .scl = 7, .hz = 100000}); break;
    case 4: (void)wire.start({.sda = 4, .scl = 5, .hz = 2000000}); break;
    case 5:
      i2c_request({.address = 0x90, .write = 1, .read = 0, .status = {}, .within = 100,
                   .bytes = {}});
      break;
    case 6: (void)spi.start({.sck = 18, .tx = 17, .rx = 16, .selects = 1}); break;
    case 7: (void)spi.start({.sck = 18, .tx = 19, .rx = 16, .selects = 0}); break;
    case 8:
      spi_request({.count = 9, .select = 17, .mode = 0, .status = {}, .hz = 1000000, .within = 100,
                   .bytes = {}});
      break;
    case 9: (void)adc.start({.inputs = 1, .hz = 1, .dma = 0}, blocks.writer()); break;
    case 10: (void)adc.start(kAdc, blocks.writer()), (void)adc.start(kAdc, blocks.writer()); break;
    case 11: (void)pwm.start({.pins = 1u << 5, .lowest = 100}, settings.reader()); break;
    case 12:
      (void)pwm.start(kPwm, settings.reader());
      (void)pwm.start(kPwm, settings.reader());
      break;
    case 13: (void)scheduler.start(no_variable(scheduler, settings.writer())); break;
    case 14: pio_program(33); break;
    case 15: pio_program(1), pio_program(1); break;
    case 16: (void)store.start(), (void)store.start(); break;
    case 17: (void)crooked.start(); break;
    case 18: (void)store.start(), (void)longer.start(); break;
    case 19: (void)store.connect(to_store.reader(), from_store.writer()); break;
    case 20:
      store_request({.op = StoreOp::set, .status = {}, .count = 9, .key = "k", .bytes = {}});
      break;
    default: pwm_setting({.hz = 10, .a = 0, .b = 0});
  }
}

}  // namespace

extern "C" void weft_isr_dma0() { adc.on_interrupt(); }

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  make();
  scheduler.run();
  uart_puts("not named\n");
  return 0;
}
