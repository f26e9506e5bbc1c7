// The frames of a session go over a connection in pieces, each preceded by its length: four bytes,
// the least significant first. A length of 0 means that no more pieces follow (WIRE-NETWORKS.md
// 17.13).
#pragma once
#include <cstddef>

namespace weft::py {

inline constexpr std::size_t kPieceHead = 4;

inline void put_length(char* head, std::size_t n) noexcept {
  for (std::size_t i = 0; i < kPieceHead; ++i) head[i] = static_cast<char>(n >> (8 * i) & 0xFF);
}
inline std::size_t length_at(const char* head) noexcept {
  std::size_t n = 0;
  for (std::size_t i = 0; i < kPieceHead; ++i)
    n |= static_cast<std::size_t>(static_cast<unsigned char>(head[i])) << (8 * i);
  return n;
}

}  // namespace weft::py
