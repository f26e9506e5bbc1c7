// Finds which processes may continue: the least fixed point behind partial deadlock (rules 10.5,
// 14.3), over the facts of one moment. The facts are those of C++ processes (partial.hpp) or of
// Python processes (native/rounds/partial.cpp).
//
//   process(), able(), waits_at(), holds(), waits_for(): the facts ──solve()──► is_able()
//
// A process that may continue may wake every process that waits where it holds an end, and every
// process at a barrier. When all processes of a family may continue, so may the process that waits
// for the family. All other processes are stuck.
#pragma once
#include <cstdint>

#include "pairs.hpp"

namespace weft::inline WEFT_ABI::runtime {

class GoingOn {
 public:
  using Id = std::uint32_t;
  // The address of a place, or of a family: the processes for which one process waits together.
  using Key = const void*;

  // These functions state the facts; they may be called in any order.
  void process(Id id, Key family) { families_.add(id, Pairs::number(family)); }
  void able(Id id) { able_.push_back(id); }
  // The process waits at `channel`, and a holder of an end of that channel might wake the process.
  // If anything else might wake it, the caller uses able() instead.
  void waits_at(Id id, Key channel) { waiting_.add(Pairs::number(channel), id); }
  void waits_at_barrier(Id id) { at_barriers_.push_back(id); }
  void waits_for(Id id, Key family) { parents_.add(Pairs::number(family), id); }
  void holds(Id id, Key channel) { held_.add(id, Pairs::number(channel)); }

  void solve();  // called once, after all facts are stated
  bool is_able(Id id) const;

 private:
  struct Solve;
  // families_: the family of each process; parents_: the process that waits for each family;
  // waiting_: the processes that wait at each channel; held_: the channels of which each process
  // holds ends
  Pairs families_, parents_, waiting_, held_;
  Numbers at_barriers_;
  Numbers able_;  // the processes that can continue; after solve() all of them, ascending
};

}  // namespace weft::inline WEFT_ABI::runtime
