// The object that Python code sees as a barrier.
#pragma once
#include <cstdint>

#include "value.hpp"

namespace weft::py {

struct BarrierObject {
  PyObject_HEAD PyObject* name;
  // For a barrier that another OS process has made: the Reader at which a read is an arrival. Null
  // if this OS process has made the barrier; then the core below is used.
  PyObject* far;
  std::uint32_t generation;  // the fork in which the barrier was made, as for channels
  BarrierEngine core;
};

extern PyTypeObject BarrierType;

// like check_end() (ends.hpp), for a barrier
int check_barrier(const BarrierObject* b, const char* verb);

}  // namespace weft::py
