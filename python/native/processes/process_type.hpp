// How a function takes the processes that it is given, and refuses what is no process.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Flattens processes and iterables of processes, one level, to a list.
PyObject* process_list(PyObject* const* args, Py_ssize_t n);
// `where` follows the repr, as in " in a list".
PyObject* no_process(PyObject* o, const char* where);

}  // namespace weft::py
