// Choice (rule 5).
//
//   auto [i, v] = co_await weft::select(r1, r2, weft::after(10ms));         ad hoc; in a thread: weft::select(r1, r2)()
//   weft::Alternative alt{weft::Mode::fair, r1, r2};                         kept between selects: co_await alt.select()
//   weft::StandingAlternative many{readers};                                 enrolled for good: costs the same for any number
//
// Guards: a Reader; out(writer, value); out_with(writer, f); after(span); at(time); skip(); a Barrier. Each but a bare reader has
// when(bool). A guard refers to its end: keep the end while the select or the alternative lives.
#pragma once
#include <array>
#include <functional>
#include <tuple>
#include <type_traits>
#include <variant>

#include "core/standing.hpp"
#include "time.hpp"

namespace weft {

// --- guards ---------------------------------------------------------------------------------------------------------------------------

struct GuardBase {
  static constexpr bool shared = true;      // can it be used in a thread?
  static constexpr bool repeatable = true;  // can it be chosen more than once?
  bool enabled = true;
};
template <class D>
struct Conditional : GuardBase {
  D when(bool c) && {
    this->enabled = c;
    return std::move(static_cast<D&>(*this));
  }
};

template <class T, class P>
struct In : Conditional<In<T, P>> {
  using Core = detail::CoreOf<T, P>;
  using Value = T;
  static constexpr bool shared = P::shared;
  Core* c;
  detail::Slot<T> slot;
  explicit In(Core* core) : c(core) {}
  In(In&& o) noexcept : Conditional<In>(o), c(o.c) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::input;
    g.ops = &core::channel_ops<Core, core::Side::in>;
    g.where = c;
    g.node.slot = &slot;
  }
  const core::Place* place() const noexcept { return c; }
};

template <class T, class P>
struct Out : Conditional<Out<T, P>> {
  using Core = detail::CoreOf<T, P>;
  using Value = void;
  static constexpr bool shared = P::shared;
  static constexpr bool repeatable = std::is_trivially_copyable_v<T>;  // else the value is gone after the first time
  Core* c;
  T value;
  Out(Core* core, T v) : c(core), value(std::move(v)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::output;
    g.ops = &core::channel_ops<Core, core::Side::out>;
    g.where = c;
    g.node.slot = &value;
  }
  const core::Place* place() const noexcept { return c; }
};

template <class F, class T, class P>
struct OutWith : Conditional<OutWith<F, T, P>> {
  using Core = detail::CoreOf<T, P>;
  using Value = void;
  static constexpr bool shared = P::shared;
  Core* c;
  F f;
  detail::Slot<T> slot;
  OutWith(Core* core, F fn) : c(core), f(std::move(fn)) {}
  OutWith(OutWith&& o) noexcept : Conditional<OutWith>(o), c(o.c), f(std::move(o.f)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::output;
    g.ops = &core::channel_ops<Core, core::Side::out>;
    g.where = c;
    g.node.slot = &slot;
    g.node.set(core::NodeFlags::compute);
  }
  const core::Place* place() const noexcept { return c; }
  // Committed: make the value and hand it over (rule 5.8). `pending`: an extended reader holds us.
  Status compute(core::Guard& g) {
    try {
      ::new (static_cast<void*>(&slot)) T(f());
    } catch (...) {
      c->abandon(g.node);
      throw;
    }
    const Status s = c->deliver(g.node);
    slot.value.~T();
    return s;
  }
};

struct At : Conditional<At> {
  using Value = void;
  bool span;
  std::int64_t ns;
  At(bool is_span, std::int64_t n) : span(is_span), ns(n) {}
  void fill(core::Guard& g, runtime::ProcessBase& p) noexcept {
    g.kind = span && ns <= 0 ? core::Kind::skip : core::Kind::timer;
    g.deadline = span ? detail::run_of(p).now() + ns : ns;
  }
  const core::Place* place() const noexcept { return nullptr; }
};
struct Skip : Conditional<Skip> {
  using Value = void;
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept { g.kind = core::Kind::skip; }
  const core::Place* place() const noexcept { return nullptr; }
};
struct Meet : Conditional<Meet> {
  using Value = void;
  Barrier b;
  explicit Meet(Barrier x) : b(std::move(x)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<Barrier::Core>;
    g.where = b.core();
  }
  const core::Place* place() const noexcept { return b.core(); }
};

