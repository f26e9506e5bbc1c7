// The strategies that need no record of events: the usual order, a given schedule, choices at
// random, random priorities, and all schedules with few deviations from the usual order.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "run.hpp"

namespace weft::checking {

class Random {
 public:
  void seed(std::uint64_t seed) noexcept { state_ = mixed(seed, 0x5EED) | 1; }
  std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545F4914F6CDD1Dull) >> 16;
  }
  unsigned below(unsigned n) noexcept { return static_cast<unsigned>(next() % n); }

 private:
  std::uint64_t state_ = 1;
};

// Runs the usual order, once.
class Plain final : public Strategy {
 public:
  unsigned go(Run&) override { return 0; }
  unsigned take(Run&, unsigned, Kind) override { return 0; }
  bool advance() override { return false; }
};

// A schedule that is given by its deviations from the usual order. If a deviation does not fit, the
// run's `difference` says so, and the run continues in the usual order.
class Replay final : public Strategy {
 public:
  struct Deviation {
    std::string process;
    unsigned step;
    Kind kind;
    std::string who;      // the process that runs next, if the kind is `go`
    unsigned number = 0;  // the number that is taken, if the kind is `guard` or `fault`
    unsigned nth = 0;     // which decision of its kind within the step this is, from 0
  };
  struct ByNumber {
    std::size_t decision;
    unsigned choice;
  };
  std::vector<Deviation> deviations;
  std::vector<ByNumber> numbers;

  void begin(Run&) override { met_.assign(deviations.size() + numbers.size(), false); }
  unsigned go(Run&) override;
  unsigned take(Run&, unsigned options, Kind kind) override;
  void end(Run&) override;
  bool advance() override { return false; }

 private:
  unsigned by_number(Run&, unsigned options);
  template <class F>
  unsigned by_process(Run&, F&& choice);
  std::vector<bool> met_;
};

// Makes every choice at random.
class Walk final : public Strategy {
 public:
  std::uint64_t seed = 1;
  void begin(Run&) override { random_.seed(seed); }
  unsigned go(Run& run) override { return random_.below(run.options()); }
  unsigned take(Run&, unsigned options, Kind) override { return random_.below(options); }

 private:
  Random random_;
};

// Random priorities (Burckhardt, Kothari, Musuvathi and Nagarakatte, ASPLOS 2010): the process with
// the highest priority runs next. At `depth` - 1 steps of a run, drawn from the first `longest`
// steps, the process that would run next receives a priority below all priorities that have not
// been lowered yet.
class Priorities final : public Strategy {
 public:
  std::uint64_t seed = 1;
  unsigned depth = 3, longest = 100;
  void begin(Run&) override;
  unsigned go(Run&) override;
  unsigned take(Run&, unsigned options, Kind) override { return random_.below(options); }

 private:
  unsigned highest(Run&);
  Random random_;
  std::vector<unsigned> changes_;
  std::vector<std::uint64_t> priorities_;  // indexed by process
};

// Searches, depth first, all schedules with at most `bound` deviations.
class Bounded final : public Strategy {
 public:
  unsigned bound = ~0u;
  void begin(Run&) override { at_ = 0; }
  unsigned go(Run& run) override { return next(run, run.options()); }
  unsigned take(Run& run, unsigned options, Kind) override { return next(run, options); }
  bool advance() override;
  void forget() { stack_.clear(); }

 private:
  struct Node {
    Uid after;                       // the process that ran last
    unsigned options, taken, spent;  // `spent` is the number of deviations before this choice
  };
  unsigned next(Run&, unsigned options);
  std::vector<Node> stack_;
  std::size_t at_ = 0;
};

}  // namespace weft::checking
