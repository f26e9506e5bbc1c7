// How processes hold ends, receive them as values, and let go of them (rules 2.3, 2.4).
#pragma once
#include "channels/marks.hpp"

namespace weft::py {

struct ProcessObject;

// before an end, or a function that makes the value, is written to it
void carry_ends(ChannelObject* c) noexcept;
// unpacked and noted; null with an exception
PyObject* received(const ChannelObject* c, PyObject* value);
// By the process that runs: what it reads is what this returns. Owned.
inline PyObject* taken_from(const ChannelObject* c, PyObject* value) {
  if (c->generation & kCarries) [[unlikely]]
    return received(c, value);
  return value;
}
// it has ended, and has its outcome
void let_go(ProcessObject* p) noexcept;
void poison_held(ProcessObject* p, PyObject* poisoned) noexcept;  // left by that
void forget_received(EndObject* e) noexcept;                      // it is collected
// The open ends that it received as values and has yet.
std::vector<const EndObject*> received_by(const ProcessObject* p);

}  // namespace weft::py
