// A select in progress (rules 5.1, 5.4, 5.8, 6): connects the core's choice (core/choosing.hpp)
// with a process.
#pragma once
#include <array>

#include "guards.hpp"
#include "runtime/visiting.hpp"

namespace weft::inline WEFT_ABI::detail {

// Remembers where the next ad hoc select over the same guards by the same process begins, so that
// it is fair (rule 5.4). There is one table for each thread, and there are a few tables with a lock
// for the processes of multi-core executors, which change threads. A key is searched in a few
// neighbouring places. If all of these are taken, the table doubles. Once the table has kLargest
// places, the oldest of these entries is discarded, and its select then begins at an arbitrary
// guard. (An Alternative remembers its own position.)
class Rotations {
 public:
  Rotations() = default;
  Rotations(const Rotations&) = delete;
  Rotations& operator=(const Rotations&) = delete;
  ~Rotations() { delete[] table_; }
  static Rotations& mine() {
    static thread_local Rotations t;
    return t;
  }
  static std::uint64_t key(std::uint32_t process, const core::Guard* g, std::uint32_t n) noexcept {
    std::uint64_t h = process * 0x9E3779B97F4A7C15ull + n;
    for (std::uint32_t i = 0; i < n; ++i)
      h = (h ^ reinterpret_cast<std::uintptr_t>(g[i].where)) * 0x100000001B3ull;
    return (h ^ h >> 29) | 1;
  }
  static std::uint32_t first(std::uint64_t key, std::uint32_t n) noexcept;
  static void next(std::uint64_t key, std::uint32_t at);

  std::uint32_t begin(std::uint64_t key, std::uint32_t n) noexcept {
    for (std::size_t i = 0; i < kNeighbours; ++i)
      if (const Entry& e = at(key, i); e.key == key) return e.next < n ? e.next : 0;
    return static_cast<std::uint32_t>((random() >> 33) % n);
  }
  void end(std::uint64_t key, std::uint32_t next) {
    for (;;) {
      Entry* oldest = &at(key, 0);
      for (std::size_t i = 0; i < kNeighbours; ++i) {
        Entry& e = at(key, i);
        if (e.key == key || e.key == 0) {
          e = {key, next, ++clock_};
          return;
        }
        if (clock_ - e.used > clock_ - oldest->used) oldest = &e;
      }
      if (size_ < kLargest) {
        grow();
        continue;
      }
      *oldest = {key, next, ++clock_};
      return;
    }
  }
  std::uint64_t random() noexcept {
    return seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
  }

 private:
  struct Common;
  static bool moves() noexcept {
    const runtime::Context* c = runtime::this_context;
    return c && c->moves;
  }
  static Common& common(std::uint64_t key) noexcept;
  static constexpr std::size_t kNeighbours = 8;
  static constexpr std::size_t kLargest = std::size_t{1} << 15;  // in entries; half a megabyte
  struct Entry {
    std::uint64_t key = 0;  // 0 if the entry is free
    std::uint32_t next = 0;
    std::uint32_t used = 0;  // when the entry was last used, on clock_
  };
  Entry& at(std::uint64_t key, std::size_t i) noexcept {
    return table_[((key >> 1) + i) & (size_ - 1)];
  }
  void grow() {
    const Entry* const old = std::exchange(table_, new Entry[size_ * 2]);
    const std::size_t n = std::exchange(size_, size_ * 2);
    for (const Entry* e = old; e != old + n; ++e)
      for (std::size_t i = 0; e->key != 0 && i < kNeighbours; ++i)
        if (Entry& to = at(e->key, i); to.key == 0) {
          to = *e;
          break;
        }
    delete[] old;
  }
  std::size_t size_ = 256;  // the size of the table, which doubles
  Entry* table_ = new Entry[size_];
  std::uint32_t clock_ = 0;
  std::uint64_t seed_ = 0x853C49E6748FEA9Bull;
};

struct Rotations::Common {
  core::SpinLock lock;
  Rotations turns;
};
inline Rotations::Common& Rotations::common(std::uint64_t key) noexcept {
  static std::array<Common, 16> all;
  return all[key >> 60];
}
inline std::uint32_t Rotations::first(std::uint64_t key, std::uint32_t n) noexcept {
  if (!moves()) [[likely]]
    return mine().begin(key, n);
  Common& c = common(key);
  c.lock.lock();
  const std::uint32_t r = c.turns.begin(key, n);
  c.lock.unlock();
  return r;
}
inline void Rotations::next(std::uint64_t key, std::uint32_t at) {
  if (!moves()) [[likely]]
    return mine().end(key, at);
  Common& c = common(key);
  c.lock.lock();
  c.turns.end(key, at);
  c.lock.unlock();
}

// The part of a select in progress, in a coroutine or a thread, that does not depend on the types
// of its guards. Engine is core::Select or core::Standing.
//
//   begin() ─true─► result()           begin() ─false─► parked ──woken──► woken() ─true─► result()
//                                                                          └─false: parked again
template <class Engine>
class SelectingWith {
 public:
  SelectingWith(Engine& e, runtime::ProcessBase* me) noexcept : p(me), engine(e) {}

