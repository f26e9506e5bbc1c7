// Random numbers for the tests that make random networks.
#pragma once
#include <cstdint>

namespace weft::test {

// The generator is splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : x_(seed) {}
  std::uint64_t next() noexcept { return mix(x_ += 0x9E3779B97F4A7C15ull); }
  int below(int n) noexcept { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  static std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t x_;
};

}  // namespace weft::test
