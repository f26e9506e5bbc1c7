// The guards of a choice (rule 5.2), and the sets of guards that a select works on.
//
// A set provides these functions: size(); data(), the core's guards; fill(process), called once
// before the first use; refill_timers(process), called before each further use; take(i), which
// returns the value that has arrived; compute(i), for an output that makes its value after the
// commit; raise(i, status), for a guard that has ended; passed(i, …), for measurements.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>
#include <variant>

#include <functional>
#include "chosen.hpp"
#include "core/standing.hpp"
#include "time.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {
template <class T, class P>
void at_home([[maybe_unused]] EngineOf<T, P>* c) {
#if WEFT_CHECK_LOCAL
  if constexpr (!P::shared)
    if (c && c->waits_elsewhere()) [[unlikely]]
      not_at_home(c, "select");
#endif
}
}  // namespace detail

struct GuardBase {
  static constexpr bool shared = true;      // whether the guard can be used in a thread
  static constexpr bool repeatable = true;  // whether the guard can be chosen more than once
  static constexpr bool refers = false;     // whether the guard only refers to its value
  bool enabled = true;
  bool loud = false;
};
template <class D>
struct Conditional : GuardBase {
  // Adds a precondition: if c is false the guard is off and takes no part (rule 5.2), and its end
  // can be closed.
  D when(bool c) && {
    this->enabled = c;
    return std::move(static_cast<D&>(*this));
  }
};
template <class D>
struct OfChannel : Conditional<D> {
  // Makes the retirement of the channel an outcome, as poison is. The select then throws Retired,
  // which names this guard (rule 5.6).
  D ends() && {
    this->loud = true;
    return std::move(static_cast<D&>(*this));
  }
};

namespace detail {
// The part of fill() that is the same for all guards of channels.
template <class T, class P, core::Side S, class G>
void fill_of_channel(core::Guard& g, G& mine, void* slot) {
  if (mine.enabled) at_home<T, P>(mine.c);
  g.kind = S == core::Side::in ? core::Kind::input : core::Kind::output;
  g.ops = &core::channel_ops<EngineOf<T, P>, S>;
  g.ends = mine.loud;
  g.where = mine.c;
  g.node.slot = slot;
}
}  // namespace detail

template <class T, class P>
struct In : OfChannel<In<T, P>> {
  using Engine = detail::EngineOf<T, P>;
  using Value = T;
  static constexpr bool shared = P::shared;
  Engine* c;  // null if the guard's end is closed, which is bad use if the guard is on
  detail::Slot<T> slot;
  explicit In(Engine* core) : c(core) {}
  In(In&& o) noexcept : OfChannel<In>(o), c(o.c) {}
  In& operator=(In&& o) noexcept {
    OfChannel<In>::operator=(o);
    c = o.c;
    return *this;
  }
  void fill(core::Guard& g, runtime::ProcessBase&) {
    detail::fill_of_channel<T, P, core::Side::in>(g, *this, &slot);
  }
};

// An output guard that owns its value: a copy, or the result of a conversion.
template <class T, class P>
struct Out : OfChannel<Out<T, P>> {
  using Engine = detail::EngineOf<T, P>;
  using Value = void;
  static constexpr bool shared = P::shared;
  // If `repeatable` is false, the value is moved out when the guard is first chosen.
  static constexpr bool repeatable = std::is_trivially_copyable_v<T>;
  // Null if the guard's end is closed, which is bad use if the guard is on.
  Engine* c;
  T value;
  bool spent = false;
  Out(Engine* core, T v) : c(core), value(std::move(v)) {}
  void fill(core::Guard& g, runtime::ProcessBase&) {
    if (this->enabled && spent) detail::awaited_twice("select");
    detail::fill_of_channel<T, P, core::Side::out>(g, *this, &value);
  }
  void sent() noexcept { spent = !repeatable; }
};

