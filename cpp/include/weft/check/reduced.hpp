// The reduced search: one schedule stands for all that differ from it by exchanges of steps that
// commute. The search uses source sets and sleep sets (Abdulla, Aronis, Jonsson and Sagonas, POPL
// 2014).
//
//   run ──► races of its events, by vector clocks ──each asks for a run in the other order──►
//   `todo` of the node where the first of the two was chosen ──advance()──► run
//
// Invariants
//  1 There is a node for each step of the run but main's first. Node::touches has what the step of
//    the chosen process touched there in all runs so far: a superset of what it touched in one.
//  2 A process that sleeps at a node was explored there before, or at an earlier node, and every
//    step since commutes with its own. So every run that goes on with it here is known.
//  3 A choice within a step (a guard, a fault) belongs to the step: all its alternatives are run
//    before another process is chosen there.
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
  // True: the run had the first cancellation, or the first barrier at which more processes arrive
  // than it has parties. Cancellations conflict with every step, and arrivals at such a barrier with
  // one another; no step so far has noted that: the search begins anew, and notes it.
  bool restarts(const Run&) override;
  void forget();  // for another program

  struct Races {
    std::size_t both = 0, all = 0;  // races that were seen in both orders; all that were seen
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
    std::vector<Uid> options;  // who could go, the usual one first
    std::size_t chosen = 0;
    std::vector<Alternative> within;  // choices within its step
    std::vector<Uid> todo, done;
    std::vector<Sleeper> sleep;
    Touches touches;

    void begin_anew() noexcept;
    bool asleep(Uid) const noexcept;
    bool has(Uid) const noexcept;
  };

  bool repeat(Run&);
  bool step_is_over(Run&);
  void open(Run&);
  bool related(const Run&, std::span<const Touch>, std::span<const Touch>) const noexcept;

  // races.cpp
  void analyse(Run&);
  void find_races(Run&);
  void order(const Record&, int event);
  void join(int event, int earlier) noexcept;
  int seen(int event, int process) const noexcept;
  bool before(const Record&, int a, int b) const noexcept;
  void ask_for(const Record&, int first, int second);
  void note(const Record&, int first, int second);
  Node* node_of(int event) noexcept;

  std::vector<Node> stack_;  // the first `size_`; the others are kept for what they have allocated
  std::size_t size_ = 0;
  std::size_t at_ = 0;        // how many nodes this run has passed
  std::size_t repeated_ = 0;  // how many nodes it repeats
  std::size_t within_ = 0;    // how many choices the step under way has made
  int node_ = kNone;          // the node at which the step that begins next was chosen
  std::vector<int> nodes_;    // of each event

  // By event and process: how many events of the process come before the event, or are it.
  std::vector<int> clocks_;
  int width_ = 0;                           // how many processes there are
  std::vector<std::pair<int, int>> found_;  // races: the earlier event, the later
  std::vector<int> rivals_, between_;
  std::vector<Uid> firsts_;
  std::unordered_map<Uid, std::uint8_t> seen_;  // races, and in which orders
  std::size_t both_ = 0;
};

}  // namespace weft::checking
