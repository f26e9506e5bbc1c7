// A select over guards, one-shot: phases A–D of the commit algorithm (see waiter.hpp for the words).
//
//   A scan()    enrolled nowhere, so nobody can claim us: commit with the first ready guard
//   B enrol()   word := WAITING; at each guard look again, commit jointly, or join the line
//   C           the owner parks; a timer or a cancellation competes by finish_as()
//   D leave()   leave every line
//
//   begin() ─► chosen (A) │ chosen (B) │ parked ──woken──► finish() ─► chosen
//
// Freestanding: guards are an array of the caller's.
#pragma once
#include "barrier.hpp"
#include "channel.hpp"

namespace weft {
enum class Mode : std::uint8_t { fair, priority, random };
}

namespace weft::core {

struct Guard;

// What differs between the kinds of guards.
struct GuardOps {
  Try (*scan)(Guard&) noexcept;
  Try (*enrol)(Guard&) noexcept;
  void (*leave)(Guard&) noexcept;
  bool (*ready)(Guard&) noexcept;
  Try (*take)(Guard&) noexcept;   // of a foreign select; null where not applicable
  bool (*link)(Guard&) noexcept;  // of a standing alternative
  void (*enable)(Guard&, bool) noexcept;
  void (*invite)(Guard&) noexcept;  // of a standing output: tell the foreign reader that it may take
};

enum class Kind : std::uint8_t { input, output, barrier, timer, skip };

struct Guard {
  // What is small lies where the node has room to spare: a select over many guards is a matter of cache lines.
  [[no_unique_address]] StandingNode node;
  Kind kind = Kind::skip;
  bool enabled = true;  // its precondition
  bool flat = false;    // enrolled for good by a standing alternative
  const GuardOps* ops = nullptr;
  void* where = nullptr;      // ChannelCore<T, P>* or BarrierCore<P>*
  std::int64_t deadline = 0;  // timer: steady or virtual ns
};

template <class C, Side S>
inline constexpr GuardOps channel_ops{
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template scan<S>(g.node); },
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template enrol<S>(g.node); },
    [](Guard& g) noexcept { static_cast<C*>(g.where)->template withdraw<S>(g.node); },
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template ready<S>(); },
    [](Guard& g) noexcept {
      if constexpr (S == Side::in)
        return static_cast<C*>(g.where)->take(g.node, Enrolled{g.node.choice_, g.node.index});
      else
        return static_cast<C*>(g.where)->template retry<S>(g.node);
    },
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template link_standing<S>(g.node); },
    [](Guard& g, bool on) noexcept { static_cast<C*>(g.where)->template set_enabled<S>(g.node, on); },
    [](Guard& g) noexcept { static_cast<C*>(g.where)->invite_foreign(); },
};

template <class B>
inline constexpr GuardOps barrier_ops{
    [](Guard& g) noexcept { return static_cast<B*>(g.where)->scan(g.node); },
    [](Guard& g) noexcept { return static_cast<B*>(g.where)->enrol(g.node); },
    [](Guard& g) noexcept { static_cast<B*>(g.where)->withdraw(g.node); },
    [](Guard& g) noexcept { return static_cast<B*>(g.where)->ready(); },
    nullptr,
    [](Guard&) noexcept { return false; },
    [](Guard&, bool) noexcept {},
    [](Guard&) noexcept {},
};

class Select {
 public:
  static constexpr int none = -1;    // nothing yet
  static constexpr int parked = -2;  // await the wake-up, then finish()

  Choice choice;

  Select() = default;
  Select(Guard* guards, std::uint32_t n, Mode mode, Waker* waker, std::uint32_t start = 0) noexcept
      : g_(guards), n_(n), start_(n ? start % n : 0), mode_(mode) {
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
  }

  Guard& guard(int i) noexcept { return g_[i]; }
  std::uint32_t size() const noexcept { return n_; }
  std::uint32_t next_start() const noexcept { return start_; }
  // A source of randomness for Mode::random, seeded by the caller.
  std::uint64_t seed = 0x9E3779B97F4A7C15ull;

