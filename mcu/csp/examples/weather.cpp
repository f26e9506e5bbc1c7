// weather: a weather station of processes (mcu/DRIVERS.md). Every second it reads a temperature
// sensor (LM75) on I2C and shows it on a display of characters (ST7036) on SPI. On the console, `t`
// asks for the temperature and `e` for the number of failed readings. If a process hangs, the
// watchdog resets the chip. In between the core sleeps.
//
//   sensor ──► readings ──► screen ──► SPI 0: clock 18, data 19, select 17; 20 is high for text
//     │ └────► latest ────► console ◄─► UART 1: pins 8, 9
//     └──► I2C 0: pins 4, 5            log ──► UART 0: pins 0, 1 (weft-rp2040 run --log)
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/i2c.hpp"
#include "weft_mcu/drivers/spi.hpp"
#include "weft_mcu/drivers/uart.hpp"
#include "weft_mcu/drivers/watchdog.hpp"
#include "weft_mcu/log.h"

using namespace weft;
using namespace weft::mcu;

namespace {

enum { SENSOR = 0x48, SELECT = 17, TEXT = 20, SECOND = 1000000 };

constinit weft_queue events{};
constinit Arena<4096> frames{};
constinit Scheduler scheduler{&events, frames};
constinit weft_log records{};

using Wire = I2c<4>;
using Screen = Spi<16>;
constinit Wire wire{scheduler, 0};
constinit Screen spi{scheduler, 0};
constinit Uart<1> log_line{scheduler, 0};
constinit Uart<16> console_line{scheduler, 1};

struct Reading {
  std::int32_t tenths;  // of a degree Celsius
  BusStatus status;
};
constinit Channel<Wire::Transfer> to_wire, from_wire;
constinit Channel<Screen::Transfer> to_screen, from_screen;
constinit Channel<Reading> readings, latest;
constinit Channel<std::uint8_t> received, to_send, to_log;

enum { READS, SHOWS, LISTENS, PROCESSES };
constinit Watchdog<PROCESSES> dog{
    scheduler, SECOND, {{"sensor", 2 * SECOND}, {"screen", 2 * SECOND}, {"console", 2 * SECOND}}};

// A line of text, as long as the display is wide.
struct Line {
  char text[16];
  unsigned length = 0;

