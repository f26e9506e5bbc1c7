// pc_recorded: a board whose flight recorder a Python program fetches (mcu/FLIGHT.md). A filter
// squares numbers of the PC, an uplink sends the squares to the PC, and an actor blinks a lamp.
//
//   PC: numbers ──► filter ──squares──► uplink ──► PC: answers          lamp: an action every 50 ms
//
// Build it with FLIGHT=256. Without this option the program does the same and records nothing.
#include "weft_mcu/csp.hpp"
#include "weft_mcu/csp_link.hpp"
#include "weft_mcu/flight_link.h"

using namespace weft;
using namespace weft::mcu;

namespace {

constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::int32_t> squares;

constinit weft_link_end ends[] = {WEFT_LINK_READER("numbers"), WEFT_LINK_WRITER("answers"),
                                  WEFT_FLIGHT_ENDS};
constinit std::uint8_t room[256] = {};
constinit weft_link session = make_link(ends, room, "device");
constinit Pc pc{scheduler, session};
weft_flight_link recorder;

constinit weft_actor lamp = WEFT_ACTOR(0);
weft_event blink;

constexpr weft_flight_name names[] = {{&squares, "squares"}, {&ends[0], "numbers"},
                                      {&ends[1], "answers"}, {&lamp, "lamp"},
                                      {&blink, "blink"}};

Process filter(Scheduler&, FarReader<std::int32_t> in, Writer<std::int32_t> out) {
  std::int32_t v;
  for (;;) {
    const Status s = co_await in.read(v);
    if (s == Status::died) continue;  // the session has ended; the next one brings numbers
    if (s != Status::ok || co_await out.write(v * v) != Status::ok) break;
  }
}

Process uplink(Scheduler&, Reader<std::int32_t> in, FarWriter<std::int32_t> to_pc) {
  std::int32_t v;
  while (co_await in.read(v) == Status::ok) (void)co_await to_pc.write(v);
}

std::uint32_t toggle(weft_event*, std::uint32_t) {
  pin_toggle(25);
  return 50000;
}

}  // namespace

int main() {
  uart_init();
  pin_out(25);
  weft_list_init(&events, WEFT_LOCAL);
  weft_flight_names(names, sizeof names / sizeof names[0]);
  blink = weft_event(WEFT_EVENT(toggle, &lamp));
  weft_post_in(&events, &blink, 50000);
  pc.start();
  recorder.link = &session;
  recorder.ends = &ends[2];
  weft_flight_serve(&recorder);
  (void)scheduler.start(
      filter(scheduler, FarReader<std::int32_t>{pc, ends[0]}, squares.writer()), "filter");
  (void)scheduler.start(
      uplink(scheduler, squares.reader(), FarWriter<std::int32_t>{pc, ends[1]}), "uplink");
  weft_work(&events);
  return 0;
}
