// A ring of N processes over local or shared channels, each with a body of two lines; a token is
// passed round the ring. With `exit` the program ends immediately. Otherwise every process learns
// by an exception that its channel has retired, one process after another, which takes some
// microseconds for each process.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "common.hpp"

namespace {

template <class P>
weft::Process token(weft::Writer<int, P> out, weft::Reader<int, P> in, int n, long before,
                    long samples, long per, bool leave) {
  bench::Sampler s(samples);
  for (long k = 0; k <= samples; ++k) {
    const long laps = k == 0 ? 1 : per;
    s.begin();
    for (long i = 0; i < laps; ++i) {
      co_await out.write(0);
      if (co_await in.read() != n - 1) bench::fail("ring: the token came back with a wrong number");
    }
    if (k > 0)
      s.end(static_cast<double>(per) * n);
    else  // after the first lap every process has run and the ring is complete
      std::printf("bytes %.1f\n", static_cast<double>(bench::resident() - before) / n);
  }
  s.print();
  if (leave) {
    std::fflush(stdout);
    std::_Exit(0);
  }
}

template <class P>
void ring(int n, long samples, long per, bool leave) {
  const long before = bench::resident();
  std::vector<weft::Process> all;
  all.reserve(static_cast<std::size_t>(n));
  weft::Channel<int, P> first;
  weft::Reader<int, P> in = first.reader();
  for (int i = 1; i < n; ++i) {  // process n is the process that makes the token
    weft::Channel<int, P> next;
    all.push_back(bench::successor<P>(std::move(in), next.writer()));
    in = next.reader();
  }
  all.push_back(token<P>(first.writer(), std::move(in), n, before, samples, per, leave));
  weft::run(weft::par(std::move(all)));
}

}  // namespace

int main(int argc, char** argv) {
  const bool leave = argc == 6 && std::string_view(argv[5]) == "exit";
  const std::string_view policy = argc == 5 || leave ? argv[1] : "";
  if (policy != "local" && policy != "shared")
    bench::fail("usage: ring local|shared N SAMPLES PER [exit]");
  const int n = static_cast<int>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  if (n < 2) bench::fail("a ring has at least 2 processes");
  (policy == "local" ? ring<weft::Local> : ring<weft::Shared>)(n, samples, per, leave);
}
