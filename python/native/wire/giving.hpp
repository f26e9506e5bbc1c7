// The functions with which writes of channels, and of native channels, give arrays away
// (places.hpp, rule 9.7).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Returns whether the base of an array, to which the caller has a reference of its own, is memory
// that came from another OS process, and to which nothing else in this program refers.
bool is_received_alone(PyObject* base) noexcept;
// In the scope of this object a write of this thread gives its value away: the write was called
// with move=True, and the value was checked.
class Moves {
 public:
  Moves() noexcept;
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;
  ~Moves();
};

}  // namespace weft::py
