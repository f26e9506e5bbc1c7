// A one-shot select over guards: phases A to D of the commit algorithm (waiter.hpp describes the
// words).
//
//   A scan()    in no queue, so no party can claim the select; commit the first ready guard
//   B enrol()   word := WAITING; at each guard search again, commit jointly, or join the queue
//   C           the owner parks; a timer or a cancellation competes by finish_as()
//   D leave()   leave every queue
//
//   begin() ─► chosen (A) │ chosen (B) │ parked ──woken──► finish() ─► chosen
//
// A guard whose channel has retired is left out (rule 5.6, guard.hpp). In phase A, at the first
// such guard, the owner checks whether the select is over. From phase B on the guards that keep the
// select open are counted (KeptChoice).
//
// This file is freestanding: the caller provides the guards as an array.
#pragma once
#include "choosing.hpp"

namespace weft::inline WEFT_ABI {
enum class Mode : std::uint8_t { fair, priority, random };
}

namespace weft::inline WEFT_ABI::core {

class Select : public Choosing<Select> {
 public:
  KeptChoice choice;

  Select() noexcept : Choosing(nullptr, 0) {}
  Select(Guard* guards, std::uint32_t n, Mode mode, Waker* waker, std::uint32_t start = 0) noexcept
      : Choosing(guards, n), start_(n ? start % n : 0), mode_(mode) {
    choice.waker = waker;
  }

  Select(const Select&) = delete;
  Select& operator=(const Select&) = delete;

  void bind(Guard* guards, std::uint32_t n, Mode mode, Waker* waker, std::uint32_t start) noexcept {
    g_ = guards;
    n_ = n;
    mode_ = mode;
    start_ = n ? start % n : 0;
    choice.waker = waker;
    counted_ = false;
  }

  void enable(std::uint32_t i, bool on) noexcept {
    g_[i].enabled = on;
    counted_ = false;
  }
  std::uint32_t next_start() const noexcept { return start_; }
#if WEFT_CHECKED
  // Returns whether a check decides which guard is chosen (runtime/points.hpp).
  bool takes_any() const noexcept { return mode_ != Mode::priority && n_ > 1; }
  void begin_at(std::uint32_t i) noexcept {
    mode_ = Mode::fair;  // also for a random select: the check is allowed to choose any ready guard
    start_ = i;
  }
#endif
  // The state of the random numbers of Mode::random; the caller seeds it.
  std::uint64_t seed = 0x9E3779B97F4A7C15ull;

  // Performs phases A and B.
  template <class Now>
  int start(Now&& now, bool foreign) noexcept {
    choice.reset();
    const int k = scan(now);
    return k == none ? enrol(foreign) : k;
  }
  bool may_time() const noexcept { return true; }

  // Performs phase A, including timers and skips. `now` is called only if there is a timer. Returns
  // the guard that was chosen, `parked` or `none`.
  template <class Now>
  int scan(Now&& now) noexcept {
    int skip = none;
    int r = none;
    if (mode_ == Mode::random) {
      r = scan_random();
    } else {
      const std::uint32_t first = mode_ == Mode::fair ? start_ : 0;
      for (std::uint32_t k = 0, i = first; k < n_; ++k, i = after(i)) {
        Guard& x = g_[i];
        if (!x.enabled) continue;
        if (x.kind >= Kind::timer) {
          if (x.kind == Kind::skip && mode_ == Mode::priority) return chosen(i, Status::ok);
          timers_ = true;
          continue;
        }
        if (const int c = attempt(i); c != none) return c;
      }
    }
    if (r != none) return r;
    if (!timers_ && mode_ != Mode::random) return none;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind == Kind::skip) skip = static_cast<int>(i);
    if (skip != none) return chosen(static_cast<std::uint32_t>(skip), Status::ok);
    const int t = earliest_timer();
    if (t != none && g_[t].deadline <= now())
      return chosen(static_cast<std::uint32_t>(t), Status::timed_out);
    return none;
  }

