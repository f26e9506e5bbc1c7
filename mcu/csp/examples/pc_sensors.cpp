// pc_sensors: processes on a board use channels of a Python program on a PC. A sampler measures
// every millisecond while the PC wants samples. A filter takes the mean of as many samples as the
// PC has asked for. An uplink writes the mean to the PC; while the PC does not read, all of these
// processes wait.
//
//   PC: rates ──► control ──rate──► sampler ──samples──► filter ──means──► uplink ──► PC: means
#include "weft_mcu/csp.hpp"
#include "weft_mcu/csp_link.hpp"

using namespace weft;
using namespace weft::mcu;

namespace {

constinit weft_queue events{};
constinit Arena<2048> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Channel<std::int32_t> samples, means;
constinit Channel<std::uint32_t> rates;

constinit weft_link_end ends[] = {WEFT_LINK_READER("rates"), WEFT_LINK_WRITER("means")};
constinit std::uint8_t room[256] = {};
constinit weft_link session = make_link(ends, room, "sensors");
constinit Pc pc{scheduler, session};

// Returns the reading of a sensor; here it is a ramp.
std::int32_t measure() {
  static std::int32_t n;
  return n++;
}

// Serves one session after the other. The PC sends the number of samples per mean.
Process control(Scheduler&, FarReader<std::uint32_t> from_pc, Writer<std::uint32_t> out) {
  std::uint32_t n;
  for (;;) {
    const Status s = co_await from_pc.read(n);
    if (s != Status::ok && s != Status::died) break;
    if (s == Status::ok && co_await out.write(n) != Status::ok) break;
  }
}

Process filter(Scheduler&, Reader<std::uint32_t> rate, Reader<std::int32_t> in,
               Writer<std::int32_t> out) {
  std::uint32_t of = 0, n = 0;
  std::int32_t sum = 0, v;
  Alternative<2> alt{Mode::priority};
  alt.input(0, rate, of);
  alt.input(1, in, v);
  for (;;) {
    alt.enable(1, of != 0);
    const int which = co_await alt.select();
    if (alt.status() != Status::ok) break;
    if (which == 0) {
      n = 0, sum = 0;
      continue;
    }
    sum += v;
    if (++n < of) continue;
    if (co_await out.write(sum / static_cast<std::int32_t>(n)) != Status::ok) break;
    n = 0, sum = 0;
  }
}

Process sampler(Scheduler&, Writer<std::int32_t> out) {
  for (std::uint32_t t = weft_now32();;) {
    if (co_await out.write(measure()) != Status::ok) break;
    co_await sleep_until(t += 1000);
  }
}

Process uplink(Scheduler&, Reader<std::int32_t> in, FarWriter<std::int32_t> to_pc) {
  std::int32_t v;
  while (co_await in.read(v) == Status::ok) {
    const Status s = co_await to_pc.write(v);
    if (s == Status::retired || s == Status::poisoned)
      break;  // The PC reads no more means: every process ends.
  }
}

}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  pc.start();
  (void)scheduler.start(control(scheduler, FarReader<std::uint32_t>{pc, ends[0]}, rates.writer()));
  (void)scheduler.start(filter(scheduler, rates.reader(), samples.reader(), means.writer()));
  (void)scheduler.start(sampler(scheduler, samples.writer()));
  (void)scheduler.start(uplink(scheduler, means.reader(), FarWriter<std::int32_t>{pc, ends[1]}));
  weft_work(&events);
  return 0;
}
