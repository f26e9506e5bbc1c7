// Channels with ends in other OS processes (WIRE.md), as the rest of the extension sees them.
//
//   a channel ──wire_channel(): a process of another OS process is made with an end of it, or an
//               end is handed to a link──► wired: its values are packed, and unpacked by who reads here
//   an end that a link hands to us ──► a far channel: its core has one side, and the home decides (core/far_engine.hpp)
//
// A value that may leave is *packed* by its writer: pickled bytes, and the object for whoever gets
// it back when nothing was sent. So an object that cannot be pickled is an error at the write, and
// no code of the user's runs within a step of the wire.
#pragma once
#include "native.hpp"

namespace weft::py {

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
inline bool is_board(const ChannelObject* c) noexcept { return (c->generation & kBoard) != 0; }

// What goes through an end: pickles, CBOR for a board or for a program elsewhere, or, of a barrier,
// nothing.
enum class Carries : std::uint8_t { pickle, cbor, typed, nothing };
inline constexpr std::uint32_t marks_of(Carries what) noexcept {
  return what == Carries::typed ? kBoard | kObjects : what == Carries::cbor ? kBoard : 0;
}
inline Carries carries(const ChannelObject* c) noexcept {
  if (!is_board(c)) return Carries::pickle;
  return (c->generation & kObjects) != 0 ? Carries::typed : Carries::cbor;
}
inline bool is_far(const ChannelObject* c) noexcept { return (c->generation & kFar) != 0; }
inline bool is_native(const ChannelObject* c) noexcept { return (c->generation & kNative) != 0; }
// What is written to it is packed first.
inline bool packs(const ChannelObject* c) noexcept {
  return (c->generation & (kWired | kNative)) != 0;
}

// `value` (owned) for a write to `c`, packed. Null with an exception; then it has been let go of.
PyObject* pack(ChannelObject* c, PyObject* value);
// What was taken from a wired channel (owned), unpacked: null with an exception.
PyObject* unpack(const ChannelObject* c, PyObject* packed);
// What a write was given that did not happen (owned).
PyObject* unsent(PyObject* packed) noexcept;
// Takes the place of a value that waited while its channel was wired and could not be packed: its
// write raises why. Takes both references over; null with MemoryError.
PyObject* refusal(PyObject* value, PyObject* why) noexcept;
// The exception (owned) of a refusal; null: `o` is none.
PyObject* why_refused(PyObject* o) noexcept;
// Wires the channels of these ends, with which a process is made that runs in another OS process.
// -1: a channel cannot be wired.
int wire_away(const Ends& ends);
// Does a process of this function run in another OS process of this machine?
bool runs_away(PyObject* function) noexcept;

// Is there a link, and are links asked whether all stand still there too (network.cpp)? Then this
// says that a run here does.
bool links_are_asked() noexcept;
void say_standing() noexcept;
int init_network(PyObject* m);

// is a link to a board, or over a network, open? Then whoever waits may be met from there
bool any_board() noexcept;
void forget_links() noexcept;  // in the child of a fork: they are the parent's
int init_wire(PyObject* m);

}  // namespace weft::py
