// CommsTime: prefix → delta → successor → prefix, and delta → consumer. The delta is sequential, or
// writes to both channels in parallel.
#include <string_view>

#include "commstime.hpp"

namespace {

template <class P>
weft::Process parallel_delta(weft::Reader<int, P> in, weft::Writer<int, P> left,
                             weft::Writer<int, P> right) {
  for (;;) {
    const int x = co_await in.read();
    co_await weft::par_write(left, x, right, x);
  }
}

template <class P>
void commstime(bool parallel, long samples, long per, const weft::RunOptions& on = {}) {
  weft::Channel<int, P> a, b, c, d;
  weft::run(on, weft::par(bench::prefix<P>(c.reader(), a.writer()),
                          (parallel ? parallel_delta<P> : bench::delta<P>)(a.reader(), b.writer(),
                                                                           d.writer()),
                          bench::successor<P>(b.reader(), c.writer()),
                          bench::consumer<P>(d.reader(), samples, per)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view policy = argc == 4 ? argv[1] : "";
  const bool parallel = policy.ends_with("-par");
  if (policy == "local" || policy == "local-par")
    commstime<weft::Local>(parallel, bench::number(argv[2]), bench::number(argv[3]));
  else if (policy == "shared" || policy == "shared-par")
    commstime<weft::Shared>(parallel, bench::number(argv[2]), bench::number(argv[3]));
  else if (policy == "cores")
    commstime<weft::Shared>(false, bench::number(argv[2]), bench::number(argv[3]), {.cores = 2});
  else
    bench::fail("usage: commstime local|shared|local-par|shared-par|cores SAMPLES PER");
}
