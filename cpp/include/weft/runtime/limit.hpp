// A time limit on what a process does in a block of its code (rule 7.12): when its time comes it asks the process, once, to give up its
// operation. It is a timer of the run and one more source of requests; how a request ends an operation is as for any other (rule 6).
//
//   open() ──► armed ──its time──► asked ──take()──► met
//                │                   └──close(), move(): the request is taken back
//                └──close()
//
// Invariants
//  1 State, chain and place in the timers are under the run's mutex; only the process's own thread opens, closes and takes.
//  2 The limits of a process are a chain, the innermost first, which the run keeps: a process that has none pays nothing.
//  3 `asked` and not yet met ⇔ the process's Cancel::limit is set on its account; a request of somebody else's that is met at the same
//    moment takes all limits' with it.
//  4 Who fires a limit refers to it until it has told so (told_): close() waits for that, which is a matter of some instructions.
#pragma once
#include <atomic>

#include "thread.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Limit final : public core::Waker {
 public:
  Limit() noexcept {
    ops = &kOps;
    choice_.waker = this;
    timer_.choice = &choice_;
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() {
    if (process_) close();
  }

  static Run& run_of(ProcessBase& p) noexcept { return p.group ? p.group->run : *static_cast<ThreadProcess&>(p).run; }

  // On what `p`, which runs, does from now on. `deadline`: ns of its run's clock, prim::forever: none; one that has passed asks at once.
  void open(ProcessBase& p, std::int64_t deadline) {
    Run& r = run_of(p);
    const std::lock_guard g(r.mutex_);
    Limit*& first = r.limits_[&p];
    outer_ = first;
    first = this;
    r.limits_open_.fetch_add(1, std::memory_order_relaxed);
    process_ = &p;
    run_ = &r;
    met_ = false;
    arm(deadline);
  }
  bool is_open() const noexcept { return process_ != nullptr; }
  bool of(const ProcessBase& p) const noexcept { return process_ == &p; }
  // Is it that process's, and has it opened none since?
  bool innermost(ProcessBase& p) noexcept {
    if (process_ != &p) return false;
    const std::lock_guard g(run_->mutex_);
    return run_->limits_[&p] == this;
  }
  // Its process does no more under it. A request that was not met is taken back.
  void close() noexcept {
    Run& r = *run_;
    bool fired;
    {
      const std::lock_guard g(r.mutex_);
      fired = disarm();
      auto at = r.limits_.find(process_);
      for (Limit** x = &at->second; *x; x = &(*x)->outer_)
        if (*x == this) {
          *x = outer_;
          break;
        }
      if (!at->second) r.limits_.erase(at);
      r.limits_open_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (fired) await_firing();
    take_back();
    process_ = nullptr;
    run_ = nullptr;
  }
  // Another time. False: its request has been met already.
  bool move(std::int64_t deadline) {
    Run& r = *run_;
    bool fired;
    {
      const std::lock_guard g(r.mutex_);
      if (met_) return false;
      fired = disarm();
    }
    if (fired) await_firing();
    take_back();
    const std::lock_guard g(r.mutex_);
    arm(deadline);
    return true;
  }
  // Its time has come and its request stands, or was met.
  bool expired() const noexcept { return asked_.load(std::memory_order_relaxed) || met_; }
  std::int64_t deadline() const noexcept { return timer_.deadline; }

  // A process meets what it was asked: taken. Null: at least one request was not a limit's. Else the limit it was, of several the
  // outermost.
  static Limit* take(ProcessBase& p) noexcept {
    if (!(p.cancel().load(std::memory_order_relaxed) & Identity::Cancel::limit)) [[likely]] {
      p.take_cancel();
      return nullptr;
    }
    Run& r = run_of(p);
    const std::lock_guard g(r.mutex_);
    const std::uint8_t what = p.cancel().exchange(0);
    Limit* by = nullptr;
    const auto at = r.limits_.find(&p);
    for (Limit* l = at == r.limits_.end() ? nullptr : at->second; l; l = l->outer_)
      if (l->asked_.exchange(false, std::memory_order_relaxed)) by = l;
    if (what & ~Identity::Cancel::limit) by = nullptr;
    if (by) by->met_ = true;
    return by;
  }

  // The process ends, or its thread is another one's: what it left open is over.
  static void close_all(ProcessBase& p, Run& r) noexcept {
    while (Limit* l = first_of(p, r)) l->close();
  }
  // May a limit of its own still make it go on?
  static bool any_armed(ProcessBase& p, Run& r) noexcept {
    if (r.limits_open_.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    const std::lock_guard g(r.mutex_);
    const auto at = r.limits_.find(&p);
    for (Limit* l = at == r.limits_.end() ? nullptr : at->second; l; l = l->outer_)
      if (l->timer_.at != TimerNode::unset) return true;
    return false;
  }
  // The limits on `from`, ordinary code that becomes process `to` of a run for a time, are lent to that with what was left of their time;
  // and given back at its end, when those that it opened itself and left open are over.
  static void lend(ProcessBase& from, Run& old, ProcessBase& to, Run& now) {
    if (Limit* const l = first_of(from, old)) l->rehome_after_outer(to, now, true);
  }
  static void give_back(ProcessBase& to, Run& now, ProcessBase& from, Run& old) {
    Limit* l = first_of(to, now);
    for (; l && !l->lent_; l = first_of(to, now)) l->close();
    if (l) l->rehome_after_outer(from, old, false);
  }
  bool lent() const noexcept { return lent_; }

 private:
  // The run's mutex is held for those three.
  void arm(std::int64_t deadline) {
    timer_.deadline = deadline;
    told_.store(false, std::memory_order_relaxed);
    if (deadline != prim::forever && deadline <= run_->now()) {
      asked_.store(true, std::memory_order_relaxed);
      process_->cancel().fetch_or(Identity::Cancel::limit);
    } else if (deadline != prim::forever) {
      choice_.arm();
      run_->timers_.add(timer_);
      run_->set_earliest();
    }
  }
  bool disarm() noexcept {  // true: whoever fires it is about to ask
    const bool armed = timer_.at != TimerNode::unset;
    run_->timers_.remove(timer_);
    run_->set_earliest();
    const bool fired = !armed && choice_.word() == core::TIMED_OUT;
    choice_.reset();
    return fired;
  }
  static Limit* first_of(ProcessBase& p, Run& r) noexcept {
    if (r.limits_open_.load(std::memory_order_relaxed) == 0) [[likely]]
      return nullptr;
    const std::lock_guard g(r.mutex_);
    const auto at = r.limits_.find(&p);
    return at == r.limits_.end() ? nullptr : at->second;
  }

  void await_firing() noexcept {
    for (unsigned round = 0; !told_.load(std::memory_order_acquire); ++round) prim::pause(round);
  }
  void take_back() noexcept {
    const std::lock_guard g(run_->mutex_);
    if (!asked_.exchange(false, std::memory_order_relaxed)) return;
    const auto at = run_->limits_.find(process_);
    for (Limit* l = at == run_->limits_.end() ? nullptr : at->second; l; l = l->outer_)
      if (l->asked_.load(std::memory_order_relaxed)) return;  // the request is theirs as well
    process_->cancel().take_back(Identity::Cancel::limit);
  }
  void rehome_after_outer(ProcessBase& to, Run& now, bool lent) {
    Limit* const outer = outer_;
    const bool had_asked = asked_.load(std::memory_order_relaxed), was_met = met_;
    const std::int64_t left = timer_.deadline == prim::forever ? prim::forever : timer_.deadline - run_->now();
    close();
    if (outer) outer->rehome_after_outer(to, now, lent);
    const std::int64_t at = now.now();
    const bool never = was_met || left == prim::forever;
    open(to, never ? prim::forever : had_asked || left <= 0 ? at : later(at, left));
    met_ = was_met;
    lent_ = lent;
  }

  static void fire(core::Node* n) noexcept {
    auto& l = *static_cast<Limit*>(n);
    ProcessBase& p = *l.process_;
    {
      const std::lock_guard g(l.run_->mutex_);
      l.asked_.store(true, std::memory_order_relaxed);
      p.cancel().fetch_or(Identity::Cancel::limit);
    }
    Group::ask(p);
    l.told_.store(true, std::memory_order_release);
  }
  static void nothing(core::Node*) {}
  static constexpr core::WakerOps kOps{&fire, &nothing, nullptr, 0};

  core::Choice choice_;
  TimerNode timer_;
  ProcessBase* process_ = nullptr;  // null: not open
  Run* run_ = nullptr;
  Limit* outer_ = nullptr;
  prim::atomic<bool> asked_{false};  // and not met
  prim::atomic<bool> told_{false};
  bool met_ = false;
  bool lent_ = false;
};

}  // namespace weft::inline WEFT_ABI::runtime
