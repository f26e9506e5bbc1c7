// Measures the cost of a process, which is made, scheduled, run to its end and destroyed. Its body
// adds one to a counter.
//
// par: PER processes in one parallel; each: PER processes one after another, each awaited; threads:
// PER parallels of one weft::thread; std::thread: like `threads`, but with bare threads (the
// bound).
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "common.hpp"

namespace {

weft::Process count(long& n) {
  ++n;
  co_return;
}

weft::Process each(long samples, long per) {
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    long n = 0;
    s.begin();
    for (long i = 0; i < per; ++i) co_await count(n);
    if (k > 0) s.end(static_cast<double>(per));
    if (n != per) bench::fail("create: a process did not run");
  }
  s.print();
}

weft::Process in_parallel(long samples, long per) {
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    long n = 0;
    s.begin();
    std::vector<weft::Process> all;
    all.reserve(static_cast<std::size_t>(per));
    for (long i = 0; i < per; ++i) all.push_back(count(n));
    co_await weft::par(std::move(all));
    if (k > 0) s.end(static_cast<double>(per));
    if (n != per) bench::fail("create: a process did not run");
  }
  s.print();
}

template <class Start>
void threads(long samples, long per, Start start) {
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    std::atomic<long> n = 0;
    s.begin();
    for (long i = 0; i < per; ++i) start(n);
    if (k > 0) s.end(static_cast<double>(per));
    if (n != per) bench::fail("create: a thread did not run");
  }
  s.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: create par|each|threads|std::thread SAMPLES PER");
  const std::string_view kind = argv[1];
  const long samples = bench::number(argv[2]), per = bench::number(argv[3]);
  if (kind == "par")
    weft::run(in_parallel(samples, per));
  else if (kind == "each")
    weft::run(each(samples, per));
  else if (kind == "threads")
    threads(samples, per, [](std::atomic<long>& n) { weft::run(weft::thread([&n] { ++n; })); });
  else if (kind == "std::thread")
    threads(samples, per, [](std::atomic<long>& n) { std::thread([&n] { ++n; }).join(); });
  else
    bench::fail("usage: create par|each|threads|std::thread SAMPLES PER");
}
