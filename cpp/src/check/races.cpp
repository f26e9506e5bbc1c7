// Finds the steps of a run that race, and asks for runs in which they occur in the other order
// (reduced.hpp). Two steps race if they conflict, and nothing else orders them.
#include <algorithm>
#include <functional>
#include <utility>

#include "weft/check/reduced.hpp"

namespace weft::checking {

Reduced::Node* Reduced::node_of(int event) noexcept {
  const auto i = static_cast<std::size_t>(event);
  const int n = i < nodes_.size() ? nodes_[i] : kNone;
  return n == kNone || static_cast<std::size_t>(n) >= size_ ? nullptr
                                                            : &stack_[static_cast<std::size_t>(n)];
}

bool Reduced::before(const Record& r, int a, int b) noexcept {
  return clock(b).knows(r.events[static_cast<std::size_t>(a)]);
}

// Adds to the clock the event `earlier` and all events that precede it. If the clock knows
// `earlier` already, it knows them all.
void Reduced::join(Clock to, const Record& r, int earlier) noexcept {
  if (to.knows(r.events[static_cast<std::size_t>(earlier)])) return;
  const Clock from = clock(earlier);
  for (int i = 0; i < width_; ++i) to.numbers[i] = std::max(to.numbers[i], from.numbers[i]);
}

// Computes the clock of an event, and finds its races with earlier events. Those events are
// examined from the latest on: an event is no part of a race if an event that was examined already
// follows it.
void Reduced::order(const Record& r, int j) {
  const Event& e = r.events[static_cast<std::size_t>(j)];
  const Clock mine = clock(j);
  if (e.previous != kNone)
    std::copy_n(clock(e.previous).numbers, width_, mine.numbers);
  else
    std::fill_n(mine.numbers, width_, 0);
  for (const int a : r.follows(j)) join(mine, r, a);
  rivals_.clear();
  for (const Touch& t : r.touches(j)) {
    const Place& p = r.places[static_cast<std::size_t>(t.place)];
    for (const auto& [process, latest] : p.touchers) {
      if (process == e.process) continue;
      const int known = mine.numbers[process];
      for (int i = latest; i != kNone;) {
        const Place::Touched& o = p.touched[static_cast<std::size_t>(i)];
        if (o.number <= known) break;  // The clock also knows all earlier accesses of the process.
        if (relation.conflict(o.how, t.how, p.capacity > 0)) rivals_.push_back(o.event);
        i = o.earlier;
      }
    }
  }
  if (!rivals_.empty()) std::sort(rivals_.begin(), rivals_.end(), std::greater<>());
  for (const int i : rivals_) {
    if (mine.knows(r.events[static_cast<std::size_t>(i)])) continue;
    found_.emplace_back(i, j);
    join(mine, r, i);
  }
  mine.numbers[e.process] = e.number;
}

void Reduced::find_races(Run& run) {
  Record& r = run.record;
  width_ = r.count;
  const std::size_t size = r.events.size() * static_cast<std::size_t>(width_);
  if (clocks_.size() < size) clocks_.resize(size);
  found_.clear();
  for (int j = 0; j < static_cast<int>(r.events.size()); ++j) {
    order(r, j);
    const Event& e = r.events[static_cast<std::size_t>(j)];
    for (const Touch& t : std::as_const(r).touches(j)) {
      Place& p = r.places[static_cast<std::size_t>(t.place)];
      const int index = static_cast<int>(p.touched.size());
      auto by = p.touchers.begin();
      while (by != p.touchers.end() && by->first != e.process) ++by;
      const int earlier = by == p.touchers.end() ? kNone : std::exchange(by->second, index);
      if (earlier == kNone) p.touchers.emplace_back(e.process, index);
      p.touched.push_back({j, e.number, earlier, t.how});
    }
  }
}

void Reduced::analyse(Run& run) {
  find_races(run);
  for (const auto& [i, j] : found_) {
    note(run.record, i, j);
    ask_for(run.record, i, j);
  }
  // A timer that was cancelled might have fired before its cancellation.
  for (const int e : run.record.disarming) {
    Node* const x = node_of(e);
    if (x && x->has(kClock) && std::find(x->todo.begin(), x->todo.end(), kClock) == x->todo.end())
      x->todo.push_back(kClock);
  }
}

// Asks for a run in which `second` precedes `first`. The candidates are `second` and the steps
// after `first` that do not follow it. A candidate that follows no other candidate is to run where
// `first` ran.
void Reduced::ask_for(const Record& r, int first, int second) {
  Node* const x = node_of(first);
  if (!x) return;
  firsts_.clear();
  between_.clear();
  for (int k = first + 1; k <= second; ++k) {
    if (k != second && before(r, first, k)) continue;
    const bool follows =
        std::any_of(between_.begin(), between_.end(), [&](int u) { return before(r, u, k); });
    between_.push_back(k);
    if (follows) continue;
    const Uid p = r.at(r.events[static_cast<std::size_t>(k)].process).uid;
    if (std::find(firsts_.begin(), firsts_.end(), p) == firsts_.end()) firsts_.push_back(p);
  }
  const auto todo = [&](Uid p) {
    return std::find(x->todo.begin(), x->todo.end(), p) != x->todo.end();
  };
  for (const Uid p : firsts_)
    if (todo(p) || x->asleep(p)) return;
  for (const Uid p : firsts_)
    if (x->has(p)) return x->todo.push_back(p);
  // the relation is incomplete at this node, so all its options are added
  for (const Uid p : x->options)
    if (!todo(p)) x->todo.push_back(p);
}

// Notes in which order the two steps occurred. A step is identified as the n-th of its process.
void Reduced::note(const Record& r, int first, int second) {
  const auto id = [&](int event) {
    const Event& e = r.events[static_cast<std::size_t>(event)];
    return mixed(r.at(e.process).uid, static_cast<Uid>(e.number));
  };
  const Uid a = id(first), b = id(second);
  std::uint8_t& orders = seen_[mixed(std::min(a, b), std::max(a, b))];
  const std::uint8_t now = orders | (a < b ? 1 : 2);
  both_ += now == 3 && orders != 3;
  orders = now;
}

}  // namespace weft::checking