namespace detail {
// An output guard whose value stays in its place until the guard is chosen (rule 5.10). The reader
// takes the value from that place.
template <class T, class P>
struct OutOf : OfChannel<OutOf<T, P>> {
  using Engine = EngineOf<T, P>;
  using Value = void;
  static constexpr bool shared = P::shared;
  static constexpr bool repeatable = false;
  static constexpr bool refers = true;
  Engine* c;  // null if the guard's end is closed, which is bad use if the guard is on
  T* from;
  bool spent = false;
  OutOf(Engine* core, T* v) : c(core), from(v) {}
  void fill(core::Guard& g, runtime::ProcessBase&) {
    if (this->enabled && spent) awaited_twice("select");
    fill_of_channel<T, P, core::Side::out>(g, *this, from);
  }
  // Removes a value that a buffer which drops new values (rule 1.4) has left in its place.
  void sent() noexcept {
    static_cast<void>(T(std::move(*from)));
    spent = true;
  }
};
}  // namespace detail

// The result of out(writer, std::move(value)): a guard that refers to `value`, which is moved only
// when the guard is chosen. If the guard is not chosen, whatever the select throws, the value is
// still in its place. So the guard is used in the expression that makes it, select(out(w,
// std::move(v)), …), and cannot be kept. In a list (AnyGuard) the guard becomes an Out, and the
// list owns the value.
template <class T, class P>
struct Offer : detail::OutOf<T, P> {
  using Guard = detail::OutOf<T, P>;
  Offer() noexcept : Guard(nullptr, nullptr) {}
  Offer(const Offer&) = delete;  // a guard of this type is used only where it is made
  Offer& operator=(const Offer&) = delete;
  ~Offer() = default;
  // when() and ends() act as they do for any other guard of a channel.
  Offer&& when(bool on) && {
    this->enabled = on;
    return std::move(*this);
  }
  Offer&& ends() && {
    this->loud = true;
    return std::move(*this);
  }
  operator Out<T, P>() && {
    Out<T, P> o(this->c, std::move(*this->from));
    o.enabled = this->enabled;
    o.loud = this->loud;
    return o;
  }
};

