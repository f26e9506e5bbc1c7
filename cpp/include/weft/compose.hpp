// Composition (rule 7): threads as processes, spawn, groups, and run, which starts the outermost network. par and seq are in blocks.hpp.
//
//   weft::run(weft::par(producer(c.writer()), consumer(c.reader())));       or shorter   weft::run(producer(…), consumer(…));
//   co_await weft::par(a(), b());      auto [x, y] = co_await weft::par(f(), g());      co_await weft::seq(a(), b());
//   weft::thread([r = c.reader()] { for (int v : r) … })                    a process on an OS thread, anywhere a process may stand
#pragma once
#include <functional>
#include <thread>
#include <tuple>
#include <variant>

#include "coroutine.hpp"
#include "runtime/outside.hpp"

namespace weft {

using Clock = runtime::Clock;

namespace detail {

// --- a thread as a process ------------------------------------------------------------------------------------------------------------

template <class F, class R>
class ThreadRunner final : public runtime::ThreadProcess {
 public:
  ThreadRunner(runtime::Run& r, F&& f) : ThreadProcess(&r), f_(std::move(f)) {}

  // Owns itself from here on, unless it throws.
  void launch(std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>>* result) {
    run->activated();
    try {
      run->keep([this, result] { body(result); });
    } catch (...) {
      run->deactivated();
      throw;
    }
  }

 private:
  template <class Slot>
  void body(Slot* result) noexcept {
    runtime::Run& r = *run;
    runtime::Group& g = *group;
    const std::uint32_t my_order = order();
    std::exception_ptr failure;
    {
      const Scope scope(*this);
      try {
        std::optional<F> f(std::move(f_));
        try {
          if constexpr (std::is_void_v<R>)
            (*f)();
          else if (result)
            result->emplace((*f)());
        } catch (const Poisoned& e) {
          context.dying = dying = e.strength;
          f.reset();
          context.dying = 0;
        }
      } catch (const Retired&) {
      } catch (const Cancelled&) {
      } catch (...) {
        failure = std::current_exception();
      }
    }
    g.unlink(*this);
    delete this;
    r.thread_done();
    g.finished(my_order, std::move(failure));
    r.deactivated();
  }
  F f_;
};

template <class F>
class ThreadTask {
 public:
  using result_type = std::remove_cvref_t<std::invoke_result_t<F&>>;

  ThreadTask(F f, const char* function, const char* file, std::uint32_t line)
      : f_(std::move(f)), function_(function), file_(file), line_(line) {}

  ThreadTask&& named(const char* name) && {
    function_ = name;
    return std::move(*this);
  }

  template <class Slot>
  void start(runtime::Group& g, Slot* result) {
    if (!f_) started_twice();
    auto* t = new ThreadRunner<F, result_type>(g.run, std::move(*f_));
    f_.reset();
    t->function = function_;
    t->file = file_;
    t->line = line_;
    g.add(*t);
    try {
      t->launch(result);
    } catch (...) {  // the system gives us no thread: a failure of this process, as the group has others by now
      const std::uint32_t order = t->order();
      g.unlink(*t);
      delete t;
      g.finished(order, std::current_exception());
    }
  }
  bool startable() const noexcept { return f_.has_value(); }

