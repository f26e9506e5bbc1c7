// Watch: waits for the end of a process (rule 7.11), and can cancel that process.
//
//   weft::Watch<int> w;
//   weft::run(w.of(worker(…)), supervisor(w));  // w.of(p) makes a process that runs p for w
//   co_await weft::select(w.ended(), in);
//   w.get();                                    // how the process ended, its result, its failure
//   w.cancel();
//
//   new ──of(): started──► runs ──ends──► ended: the latch is set, and stays set
//
// All copies of a Watch share the state; its mutex protects the pointers to the process that runs.
// A watcher counts as alive as long as another copy exists. Two processes run: the process that
// w.of() makes, and inside it the watched process. Each call of cancel() asks the watched process,
// since a process that waits for another passes a request on only once (rule 6.1).
#pragma once
#include <mutex>

#include <memory>
#include "alt.hpp"
#include "ended.hpp"
#include "stopping.hpp"

namespace weft::inline WEFT_ABI {

// How a process ended. `result` contains the result of a process that returned (null if it has
// none); `error` contains the exception of a process that failed.
template <class R>
struct Ended {
  Ending how;
  std::shared_ptr<const R> result;
  std::exception_ptr error;
};

namespace detail {

// Awaits one process, and throws the exception that leaves it, even if that is a quiet end. While
// the process runs it can be cancelled through the state.
template <class P>
struct Watched : One<P, Alone<P>> {
  WatchState& state;
  Watched(P&& p, runtime::ProcessBase* me, WatchState& s)
      : One<P, Alone<P>>(std::move(p), me), state(s) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { state.runs(nullptr); }
  bool await_ready() {
    meet_request(*this->p);
    this->par.start(this->group);
    state.runs(&this->group);
    return GroupAwaiter::await_ready();
  }
};
template <class P>
struct AwaitAndRethrow {
  P p;
  WatchState& state;
  // A constructor keeps this class from being an aggregate, for the reason given at Awaited
  // (stopping.hpp).
  AwaitAndRethrow(P&& x, WatchState& s) : p(std::move(x)), state(s) {}
  auto bind(runtime::ProcessBase* me) && { return Watched<P>(std::move(p), me, state); }
};

}  // namespace detail

template <class R>
class Watch {
 public:
  Watch() : state_(std::make_shared<detail::WatchState>()) {}

  // Makes a process that runs p, and fails if p fails. Reports name p and the line of this call.
  // of() can be called only once: it throws BadUse if the Watch was given a process already.
  template <class X>
  Process of(X&& x, const char* file = __builtin_FILE(),
             std::uint32_t line = __builtin_LINE()) const {
    return give(state(), detail::to_process(std::forward<X>(x)), false, file, line);
  }
  // Makes a process that runs p, like of(), but as long as another copy of this handle exists, p's
  // failure goes to the watcher only. Without such a copy the process fails.
  template <class X>
  Process watched(X&& x, const char* file = __builtin_FILE(),
                  std::uint32_t line = __builtin_LINE()) const {
    return give(state(), detail::to_process(std::forward<X>(x)), true, file, line);
  }

  // Returns a guard that is ready from the end of the process on; it is never ready if the process
  // is not started. Throws BadUse inside that process itself.
  EndOf ended() const {
    const std::lock_guard g(state()->mutex);
    for (const runtime::ProcessBase* p = runtime::this_process(); p && state_->process;
         p = p->group ? p->group->parent : nullptr)
      if (p == state_->process)
        detail::bad_use("ended() of the process itself: it would wait for ever");
    return EndOf(state_);
  }
  // Returns how the process ended. Throws BadUse if it has not ended yet.
  Ended<R> get() const {
    WEFT_POINT(touches(state()->latch, runtime::Access::look));
    if (!state()->latch.ready())
      detail::bad_use("get() of a process that has not ended: wait for ended() first");
    return {state_->how, std::static_pointer_cast<const R>(state_->result), state_->error};
  }
  bool done() const {
    WEFT_POINT(touches(state()->latch, runtime::Access::look));
    return state()->latch.ready();
  }
  // Asks the process to end (rule 6), even before it has started. Can be called from any thread.
  void cancel() const {
    const std::lock_guard g(state()->mutex);
    if (state_->inside)
      state_->inside->cancel();
    else
      state_->cancelled = true;
  }

 private:
  using State = std::shared_ptr<detail::WatchState>;
  template <class P>
  static Process give(const State& s, P p, bool watched, const char* file, std::uint32_t line) {
    static_assert(std::is_same_v<typename P::result_type, R>,
                  "weft: a Watch<R> is for a process whose result is an R");
    const std::lock_guard g(s->mutex);
    if (std::exchange(s->given, true)) detail::bad_use("a Watch is for one process: make another");
    if constexpr (requires { p.called(); })
      s->is_of(p.called(), file, line);
    else
      s->is_of(nullptr, file, line);
    return run(s, std::move(p), watched);
  }
  static bool begins(detail::WatchState& s) {
    const std::lock_guard g(s.mutex);
    s.process = runtime::this_process();
    s.latch.last_writer = s.process->id;
    return !s.cancelled;
  }
  static void ends(detail::WatchState& s, Ending how, std::exception_ptr error) {
    {
      const std::lock_guard g(s.mutex);
      s.process = nullptr;
      s.how = how;
      s.error = std::move(error);
    }
    WEFT_POINT(touches(s.latch, runtime::Access::all));
    s.latch.set();
  }
  template <class P>
  static Process run(State s, P p, bool watched) {
    std::exception_ptr left;
    Ending how = Ending::returned;
    try {
      if (!begins(*s)) throw Cancelled();
      if constexpr (std::is_void_v<R>)
        co_await detail::AwaitAndRethrow<P>(std::move(p), *s);
      else
        s->result =
            std::make_shared<const R>(co_await detail::AwaitAndRethrow<P>(std::move(p), *s));
    } catch (...) {
      how = detail::left_by_handled().how;
      left = std::current_exception();
    }
    const bool theirs = watched && how == Ending::failed && s.use_count() > 1;
    ends(*s, how, how == Ending::failed ? left : nullptr);
    if (left && !theirs) detail::raise_again(left);
  }
  const State& state() const {
    if (!state_) detail::bad_use("this Watch was moved away: use the one to which it was moved");
    return state_;
  }
  State state_;
};

}  // namespace weft::inline WEFT_ABI
