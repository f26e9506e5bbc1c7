// A CheckedCall is an operation of a thread process while the process is checked. As with a
// coroutine's operation (checked.hpp), another process may run before the operation begins, and
// again after the operation if it ends at once. Outside a check, and in code that is not compiled
// for checks, a CheckedCall does nothing.
//
//   CheckedCall() ──► pauses(), begins() ──► the operation ──► block(): begun(), parks()
//                                                └──done at once──► ~CheckedCall(): begun()
#pragma once
#include <exception>

#include "points.hpp"
#include "thread.hpp"

namespace weft::inline WEFT_ABI::runtime {

#if WEFT_CHECKED
class CheckedCall {
 public:
  // `yields` says that the ready processes run first (rule 7.7).
  explicit CheckedCall(ThreadProcess& p, bool yields = false) noexcept : p_(p) {
    if (!points) return;
    outer_ = std::exchange(p.call, this);
    leaving_ = std::uncaught_exceptions();
    if (points->pauses(p, yields)) lets_go(p);
    points->begins(p);
  }
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;
  ~CheckedCall() {
    if (!points) return;
    p_.call = outer_;
    if (parked_) return;
    const bool raised = std::uncaught_exceptions() > leaving_;
    if (points->begun(p_, raised ? Begun::raised : Begun::done)) lets_go(p_);
  }
  // Called when the operation must wait; returns when the process has been woken.
  void parks() noexcept {
    if (!std::exchange(parked_, true)) points->begun(p_, Begun::parked);
    points->parks(p_);
  }
  // Called when the process is in the run queue between two operations. Returns once the process
  // has been scheduled again.
  static void lets_go(ThreadProcess& p) noexcept {
    p.waits_in(&paused_op);
    points->parks(p);
    p.waits_in(nullptr);
  }

 private:
  ThreadProcess& p_;
  CheckedCall* outer_ = nullptr;
  int leaving_ = 0;
  bool parked_ = false;
};
#else
struct CheckedCall {
  constexpr explicit CheckedCall(ThreadProcess&, bool = false) noexcept {}
};
#endif

}  // namespace weft::inline WEFT_ABI::runtime
