// The parts that all native bench programs share, Weft's and the peers': arguments in, samples out.
//
// Output on stdout: one line "ns V V …", with a figure for each sample, and, where memory is
// measured, one line "bytes V". A program that finds a wrong value calls fail(), since the time of
// a wrong computation is meaningless.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

namespace bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

/// Returns a whole number of at least 1 from the command line.
inline long number(const char* text) {
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || n < 1)
    fail(std::string("'") + text + "' is not a number of at least 1");
  return n;
}

/// Returns the size of this process's resident set in bytes.
inline long resident() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  long size = 0, pages = 0;
  if (!f || std::fscanf(f, "%ld %ld", &size, &pages) != 2) fail("cannot read /proc/self/statm");
  std::fclose(f);
  return pages * sysconf(_SC_PAGESIZE);
}

// Times stretches of `operations` operations; begin() and end() enclose one stretch. `less` is the
// time in ns of the work in each operation, which is not counted.
class Sampler {
 public:
  explicit Sampler(long samples) { ns_.reserve(static_cast<std::size_t>(samples)); }
  void begin() { start_ = Clock::now(); }
  void end(double operations, double less = 0) {
    const std::chrono::duration<double, std::nano> spent = Clock::now() - start_;
    ns_.push_back(spent.count() / operations - less);
  }
  void print() const {
    std::printf("ns");
    for (double v : ns_) std::printf(" %.3f", v);
    std::printf("\n");
  }

 private:
  Clock::time_point start_{};
  std::vector<double> ns_;
};

}  // namespace bench
