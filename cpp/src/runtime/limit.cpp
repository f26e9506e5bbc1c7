// The definitions of runtime/limit.hpp.
#include <weft/runtime/limit.hpp>
#include <weft/runtime/points.hpp>

namespace weft::inline WEFT_ABI::runtime {

void Limit::open(ProcessBase& p, std::int64_t deadline, bool again) {
  WEFT_POINT(limits(true));
  Run& r = run_of(p);
  const std::lock_guard g(r.mutex_);
  Limit* const first = innermost_of(p, r);
  exchange(p, r, this);
  outer_ = first;
  process_ = &p;
  r.limits_open_.fetch_add(1, std::memory_order_relaxed);
  run_ = &r;
  met_ = false;
  again_ = again;
  as_ = nullptr;
  arm(deadline);
}

bool Limit::innermost(ProcessBase& p) noexcept {
  if (process_ != &p) return false;
  const std::lock_guard g(run_->mutex_);
  return innermost_of(p, *run_) == this;
}

void Limit::close() noexcept {
  WEFT_POINT(limits(false));
  Run& r = *run_;
  bool fired;
  {
    const std::lock_guard g(r.mutex_);
    fired = disarm();
    Limit* inner = innermost_of(*process_, r);
    if (inner == this) {
      exchange(*process_, r, outer_);
    } else {
      for (Limit* l = inner; l != this; l = l->outer_)
        if (l->as_ == this) l->as_ = l;
      while (inner->outer_ != this) inner = inner->outer_;
      inner->outer_ = outer_;
    }
    r.limits_open_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (fired) await_firing();
  take_back();
  process_ = nullptr;
  run_ = nullptr;
}

bool Limit::move(std::int64_t deadline) {
  // The old deadline might have been the next to expire; now it never will.
  WEFT_POINT(limits(false));
  WEFT_POINT(limits(true));
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

Limit* Limit::take(ProcessBase& p) noexcept {
  const std::uint8_t asked = p.cancel().load(std::memory_order_relaxed);
  bool from_elsewhere = p.take_cancel();
  if (asked & Identity::Cancel::block) from_elsewhere = run_of(p).meet_blocks(p) || from_elsewhere;
  if (!(asked & Identity::Cancel::limit)) [[likely]]
    return nullptr;
  Run& r = run_of(p);
  const std::lock_guard g(r.mutex_);
  p.cancel().take_back(Identity::Cancel::limit);
  Limit* const inner = innermost_of(p, r);
  Limit* by = nullptr;
  for (Limit* l = inner; l; l = l->outer_)
    if (l->asked_.load(std::memory_order_relaxed)) {
      Limit* const as = l->again_ && l->met_ ? l->as_ : l;
      from_elsewhere = from_elsewhere || !as;
      by = by && as ? outer_of(by, as) : as;
      if (!l->again_) l->asked_.store(false, std::memory_order_relaxed);
    }
  if (from_elsewhere) by = nullptr;
  if (by) by->met_ = true;
  for (Limit* l = inner; l; l = l->outer_)
    if (l->again_ && l->asked_.load(std::memory_order_relaxed)) {
      l->as_ = by;
      l->met_ = true;
      p.cancel().fetch_or(Identity::Cancel::limit);
    }
  return by;
}

Limit* Limit::outer_of(Limit* a, Limit* b) noexcept {
  for (Limit* l = a; l; l = l->outer_)
    if (l == b) return b;
  return a;
}

void Limit::close_all(ProcessBase& p, Run& r) noexcept {
  while (Limit* l = first_of(p, r)) l->close();
}

bool Limit::any_armed(ProcessBase& p, Run& r) noexcept {
  if (r.limits_open_.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  const std::lock_guard g(r.mutex_);
  for (Limit* l = innermost_of(p, r); l; l = l->outer_)
    if (l->timer_.at != TimerNode::unset) return true;
  return false;
}

void Limit::lend(ProcessBase& from, Run& old, ProcessBase& to, Run& now) {
  if (Limit* const l = first_of(from, old)) l->rehome_after_outer(to, now, true);
}

void Limit::give_back(ProcessBase& to, Run& now, ProcessBase& from, Run& old) {
  Limit* l = first_of(to, now);
  for (; l && !l->lent_; l = first_of(to, now)) l->close();
  if (l) l->rehome_after_outer(from, old, false);
}

void Limit::arm(std::int64_t deadline) {
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

// Removes the timer. Returns true if a thread that fires the limit is about to ask the process to
// stop.
bool Limit::disarm() noexcept {
  const bool armed = timer_.at != TimerNode::unset;
  run_->timers_.remove(timer_);
  run_->set_earliest();
  const bool fired = !armed && choice_.word() == core::TIMED_OUT;
  choice_.reset();
  return fired;
}

Limit* Limit::first_of(ProcessBase& p, Run& r) noexcept {
  if (r.limits_open_.load(std::memory_order_relaxed) == 0) [[likely]]
    return nullptr;
  const std::lock_guard g(r.mutex_);
  return innermost_of(p, r);
}

Limit* Limit::innermost_of(const ProcessBase& p, const Run& r) noexcept {
  const auto at = r.limits_.find(&p);
  return at == r.limits_.end() ? nullptr : at->second;
}

void Limit::exchange(ProcessBase& p, Run& r, Limit* now) {
  if (now) {
    r.limits_[&p] = now;  // The assignment cannot throw if the process had a limit before.
    p.set(core::NodeFlags::limited);
  } else {
    r.limits_.erase(&p);
    p.clear(core::NodeFlags::limited);
  }
}

void Limit::await_firing() noexcept {
  for (unsigned round = 0; !told_.load(std::memory_order_acquire); ++round) prim::pause(round);
}

void Limit::take_back() noexcept {
  const std::lock_guard g(run_->mutex_);
  if (!asked_.exchange(false, std::memory_order_relaxed)) return;
  for (Limit* l = innermost_of(*process_, *run_); l; l = l->outer_)
    // Limit l has made the same request, so the request stays.
    if (l->asked_.load(std::memory_order_relaxed)) return;
  process_->cancel().take_back(Identity::Cancel::limit);
}

void Limit::rehome_after_outer(ProcessBase& to, Run& now, bool lent) {
  Limit* const outer = outer_;
  const bool had_asked = asked_.load(std::memory_order_relaxed), was_met = met_;
  Limit* const as = as_;
  const std::int64_t left =
      timer_.deadline == prim::forever ? prim::forever : timer_.deadline - run_->now();
  close();
  if (outer) outer->rehome_after_outer(to, now, lent);
  const std::int64_t at = now.now();
  const bool never = (was_met && !had_asked) || left == prim::forever;
  open(to, never ? prim::forever : had_asked || left <= 0 ? at : later(at, left), again_);
  met_ = was_met;
  as_ = as;
  lent_ = lent;
}

void Limit::fire(core::Node* n) noexcept {
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

}  // namespace weft::inline WEFT_ABI::runtime
