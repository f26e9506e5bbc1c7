// The select of placeable processes on a microcontroller, and its guards (rule 5). The source makes
// descriptions of guards, with preconditions. A select makes a Held of each description.
#pragma once
#include "weft_mcu/csp_placed.hpp"

#include <tuple>

#include "weft/chosen.hpp"

namespace weft::inline WEFT_ABI {

namespace detail {

template <class T>
struct PlacedIn {
  using Value = T;
  mcu::ChannelEngine<T>* channel;
  bool on = true;
  PlacedIn when(bool condition) && { return {channel, condition}; }
};
template <class T>
struct PlacedOut {
  using Value = void;
  mcu::ChannelEngine<T>* channel;
  T value;
  bool on = true;
  PlacedOut when(bool condition) && { return {channel, value, condition}; }
};
struct PlacedAfter {
  using Value = void;
  std::int64_t us;  // 0 for a skip (rule 5.7)
  bool on = true;
  PlacedAfter when(bool condition) && { return {us, condition}; }
};

template <class G>
struct Held;
template <class T>
struct Held<PlacedIn<T>> {
  using Value = T;
  mcu::ChannelEngine<T>* channel;
  bool on;
  union {
    T value;
  };
  explicit Held(const PlacedIn<T>& g) noexcept : channel(g.channel), on(g.on) {}
  explicit Held(const Reader<T>& r) noexcept : channel(r.core()), on(true) {}
  void fill(core::Guard& g) noexcept {
    g.kind = core::Kind::input;
    g.ops = &core::channel_ops<mcu::ChannelEngine<T>, core::Side::in>;
    g.where = channel;
    g.node.slot = &value;
    g.enabled = on;
  }
};
template <class T>
struct Held<Reader<T>> : Held<PlacedIn<T>> {
  using Held<PlacedIn<T>>::Held;
};
template <class T>
struct Held<PlacedOut<T>> {
  using Value = void;
  PlacedOut<T> out;
  explicit Held(const PlacedOut<T>& g) noexcept : out(g) {}
  void fill(core::Guard& g) noexcept {
    g.kind = core::Kind::output;
    g.ops = &core::channel_ops<mcu::ChannelEngine<T>, core::Side::out>;
    g.where = out.channel;
    g.node.slot = &out.value;
    g.enabled = out.on;
  }
};
template <>
struct Held<PlacedAfter> {
  using Value = void;
  PlacedAfter after;
  explicit Held(const PlacedAfter& g) noexcept : after(g) {}
  void fill(core::Guard& g) const noexcept {
    g.kind = after.us <= 0 ? core::Kind::skip : core::Kind::timer;
    if (after.us > 0) g.deadline = later(after.us);
    g.enabled = after.on;
  }
};
template <>
struct Held<Barrier> {
  using Value = void;
  Barrier::Engine* barrier;
  explicit Held(const Barrier& b) noexcept : barrier(b.core()) {}
  void fill(core::Guard& g) const noexcept {
    g.kind = core::Kind::barrier;
    g.ops = &core::barrier_ops<Barrier::Engine>;
    g.where = barrier;
  }
};

// The part of a select that does not depend on the types of its guards.
class PlacedChoice {
#if WEFT_PLACED_BOARD
 public:
  // Ends the select that waits, and its process. Returns false if a guard has committed.
  bool cancel(PlacedPromise& p) noexcept {
    if (!engine_.choice.finish_as(core::CANCELLED)) return false;
    p.scheduler().push(&p);
    return true;
  }
  // Calls `f` for each guard that is on.
  template <class F>
  void each(F&& f) noexcept {
    for (std::uint32_t i = 0; i < engine_.size(); ++i)
      if (engine_.guards()[i].enabled) f(engine_.guards()[i]);
  }
#endif

 protected:
  PlacedChoice() noexcept = default;
  PlacedChoice(const PlacedChoice&) = delete;
  PlacedChoice& operator=(const PlacedChoice&) = delete;

