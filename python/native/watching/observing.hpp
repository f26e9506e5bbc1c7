// Whether the program has an observer (observe.hpp).
#pragma once
#include "weft/prim.hpp"

namespace weft::py {

// Written under the GIL; also read without it.
extern prim::atomic<bool> observer_is_set;
inline bool observing() noexcept { return observer_is_set.load(std::memory_order_relaxed); }

}  // namespace weft::py
