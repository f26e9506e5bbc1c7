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
#include <condition_variable>
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
  void enter(bool due, bool link = false) noexcept;
  void exit(bool due, bool link = false) noexcept;
  unsigned strangers() noexcept;
  // The runs that go on now, none of which ends while this lives.
  class Pinned {
   public:
    Pinned() : runs_(all().pin()) {}
    Pinned(Pinned&& o) noexcept : runs_(std::move(o.runs_)), here_(std::exchange(o.here_, false)) {}
    Pinned& operator=(Pinned&&) = delete;
    ~Pinned() {
      if (here_) all().unpin();
    }
    const std::vector<Run*>& runs() const noexcept { return runs_; }

   private:
    std::vector<Run*> runs_;
    bool here_ = true;
  };

 private:
  std::vector<Run*> pin();
  void unpin() noexcept;

  std::mutex mutex_;
  std::condition_variable unpinned_;
  unsigned pins_ = 0;       // who leaves waits for these
  Run* runs_ = nullptr;     // a list
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
  // Of a link to another program, which may be asked what it waits for (WIRE.md 10.6).
  struct Link {};
  static constexpr Link link{};
  explicit Outside(Link) : due_(true), link_(true) { runtime::Outsiders::all().enter(true, true); }
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
  bool due_;
  bool link_ = false;
  bool here_ = true;
};

}  // namespace weft::inline WEFT_ABI

#if !defined(WEFT_COMPILED)
#include "../impl/outside.ipp"
#endif
