// The filter in C++: it computes how strong one frequency is in each block of samples. A C++
// program, Python and a board without an operating system run this file unchanged
// (cpp/docs/anywhere.md). goertzel.py is the same filter, with the same results, bit for bit.
#include <cstdint>
#include <weft/anywhere.hpp>

// Writes one power for each `size` samples (G. Goertzel, 1958). `turn` is 2 cos(2 pi f / rate) in
// units of 1/2**14: 23170 is 500 Hz at 4,000 samples a second.
weft::Process goertzel(weft::Reader<std::int32_t> samples, weft::Writer<std::int64_t> powers,
                       std::int32_t size, std::int64_t turn) {
  std::int32_t n = 0;
  std::int64_t s1 = 0, s2 = 0;
  while (auto sample = co_await samples.next()) {
    const std::int64_t s = *sample + ((turn * s1) >> 14) - s2;
    s2 = s1, s1 = s;
    if (++n == size) {
      co_await powers.write(s1 * s1 + s2 * s2 - ((turn * s1) >> 14) * s2);
      n = 0, s1 = s2 = 0;
    }
  }
}
WEFT_PLACEABLE(goertzel, samples, powers, size = 32, turn = 23170)