template <class F, class T, class P>
struct OutWith : OfChannel<OutWith<F, T, P>> {
  using Engine = detail::EngineOf<T, P>;
  using Value = void;
  static constexpr bool shared = P::shared;
  Engine* c;  // null if the guard's end is closed, which is bad use if the guard is on
  F f;
  detail::Slot<T> slot;
  OutWith(Engine* core, F fn) : c(core), f(std::move(fn)) {}
  OutWith(OutWith&& o) noexcept : OfChannel<OutWith>(o), c(o.c), f(std::move(o.f)) {}
  OutWith& operator=(OutWith&& o) noexcept {
    OfChannel<OutWith>::operator=(o);
    c = o.c;
    f = std::move(o.f);
    return *this;
  }
  void fill(core::Guard& g, runtime::ProcessBase&) {
    detail::fill_of_channel<T, P, core::Side::out>(g, *this, &slot);
    g.node.set(core::NodeFlags::compute);
  }
  // Makes the value and sends it (rule 5.8). Called when the guard has committed. Returns `pending`
  // if an extended reader holds the writer. Throws what the function throws.
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

struct DeadlineGuard : Conditional<DeadlineGuard> {
  using Value = void;
  bool span;
  std::int64_t ns;
  DeadlineGuard(bool is_span, std::int64_t n) : span(is_span), ns(n) {}
  void fill(core::Guard& g, runtime::ProcessBase& p) noexcept {
    g.kind = span && ns <= 0 ? core::Kind::skip : core::Kind::timer;
    g.deadline = span ? runtime::later(detail::run_of(p).now(), ns) : ns;
  }
};
struct Skip : Conditional<Skip> {
  using Value = void;
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept { g.kind = core::Kind::skip; }
};
struct Meet : Conditional<Meet> {
  using Value = void;
  Barrier b;
  explicit Meet(const Barrier& x) : b(x) {}
  void fill(core::Guard& g, runtime::ProcessBase&) noexcept {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<Barrier::Engine>;
    g.where = b.core();
  }
};

template <class T, class P>
In<T, P> in(const Reader<T, P>& r) {
  return In<T, P>(r.core());
}
// Makes an output guard for a copy of `v`, or for the value that `v` is converted to.
template <class T, class P>
Out<T, P> out(const Writer<T, P>& w, std::type_identity_t<T> v) requires Out<T, P>::repeatable {
  return Out<T, P>(w.core(), std::move(v));
}
template <class T, class P>
  requires(!Out<T, P>::repeatable && detail::kCopied<T>)
Out<T, P> out(const Writer<T, P>& w, const std::type_identity_t<T>& v) {
  return Out<T, P>(w.core(), v);
}
// Makes an output guard for `v` itself, which is moved if the guard is chosen: see Offer. (The
// guard is a temporary of the caller's, so `auto` would make a copy of it, which does not compile.)
template <class T, class P>
  requires(!Out<T, P>::repeatable)
Offer<T, P> && out(const Writer<T, P>& w, std::type_identity_t<T>&& v, Offer<T, P>&& guard = {}) {
  guard.c = w.core();
  guard.from = &v;
  return std::move(guard);
}
// This overload exists only for its error message.
template <class T, class P, class U>
  requires(!std::is_convertible_v<U&&, T>)
void out(const Writer<T, P>&, U&&) { detail::cannot_write<U>(); }
template <class T, class P, class F>
OutWith<F, T, P> out_with(const Writer<T, P>& w, F f) {
  static_assert(
      !core::one_to_one<P>,
      "a one-to-one channel has no computed outputs (rule 1.8): use out(), or weft::Channel<T>");
  return OutWith<F, T, P>(w.core(), std::move(f));
}
// Make guards of time: `after` is ready when this span has passed, `at` at this time of the run's
// clock, in ns (rule 5.2).
inline DeadlineGuard after(detail::Lasting s) { return DeadlineGuard(true, s.count()); }
inline DeadlineGuard at(std::int64_t ns) { return DeadlineGuard(false, ns); }
// Makes a guard that is always ready.
inline Skip skip() { return {}; }
inline Meet meet(const Barrier& b) { return Meet(b); }

struct EndOf;  // defined in ended.hpp

namespace detail {

template <class G>
struct IsOffer : std::false_type {};
template <class T, class P>
struct IsOffer<Offer<T, P>> : std::true_type {};
template <class G>
concept GuardLike =
    IsReader<std::remove_cvref_t<G>>::value || std::is_same_v<std::remove_cvref_t<G>, Barrier> ||
    std::is_base_of_v<GuardBase, std::remove_cvref_t<G>>;

template <GuardLike G>
auto to_guard(G&& g) {
  using D = std::remove_cvref_t<G>;
  if constexpr (IsReader<D>::value)
    return in(g);
  else if constexpr (std::is_same_v<D, Barrier>)
    return meet(g);
  else if constexpr (IsOffer<D>::value)
    return typename D::Guard(g);
  else
    return D(std::forward<G>(g));
}

template <class G>
concept Computes = requires(G& g, core::Guard& x) {
  g.compute(x);
};

// Guards that are kept between selects also keep the storage of their channels (null for a closed
// end). They do not keep the channels open: the ends can be closed before the guards are destroyed
// (rules 2.6, 5.2).
template <class Engine>
void keep_storage(Engine* c) noexcept {
  if (c) c->references.up();
}
template <class V, class P>
void let_go_of(core::ChannelEngine<V, P>* c) noexcept {
  if (c) release<V, P>(c);
}
template <class V, class P>
void let_go_of(core::OneToOneEngine<V, P>* c) noexcept {
  if (c) release<V, P>(c);
}

// A fixed number of guards of any types.
template <class... Gs>
struct FixedGuards {
  using Value = ValueOf<typename Gs::Value...>;
  static constexpr bool computes = (Computes<Gs> || ...);
  static constexpr bool shared = (Gs::shared && ...);
  static constexpr bool repeatable = (Gs::repeatable && ...);
  static constexpr bool refers = (Gs::refers || ...);
  std::tuple<Gs...> gs;
  std::array<core::Guard, sizeof...(Gs)> guards;

