// The definitions of runtime/going_on.hpp.
#include <algorithm>
#include <utility>

#include <weft/runtime/going_on.hpp>

namespace weft::inline WEFT_ABI::runtime {

struct GoingOn::Solve {
  GoingOn& facts;
  Numbers todo;   // processes that are able and not examined yet, as indices of families_
  Numbers awake;  // for each index of families_: whether the process is able
  Numbers told;   // for each index of waiting_: whether a holder was found to be able
  // For each family, by its index in parents_: how many of its processes are not known to be able.
  Numbers left;

  explicit Solve(GoingOn& g) : facts(g) {
    for (Pairs* const p : {&g.families_, &g.parents_, &g.waiting_, &g.held_}) p->sort();
    awake.resize(g.families_.size());
    told.resize(g.waiting_.size());
    left.resize(g.parents_.size());
  }
  // Returns the index in parents_ of a process's family; size() of parents_ if no process waits for
  // the family.
  std::uint32_t parent(std::uint32_t i) const {
    return facts.parents_.find(facts.families_[i].value);
  }
  void wake(std::uintptr_t id) {
    const std::uint32_t i = facts.families_.find(id);
    if (i < awake.size() && !std::exchange(awake[i], 1)) todo.push_back(i);
  }
  void wake_at(std::uintptr_t channel) {
    const std::uint32_t first = facts.waiting_.find(channel);
    if (first == facts.waiting_.size() || std::exchange(told[first], 1)) return;
    for (const Pairs::Pair& p : facts.waiting_.of(channel)) wake(p.value);
  }
  void all() {
    for (std::uint32_t i = 0; i < awake.size(); ++i)
      if (const std::uint32_t k = parent(i); k < left.size()) ++left[k];
    for (std::uint32_t k = 0; k < left.size(); ++k)
      if (left[k] == 0) wake(facts.parents_[k].value);
    for (const Id id : facts.able_) wake(id);
    while (!todo.empty()) {
      const std::uint32_t i = todo.back();
      todo.pop_back();
      for (const Id id : std::exchange(facts.at_barriers_, {})) wake(id);
      for (const Pairs::Pair& h : facts.held_.of(facts.families_[i].key)) wake_at(h.value);
      if (const std::uint32_t k = parent(i); k < left.size() && --left[k] == 0)
        wake(facts.parents_[k].value);
    }
    facts.able_.clear();
    for (std::uint32_t i = 0; i < awake.size(); ++i)
      if (awake[i]) facts.able_.push_back(static_cast<Id>(facts.families_[i].key));
  }
};

void GoingOn::solve() { Solve(*this).all(); }

bool GoingOn::is_able(Id id) const { return std::ranges::binary_search(able_, id); }

}  // namespace weft::inline WEFT_ABI::runtime