  // Performs phase B. Returns the guard to which the select has committed, having left all queues,
  // or `parked` if the caller must await the wake-up.
  WEFT_INLINE_HOSTED int enrol(bool foreign = false) noexcept {
    if (!counted_ || seen_.anything_off()) find_keepers(foreign);
    std::uint32_t count = keeping_;
    if (silents_) [[unlikely]]
      for (std::uint32_t i = 0; i < n_; ++i) count -= g_[i].silent && keep_.has(g_[i]);
    if (count == 0 && keep_.any()) return chosen(first_decider(), Status::retired);
    choice.keep_open(count);
    enrolled_ = true;
    choice.arm();
    for (std::uint32_t i = 0; i < n_; ++i) {
      // The guards are enrolled in order: of several guards at one channel the first is served
      // first (rules 1.2, 5.4).
      Guard& x = g_[i];
      if (!x.enabled || x.kind >= Kind::timer || x.silent) continue;
      x.node.flags =
          static_cast<std::uint16_t>((x.node.flags & kOwn) | flags_[static_cast<int>(x.kind)]);
      if (x.ends) [[unlikely]]
        x.node.clear(NodeFlags::quiet);
      x.enqueued = true;
      switch (x.ops->enrol(x)) {
        case Attempt::committed: return left(i, Status::ok);
        case Attempt::ended: return left(i, x.node.status);
        case Attempt::partner_holds:  // The select has committed; the partner wakes it once more.
        case Attempt::gone: return parked;
        case Attempt::silent:
          if (const int c = fell_silent_queued(i); c != none) return c;
          break;
        case Attempt::not_ready: break;
      }
    }
    return parked;
  }

  // Called when a foreign select has been notified. Commits the select if possible. Returns
  // `parked` if it cannot commit yet, or if it has an outcome already and will be woken.
  int look_again() noexcept {
    if (choice.done() || held_ != none) return parked;
    for (std::uint32_t k = 0, i = start_; k < n_; ++k, i = after(i)) {
      Guard& x = g_[i];
      if (!x.enabled || x.kind >= Kind::timer || x.silent || !x.ops->take) continue;
      switch (x.ops->take(x)) {
        case Attempt::committed: return left(i, Status::ok);
        case Attempt::ended: return left(i, x.node.status);
        case Attempt::partner_holds:
        case Attempt::gone: return parked;
        case Attempt::silent:
          if (const int c = fell_silent_queued(i); c != none) return c;
          break;
        case Attempt::not_ready: break;
      }
    }
    return parked;
  }

  // Performs phase D, and returns the guard that has committed. Called after the wake-up, or after
  // finish_as(). Returns `none` if the select was cancelled or timed out; `choice.word()` says
  // which.
  int finish() noexcept {
    if (held_ != none) {
      const auto i = static_cast<std::uint32_t>(held_);
      held_ = none;
      return chosen(i, g_[i].node.status);
    }
    leave();
    if (!choice.done()) return none;
    const std::uint32_t i = choice.winner();
    const Status s = g_[i].node.status;
    return s == Status::retired && !g_[i].ends ? is_over(i) : chosen(i, s);
  }

 private:
  // The flags of a node that are set by the code that makes the guard.
  static constexpr std::uint16_t kOwn = NodeFlags::compute | NodeFlags::extended;
  static std::uint16_t flags_of(bool keeps, bool foreign) noexcept {
    return static_cast<std::uint16_t>(NodeFlags::of_choice | NodeFlags::quiet |
                                      (keeps ? NodeFlags::keeps : 0) |
                                      (foreign ? NodeFlags::foreign : 0));
  }

  // Finds which guards keep this select open, how many there are, and which flags their nodes have.
  // The result stays valid until a guard is switched on or off, unless guards that are off matter.
  [[gnu::noinline]] void find_keepers(bool foreign) noexcept {
    std::uint32_t on[2] = {0, 0};
    seen_ = {};
    for (std::uint32_t i = 0; i < n_; ++i) {
      seen_.add(g_[i]);
      if (g_[i].kind <= Kind::output) on[static_cast<int>(g_[i].kind)] += g_[i].enabled;
    }
    keep_ = keepers(seen_, g_, n_);
    keeping_ = (keep_.inputs ? on[0] : 0) + (keep_.outputs ? on[1] : 0);
    flags_[static_cast<int>(Kind::input)] = flags_of(keep_.inputs, foreign);
    flags_[static_cast<int>(Kind::output)] = flags_of(keep_.outputs, false);
    counted_ = true;
  }
  void belongs_to_us(Guard& x, std::uint32_t i) noexcept {
    x.node.belongs_to(&choice);
    x.node.index = i;
  }
  [[gnu::always_inline]] int attempt(std::uint32_t i) noexcept {
    Guard& x = g_[i];
    belongs_to_us(x, i);
    switch (x.ops->scan(x)) {
      case Attempt::committed: return chosen(i, Status::ok);
      case Attempt::ended: return found_ended(i);
      case Attempt::partner_holds:
        // The select has committed, and the partner wakes the select as if the partner had claimed
        // it.
        held_ = static_cast<int>(i);
        return parked;
      default: return none;
    }
  }
  [[gnu::noinline]] int found_ended(std::uint32_t i) noexcept {
    Guard& x = g_[i];
    if (x.node.status != Status::retired || x.ends) return chosen(i, x.node.status);
    const bool here = over_at() == static_cast<int>(i);
    x.silent = silents_ = true;
    return here ? chosen(i, Status::retired) : none;
  }

