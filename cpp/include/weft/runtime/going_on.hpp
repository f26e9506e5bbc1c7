// Who may go on: the least fixed point behind partial deadlock (rules 10.5, 14.3), over the facts
// of one moment. C++ takes them from its processes (partial.hpp), Python from its own
// (native/partial.cpp).
//
//   process(), able(), waits_at(), holds(), waits_for(): the facts ──solve()──► is_able()
//
// A process that may go on may wake whoever waits where it holds an end, and everybody at a
// barrier. When all of a family may go on, so may the process that waits for the family. The others
// are stuck.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

class GoingOn {
 public:
  using Id = std::uint32_t;
  using Key = const void*;  // of a place; or of a family, the processes that one waits for together

  void process(Id id, Key family) {
    all_[id].family = family;
    ++left_[family];
  }
  void able(Id id) {
    if (!std::exchange(all_.at(id).able, true)) todo_.push_back(id);
  }
  // A holder of an end there may wake it; where that is enough: the caller says who is able() at
  // once.
  void waits_at(Id id, Key channel) { waiting_[channel].push_back(id); }
  void waits_at_barrier(Id id) { at_barriers_.push_back(id); }
  void waits_for(Id id, Key family) { parents_.emplace(family, id); }
  void holds(Id id, Key channel) {
    if (const auto it = all_.find(id); it != all_.end()) it->second.holds.push_back(channel);
  }

  void solve() {
    for (const auto& [family, id] : parents_)
      if (left_[family] == 0) able(id);
    while (!todo_.empty()) {
      const Id id = todo_.back();
      todo_.pop_back();
      for (const Id w : std::exchange(at_barriers_, {})) able(w);
      const One& one = all_.at(id);
      for (const Key place : one.holds)
        if (const auto w = waiting_.find(place); w != waiting_.end())
          for (const Id other : std::exchange(w->second, {})) able(other);
      if (--left_[one.family] == 0)
        if (const auto w = parents_.find(one.family); w != parents_.end()) able(w->second);
    }
  }
  bool is_able(Id id) const { return all_.at(id).able; }

 private:
  struct One {
    Key family = nullptr;
    bool able = false;
    std::vector<Key> holds;  // channels, some perhaps twice
  };
  std::unordered_map<Id, One> all_;
  std::unordered_map<Key, std::size_t> left_;  // of a family: those not yet known to be able
  std::unordered_map<Key, Id> parents_;
  std::unordered_map<Key, std::vector<Id>> waiting_;
  std::vector<Id> at_barriers_, todo_;
};

}  // namespace weft::inline WEFT_ABI::runtime
