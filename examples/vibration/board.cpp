// The board's program: runs goertzel.cpp on a bare RP2040, between two channels of the program on the
// PC. It serves one session: the board is reset before the next.
//
//   PC: samples ──► from_pc ──heard──► goertzel ──found──► to_pc ──► PC: powers
#include <weft/anywhere.hpp>

#include "weft_mcu/csp_link.hpp"

weft::Process goertzel(weft::Reader<std::int32_t>, weft::Writer<std::int64_t>, std::int32_t,
                       std::int64_t);

using namespace weft::mcu;
using weft::Status;

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::int32_t> heard;
constinit Channel<std::int64_t> found;

constinit weft_link_end ends[] = {WEFT_LINK_READER("samples"), WEFT_LINK_WRITER("powers")};
constinit std::uint8_t room[256] = {};
constinit weft_link session = make_link(ends, room, "vibration");
constinit Pc pc{scheduler, session};

// (Two statements in the loop: in its condition g++ 12 gets `co_await a && co_await b` wrong.)
Process from_pc(Scheduler&, FarReader<std::int32_t> in, Writer<std::int32_t> out) {
  for (std::int32_t v;;) {
    if (co_await in.read(v) != Status::ok) break;
    if (co_await out.write(v) != Status::ok) break;
  }
}

Process to_pc(Scheduler&, Reader<std::int64_t> in, FarWriter<std::int64_t> out) {
  for (std::int64_t v;;) {
    if (co_await in.read(v) != Status::ok) break;
    if (co_await out.write(v) != Status::ok) break;
  }
}

}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  pc.start();
  (void)scheduler.start(from_pc(scheduler, FarReader<std::int32_t>{pc, ends[0]}, heard.writer()));
  if (scheduler.start<goertzel>(heard.reader(), found.writer(), 32, 23170) != WEFT_OK) return 1;
  (void)scheduler.start(to_pc(scheduler, found.reader(), FarWriter<std::int64_t>{pc, ends[1]}));
  weft_work(&events);
  return 0;
}