template <class T, class P>
In<T, P> in(const Reader<T, P>& r) {
  return In<T, P>(r.checked("select"));
}
template <class T, class P, class V>
Out<T, P> out(const Writer<T, P>& w, V&& v) {
  return Out<T, P>(w.checked("select"), T(std::forward<V>(v)));
}
template <class T, class P, class F>
OutWith<F, T, P> out_with(const Writer<T, P>& w, F f) {
  return OutWith<F, T, P>(w.checked("select"), std::move(f));
}
inline At after(Span s) { return At(true, s.count()); }
inline At at(std::int64_t ns) { return At(false, ns); }
inline Skip skip() { return {}; }
inline Meet meet(const Barrier& b) { return Meet(b); }

// What a select gives: the index of the guard, and the value if it was an input.
template <class V>
struct Chosen {
  int index;
  V value;
};

namespace detail {

template <class G>
concept GuardLike = IsReader<std::remove_cvref_t<G>>::value || std::is_same_v<std::remove_cvref_t<G>, Barrier> ||
    std::is_base_of_v<GuardBase, std::remove_cvref_t<G>>;

template <class G>
auto to_guard(G&& g) {
  using D = std::remove_cvref_t<G>;
  if constexpr (IsReader<D>::value)
    return in(g);
  else if constexpr (std::is_same_v<D, Barrier>)
    return meet(g);
  else
    return D(std::forward<G>(g));
}

template <class... Ts>
struct Unique;
template <class... Us>
struct Unique<std::variant<Us...>> {
  using type = std::variant<Us...>;
};
template <class... Us, class T, class... Ts>
struct Unique<std::variant<Us...>, T, Ts...> {
  using type = typename std::conditional_t<std::is_void_v<T> || (std::is_same_v<T, Us> || ...), Unique<std::variant<Us...>, Ts...>,
                                           Unique<std::variant<Us..., T>, Ts...>>::type;
};
template <class V>
struct Simplify {
  using type = V;
};
template <class T>
struct Simplify<std::variant<std::monostate, T>> {
  using type = std::optional<T>;
};
// optional<T> if all inputs are of one type, else a variant that begins with monostate.
template <class... Ts>
using ValueOf = typename Simplify<typename Unique<std::variant<std::monostate>, Ts...>::type>::type;

template <class G>
concept Computes = requires(G& g, core::Guard& x) {
  g.compute(x);
};

// A fixed number of guards of any kinds.
template <class... Gs>
struct FixedGuards {
  using Value = ValueOf<typename Gs::Value...>;
  static constexpr bool computes = (Computes<Gs> || ...);
  static constexpr bool shared = (Gs::shared && ...);
  static constexpr bool repeatable = (Gs::repeatable && ...);
  std::tuple<Gs...> gs;
  std::array<core::Guard, sizeof...(Gs)> guards;

  explicit FixedGuards(Gs&&... g) : gs(std::move(g)...) {}
  FixedGuards(FixedGuards&& o) noexcept : gs(std::move(o.gs)) {}  // before it is bound

