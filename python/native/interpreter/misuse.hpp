// How wrong arguments and calls are refused: the functions that only few files need.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Is `o` a whole number from `least` to `most`? `range` says these in words. If not, an exception
// is set.
bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to);
// Explains a call of asyncio's where no loop runs, and says what to do.
void explain_no_loop(PyObject* failure) noexcept;
// __reduce_ex__ of channels, ends, barriers and processes; it raises BadUse.
PyObject* no_copy(PyObject* o, PyObject*);

}  // namespace weft::py
