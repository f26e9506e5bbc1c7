// The options with which a channel is made, and the place in the source where it is made.
#pragma once
#include <cstdint>

#include "core/status.hpp"
#include "count.hpp"

namespace weft::inline WEFT_ABI {

// How many ends each side may have open at a time (rule 1.8): bit 0 means one writer, bit 1 means
// one reader.
enum class ChannelKind : std::uint8_t { any2any = 0, one2any = 1, any2one = 2, one2one = 3 };

struct ChannelOptions {
  detail::Count capacity = 0;  // how many values the buffer holds; 0 makes a rendezvous
  Overflow overflow = Overflow::block;
  detail::Count immunity = 0;  // the channel ignores a poison below this strength
  const char* name = nullptr;  // the channel copies the name
  ChannelKind kind = ChannelKind::any2any;

  // Returns the same options with a name: weft::buffer(16).called("orders").
  ChannelOptions called(const char* n) const {
    ChannelOptions o = *this;
    o.name = n;
    return o;
  }
};
// Options for a buffer of `capacity` values. Throws BadUse if `capacity` is not a possible number.
inline ChannelOptions buffer(detail::Count capacity, Overflow overflow = Overflow::block) {
  return {capacity.up_to_32_bits("buffer: the capacity"), overflow, 0, nullptr,
          ChannelKind::any2any};
}
// Options for a rendezvous with a name.
inline ChannelOptions named(const char* name) {
  return {0, Overflow::block, 0, name, ChannelKind::any2any};
}

}  // namespace weft::inline WEFT_ABI
