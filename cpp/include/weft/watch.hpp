// A process's end (rule 7.11), and a handle by which one process is cancelled.
//
//   weft::Watch<int> w;
//   weft::run(w.of(worker(…)), supervisor(w));      w.of(p): a process that runs p, and tells w
//   co_await weft::select(w.ended(), in);           then w.get(): how it ended, its result, its failure
//   w.cancel();
//
//   new ──of(): started──► runs ──ends──► ended, for good: the latch is set
//
// The state is shared by all copies of a Watch; what is under its mutex is who runs. A watcher is alive as long as another copy is.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "alt.hpp"
#include "stopping.hpp"

namespace weft::inline WEFT_ABI {

// How a process ended: `result` if it returned (null: it has none), `error` if it failed.
template <class R>
struct Ended {
  Ending how;
  std::shared_ptr<const R> result;
  std::exception_ptr error;
};

namespace detail {

struct WatchState {
  core::LatchCore<Shared> latch;  // last_writer: the process
  std::mutex mutex;
  runtime::ProcessBase* process = nullptr;  // while it runs
  bool given = false, cancelled = false;
  Ending how = Ending::returned;
  std::exception_ptr error;
  std::shared_ptr<const void> result;
  std::string name;
  WatchState() noexcept { latch.name = "the end of a process"; }
  // It is that of this process, which was given here.
  void is_of(const char* process, const char* file, std::uint32_t line) {
    const core::Place given_at{.name = file, .line = line, .last_reader = {}, .last_writer = {}};
    name = std::string("the end of ") + (process ? process : "a process") + " (" + runtime::name_of(given_at) + ")";
    latch.name = name.c_str();
  }
};

inline bool withdraw_end(runtime::ProcessBase& p) noexcept {
  if (!static_cast<core::LatchCore<Shared>*>(static_cast<core::Place*>(p.place))->withdraw(p)) return false;
  p.status = Status::cancelled;
  return true;
}
inline void visit_end(runtime::ProcessBase& p, runtime::Places& v) { v.end(*static_cast<core::Place*>(p.place)); }
inline void undecided_end(runtime::ProcessBase& p, runtime::Places& v) {
  if (!static_cast<core::LatchCore<Shared>*>(static_cast<core::Place*>(p.place))->ready()) visit_end(p, v);
}
inline constexpr runtime::OpKind end_op{"wait for", &withdraw_end, &visit_end, &undecided_end};

// One process, awaited: what leaves it is thrown, a quiet end too.
template <class P>
struct Loudly {
  P p;
  explicit Loudly(P&& x) : p(std::move(x)) {}  // as Awaited
  auto bind(runtime::ProcessBase* me) && { return One<P, Alone<P>>(std::move(p), me); }
};

}  // namespace detail

// A process's end as a guard; awaited it is just waited for. In a thread called.
struct EndOf : Conditional<EndOf> {
  using Value = void;
  std::shared_ptr<detail::WatchState> state;
  explicit EndOf(std::shared_ptr<detail::WatchState> s) : state(std::move(s)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::latch;
    g.ops = &core::barrier_ops<core::LatchCore<Shared>>;
    g.where = &state->latch;
  }
  const core::Place* place() const noexcept { return &state->latch; }

  struct Awaiter {
    std::shared_ptr<detail::WatchState> state;
    runtime::ProcessBase* p;
    bool await_ready() {
      detail::meet_request(*p);
      p->place = static_cast<core::Place*>(&state->latch);
      p->status = state->latch.begin_wait(*p);
      if (p->status == Status::ok) return true;
      p->op = &detail::end_op;
      return false;
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const {
      p->op = nullptr;
      if (p->status == Status::cancelled) detail::throw_cancelled(*p);
    }
  };
  Awaiter bind(runtime::ProcessBase* p) const { return {state, p}; }
  void operator()() const {
    runtime::ThreadProcess& self = detail::blocking_caller("ended()");
    Awaiter a{state, &self};
    if (!a.await_ready()) self.block(detail::end_op);
    a.await_resume();
  }
};

template <class R>
class Watch {
 public:
  Watch() : state_(std::make_shared<detail::WatchState>()) {}

  // A process that runs p; p's failure is its own. Once. Reports name p and this line. BadUse: it was given one already.
  template <Startable P>
  Process of(P p, const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) const {
    return give(state_, std::move(p), false, file, line);
  }
  // The same, but p's failure goes to who watches, as long as another copy of this handle lives; else it is its own.
  template <Startable P>
  Process watched(P p, const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) const {
    return give(state_, std::move(p), true, file, line);
  }

  // Ready once the process has ended, and then always; never if it is not started. BadUse: within that process.
  EndOf ended() const {
    const std::lock_guard g(state_->mutex);
    for (const runtime::ProcessBase* p = runtime::this_process(); p && state_->process; p = p->group ? p->group->parent : nullptr)
      if (p == state_->process) detail::bad_use("ended() of the process itself: it would wait for ever");
    return EndOf(state_);
  }
  // What it came to. BadUse: it has not ended.
  Ended<R> get() const {
    if (!state_->latch.ready()) detail::bad_use("get() of a process that has not ended: wait for ended() first");
    return {state_->how, std::static_pointer_cast<const R>(state_->result), state_->error};
  }
  bool done() const { return state_->latch.ready(); }
  // Asks it to end (rule 6), also before it has begun. From any thread.
  void cancel() const {
    const std::lock_guard g(state_->mutex);
    if (state_->process)
      state_->process->group->cancel(*state_->process);
    else
      state_->cancelled = true;
  }

 private:
  using State = std::shared_ptr<detail::WatchState>;
  template <class P>
  static Process give(const State& s, P p, bool watched, const char* file, std::uint32_t line) {
    static_assert(std::is_same_v<typename P::result_type, R>, "weft: a Watch<R> is of a process whose result is an R");
    const std::lock_guard g(s->mutex);
    if (std::exchange(s->given, true)) detail::bad_use("a Watch is of one process: make another");
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
    s.latch.set();
  }
  template <class P>
  static Process run(State s, P p, bool watched) {
    std::exception_ptr left;
    Ending how = Ending::returned;
    try {
      if (!begins(*s)) throw Cancelled();
      if constexpr (std::is_void_v<R>)
        co_await detail::Loudly<P>(std::move(p));
      else
        s->result = std::make_shared<const R>(co_await detail::Loudly<P>(std::move(p)));
    } catch (...) {
      how = detail::left_by_handled().how;
      left = std::current_exception();
    }
    const bool theirs = watched && how == Ending::failed && s.use_count() > 1;
    ends(*s, how, how == Ending::failed ? left : nullptr);
    if (left && !theirs) detail::raise_again(left);
  }
  State state_;
};

}  // namespace weft::inline WEFT_ABI
