// The events that the explorer schedules on a set of links.
#pragma once
#include <functional>
#include <vector>

#include "engine.hpp"
#include "wire_world.hpp"

namespace weft::test {

// This object must be the first member, so that no object of a scenario comes from the pool of
// another scenario.
struct FreshPooled {
  runtime::FreshPool fresh;
};

// The events that can happen next; one() makes one of them happen.
class Events {
 public:
  void may(bool now, std::function<void()> f) {
    if (now) can_.push_back(std::move(f));
  }
  // Runs every order of `most` events that have an alternative, after the first `before` such
  // events. At all other choices the first possible event happens.
  Events() = default;
  explicit Events(unsigned most, unsigned before = 0) : before_(before), left_(most) {}
  // Makes one event happen. Returns false if no event can happen.
  bool one() {
    if (can_.empty()) return false;
    const std::size_t n = can_.size();
    const bool free = n > 1 && before_ == 0 && left_ > 0;
    if (free)
      --left_;
    else if (n > 1 && before_ > 0)
      --before_;
    can_[free ? explorer::engine().choose(static_cast<std::uint32_t>(n)) : 0]();
    can_.clear();
    return true;
  }
  void frames(Wire& l) {
    may(l.can_up(), [&l] { l.up(); });
    may(l.can_down(), [&l] { l.down(); });
  }

 private:
  std::vector<std::function<void()>> can_;
  unsigned before_ = 0, left_ = ~0u;
};

// The frames on all links of a square (wire_choice.hpp).
template <class Square>
void frames(Events& e, Square& s) {
  for (auto* l : s.all) e.frames(*l);
}

}  // namespace weft::test
