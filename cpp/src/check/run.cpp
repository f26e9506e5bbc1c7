// One run of a checked program: it asks its strategy, and records the events (run.hpp).
#include "weft/check/run.hpp"

#include <algorithm>
#include <utility>

namespace weft::checking {

void Run::begin(Strategy& strategy) {
  strategy_ = &strategy;
  stopped_ = Stopped::no;
  steps = early = switches = 0;
  ready_ = {};
  step_begins();
  early_cut = polls_cut = too_large = false;
  polls_ = idle_ = polls_at_ = at_once_ = at_once_at_ = 0;
  all_poll_ = false;
  chances = 1;
  decided_ = 0;
  difference.clear();
  for (auto& list : yields_to_) list.clear();
  yielding_ = 0;
  goes_until(kStepsAtOnce);
  record.kept = strategy.keeps_events();
  record.cancels = strategy.cancels();
  record.crowds = strategy.crowds();
  record.any_time = settings.any_time;
  record.begin();
  strategy.begin(*this);
}

void Run::end() { strategy_->end(*this); }

void Run::stop(Stopped why) noexcept {
  if (stopped()) return;
  stopped_ = why;
  rarely_from_ = 0;
  record.kept = false;  // what the program does while it is being ended is not part of the schedule
}
void Run::differs(std::string how) {
  if (difference.empty()) difference = std::move(how);
  stop(Stopped::different);
}

// Does what go() does, in the rarer cases: the run has stopped, no process is ready, a timer is
// set, some processes yield, or the process that runs has run for long.
unsigned Run::go_rarely(std::span<const int> ready, bool goes_on, bool timer) {
  if (stopped()) return 0;
  ready_ = ready;
  goes_on_ = goes_on;
  if (steps >= until_) let_others_run(ready);
  if (yielding_ != 0) leave_out_who_yields(ready);
  nth_ = 0;
  all_poll_ = timer && idle_ >= kPolls * ready.size() && !ready.empty();
  if (all_poll_) ready_ = {};
  polls_cut = polls_cut || all_poll_;
  const bool may_come = timer && settings.any_time && !all_poll_;
  clock_ = ready_.empty() || (may_come && early < settings.early);
  early_cut = early_cut || (may_come && !clock_);
  if (++steps > settings.limit + settings.limit_each * static_cast<unsigned>(record.count)) {
    stop(Stopped::limit);
    return 0;
  }
  const unsigned several = options();
  unsigned i = 0;
  if (several > 1 || record.kept) i = strategy_->go(*this);
  if (stopped()) return 0;
  const bool clock = i >= ready_.size();
  if (several > 1)
    decided(clock ? Kind::time : Kind::go, clock ? kNone : ready_[i], several, i, goes_on_);
  return clock ? static_cast<unsigned>(ready.size()) : yielding_ != 0 ? positions_[i] : i;
}
void Run::let_others_run(std::span<const int> ready) {
  goes_until(steps + kStepsAtOnce);
  const int n = record.running;
  if (std::find(ready.begin(), ready.end(), n) != ready.end()) yields(n, ready);
}
void Run::poll() noexcept {
  ++idle_;
  if (std::exchange(polls_at_, switches) != switches) polls_ = 0;
  if (++polls_ < kPolls) return;
  polls_ = 0;
  goes_until(steps);  // let_others_run() is called in the next decision
}
bool Run::has_gone_on_for_long() noexcept {
  if (std::exchange(at_once_at_, switches) != switches) at_once_ = 0;
  if (++at_once_ < kStepsAtOnce / 2 && steps < until_) return false;
  at_once_ = 0;
  goes_until(steps);
  return true;
}
void Run::leave_out_who_yields(std::span<const int> ready) {
  some_.clear();
  positions_.clear();
  const auto yields = [&](int p) {
    return static_cast<std::size_t>(p) < yields_to_.size() &&
           !yields_to_[static_cast<std::size_t>(p)].empty();
  };
  const bool all = std::all_of(ready.begin(), ready.end(), yields);
  for (unsigned i = 0; i < ready.size(); ++i) {
    if (!all && yields(ready[i])) continue;
    some_.push_back(ready[i]);
    positions_.push_back(i);
  }
  ready_ = some_;
  goes_on_ = goes_on_ && !positions_.empty() && positions_[0] == 0;
}

// Called when a step of process n has begun. The processes that have yielded to n no longer wait
// for it.
void Run::went_first(int n) {
  for (std::size_t i = 0; i < yields_to_.size(); ++i) {
    auto& list = yields_to_[i];
    if (list.empty()) continue;
    if (static_cast<int>(i) == n) {
      list.clear();
    } else if (std::erase(list, n) > 0) {
      record.follow(static_cast<int>(i), record.current);
    }
    yielding_ -= list.empty();
  }
  goes_until(until_);
}

void Run::time_comes(bool is_early) {
  if (stopped()) return;
  early += is_early && !all_poll_;
  idle_ = 0;
  record.step_of_clock(!settings.any_time);
}

void Run::yields(int n, std::span<const int> ready) {
  const auto i = static_cast<std::size_t>(n);
  if (yields_to_.size() <= i) yields_to_.resize(i + 1);
  auto& list = yields_to_[i];
  yielding_ -= !list.empty();
  list.assign(ready.begin(), ready.end());
  std::erase(list, n);
  yielding_ += !list.empty();
  goes_until(until_);
}

unsigned Run::take(unsigned options, Kind kind) {
  if (stopped()) return 0;
  nth_ = kind == Kind::guard ? guards_++ : faults_++;
  if (options < 2) return 0;
  const unsigned i = strategy_->take(*this, options, kind);
  if (stopped()) return 0;
  decided(kind, static_cast<int>(i), options, i, false);
  return i;
}

}  // namespace weft::checking
