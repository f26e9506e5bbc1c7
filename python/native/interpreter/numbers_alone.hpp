// Checks whether an array consists only of its memory. If a class derived from numpy.ndarray adds
// anything to the numbers (a mask, a unit), that addition is in no buffer, and would be lost
// silently.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

// Returns advice for an array that may have more than its numbers; "" for any other object.
std::string more_than_numbers(PyObject* o);
// Returns advice for an object that exports no buffer, whatever its shape; "" if none is known.
std::string no_buffer_of(PyObject* o);

}  // namespace weft::py
