// Checks whether an array consists only of its memory. Anything that a class derived from
// numpy.ndarray has besides its numbers (a mask, a unit) is in no buffer, and would be lost
// silently.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

// Returns advice for an object that has more than its memory; "" if it has nothing more.
std::string more_than_numbers(PyObject* o);
// Returns advice for an object that exports no buffer, whatever its shape; "" if there is none.
std::string no_buffer_of(PyObject* o);

}  // namespace weft::py