 private:
  std::optional<F> f_;
  const char* function_;
  const char* file_;
  std::uint32_t line_;
};

template <class R>
using Room = std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>>;

[[noreturn]] inline void raise_all(std::vector<std::exception_ptr> failures) {
  if (failures.size() == 1) std::rethrow_exception(failures[0]);
  throw Failures(std::move(failures));
}

// --- waiting for a group ----------------------------------------------------------------------------------------------------------------

// A cancelled wait cancels the children and goes on waiting: nothing outlives its group (rule 7.6).
inline bool withdraw_wait(runtime::ProcessBase& p) noexcept {
  static_cast<runtime::Group*>(p.place)->cancel();
  return false;
}
inline constexpr runtime::OpKind wait_op{"wait for", &withdraw_wait, nullptr};

inline void after_wait(runtime::ProcessBase& p, runtime::Group& g) {
  std::vector<std::exception_ptr> failures = g.take_failures();
  if (!failures.empty()) raise_all(std::move(failures));
  if (p.take_cancel()) throw Cancelled();
}

}  // namespace detail

// Run f (with no arguments; bind them) as a process on its own OS thread.
template <class F>
auto thread(F f, const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) {
  return detail::ThreadTask<F>(std::move(f), "thread", file, line);
}

template <class P>
concept Startable = requires(const P& p) {
  typename P::result_type;
  { p.startable() } -> std::same_as<bool>;
};

namespace detail {

// Wait in a coroutine until the group is done.
struct GroupAwaiter {
  runtime::ProcessBase* p;
  runtime::Group* g;
  bool await_ready() const noexcept {
    if (p->cancel.load(std::memory_order_relaxed)) g->cancel();
    if (g->begin_wait(*p) == Status::ok) return true;
    p->place = g;
    p->op = &wait_op;
    return false;
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const {
    p->op = nullptr;
    after_wait(*p, *g);
  }
};

// The result of a parallel: nothing if no process has any, a tuple otherwise (void becomes std::monostate).
template <class... Rs>
using ParResult =
    std::conditional_t<(std::is_void_v<Rs> && ...), void, std::tuple<std::conditional_t<std::is_void_v<Rs>, std::monostate, Rs>...>>;

template <class... Ps>
class Par {
 public:
  using Result = ParResult<typename Ps::result_type...>;
  explicit Par(Ps&&... ps) : ps_(std::move(ps)...) {}

  void start(runtime::Group& g) {
    if (!std::apply([](const auto&... p) { return (p.startable() && ...); }, ps_)) started_twice();
    [&]<std::size_t... I>(std::index_sequence<I...>) { (std::get<I>(ps_).start(g, &std::get<I>(rooms_)), ...); }
    (std::index_sequence_for<Ps...>{});
  }
  Result result() {
    if constexpr (!std::is_void_v<Result>) return std::apply([](auto&... r) { return Result{value(r)...}; }, rooms_);
  }
  auto first() { return value(std::get<0>(rooms_)); }

  struct Awaiter : GroupAwaiter {
    Par& par;
    runtime::Group group;
    Awaiter(Par& q, runtime::ProcessBase* me) : GroupAwaiter{me, nullptr}, par(q), group(me->group->run, me->group->executor, me) {
      this->g = &group;
    }
    bool await_ready() {
      if (this->p->take_cancel()) throw Cancelled();
      par.start(group);
      return GroupAwaiter::await_ready();
    }
    Result await_resume() {
      GroupAwaiter::await_resume();
      return par.result();
    }
  };
  Awaiter bind(runtime::ProcessBase* p) & { return Awaiter(*this, p); }
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }

 private:
  // A process that ended quietly (retired, poisoned, cancelled) has no result: a value-initialised one stands for it.
  template <class V>
  static V value(std::optional<V>& r) {
    if (r) return std::move(*r);
    if constexpr (std::is_default_constructible_v<V>)
      return V();
    else
      throw Retired("a process of this parallel ended without a result", -1);
  }
  std::tuple<Ps...> ps_;
  std::tuple<Room<typename Ps::result_type>...> rooms_;
};

// A parallel of one, whose result is the value itself.
template <class P>
class Step : public Par<P> {
 public:
  using Par<P>::Par;
  struct Awaiter : Par<P>::Awaiter {
    using Par<P>::Awaiter::Awaiter;
    auto await_resume() {
      GroupAwaiter::await_resume();
      return this->par.first();
    }
  };
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }
};

template <class P>
class ParVector {
 public:
  using R = typename P::result_type;
  using Result =
      std::conditional_t<std::is_void_v<R>, void, std::vector<std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>>>>;
  explicit ParVector(std::vector<P>&& ps) : ps_(std::move(ps)), rooms_(std::is_void_v<R> ? 0 : ps_.size()) {}
  void start(runtime::Group& g) {
    for (const P& p : ps_)
      if (!p.startable()) started_twice();
    for (std::size_t i = 0; i < ps_.size(); ++i) ps_[i].start(g, std::is_void_v<R> ? nullptr : &rooms_[i]);
    std::vector<P>().swap(ps_);  // they are the group's now; a million empty handles are 8 MB
  }
  Result result() {
    if constexpr (!std::is_void_v<Result>) return std::move(rooms_);
  }
  struct Awaiter : GroupAwaiter {
    ParVector& par;
    runtime::Group group;
    Awaiter(ParVector& q, runtime::ProcessBase* me) : GroupAwaiter{me, nullptr}, par(q), group(me->group->run, me->group->executor, me) {
      this->g = &group;
    }
    bool await_ready() {
      if (this->p->take_cancel()) throw Cancelled();
      par.start(group);
      return GroupAwaiter::await_ready();
    }
    Result await_resume() {
      GroupAwaiter::await_resume();
      return par.result();
    }
  };
  Awaiter bind(runtime::ProcessBase* p) & { return Awaiter(*this, p); }
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }

