// Functions that refuse wrong arguments and calls, and that only a few files need.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Reads a whole number from `least` to `most` into `to`. `range` is that range in words. Returns
// false, with an exception set, if `o` is not such a number.
bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to);
// Explains a call of asyncio's where no loop runs, and how to correct the call.
void explain_no_loop(PyObject* failure) noexcept;
// The __reduce_ex__ of channels, ends, barriers and processes, which raises BadUse.
PyObject* no_copy(PyObject* o, PyObject*);

}  // namespace weft::py
