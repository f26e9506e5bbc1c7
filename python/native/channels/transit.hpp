// A Transit moves an end that is written to a channel (rule 2.4).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct Transit {
  PyObject* original = nullptr;  // the sender's end, owned; null for an ordinary value
  // Prepares the value of a write: an end is replaced by a new end for the receiver. Sets `to_send`
  // to a new reference.
  static int prepare(PyObject* value, Transit& t, PyObject*& to_send) noexcept;
  void commit() noexcept;
  // called if the write did not commit; takes ownership of `sent`
  void abandon(PyObject* sent) noexcept;
};

}  // namespace weft::py
