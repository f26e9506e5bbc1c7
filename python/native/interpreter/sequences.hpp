// Lists and tuples that are made item by item. If an item cannot be made, the list or tuple becomes
// null and the exception is set; so a loop that fills it goes on only while it is not null.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Takes the reference to the item over. `list` may be null; it is null afterwards if `item` is null.
inline void append(PyObject*& list, PyObject* item) noexcept {
  if (list && (!item || PyList_Append(list, item) < 0)) Py_CLEAR(list);
  Py_XDECREF(item);
}
// The same for the i-th item of a tuple.
inline void put(PyObject*& tuple, Py_ssize_t i, PyObject* item) noexcept {
  if (!tuple) return Py_XDECREF(item);
  PyTuple_SET_ITEM(tuple, i, item);
  if (!item) Py_CLEAR(tuple);
}

}  // namespace weft::py
