// Gives a type that has am_send two methods of generators: __next__() and send().
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

PyObject* iternext_by(sendfunc send, PyObject* self);
// Like iternext_by(), but for a method, which must set StopIteration for None too.
PyObject* send_by(sendfunc send, PyObject* self);

}  // namespace weft::py
