// Whether an array is no more than its memory. Anything that a class derived from numpy.ndarray has
// besides its numbers (a mask, a unit) is in no buffer, and would be lost silently.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

// Advice for an object that is more than its memory; empty if it is no more.
std::string more_than_numbers(PyObject* o);
// Advice for an object that gives no buffer of any shape; empty if there is none.
std::string no_buffer_of(PyObject* o);

}  // namespace weft::py
