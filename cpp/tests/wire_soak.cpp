// Runs random networks over lossy links (wire_lossy.hpp), as many as there is time for. Every
// second network is cut at some step.
//
//   wire_soak NETWORKS [SEED]       runs that many networks
//   wire_soak SECONDS s [SEED]      runs networks for this time
//
// The program prints what went wrong, and last `N passed, N failed`; its status says the same.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "wire_lossy.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || std::atol(argv[1]) <= 0)
    return std::fputs("wire_soak NETWORKS [SEED] | wire_soak SECONDS s [SEED]\n", stderr), 2;
  const bool timed = argc > 2 && std::strcmp(argv[2], "s") == 0;
  const int at = timed ? 3 : 2;
  const std::uint64_t first = argc > at ? std::strtoull(argv[at], nullptr, 10) : 1;
  const auto most = std::strtoull(argv[1], nullptr, 10);
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(timed ? most : 0);
  auto said = Clock::now();
  std::uint64_t n = 0, failed = 0;
  for (; timed ? Clock::now() < end : n < most; ++n) {
    const std::string wrong = weft::test::run_network(first + n, n % 2 == 1);
    if (!wrong.empty()) ++failed, std::printf("%s\n", wrong.c_str());
    if (Clock::now() - said < std::chrono::seconds(20)) continue;
    said = Clock::now();
    // A sign of life for the runner of the tests.
    std::fprintf(stderr, "%llu networks\n", static_cast<unsigned long long>(n + 1));
  }
  std::printf("networks of seeds %llu to %llu\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + n - 1));
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(n - failed),
              static_cast<unsigned long long>(failed));
  return failed ? 1 : 0;
}