  runtime::ProcessBase* const p;

  static bool withdraw(runtime::ProcessBase& p) noexcept {
    SelectingWith& s = of(p);
    return !s.computing && s.engine.withdraw();
  }
  static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
    runtime::visit_guards(of(p).engine.guards(), of(p).engine.size(), v);
  }
  static void undecided(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
    SelectingWith& s = of(p);
    if (s.computing || !s.engine.undecided()) return;
    s.armed ? v.timed() : visit(p, v);
  }

 protected:
  static SelectingWith& of(runtime::ProcessBase& p) noexcept {
    return *static_cast<SelectingWith*>(p.place);
  }

  int begin_choice() {
#if WEFT_CHECKED
    if (runtime::points) return begin_checked(*runtime::points);
    for (std::uint32_t i = 0; i < engine.size(); ++i)
      if (const core::Guard& g = engine.guards()[i]; g.enabled && g.where)
        not_from_outside(*g.where);
#endif
    return arm_if_parked(engine.begin(p, [this] { return run_of(*p).now(); }));
  }
  // Called after a wake-up, in the owner's context.
  [[gnu::always_inline]] int woken_choice() {
    if (armed) [[unlikely]] {
      armed = false;
      run_of(*p).disarm(timer);
    }
    const int k = engine.woken([this] { return run_of(*p).now(); },
                               p->cancel().load(std::memory_order_relaxed) != 0);
    return k == Engine::parked ? arm_if_parked(k) : k;
  }
  void park(const runtime::OpKind& kind) noexcept {
    p->place = this;
    p->op = &kind;
  }

  Engine& engine;
  runtime::TimerNode timer;
  int chosen = Engine::none;  // `none` if the operation has ended because the select was withdrawn
  // The guard has committed and computed its value; an extended reader holds the process.
  bool computing = false;

 private:
  int arm_if_parked(int k) {
    if (k != Engine::parked) return k;
    if (const std::int64_t at = engine.deadline(); at != prim::forever) {
      timer.deadline = at;
      timer.choice = &engine.choice;
      run_of(*p).arm(timer);
      armed = true;
    }
    return k;
  }

#if WEFT_CHECKED
  int begin_checked(runtime::Points& points) {
    constexpr bool once = std::is_same_v<Engine, core::Select>;
    bool any = false;
    if constexpr (once) any = engine.takes_any();
    const int taken = points.selects(
        *p, {engine.guards(), engine.size(), any,
             [](const void* e) noexcept { return static_cast<const Engine*>(e)->committed_to(); },
             &engine});
    if constexpr (once)
      if (any) engine.begin_at(taken < 0 ? 0 : static_cast<std::uint32_t>(taken));
    const int k = arm_if_parked(engine.begin(p, [this] { return run_of(*p).now(); }));
    points.selected(*p, k, k != Engine::parked && is_end(engine.status()));
    return k;
  }
#endif

  bool armed = false;
};

// The part of a select in progress that depends on the types of the guards: the values.
template <class Set, class Engine>
class Selecting : public SelectingWith<Engine> {
  using Base = SelectingWith<Engine>;
  using Base::chosen, Base::computing, Base::engine;

 public:
  using Base::p;

  Selecting(Set& s, Engine& e, runtime::ProcessBase* me) noexcept : Base(e, me), set(s) {}

  bool begin() { return decided(this->begin_choice()); }
  [[gnu::always_inline]] bool woken() {
    if (!computing) return decided(this->woken_choice());
    p->op = nullptr;  // The extended reader's scope has ended.
    return true;
  }

