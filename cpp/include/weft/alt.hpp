// Choice (rule 5).
//
//   auto [i, v] = co_await weft::select(r1, r2, weft::after(10ms));  // a select by itself
//   auto [i, v] = weft::select(r1, r2)();                            // the same in a thread
//   weft::Alternative alt{weft::Mode::fair, r1, r2};  // kept between selects: alt.select()
//   weft::StandingAlternative many{readers};  // stays enrolled: any number costs the same
//
// Guards: a Reader; out(writer, value); out(writer, std::move(value)), which moves the value only
// when it is chosen; out_with(writer, f); after(span); at(time); skip(); a Barrier. All of them
// except a bare reader have when(bool). Guards of channels also have ends(), with which the select
// ends when the channel has retired. Without ends() the guard of a retired channel falls silent,
// and the select throws Retired once all guards that decide have fallen silent (rule 5.6).
// select(…).ends() and alternative.ends() do this for all guards. A guard refers to its end: keep
// the end while the select waits. The end of an alternative's guard may be closed before the
// alternative is destroyed; the guard then still reports the state of the channel.
#pragma once
#include "ended.hpp"
#include "selecting.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {
template <class X>
struct IsReaders : std::false_type {};
template <class T, class P>
struct IsReaders<std::vector<Reader<T, P>>> : std::true_type {};
}  // namespace detail

// --- ad hoc --------------------------------------------------------------------------------------

template <class Set>
class SelectOp {
 public:
  SelectOp(Mode m, Set&& s) : set_(std::move(s)), mode_(m) {}

  struct Awaiter {
    SelectOp& op;
    runtime::ProcessBase* p;
    core::Select engine;
    std::uint64_t key = 0;
    std::optional<detail::SelectAwaiter<Set, core::Select>> inner;
    bool await_ready() {
      InUse::Taken in(op.use_);
      op.prepare(*p, engine, key);
      inner.emplace(op.set_, engine, p);
      const bool decided = inner->await_ready();
      in.keep();
      return decided;
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    auto await_resume() {
      // The rotation advances even if the chosen guard throws because its channel has ended, so
      // that the other guards get their turn.
      detail::Rotations::next(key, engine.next_start());
      op.use_.end();
      return inner->await_resume();
    }
  };
  // Makes the retirement of each guard's channel an outcome (rule 5.6).
  SelectOp ends() && {
    SelectOp all(mode_, std::move(set_));
    all.loud_ = true;
    return all;
  }
  Awaiter bind(runtime::ProcessBase* p) & {
    here_only();
    return {*this, p, {}, 0, {}};
  }
  Awaiter bind(runtime::ProcessBase* p) && { return {*this, p, {}, 0, {}}; }

  // Selects from a thread, which is blocked until a guard has been chosen. Throws what co_await
  // throws.
  auto operator()(detail::Here at = detail::Here::now()) & {
    here_only();
    return std::move(*this)(at);
  }
  auto operator()(detail::Here at = detail::Here::now()) && {
    runtime::ThreadProcess& self = detail::blocking_caller("select(…)()");
    const detail::ThreadCall call(self, at);
    const InUse::Taken in(use_);
    core::Select engine;
    std::uint64_t key = 0;
    prepare(self, engine, key);
    struct Remember {
      core::Select& e;
      std::uint64_t k;
      ~Remember() { detail::Rotations::next(k, e.next_start()); }
    } remember{engine, key};
    return detail::select_in_thread(set_, engine, at);
  }

