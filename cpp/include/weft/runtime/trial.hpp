// Whether idle workers seek work among short steps, decided by what is measured.
//
// Seeking helps a farm, whose jobs are worth a theft, and harms a ring, whose processes talk to each
// other all the time. No length of a step tells the two apart: in a ring that is spread over two
// cores, each step waits for the other core's cache, and is as long as a short job. So both ways are
// tried, and the way in which the workers do more steps in a ms is kept.
//
//   held ──its time is over: try the other way for kTrial──► tried ──fewer steps──► held, as before,
//    ▲                                                         │        for twice the time
//    └────────────────more steps: the other way is held────────┘
//
// Any worker that runs out of processes calls seeks(). So nothing is tried while all are busy, and
// while all sleep. `seeks_` and `until_` may be read by any thread; the rest is under the lock.
#pragma once
#include <cstdint>

#include "../core/policy.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Trial {
 public:
  // Returns whether a worker that has nothing to do at the time `now`, in ns, is to seek. `steps`
  // counts the steps of all workers; the count may wrap.
  template <class Steps>
  bool seeks(std::int64_t now, Steps&& steps) noexcept {
    if (now >= until_.load(std::memory_order_relaxed)) [[unlikely]] {
      lock_.lock();
      if (now >= until_.load(std::memory_order_relaxed)) weigh(now, steps());
      lock_.unlock();
    }
    return seeks_.load(std::memory_order_relaxed);
  }

  // In ns: how long a way is tried, and how long a way is held, at least and at most.
  static constexpr std::int64_t kTrial = 100'000, kLeastHeld = 2'000'000, kLongestHeld = 64'000'000;

 private:
  void weigh(std::int64_t now, std::uint32_t steps) noexcept {
    const bool first = from_ == 0;
    const std::int64_t took = now > from_ ? now - from_ : 1;
    // steps in a ms
    const std::int64_t rate = std::int64_t{steps - from_steps_} * 1'000'000 / took;
    if (first) {
      until_.store(now + kTrial, std::memory_order_relaxed);
    } else if (!trying_) {
      trying_ = true;
      held_rate_ = rate;
      change(now + kTrial);
    } else {
      trying_ = false;
      if (rate > held_rate_) {
        held_ = kLeastHeld;
        until_.store(now + held_, std::memory_order_relaxed);
      } else {
        held_ = held_ * 2 < kLongestHeld ? held_ * 2 : kLongestHeld;
        change(now + held_);
      }
    }
    from_ = now;
    from_steps_ = steps;
  }
  void change(std::int64_t until) noexcept {
    seeks_.store(!seeks_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    until_.store(until, std::memory_order_relaxed);
  }

  prim::atomic<bool> seeks_{false};
  prim::atomic<std::int64_t> until_{0};
  core::SpinLock lock_;
  bool trying_ = false;
  std::int64_t held_ = kLeastHeld;
  std::int64_t from_ = 0;  // when the present way began; 0 before the first call
  std::uint32_t from_steps_ = 0;
  std::int64_t held_rate_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
