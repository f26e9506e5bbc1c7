// The reduced search: one schedule stands for all that differ from it by exchanges of steps that
// commute. The search uses source sets and sleep sets (Abdulla, Aronis, Jonsson and Sagonas, POPL
// 2014).
//
//   run ──► races of its events, by vector clocks ──each asks for a run in the other order──►
//   `todo` of the node where the first of the two was chosen ──advance()──► run
//
// Invariants
//  1 There is a node for each step of the run except main's first. Node::touches contains what the
//    step of the chosen process touched there in all runs so far, a superset of what it touched in
//    any one run.
//  2 A process that sleeps at a node was explored there before, or at an earlier node, and every
//    step since then commutes with the step of that process. So every run that continues here with
//    that process is known.
//  3 A choice within a step (a guard, a fault) belongs to the step: all its alternatives are run
//    before another process is chosen at that node.
#pragma once
#include <unordered_map>

#include "run.hpp"

namespace weft::checking {

class Reduced final : public Strategy {
 public:
  Relation relation;
  bool with_cancels = false, with_crowds = false;

  bool keeps_events() const noexcept override { return true; }
  bool cancels() const noexcept override { return with_cancels; }
  bool crowds() const noexcept override { return with_crowds; }
  void begin(Run&) override;
  unsigned go(Run&) override;
  unsigned take(Run&, unsigned options, Kind) override;
  void end(Run&) override;
  bool advance() override;
  // Returns true after the first run with a cancellation, or with a barrier at which more processes
  // arrive than it has parties. Cancellations conflict with every step, and arrivals at such a
  // barrier with one another, but the steps so far were recorded without these conflicts. So the
  // search starts again, and records them.
  bool restarts(const Run&) override;
  void forget();  // called before another program is checked

  struct Races {
    // `both` is the number of races that were seen in both orders, `all` the number of all races
    // seen.
    std::size_t both = 0, all = 0;
  };
  Races races() const noexcept { return {both_, seen_.size()}; }

 private:
  using Touches = std::vector<Touch>;
  struct Sleeper {
    Uid process;
    Touches touches;
  };
  struct Alternative {
    unsigned options, taken;
  };
  struct Node {
    // the processes that could take this step; the first is that of the usual order
    std::vector<Uid> options;
    std::size_t chosen = 0;
    std::vector<Alternative> within;  // choices within the step of the chosen process
    std::vector<Uid> todo, done;
    std::vector<Sleeper> sleep;
    Touches touches;

    void begin_anew() noexcept;
    bool asleep(Uid) const noexcept;
    bool has(Uid) const noexcept;
  };

  unsigned repeat(Run&);
  bool step_is_over(Run&);
  void open(Run&);
  bool related(const Run&, std::span<const Touch>, std::span<const Touch>) const noexcept;

  // --- defined in races.cpp ---
  void analyse(Run&);
  void find_races(Run&);
  void order(const Record&, int event);
  // The clock of an event: for each process, the number of its events that precede that event. The
  // event itself counts too.
  struct Clock {
    int* numbers;
    bool knows(const Event& e) const noexcept { return numbers[e.process] >= e.number; }
  };
  Clock clock(int event) noexcept {
    return {clocks_.data() + static_cast<std::ptrdiff_t>(event) * width_};
  }
  void join(Clock to, const Record&, int earlier) noexcept;
  bool before(const Record&, int a, int b) noexcept;
  void ask_for(const Record&, int first, int second);
  void note(const Record&, int first, int second);
  Node* node_of(int event) noexcept;

  // The nodes of the run are the first `size_`; the others are kept so that their memory is reused.
  std::vector<Node> stack_;
  std::size_t size_ = 0;
  std::size_t at_ = 0;        // the number of nodes that this run has passed
  std::size_t repeated_ = 0;  // the number of nodes that this run repeats
  std::size_t within_ = 0;    // the number of choices that the current step has made
  int node_ = kNone;          // the node at which the step that begins next was chosen
  std::vector<int> nodes_;    // the node of each event

  std::vector<int> clocks_;                 // the clocks of the events, one after the other
  int width_ = 0;                           // the number of processes
  std::vector<std::pair<int, int>> found_;  // races: the earlier event and the later one
  std::vector<int> rivals_, between_;
  std::vector<Uid> firsts_;
  std::unordered_map<Uid, std::uint8_t> seen_;  // the races seen, and in which orders
  std::size_t both_ = 0;
};

}  // namespace weft::checking
