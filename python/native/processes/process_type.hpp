// How a function takes the processes that it is given, and refuses what is no process.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Flatten processes and iterables of them, one level, to a list.
PyObject* process_list(PyObject* const* args, Py_ssize_t n);
// `where`: what follows its repr, as " in a list"
PyObject* no_process(PyObject* o, const char* where);

}  // namespace weft::py
