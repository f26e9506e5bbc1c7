// How a safe point does the deferred work (pending.cpp). value.hpp declares defer_decref(), which
// defers.
#pragma once

namespace weft::py {

extern bool something_pending;
void run_deferred_now() noexcept;
bool ends_pending() noexcept;        // are there queued ends that this thread may retire?
bool deferred_runs_here() noexcept;  // does a finaliser run (pending.cpp)?
inline void run_deferred() noexcept {
  if (something_pending) [[unlikely]]
    run_deferred_now();
}

}  // namespace weft::py
