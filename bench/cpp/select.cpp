// Choice over N local channels.
//
// one-shot: as standing, with an alternative that enrols anew for each select.
// ready:    a fair select, two writers waiting at every channel.
// standing: a standing alternative; one writer writes to a pseudo-random channel only once the
// alternative has blocked again. It knows by
//           yielding: the woken process runs before yield() returns (rule 7.7) and has selected,
//           and so blocked, again.
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common.hpp"

namespace {

using In = weft::Reader<int, weft::Local>;
using Out = weft::Writer<int, weft::Local>;

weft::Process fair_reader(std::vector<In> in, long samples, long per) {
  weft::Alternative alternative(in);
  std::vector<long> taken(in.size());
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      const auto [index, value] = co_await alternative.select();
      if (value != static_cast<int>(index)) bench::fail("select: a wrong value");
      ++taken[index];
    }
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  for (long n : taken)  // all guards stay ready: each is chosen within N selects (rule 5.4)
    if (n < per * (samples + 1) / static_cast<long>(2 * in.size())) bench::fail("select: not fair");
  s.print();
}

template <bool Stands>
weft::Process standing_reader(std::vector<In> in, long selects) {
  std::conditional_t<Stands, decltype(weft::StandingAlternative(in)), decltype(weft::Alternative(in))> alternative(in);
  for (long i = 0; i < selects; ++i) {
    const auto [index, value] = co_await alternative.select();
    if (value != static_cast<int>(index)) bench::fail("select: a wrong value");
  }
}

weft::Process random_writer(std::vector<Out> out, long samples, long per) {
  std::uint32_t random = 2463534242u;  // xorshift32
  bench::Sampler s(samples);
  co_await weft::yield();  // the alternative blocks for the first time
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      const std::size_t at = random % out.size();
      co_await out[at].write(static_cast<int>(at));
      co_await weft::yield();
    }
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
}

void ready(int n, long samples, long per) {
  std::vector<In> in;
  std::vector<weft::Process> all;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, weft::Local> c;
    in.push_back(c.reader());
    for (int w = 0; w < 2; ++w) all.push_back(bench::writer<weft::Local>(c.writer(), i));
  }
  all.push_back(fair_reader(std::move(in), samples, per));
  weft::run(weft::par(std::move(all)));
}

void standing(bool stand, int n, long samples, long per) {
  std::vector<In> in;
  std::vector<Out> out;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, weft::Local> c;
    in.push_back(c.reader());
    out.push_back(c.writer());
  }
  auto reader = (stand ? standing_reader<true> : standing_reader<false>)(std::move(in), per * (samples + 1));
  weft::run(weft::par(std::move(reader), random_writer(std::move(out), samples, per)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[1] : "";
  if (kind != "ready" && kind != "standing" && kind != "one-shot") bench::fail("usage: select ready|standing|one-shot N SAMPLES PER");
  const int n = static_cast<int>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  if (kind == "ready")
    ready(n, samples, per);
  else
    standing(kind == "standing", n, samples, per);
}
