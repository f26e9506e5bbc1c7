// N writers and one reader on one shared rendezvous channel.
//
// one: a single scheduler runs all of them. two: a second scheduler, on a thread and a CPU of its
// own, runs every other writer; both schedulers use the same channel at the same time.
//
// Only the steady state of the network is measured: the reader warms up until every writer has been
// served, and for one more stretch. A thread takes a while to start: without the warm-up, a run
// with few samples would end before the second scheduler takes part.
#include <string_view>
#include <thread>

#include "common.hpp"
#include "pin.hpp"

namespace {

// A writer that has not been served for this long counts as never served.
constexpr std::chrono::seconds kPatience{20};

weft::Process reader(weft::Reader<int> in, int n, long samples, long per) {
  std::vector<bool> served(static_cast<std::size_t>(n));
  const auto give_up = bench::Clock::now() + kPatience;
  for (int left = n; left > 0;) {
    for (long i = 0; i < per; ++i) {
      const int writer = co_await in.read();
      auto known = served[static_cast<std::size_t>(writer)];
      left -= !known;
      known = true;
    }
    if (left > 0 && bench::Clock::now() > give_up)
      bench::fail("contention: a writer was never served");
  }
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    long sum = 0;
    for (long i = 0; i < per; ++i) sum += co_await in.read();
    if (sum < 0 || sum > per * (n - 1)) bench::fail("contention: read what nobody wrote");
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
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
  for (int i = 0; i < n; ++i)
    (kind == "two" && i % 2 == 1 ? there : here)
        .push_back(bench::writer<weft::Shared>(c.writer(), i));
  here.push_back(reader(c.reader(), n, samples, per));
  std::thread second;
  if (!there.empty())
    second =
        std::thread([token = weft::Outside(), &placement, writers = std::move(there)]() mutable {
          placement.pin(1);
          weft::run(weft::par(std::move(writers)));
        });
  placement.pin(0);
  weft::run(weft::par(std::move(here)));
  if (second.joinable()) second.join();
}