  // Returns whether the process must suspend.
  [[gnu::noinline]] bool begin(PlacedPromise& p, core::Guard* g, std::uint32_t n) noexcept {
#if WEFT_DEBUG
    if (core::find_fault(g, n).what != core::Fault::none)
      weft_panic("weft: a select without a guard that is on, with both ends of a channel, or with "
                 "one barrier twice (rule 5.5)");
#endif
    if (p.asked) return p.cancelled();
    std::uint32_t key = n;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (g[i].enabled && g[i].kind <= core::Kind::output && !g[i].where) return p.closed();
      key = (key ^ static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(g[i].where))) *
            0x9E3779B1u;  // Fibonacci hashing (Knuth)
    }
    engine_.bind(g, n, Mode::fair, &p, p.turns.first(key, n));
    chosen_ = engine_.begin(&p, &board_now);
    if (chosen_ != core::Select::parked) return p.begun(outcome(p));
    p.status = Status::ok;  // wake() must not take an older status for the outcome.
    p.place = this;
    timer_.begin(p.scheduler(), engine_.choice, engine_.deadline());
    go_on_ = p.frame().resume;
    p.frame().resume = &woken;
#if WEFT_PLACED_BOARD
    p.selects = true;
    for (std::uint32_t i = 0; i < n; ++i)
      if (g[i].enabled && g[i].kind <= core::Kind::output)
        board::waits(p, static_cast<core::SyncObject*>(g[i].where));
#endif
    return true;
  }
  int chosen() const noexcept { return chosen_; }

 private:
  static void woken(void* frame) noexcept {
    PlacedPromise& p = PlacedPromise::Handle::from_address(frame).promise();
    PlacedChoice& c = *static_cast<PlacedChoice*>(p.place);
    void (*const go_on)(void*) = c.go_on_;
    p.frame().resume = go_on;
    c.timer_.end(p.scheduler());
    c.chosen_ = c.engine_.woken(&board_now, false);
    Status s = c.outcome(p);
#if WEFT_PLACED_BOARD
    p.selects = false;
    if (p.asked && c.engine_.choice.word() == core::CANCELLED) s = Status::cancelled;
    if (s == Status::cancelled) return p.status = s, PlacedPromise::end_here(frame);
#endif
    if (!p.unasked(s)) return go_on(frame);
    p.status = s;
    PlacedPromise::end_here(frame);
  }
  // Returns ok, or how the channel of the chosen guard has ended.
  Status outcome(PlacedPromise& p) noexcept {
    p.turns.next(engine_.next_start());
    const Status s = engine_.status();
    if (!is_end(s)) return Status::ok;
    p.place = engine_.guard(chosen_).where;
    return s;
  }

  core::Select engine_;
  PlacedTimer timer_;
  void (*go_on_)(void*) = nullptr;
  int chosen_ = 0;
};

template <class... G>
class [[nodiscard]] PlacedSelect : PlacedChoice {
  static_assert(sizeof...(G) > 0, "weft: a select needs a guard (rule 5.5)");
  static_assert(sizeof...(G) <= Turns::kMask, "weft: a select on a board has at most 31 guards");
  using All = std::index_sequence_for<G...>;
  using Value = ValueOf<typename Held<G>::Value...>;

 public:
  explicit PlacedSelect(const G&... g) noexcept : held_(g...) {}
  static constexpr bool await_ready() noexcept { return false; }
  bool await_suspend(PlacedPromise::Handle h) noexcept {
    fill(All{});
    return begin(h.promise(), guards_, sizeof...(G));
  }
  Chosen<Value> await_resume() noexcept {
    Chosen<Value> result{chosen(), {}};
    take(result.value, All{});
    return result;
  }

 private:
  template <std::size_t... I>
  void fill(std::index_sequence<I...>) noexcept {
    (std::get<I>(held_).fill(guards_[I]), ...);
  }
  template <std::size_t... I>
  void take(Value& to, std::index_sequence<I...>) noexcept {
    (take_one<I>(to), ...);
  }
  template <std::size_t I>
  void take_one([[maybe_unused]] Value& to) noexcept {
    auto& held = std::get<I>(held_);
    using T = typename std::remove_reference_t<decltype(held)>::Value;
    if constexpr (!std::is_void_v<T>) {
      if (chosen() != static_cast<int>(I)) return;
      if constexpr (std::is_same_v<Value, std::optional<T>>)
        to.emplace(held.value);
      else
        to.template emplace<T>(held.value);
    }
  }

  core::Guard guards_[sizeof...(G)];
  std::tuple<Held<G>...> held_;
};

}  // namespace detail

template <class T>
detail::PlacedIn<T> in(const Reader<T>& r) noexcept {
  return {r.core()};
}
template <class T>
detail::PlacedOut<T> out(const Writer<T>& w, const std::type_identity_t<T>& v) noexcept {
  return {w.core(), v};
}
template <class Rep, class Period>
detail::PlacedAfter after(std::chrono::duration<Rep, Period> span) noexcept {
  return {detail::micros(span)};
}
inline detail::PlacedAfter skip() noexcept { return {0}; }

// Returns an operation for co_await, which waits until one of the guards can commit, and commits
// that guard. If the channel of the guard has ended, or all channels that decide have retired (rule
// 5.6), the process ends.
template <class... G>
auto select(const G&... g) noexcept {
  return detail::PlacedSelect<G...>(g...);
}

}  // namespace weft::inline WEFT_ABI
