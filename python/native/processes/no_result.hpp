// Why a process has no result (rule 7.1): see no_result.cpp.
#pragma once
#include "processes/process.hpp"

namespace weft::py {

// "returned", "retired", …
const char* name_of(Ending how) noexcept;

// Returns why a process that has not returned has no result. It must be called before the process
// leaves its group. `left`: the exception that ended the process; null: it was never run. `b`: its
// member in the group. Null without an exception: nobody is to be told, or there is no memory.
PyObject* why_no_result(ProcessObject* p, ProcessBase& b, PyObject* left) noexcept;

// Returns the result of a process, or its NoResult. The process has ended, and not by a failure
// that went to its group. A new reference; null with an exception.
PyObject* result_of(ProcessObject* p);
// Returns the results of all processes in the list, in order.
PyObject* results_of(PyObject* list);

}  // namespace weft::py
