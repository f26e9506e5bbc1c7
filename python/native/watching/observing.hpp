// Whether anybody observes the program (observe.hpp).
#pragma once
#include "weft/prim.hpp"

namespace weft::py {

// It is written under the GIL, and read also without it.
extern prim::atomic<bool> observer_is_set;
inline bool observing() noexcept { return observer_is_set.load(std::memory_order_relaxed); }

}  // namespace weft::py
