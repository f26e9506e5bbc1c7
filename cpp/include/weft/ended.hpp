// The end of a process as a guard (rule 7.11). A Watch (watch.hpp) makes such guards, and lists of
// guards may contain them.
//
// A WatchState is shared by all copies of a Watch and by its guards; its mutex protects the
// pointers to the process that runs.
#pragma once
#include <mutex>
#include <string>

#include <memory>
#include "blocking.hpp"
#include "core/latch.hpp"
#include "guards.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {

struct WatchState {
  core::LatchEngine<Shared> latch;  // The latch's last_writer is the watched process.
  std::mutex mutex;
  // The process that runs the watched process; null before and afterwards.
  runtime::ProcessBase* process = nullptr;
  runtime::Group* inside = nullptr;  // the group of the watched process while that process runs
  bool given = false, cancelled = false;
  Ending how = Ending::returned;
  std::exception_ptr error;
  std::shared_ptr<const void> result;
  std::string name;
  WatchState() noexcept { latch.name = "the end of a process"; }
  // Called with the group when the watched process begins to run in it, and with null when the
  // process has ended. A cancellation that arrived earlier is passed on to the process.
  void runs(runtime::Group* g) noexcept {
    const std::lock_guard l(mutex);
    inside = g;
    if (g && std::exchange(cancelled, false)) g->cancel();
  }
  // Names the latch after this process, which was given to the Watch at file:line.
  void is_of(const char* process, const char* file, std::uint32_t line) {
    const core::SyncObject given_at{
        .name = file, .line = line, .last_reader = {}, .last_writer = {}};
    name = std::string("the end of ") + (process ? process : "a process") + " (" +
           runtime::name_of(given_at) + ")";
    latch.name = name.c_str();
  }
};

inline bool withdraw_end(runtime::ProcessBase& p) noexcept {
  if (!static_cast<core::LatchEngine<Shared>*>(static_cast<core::SyncObject*>(p.place))
           ->withdraw(p))
    return false;
  p.status = Status::cancelled;
  return true;
}
inline void visit_end(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
  v.end(*static_cast<core::SyncObject*>(p.place));
}
inline void undecided_end(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
  if (!static_cast<core::LatchEngine<Shared>*>(static_cast<core::SyncObject*>(p.place))->ready())
    visit_end(p, v);
}
inline constexpr runtime::OpKind end_op{"wait for", &withdraw_end, &visit_end, &undecided_end};

}  // namespace detail

// The end of a process as a guard. To wait for this end alone, co_await the guard in a coroutine,
// or call it in a thread.
struct EndOf : Conditional<EndOf> {
  using Value = void;
  std::shared_ptr<detail::WatchState> state;
  explicit EndOf(std::shared_ptr<detail::WatchState> s) : state(std::move(s)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::latch;
    g.ops = &core::barrier_ops<core::LatchEngine<Shared>>;
    g.where = state ? &state->latch : nullptr;
  }

  struct Awaiter {
    std::shared_ptr<detail::WatchState> state;
    runtime::ProcessBase* p;
    // Returns true if the watched process has ended already.
    bool begin() {
      detail::meet_request(*p);
      p->place = static_cast<core::SyncObject*>(&state->latch);
      WEFT_POINT(arrives(*p, state->latch, runtime::Access::look));
      p->status = state->latch.begin_wait(*p);
      if (p->status == Status::ok) return true;
      p->op = &detail::end_op;
      return false;
    }
    bool await_ready() { return begin() && detail::goes_on(p); }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const {
      p->op = nullptr;
      if (p->status == Status::cancelled) detail::throw_cancelled(*p);
    }
  };
  Awaiter bind(runtime::ProcessBase* p) const {
    check();
    return {state, p};
  }
  void operator()(detail::Here at = detail::Here::now()) const {
    check();
    runtime::ThreadProcess& self = detail::blocking_caller("ended()");
    const detail::ThreadCall call(self, at);
    Awaiter a{state, &self};
    if (!a.begin()) {
      detail::waits_at(self, at);
      self.block(detail::end_op);
    }
    a.await_resume();
  }

 private:
  void check() const {
    if (!state) detail::moved_end("ended()");
  }
};

}  // namespace weft::inline WEFT_ABI
