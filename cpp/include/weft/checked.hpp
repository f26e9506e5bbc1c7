// How a coroutine's operation waits to be scheduled while it is checked (runtime/points.hpp). This
// header is only for code that is compiled with WEFT_CHECKED=1.
//
//   await_ready() ──pauses()──► in the run queue ──run()──► go(): the operation begins
//        └──it begins at once───────────────────────────────► go() ─done─► begun() ─► await_resume()
//                                                              └──parked: as without a check
//
// Invariants
//  1 While the process is paused it has the ops of this class, so that run() begins the operation
//    before the coroutine is resumed.
//  2 The operation's awaiter is made when the operation begins, and not before.
#pragma once
#include <coroutine>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/group.hpp"
#include "runtime/points.hpp"

#if WEFT_CHECKED
namespace weft::inline WEFT_ABI::detail {

using runtime::paused_op;

template <class Make>
class Checked {
  using Inner = std::invoke_result_t<Make&>;

 public:
  static constexpr bool is_checked = true;

  Checked(runtime::ProcessBase* p, std::coroutine_handle<> h, bool yields, Make make) noexcept
      : p_(p), handle_(h), make_(std::move(make)), yields_(yields) {}
  Checked(const Checked&) noexcept;  // must never be copied (see PlainAwaiter)
  Checked& operator=(const Checked&) = delete;
  ~Checked() {
    if (made_) inner_.~Inner();
  }

  bool await_ready() {
    if (!runtime::points) {  // the program could be checked, but no check is running
      begin();
      return over_ = inner_.await_ready();
    }
    if (!runtime::points->pauses(*p_, yields_)) return go();
    usual_ = p_->ops;
    p_->place = this;
    p_->op = &paused_op;
    p_->runs_by(ops);
    return false;
  }
  void await_suspend(std::coroutine_handle<>) {
    if (made_ && !over_) inner_.await_suspend(handle_);
  }
  decltype(auto) await_resume() {
    if (failure_) std::rethrow_exception(std::move(failure_));
    return inner_.await_resume();
  }

 private:
  void begin() {
    ::new (static_cast<void*>(&inner_)) Inner(make_());
    made_ = true;
  }
  // Begins the operation. Returns true if the coroutine continues at once.
  bool go() {
    runtime::Points& points = *runtime::points;
    p_->line.begin_anew();  // the process yields only where the check decides so
    points.begins(*p_);
    Begun how = Begun::done;
    try {
      begin();
      if (!inner_.await_ready()) how = Begun::parked;
      if constexpr (requires { inner_.has_ended(); })
        if (how == Begun::done && inner_.has_ended()) how = Begun::raised;
    } catch (...) {
      failure_ = std::current_exception();
      how = Begun::raised;
    }
    over_ = how != Begun::parked;
    if (!points.begun(*p_, how)) return over_;
    p_->op = &paused_op;
    return false;
  }
  using Begun = runtime::Begun;

  static void run(core::Waker* w) {
    auto* const p = static_cast<runtime::ProcessBase*>(w);
    auto* const self = static_cast<Checked*>(p->place);
    runtime::this_context->running = p;
    p->op = nullptr;
    p->runs_by(*self->usual_);
    if (self->go()) return self->handle_.resume();
    self->await_suspend(self->handle_);
  }
  static void wake(core::Waker* w) noexcept {
    home(*static_cast<runtime::ProcessBase*>(w))->post(w);
  }
  static runtime::Executor* home(runtime::ProcessBase& p) noexcept {
    return &runtime::executor_of(p);
  }
  static const runtime::ProcessOps ops;

  runtime::ProcessBase* const p_;
  const std::coroutine_handle<> handle_;
  Make make_;
  union {
    Inner inner_;
  };
  const core::WakerOps* usual_ = nullptr;
  std::exception_ptr failure_;
  const bool yields_;
  bool made_ = false, over_ = false;
};
template <class Make>
const runtime::ProcessOps Checked<Make>::ops{{&Checked::wake, &Checked::run, nullptr, 0},
                                             &Checked::home};

}  // namespace weft::inline WEFT_ABI::detail
#endif
