// Time (rule 8.5): sleeping, timers, and the clock of the run. Spans are std::chrono durations;
// points in time are ns on the run's clock, which can be virtual.
#pragma once
#include <chrono>
#include "compose.hpp"
#include "count.hpp"

namespace weft::inline WEFT_ABI {

using Span = std::chrono::nanoseconds;

namespace detail {

inline runtime::Run& run_of(runtime::ProcessBase& p) noexcept {
  if (p.group) return p.group->run;
  return *static_cast<runtime::ThreadProcess&>(p).run;
}

// Waits for a point in time: a choice with a timer and no other guard.
struct Sleep {
  core::Choice choice;
  runtime::TimerNode timer;

  static bool withdraw(runtime::ProcessBase& p) noexcept {
    auto* s = static_cast<Sleep*>(p.place);
    return s->choice.finish_as(core::CANCELLED);
  }
  static void visit(runtime::ProcessBase&, runtime::WaitVisitor&) {}
  // Reports whether the awaited time will be reached, so that the process can continue, or never.
  static void undecided(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
    auto* s = static_cast<Sleep*>(p.place);
    if (s->choice.word() == core::WAITING)
      s->timer.deadline == prim::forever ? v.nowhere() : v.timed();
  }
  static constexpr runtime::OpKind kind{"sleep", &withdraw, &visit, &undecided};

  void begin(runtime::ProcessBase& p, std::int64_t deadline) {
    WEFT_POINT(sleeps(p));
    choice.waker = &p;
    choice.arm();
    p.place = this;
    timer.deadline = deadline;
    timer.choice = &choice;
    run_of(p).arm(timer);
  }
  void finish(runtime::ProcessBase& p) {
    run_of(p).disarm(timer);
    p.op = nullptr;
    if (choice.word() == core::CANCELLED) {
      throw_cancelled(p);
    }
  }
};

}  // namespace detail

// Returns the time in ns, on the clock of the run to which this process belongs. Outside any run,
// returns the time of the steady clock.
inline std::int64_t now() {
  WEFT_POINT(reads_clock());
  runtime::ProcessBase* p = runtime::this_process();
  if (p && p->group) return p->group->run.now();
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null(); t && t->run)
    return t->run->now();
  return prim::now();
}

struct SleepOp {
  std::int64_t until;
  struct Awaiter {
    runtime::ProcessBase* p;
    std::int64_t until;
    detail::Sleep s;
    bool past = false;
    bool await_ready() {
      detail::meet_request(*p);
      if (until <= detail::run_of(*p).now()) {
        s.choice.arm();
        past = true;
        return YieldOp::Awaiter{p}.await_ready();
      }
      s.begin(*p, until);
      p->op = &detail::Sleep::kind;
      return false;
    }
    void await_suspend(std::coroutine_handle<> h) const noexcept {
      if (past) YieldOp::Awaiter{p}.await_suspend(h);
    }
    void await_resume() { s.finish(*p); }
  };
  Awaiter bind(runtime::ProcessBase* p) const { return {p, until, {}}; }
  // Sleeps in a thread.
  void operator()(detail::Here at = detail::Here::now()) const {
    runtime::ThreadProcess& self = detail::blocking_caller("sleep()");
    const bool past = until <= self.run->now();
    const detail::ThreadCall call(self, at, past);
    detail::meet_request(self);
    if (past) return std::this_thread::yield();
    detail::Sleep s;
    s.begin(self, until);
    detail::waits_at(self, at);
    self.block(detail::Sleep::kind);
    s.finish(self);
  }
};
// Sleeps: co_await sleep(1ms) in a coroutine; sleep(1ms)() in a thread. It never ends early. Throws
// Cancelled. sleep(Span::max()) ends only by a cancellation (rule 8.5).
[[nodiscard]] inline SleepOp sleep(detail::Lasting s) { return {runtime::later(now(), s.count())}; }
[[nodiscard]] inline SleepOp sleep_until(std::int64_t at) noexcept { return {at}; }

// Ticks without drift: the k-th tick is at start + k × period. Missed ticks are counted, not
// queued. The constructor throws BadUse if the period is not positive.
class Timer {
 public:
  explicit Timer(detail::Lasting period)
      : period_(period.count()), next_(runtime::later(now(), period.count())) {
    if (period.count() <= 0) detail::bad_use("Timer: the period must be positive");
  }
  // Returns when the next tick is due, in ns. To use the timer as a guard, write at(timer.next()),
  // and call timer.ticked() afterwards.
  std::int64_t next() const noexcept { return next_; }
  // Returns how many periods have passed since the last tick (0 if the next tick is not due yet).
  std::uint64_t ticked() {
    const std::int64_t t = now();
    if (t < next_) return 0;
    const std::int64_t n = (t - next_) / period_ + 1;
    next_ = runtime::later(next_ + (n - 1) * period_, period_);
    return static_cast<std::uint64_t>(n);
  }
  // Waits for the next tick: co_await timer.tick(); then call ticked().
  [[nodiscard]] SleepOp tick() const noexcept { return {next_}; }