 private:
  std::vector<P> ps_;
  std::vector<Room<R>> rooms_;
};

}  // namespace detail

// A group whose processes are started as its owner goes on: g.start(p) …, then co_await g.wait(); in a thread process g.wait()().
// Left without having waited (by an exception), it cancels its processes, and the owner's own group waits for them (rule 7.5): they must
// not refer to the owner's frame then.
class Group {
 public:
  explicit Group(runtime::ProcessBase& owner) : group_(new runtime::Group(owner.group->run, owner.group->executor, &owner)) {}
  Group() : Group(current()) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (!group_->done() && group_->abandon()) static_cast<void>(group_.release());
  }

  template <Startable P>
  void start(P p) {
    using R = typename P::result_type;
    p.start(*group_, static_cast<detail::Room<R>*>(nullptr));
  }
  void cancel() noexcept { group_->cancel(); }
  struct Wait {
    runtime::Group* g;
    detail::GroupAwaiter bind(runtime::ProcessBase* p) const noexcept { return {p, g}; }
    void operator()() const {
      runtime::ThreadProcess& self = detail::blocking_caller("wait()");
      detail::GroupAwaiter w{&self, g};
      if (!w.await_ready()) self.block(detail::wait_op);
      w.await_resume();
    }
  };
  [[nodiscard]] Wait wait() noexcept { return {group_.get()}; }

 private:
  static runtime::ProcessBase& current() {
    runtime::ProcessBase* p = runtime::this_process();
    if (!p || !p->group) detail::bad_use("weft::Group is for use inside a process");
    return *p;
  }
  std::unique_ptr<runtime::Group> group_;
};

namespace detail {
template <class R>
auto PromiseBase::await_transform(BasicProcess<R>&& child, std::uint32_t at) {
  line = at;
  struct One : Par<BasicProcess<R>>::Awaiter {
    using Base = typename Par<BasicProcess<R>>::Awaiter;
    Par<BasicProcess<R>> owned;
    One(BasicProcess<R>&& c, runtime::ProcessBase* owner) : Base(owned, owner), owned(std::move(c)) {}
    R await_resume() {
      if constexpr (std::is_void_v<R>)
        Base::await_resume();
      else
        return std::get<0>(Base::await_resume());
    }
  };
  return One(std::move(child), this);
}

// Ends the scheduler's loop when a group is done.
struct Stop : core::Waiter {
  runtime::Scheduler* s;
  explicit Stop(runtime::Scheduler& to) noexcept : s(&to) { ops = &kOps; }

 private:
  static Stop* self(core::Waker* w) noexcept { return static_cast<Stop*>(w); }
  static void wake(core::Waker* w) noexcept { self(w)->s->post(w); }
  static void run(core::Waker* w) { self(w)->s->stop(); }
  static const core::WakerOps kOps;
};
inline constexpr core::WakerOps Stop::kOps{&Stop::wake, &Stop::run, nullptr, 0};

// Run a started-by-`start` group to its end on this thread: as a scheduler for its coroutines.
template <class Start>
void execute(runtime::Run& run, runtime::ThreadProcess& self, const char* name, Start&& start) {
  runtime::Scheduler scheduler(run, &self);
  runtime::Group group(run, &scheduler, &self);
  runtime::Group spawn_group(run, &scheduler, &self);
  group.name = name;
  const bool outermost = !run.spawned;
  if (outermost) {  // the two fail as one (rule 7.4)
    run.spawned = &spawn_group;
    spawn_group.also = &group;
    group.also = &spawn_group;
  }
  runtime::Executor* const outer_host = self.hosting.exchange(&scheduler, std::memory_order_acq_rel);
  start(group);
  Stop stop(scheduler);
  self.place = &group;
  self.op = &wait_op;
  while (!group.done() || !spawn_group.done()) {
    runtime::Group& g = group.done() ? spawn_group : group;
    if (g.begin_wait(stop) == Status::pending) scheduler.loop();
  }
  self.op = nullptr;
  self.hosting.store(outer_host, std::memory_order_release);
  if (outermost) run.spawned = nullptr;
  std::vector<std::exception_ptr> failures = group.take_failures();
  for (auto& f : spawn_group.take_failures()) failures.push_back(std::move(f));
  if (run.deadlocked() && outermost) throw Deadlock(run.deadlock_report(), run.knot());
  if (!failures.empty()) raise_all(std::move(failures));
  if (self.take_cancel()) throw Cancelled();
}

// From main, or any thread that is no process: the outermost run. In a thread process: a network inside the same run.
template <class Start>
void execute(Clock clock, Start&& start) {
  if (runtime::Scheduler::current() && runtime::this_context && runtime::this_context != &runtime::ThreadProcess::self().context)
    bad_use("weft::run inside a coroutine process would block its scheduler: use co_await weft::par(…)");
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null(); t && t->run) {
    execute(*t->run, *t, nullptr, start);
    return;
  }
  runtime::Run run(clock);
  runtime::ThreadProcess self(&run);
  self.function = "main";
  run.activated();
  const runtime::ThreadProcess::Scope scope(self);
  struct Join {
    runtime::Run& r;
    explicit Join(runtime::Run& to) : r(to) { runtime::Outsiders::all().join(r); }
    ~Join() {
      r.join_threads();
      runtime::Outsiders::all().leave(r);
    }
  } join{run};
  execute(run, self, nullptr, start);
}

}  // namespace detail

