// N writers, one reader, one shared rendezvous channel.
//
// one: a single scheduler runs all of them. two: a second scheduler, on a thread and a CPU of its own, runs every other writer; both
// work at the same channel at the same time.
#include <string_view>
#include <thread>

#include "common.hpp"
#include "pin.hpp"

namespace {

weft::Process reader(weft::Reader<int> in, int n, long samples, long per) {
  std::vector<long> taken(static_cast<std::size_t>(n));
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) ++taken[static_cast<std::size_t>(co_await in.read())];
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
  for (const long t : taken)
    if (t == 0) bench::fail("contention: a writer was never served");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[1] : "";
  if (kind != "one" && kind != "two") bench::fail("usage: contention one|two N SAMPLES PER");
  const int n = static_cast<int>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  const bench::Placement placement;
  weft::Channel<int> c;
  std::vector<weft::Process> here, there;
  for (int i = 0; i < n; ++i) (kind == "two" && i % 2 == 1 ? there : here).push_back(bench::writer<weft::Shared>(c.writer(), i));
  here.push_back(reader(c.reader(), n, samples, per));
  std::thread second;
  if (!there.empty())
    second = std::thread([token = weft::Outside(), &placement, writers = std::move(there)]() mutable {
      placement.pin(1);
      weft::run(weft::par(std::move(writers)));
    });
  placement.pin(0);
  weft::run(weft::par(std::move(here)));
  if (second.joinable()) second.join();
}
