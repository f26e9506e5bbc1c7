// ball_sensors: the tunnelling ball's sensor path as processes (theses/device has a model of the
// device, and the whole controller as actors).
//
//   pin interrupt ──Port──► gate 1 ──┐
//                                    ├─choice─► timing ──► printer ──UART
//   pin interrupt ──Port──► gate 2 ──┘
//
// The edge of a photogate is a burst of edges within a few microseconds. A gate process takes the
// time of the first edge and continues to read until a deadline SETTLE later. An event of the queue
// then ends the read, and the pin's level shows whether the gate was blocked at the time of the
// first edge. The timing process computes from each sighting the microsecond at which the ball will
// be half through the disc. From time to time a dropper releases a ball.
#include "weft_mcu/csp.hpp"
#include "controller.h"

using namespace weft;
using namespace weft::mcu;

#ifndef DROPS
#define DROPS 5
#endif

namespace {

constexpr std::uint32_t kSettle = 40, kHold = 100000, kFall = 400000, kDrain = 500;

struct Sighting {
  std::uint32_t stamp;
  bool blocked;
};
struct Estimate {
  std::uint32_t stamp, arrival;
  std::uint8_t gate;
  bool blocked;
};
using Edges = Port<std::uint32_t, 16>;

constinit weft_queue events{};
constinit Arena<1400> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Edges edges[2]{Edges{scheduler}, Edges{scheduler}};
constinit Channel<std::uint32_t> stamps[2];
constinit Channel<Sighting> sightings[2];
constinit Channel<Estimate, 8> estimates;
constexpr unsigned kPins[2] = {PIN_SENSE1, PIN_SENSE2};

Process gate(Scheduler&, unsigned pin, Reader<std::uint32_t> in, Writer<Sighting> out) {
  bool was = false;
  std::uint32_t stamp, more;
  while (co_await in.read(stamp) == Status::ok) {
    Status s;
    do s = co_await in.read_until(more, stamp + kSettle);
    while (s == Status::ok);
    if (s != Status::timed_out) break;
    const bool blocked = pin_read(pin);
    if (blocked == was) continue;  // The edges were only noise.
    was = blocked;
    if (co_await out.write({stamp, blocked}) != Status::ok) break;
  }
}

Process timing(Scheduler&, Reader<Sighting> first, Reader<Sighting> second, Writer<Estimate> out) {
  Sighting x;
  Alternative<2> alt;
  alt.input(0, first, x);
  alt.input(1, second, x);
  for (;;) {
    const int i = co_await alt.select();
    if (alt.status() != Status::ok) break;
    const std::uint32_t left = before_disc[E1 + 2 * i + (x.blocked ? 0 : 1)];
    if (co_await out.write(
            {x.stamp, x.stamp + left, static_cast<std::uint8_t>(i + 1), x.blocked}) != Status::ok)
      break;
  }
}

Process printer(Scheduler&, Reader<Estimate> in) {
  Estimate e;
  while (co_await in.read(e) == Status::ok) {
    say_line(e.blocked ? "blocked " : "free ", e.gate);
    say_line("at ", e.stamp);
    say_line("arrives ", e.arrival);
    // The UART takes as many characters as its FIFO holds; the remaining characters follow later.
    for (console_drain(); console_out != console_in; console_drain())
      co_await sleep_until(weft_now32() + kDrain);
  }
}

Process dropper(Scheduler&, Writer<std::uint32_t> first, Writer<std::uint32_t> second) {
  std::uint32_t t = weft_now32();
  for (unsigned i = 0; i < DROPS; ++i) {
    pin_high(PIN_MAGNET);
    co_await sleep_until(t += kHold);
    pin_low(PIN_MAGNET);
    co_await sleep_until(t += kFall);
  }
  first.poison();  // Every process along the path sees `poisoned`, and ends.
  second.poison();
}

void start(Process p, const char* name) {
  say_line(name, scheduler.last_frame());
  if (scheduler.start(static_cast<Process&&>(p))) say("no room\n");
}

}  // namespace

extern "C" void weft_isr_io_bank0() {
  const std::uint32_t now = weft_now32();
  for (unsigned i = 0; i < 2; ++i) {
    if (!(WEFT_REG(IO_BANK0_INTR0 + 4 * (kPins[i] / 8)) >> 4 * (kPins[i] % 8) & 12)) continue;
    pin_irq_ack(kPins[i]);
    edges[i].post_value(now);
  }
}

int main() {
  pins_init();
  weft_list_init(&events, WEFT_LOCAL);
  for (unsigned i = 0; i < 2; ++i) edges[i].connect(stamps[i].writer());
  start(gate(scheduler, kPins[0], stamps[0].reader(), sightings[0].writer()), "bytes gate ");
  start(gate(scheduler, kPins[1], stamps[1].reader(), sightings[1].writer()), "bytes gate ");
  start(timing(scheduler, sightings[0].reader(), sightings[1].reader(), estimates.writer()),
        "bytes timing ");
  start(printer(scheduler, estimates.reader()), "bytes printer ");
  start(dropper(scheduler, stamps[0].writer(), stamps[1].writer()), "bytes dropper ");
  for (unsigned pin : kPins) pin_irq_both_edges(pin);
  scheduler.run();
  say_line("dropped ", edges[0].dropped() + edges[1].dropped());
  while (console_out != console_in) console_drain();
  return 0;
}
