// Helpers with which files declare the types and functions of the module.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

#include "gate.hpp"
#include "owned.hpp"

namespace weft::py {

inline int add_type(PyObject* m, const char* name, PyTypeObject* t) {
  return PyModule_AddObjectRef(m, name, reinterpret_cast<PyObject*>(t));
}

// Stores the function's arguments in `To`. When the package is imported, it calls such functions to
// give the extension the Python objects that the extension needs.
template <PyObject**... To>
PyObject* keep_given(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) != sizeof...(To))
    return PyErr_Format(PyExc_TypeError, "expected %zu arguments", sizeof...(To));
  Py_ssize_t i = 0;
  (Owned(std::exchange(*To, Py_NewRef(PyTuple_GET_ITEM(args, i++)))).reset(), ...);
  Py_RETURN_NONE;
}

template <class F>
PyCFunction method(F f) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace weft::py
