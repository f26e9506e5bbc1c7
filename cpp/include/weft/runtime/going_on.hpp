// Who may go on: the least fixed point behind partial deadlock (rules 10.5, 14.3), over the facts
// of one moment. C++ takes them from its processes (partial.hpp), Python from its own
// (native/rounds/partial.cpp).
//
//   process(), able(), waits_at(), holds(), waits_for(): the facts ──solve()──► is_able()
//
// A process that may go on may wake whoever waits where it holds an end, and everybody at a
// barrier. When all of a family may go on, so may the process that waits for the family. The others
// are stuck.
#pragma once
#include <cstdint>

#include "pairs.hpp"

namespace weft::inline WEFT_ABI::runtime {

class GoingOn {
 public:
  using Id = std::uint32_t;
  using Key = const void*;  // of a place; or of a family, the processes that one waits for together

  // The facts, in any order.
  void process(Id id, Key family) { families_.add(id, Pairs::number(family)); }
  void able(Id id) { able_.push_back(id); }
  // A holder of an end there may wake it; where that is enough: the caller says who is able() at
  // once.
  void waits_at(Id id, Key channel) { waiting_.add(Pairs::number(channel), id); }
  void waits_at_barrier(Id id) { at_barriers_.push_back(id); }
  void waits_for(Id id, Key family) { parents_.add(Pairs::number(family), id); }
  void holds(Id id, Key channel) { held_.add(id, Pairs::number(channel)); }

  void solve();  // once
  bool is_able(Id id) const;

 private:
  struct Solve;
  // families_: of each process; parents_: of each family; waiting_: at each channel; held_: by each
  // process
  Pairs families_, parents_, waiting_, held_;
  Numbers at_barriers_;
  Numbers able_;  // who is; after solve() all of them, ascending
};

}  // namespace weft::inline WEFT_ABI::runtime
