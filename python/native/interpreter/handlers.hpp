// Handlers of signals that may act (rule 10.3), and whose code a function is.
#pragma once
#include "native.hpp"

namespace weft::py {

// Is there a handler of a signal, set by the program, from which an end, a channel, a barrier, a
// process or a group can be reached? It runs no code of Python's.
bool handlers_may_act() noexcept;

// Is the code part of Python's own library, or of Weft?
bool of_library(PyCodeObject* code) noexcept;

int init_handlers(PyObject* m);

}  // namespace weft::py