  explicit FixedGuards(Gs&&... g) : gs(std::move(g)...) {}
  // A set is moved only before it is bound.
  FixedGuards(FixedGuards&& o) noexcept : gs(std::move(o.gs)) {}

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
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(g)>, DeadlineGuard>)
        g.fill(guards[i], p);
    });
  }
  void keep() noexcept {
    each([](auto& g, std::size_t) {
      if constexpr (requires { g.c; }) keep_storage(g.c);
    });
  }
  void let_go() noexcept {
    each([](auto& g, std::size_t) {
      if constexpr (requires { g.c; }) let_go_of(g.c);
    });
  }
  void passed(std::size_t at, runtime::Passed& v) noexcept {
    each([&](auto& g, std::size_t i) {
      if constexpr (requires { g.c; })
        if (i == at) v.at(*g.c, guards[i].kind == core::Kind::output);
    });
  }
  Value take(std::size_t at) {
    Value v{};
    each([&](auto& g, std::size_t i) {
      if constexpr (
          requires { g.slot.take(); } && !requires { g.f; })
        if (i == at) {
          // The value's type need not be assignable.
          if constexpr (requires { v.emplace(g.slot.take()); })
            v.emplace(g.slot.take());
          else
            v = g.slot.take();
        }
    });
    return v;
  }
  // Called when the output guard with the index `at` was chosen and has sent its value.
  void sent(std::size_t at) noexcept requires(!repeatable) {
    each([&](auto& g, std::size_t i) {
      if constexpr (requires { g.sent(); })
        if (i == at) g.sent();
    });
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
        if (i == at) {
          g.sent();
          throw_end_with(g.c, s, "select", std::move(g.value), static_cast<int>(i));
        }
      } else if constexpr (requires { g.c; }) {
        if (i == at) throw_end_of(g.c, s, "select", static_cast<int>(i));
      } else if constexpr (requires { g.b; }) {  // rule 8.7: the barrier has died
        if (i == at)
          throw PeerDied("select: the barrier has died, with a program that had it or has made it",
                         static_cast<int>(i));
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
  static constexpr bool refers = false;
  std::vector<detail::EngineOf<T, P>*> cores;
  runtime::FixedArray<core::Guard> guards;
  Slot<T> slot;

  explicit ManyReaders(const std::vector<Reader<T, P>>& rs) : guards(rs.size()) {
    for (const auto& r : rs) cores.push_back(r.core());
  }
  ManyReaders(ManyReaders&& o) noexcept : cores(std::move(o.cores)), guards(std::move(o.guards)) {}

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(cores.size()); }
  core::Guard* data() noexcept { return guards.get(); }
  void fill(runtime::ProcessBase&) {
    for (std::size_t i = 0; i < cores.size(); ++i) {
      core::Guard& g = guards[i];
      at_home<T, P>(cores[i]);
      g.kind = core::Kind::input;
      g.ops = &core::channel_ops<detail::EngineOf<T, P>, core::Side::in>;
      g.where = cores[i];
      g.node.slot = &slot;
    }
  }
  void refill_timers(runtime::ProcessBase&) noexcept {}
  void keep() noexcept {
    for (auto* c : cores) keep_storage(c);
  }
  void let_go() noexcept {
    for (auto* c : cores) let_go_of(c);
  }
  void passed(std::size_t i, runtime::Passed& v) noexcept { v.at(*cores[i], false); }
  Value take(std::size_t) { return Value(slot.take()); }
  Status compute(std::size_t) { return Status::ok; }
  [[noreturn]] void raise(std::size_t i, Status s) {
    throw_end_of(cores[i], s, "select", static_cast<int>(i));
  }
};

// Any number of guards of any types, over channels of one type: a list that a program builds at run
// time. List is the type of the vector, or of a reference to it.
template <class T, class P, class List>
struct ManyGuards {
  using Value = std::optional<T>;
  static constexpr bool computes = true;
  static constexpr bool shared = P::shared;
  static constexpr bool repeatable = std::is_trivially_copyable_v<T>;
  static constexpr bool refers = false;
  List gs;
  runtime::FixedArray<core::Guard> guards;

