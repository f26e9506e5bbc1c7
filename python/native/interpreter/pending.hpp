// Runs the deferred work at a safe point (pending.cpp). value.hpp declares defer_decref(), which
// defers the drop of a reference.
#pragma once

namespace weft::py {

extern bool something_pending;
void run_deferred_now() noexcept;
// returns whether there are queued ends that this thread is allowed to retire
bool ends_pending() noexcept;
// returns whether a finaliser runs on this thread (pending.cpp)
bool deferred_runs_here() noexcept;
inline void run_deferred() noexcept {
  if (something_pending) [[unlikely]]
    run_deferred_now();
}

}  // namespace weft::py
