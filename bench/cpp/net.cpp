// Two programs and a channel between them over TCP on loopback, the transport of a network's links,
// without TLS (py/net_values.py measures it with TLS). Each program is an OS process on its own
// CPU.
//
//   net int SAMPLES PER      ns a rendezvous: a write to a channel whose reader is the other
//                            program
//   net 1mb SAMPLES PER      ns one way of a megabyte, a vector of doubles, from before the write
//                            to after the read, by the system's clock; the reader requests each
//
// Every value is checked by its reader.

#include <cstdint>
#include <weft/weft.hpp>
#include <weft/wire/stream.hpp>

#include "pin.hpp"
#include "tcp.hpp"

namespace {
namespace w = weft::wire;

using Array = std::vector<double>;
constexpr std::size_t kDoubles = (std::size_t{1} << 20) / sizeof(double);

Array megabyte() {
  Array a(kDoubles);
  for (std::size_t i = 0; i < kDoubles; ++i) a[i] = static_cast<double>(i);
  return a;
}
std::int64_t now() { return bench::Clock::now().time_since_epoch().count(); }

void reads(int fd, long n) {
  w::StreamLink link(w::Space::make("other"), fd, false);
  auto in = link.reader<int>("in");
  for (int i = 0; i < n; ++i)
    if (in() != i) bench::fail("a wrong value came");
}
void sends(int fd, long n) {
  w::StreamLink link(w::Space::make("other"), fd, false);
  auto asked = link.reader<int>("asks");
  auto out = link.writer<Array>("arrays");
  auto clock = link.writer<std::int64_t>("clock");
  const Array a = megabyte();
  for (long i = 0; i < n; ++i) {
    asked();
    Array mine = a;  // the write moves its value
    const std::int64_t began = now();
    out(std::move(mine));
    clock(began);
  }
}

void ints(int fd, long samples, long per) {
  w::StreamLink link(w::Space::make("first"), fd, false);
  weft::Channel<int> c;
  weft::Writer<int> out = c.writer();
  link.give(c.reader(), "in");
  bench::Sampler sampler(samples);
  int x = 0;
  for (long k = 0; k <= samples; ++k) {  // stretch 0 warms up
    sampler.begin();
    for (long i = 0; i < per; ++i) out(x++);
    if (k > 0) sampler.end(static_cast<double>(per));
  }
  sampler.print();
}
void arrays(int fd, long samples, long per) {
  w::StreamLink link(w::Space::make("first"), fd, false);
  weft::Channel<int> asks;
  weft::Channel<Array> arrays;
  weft::Channel<std::int64_t> clock;
  weft::Writer<int> ask = asks.writer();
  weft::Reader<Array> in = arrays.reader();
  weft::Reader<std::int64_t> when = clock.reader();
  link.give(asks.reader(), "asks");
  link.give(arrays.writer(), "arrays");
  link.give(clock.writer(), "clock");
  const Array expected = megabyte();
  std::vector<double> means;
  for (long k = 0; k <= samples; ++k) {  // stretch 0 warms up
    std::int64_t total = 0;
    for (long i = 0; i < per; ++i) {
      ask(1);
      const Array come = in();
      total += now();
      total -= when();
      if (come != expected) bench::fail("a wrong array came");
    }
    if (k > 0) means.push_back(static_cast<double>(total) / static_cast<double>(per));
  }
  bench::print_means(means);
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "int" && what != "1mb") bench::fail("usage: net int|1mb SAMPLES PER");
  const long samples = bench::number(argv[2]), per = bench::number(argv[3]);
  const bench::Placement place;
  const auto [here, there] = bench::tcp_pair();
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(here);
    place.pin(1);
    what == "int" ? reads(there, (samples + 1) * per) : sends(there, (samples + 1) * per);
    ::_exit(0);
  }
  ::close(there);
  place.pin(0);
  what == "int" ? ints(here, samples, per) : arrays(here, samples, per);
  bench::ended_well(other, "net");
}
