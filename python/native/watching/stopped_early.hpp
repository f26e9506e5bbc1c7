// Readers that stopped early (rule 3.6): see stopped_early.cpp.
#pragma once
#include "native.hpp"

namespace weft::py {

// A process has been ended by this Retired. `why`: see no_result.hpp.
void look_for_early_stop(PyObject* left, PyObject* why) noexcept;

}  // namespace weft::py
