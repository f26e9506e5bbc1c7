// uart: a process that sends back what UART 1 receives, with bit 7 turned (rule M25). Bytes below
// 32 are commands; drivers.mjs plays the terminal, and reads the figures from memory when the
// program has ended.
//
//   1: sleep for 20 ms. 2: hold interrupts off for 5 ms. 3: end. 4: send 192 bytes.
//
// uart_blocks.cpp is this program with UartBlock as the value; a command is a block's first byte.
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/uart.hpp"

using namespace weft;
using namespace weft::mcu;

extern "C" {
volatile std::uint32_t uart_ready, uart_lost, uart_overruns, uart_breaks, uart_framing, uart_bytes,
    uart_frame, uart_failed, uart_left, uart_refused;
}

namespace {

constinit weft_queue events{};
constinit Arena<512> frames{};
constinit Scheduler scheduler{&events, frames};
#ifdef BLOCKS
using Value = UartBlock;
constinit Uart<8, Value> uart{scheduler, 1};
std::uint8_t first(const Value& value) { return value.bytes[0]; }
void count(Value& value, unsigned i) {
  value.count = 8;
  for (std::uint8_t& byte : value.bytes) byte = static_cast<std::uint8_t>(i++);
}
void turn(Value& value) {
  for (std::uint8_t& byte : value.bytes) byte ^= 0x80;
}
#else
using Value = std::uint8_t;
constinit Uart<64> uart{scheduler, 1};
std::uint8_t first(Value value) { return value; }
void count(Value& value, unsigned i) { value = static_cast<std::uint8_t>(i); }
void turn(Value& value) { value ^= 0x80; }
#endif
constexpr unsigned kStep = sizeof(Value) == 1 ? 1 : 8;
constinit Channel<Value> received, to_send;

Process echo(Scheduler&, Reader<Value> in, Writer<Value> out) {
  Value value;
  while (co_await in.read(value) == Status::ok) {
    switch (first(value)) {
      case 1: co_await sleep_until(weft_now32() + 20000); break;
      case 2: {
        const std::uint32_t start = weft_now32();
        __asm volatile("cpsid i" ::: "memory");
        while (weft_now32() - start < 5000) {}
        __asm volatile("cpsie i" ::: "memory");
        break;
      }
      case 3: uart.close(); break;
      case 4:
        for (unsigned i = 0; i < 192; i += kStep) {
          count(value, i);
          (void)co_await out.write(value);
        }
        break;
      default: {
        turn(value);
        (void)co_await out.write(value);
      }
    }
  }
}

}  // namespace

#if !WEFT_DEBUG  // a debug build stops where the arena has no room
namespace {
constinit Arena<32> nothing{};
constinit Scheduler small{&events, nothing};
constinit Channel<Value> from, to;
constinit Uart<1, Value> other{small, 0};
// An arena without room: the ends are dropped, so both channels retire.
bool refused() {
  Reader<Value> in = from.reader();
  Writer<Value> out = to.writer();
  const int e = other.start({.tx = 0, .rx = 1, .baud = 9600}, from.writer(), to.reader());
  return e == WEFT_E_ARENA && !from.writer() && !to.reader();
}
}  // namespace
#else
static bool refused() { return true; }
#endif

extern "C" void weft_isr_uart1() { uart.on_interrupt(); }

int main() {
  weft_list_init(&events, WEFT_LOCAL);
  int failed = uart.start({.tx = 4, .rx = 5, .baud = 115200}, received.writer(), to_send.reader());
  uart_frame = scheduler.last_frame();
  failed |= scheduler.start(echo(scheduler, received.reader(), to_send.writer()));
  uart_failed = failed;
  uart_refused = refused();
  uart_bytes = sizeof uart;
  uart_ready = 1;
  scheduler.run();
  uart_lost = uart.lost();
  uart_overruns = uart.overruns();
  uart_breaks = uart.breaks();
  uart_framing = uart.framing_errors();
  uart_left = scheduler.processes();
  return 0;
}
