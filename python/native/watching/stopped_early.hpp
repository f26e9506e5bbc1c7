// Readers that stopped early (rule 3.6): see stopped_early.cpp.
#pragma once
#include "native.hpp"

namespace weft::py {

// Of ChannelObject::readers_returned: a reader end went in another way, or there were too many.
inline constexpr std::uint8_t kOtherwise = 255;

// A process is left by this Retired. `why`: see no_result.hpp.
void look_for_early_stop(PyObject* left, PyObject* why) noexcept;

int init_stopped_early();

}  // namespace weft::py
