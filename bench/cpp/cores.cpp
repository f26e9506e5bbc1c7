// Measures the gain by a second core.
//
//   rings N      N independent CommsTime rings, on one core or on two; a figure is the whole run ÷
//                its communications
//   apart N      the same rings in two runs of half of the rings, each run on one core, in a thread
//                of its own
//   compute      two processes that only compute, on a multi-core executor, beside two threads that
//                do not communicate
#include <cmath>
#include <string_view>
#include <thread>

#include "common.hpp"

namespace {

using In = weft::Reader<int>;
using Out = weft::Writer<int>;

weft::Process prefix(In in, Out out) {
  co_await out.write(0);
  for (;;) {
    const int x = co_await in.read();
    co_await out.write(x);
  }
}
weft::Process delta(In in, Out left, Out right) {
  for (;;) {
    const int x = co_await in.read();
    co_await left.write(x);
    co_await right.write(x);
  }
}
weft::Process consumer(In in, long per) {
  for (int expected = 0; expected < per; ++expected)
    if (co_await in.read() != expected) bench::fail("rings: read a wrong number");
}
weft::Process ring(long per) {
  weft::Channel<int> a, b, c, d;
  co_await weft::par(prefix(c.reader(), a.writer()), delta(a.reader(), b.writer(), d.writer()),
                     bench::successor<weft::Shared>(b.reader(), c.writer()),
                     consumer(d.reader(), per));
}

std::vector<weft::Process> rings(long n, long per) {
  std::vector<weft::Process> all;
  for (long i = 0; i < n; ++i) all.push_back(ring(per));
  return all;
}

// Does some arithmetic that no compiler computes in advance or moves past the join of a thread that
// does the same arithmetic; the caller checks the result.
[[gnu::noinline]] double work(long n) {
  asm volatile("" ::: "memory");
  double x = 1;
  for (long i = 0; i < n; ++i) x = x * 0.999999 + 1e-6 * static_cast<double>(i & 1);
  return x;
}
weft::ProcessOf<double> worker(long n) { co_return work(n); }
void check(double x, double y) {
  if (x != y || !std::isfinite(x)) bench::fail("compute: the two results differ");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 6 ? argv[1] : "";
  if (what != "rings" && what != "apart" && what != "compute")
    bench::fail(
        "usage: cores rings CORES N SAMPLES PER, cores apart 2 N SAMPLES PER, or cores compute 1|2 "
        "1 SAMPLES PER (1: threads, 2: the "
        "executor)");
  const auto cores = static_cast<unsigned>(bench::number(argv[2]));
  const long n = bench::number(argv[3]), samples = bench::number(argv[4]),
             per = bench::number(argv[5]);
  bench::Sampler s(samples);
  for (long k = 0; k < samples; ++k) {
    s.begin();
    if (what == "rings") {
      weft::run({.cores = cores}, weft::par(rings(n, per)));
      s.end(4.0 * static_cast<double>(n) * static_cast<double>(per));
    } else if (what == "apart") {
      std::thread other([&] { weft::run(weft::par(rings(n / 2, per))); });
      weft::run(weft::par(rings(n - n / 2, per)));
      other.join();
      s.end(4.0 * static_cast<double>(n) * static_cast<double>(per));
    } else {
      if (cores == 1) {
        double x = 0, y = 0;
        std::thread t([&] { x = work(1000 * per); });
        y = work(1000 * per);
        t.join();
        check(x, y);
      } else {
        const auto [x, y] = weft::run({.cores = cores}, worker(1000 * per), worker(1000 * per));
        check(*x, *y);
      }
      s.end(2000.0 * static_cast<double>(per));
    }
  }
  s.print();
}