struct RunOptions {
  Clock clock = Clock::steady;
};

// Run a network to its end. Throws what failed in it (Failures if several did), Deadlock if it cannot go on.
template <class... Ps>
auto run(RunOptions o, detail::Par<Ps...> p) {
  detail::execute(o.clock, [&](runtime::Group& g) { p.start(g); });
  return p.result();
}
template <class P>
auto run(RunOptions o, detail::ParVector<P> p) {
  detail::execute(o.clock, [&](runtime::Group& g) { p.start(g); });
  return p.result();
}
template <class... Ps>
auto run(detail::Par<Ps...> p) {
  return run(RunOptions{}, std::move(p));
}
template <class P>
auto run(detail::ParVector<P> p) {
  return run(RunOptions{}, std::move(p));
}
template <Startable... Ps>
  requires(sizeof...(Ps) > 1)
auto run(Ps... ps) { return run(RunOptions{}, detail::Par<Ps...>(std::move(ps)...)); }
template <Startable P>
auto run(RunOptions o, P p) {
  if constexpr (std::is_void_v<typename P::result_type>)
    run(o, detail::Par<P>(std::move(p)));
  else
    return std::get<0>(run(o, detail::Par<P>(std::move(p))));
}
template <Startable P>
auto run(P p) {
  return run(RunOptions{}, std::move(p));
}

namespace detail {
inline runtime::Run* current_run() noexcept {
  if (const runtime::ProcessBase* p = runtime::this_process(); p && p->group) return &p->group->run;
  const runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  return t ? t->run : nullptr;
}
}  // namespace detail

// Start a process that may outlive its group; it belongs to the run (rule 7.4).
template <Startable P>
void spawn(P p) {
  runtime::Run* r = detail::current_run();
  if (!r || !r->spawned) detail::bad_use("weft::spawn outside any run: there is nobody to wait for the process");
  p.start(*r->spawned, static_cast<detail::Room<typename P::result_type>*>(nullptr));
}

// Let every other runnable process of this scheduler run (rule 7.7).
struct YieldOp {
  struct Awaiter {
    runtime::ProcessBase* p;
    bool await_ready() const {
      if (p->take_cancel()) throw Cancelled();
      runtime::Scheduler& s = *runtime::Scheduler::current();
      if (!s.anything_ready()) s.look_around();  // or a loop of yields would never hear of other threads and of timers
      return !s.anything_ready();
    }
    void await_suspend(std::coroutine_handle<>) const noexcept { runtime::Scheduler::current()->push(p); }
    void await_resume() const noexcept {}
  };
  Awaiter bind(runtime::ProcessBase* p) const noexcept { return {p}; }
  // In a thread.
  void operator()() const {
    if (detail::blocking_caller("yield()").take_cancel()) throw Cancelled();
    std::this_thread::yield();
  }
};
// co_await yield() in a coroutine; yield()() in a thread.
[[nodiscard]] inline YieldOp yield() noexcept { return {}; }

}  // namespace weft
