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

// `value` (owned) for a write to `c`, packed. Null with an exception; then it has been let go of.
PyObject* pack(ChannelObject* c, PyObject* value);
// What was taken from a wired channel (owned), unpacked: null with an exception.
PyObject* unpack(const ChannelObject* c, PyObject* packed);
// What a write was given that did not happen (owned).
PyObject* unsent(PyObject* packed) noexcept;
// Takes the place of a value that waited while its channel was wired and could not be packed: its
// write raises why. Takes both references over; null with MemoryError.
PyObject* refusal(PyObject* value, PyObject* why) noexcept;
bool is_packed(PyObject* o) noexcept;
// The view of an array of a native channel (owned), as pickle takes it. Null with an exception. Any
// other object is itself.
PyObject* as_sent(PyObject* view) noexcept;
// The exception (owned) of a refusal; null: `o` is none.
PyObject* why_refused(PyObject* o) noexcept;
// Wires the channels of these ends, with which a process is made that runs in another OS process.
// -1: a channel cannot be wired.
int wire_away(const Ends& ends);
// Does a process of this function run in another OS process of this machine?
bool runs_away(PyObject* function) noexcept;

// Is that a barrier of another OS process? (far_barrier.cpp)
bool is_far_barrier(const ChannelObject* c) noexcept;
// is a link to a board, or over a network, open? Then whoever waits may be met from there
bool any_board() noexcept;
void forget_links() noexcept;  // in the child of a fork: they are the parent's

}  // namespace weft::py
