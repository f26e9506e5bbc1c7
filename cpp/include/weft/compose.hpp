// Composition (rule 7): threads as processes, spawn, groups, and run, which starts the outermost
// network. blocks.hpp contains par and seq.
//
//   weft::run(weft::par(producer(c.writer()), consumer(c.reader())));
//   weft::run(producer(c.writer()), consumer(c.reader()));  // the same
//   co_await weft::par(a(), b());
//   auto [x, y] = co_await weft::par(f(), g());
//   co_await weft::seq(a(), b());
//   // a process on an OS thread, anywhere a process may stand
//   weft::thread([r = c.reader()] { for (int v : r) … })
#pragma once
#include <tuple>
#include <variant>

#include <stop_token>
#include <thread>
#include "count.hpp"
#include "executors.hpp"
#include "runtime/affinity.hpp"
#include "runtime/thread.hpp"
#include "standstill.hpp"

namespace weft::inline WEFT_ABI {

using Clock = runtime::Clock;

namespace detail {

// The type of the object that holds a process's result.
template <class R>
struct RoomFor {
  using type = Result<R>;
};
template <>
struct RoomFor<void> {
  using type = std::monostate;  // A process without a result has this in its place.
};
template <class R>
using Room = typename RoomFor<R>::type;

// --- a thread as a process -----------------------------------------------------------------------

// The part of a thread process that does not depend on its function.
class Runner : public runtime::ThreadProcess {
 public:
  Runner(runtime::Run& r, int cpu) : ThreadProcess(&r), cpu_(cpu) {}
  virtual ~Runner() = default;

  // Starts the process, in the group that it was added to. From then on the process owns itself. If
  // the system cannot start a thread, the process has failed.
  void launch();

 private:
  virtual void call() = 0;  // calls the function, and stores its result
  // Called while the exception that has left the function is handled, if it is a quiet end and so
  // no failure: the process then has no result.
  virtual void call_gave_nothing() = 0;
  virtual void drop_function() noexcept = 0;  // drops the function and what it captured
  void body();
  void launch_failed();
  struct Over {
    Runner* me;
    runtime::Run& run;
    runtime::Group& group;
    const std::uint32_t order;
    std::exception_ptr left;
    const bool has_thread;  // false for a thread process that is checked
    ~Over();
  };
  const int cpu_;  // the CPU that the thread is pinned to, or -1
};

// Holds a function until it is destroyed or moved away. (A std::optional that was moved from still
// has a value, and cannot be assigned if the function is a closure.)
template <class F>
class Function {
 public:
  explicit Function(F&& f) : f_(std::move(f)), there_(true) {}
  Function(Function&& o) : there_(o.there_) {
    if (there_) ::new (&f_) F(std::move(o.f_));
    o.drop();
  }
  Function(const Function& o) requires std::copy_constructible<F> : there_(o.there_) {
    if (there_) ::new (&f_) F(o.f_);
  }
  Function& operator=(Function o) {
    drop();
    if (o.there_) ::new (&f_) F(std::move(o.f_));
    there_ = o.there_;
    return *this;
  }
  ~Function() { drop(); }
  void drop() noexcept {
    if (!std::exchange(there_, false)) return;
    f_.~F();
  }
  explicit operator bool() const noexcept { return there_; }
  F& operator*() noexcept { return f_; }

 private:
  union {
    F f_;
  };
  bool there_;
};

template <class F, class R>
class ThreadRunner final : public Runner {
 public:
  ThreadRunner(runtime::Run& r, F&& f, int cpu, Room<R>* result)
      : Runner(r, cpu), f_(std::move(f)), result_(result) {}

 private:
  void call() override {
    if constexpr (std::is_void_v<R>)
      (*f_)();
    else if (result_)
      result_->emplace((*f_)());
    else
      static_cast<void>((*f_)());
  }
  void call_gave_nothing() override {
    if constexpr (!std::is_void_v<R>)
      if (result_) result_->lack(why_no_result(*this));
  }
  void drop_function() noexcept override { f_.drop(); }
  Function<F> f_;
  Room<R>* const result_;
};

template <class F>
class ThreadTask {
 public:
  using result_type = std::remove_cvref_t<std::invoke_result_t<F&>>;

