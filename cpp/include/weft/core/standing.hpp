// A standing alternative: its guards stay enrolled between selects, so that a select costs the same
// for any number of guards (rule 5.9).
//
//   start():  serve the ready list ─► chosen
//             list empty: word := WAITING, read it again ──found──► take WAITING back, serve it
//                                             └─empty──► parked ──woken──► finish()
//
// When a guard's channel retires, a select that waits is woken and checks itself whether it is
// over: finish() returns `again` unless the select is over (rule 5.6). The guard stays linked,
// `silent`. From then on it costs nothing, and is woken again only if its channel is poisoned.
//
// Between selects the word is IDLE (or DONE until finish()). A party that arrives cannot claim the
// word: the party queues itself and marks its channel ready. Some guards are not flat, and are
// scanned and enrolled at each select: guards where the other side has a standing party too,
// barriers, timers and skips.
#pragma once
#include <array>
#include <bit>

#include "select.hpp"

namespace weft::inline WEFT_ABI::core {

class Standing : public Choosing<Standing> {
 public:
  StandingChoice choice;

  Standing(Guard* guards, std::uint32_t n, Waker* waker) noexcept : Choosing(guards, n) {
    choice.waker = waker;
    for (std::uint32_t i = 0; i < n_; ++i) {
      Guard& x = g_[i];
      x.node.belongs_to(&choice);
      x.node.index = i;
      x.flat = x.kind < Kind::barrier && link(x);
      // A channel guard without `where` has a closed end and can never be on, so it does not count.
      if (!x.flat && (x.where || x.kind >= Kind::barrier)) flat_ = false;
      if (x.enabled) ++on_[static_cast<int>(x.kind)];
    }
  }
  Standing(const Standing&) = delete;
  Standing& operator=(const Standing&) = delete;
  ~Standing() {
    for (std::uint32_t i = 0; i < n_; ++i)
      if (g_[i].flat) {
        g_[i].ops->leave(g_[i]);
        choice.forget(&g_[i].node);
      }
  }

  void enable(std::uint32_t i, bool on) noexcept {
    if (g_[i].enabled != on) {
      const std::uint32_t more = on ? 1u : -1u;
      on_[static_cast<int>(g_[i].kind)] += more;
      if (g_[i].silent) gone_[static_cast<std::size_t>(g_[i].kind)] += more;
    }
    g_[i].enabled = on;
    if (g_[i].flat) g_[i].ops->enable(g_[i], on);
  }

  bool may_time() const noexcept { return !flat_; }

  template <class Now>
  WEFT_INLINE_HOSTED int start(Now&& now, bool = false) noexcept {
    for (;;) {
      if (all_gone()) [[unlikely]]
        stay_over();
      while (StandingNode* n = choice.pop()) {
        if (!g_[n->index].enabled) continue;
        if (const int c = attempt(n->index, true); c != none) return c;
      }
      if (!flat_)
        if (const int c = scan_others(now); c != none) return c;
      choice.arm();
      if (contested_) [[unlikely]]
        invite_foreigners();
      if (choice.some()) {
        if (choice.claim_one(IDLE)) continue;
        return parked;  // A party has claimed the alternative meanwhile, and will wake it.
      }
      const int c = flat_ ? parked : enrol_others();
      if (c != again) return c;
    }
  }

  // Called after the wake-up, or after choice.finish_as(). Returns the guard that has committed,
  // `none` if the select was cancelled or timed out, or `again` if start() must be called once
  // more.
  WEFT_INLINE_HOSTED int finish() noexcept {
    if (held_ != none) {
      const int i = held_;
      held_ = none;
      status_ = g_[i].node.status;
      return i;
    }
    leave_others();
    int r = none;
    if (choice.done()) {
      r = static_cast<int>(choice.winner());
      status_ = g_[r].node.status;
      if (status_ == Status::retired && !g_[r].ends) {
        r = fell_silent(r);
        if (r == none) r = again;
      }
    }
    choice.reset();
    return r;
  }

 private:
  static bool link(Guard& x) noexcept {
    if (!x.where) return false;
    // This flag is set before the guard's channel can end.
    if (!x.ends) x.node.set(NodeFlags::quiet);
    if (x.ops->link(x)) return true;
    // The guard is enrolled at each select, so the end of its channel wakes the owner.
    x.node.clear(NodeFlags::quiet);
    return false;
  }

