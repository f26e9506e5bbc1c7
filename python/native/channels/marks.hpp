// The marks of a channel, which are bits of its generation, and their meaning.
#pragma once
#include "channels/channel.hpp"
#include "channels/fork.hpp"

namespace weft::py {

// The values of the channel can contain ends (held.cpp).
inline constexpr std::uint32_t kCarries = 0x80000000;
inline constexpr std::uint32_t kMarks = 0xFC000000;  // kCarries and the other marks, listed below
inline bool of_this_fork(const ChannelObject* c) noexcept {
  return (c->generation & ~kMarks) == generation;
}

// The other marks of a generation. A wired channel has kCarries too, so that its reads and writes
// take the slow path.
inline constexpr std::uint32_t kWired = 0x40000000;
inline constexpr std::uint32_t kFar = 0x20000000;
// A component has held an end of the channel (cells.hpp).
inline constexpr std::uint32_t kNative = 0x10000000;
// The channel is wired to a board, or to an untrusted program on another machine: its values are
// CBOR (wire 12.8, 17.6). With kObjects the values of such a program may be objects (17.15).
inline constexpr std::uint32_t kBoard = 0x08000000;
inline constexpr std::uint32_t kObjects = 0x04000000;
inline bool is_wired(const ChannelObject* c) noexcept { return (c->generation & kWired) != 0; }
inline bool is_far(const ChannelObject* c) noexcept { return (c->generation & kFar) != 0; }
inline bool is_board(const ChannelObject* c) noexcept { return (c->generation & kBoard) != 0; }
inline bool is_native(const ChannelObject* c) noexcept { return (c->generation & kNative) != 0; }
// Returns whether values written to the channel are packed first.
inline bool packs(const ChannelObject* c) noexcept {
  return (c->generation & (kWired | kNative)) != 0;
}

}  // namespace weft::py
