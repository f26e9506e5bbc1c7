// Why a process has no result (rule 7.1): see no_result.cpp.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

// Returns the name of an Ending: "returned", "retired", …
const char* name_of(Ending how) noexcept;

// Returns the reason why a process that has not returned has no result. The function must be called
// before the process leaves its group. `left` is the exception that ended the process; null if the
// process was never run. `b` is the part of the process that its group knows. Returns null without
// an exception if no reason is needed, or there is no memory.
PyObject* why_no_result(ProcessObject* p, ProcessBase& b, PyObject* left) noexcept;

// Returns the result of a process, or its NoResult. The process must have ended, and not by a
// failure that was passed to its group. Returns a new reference; null with an exception.
PyObject* result_of(ProcessObject* p);
// Returns the results of all processes in the list, in order.
PyObject* results_of(PyObject* list);

}  // namespace weft::py