 private:
  std::int64_t period_;
  std::int64_t next_;
};

// A barrier (rule 8). Copies refer to the same barrier.
class Barrier {
 public:
  using Engine = core::BarrierEngine<Shared>;

  // Makes a barrier with this number of enrolled parties. Throws BadUse if the number is out of
  // range.
  explicit Barrier(detail::Count parties, detail::Here at = detail::Here::now())
      : core_(new Engine(parties.up_to_32_bits("Barrier: the parties"))) {
    detail::made_at(*core_, at, "a barrier that the standard library made");
    core_->references.up();
    WEFT_POINT(made(*core_, 0, false));
  }
  Barrier(const Barrier& o) noexcept : core_(o.core_) { core_->references.up(); }
  Barrier& operator=(const Barrier& o) noexcept {
    Barrier b(o);
    std::swap(core_, b.core_);
    return *this;
  }
  ~Barrier() {
    // The storage is kept while a party waits at the barrier through a reference to this handle
    // (rule 11.3).
    if (core_->references.down() && !core_->waited()) {
      WEFT_POINT(gone(*core_, 0));
      delete core_;
    }
  }

  // Enrols one more party (rule 8).
  void enrol() const noexcept {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    core_->enrol_party();
  }
  // Removes one party. Throws BadUse if no party is enrolled.
  void resign() const {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    if (!core_->resign())
      detail::bad_use(
          "Barrier::resign: nobody is enrolled: make it with parties, or enrol() first");
  }
  std::uint32_t parties() const noexcept {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    return core_->enrolled();
  }
  std::uint64_t phases() const noexcept {
    WEFT_POINT(touches(*core_, runtime::Access::all));
    return core_->phases();
  }
  Engine* core() const noexcept { return core_; }

  struct Sync {
    Engine* c;
    struct Awaiter {
      runtime::ProcessBase* p;
      Engine* c;
      bool await_ready() { return begin(*p, c) && detail::goes_on(p); }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      void await_resume() { finish(*p); }
    };
    Awaiter bind(runtime::ProcessBase* p) const noexcept { return {p, c}; }
    void operator()(detail::Here at = detail::Here::now()) const {
      runtime::ThreadProcess& self = detail::blocking_caller("sync()");
      const detail::ThreadCall call(self, at);
      if (!begin(self, c)) {
        detail::waits_at(self, at);
        self.block(kind);
      }
      finish(self);
    }

   private:
    static bool begin(runtime::ProcessBase& p, Engine* c) {
      detail::meet_request(p);
      if (c->enrolled() == 0)
        detail::bad_use(
            "Barrier::sync: nobody is enrolled: make it with parties, or enrol() first");
      p.status = Status::ok;
      WEFT_POINT(arrives(p, *c, runtime::Access::join));
      if (c->begin_sync(p) != Status::pending) return true;
      p.op = &kind;
      return false;
    }
    static void finish(runtime::ProcessBase& p) {
      p.op = nullptr;
      if (p.status == Status::cancelled) {
        detail::throw_cancelled(p);
      }
      if (p.status == Status::died)
        throw PeerDied("sync: the barrier has died, with a program that had it or has made it", -1);
    }
    static bool withdraw(runtime::ProcessBase& p) noexcept {
      if (!static_cast<Engine*>(static_cast<core::SyncObject*>(p.place))->withdraw(p)) return false;
      p.status = Status::cancelled;
      return true;
    }
    static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
      v.barrier(*static_cast<core::SyncObject*>(p.place));
    }
    static void undecided(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
      auto& c = *static_cast<Engine*>(static_cast<core::SyncObject*>(p.place));
      if (detail::in_line(c, p)) v.barrier(c);
    }
    static constexpr runtime::OpKind kind{"sync", &withdraw, &visit, &undecided};
  };
  // Waits until every enrolled party has arrived: co_await b.sync() in a coroutine; b.sync()() in a
  // thread. Throws Cancelled, PeerDied (rule 8.7), and BadUse if no party is enrolled.
  [[nodiscard]] Sync sync() const noexcept { return {core_}; }

 private:
  Engine* core_;
};

}  // namespace weft::inline WEFT_ABI
