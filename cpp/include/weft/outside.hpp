// Tokens for threads that Weft did not start, and for anything else that may wake a run from
// outside (rule 10.3). Such tokens are needed because Weft cannot see which thread holds the ends
// of a channel. While one of these tokens exists, no run concludes that it is deadlocked and no
// virtual clock jumps.
//
//   std::thread t([token = weft::Outside(), w = c.writer()] { w(1); });
//
// The token is made before the thread starts, so that no run concludes too early, and is captured
// before the ends, so that it is destroyed after them.
//
// A standstill that is not a deadlock is possible only where there may be a token. So a token
// includes the code that reports standstills, and a program without tokens compiles none of it.
#pragma once
#include <utility>

#include "compose.hpp"
#include "runtime/outside.hpp"

namespace weft::inline WEFT_ABI {

class Outside {
 public:
  // `due` means that the token's thread waits for something that can take long (a socket, a signal,
  // a person), so that no standstill is reported (rule 10.6).
  static constexpr bool due = true;
  explicit Outside(bool is_due = false) : due_(is_due) { enter(); }
  // Marks the token of a link to another program, which can be asked what it waits for (WIRE.md
  // 10.6).
  struct Link {};
  static constexpr Link link{};
  explicit Outside(Link) : due_(true), link_(true) { enter(); }
  Outside(Outside&& o) noexcept
      : due_(o.due_), link_(o.link_), here_(std::exchange(o.here_, false)) {}
  Outside& operator=(Outside&& o) noexcept {
    std::swap(due_, o.due_);
    std::swap(link_, o.link_);
    std::swap(here_, o.here_);
    return *this;
  }
  ~Outside() {
    if (here_) runtime::Outsiders::all().exit(due_, link_);
  }

 private:
  void enter() {
    WEFT_POINT(refuses("weft::Outside"));
    detail::look_at_standstills();
    runtime::Outsiders::all().enter(due_, link_);
  }
  bool due_;
  bool link_ = false;
  bool here_ = true;
};

}  // namespace weft::inline WEFT_ABI