 private:
  using InUse = detail::InUse;
  static constexpr void here_only() {
    static_assert(!Set::refers,
                  "weft: a select with out(writer, std::move(value)) refers to that value and is "
                  "not kept: await it where it is made, co_await weft::select(...)");
  }
  void prepare(runtime::ProcessBase& p, core::Select& engine, std::uint64_t& key) {
    set_.fill(p);
    if (loud_) detail::all_end(set_);
    detail::check_guards(set_);
    key = detail::Rotations::key(p.id, set_.data(), set_.size());
    engine.bind(set_.data(), set_.size(), mode_, &p, detail::Rotations::first(key, set_.size()));
    engine.seed = detail::Rotations::mine().random() | 1;
  }
  Set set_;
  Mode mode_;
  bool loud_ = false;
  InUse use_;
};

// Waits until one of the guards can commit, and commits that one. In a coroutine co_await the
// result; in a thread call it. The result contains the index of the guard and its value. Throws
// BadUse for a bad set of guards (rule 5.5), Cancelled, and what the chosen guard throws: Retired,
// Poisoned, PeerDied.
template <detail::GuardLike... Gs>
[[nodiscard]] auto select(Mode mode, Gs&&... gs) {
  using Set = detail::FixedGuards<decltype(detail::to_guard(std::forward<Gs>(gs)))...>;
  return SelectOp<Set>(mode, Set(detail::to_guard(std::forward<Gs>(gs))...));
}
template <detail::GuardLike G, detail::GuardLike... Gs>
[[nodiscard]] auto select(G&& g, Gs&&... gs) {
  return select(Mode::fair, std::forward<G>(g), std::forward<Gs>(gs)...);
}
template <class... None>
  requires(sizeof...(None) == 0)
void select() {
  static_assert(detail::never<std::tuple<None...>>, "weft: select needs at least one guard");
}
// This overload exists only for its error message.
template <class G, class... Gs>
  requires(!detail::GuardLike<G> && !std::is_same_v<std::remove_cvref_t<G>, Mode> &&
           !detail::IsReaders<std::remove_cvref_t<G>>::value)
void select(G&&, Gs&&...) {
  static_assert(detail::never<G>,
                "weft: this is not a guard: for a reader end give the end, for a writer end "
                "out(writer, value) or out_with, for a channel its reader()");
}
template <class T, class P>
[[nodiscard]] auto select(const std::vector<Reader<T, P>>& rs, Mode mode = Mode::fair) {
  using Set = detail::ManyReaders<T, P>;
  return SelectOp<Set>(mode, Set(rs));
}

// A guard in a list that a program builds at run time: std::vector<weft::AnyGuard<int>>.
template <class T, class P = Shared>
using AnyGuard = std::variant<In<T, P>, Out<T, P>, OutWith<std::function<T()>, T, P>, DeadlineGuard,
                              Skip, Meet, EndOf>;
// Selects over a list, which holds the values of its outputs and must exist until the select has
// ended. If an output is chosen, its value is moved out, and a further select throws BadUse until
// that guard has been replaced. All other values stay in the list, whatever the select throws.
template <class T, class P = Shared>
[[nodiscard]] auto select_among(std::vector<AnyGuard<T, P>>& gs, Mode mode = Mode::fair) {
  using Set = detail::ManyGuards<T, P, std::vector<AnyGuard<T, P>>&>;
  return SelectOp<Set>(mode, Set(gs));
}
template <class T, class P = Shared>
[[nodiscard]] auto select_among(std::vector<AnyGuard<T, P>>&& gs, Mode mode = Mode::fair) {
  using Set = detail::ManyGuards<T, P, std::vector<AnyGuard<T, P>>>;
  static_assert(Set::repeatable,
                "weft: a value that is not sent stays in the list of guards: keep the list, "
                "co_await select_among<T>(guards)");
  return SelectOp<Set>(mode, Set(std::move(gs)));
}

// --- kept between selects ------------------------------------------------------------------------

namespace detail {

template <class Set>
struct Kept : Set {
  explicit Kept(Set&& s) : Set(std::move(s)) { this->keep(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { this->let_go(); }
};

// The part that both types of alternative share. An alternative belongs to one process at a time.
template <class Set, class Engine>
class AlternativeBase {
  static_assert(Set::repeatable,
                "an alternative that is kept sends a value each time: use out_with(writer, f) in "
                "place of out(writer, value)");

 public:
  AlternativeBase(const AlternativeBase&) = delete;
  AlternativeBase& operator=(const AlternativeBase&) = delete;

  struct Op {
    AlternativeBase* a;
    class Awaiter : SelectAwaiter<Set, Engine> {
      using Base = SelectAwaiter<Set, Engine>;

     public:
      Awaiter(AlternativeBase& alt, runtime::ProcessBase* me)
          : Base(static_cast<Set&>(alt.set_), alt.engine(), me), use_(alt.use_) {}
      bool await_ready() {
        InUse::Taken in(use_);
        const bool decided = Base::await_ready();
        in.keep();
        return decided;
      }
      using Base::await_suspend;
      auto await_resume() {
        use_.end();
        return Base::await_resume();
      }

     private:
      InUse& use_;
    };
    Awaiter bind(runtime::ProcessBase* p) const {
      if (a->use_.taken()) used_elsewhere();
      a->prepare(*p);
      return {*a, p};
    }
    auto operator()(Here at = Here::now()) const {
      runtime::ThreadProcess& self = blocking_caller("select()()");
      const ThreadCall call(self, at);
      const InUse::Taken in(a->use_);
      a->prepare(self);
      return select_in_thread(static_cast<Set&>(a->set_), a->engine(), at);
    }
  };
  // Selects: co_await alt.select() in a coroutine; alt.select()() in a thread.
  [[nodiscard]] Op select() noexcept { return {this}; }

  // Sets the precondition of guard i. Throws BadUse if there is no guard i, if its end is closed,
  // or if it must not be on together with another guard that is on (rule 5.5).
  void enable(std::uint32_t i, bool on) {
    if (i >= set_.size())
      bad_use("enable: there is no guard " + std::to_string(i) + "; this alternative has " +
              std::to_string(set_.size()) + ", counted from 0");
    if (!engine_) {
      early_.emplace_back(i, on);
      return;
    }
    core::Guard& g = set_.data()[i];
    if (g.enabled == on) return;
    if (on) {
      if (at_odds_) {
        const core::Fault f = core::fault_with(set_.data(), set_.size(), i);
        if (f.what != core::Fault::none) raise_fault(set_.data(), f, "enable");
      }
      if (!g.where && g.kind <= core::Kind::output)
        closed_end("enable", g.kind == core::Kind::input ? "reader" : "writer");
    }
    on ? ++enabled_ : --enabled_;
    engine_->enable(i, on);
  }
  // Makes the retirement of each guard's channel an outcome (rule 5.6). Throws BadUse after the
  // first select.
  void ends() {
    if (engine_)
      bad_use(
          "ends() of an alternative that has selected already: call it before the first select");
    loud_ = true;
  }

 protected:
  explicit AlternativeBase(Mode mode, Set&& s) : set_(std::move(s)), mode_(mode) {}

  Engine& engine() noexcept { return *engine_; }

 private:
  void prepare(runtime::ProcessBase& p) {
    if (!engine_) bind_to(p);
    set_.refill_timers(p);
    if (enabled_ == 0) none_holds();
  }
  void bind_to(runtime::ProcessBase& p) {
    set_.fill(p);
    for (auto [i, on] : early_) set_.data()[i].enabled = on;
    if (loud_) all_end(set_);
    check_guards(set_);
    at_odds_ = core::find_fault(set_.data(), set_.size(), true).what != core::Fault::none;
    if constexpr (std::is_same_v<Engine, core::Standing>) {
      engine_.emplace(set_.data(), set_.size(), &p);
    } else {
      engine_.emplace(set_.data(), set_.size(), mode_, &p);
      engine_->seed = Rotations::mine().random() | 1;
    }
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
      if (set_.data()[i].enabled)
        ++enabled_;
      else
        engine_->enable(i, false);
    }
  }

  Kept<Set> set_;
  Mode mode_;
  // The engine is destroyed before set_, because its destructor leaves the channels of the guards.
  std::optional<Engine> engine_;
  std::uint32_t enabled_ = 0;
  bool loud_ = false;
  InUse use_;
  // True if some guards of the set must not be on at the same time (rule 5.5).
  bool at_odds_ = false;
  // The calls of enable() that were made before the engine existed.
  std::vector<std::pair<std::uint32_t, bool>> early_;
};

template <class... Gs>
using FixedFor = FixedGuards<decltype(to_guard(std::declval<Gs>()))...>;

}  // namespace detail

// Guards that are kept between selects, and enrolled at each select. The alternative itself keeps
// the rotation that makes it fair, so it needs no table (Rotations in selecting.hpp).
template <class Set>
class Alternative : public detail::AlternativeBase<Set, core::Select> {
  using Base = detail::AlternativeBase<Set, core::Select>;

