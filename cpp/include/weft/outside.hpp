// Threads that Weft did not start, and whatever else may wake a run from outside (rule 10.3): they
// say so, since nobody can see who holds the ends of a channel. While one of these tokens lives, no
// run concludes that it is deadlocked and no virtual clock jumps.
//
//   std::thread t([token = weft::Outside(), w = c.writer()] { w(1); });
//
// The token is made before the thread starts, so that no run concludes too early, and stands before
// the ends, so that it goes after them.
//
// Only where there may be one is a standstill possible that is no deadlock: so a token brings in
// who looks at standstills, and a program without any compiles nothing of it.
#pragma once
#include <utility>

#include "compose.hpp"
#include "runtime/outside.hpp"

namespace weft::inline WEFT_ABI {

class Outside {
 public:
  // `due`: its thread waits for something that may take its time (a socket, a signal, a person): no
  // standstill is told (rule 10.6).
  static constexpr bool due = true;
  explicit Outside(bool is_due = false) : due_(is_due) { enter(); }
  // Of a link to another program, which may be asked what it waits for (WIRE.md 10.6).
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
    detail::look_at_standstills();
    runtime::Outsiders::all().enter(due_, link_);
  }
  bool due_;
  bool link_ = false;
  bool here_ = true;
};

}  // namespace weft::inline WEFT_ABI
