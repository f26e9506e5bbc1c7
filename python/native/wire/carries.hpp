// The form in which the values of a channel are sent to an end in another OS process.
#pragma once
#include "channels/marks.hpp"

namespace weft::py {

// The form of a channel's values. pickle: for hosts; cbor: for a board; typed: CBOR with types, for
// a program on another machine; nothing: for a barrier, which has no values.
enum class Carries : std::uint8_t { pickle, cbor, typed, nothing };
inline constexpr std::uint32_t marks_of(Carries what) noexcept {
  return what == Carries::typed ? kBoard | kObjects : what == Carries::cbor ? kBoard : 0;
}
inline Carries carries(const ChannelObject* c) noexcept {
  if (!is_board(c)) return Carries::pickle;
  return (c->generation & kObjects) != 0 ? Carries::typed : Carries::cbor;
}

}  // namespace weft::py