  explicit ManyGuards(List&& g) : gs(std::forward<List>(g)), guards(gs.size()) {}

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
      if (DeadlineGuard* t = std::get_if<DeadlineGuard>(&gs[i])) t->fill(guards[i], p);
  }
  void passed(std::size_t i, runtime::Passed& v) noexcept {
    on(i, [&](auto& g) {
      if constexpr (requires { g.c; }) v.at(*g.c, guards[i].kind == core::Kind::output);
    });
  }
  Value take(std::size_t i) { return Value(std::get<In<T, P>>(gs[i]).slot.take()); }
  Status compute(std::size_t i) {
    return std::get<OutWith<std::function<T()>, T, P>>(gs[i]).compute(guards[i]);
  }
  void sent(std::size_t i) noexcept requires(!repeatable) {
    if (auto* o = std::get_if<Out<T, P>>(&gs[i])) o->sent();
  }
  [[noreturn]] void raise(std::size_t i, Status s) {
    on(i, [&](auto& g) {
      if constexpr (requires { g.value; } && repeatable) {
        throw_end_with(g.c, s, "select", g.value, static_cast<int>(i));
      } else if constexpr (requires { g.c; }) {
        throw_end_of(g.c, s, "select", static_cast<int>(i));
      } else if constexpr (requires { g.b; }) {  // rule 8.7: the barrier has died
        throw PeerDied("select: the barrier has died, with a program that had it or has made it",
                       static_cast<int>(i));
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

[[noreturn]] inline void none_holds() {
  bad_use(
      "select: no guard's precondition holds, it would wait for ever: switch one on, or add "
      "skip()");
}

// Throws BadUse for a fault that the core has found among these guards (rule 5.5).
[[noreturn]] void raise_fault(const core::Guard* guards, const core::Fault& f, const char* verb);
[[noreturn]] void moved_end(const char* verb);
[[noreturn]] void used_elsewhere();
[[noreturn]] void nobody_enrolled(const char* verb, std::uint32_t guard);

// Throws BadUse if guard i, which is on, cannot be used.
inline void check_guard(const core::Guard& g, std::uint32_t i, const char* verb) {
  if (!g.enabled) return;
  if (g.kind == core::Kind::barrier && static_cast<Barrier::Engine*>(g.where)->enrolled() == 0)
    nobody_enrolled(verb, i);
  if (g.kind == core::Kind::latch && !g.where) moved_end(verb);
  if (g.kind > core::Kind::output) return;
  if (!g.where) closed_end(verb, g.kind == core::Kind::input ? "reader" : "writer");
}

// Marks that a process is in a select that other processes can reach too. The mark is no lock: two
// threads that arrive at the same moment can both enter, as with any object that they share.
class InUse {
 public:
  InUse() noexcept = default;
  InUse(InUse&&) noexcept {}  // an object that is moved is not in use
  InUse& operator=(InUse&&) = delete;
  ~InUse() = default;

  // Marks the select as used while this object exists, or, after keep(), until end(). Throws BadUse
  // if a process is already in the select.
  class Taken {
   public:
    explicit Taken(InUse& u) : use_(&u) {
      if (u.taken()) [[unlikely]]
        used_elsewhere();
      u.used_.store(true, std::memory_order_relaxed);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() {
      if (use_) use_->end();
    }
    void keep() noexcept { use_ = nullptr; }

   private:
    InUse* use_;
  };
  bool taken() const noexcept { return used_.load(std::memory_order_relaxed); }
  void end() noexcept { used_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> used_{false};
};

// Makes the retirement of the channel an outcome (rule 5.6) for every guard.
template <class Set>
void all_end(Set& set) noexcept {
  for (std::uint32_t i = 0; i < set.size(); ++i) set.data()[i].ends = true;
}

// Checks all guards, before the first use. Throws BadUse if one cannot be used.
template <class Set>
void check_guards(Set& set) {
  const core::Fault f = core::find_fault(set.data(), set.size());
  if (f.what != core::Fault::none) [[unlikely]]
    raise_fault(set.data(), f, "select");
  for (std::uint32_t i = 0; i < set.size(); ++i) check_guard(set.data()[i], i, "select");
}

}  // namespace detail
}  // namespace weft::inline WEFT_ABI
