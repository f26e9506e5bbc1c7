// A choice from its beginning to its outcome. The code is the same for both engines (select.hpp,
// standing.hpp), for every language and for every backend.
//
//   begin() ─► chosen
//      └────► parked ─► arm a timer for deadline(), sleep ──► woken() ─► chosen; none: withdrawn
//                                   ▲   withdraw(), the timer and            │
//                                   │   partners compete for the word        └► parked (rule 5.6)
//                                   └────────────────────────────────────────┘
//
// The owner makes the guards and asks find_fault() about them (guard.hpp), remembers where its next
// select begins, sleeps, and takes the value that has arrived. The owner's timer ends the choice by
// Choice::finish_as(TIMED_OUT), and is disarmed before woken() is called.
//
// Engine has a member `choice`, start(now, foreign) and finish(). finish() returns `again` if
// start() must be called once more.
#pragma once
#include "guard.hpp"

namespace weft::inline WEFT_ABI::core {

template <class Engine>
class Choosing {
 public:
  // No guard has been chosen yet. From woken() and finish() it means that the choice was withdrawn
  // or timed out.
  static constexpr int none = -1;
  static constexpr int parked = -2;  // The owner must await the wake-up, then call woken().
  static constexpr int again = -3;   // Result of finish(): the owner must call start() once more.

  Guard& guard(int i) noexcept { return g_[i]; }
  Guard* guards() noexcept { return g_; }
  std::uint32_t size() const noexcept { return n_; }
  // Returns the status of the guard that was chosen: ok, timed_out, or how its channel has ended.
  Status status() const noexcept { return status_; }

  // Returns whether the choice has committed, and its owner waits only until the partner lets it
  // continue. Such a choice cannot be cancelled (rule 1.6).
  bool held() const noexcept { return held_ != none; }
  bool undecided() const noexcept { return !held() && engine().choice.word() == WAITING; }
  // Returns the guard to which the choice has committed, although its owner has not resumed yet; or
  // none.
  int committed_to() const noexcept {
    if (held()) return held_;
    return engine().choice.done() ? static_cast<int>(engine().choice.winner()) : none;
  }

  // Enrols the choice. Returns the guard that was chosen at once, or `parked`. `now` is called only
  // if there is a timer guard.
  template <class Now>
  int begin(Waker* waker, Now&& now, bool foreign = false) noexcept {
    engine().choice.waker = waker;
    return engine().start(now, foreign);
  }
  // Returns when the first timer guard of a parked choice is due, in ns; prim::forever if there is
  // none. Call deadline() only once the word is WAITING: a timer that fired earlier would find
  // nothing to end, and would be lost.
  std::int64_t deadline() const noexcept {
    const int t = held() ? none : earliest_timer();
    return t == none ? prim::forever : g_[t].deadline;
  }
  // Continues after the wake-up; returns the guard that was chosen, `parked` or `none`. `cancelled`
  // says whether a request to cancel has arrived meanwhile; if one has, the choice does not wait
  // for another guard.
  template <class Now>
  [[gnu::always_inline]] int woken(Now&& now, bool cancelled) noexcept {
    const bool late = engine().choice.word() == TIMED_OUT;
    const int r = engine().finish();
    if (r >= 0) [[likely]]
      return r;
    if (r == again) return cancelled ? none : go_on(now);
    return late ? timed_out() : none;
  }
  // Withdraws the choice on behalf of a cancellation, which competes for the word. Returns true if
  // nothing was committed, and nothing will be; the caller then wakes the owner.
  bool withdraw() noexcept { return !held() && engine().choice.finish_as(CANCELLED); }

  // Returns the timer guard that is due first among those that are on, or none.
  int earliest_timer() const noexcept {
    int best = none;
    if (!engine().may_time()) return best;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].enabled && g_[i].kind == Kind::timer &&
          (best == none || g_[i].deadline < g_[best].deadline))
        best = static_cast<int>(i);
    return best;
  }

 protected:
  Choosing(Guard* guards, std::uint32_t n) noexcept : g_(guards), n_(n) {}
  ~Choosing() = default;

  std::uint32_t after(std::uint32_t i) const noexcept { return i + 1 == n_ ? 0 : i + 1; }

  Guard* g_;
  std::uint32_t n_;
  Status status_ = Status::pending;
  int held_ = none;  // the guard that has committed, while its partner holds the choice's owner

 private:
  template <class Now>
  [[gnu::noinline, gnu::cold]] int go_on(Now& now) noexcept {
    return engine().start(now, false);
  }
  [[gnu::noinline, gnu::cold]] int timed_out() noexcept {
    status_ = Status::timed_out;
    return earliest_timer();
  }
  Engine& engine() noexcept { return static_cast<Engine&>(*this); }
  const Engine& engine() const noexcept { return static_cast<const Engine&>(*this); }
};

}  // namespace weft::inline WEFT_ABI::core