  std::uint32_t size() const noexcept { return sizeof...(Gs); }
  core::Guard* data() noexcept { return guards.data(); }
  void fill(runtime::ProcessBase& p) {
    each([&](auto& g, std::size_t i) {
      guards[i].enabled = g.enabled;
      g.fill(guards[i], p);
    });
  }
  void refill_timers(runtime::ProcessBase& p) {
    each([&](auto& g, std::size_t i) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(g)>, At>) g.fill(guards[i], p);
    });
  }
  const core::Place* place(std::size_t at) const {
    const core::Place* r = nullptr;
    const_cast<FixedGuards*>(this)->each([&](auto& g, std::size_t i) {
      if (i == at) r = g.place();
    });
    return r;
  }
  // For the records of who holds which end.
  void used_by(std::size_t at, std::uint32_t process) noexcept {
    each([&](auto& g, std::size_t i) {
      if constexpr (requires { g.c; })
        if (i == at) (guards[i].kind == core::Kind::input ? g.c->last_reader : g.c->last_writer) = process;
    });
  }
  Value take(std::size_t at) {
    Value v{};
    each([&](auto& g, std::size_t i) {
      if constexpr (
          requires { g.slot.take(); } && !requires { g.f; })
        if (i == at) v = g.slot.take();
    });
    return v;
  }
  Status compute(std::size_t at) {
    Status s = Status::ok;
    each([&](auto& g, std::size_t i) {
      if constexpr (requires { g.compute(guards[i]); })
        if (i == at) s = g.compute(guards[i]);
    });
    return s;
  }
  [[noreturn]] void raise(std::size_t at, Status s) {
    each([&](auto& g, std::size_t i) {
      if constexpr (requires { g.value; }) {
        if (i == at) throw_end_with(g.c, s, "select", std::move(g.value), static_cast<int>(i));
      } else if constexpr (requires { g.c; }) {
        if (i == at) throw_end_of(g.c, s, "select", static_cast<int>(i));
      }
    });
    __builtin_unreachable();
  }

 private:
  template <class F>
  void each(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(std::get<I>(gs), I), ...); }
    (std::index_sequence_for<Gs...>{});
  }
};

// Any number of readers of one type.
template <class T, class P>
struct ManyReaders {
  using Value = std::optional<T>;
  static constexpr bool computes = false;
  static constexpr bool shared = P::shared;
  static constexpr bool repeatable = true;
  std::vector<detail::CoreOf<T, P>*> cores;
  std::unique_ptr<core::Guard[]> guards;
  Slot<T> slot;

  explicit ManyReaders(const std::vector<Reader<T, P>>& rs) : guards(new core::Guard[rs.size()]) {
    for (const auto& r : rs) cores.push_back(r.checked("select"));
  }
  ManyReaders(ManyReaders&& o) noexcept : cores(std::move(o.cores)), guards(std::move(o.guards)) {}

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(cores.size()); }
  core::Guard* data() noexcept { return guards.get(); }
  void fill(runtime::ProcessBase&) {
    for (std::size_t i = 0; i < cores.size(); ++i) {
      core::Guard& g = guards[i];
      g.kind = core::Kind::input;
      g.ops = &core::channel_ops<detail::CoreOf<T, P>, core::Side::in>;
      g.where = cores[i];
      g.node.slot = &slot;
    }
  }
  void refill_timers(runtime::ProcessBase&) noexcept {}
  const core::Place* place(std::size_t i) const { return cores[i]; }
  void used_by(std::size_t i, std::uint32_t process) noexcept { cores[i]->last_reader = process; }
  Value take(std::size_t) { return Value(slot.take()); }
  Status compute(std::size_t) { return Status::ok; }
  [[noreturn]] void raise(std::size_t i, Status s) { throw_end_of(cores[i], s, "select", static_cast<int>(i)); }
};

// Any number of guards of any kinds, over channels of one type: what a program puts together as it runs.
template <class T, class P>
struct ManyGuards {
  using Any = std::variant<In<T, P>, Out<T, P>, OutWith<std::function<T()>, T, P>, At, Skip, Meet>;
  using Value = std::optional<T>;
  static constexpr bool computes = true;
  static constexpr bool shared = P::shared;
  static constexpr bool repeatable = std::is_trivially_copyable_v<T>;
  std::vector<Any> gs;
  std::unique_ptr<core::Guard[]> guards;

