// Converts the processes that were given to a function to a list, and refuses objects that are not
// processes.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Returns a list of processes from processes and iterables of processes, flattened by one level.
PyObject* process_list(PyObject* const* args, Py_ssize_t n);
// Raises the error for an object that is not a process. `where` is a text that follows the object's
// repr in the message, such as " in a list".
PyObject* no_process(PyObject* o, const char* where);

}  // namespace weft::py
