// How the strategies that need no record of events decide (strategies.hpp).
#include "weft/check/strategies.hpp"

#include <algorithm>

namespace weft::checking {

// --- a given schedule ---------------------------------------------------------------------------

unsigned Replay::by_number(Run& run, unsigned options) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].decision != run.decisions().size() || numbers[i].choice >= options) continue;
    met_[deviations.size() + i] = true;
    return numbers[i].choice;
  }
  return 0;
}
template <class F>
unsigned Replay::by_process(Run& run, F&& choice) {
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    const Deviation& d = deviations[i];
    if (met_[i] || d.step != run.last().steps || d.nth != run.nth() ||
        !run.record.is(run.record.running, d.process))
      continue;
    const unsigned taken = choice(d);
    if (!taken) continue;
    met_[i] = true;
    return taken;
  }
  return 0;
}
unsigned Replay::go(Run& run) {
  if (!numbers.empty()) return by_number(run, run.options());
  return by_process(run, [&](const Deviation& d) {
    for (unsigned i = 0; i < run.options(); ++i) {
      const int n = run.option_process(i);
      if (n == kNone ? d.kind == Kind::time : d.kind == Kind::go && run.record.is(n, d.who))
        return i;
    }
    return 0u;
  });
}
unsigned Replay::take(Run& run, unsigned options, Kind kind) {
  if (!numbers.empty()) return by_number(run, options);
  return by_process(run, [&](const Deviation& d) {
    return d.kind == kind && d.number < options ? d.number : 0u;
  });
}
void Replay::end(Run& run) {
  for (std::size_t i = 0; i < met_.size(); ++i) {
    if (met_[i] || !run.difference.empty()) continue;
    if (i >= deviations.size()) {
      const ByNumber& d = numbers[i - deviations.size()];
      run.difference =
          "decision " + std::to_string(d.decision) + " has no choice " + std::to_string(d.choice);
      continue;
    }
    const Deviation& d = deviations[i];
    run.difference = "after step " + std::to_string(d.step) + " of " + d.process + " ";
    if (d.kind == Kind::go)
      run.difference += d.who + " is not ready, or runs next in the usual order";
    else if (d.kind == Kind::time)
      run.difference += "no time can come";
    else
      run.difference += "there is no choice " + std::to_string(d.number);
  }
}

// --- by random priorities -----------------------------------------------------------------------

void Priorities::begin(Run&) {
  random_.seed(seed);
  priorities_.clear();
  changes_.clear();
  for (unsigned i = 1; i < depth; ++i) changes_.push_back(1 + random_.below(longest));
}
unsigned Priorities::highest(Run& run) {
  unsigned best = 0;
  for (unsigned i = 0; i < run.options(); ++i) {
    const int n = run.option_process(i);
    if (n == kNone) break;  // the last option: the clock
    while (priorities_.size() <= static_cast<std::size_t>(n))
      priorities_.push_back(random_.next() | 1ull << 32);
    if (priorities_[static_cast<std::size_t>(n)] >
        priorities_[static_cast<std::size_t>(run.option_process(best))])
      best = i;
  }
  return best;
}
unsigned Priorities::go(Run& run) {
  if (run.option_process(0) == kNone) return 0;
  for (const unsigned change : changes_)
    if (change == run.steps)
      priorities_[static_cast<std::size_t>(run.option_process(highest(run)))] = random_.below(1024);
  const bool clock = run.option_process(run.options() - 1) == kNone;
  return clock && random_.below(16) == 0 ? run.options() - 1 : highest(run);
}

// --- all with few deviations --------------------------------------------------------------------

unsigned Bounded::next(Run& run, unsigned options) {
  if (at_ < stack_.size()) {
    const Node& x = stack_[at_++];
    if (x.options != options || x.after != run.last().uid) {
      run.differs("after step " + std::to_string(run.last().steps) + " of " +
                  run.record.path(run.record.running) + " there are " + std::to_string(options) +
                  " choices, and before there were " + std::to_string(x.options) +
                  ", or another process had run");
      return 0;
    }
    return x.taken;
  }
  const unsigned spent =
      stack_.empty() ? 0 : stack_.back().spent + (stack_.back().taken > 0 ? 1u : 0u);
  stack_.push_back({run.last().uid, options, 0, spent});
  ++at_;
  return 0;
}
bool Bounded::advance() {
  for (; !stack_.empty(); stack_.pop_back()) {
    Node& x = stack_.back();
    if (x.taken + 1 == x.options || x.spent >= bound) continue;
    ++x.taken;
    return true;
  }
  return false;
}

}  // namespace weft::checking