  explicit ManyGuards(std::vector<Any>&& g) : gs(std::move(g)), guards(new core::Guard[gs.size()]) {}

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(gs.size()); }
  core::Guard* data() noexcept { return guards.get(); }
  void fill(runtime::ProcessBase& p) {
    for (std::size_t i = 0; i < gs.size(); ++i)
      on(i, [&](auto& g) {
        guards[i].enabled = g.enabled;
        g.fill(guards[i], p);
      });
  }
  void refill_timers(runtime::ProcessBase& p) {
    for (std::size_t i = 0; i < gs.size(); ++i)
      if (At* t = std::get_if<At>(&gs[i])) t->fill(guards[i], p);
  }
  const core::Place* place(std::size_t i) {
    const core::Place* r = nullptr;
    on(i, [&](auto& g) { r = g.place(); });
    return r;
  }
  void used_by(std::size_t i, std::uint32_t process) noexcept {
    on(i, [&](auto& g) {
      if constexpr (requires { g.c; }) (guards[i].kind == core::Kind::input ? g.c->last_reader : g.c->last_writer) = process;
    });
  }
  Value take(std::size_t i) { return Value(std::get<In<T, P>>(gs[i]).slot.take()); }
  Status compute(std::size_t i) { return std::get<OutWith<std::function<T()>, T, P>>(gs[i]).compute(guards[i]); }
  [[noreturn]] void raise(std::size_t i, Status s) {
    on(i, [&](auto& g) {
      if constexpr (requires { g.value; }) {
        throw_end_with(g.c, s, "select", std::move(g.value), static_cast<int>(i));
      } else if constexpr (requires { g.c; }) {
        throw_end_of(g.c, s, "select", static_cast<int>(i));
      }
    });
    __builtin_unreachable();
  }

 private:
  template <class F>
  void on(std::size_t i, F&& f) {
    std::visit(f, gs[i]);
  }
};

[[noreturn]] inline void none_holds() { bad_use("select: no guard's precondition holds, it would wait for ever"); }

// Rule 5.5.
template <class Set>
void check_guards(Set& set) {
  const std::uint32_t n = set.size();
  if (n == 0) bad_use("select needs at least one guard");
  bool any = false, ins = false, outs = false, barriers = false;
  for (std::uint32_t i = 0; i < n; ++i) {
    const core::Guard& g = set.data()[i];
    any = any || g.enabled;
    ins = ins || g.kind == core::Kind::input;
    outs = outs || g.kind == core::Kind::output;
    barriers = barriers || g.kind == core::Kind::barrier;
    if (g.enabled && g.kind == core::Kind::barrier && static_cast<Barrier::Core*>(g.where)->enrolled() == 0)
      bad_use("select: nobody is enrolled at the barrier of guard " + std::to_string(i));
  }
  if (!any) none_holds();
  if (!(ins && outs) && !barriers) return;
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t j = i + 1; j < n; ++j) {
      const core::Guard &a = set.data()[i], &b = set.data()[j];
      if (a.where != b.where || !a.where) continue;
      if (a.kind != b.kind)
        bad_use("select: guards " + std::to_string(i) + " and " + std::to_string(j) + " are both ends of channel " +
                runtime::name_of(*set.place(i)));
      if (a.kind == core::Kind::barrier)
        bad_use("select: guards " + std::to_string(i) + " and " + std::to_string(j) + " are the same barrier");
    }
}

