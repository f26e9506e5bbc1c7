// Wires the channels of a process that is made to run in another OS process.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

// Wires the channels of the ends with which such a process is made. Returns -1 if a channel
// cannot be wired.
int wire_away(const Ends& ends);
// Returns whether the processes of this function run in another OS process of this machine.
bool runs_away(PyObject* function) noexcept;

}  // namespace weft::py
