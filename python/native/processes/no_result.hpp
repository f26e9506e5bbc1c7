// Why a process has no result (rule 7.1): see no_result.cpp.
#pragma once
#include "native.hpp"

namespace weft::py {

// "returned", "retired", …
const char* name_of(Ending how) noexcept;

// Why there is no result, of a process that has not returned; before it leaves its group. `left`:
// what left it; null: it was never run. `b`: what the group knows it by. Null, without an exception:
// nobody is to be told, or there is no memory.
PyObject* why_no_result(ProcessObject* p, ProcessBase& b, PyObject* left) noexcept;

// Of one that has ended, and not by a failure of its group's: what it returned, or its NoResult.
// New; null with an exception.
PyObject* result_of(ProcessObject* p);
// The same of all in the list, in order.
PyObject* results_of(PyObject* list);

int init_no_result();

}  // namespace weft::py
