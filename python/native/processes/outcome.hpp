// Keeps the result of an operation until the code that awaits the operation takes it.
#pragma once
#include "owned.hpp"
#include "value.hpp"

namespace weft::py {

class Outcome {
 public:
  // Keeps `owned` or, if that is null, the current exception.
  void keep(PyObject* owned) noexcept;
  // Returns the value (a new reference), or null with the exception set.
  PyObject* take() noexcept;
  void drop() noexcept {
    value_.reset();
    error_.reset();
  }
  // Returns the value (borrowed); null if the operation raised an exception.
  PyObject* value() const noexcept { return value_.get(); }

 private:
  Owned<> value_, error_;
};

}  // namespace weft::py
