// The accelerometer in C++, for the device. It computes the same samples as accelerometer.py.
#include <cstdint>
#include <weft/anywhere.hpp>

namespace {
constexpr std::int32_t kSize = 32;                                         // samples in a block
constexpr std::int32_t kTone[] = {0, 181, 256, 181, 0, -181, -256, -181};  // the bearing: 500 Hz
constexpr std::int32_t kHum[] = {0, 100, 0, -100};                         // the motor: 1,000 Hz
}  // namespace

// Writes samples as fast as the reader takes them.
weft::Process accelerometer(weft::Writer<std::int32_t> samples, std::int32_t blocks) {
  std::int32_t noise = 1;
  for (std::int32_t i = 0; i < blocks * kSize; ++i) {
    noise = (noise * 171 + 11213) % 53125;
    const std::int32_t block = i / kSize, worn = block % 7 * (block % 7) % 7;
    co_await samples.write((kTone[i % 8] * worn >> 2) + kHum[i % 4] + noise % 65 - 32);
  }
}
WEFT_PLACEABLE(accelerometer, samples, blocks)
