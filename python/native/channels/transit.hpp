// A Transit moves an end that is written to a channel (rule 2.4).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

struct Transit {
  // Prepares the value of a write: an end is replaced by a new end for the receiver.
  PyObject* original = nullptr;  // the sender's end, owned; null: an ordinary value
  // `to_send` is a new reference.
  static int prepare(PyObject* value, Transit& t, PyObject*& to_send) noexcept;
  void commit() noexcept;
  void abandon(PyObject* sent) noexcept;  // the write did not commit; steals `sent`
};

}  // namespace weft::py