 public:
  template <detail::GuardLike... Gs>
  explicit Alternative(Mode mode, Gs&&... gs)
      : Base(mode, Set(detail::to_guard(std::forward<Gs>(gs))...)) {}
  template <class T, class P>
  explicit Alternative(const std::vector<Reader<T, P>>& rs, Mode mode = Mode::fair)
      : Base(mode, Set(rs)) {}
};
template <detail::GuardLike... Gs>
Alternative(Mode, Gs&&...) -> Alternative<detail::FixedFor<Gs...>>;
template <class T, class P>
Alternative(const std::vector<Reader<T, P>>&, Mode) -> Alternative<detail::ManyReaders<T, P>>;
template <class T, class P>
Alternative(const std::vector<Reader<T, P>>&) -> Alternative<detail::ManyReaders<T, P>>;

// Guards that stay enrolled between selects (rule 5.9). They are served in the order in which they
// become ready.
template <class Set>
class StandingAlternative : public detail::AlternativeBase<Set, core::Standing> {
  using Base = detail::AlternativeBase<Set, core::Standing>;

 public:
  template <class T, class P>
  explicit StandingAlternative(const std::vector<Reader<T, P>>& rs) : Base(Mode::fair, Set(rs)) {}
  template <detail::GuardLike G, detail::GuardLike... Gs>
  explicit StandingAlternative(G&& g, Gs&&... gs)
      : Base(Mode::fair,
             Set(detail::to_guard(std::forward<G>(g)), detail::to_guard(std::forward<Gs>(gs))...)) {
  }
};
template <class T, class P>
StandingAlternative(const std::vector<Reader<T, P>>&)
    -> StandingAlternative<detail::ManyReaders<T, P>>;
template <detail::GuardLike G, detail::GuardLike... Gs>
StandingAlternative(G&&, Gs&&...) -> StandingAlternative<detail::FixedFor<G, Gs...>>;

}  // namespace weft::inline WEFT_ABI
