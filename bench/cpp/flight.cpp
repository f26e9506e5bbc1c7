// The cost of an event of the flight recorder (rule 14.14): CommsTime on local channels, as in
// commstime.cpp, alternately without a recorder and with one.
//
// In each communication one of the two parties has waited, and the recorder of C++ records only the
// operations that waited. So the recorder records one event for each communication.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <weft/flight.hpp>

#include "commstime.hpp"

namespace {

using Local = weft::Local;

// Stores the ns for a communication, one figure for each stretch but the first.
weft::Process consumer(weft::Reader<int, Local> in, long stretches, long per,
                       std::vector<double>* ns) {
  int expected = 0;
  for (long k = 0; k <= stretches; ++k) {
    const auto start = bench::Clock::now();
    for (long i = 0; i < per; ++i)
      if (co_await in.read() != expected++) bench::fail("flight: read a wrong number");
    const std::chrono::duration<double, std::nano> spent = bench::Clock::now() - start;
    if (k > 0) ns->push_back(spent.count() / (4.0 * static_cast<double>(per)));
  }
}

void commstime(long per, std::vector<double>& ns) {
  weft::Channel<int, Local> a, b, c, d;
  weft::run(weft::par(
      bench::prefix(c.reader(), a.writer()), bench::delta(a.reader(), b.writer(), d.writer()),
      bench::successor<Local>(b.reader(), c.writer()), consumer(d.reader(), 10, per, &ns)));
}

// Prints the ns for a communication, with the recorder ("on") and without it ("off"). "event"
// prints one figure for a run: the minimum with the recorder minus the minimum without it. On a
// machine that changes its clock rate, the difference of single samples means nothing.
void recorded(std::string_view what, long samples, long per) {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path =
      std::string(folder ? folder : "/tmp") + "/weft-bench-flight-" + std::to_string(getpid());
  std::vector<double> on, off;
  for (long k = 0; k < samples; k += 10) {
    commstime(per, off);
    weft::flight recorder(path, 1 << 20);
    commstime(per, on);
  }
  std::remove(path.c_str());
  if (what == "event") on = {std::ranges::min(on) - std::ranges::min(off)};
  std::printf("ns");
  for (const double v : what == "off" ? off : on) std::printf(" %.3f", v);
  std::printf("\n");
}

// Prints the ns that one reading of the recorder's clock takes; the recorder reads it for each
// event.
void clock_alone(long samples, long per) {
  bench::Sampler s(samples);
  std::uint64_t sum = 0;
  for (long k = 0; k < samples; ++k) {
    s.begin();
    for (long i = 0; i < 4 * per; ++i) sum += weft::runtime::flight::Clock::now();
    s.end(4.0 * static_cast<double>(per));
  }
  if (sum == 0) bench::fail("flight: the clock stands still");
  s.print();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 4 ? argv[1] : "";
  if (what == "event" || what == "on" || what == "off")
    recorded(what, bench::number(argv[2]), bench::number(argv[3]));
  else if (what == "clock")
    clock_alone(bench::number(argv[2]), bench::number(argv[3]));
  else
    bench::fail("usage: flight event|on|off|clock SAMPLES PER");
}
