// Choice over N channels, local or shared.
//
// one-shot: as `standing`, with an alternative that enrols again for each select.
// mixed:    an ad hoc select over N readers of channels without a waiting writer and, among them,
//           one output that is always ready: the cost of checking and scanning guards of both
//           directions.
// ready:    a fair select, with two writers waiting at every channel.
// standing: a standing alternative; one writer writes to a pseudo-random channel, but only when the
//           alternative has blocked again. The writer makes sure of that by yielding: the woken
//           process runs before yield() returns (rule 7.7), so that process has selected, and has
//           blocked again.
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common.hpp"

namespace {

template <class P>
using In = weft::Reader<int, P>;
template <class P>
using Out = weft::Writer<int, P>;

template <class P>
weft::Process fair_reader(std::vector<In<P>> in, long samples, long per) {
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

template <bool Stands, class P>
weft::Process standing_reader(std::vector<In<P>> in, long selects) {
  std::conditional_t<Stands, decltype(weft::StandingAlternative(in)),
                     decltype(weft::Alternative(in))>
      alternative(in);
  for (long i = 0; i < selects; ++i) {
    const auto [index, value] = co_await alternative.select();
    if (value != static_cast<int>(index)) bench::fail("select: a wrong value");
  }
}

template <class P>
weft::Process random_writer(std::vector<Out<P>> out, long samples, long per) {
  std::uint32_t random = 2463534242u;  // xorshift32
  bench::Sampler s(samples);
  co_await weft::yield();  // lets the alternative block for the first time
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

template <class P>
void ready(int n, long samples, long per) {
  std::vector<In<P>> in;
  std::vector<weft::Process> all;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, P> c;
    in.push_back(c.reader());
    for (int w = 0; w < 2; ++w) all.push_back(bench::writer<P>(c.writer(), i));
  }
  all.push_back(fair_reader<P>(std::move(in), samples, per));
  weft::run(weft::par(std::move(all)));
}

template <class P>
void standing(bool stand, int n, long samples, long per) {
  std::vector<In<P>> in;
  std::vector<Out<P>> out;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, P> c;
    in.push_back(c.reader());
    out.push_back(c.writer());
  }
  auto reader = (stand ? standing_reader<true, P> : standing_reader<false, P>)(std::move(in),
                                                                               per * (samples + 1));
  weft::run(weft::par(std::move(reader), random_writer<P>(std::move(out), samples, per)));
}

template <class P>
weft::Process mixing(std::vector<In<P>> in, Out<P> out, long samples, long per) {
  const std::size_t middle = in.size() / 2;
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    s.begin();
    for (long i = 0; i < per; ++i) {
      std::vector<weft::AnyGuard<int, P>> guards;
      guards.reserve(in.size() + 1);
      for (std::size_t g = 0; g < in.size(); ++g) {
        if (g == middle) guards.emplace_back(weft::out(out, 1));
        guards.emplace_back(weft::in(in[g]));
      }
      const auto c = co_await weft::select_among<int, P>(std::move(guards));
      if (c.index != static_cast<int>(middle)) bench::fail("select: a wrong guard");
    }
    if (k > 0) s.end(static_cast<double>(per));  // stretch 0 warms up
  }
  s.print();
}

template <class P>
void mixed(int n, long samples, long per) {
  std::vector<In<P>> in;
  std::vector<Out<P>> quiet;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, P> c;
    in.push_back(c.reader());
    quiet.push_back(c.writer());
  }
  weft::Channel<int, P> sink{weft::buffer(1, weft::Overflow::drop_newest)};
  const auto reader = sink.reader();
  weft::run(mixing<P>(std::move(in), sink.writer(), samples, per));
}

template <class P>
void measure(std::string_view kind, int n, long samples, long per) {
  if (kind == "mixed")
    mixed<P>(n, samples, per);
  else if (kind == "ready")
    ready<P>(n, samples, per);
  else
    standing<P>(kind == "standing", n, samples, per);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view policy = argc == 6 ? argv[1] : "", kind = argc == 6 ? argv[2] : "";
  if ((policy != "local" && policy != "shared") ||
      (kind != "mixed" && kind != "ready" && kind != "standing" && kind != "one-shot"))
    bench::fail("usage: select local|shared mixed|ready|standing|one-shot N SAMPLES PER");
  const int n = static_cast<int>(bench::number(argv[3]));
  const long samples = bench::number(argv[4]), per = bench::number(argv[5]);
  (policy == "local" ? measure<weft::Local> : measure<weft::Shared>)(kind, n, samples, per);
}
