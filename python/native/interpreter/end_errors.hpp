// The exceptions that are raised where a channel or an end has ended.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// All that return a PyObject* set a Python exception and return null.
PyObject* raise_closed(EndObject* e, const char* verb);
// The channel has ended for the caller. `value`: what it meant to write, or null.
PyObject* raise_end(Status s, ChannelObject* c, const char* verb, int guard, PyObject* value,
                    bool met = true);
// PeerDied (rule 8.7).
PyObject* raise_barrier_died(const char* verb, int guard = -1);
// a Retired or Poisoned: did an operation make it (rule 3.5)?
bool is_met(PyObject* end);
void only_failed(ChannelObject* c, const char* verb, const char* done) noexcept;

}  // namespace weft::py
