// Monte Carlo π as in the C++CSP paper: N workers (OS threads) draw points and send the share that
// fell inside the circle to one process that averages the shares. Figures are ns for an iteration:
// the time of a whole network, including the starting and joining of the threads, ÷ the number of
// iterations.
//
// independent: the reference, N processes of the system with the same loop and no channel.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "common.hpp"
#include "independent.hpp"

namespace {

// Returns 4 × the share of `n` points that lie inside the quarter circle. The generator is
// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
// 2016); a coordinate is the upper half of a number.
double quarter_circle(std::uint64_t seed, long n) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull | 1;
  const auto coordinate = [&x] {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return static_cast<double>(x * 0x2545F4914F6CDD1Dull >> 32) * 0x1p-32;
  };
  long inside = 0;
  for (long i = 0; i < n; ++i) {
    const double a = coordinate(), b = coordinate();
    inside += a * a + b * b <= 1 ? 1 : 0;
  }
  return 4.0 * static_cast<double>(inside) / static_cast<double>(n);
}

// Returns whether the estimate is within eight standard deviations of π.
bool is_pi(double estimate, long n) {
  return std::abs(estimate - 3.14159265358979) < 8 * 1.65 / std::sqrt(static_cast<double>(n));
}

struct Worker {
  weft::Writer<double> out;
  std::uint64_t seed;
  long n;
  void operator()() { out(quarter_circle(seed, n)); }
};

double network(int workers, long per) {
  weft::Channel<double> results;
  using Thread = decltype(weft::thread(Worker{}));
  std::vector<Thread> all;
  for (int i = 0; i < workers; ++i)
    all.push_back(
        weft::thread(Worker{results.writer(), static_cast<std::uint64_t>(i) + 1, per / workers}));
  const auto calculate = [](weft::Reader<double> in, double& sum) -> weft::Process {
    while (auto v = co_await in.next()) sum += *v;
  };
  double sum = 0;
  weft::run(bench::together(std::move(all)), calculate(results.reader(), sum));
  return sum / workers;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage = "usage: montecarlo network|independent WORKERS SAMPLES PER";
  if (argc != 5) bench::fail(usage);
  const std::string_view kind = argv[1];
  const int workers = static_cast<int>(bench::number(argv[2]));
  const long samples = bench::number(argv[3]), per = bench::number(argv[4]);
  if (kind != "network" && kind != "independent") bench::fail(usage);
  std::string line = "ns";
  for (long k = 0; k <= samples; ++k) {
    double ns = 0;
    if (kind == "network") {
      const auto start = bench::Clock::now();
      const double pi = network(workers, per);
      ns = std::chrono::duration<double, std::nano>(bench::Clock::now() - start).count();
      if (!is_pi(pi, per)) bench::fail("montecarlo: " + std::to_string(pi) + " is not pi");
    } else {
      const long mine = per / workers;
      ns = bench::independently(workers, [&](int i) {
        return is_pi(quarter_circle(static_cast<std::uint64_t>(i) + 1, mine), mine);
      });
    }
    // The first network warms up.
    if (k > 0) line += " " + std::to_string(ns / static_cast<double>(per));
  }
  std::printf("%s\n", line.c_str());
}
