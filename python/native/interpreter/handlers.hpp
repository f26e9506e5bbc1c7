// Signal handlers that may act (rule 10.3), and whether code belongs to the program.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Returns whether the program has set a signal handler from which an end, a channel, a barrier, a
// process or a group can be reached. No Python code runs during the search.
bool handlers_may_act() noexcept;

// Returns whether the code is part of Python's own library, or of Weft.
bool of_library(PyCodeObject* code) noexcept;

}  // namespace weft::py
