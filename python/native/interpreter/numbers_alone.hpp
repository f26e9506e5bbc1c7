// Whether an array is no more than its memory. What a class derived from numpy.ndarray has besides
// its numbers (a mask, a unit) is in no buffer, and would be lost silently.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

// What to do about an object that is more than its memory; empty: it is no more.
std::string more_than_numbers(PyObject* o);
// What to do about an object that gives no buffer of any shape; empty: not known.
std::string no_buffer_of(PyObject* o);

}  // namespace weft::py
