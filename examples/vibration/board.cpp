// The board's program: it runs goertzel.cpp on a bare RP2040. The samples come from the PC or, if
// the PC says how many blocks it wants, from accelerometer.cpp on the board. The program serves one
// session: the board is reset before the next.
//
//   PC: samples ──► from_pc ──────┐
//                                 ├──heard──► goertzel ──found──► to_pc ──► PC: powers
//   PC: blocks ──► accelerometer ─┘
#include <weft/anywhere.hpp>

#include "weft_mcu/csp_link.hpp"

weft::Process goertzel(weft::Reader<std::int32_t>, weft::Writer<std::int64_t>, std::int32_t,
                       std::int64_t);
weft::Process accelerometer(weft::Writer<std::int32_t>, std::int32_t);

using namespace weft::mcu;
using weft::Status;

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::int32_t> heard;
constinit Channel<std::int64_t> found;

constinit weft_link_end ends[] = {WEFT_LINK_READER("samples"), WEFT_LINK_WRITER("powers"),
                                  WEFT_LINK_READER("blocks")};
constinit std::uint8_t room[256] = {};
constinit weft_link session = make_link(ends, room, "vibration");
constinit Pc pc{scheduler, session};

// The loop awaits in two statements, since g++ 12 miscompiles `co_await a && co_await b` in the
// condition of a loop (cpp/docs/lifetimes.md).
Process from_pc(Scheduler&, FarReader<std::int32_t> in, Writer<std::int32_t> out) {
  for (std::int32_t v;;) {
    if (co_await in.read(v) != Status::ok) break;
    if (co_await out.write(v) != Status::ok) break;
  }
}

// Starts the accelerometer when the PC has said how many blocks it wants. If the PC retires its end
// of `blocks` instead, this process ends, and so retires its end of `heard`.
Process wanted(Scheduler& s, FarReader<std::int32_t> in, Writer<std::int32_t> out) {
  std::int32_t blocks;
  const Status told = co_await in.read(blocks);
  if (told == Status::ok && s.start<accelerometer>(std::move(out), blocks) != WEFT_OK)
    weft_panic("vibration: the arena has no room for the accelerometer");
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
  const bool started =
      scheduler.start(from_pc(scheduler, FarReader<std::int32_t>{pc, ends[0]}, heard.writer())) ==
          WEFT_OK &&
      scheduler.start(wanted(scheduler, FarReader<std::int32_t>{pc, ends[2]}, heard.writer())) ==
          WEFT_OK &&
      scheduler.start<goertzel>(heard.reader(), found.writer(), 32, 23170) == WEFT_OK &&
      scheduler.start(to_pc(scheduler, found.reader(), FarWriter<std::int64_t>{pc, ends[1]})) ==
          WEFT_OK;
  if (!started) weft_panic("vibration: the arena has no room for the processes");
  weft_work(&events);
  return 0;
}
