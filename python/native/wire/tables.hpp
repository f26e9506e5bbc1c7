// The table of a large value (packed.cpp): the number of its parts, then the length of each part,
// in 8 bytes each; then the parts, each at a multiple of 64 bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace weft::py::tables {

constexpr std::size_t aligned(std::size_t n) noexcept { return (n + 63) / 64 * 64; }

// Returns the offset and length of each part of a table of `size` bytes; an empty list if the
// lengths do not add up to the table.
inline std::vector<std::pair<std::size_t, std::size_t>> parts_of(const std::byte* data,
                                                                 std::size_t size) {
  std::uint64_t n = 0;
  if (size >= 8) std::memcpy(&n, data, 8);
  if (n >= size / 8) return {};
  std::size_t at = aligned(8 * (n + 1));
  if (at >= size) return {};
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t length;
    std::memcpy(&length, data + 8 * (i + 1), 8);
    if (at > size || length > size - at) return {};
    parts.emplace_back(at, length);
    at += aligned(length);
  }
  return parts;
}

}  // namespace weft::py::tables
