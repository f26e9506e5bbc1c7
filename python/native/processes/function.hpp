// The type of process functions, and what they share with processes.
#pragma once
#include "channels/channel.hpp"

namespace weft::py {

extern PyTypeObject ProcessFunctionType;

// Collects the open ends in an argument and in the containers in it (rule 2.3).
int collect_ends(PyObject* o, Ends& to);
// The string is kept for ever. Null: an exception is set.
const char* intern(PyObject* name);

}  // namespace weft::py
