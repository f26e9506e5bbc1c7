// panel: a button, a serial line and a watchdog, as processes (mcu/DRIVERS.md). A press of the
// button on pin 17 sends `pressed`; an `x` from the line toggles the LED. If one of the two
// processes hangs, the watchdog resets the chip, and the LED is on from the start.
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/pin_edges.hpp"
#include "weft_mcu/drivers/uart.hpp"
#include "weft_mcu/drivers/watchdog.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

enum { BUTTON = 17, LED = 25, SECOND = 1000000 };

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};

constinit Channel<PinEdge> presses;
constinit Channel<std::uint8_t> received, to_send;
constinit PinEdges<4> button{scheduler, BUTTON, 5000};
constinit Uart<64> uart{scheduler, 0};

enum { KEYS, COMMANDS };
constinit Watchdog<2> dog{scheduler, SECOND / 2, {{"keys", SECOND}, {"commands", SECOND}}};

Process keys(Scheduler&, Reader<PinEdge> in, Writer<std::uint8_t> out) {
  PinEdge edge{};
  for (;;) {
    dog.alive(KEYS);
    const Status s = co_await in.read_until(edge, weft_now32() + SECOND / 4);
    if (s == Status::timed_out || (s == Status::ok && edge.level == 1)) continue;
    if (s != Status::ok) co_return;
    for (const char* text = "pressed\r\n"; *text; ++text)
      (void)co_await out.write(static_cast<std::uint8_t>(*text));
  }
}

Process commands(Scheduler&, Reader<std::uint8_t> in) {
  std::uint8_t byte = 0;
  for (;;) {
    dog.alive(COMMANDS);
    const Status s = co_await in.read_until(byte, weft_now32() + SECOND / 4);
    if (s == Status::ok && byte == 'x') pin_toggle(LED);
    if (s != Status::ok && s != Status::timed_out) co_return;
  }
}

}  // namespace

extern "C" void weft_isr_io_bank0() { button.on_interrupt(); }
extern "C" void weft_isr_uart0() { uart.on_interrupt(); }

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  pin_out(LED);
  if (dog.reset_by()) pin_high(LED);
  pin_in_pull_up(BUTTON);
  button.connect(presses.writer());
  (void)uart.start({.tx = 0, .rx = 1, .baud = 115200}, received.writer(), to_send.reader());
  (void)scheduler.start(keys(scheduler, presses.reader(), to_send.writer()));
  (void)scheduler.start(commands(scheduler, received.reader()));
  dog.start();
  scheduler.run();
  return 0;
}
