// How processes hold ends, receive them as values, and let go of them (rules 2.3, 2.4).
#pragma once
#include "channels/marks.hpp"

namespace weft::py {

struct ProcessObject;

// Marks a channel before an end, or a function that makes the value, is written to it.
void carry_ends(ChannelObject* c) noexcept;
// Returns the value, unpacked, with its ends noted as received; null with an exception.
PyObject* received(const ChannelObject* c, PyObject* value);
// Takes over `value`, and returns what the read of the running process returns: a new reference.
inline PyObject* taken_from(const ChannelObject* c, PyObject* value) {
  if (c->generation & kCarries) [[unlikely]]
    return received(c, value);
  return value;
}
// Lets go of the ends of a process that has ended and has its outcome.
void let_go(ProcessObject* p) noexcept;
// The exception `poisoned` ended the process.
void poison_held(ProcessObject* p, PyObject* poisoned) noexcept;
void forget_received(EndObject* e) noexcept;  // the end is being collected
// The open ends that the process received as values and still has.
std::vector<const EndObject*> received_by(const ProcessObject* p);

}  // namespace weft::py
