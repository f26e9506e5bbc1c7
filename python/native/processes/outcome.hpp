// An Outcome keeps what an operation came to, until whoever awaits the operation is told.
#pragma once
#include "owned.hpp"
#include "value.hpp"

namespace weft::py {

class Outcome {
 public:
  // `owned`; null: the current exception, which it takes.
  void keep(PyObject* owned) noexcept;
  // The value, owned, or null and the exception is set.
  PyObject* take() noexcept;
  void drop() noexcept {
    value_.reset();
    error_.reset();
  }
  PyObject* value() const noexcept { return value_.get(); }  // null: it has raised

 private:
  Owned<> value_, error_;
};

}  // namespace weft::py
