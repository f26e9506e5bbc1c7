// Raises the exceptions for a channel or an end that has ended.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// Each function that returns a PyObject* sets a Python exception and returns null.
PyObject* raise_closed(EndObject* e, const char* verb);
// Raises the exception for a channel that has ended for the caller. `value` is the value that the
// caller meant to write, or null.
PyObject* raise_end(Status s, ChannelObject* c, const char* verb, int guard, PyObject* value,
                    bool met = true);
// Raises PeerDied (rule 8.7).
PyObject* raise_barrier_died(const char* verb, int guard = -1);
// Returns whether an operation made this exception, a Retired or Poisoned (rule 3.5).
bool is_met(PyObject* end);
void only_failed(ChannelObject* c, const char* verb, const char* done) noexcept;

}  // namespace weft::py
