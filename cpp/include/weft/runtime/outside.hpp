// Threads that Weft did not start, and whatever else may wake a run from outside (rule 10.3): they
// say so, since nobody can see who holds the ends of a channel. While one of these tokens lives, no
// run concludes that it is deadlocked and no virtual clock jumps.
//
//   std::thread t([token = weft::Outside(), w = c.writer()] { w(1); });
//
// The token is made before the thread starts, so that no run concludes too early, and stands before
// the ends, so that it goes after them.
//
// State under the registry's lock: the runs that are going on, the number of tokens. A run looks at
// the number when it is quiescent; the last token that goes lets every run look again.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "run.hpp"

namespace weft::inline WEFT_ABI {

namespace runtime {

class Outsiders {
 public:
  static Outsiders& all();
  void join(Run& r);
  void leave(Run& r) noexcept;
  void enter(bool due) noexcept;
  void exit(bool due) noexcept;
  unsigned strangers() noexcept;

 private:
  std::mutex mutex_;
  std::vector<Run*> runs_;
  unsigned tokens_ = 0;     // whose threads wait for something that is due
  unsigned strangers_ = 0;  // of whose threads nobody knows
};

}  // namespace runtime

class Outside {
 public:
  // `due`: its thread waits for something that may take its time (a socket, a signal, a person): no
  // standstill is told (rule 10.6).
  static constexpr bool due = true;
  explicit Outside(bool is_due = false) : due_(is_due) { runtime::Outsiders::all().enter(due_); }
  Outside(Outside&& o) noexcept : due_(o.due_), here_(std::exchange(o.here_, false)) {}
  Outside& operator=(Outside&& o) noexcept {
    std::swap(due_, o.due_);
    std::swap(here_, o.here_);
    return *this;
  }
  ~Outside() {
    if (here_) runtime::Outsiders::all().exit(due_);
  }

 private:
  bool due_;
  bool here_ = true;
};

}  // namespace weft::inline WEFT_ABI

#if !defined(WEFT_COMPILED)
#include "../impl/outside.ipp"
#endif
