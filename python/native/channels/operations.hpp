// The operations at channels and barriers, as methods call them. Each operation waits in the way
// that suits its caller: as an awaitable, or by blocking.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct BarrierObject;

PyObject* operation_read(PyObject* end, bool next);
PyObject* operation_write(PyObject* end, PyObject* value);
PyObject* operation_sync(BarrierObject* b);
// Returns an awaitable that is already done, for __aenter__ and the like.
PyObject* operation_ready(PyObject* owned);
PyObject* operation_yield();
// throws an exception into an awaitable, for the method throw()
PyObject* raise_thrown(PyObject* const* args, Py_ssize_t n);
// Operations on several values at a time (many.cpp).
PyObject* reader_read_many(PyObject* reader, PyObject* most);
PyObject* reader_blocks(PyObject* reader, PyObject* most);
PyObject* writer_write_many(PyObject* writer, PyObject* values);
PyObject* extended_new(PyObject* end, bool keeps);  // extended.cpp
PyObject* reader_iter(PyObject* reader);

}  // namespace weft::py
