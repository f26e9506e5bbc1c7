// Whether an array consists only of its memory. Anything that a class derived from numpy.ndarray
// has besides its numbers (a mask, a unit) is in no buffer, and would be lost silently.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

// Returns advice for an object that has more than its memory; empty if it has no more.
std::string more_than_numbers(PyObject* o);
// Returns advice for an object that gives no buffer of any shape; empty if there is none.
std::string no_buffer_of(PyObject* o);

}  // namespace weft::py
