// How a thread begins an operation at a channel: which thread calls, at which line, and whether it
// may block. A check decides when a thread process of its own continues (runtime/checked_call.hpp),
// and refuses every other thread at what the checked function has made.
//
//   not_from_outside() ──► blocking_caller() ──► ThreadCall ──► begin_blocking() ──► ok, or an end
//                                                                 └──pending──► the thread blocks
#pragma once
#include "core/waiter.hpp"
#include "here.hpp"
#include "runtime/checked_call.hpp"
#include "runtime/points.hpp"
#include "runtime/thread.hpp"

namespace weft::inline WEFT_ABI::detail {

// Returns the calling thread. Throws BadUse in a coroutine: blocking would stop its scheduler.
runtime::ThreadProcess& blocking_guest(const char* what);
#if WEFT_CHECKED
// Returns the thread process that calls, in a check. Throws BadUse in a coroutine, and in ordinary
// code: there the operation cannot be checked.
runtime::ThreadProcess& checked_caller(const char* what);
#endif

// Throws BadUse if a checked function has made the place, and the calling thread does not belong to
// the check: no check decides when that thread continues.
#if WEFT_CHECKED
[[noreturn]] void from_outside(const core::SyncObject& place);
inline void not_from_outside(const core::SyncObject& place) {
  if (place.in_check && !runtime::points) [[unlikely]]
    from_outside(place);
}
#else
constexpr void not_from_outside(const core::SyncObject&) noexcept {}
#endif

// An operation that a thread process begins at the line `at`.
struct ThreadCall : runtime::CheckedCall {
#if WEFT_CHECKED
  ThreadCall(runtime::ThreadProcess& p, Here at, bool yields = false) noexcept
      : runtime::CheckedCall((waits_at(p, at), p), yields) {}
#else
  constexpr ThreadCall(runtime::ThreadProcess& p, Here, bool = false) noexcept
      : runtime::CheckedCall(p) {}
#endif
};
inline runtime::ThreadProcess& blocking_caller(const char* what) {
#if WEFT_CHECKED
  if (runtime::points) return checked_caller(what);
#endif
  if (runtime::ThreadProcess* p = runtime::ThreadProcess::plain()) [[likely]]
    return *p;
  return blocking_guest(what);
}

template <core::Side S, class C>
[[gnu::noinline]] Status begin_waiting(C* c, runtime::ThreadProcess& self, void* slot) {
  self.worth_waiting([c]() noexcept { return c->template ready<S>(); });
  self.slot = slot;
  return c->template begin<S>(self);
}

// Begins a thread's read or write. If a buffer does not let the operation through immediately, the
// thread waits briefly (waiting.hpp) before it joins the waiting queue, where each value costs a
// wake-up.
template <core::Side S, class C>
inline Status begin_blocking(C* c, runtime::ThreadProcess& self, void* slot) {
#if WEFT_CHECKED
  if (runtime::points) {
    runtime::points->arrives(self, *c,
                             S == core::Side::in ? runtime::Access::read : runtime::Access::write);
    self.slot = slot;
    return c->template begin<S>(self);
  }
#endif
  if (!c->buffered()) {
    self.slot = slot;
    return c->template begin_slow<S>(self);  // The thread of a process owns no biased locks.
  }
  if (c->template pass<S>(slot)) [[likely]]
    return Status::ok;
  return begin_waiting<S>(c, self, slot);
}

}  // namespace weft::inline WEFT_ABI::detail
