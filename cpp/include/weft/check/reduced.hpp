// The reduced search: one schedule stands for all that differ from it by exchanges of steps that
// commute. Source sets and sleep sets (Abdulla, Aronis, Jonsson and Sagonas, POPL 2014).
//
//   run ──► races of its events, by vector clocks ──each asks for a run in which the two come the
//   other way round──► `todo` of the node where the first was chosen ──advance()──► run
//
// Invariants
//  1 There is a node for each step of the run but main's first. Node::touches is what the chosen
//    process's step did there in all runs so far: a superset of what it did in one.
//  2 Who sleeps at a node was explored there before, or at an earlier one, and every step since
//    commutes with its own: what begins with it is known.
//  3 A choice within a step (a guard, a fault) belongs to the step: all its alternatives are run
//    before another process is chosen there.
#pragma once
#include <unordered_map>

#include "run.hpp"

namespace weft::checking {

class Reduced final : public Strategy {
 public:
  Relation relation;
  bool with_cancels = false;

  bool keeps_events() const noexcept override { return true; }
  bool cancels() const noexcept override { return with_cancels; }
  void begin(Run&) override;
  unsigned go(Run&) override;
  unsigned take(Run&, unsigned options, Kind) override;
  void end(Run&) override;
  bool advance() override;
  // Cancellations conflict with every step: that is known before a search in which there are none.
  bool restarts(const Run&) override;
  void forget();  // for another program

  struct Races {
    std::size_t both = 0, all = 0;  // seen in both orders
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
    std::vector<Uid> options;  // the usual one first
    std::size_t chosen = 0;
    std::vector<Alternative> within;  // choices of its step
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
  std::size_t at_ = 0;        // nodes of this run so far
  std::size_t repeated_ = 0;  // nodes whose choices the run repeats
  std::size_t within_ = 0;    // choices of the step under way
  int node_ = kNone;          // where the step that begins next was chosen
  std::vector<int> nodes_;    // by event

  std::vector<int>
      clocks_;  // by event: of each process, how many of its events come before or are it
  int width_ = 0;
  std::vector<std::pair<int, int>> found_;
  std::vector<int> rivals_, between_;
  std::vector<Uid> firsts_;
  std::unordered_map<Uid, std::uint8_t> seen_;  // races, and in which orders
  std::size_t both_ = 0;
};

}  // namespace weft::checking