  Chosen<typename Set::Value> result() {
    if (chosen == Engine::none) throw_cancelled(*p);
    if (compute_failure) std::rethrow_exception(compute_failure);
    const auto i = static_cast<std::size_t>(chosen);
    if (is_end(engine.status())) set.raise(i, engine.status());
    core::Guard& g = engine.guard(chosen);
    if (g.kind <= core::Kind::output)
      (g.kind == core::Kind::input ? g.where->last_reader : g.where->last_writer) = p->id;
    if (g.kind == core::Kind::input) return {chosen, set.take(i)};
    if constexpr (requires { set.sent(i); })
      if (g.kind == core::Kind::output) set.sent(i);
    return {chosen, {}};
  }

  static void passed(runtime::ProcessBase& p, runtime::Passed& v) {
    auto& s = static_cast<Selecting&>(Base::of(p));
    if (const int i = s.engine.committed_to(); i != Engine::none)
      s.set.passed(static_cast<std::size_t>(i), v);
  }
  static constexpr runtime::OpKind kind{"select", &Base::withdraw, &Base::visit, &Base::undecided,
                                        &passed};

 private:
  [[gnu::always_inline]] bool decided(int k) {
    if (k == Engine::parked) {
      this->park(kind);
      return false;
    }
    p->op = nullptr;
    chosen = k;
    if constexpr (Set::computes)
      if (k != Engine::none) return computed();
    return true;
  }
  // Makes the value of a computed output. Returns false if an extended reader holds the process.
  bool computed() {
    const auto i = static_cast<std::size_t>(chosen);
    if (!engine.guard(chosen).node.is(core::NodeFlags::compute) || is_end(engine.status()))
      return true;
    try {
      if (set.compute(i) == Status::ok) return true;
    } catch (...) {
      compute_failure = caught(*p);
      return true;
    }
    computing = true;
    this->park(kind);
    return false;
  }

  Set& set;
  std::exception_ptr compute_failure;
};

// Awaits a Selecting in a coroutine. While the process is parked it has the ops of this class, so
// that woken() runs before the coroutine does.
template <class Set, class Engine>
class SelectAwaiter : Selecting<Set, Engine> {
  using Base = Selecting<Set, Engine>;

 public:
  using Base::Base;

  bool await_ready() {
    if (this->p->cancel().load(std::memory_order_relaxed) != 0) [[unlikely]]
      return goes_on(this->p);  // result() throws the cancellation.
    // `usual_` is set before begin(), since another thread can wake the process from the first
    // enrolment on.
    usual_ = this->p->ops;
    this->p->runs_by(ops);
    struct Restore {
      SelectAwaiter* a;
      ~Restore() {
        if (a) a->p->runs_by(*a->usual_);
      }
    } restore{this};
    const bool decided = this->begin();
    if (!decided) restore.a = nullptr;
    return decided && goes_on(this->p);
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  auto await_resume() { return this->result(); }

 private:
  static void wake(core::Waker* w) noexcept { runtime::executor_of(*process(w)).post(w); }
  static void run(core::Waker* w) {
    runtime::ProcessBase* p = process(w);
    auto* self = static_cast<SelectAwaiter*>(static_cast<SelectingWith<Engine>*>(p->place));
    runtime::this_context->running = p;
    if (runtime::Observer* const o = runtime::watched()) [[unlikely]]
      o->resumes(*p, runtime::this_context);
    if (!self->woken()) return;
    p->runs_by(*self->usual_);
    p->ops->run(p);
  }
  static runtime::ProcessBase* process(core::Waker* w) noexcept {
    return static_cast<runtime::ProcessBase*>(w);
  }
  static runtime::Executor* executor_of(runtime::ProcessBase& p) noexcept {
    return &runtime::executor_of(p);
  }
  static const runtime::ProcessOps ops;

  const core::WakerOps* usual_ = nullptr;
};
template <class Set, class Engine>
const runtime::ProcessOps SelectAwaiter<Set, Engine>::ops{
    {&SelectAwaiter::wake, &SelectAwaiter::run, nullptr, 0}, &SelectAwaiter::executor_of};

template <class Set, class Engine>
auto select_in_thread(Set& set, Engine& engine, Here at) {
  static_assert(Set::shared, "a channel that threads use must be weft::Shared");
  runtime::ThreadProcess& self = blocking_caller("select(…)()");
  meet_request(self);
  Selecting<Set, Engine> s(set, engine, &self);
  if (!s.begin()) {
    waits_at(self, at);
    do self.block(Selecting<Set, Engine>::kind);
    while (!s.woken());
  }
  return s.result();
}

}  // namespace weft::inline WEFT_ABI::detail
