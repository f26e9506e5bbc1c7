// The marks of a channel, which are bits of its generation, and what they say.
#pragma once
#include "channels/channel.hpp"
#include "channels/fork.hpp"

namespace weft::py {

// ends come through it (held.cpp)
inline constexpr std::uint32_t kCarries = 0x80000000;
inline constexpr std::uint32_t kMarks = 0xFC000000;  // kCarries and the marks below
inline bool of_this_fork(const ChannelObject* c) noexcept {
  return (c->generation & ~kMarks) == generation;
}

// Marks in a channel's generation, beside kCarries, which a wired channel has too: its reads and
// writes take the long way round.
inline constexpr std::uint32_t kWired = 0x40000000;
inline constexpr std::uint32_t kFar = 0x20000000;
// it has had an end of a component (cells.hpp)
inline constexpr std::uint32_t kNative = 0x10000000;
// wired to a board, or to a program elsewhere that nobody trusts: its values are CBOR (WIRE.md
// 12.8, 17.6); and those of the latter may be objects (17.15)
inline constexpr std::uint32_t kBoard = 0x08000000;
inline constexpr std::uint32_t kObjects = 0x04000000;
inline bool is_wired(const ChannelObject* c) noexcept { return (c->generation & kWired) != 0; }
inline bool is_far(const ChannelObject* c) noexcept { return (c->generation & kFar) != 0; }
inline bool is_board(const ChannelObject* c) noexcept { return (c->generation & kBoard) != 0; }
inline bool is_native(const ChannelObject* c) noexcept { return (c->generation & kNative) != 0; }
// What is written to it is packed first.
inline bool packs(const ChannelObject* c) noexcept {
  return (c->generation & (kWired | kNative)) != 0;
}

}  // namespace weft::py
