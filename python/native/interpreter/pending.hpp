// How a safe point does what was deferred (pending.cpp). value.hpp has defer_decref(), which
// defers.
#pragma once

namespace weft::py {

extern bool something_pending;
void run_deferred_now() noexcept;
bool ends_pending() noexcept;        // are ends queued, which this thread may retire?
bool deferred_runs_here() noexcept;  // a finaliser runs (pending.cpp)
inline void run_deferred() noexcept {
  if (something_pending) [[unlikely]]
    run_deferred_now();
}

}  // namespace weft::py
