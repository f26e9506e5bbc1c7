// Readers that stopped early (rule 3.6): see stopped_early.cpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

namespace weft::py {

// A value of ChannelObject::readers_returned, which means that a reader end was closed in another
// way than by the return of its process, or that too many were closed to be counted.
inline constexpr std::uint8_t kOtherwise = 255;

// Called when this Retired has ended a process. `why`: see no_result.hpp.
void look_for_early_stop(PyObject* left, PyObject* why) noexcept;

}  // namespace weft::py
