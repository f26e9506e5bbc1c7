// How the thread of a block in ordinary code becomes a process of a scheduler, and waits
// (home.cpp).
#pragma once
#include "value.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

struct ThreadProcess;

// From here on the thread is a process of `s`.
void enter_home(ThreadProcess& t, runtime::Scheduler& s);
// Called before that scheduler goes.
void leave_home(ThreadProcess& t) noexcept;
// Returns that scheduler; null: the thread is no process of one.
runtime::Scheduler* home_here(runtime::ThreadProcess& t) noexcept;
// Waits until the operation that has begun is decided.
void wait_home(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept;
void yield_home(runtime::ThreadProcess& t) noexcept;

}  // namespace weft::py
