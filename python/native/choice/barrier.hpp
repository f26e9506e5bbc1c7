// The object that Python sees as a barrier.
#pragma once
#include <cstdint>

#include "value.hpp"

namespace weft::py {

struct BarrierObject {
  PyObject_HEAD PyObject* name;
  // of one that another OS process has made: the Reader at which a read is an arrival. Null: it was
  // made here, and the core is its
  PyObject* far;
  std::uint32_t generation;  // as of a channel
  BarrierEngine core;
};

extern PyTypeObject BarrierType;

int check_barrier(const BarrierObject* b, const char* verb);  // as check_end() of ends.hpp

}  // namespace weft::py