  ThreadTask(F f, const char* function, Here at) : f_(std::move(f)), function_(function), at_(at) {}

  ThreadTask&& named(const char* name) && {
    function_ = name;
    return std::move(*this);
  }
  // Pins the thread to `cpu`, the number of a CPU. Throws BadUse if this program may not use that
  // CPU.
  ThreadTask&& pinned(int cpu) && {
    detail::check_cpu(cpu);
    cpu_ = cpu;
    return std::move(*this);
  }

  template <class Slot>
  void start(runtime::Group& g, Slot* result) {
    if (!f_) started_twice();
    auto* t = new ThreadRunner<F, result_type>(g.run, std::move(*f_), cpu_, result);
    f_.drop();
    t->function = function_;
    if (at_.file) t->about = runtime::in_file(nullptr, at_.file);
    t->line = at_.line;
    g.add(*t);
    t->launch();
  }
  bool startable() const noexcept { return static_cast<bool>(f_); }
  const char* called() const noexcept { return function_; }

 private:
  Function<F> f_;
  const char* function_;
  Here at_;
  int cpu_ = -1;
};

[[noreturn]] void raise_all(std::vector<std::exception_ptr> failures);

// --- waiting for a group -------------------------------------------------------------------------

// A cancelled wait cancels the children and continues to wait: no process outlives its group (rule
// 7.6).
bool withdraw_wait(runtime::ProcessBase& p) noexcept;
inline constexpr runtime::OpKind wait_op{"wait for", &withdraw_wait, nullptr};

void after_wait(runtime::ProcessBase& p, runtime::Group& g);

}  // namespace detail

// Runs f() as a process on an OS thread of its own. thread(f, args…) (blocks.hpp) binds arguments.
template <class F>
auto thread(F f, detail::Here at = detail::Here::now()) {
  return detail::ThreadTask<F>(std::move(f), "thread", at);
}

template <class P>
concept Startable = requires(const P& p) {
  typename P::result_type;
  { p.startable() } -> std::same_as<bool>;
};

namespace detail {
// Makes a process of anything that a block accepts in place of one; blocks.hpp lists these.
template <class X>
auto to_process(X&& x);
template <class X>
using AsProcess = decltype(to_process(std::declval<X>()));
}  // namespace detail

namespace detail {

// Waits in a coroutine until the group is done.
struct GroupAwaiter {
  runtime::ProcessBase* p;
  runtime::Group* g;
  // Returns true if the group is done already.
  bool begin() const noexcept {
    g->begin_passing_on();
    if (p->cancel().load(std::memory_order_relaxed)) g->pass_on();
    if (g->begin_wait(*p) == Status::ok) return true;
    p->place = g;
    p->op = &wait_op;
    return false;
  }
  bool await_ready() const noexcept { return begin() && goes_on(p); }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const {
    p->op = nullptr;
    after_wait(*p, *g);
  }
};

// Throws if the process cannot be started. Called for each of several processes before any of them
// is started.
template <class P>
void may_start(const P& p, runtime::Group& g) {
  if constexpr (requires { p.check(g); }) p.check(g);
}

// The result of several processes. If none has a result the type is void; otherwise it is a tuple
// of Results, with std::monostate for a process that has none.
template <class... Rs>
using ParResult = std::conditional_t<(std::is_void_v<Rs> && ...), void, std::tuple<Room<Rs>...>>;

// Awaits a block: starts it in a group of its own, and returns its result when all processes have
// ended.
template <class Block>
struct BlockAwaiter : GroupAwaiter {
  Block& par;
  runtime::Group group;
  BlockAwaiter(Block& b, runtime::ProcessBase* me)
      : GroupAwaiter{me, nullptr}, par(b), group(me->group->run, &runtime::executor_of(*me), me) {
    this->g = &group;
  }
  bool await_ready() {
    detail::meet_request(*this->p);
    par.start(group);
    return GroupAwaiter::await_ready();
  }
  auto await_resume() {
    GroupAwaiter::await_resume();
    return par.result();
  }
};

template <class... Ps>
class Par {
 public:
  using Result = ParResult<typename Ps::result_type...>;
  explicit Par(Ps&&... ps) : ps_(std::move(ps)...) {}