// Where the next ad hoc select over the same guards by the same process begins, so that it is fair (rule 5.4). One table per thread, in
// which a key is looked for in a few neighbouring places. When they are taken the table doubles; from kLargest on the oldest of them is
// given up, and that select begins anywhere (an Alternative remembers for itself).
class Turns {
 public:
  static Turns& mine() {
    static thread_local Turns t;
    return t;
  }
  static std::uint64_t key(std::uint32_t process, const core::Guard* g, std::uint32_t n) noexcept {
    std::uint64_t h = process * 0x9E3779B97F4A7C15ull + n;
    for (std::uint32_t i = 0; i < n; ++i) h = (h ^ reinterpret_cast<std::uintptr_t>(g[i].where)) * 0x100000001B3ull;
    return (h ^ h >> 29) | 1;
  }
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
      if (table_.size() < kLargest) {
        grow();
        continue;
      }
      *oldest = {key, next, ++clock_};
      return;
    }
  }
  std::uint64_t random() noexcept { return seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull; }

 private:
  static constexpr std::size_t kNeighbours = 8;
  static constexpr std::size_t kLargest = std::size_t{1} << 15;  // entries; half a megabyte
  struct Entry {
    std::uint64_t key = 0;  // 0: none
    std::uint32_t next = 0;
    std::uint32_t used = 0;  // when, on clock_
  };
  Entry& at(std::uint64_t key, std::size_t i) noexcept { return table_[((key >> 1) + i) & (table_.size() - 1)]; }
  void grow() {
    std::vector<Entry> old(table_.size() * 2);
    old.swap(table_);
    for (const Entry& e : old)
      for (std::size_t i = 0; e.key != 0 && i < kNeighbours; ++i)
        if (Entry& to = at(e.key, i); to.key == 0) {
          to = e;
          break;
        }
  }
  std::vector<Entry> table_ = std::vector<Entry>(256);
  std::uint32_t clock_ = 0;
  std::uint64_t seed_ = 0x853C49E6748FEA9Bull;
};

// One select in progress: the same for one-shot and standing, coroutine and thread. Engine: core::Select or core::Standing.
//
//   begin() ─true─► result()           begin() ─false─► parked ──woken──► woken() ─true─► result()
//                                                                          └─false: still held by an extended reader
template <class Set, class Engine>
class Selecting {
 public:
  Selecting(Set& s, Engine& e, runtime::ProcessBase* me) : p(me), set(s), engine(e) {}

  runtime::ProcessBase* const p;

  bool begin() {
    if (p->take_cancel()) throw Cancelled();
    engine.choice.waker = p;
    int k;
    if constexpr (std::is_same_v<Engine, core::Standing>) {
      k = engine.begin([&] { return run_of(*p).now(); });
    } else {
      engine.choice.reset();
      k = engine.scan([&] { return run_of(*p).now(); });
    }
    if constexpr (!std::is_same_v<Engine, core::Standing>)
      if (k == core::Select::none) k = engine.enrol();
    if (k == core::Select::parked) {
      // After the word is WAITING: a timer that another thread fires before that would find nobody and be lost.
      if (!engine.held()) arm();
      park();
      return false;
    }
    chosen = k;
    return computed();
  }

  // After a wake-up, in the owner's context.
  bool woken() {
    if (computing) {  // the extended reader's block has ended
      p->op = nullptr;
      return true;
    }
    disarm();
    const int t = engine.earliest_timer();
    chosen = engine.finish();
    if (chosen == core::Select::none) {
      if (cancelled) {
        p->op = nullptr;
        return true;
      }
      chosen = t;
      timed_out = true;
    }
    p->op = nullptr;
    return computed();
  }

  Chosen<typename Set::Value> result() {
    p->op = nullptr;
    if (cancelled) {
      p->take_cancel();
      throw Cancelled();
    }
    if (compute_failure) std::rethrow_exception(compute_failure);
    const auto i = static_cast<std::size_t>(chosen);
    if (!timed_out && is_end(engine.status())) set.raise(i, engine.status());
    set.used_by(i, p->id);
    if (timed_out || set.data()[i].kind != core::Kind::input) return {chosen, {}};
    return {chosen, set.take(i)};
  }

  static bool withdraw(runtime::ProcessBase& p) noexcept {
    auto* s = static_cast<Selecting*>(p.place);
    if (s->computing || s->engine.held()) return false;
    if (!s->engine.choice.finish_as(core::CANCELLED)) return false;
    s->cancelled = true;
    return true;
  }
  static void visit(runtime::ProcessBase& p, runtime::Places& v) {
    auto* s = static_cast<Selecting*>(p.place);
    for (std::uint32_t i = 0; i < s->set.size(); ++i) {
      const core::Guard& g = s->set.data()[i];
      if (!g.enabled) continue;
      if (g.kind == core::Kind::input || g.kind == core::Kind::output)
        v.channel(*s->set.place(i), g.kind == core::Kind::output);
      else if (g.kind == core::Kind::barrier)
        v.barrier(*s->set.place(i));
    }
  }
  static constexpr runtime::OpKind kind{"select", &withdraw, &visit};

