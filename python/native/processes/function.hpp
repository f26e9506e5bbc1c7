// The type of process functions, and the functions that they share with processes.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

extern PyTypeObject ProcessFunctionType;

// Adds to `to` the open ends in an argument and in the containers within it (rule 2.3).
int collect_ends(PyObject* o, Ends& to);
// Returns the one stored copy of a name, which is kept forever. Returns null if an exception is
// set.
const char* intern(PyObject* name);

}  // namespace weft::py
