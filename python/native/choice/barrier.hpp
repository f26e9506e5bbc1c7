// The object that Python sees as a barrier.
#pragma once
#include <cstdint>

#include "value.hpp"

namespace weft::py {

struct BarrierObject {
  PyObject_HEAD PyObject* name;
  // Of a barrier that another OS process has made: the Reader at which a read is an arrival. Null:
  // the barrier was made here, and uses the core below.
  PyObject* far;
  std::uint32_t generation;  // as the generation of a channel
  BarrierEngine core;
};

extern PyTypeObject BarrierType;

int check_barrier(const BarrierObject* b, const char* verb);  // as check_end() of ends.hpp

}  // namespace weft::py
