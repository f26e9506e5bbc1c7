// Threads that Weft did not start, and whatever else may wake a run from outside (rule 10.3): they say so, since nobody can see who holds
// the ends of a channel. While one of these tokens lives, no run concludes that it is deadlocked and no virtual clock jumps.
//
//   std::thread t([token = weft::Outside(), w = c.writer()] { w(1); });
//
// The token is made before the thread starts, so that no run concludes too early, and stands before the ends, so that it goes after them.
//
// State under the registry's lock: the runs that are going on, the number of tokens. A run looks at the number when it is quiescent; the
// last token that goes lets every run look again.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "run.hpp"

namespace weft {

namespace runtime {

class Outsiders {
 public:
  static Outsiders& all() {
    static Outsiders o;
    return o;
  }
  void join(Run& r) {
    const std::lock_guard g(mutex_);
    runs_.push_back(&r);
    for (unsigned i = 0; i < tokens_; ++i) r.enter_outside();
  }
  void leave(Run& r) noexcept {
    const std::lock_guard g(mutex_);
    std::erase(runs_, &r);
  }
  void enter() noexcept {
    const std::lock_guard g(mutex_);
    ++tokens_;
    for (Run* r : runs_) r->enter_outside();
  }
  void exit() noexcept {
    const std::lock_guard g(mutex_);
    --tokens_;
    for (Run* r : runs_) r->leave_outside();
  }

 private:
  std::mutex mutex_;
  std::vector<Run*> runs_;
  unsigned tokens_ = 0;
};

}  // namespace runtime

class Outside {
 public:
  Outside() { runtime::Outsiders::all().enter(); }
  Outside(Outside&& o) noexcept : here_(std::exchange(o.here_, false)) {}
  Outside& operator=(Outside&& o) noexcept {
    std::swap(here_, o.here_);
    return *this;
  }
  ~Outside() {
    if (here_) runtime::Outsiders::all().exit();
  }

 private:
  bool here_ = true;
};

}  // namespace weft
