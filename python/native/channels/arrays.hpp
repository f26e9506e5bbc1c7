// Several of a kind: `channel * 3`, `process * 3`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

PyObject* channel_times(PyObject* a, PyObject* b);
PyObject* process_times(PyObject* a, PyObject* b);

}  // namespace weft::py
