// Calls that block (rule 15.9): co_await weft::blocking(f) in a coroutine, weft::blocking(f)()
// elsewhere.
#pragma once
#include "compose.hpp"
#include "runtime/blocking.hpp"

namespace weft::inline WEFT_ABI {

template <class F>
class BlockingOp {
  using R = std::invoke_result_t<F&>;
  static_assert(!std::is_reference_v<R>,
                "blocking: the function must return a value, not a reference");

 public:
  explicit BlockingOp(F f) : f_(std::move(f)) {}

  struct Awaiter : runtime::Job {
    F f;
    std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>> result;
    std::exception_ptr failure;
    bool withdrawn = false;

    Awaiter(F&& g, runtime::ProcessBase* p) : f(std::move(g)) {
      process = p;
      run = &p->group->run;
      call = [](runtime::Job& j) noexcept {
        auto& me = static_cast<Awaiter&>(j);
        try {
          if constexpr (std::is_void_v<R>)
            me.f();
          else
            me.result.emplace(me.f());
        } catch (...) {
          me.failure = detail::caught(*me.process);
        }
      };
    }
    bool await_ready() {
      detail::meet_request(*process);
#if WEFT_CHECKED
      if (runtime::points) {  // A check has no helper threads: it calls the function here.
        call(*this);
        return true;
      }
#endif
      return false;
    }
    void await_suspend(std::coroutine_handle<>) {
      helpers().submit(*this);
      process->place = static_cast<runtime::Job*>(this);
      process->op = &kind;
    }
    R await_resume() {
      process->op = nullptr;
      if (withdrawn) {
        detail::throw_cancelled(*process);
      }
      if (failure) std::rethrow_exception(std::move(failure));
      if constexpr (!std::is_void_v<R>) return std::move(*result);
    }

   private:
    runtime::Helpers& helpers() const { return run->template part<runtime::Helpers>(); }
    static bool withdraw(runtime::ProcessBase& p) noexcept {
      auto* me = static_cast<Awaiter*>(static_cast<runtime::Job*>(p.place));
      runtime::Run& run = *me->run;
      if (!me->helpers().withdraw(*me)) return false;
      me->withdrawn = true;
      run.leave_outside();
      return true;
    }
    static constexpr runtime::OpKind kind{"blocking call", &withdraw,
                                          [](runtime::ProcessBase&, runtime::WaitVisitor&) {}};
  };
  Awaiter bind(runtime::ProcessBase* p) && {
    if (std::exchange(spent_, true)) detail::awaited_twice("blocking(…)");
    return Awaiter(std::move(f_), p);
  }
  // Calls the function on the calling thread, also outside any process. Throws BadUse in a
  // coroutine.
  R operator()() {
    if (runtime::this_context && runtime::this_context->executor && runtime::this_context->running)
      detail::blocking_caller("blocking(…)()");
    return f_();
  }

 private:
  F f_;
  bool spent_ = false;
};

// Calls f, which can block, without holding up other processes. The operation returns or throws
// what f does. It also throws Cancelled if the process is cancelled before f has begun, and
// std::system_error if the system cannot start a thread.
template <class F>
[[nodiscard]] BlockingOp<std::decay_t<F>> blocking(F&& f) {
  return BlockingOp<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace weft::inline WEFT_ABI