  // The index of a timer guard that is earliest among the enabled, or none.
  int earliest_timer() const noexcept {
    int best = none;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind == Kind::timer && (best == none || g_[i].deadline < g_[best].deadline)) best = static_cast<int>(i);
    return best;
  }

  // Phase A, timers and skips included. `now`: read only if there is a timer.
  template <class Now>
  int scan(Now&& now) noexcept {
    int skip = none;
    int r = none;
    if (mode_ == Mode::random) {
      r = scan_random();
    } else {
      const std::uint32_t first = mode_ == Mode::fair ? start_ : 0;
      for (std::uint32_t k = 0, i = first; k < n_; ++k, i = i + 1 == n_ ? 0 : i + 1) {
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
    if (t != none && g_[t].deadline <= now()) return chosen(static_cast<std::uint32_t>(t), Status::timed_out);
    return none;
  }

  // Phase B. An index: committed by ourselves, all lines left. `parked`: await the wake-up.
  int enrol(bool foreign = false) noexcept {
    enrolled_ = true;
    choice.arm();
    for (std::uint32_t i = 0; i < n_; ++i) {  // in order: among its guards at one channel the first is served first (rules 1.2, 5.4)
      Guard& x = g_[i];
      if (!x.enabled || x.kind >= Kind::timer) continue;
      prepare(x, i);
      x.node.clear(NodeFlags::foreign);
      if (foreign && x.kind == Kind::input) x.node.set(NodeFlags::foreign);
      switch (x.ops->enrol(x)) {
        case Try::committed: leave(); return chosen(i, Status::ok);
        case Try::ended: leave(); return chosen(i, x.node.status);
        case Try::held:  // decided; the partner wakes us once more
        case Try::gone: return parked;
        case Try::not_ready: break;
      }
    }
    return parked;
  }

  // A foreign select was told to look again: commit if it can. `parked`: not yet, or decided already and the wake-up is under way.
  int look_again() noexcept {
    if (choice.done() || held_ != none) return parked;
    for (std::uint32_t k = 0, i = start_; k < n_; ++k, i = i + 1 == n_ ? 0 : i + 1) {
      Guard& x = g_[i];
      if (!x.enabled || x.kind >= Kind::timer || !x.ops->take) continue;
      switch (x.ops->take(x)) {
        case Try::committed: leave(); return chosen(i, Status::ok);
        case Try::ended: leave(); return chosen(i, x.node.status);
        case Try::held:
        case Try::gone: return parked;
        case Try::not_ready: break;
      }
    }
    return parked;
  }

  // After the wake-up (or after finish_as): phase D, and who won. `none`: cancelled or timed out, see `choice.word()`.
  int finish() noexcept {
    if (held_ != none) {
      const auto i = static_cast<std::uint32_t>(held_);
      held_ = none;
      return chosen(i, g_[i].node.status);
    }
    leave();
    if (!choice.done()) return none;
    const std::uint32_t i = choice.winner();
    return chosen(i, g_[i].node.status);
  }

  // Committed already, and only the partner's leave to go on is awaited: not to be cancelled (rule 1.6).
  bool held() const noexcept { return held_ != none; }
  int held_guard() const noexcept { return held_; }

  Status status() const noexcept { return status_; }

 private:
  void prepare(Guard& x, std::uint32_t i) noexcept {
    x.node.belongs_to(&choice);
    x.node.index = i;
  }

  int attempt(std::uint32_t i) noexcept {
    prepare(g_[i], i);
    switch (g_[i].ops->scan(g_[i])) {
      case Try::committed: return chosen(i, Status::ok);
      case Try::ended: return chosen(i, g_[i].node.status);
      case Try::held:
        // Committed, and the partner wakes us: as if it had claimed us.
        held_ = static_cast<int>(i);
        return parked;
      default: return none;
    }
  }

  // Uniform over the ready: reservoir of the hints, then commit; a hint that was wrong draws again.
  int scan_random() noexcept {
    for (std::uint32_t tries = 0; tries < n_ + 1; ++tries) {
      std::uint32_t count = 0, pick = 0;
      for (std::uint32_t i = 0; i < n_; ++i) {
        Guard& x = g_[i];
        if (!x.enabled) continue;
        if (x.kind >= Kind::timer) {
          timers_ = true;
          continue;
        }
        if (x.ops->ready(x) && random() % ++count == 0) pick = i;
      }
      if (count == 0) return none;
      if (const int c = attempt(pick); c != none) return c;
    }
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind < Kind::timer)
        if (const int c = attempt(i); c != none) return c;
    return none;
  }
  std::uint64_t random() noexcept {  // xorshift64*, Vigna 2016
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (seed * 0x2545F4914F6CDD1Dull) >> 33;
  }

  int chosen(std::uint32_t i, Status s) noexcept {
    status_ = s;
    start_ = i + 1 == n_ ? 0 : i + 1;
    return static_cast<int>(i);
  }

  void leave() noexcept {
    if (!enrolled_) return;
    enrolled_ = false;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind < Kind::timer) g_[i].ops->leave(g_[i]);
  }

  Guard* g_ = nullptr;
  std::uint32_t n_ = 0;
  std::uint32_t start_ = 0;
  Mode mode_ = Mode::fair;
  Status status_ = Status::pending;
  bool timers_ = false;    // there is a timer or a skip among the enabled guards
  bool enrolled_ = false;  // phase B was entered: every line must be left
  int held_ = none;        // the guard that committed in phase A while its partner holds us
};

}  // namespace weft::core