 private:
  void park() {
    p->place = this;
    p->op = &kind;
  }
  void arm() {
    const int t = engine.earliest_timer();
    if (t == core::Select::none) return;
    timer.deadline = set.data()[t].deadline;
    timer.choice = &engine.choice;
    run_of(*p).arm(timer);
    armed = true;
  }
  void disarm() {
    if (!armed) return;
    armed = false;
    run_of(*p).disarm(timer);
  }
  // A computed output makes its value now. False: an extended reader holds us.
  bool computed() {
    if constexpr (Set::computes) {
      const auto i = static_cast<std::size_t>(chosen);
      if (timed_out || !set.data()[i].node.is(core::NodeFlags::compute) || is_end(engine.status())) return true;
      try {
        if (set.compute(i) == Status::ok) return true;
      } catch (...) {
        compute_failure = std::current_exception();
        return true;
      }
      computing = true;
      park();
      return false;
    }
    return true;
  }

  Set& set;
  Engine& engine;
  runtime::TimerNode timer;
  int chosen = core::Select::none;
  std::exception_ptr compute_failure;
  bool computing = false;  // committed and computed; an extended reader holds us
  bool armed = false;
  bool timed_out = false;
  bool cancelled = false;
};

// Awaits a Selecting in a coroutine. While it is parked the process's ops are ours, so that woken() runs before the coroutine does.
template <class Set, class Engine>
class SelectAwaiter : Selecting<Set, Engine> {
  using Base = Selecting<Set, Engine>;

 public:
  using Base::Base;

  bool await_ready() {
    // Before begin(): from the first enrolment on another thread may wake us.
    usual_ = this->p->ops;
    set_ops(&ops);
    struct Restore {
      SelectAwaiter* a;
      ~Restore() {
        if (a) a->set_ops(a->usual_);
      }
    } restore{this};
    const bool decided = this->begin();
    if (!decided) restore.a = nullptr;
    return decided;
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  auto await_resume() { return this->result(); }

 private:
  static void wake(core::Waker* w) noexcept { process(w)->executor()->post(w); }
  static void run(core::Waker* w) {
    runtime::ProcessBase* p = process(w);
    auto* self = static_cast<SelectAwaiter*>(static_cast<Base*>(p->place));
    runtime::this_context->running = p;
    if (!self->woken()) return;
    self->set_ops(self->usual_);
    p->ops->run(p);
  }
  // Another thread that cancels asks the ops for our executor meanwhile.
  void set_ops(const core::WakerOps* o) noexcept { std::atomic_ref(this->p->ops).store(o, std::memory_order_relaxed); }
  static runtime::ProcessBase* process(core::Waker* w) noexcept { return static_cast<runtime::ProcessBase*>(w); }
  static runtime::Executor* executor_of(runtime::ProcessBase& p) noexcept { return p.group->executor; }
  static const runtime::ProcessOps ops;

  const core::WakerOps* usual_ = nullptr;
};
template <class Set, class Engine>
const runtime::ProcessOps SelectAwaiter<Set, Engine>::ops{{&SelectAwaiter::wake, &SelectAwaiter::run, nullptr, 0},
                                                          &SelectAwaiter::executor_of};

template <class Set, class Engine>
auto select_in_thread(Set& set, Engine& engine) {
  static_assert(Set::shared, "a channel that threads use must be weft::Shared");
  runtime::ThreadProcess& self = blocking_caller("select(…)()");
  Selecting<Set, Engine> s(set, engine, &self);
  if (!s.begin()) do
      self.block(Selecting<Set, Engine>::kind);
    while (!s.woken());
  return s.result();
}

}  // namespace detail

// --- ad hoc ---------------------------------------------------------------------------------------------------------------------------

template <class Set>
class SelectOp {
 public:
  SelectOp(Mode m, Set&& s) : set_(std::move(s)), mode_(m) {}

