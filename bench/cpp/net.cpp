// Two programs and a channel between them over TCP on loopback, as links of a network are, without
// TLS (which is Python's: py/net_values.py). Each is a process of its own on its CPU.
//
//   net SAMPLES PER      ns a rendezvous: a write to a channel whose reader is the other program
//
// Every value is checked where it is read.
#include <sys/wait.h>

#include <weft/weft.hpp>
#include <weft/wire/stream.hpp>

#include "pin.hpp"
#include "tcp.hpp"

namespace {
namespace w = weft::wire;

void reads(int fd, long n) {
  w::StreamLink link(w::Space::make("other"), fd, false);
  auto in = link.reader<int>("in");
  for (int i = 0; i < n; ++i)
    if (in() != i) bench::fail("a wrong value came");
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: net SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  const bench::Placement place;
  const auto [here, there] = bench::tcp_pair();
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(here);
    place.pin(1);
    reads(there, (samples + 1) * per);
    ::_exit(0);
  }
  ::close(there);
  place.pin(0);
  {
    w::StreamLink link(w::Space::make("first"), here, false);
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
  int status = 0;
  if (::waitpid(other, &status, 0) != other || status != 0)
    bench::fail("the other program has failed");
}