  void start(runtime::Group& g) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if (!(std::get<I>(ps_).startable() && ...)) started_twice();
      (may_start(std::get<I>(ps_), g), ...);
      (std::get<I>(ps_).start(g, room<I>()), ...);
    }
    (std::index_sequence_for<Ps...>{});
  }
  Result result() {
    if constexpr (!std::is_void_v<Result>) return std::move(rooms_);
  }
  auto first() {
    if constexpr (std::is_void_v<Result>)
      return std::monostate();
    else
      return std::move(std::get<0>(rooms_));
  }

  using Awaiter = BlockAwaiter<Par>;
  Awaiter bind(runtime::ProcessBase* p) & { return Awaiter(*this, p); }
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }

 private:
  // Returns the storage for the result of process I. If no process has a result, there is no
  // storage.
  template <std::size_t I>
  auto* room() noexcept {
    if constexpr (std::is_void_v<Result>)
      return static_cast<std::monostate*>(nullptr);
    else
      return &std::get<I>(rooms_);
  }
  std::tuple<Ps...> ps_;
  std::conditional_t<std::is_void_v<Result>, std::monostate,
                     std::tuple<Room<typename Ps::result_type>...>>
      rooms_;
};

// Runs one of several processes that run one after another; returns the Result of that process.
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

// Runs exactly one process; returns its value, and throws an exception that leaves it (rule 7.1).
template <class P>
class Alone {
 public:
  using R = typename P::result_type;
  explicit Alone(P&& p) : p_(std::move(p)) {}

  void start(runtime::Group& g) {
    g.keep_end();
    p_.start(g, &room_);
  }
  R result() {
    if constexpr (!std::is_void_v<R>) return std::move(room_).value();
  }
  using Awaiter = BlockAwaiter<Alone>;
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }

 private:
  P p_;
  Room<R> room_;
};

template <class P>
class ParVector {
 public:
  using R = typename P::result_type;
  using Result = std::conditional_t<std::is_void_v<R>, void, std::vector<Room<R>>>;
  explicit ParVector(std::vector<P>&& ps)
      : ps_(std::move(ps)), rooms_(std::is_void_v<R> ? 0 : ps_.size()) {}
  void start(runtime::Group& g) {
    for (const P& p : ps_) {
      if (!p.startable()) started_twice();
      may_start(p, g);
    }
    for (std::size_t i = 0; i < ps_.size(); ++i)
      ps_[i].start(g, std::is_void_v<R> ? nullptr : &rooms_[i]);
    // The processes belong to the group now, and a million empty handles would occupy 8 MB.
    std::vector<P>().swap(ps_);
  }
  Result result() {
    if constexpr (!std::is_void_v<Result>) return std::move(rooms_);
  }
  using Awaiter = BlockAwaiter<ParVector>;
  Awaiter bind(runtime::ProcessBase* p) & { return Awaiter(*this, p); }
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(*this, p); }

 private:
  std::vector<P> ps_;
  std::vector<Room<R>> rooms_;
};

}  // namespace detail

