// How processes hold ends, receive them as values, and release them (rules 2.3, 2.4).
#pragma once
#include "channels/marks.hpp"

namespace weft::py {

struct ProcessObject;

// Marks a channel before an end, or a function that makes the value, is written to it.
void carry_ends(ChannelObject* c) noexcept;
// Returns the value, unpacked, with its ends recorded as received; null with an exception.
PyObject* received(const ChannelObject* c, PyObject* value);
// Takes ownership of `value`, and returns what the read of the running process returns: a new
// reference.
inline PyObject* taken_from(const ChannelObject* c, PyObject* value) {
  if (c->generation & kCarries) [[unlikely]]
    return received(c, value);
  return value;
}
// Releases the ends of a process that has ended and has its outcome.
void let_go(ProcessObject* p) noexcept;
// Poisons what the process holds, because the exception `poisoned` has ended it.
void poison_held(ProcessObject* p, PyObject* poisoned) noexcept;
void forget_received(EndObject* e) noexcept;  // called when the end is garbage-collected
// Returns the open ends that the process received as values and still holds.
std::vector<const EndObject*> received_by(const ProcessObject* p);

}  // namespace weft::py