  void put(char c) {
    if (length < sizeof text) text[length++] = c;
  }
  void put(const char* s) {
    while (*s) put(*s++);
  }
  void put(std::uint32_t n) {
    if (n >= 10) put(n / 10);
    put(static_cast<char>('0' + n % 10));
  }
};

Line in_words(const Reading& r) {
  Line line;
  if (r.status != BusStatus::ok) {
    line.put("no sensor");
    return line;
  }
  if (r.tenths < 0) line.put('-');
  const std::uint32_t tenths = static_cast<std::uint32_t>(r.tenths < 0 ? -r.tenths : r.tenths);
  line.put(tenths / 10);
  line.put('.');
  line.put(tenths % 10);
  line.put(" C");
  return line;
}

Process sensor(Scheduler&, Writer<Wire::Transfer> ask, Reader<Wire::Transfer> answer,
               Writer<Reading> to_show, Writer<Reading> to_tell) {
  Wire::Transfer job{};
  Reading reading{};
  for (std::uint32_t next = weft_now32();; next += SECOND) {
    dog.alive(READS);
    // Register 0 is the temperature: 16 bits, the higher byte first, in 1/256 degree.
    job = {.address = SENSOR, .write = 1, .read = 2, .status = {}, .within = 10000, .bytes = {0}};
    (void)co_await ask.write(job);
    (void)co_await answer.read(job);
    reading.status = job.status;
    if (job.status == BusStatus::ok)
      reading.tenths =
          static_cast<std::int16_t>(static_cast<std::uint16_t>(job.bytes[0] << 8 | job.bytes[1])) *
          10 / 256;
    else
      WEFT_LOG(&records, "the sensor does not answer: status %u",
               static_cast<unsigned>(job.status));
    (void)co_await to_show.write(reading);
    (void)co_await to_tell.write(reading);
    co_await sleep_until(next + SECOND);
  }
}

Process screen(Scheduler&, Reader<Reading> in, Writer<Screen::Transfer> ask,
               Reader<Screen::Transfer> answer) {
  Reading reading{};
  Screen::Transfer job{};
  while (co_await in.read(reading) == Status::ok) {
    dog.alive(SHOWS);
    const Line line = in_words(reading);
    for (unsigned step = 0; step < 2; ++step) {
      job = {.count = 16, .select = SELECT, .mode = 0, .status = {}, .hz = 500000,
             .within = 10000, .bytes = {}};
      if (step == 0) {
        job.count = 1;
        job.bytes[0] = 0x80;  // to the first place
        pin_low(TEXT);
      } else {
        for (unsigned i = 0; i < sizeof job.bytes; ++i)
          job.bytes[i] = i < line.length ? static_cast<std::uint8_t>(line.text[i]) : ' ';
        pin_high(TEXT);
      }
      (void)co_await ask.write(job);
      (void)co_await answer.read(job);
    }
  }
}

Process console(Scheduler&, Reader<std::uint8_t> in, Reader<Reading> news,
                Writer<std::uint8_t> out) {
  Reading reading{0, BusStatus::timed_out};
  std::uint8_t byte = 0;
  std::uint32_t failed = 0;
  Alternative<2> either{Mode::fair};
  either.input(0, in, byte);
  either.input(1, news, reading);
  Line line;
  for (;;) {
    dog.alive(LISTENS);
    const auto which = co_await either.select();
    if (which == 1) {
      if (reading.status != BusStatus::ok) ++failed;
      continue;
    }
    line = byte == 't' ? in_words(reading) : Line{};
    if (byte == 'e') line.put(failed);
    if (line.length == 0) line.put("t or e?");
    for (unsigned i = 0; i < line.length; ++i)
      (void)co_await out.write(static_cast<std::uint8_t>(line.text[i]));
    (void)co_await out.write('\r');
    (void)co_await out.write('\n');
  }
}

Process log(Scheduler&, Writer<std::uint8_t> out) {
  std::uint8_t packet[WEFT_LOG_ROOM];
  for (;;) {
    const std::size_t n = weft_log_packet(&records, packet, sizeof packet);
    for (std::size_t i = 0; i < n; ++i) (void)co_await out.write(packet[i]);
    if (n == 0) co_await sleep_until(weft_now32() + SECOND / 10);
  }
}

}  // namespace

extern "C" void weft_isr_i2c0() { wire.on_interrupt(); }
extern "C" void weft_isr_spi0() { spi.on_interrupt(); }
extern "C" void weft_isr_uart0() { log_line.on_interrupt(); }
extern "C" void weft_isr_uart1() { console_line.on_interrupt(); }

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  if (const char* silent = dog.reset_by())
    WEFT_LOG(&records, "after a reset: the process whose name begins with %c was silent",
             static_cast<unsigned>(silent[0]));
  WEFT_LOG(&records, "the weather station starts");
  pin_out(TEXT);
  int e = wire.start({.sda = 4, .scl = 5, .hz = 100000});
  e |= spi.start({.sck = 18, .tx = 19, .rx = 30, .selects = 1u << SELECT});
  e |= log_line.start({.tx = 0, .rx = 1, .baud = 115200}, {}, to_log.reader());
  e |= console_line.start({.tx = 8, .rx = 9, .baud = 115200}, received.writer(), to_send.reader());
  e |= wire.connect(to_wire.reader(), from_wire.writer());
  e |= spi.connect(to_screen.reader(), from_screen.writer());
  e |= scheduler.start(sensor(scheduler, to_wire.writer(), from_wire.reader(), readings.writer(),
                              latest.writer()));
  e |= scheduler.start(screen(scheduler, readings.reader(), to_screen.writer(),
                              from_screen.reader()));
  e |= scheduler.start(console(scheduler, received.reader(), latest.reader(), to_send.writer()));
  e |= scheduler.start(log(scheduler, to_log.writer()));
  if (e != WEFT_OK) weft_panic("weather: a driver or a process has not started");
  dog.start();
  scheduler.run();
  return 0;
}