  struct Awaiter {
    Set& set;
    Mode mode;
    runtime::ProcessBase* p;
    core::Select engine;
    std::uint64_t key = 0;
    std::optional<detail::SelectAwaiter<Set, core::Select>> inner;
    bool await_ready() {
      prepare(set, mode, *p, engine, key);
      inner.emplace(set, engine, p);
      return inner->await_ready();
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    auto await_resume() {
      detail::Turns::mine().end(key, engine.next_start());  // also if an end was chosen, which raises: the others have their turn
      return inner->await_resume();
    }
  };
  Awaiter bind(runtime::ProcessBase* p) & { return {set_, mode_, p, {}, 0, {}}; }
  Awaiter bind(runtime::ProcessBase* p) && { return {set_, mode_, p, {}, 0, {}}; }

  // In a thread.
  auto operator()() {
    runtime::ThreadProcess& self = detail::blocking_caller("select(…)()");
    core::Select engine;
    std::uint64_t key = 0;
    prepare(set_, mode_, self, engine, key);
    struct Remember {
      core::Select& e;
      std::uint64_t k;
      ~Remember() { detail::Turns::mine().end(k, e.next_start()); }
    } remember{engine, key};
    return detail::select_in_thread(set_, engine);
  }

 private:
  static void prepare(Set& set, Mode mode, runtime::ProcessBase& p, core::Select& engine, std::uint64_t& key) {
    set.fill(p);
    detail::check_guards(set);
    detail::Turns& turns = detail::Turns::mine();
    key = detail::Turns::key(p.id, set.data(), set.size());
    engine.bind(set.data(), set.size(), mode, &p, turns.begin(key, set.size()));
    engine.seed = turns.random() | 1;
  }
  Set set_;
  Mode mode_;
};

template <detail::GuardLike... Gs>
[[nodiscard]] auto select(Mode mode, Gs&&... gs) {
  using Set = detail::FixedGuards<decltype(detail::to_guard(std::forward<Gs>(gs)))...>;
  return SelectOp<Set>(mode, Set(detail::to_guard(std::forward<Gs>(gs))...));
}
template <detail::GuardLike G, detail::GuardLike... Gs>
[[nodiscard]] auto select(G&& g, Gs&&... gs) {
  return select(Mode::fair, std::forward<G>(g), std::forward<Gs>(gs)...);
}
template <class T, class P>
[[nodiscard]] auto select(const std::vector<Reader<T, P>>& rs, Mode mode = Mode::fair) {
  using Set = detail::ManyReaders<T, P>;
  return SelectOp<Set>(mode, Set(rs));
}

// A guard in a list that a program puts together as it runs: std::vector<weft::AnyGuard<int>>.
template <class T, class P = Shared>
using AnyGuard = typename detail::ManyGuards<T, P>::Any;
template <class T, class P = Shared>
[[nodiscard]] auto select_among(std::vector<AnyGuard<T, P>> gs, Mode mode = Mode::fair) {
  using Set = detail::ManyGuards<T, P>;
  return SelectOp<Set>(mode, Set(std::move(gs)));
}

// --- kept between selects ---------------------------------------------------------------------------------------------------------------

namespace detail {

// Shared by both alternatives; belongs to one process at a time.
template <class Set, class Engine>
class AlternativeBase {
  static_assert(Set::repeatable,
                "an alternative that is kept sends a value each time: use out_with(writer, f) in place of out(writer, value)");

 public:
  AlternativeBase(const AlternativeBase&) = delete;
  AlternativeBase& operator=(const AlternativeBase&) = delete;

  struct Op {
    AlternativeBase* a;
    SelectAwaiter<Set, Engine> bind(runtime::ProcessBase* p) const {
      a->prepare(*p);
      return {a->set_, a->engine(), p};
    }
    auto operator()() const {
      a->prepare(blocking_caller("select()()"));
      return select_in_thread(a->set_, a->engine());
    }
  };
  // co_await alt.select() in a coroutine; alt.select()() in a thread.
  [[nodiscard]] Op select() noexcept { return {this}; }

