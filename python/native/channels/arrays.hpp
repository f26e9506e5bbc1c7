// The functions behind `channel * 3` and `process * 3`, which make several channels or processes.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

PyObject* channel_times(PyObject* a, PyObject* b);
PyObject* process_times(PyObject* a, PyObject* b);

}  // namespace weft::py