// A group whose owner starts processes and continues: g.start(p) …, then co_await g.wait(); in a
// thread process g.wait()(). The first failure cancels the other processes, and, until the owner
// waits, also the owner, whose operation throws Cancelled (rule 7.5). wait() throws the failures.
// If an exception leaves the group's block before wait(), the group cancels its processes, and the
// owner's own group waits for them and fails with them. So those processes must not refer to the
// owner's frame.
class Group {
 public:
  explicit Group(runtime::ProcessBase& owner)
      : group_(new runtime::Group(owner.group->run, &runtime::executor_of(owner), &owner)) {
    group_->open_block();
  }
  Group() : Group(current()) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    group_->close_block();
    if (group_->done())
      group_->hand_over();
    else if (group_->abandon())
      return;  // the group deletes itself
    delete group_;
  }

  // Starts a process, or anything that a block accepts in place of one: the captures of a closure
  // that returns a process are kept until that process has ended.
  template <class X>
  void start(X&& x) {
    auto p = detail::to_process(std::forward<X>(x));
    p.start(*group_, static_cast<detail::Room<typename decltype(p)::result_type>*>(nullptr));
  }
  // Asks all processes of the group to end (rule 6).
  void cancel() noexcept { group_->cancel(); }
  struct Waiting : detail::GroupAwaiter {  // The group's block ends here; another block can follow.
    bool begin() const noexcept {
      this->g->close_block();
      return GroupAwaiter::begin();
    }
    bool await_ready() const noexcept { return begin() && detail::goes_on(p); }
    void await_resume() const {
      this->g->open_block();
      GroupAwaiter::await_resume();
    }
  };
  struct Wait {
    runtime::Group* g;
    Waiting bind(runtime::ProcessBase* p) const noexcept { return {{p, g}}; }
    void operator()(detail::Here at = detail::Here::now()) const {
      runtime::ThreadProcess& self = detail::blocking_caller("wait()");
      const detail::ThreadCall call(self, at);
      Waiting w{{&self, g}};
      if (!w.begin()) {
        detail::waits_at(self, at);
        self.block(detail::wait_op);
      }
      w.await_resume();
    }
  };
  // Waits until all processes have ended: co_await g.wait(), or g.wait()() in a thread. Throws what
  // a process has failed with, and Failures if several have failed.
  [[nodiscard]] Wait wait() noexcept { return {group_}; }

 private:
  static runtime::ProcessBase& current() {
    runtime::ProcessBase* p = runtime::this_process();
    if (!p || !p->group) detail::bad_use("weft::Group is for use inside a process");
    return *p;
  }
  runtime::Group* const group_;
};

namespace detail {
// Awaits one process. If the process has a result type, the awaiter receives the result, or the
// exception that left the process; otherwise the process is a step, as in seq.
template <class P, class Block = std::conditional_t<std::is_void_v<typename P::result_type>, Par<P>,
                                                    Alone<P>>>
struct One : BlockAwaiter<Block> {
  Block owned;
  One(P&& c, runtime::ProcessBase* owner)
      : BlockAwaiter<Block>(owned, owner), owned(std::move(c)) {}
};
template <class R>
auto PromiseBase::await_transform(BasicProcess<R>&& child, std::uint32_t at) {
#if WEFT_CHECKED
  return checked(at, [this, &child] { return One<BasicProcess<R>>(std::move(child), this); });
#else
  line.at(at);
  return One<BasicProcess<R>>(std::move(child), this);
#endif
}
}  // namespace detail
template <class R>
auto Placed<R>::bind(runtime::ProcessBase* p) && {
  return detail::One<Placed<R>>(std::move(*this), p);
}

namespace detail {

// A number of cores; the constructor checks it.
class CoreCount {
 public:
  constexpr CoreCount() noexcept = default;
  template <std::convertible_to<Count> N>
  constexpr CoreCount(N n) : n_(Count(n).up_to_32_bits("Cores: the number of cores")) {}
  unsigned number() const noexcept { return n_; }

 private:
  unsigned n_ = 1;
};

}  // namespace detail

// How a network is run: by which clock, and on which executor. With cores > 1 the network runs on
// that many cores, of which this thread is one; with `on` it runs on that executor. `deadlocked`
// (of the outermost run) is called with the text of a deadlock before the processes are cancelled,
// from any thread; it must not use Weft.
struct RunOptions {
  Clock clock = Clock::steady;
  detail::CoreCount cores = {};  // the number of cores
  const Executor* on = nullptr;
  // A request to stop cancels the processes of this network (rule 7.12). request_stop() must not be
  // called in a signal handler; use weft::signals.
  const std::stop_token* stop = nullptr;
  void (*deadlocked)(const std::string& report) noexcept = nullptr;
};
// Runs a whole network on that executor: run(on(pool), p, q). The executor must exist until the
// call returns.
[[nodiscard]] inline RunOptions on(const Executor& e) noexcept {
  return {Clock::steady, {}, &e, {}, nullptr};
}