  void enable(std::uint32_t i, bool on) {
    if (i >= set_.size()) bad_use("enable: there is no guard " + std::to_string(i));
    if (!engine_) {
      early_.emplace_back(i, on);
      return;
    }
    const bool was = set_.data()[i].enabled;
    if (was != on) on ? ++enabled_ : --enabled_;
    enable_in(*engine_, i, on);
  }

 protected:
  explicit AlternativeBase(Mode mode, Set&& s) : set_(std::move(s)), mode_(mode) {}

  Engine& engine() noexcept { return *engine_; }

 private:
  static void enable_in(core::Standing& e, std::uint32_t i, bool on) { e.enable(i, on); }
  void enable_in(core::Select&, std::uint32_t i, bool on) { set_.data()[i].enabled = on; }

  void prepare(runtime::ProcessBase& p) {
    if (!engine_) bind_to(p);
    set_.refill_timers(p);
    if (enabled_ == 0) none_holds();
  }
  void bind_to(runtime::ProcessBase& p) {
    set_.fill(p);
    for (auto [i, on] : early_) set_.data()[i].enabled = on;
    check_guards(set_);
    if constexpr (std::is_same_v<Engine, core::Standing>) {
      engine_.emplace(set_.data(), set_.size(), &p);
    } else {
      engine_.emplace(set_.data(), set_.size(), mode_, &p);
      engine_->seed = Turns::mine().random() | 1;
    }
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
      if (set_.data()[i].enabled)
        ++enabled_;
      else
        enable_in(*engine_, i, false);
    }
  }

  Set set_;
  Mode mode_;
  std::optional<Engine> engine_;  // after set_: it leaves the guards' channels first
  std::uint32_t enabled_ = 0;
  std::vector<std::pair<std::uint32_t, bool>> early_;  // before there was an engine
};

template <class... Gs>
using FixedFor = FixedGuards<decltype(to_guard(std::declval<Gs>()))...>;

}  // namespace detail

// Guards kept between selects, enrolled for each; fair by rotation, so it needs no memory elsewhere.
template <class Set>
class Alternative : public detail::AlternativeBase<Set, core::Select> {
  using Base = detail::AlternativeBase<Set, core::Select>;

 public:
  template <detail::GuardLike... Gs>
  explicit Alternative(Mode mode, Gs&&... gs) : Base(mode, Set(detail::to_guard(std::forward<Gs>(gs))...)) {}
  template <class T, class P>
  explicit Alternative(const std::vector<Reader<T, P>>& rs, Mode mode = Mode::fair) : Base(mode, Set(rs)) {}
};
template <detail::GuardLike... Gs>
Alternative(Mode, Gs&&...) -> Alternative<detail::FixedFor<Gs...>>;
template <class T, class P>
Alternative(const std::vector<Reader<T, P>>&, Mode) -> Alternative<detail::ManyReaders<T, P>>;
template <class T, class P>
Alternative(const std::vector<Reader<T, P>>&) -> Alternative<detail::ManyReaders<T, P>>;

// Guards that stay enrolled (rule 5.9): first come, first served over those that become ready.
template <class Set>
class StandingAlternative : public detail::AlternativeBase<Set, core::Standing> {
  using Base = detail::AlternativeBase<Set, core::Standing>;

 public:
  template <class T, class P>
  explicit StandingAlternative(const std::vector<Reader<T, P>>& rs) : Base(Mode::fair, Set(rs)) {}
  template <detail::GuardLike G, detail::GuardLike... Gs>
  explicit StandingAlternative(G&& g, Gs&&... gs)
      : Base(Mode::fair, Set(detail::to_guard(std::forward<G>(g)), detail::to_guard(std::forward<Gs>(gs))...)) {}
};
template <class T, class P>
StandingAlternative(const std::vector<Reader<T, P>>&) -> StandingAlternative<detail::ManyReaders<T, P>>;
template <detail::GuardLike G, detail::GuardLike... Gs>
StandingAlternative(G&&, Gs&&...) -> StandingAlternative<detail::FixedFor<G, Gs...>>;

}  // namespace weft
