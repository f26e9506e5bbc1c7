// What is said of arguments and calls that few files have.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Is `o` a whole number from `least` to `most`, which `range` says in words? Else an exception is
// set.
bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to);
// asyncio was called where no loop runs: says what to do
void explain_no_loop(PyObject* failure) noexcept;
// __reduce_ex__ of a channel, an end, a barrier and a process: bad use.
PyObject* no_copy(PyObject* o, PyObject*);

}  // namespace weft::py