namespace detail {

// Starts the processes of a network in its group.
struct StartOf {
  void (*f)(void* x, runtime::Group&);
  void* x;
};
// Runs a network. Called from main, or from any thread that is not a process, it is the outermost
// run; called in a thread process, it is a network inside the same run.
void execute(const RunOptions& o, StartOf start);
template <class Ps>
void execute(const RunOptions& o, Ps& p) {
  execute(o, StartOf{[](void* x, runtime::Group& g) { static_cast<Ps*>(x)->start(g); }, &p});
}

}  // namespace detail

// Runs a network to its end. Throws what a process has failed with, Failures if several have
// failed, or Deadlock if the network is deadlocked.
template <class... Ps>
auto run(RunOptions o, detail::Par<Ps...> p) {
  detail::execute(o, p);
  return p.result();
}
template <class P>
auto run(RunOptions o, detail::ParVector<P> p) {
  detail::execute(o, p);
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
// Runs a network to its end; it consists of processes, or of anything that a block accepts. For
// exactly one process, returns its value, or throws the exception that ended the process, even if
// that was a quiet end (rule 7.1).
template <class X, class... Xs>
auto run(RunOptions o, X&& x, Xs&&... xs) {
  if constexpr (sizeof...(Xs) == 0) {
    detail::Alone<detail::AsProcess<X>> one(detail::to_process(std::forward<X>(x)));
    detail::execute(o, one);
    return one.result();
  } else {
    return run(o, detail::Par<detail::AsProcess<X>, detail::AsProcess<Xs>...>(
                      detail::to_process(std::forward<X>(x)),
                      detail::to_process(std::forward<Xs>(xs))...));
  }
}
template <class X, class... Xs>
  requires(!std::is_same_v<std::remove_cvref_t<X>, RunOptions>)
auto run(X&& x, Xs&&... xs) {
  return run(RunOptions{}, std::forward<X>(x), std::forward<Xs>(xs)...);
}

namespace detail {
// Makes runs report standstills from now on (rule 10.6).
void look_at_standstills() noexcept;
runtime::Run* current_run() noexcept;
}  // namespace detail

// Starts a process, or anything that a block accepts in place of one. The process can outlive the
// group of its starter; it belongs to the run (rule 7.4). Throws BadUse outside any run.
template <class X>
void spawn(X&& x) {
  runtime::Run* r = detail::current_run();
  if (!r || !r->spawned)
    detail::bad_use("weft::spawn outside any run: nothing would wait for the process");
  auto p = detail::to_process(std::forward<X>(x));
  auto* const nowhere = static_cast<detail::Room<typename decltype(p)::result_type>*>(nullptr);
  if constexpr (requires(runtime::Executor & e) {
                  p.start(*r->spawned, nowhere, runtime::RunsAt::group, e);
                }) {
    // The process runs where its starter runs, if that is an executor of this run (rule 15.5).
    if (const runtime::ProcessBase* me = runtime::this_process(); me && me->group) {
      runtime::Executor& e = runtime::executor_of(*me);
      if (const runtime::RunsAt at = r->which_executor(e); at != runtime::RunsAt::group)
        return p.start(*r->spawned, nowhere, at, e);
    }
  }
  p.start(*r->spawned, nowhere);
}

// Lets every other runnable process of this scheduler run (rule 7.7).
struct YieldOp {
  struct Awaiter {
    runtime::ProcessBase* p;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<>) const noexcept {
      runtime::this_context->executor->post(p);
    }
    void await_resume() const noexcept {}
  };
  Awaiter bind(runtime::ProcessBase* p) const noexcept { return {p}; }
  // Yields in a thread process.
  void operator()(detail::Here at = detail::Here::now()) const {
    runtime::ThreadProcess& self = detail::blocking_caller("yield()");
    const detail::ThreadCall call(self, at, true);
    detail::meet_request(self);
    std::this_thread::yield();
  }
};
// Lets other processes run: co_await yield() in a coroutine; yield()() in a thread. Throws
// Cancelled.
[[nodiscard]] inline YieldOp yield() noexcept { return {}; }

}  // namespace weft::inline WEFT_ABI