  // Returns the guard at which this select ends with Retired (rule 5.6), if it is over now;
  // otherwise none. Called at the first silent guard. If another guard retires after that, the scan
  // misses it, and enrol() counts it.
  int over_at() noexcept {
    if (!silents_) {
      over_at_ = over(g_, n_, mode_ == Mode::fair ? start_ : 0);
    }
    return over_at_;
  }
  std::uint32_t first_decider() const noexcept {
    std::uint32_t i = mode_ == Mode::fair ? start_ : 0;
    while (!keep_.decides(g_[i])) i = after(i);
    return i;
  }
  // Called when guard i, the last guard that kept this select open, has retired. The outcome is
  // Retired, at guard i or, if i does not decide, at a guard that does.
  int is_over(std::uint32_t i) noexcept {
    leave();
    return chosen(keep_.decides(g_[i]) ? i : first_decider(), Status::retired);
  }
  // Called when the owner has found guard i retired, while the select is enrolled at other guards.
  int fell_silent_queued(std::uint32_t i) noexcept {
    g_[i].silent = silents_ = true;
    if (!keep_.has(g_[i]) || !choice.last_gone()) return none;
    return choice.claim_one(DONE + i) ? is_over(i) : parked;
  }

  // Chooses uniformly among the guards that are ready: draws one of the guards that seem ready
  // (reservoir sampling), then commits that guard; if the commit fails, draws again.
  int scan_random() noexcept {
    for (std::uint32_t i = 0; i < n_; ++i) {
      belongs_to_us(g_[i], i);
      if (g_[i].enabled && g_[i].kind >= Kind::timer) timers_ = true;
    }
    int over = -2;  // -2: not computed yet
    for (std::uint32_t tries = 0; tries < n_ + 1; ++tries) {
      std::uint32_t count = 0, pick = 0;
      for (std::uint32_t i = 0; i < n_; ++i) {
        Guard& x = g_[i];
        if (!x.enabled || x.kind >= Kind::timer) continue;
        const State s = x.state();
        if (s == State::blocked) continue;
        if (s == State::retired && !x.ends) {
          if (over == -2) over = core::over(g_, n_);
          if (over != static_cast<int>(i)) continue;
        }
        if (random() % ++count == 0) pick = i;
      }
      if (count == 0) return none;
      if (const int c = attempt(pick); c != none) return c;
    }
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind < Kind::timer)
        if (const int c = attempt(i); c != none) return c;
    return none;
  }
  std::uint64_t random() noexcept {  // xorshift64* (Vigna 2016)
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (seed * 0x2545F4914F6CDD1Dull) >> 33;
  }

  int chosen(std::uint32_t i, Status s) noexcept {
    if (silents_) [[unlikely]]
      forget_silents();
    status_ = s;
    start_ = after(i);
    return static_cast<int>(i);
  }

  [[gnu::noinline]] int left(std::uint32_t i, Status s) noexcept {
    leave();
    return chosen(i, s);
  }
  WEFT_INLINE_HOSTED void leave() noexcept {
    if (!enrolled_) return;
    enrolled_ = false;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enqueued) {
        g_[i].enqueued = false;
        g_[i].ops->leave(g_[i]);
      }
    if (silents_) [[unlikely]]
      forget_silents();
  }
  [[gnu::noinline]] void forget_silents() noexcept {
    silents_ = false;
    for (std::uint32_t i = 0; i < n_; ++i) g_[i].silent = false;
  }

  std::uint32_t start_ = 0;
  Mode mode_ = Mode::fair;
  bool silents_ = false;  // whether a guard was found silent, so that over_at_ belongs to this scan
  bool timers_ = false;   // whether there is a timer or a skip among the guards that are on
  // Whether keep_, keeping_ and flags_ are valid for the present state of the guards.
  bool counted_ = false;
  Kinds seen_;
  std::uint32_t keeping_ = 0;
  static_assert(static_cast<int>(Kind::timer) == (__STDC_HOSTED__ ? 5 : 4),
                "flags_ has a value for each kind that enrols");
  std::uint16_t flags_[static_cast<int>(Kind::timer)] = {
    0,
    0,
    NodeFlags::of_choice,
    NodeFlags::of_choice,
#if __STDC_HOSTED__
    NodeFlags::of_choice,
#endif
  };
  Keepers keep_;
  bool enrolled_ = false;  // whether phase B was entered, so that every queue must be left
  int over_at_ = none;
};

}  // namespace weft::inline WEFT_ABI::core
