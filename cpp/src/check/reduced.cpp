// The reduced search from run to run (reduced.hpp): its nodes, and what is chosen at each.
// races.cpp derives the races from a run.
#include "weft/check/reduced.hpp"

#include <algorithm>

namespace weft::checking {

namespace {
bool same(const Touch& a, const Touch& b) noexcept { return a.uid == b.uid && a.how == b.how; }
}  // namespace

bool Reduced::Node::asleep(Uid p) const noexcept {
  return std::any_of(sleep.begin(), sleep.end(), [&](const Sleeper& s) { return s.process == p; });
}
bool Reduced::Node::has(Uid p) const noexcept {
  return std::find(options.begin(), options.end(), p) != options.end();
}

void Reduced::Node::begin_anew() noexcept {
  options.clear();
  chosen = 0;
  within.clear();
  todo.clear();
  done.clear();
  sleep.clear();
  touches.clear();
}

void Reduced::forget() {
  size_ = 0;
  seen_.clear();
  both_ = 0;
}

void Reduced::begin(Run&) {
  at_ = within_ = 0;
  repeated_ = size_;
  node_ = kNone;
  nodes_.clear();
}

bool Reduced::related(const Run& run, std::span<const Touch> a,
                      std::span<const Touch> b) const noexcept {
  for (const Touch& x : a)
    for (const Touch& y : b)
      if (x.uid == y.uid && relation.conflict(x.how, y.how, run.record.buffered(y.place)))
        return true;
  return false;
}

// Notes what the completed step has touched, in the step's node. Returns false if the step was a
// repetition, and has touched other things than before.
bool Reduced::step_is_over(Run& run) {
  while (nodes_.size() < run.record.events.size()) nodes_.push_back(std::exchange(node_, kNone));
  const int n = nodes_.back();
  if (n == kNone) return true;
  Node& x = stack_[static_cast<std::size_t>(n)];
  const bool repeats = static_cast<std::size_t>(n) + 1 < repeated_;
  std::size_t i = 0;  // A repetition has usually touched the same things in the same order.
  for (const Touch& t : std::as_const(run.record).touches(run.record.current)) {
    if (i < x.touches.size() && same(x.touches[i], t)) {
      ++i;
      continue;
    }
    i = x.touches.size();
    if (std::any_of(x.touches.begin(), x.touches.end(), [&](const Touch& u) { return same(u, t); }))
      continue;
    if (repeats) {
      run.differs("step " + std::to_string(run.last().steps) + " of " +
                  run.record.path(run.record.running) + " does something else than before");
      return false;
    }
    x.touches.push_back(t);
    ++i;
  }
  return true;
}

// Returns the position of the node's choice among the options of this run. If the ready processes
// are not those of the earlier run, reports that the run differs.
unsigned Reduced::repeat(Run& run) {
  const Node& x = stack_[at_];
  if (run.same_options(x.options)) return static_cast<unsigned>(x.chosen);  // the usual case
  bool same = x.options.size() == run.options();
  for (unsigned i = 0; same && i < run.options(); ++i) same = x.has(run.option(i));
  for (unsigned i = 0; same && i < run.options(); ++i)
    if (run.option(i) == x.options[x.chosen]) return i;
  run.differs("after step " + std::to_string(run.last().steps) + " of " +
              run.record.path(run.record.running) + " others are ready than before");
  return 0;
}

void Reduced::open(Run& run) {
  if (at_ == stack_.size()) stack_.emplace_back();
  ++size_;
  Node& x = stack_[at_];
  x.begin_anew();
  for (unsigned i = 0; i < run.options(); ++i) x.options.push_back(run.option(i));
  if (at_ == 0) return;
  const Node& before = stack_[at_ - 1];
  const Uid by = before.options[before.chosen];
  const auto done = std::as_const(run.record).touches(run.record.current);
  for (const Sleeper& s : before.sleep)
    if (s.process != by && !related(run, s.touches, done)) x.sleep.push_back(s);
}

unsigned Reduced::go(Run& run) {
  if (!step_is_over(run)) return 0;
  within_ = 0;
  unsigned i = 0;
  if (at_ < size_) {
    i = repeat(run);
    if (run.stopped()) return 0;
  } else {
    open(run);
    Node& x = stack_[at_];
    while (x.chosen < x.options.size() && x.asleep(x.options[x.chosen])) ++x.chosen;
    if (x.chosen == x.options.size()) {
      --size_;
      run.stop(Stopped::blocked);
      return 0;
    }
    x.todo.push_back(x.options[x.chosen]);
    i = static_cast<unsigned>(x.chosen);
  }
  node_ = static_cast<int>(at_++);
  return i;
}

unsigned Reduced::take(Run& run, unsigned options, Kind) {
  if (at_ == 0) return 0;  // main's first step has no node, so it takes the usual choice
  Node& x = stack_[at_ - 1];
  if (within_ == x.within.size()) x.within.push_back({options, 0});
  const Alternative& a = x.within[within_++];
  if (a.options != options) {
    run.differs("step " + std::to_string(run.last().steps) + " of " +
                run.record.path(run.record.running) + " has " + std::to_string(options) +
                " choices, and before it had " + std::to_string(a.options));
    return 0;
  }
  return a.taken;
}

void Reduced::end(Run& run) {
  if (run.why() == Stopped::different) return;
  if (run.record.current != kNone && !step_is_over(run)) return;
  // The clocks need a number for each pair of an event and a process.
  constexpr std::size_t most = std::size_t{32} << 20;
  run.too_large = run.record.events.size() * static_cast<std::size_t>(run.record.count) > most;
  if (!run.too_large) analyse(run);
}

bool Reduced::advance() {
  for (; size_ > 0; --size_) {
    Node& x = stack_[size_ - 1];
    while (!x.within.empty() && x.within.back().taken + 1 == x.within.back().options)
      x.within.pop_back();
    if (!x.within.empty()) {
      ++x.within.back().taken;
      return true;
    }
    const Uid was = x.options[x.chosen];
    x.done.push_back(was);
    x.sleep.push_back({was, std::move(x.touches)});
    x.touches.clear();
    for (const Uid p : x.todo) {
      if (std::find(x.done.begin(), x.done.end(), p) != x.done.end() || x.asleep(p)) continue;
      x.chosen = static_cast<std::size_t>(std::find(x.options.begin(), x.options.end(), p) -
                                          x.options.begin());
      return true;
    }
  }
  return false;
}

bool Reduced::restarts(const Run& run) {
  const bool cancels = run.record.cancelled && !with_cancels;
  const bool crowds = run.record.crowded && !with_crowds;
  if (!cancels && !crowds) return false;
  with_cancels |= cancels;
  with_crowds |= crowds;
  forget();
  return true;
}

}  // namespace weft::checking