  // Called when the channel of guard i, which is on, has retired. Returns the guard at which the
  // select is over, otherwise `none`.
  [[gnu::noinline, gnu::cold]] int fell_silent(int i) noexcept {
    Guard& x = g_[i];
    if (!x.silent) ++gone_[static_cast<std::size_t>(x.kind)];
    x.silent = true;
    if (!all_gone()) return none;
    const int at = over(g_, n_);
    if (at == none) return none;
    status_ = Status::retired;
    return x.kind == g_[at].kind ? i : at;
  }
  // Keeps an ended select in that state: the guard that ended it stays ready (rule 5.6).
  [[gnu::noinline, gnu::cold]] void stay_over() noexcept {
    if (const int at = over(g_, n_); at != none) choice.mark(&g_[at].node);
  }
  // Returns whether over() must be called: as far as is known, all guards that can decide have
  // retired.
  bool all_gone() const noexcept {
    const auto in = static_cast<std::size_t>(Kind::input);
    const auto out = static_cast<std::size_t>(Kind::output);
    if (std::bit_cast<std::uint64_t>(gone_) == 0) [[likely]]
      return false;
    const std::size_t side = on_[out] > 0 ? out : in;
    if (side == in)
      for (auto k = static_cast<std::size_t>(Kind::barrier);
           k < static_cast<std::size_t>(Kind::timer); ++k)
        if (on_[k] > 0) return false;
    return gone_[side] > 0 && gone_[side] == on_[side];
  }

  int attempt(std::uint32_t i, bool listed) noexcept {
    Guard& x = g_[i];
    switch (x.ops->scan(x)) {
      case Attempt::committed: status_ = Status::ok; return static_cast<int>(i);
      case Attempt::partner_holds: held_ = static_cast<int>(i); return parked;
      case Attempt::ended:
        if (x.node.status == Status::retired && !x.ends) return fell_silent(static_cast<int>(i));
        // If the guard was silent, its channel has been poisoned since.
        if (x.silent) --gone_[static_cast<std::size_t>(x.kind)];
        x.silent = false;
        status_ = x.node.status;
        if (listed) choice.mark(&x.node);  // The guard stays ready at the end (rule 5.6).
        return static_cast<int>(i);
      default:
        if (x.node.contested) contested_ = true;
        return none;
    }
  }

  void invite_foreigners() noexcept {
    contested_ = false;
    for (std::uint32_t i = 0; i < n_; ++i) {
      if (!g_[i].node.contested) continue;
      g_[i].node.contested = false;
      if (g_[i].enabled) g_[i].ops->invite(g_[i]);
    }
  }

  template <class Now>
  int scan_others(Now& now) noexcept {
    int skip = none;
    for (std::uint32_t k = 0, i = turn_; k < n_; ++k, i = after(i)) {
      Guard& x = g_[i];
      if (x.flat || !x.enabled) continue;
      if (x.kind == Kind::skip) skip = static_cast<int>(i);
      if (x.kind >= Kind::timer) continue;
      if (const int c = attempt(i, false); c != none) {
        turn_ = after(i);
        return c;
      }
    }
    if (skip != none) {
      status_ = Status::ok;
      return skip;
    }
    const int t = earliest_timer();
    if (t != none && g_[t].deadline <= now()) {
      status_ = Status::timed_out;
      return t;
    }
    return none;
  }

  int enrol_others() noexcept {
    enrolled_ = true;
    for (std::uint32_t i = 0; i < n_; ++i) {
      Guard& x = g_[i];
      if (x.flat || !x.enabled || x.kind >= Kind::timer || x.silent) continue;
      switch (x.ops->enrol(x)) {
        case Attempt::committed:
          x.node.status = Status::ok;
          finish();
          return static_cast<int>(i);
        case Attempt::ended: return finish();
        case Attempt::partner_holds:
        case Attempt::gone: return parked;
        case Attempt::silent:
        case Attempt::not_ready: break;
      }
    }
    return parked;
  }

  void leave_others() noexcept {
    if (!enrolled_) return;
    enrolled_ = false;
    for (std::uint32_t i = 0; i < n_; ++i)
      if (!g_[i].flat && g_[i].enabled && g_[i].kind < Kind::timer) g_[i].ops->leave(g_[i]);
  }

  // The number of guards that are on, by kind.
  std::uint32_t on_[static_cast<int>(Kind::skip) + 1] = {};
  // How many of the inputs, and of the outputs, that are on are silent. Both numbers are compared
  // as one word.
  alignas(std::uint64_t) std::array<std::uint32_t, 2> gone_ = {};
  std::uint32_t turn_ = 0;
  bool flat_ = true;  // whether every guard is enrolled permanently
  bool enrolled_ = false;
  bool contested_ = false;  // whether the node of any guard is contested
};

}  // namespace weft::inline WEFT_ABI::core
