// The queue of one worker of a multi-core executor: its owner pushes and takes, others steal.
//
// The order is first come, first served, for the owner too. A thief takes the older half, so a
// process that the owner woke last is stolen last; and the thief keeps the processes of one group
// together. The lock costs the owner two stores and two loads (asymmetric.hpp). A Chase–Lev deque
// or a spin lock would cost one or two locked instructions for each operation, and a communication
// takes two operations.
//
// State under the lock: the queue, and the group of the process that was taken last. `size` is
// written under the lock, and read by any thread as a hint. A process is marked as running
// (`runs_on`) under the lock as well. So while a thread visits all queues, no process starts to
// run.
#pragma once

#include "asymmetric.hpp"
#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

class StealQueue {
 public:
  // The maximum number of processes that a thief takes at a time.
  static constexpr std::uint32_t kMaxStolen = 64;

  // How many processes wait here. Other threads read this as a hint; the order of the two loads
  // makes the hint at least 0.
  std::uint32_t size() const noexcept {
    const std::uint32_t taken = taken_.load(std::memory_order_acquire);
    return pushed_.load(std::memory_order_relaxed) - taken;
  }
  // How many processes the owner has taken, which is how many steps it has begun.
  std::uint32_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  OwnersLock& lock() noexcept { return lock_; }

  // --- for the owner ----------------------------------------------------------------------------
  void push(core::Waker* w) noexcept {
    lock_.enter();
    push_inside(w);
  }
  // Appends w like push(); but if the lock cannot be entered cheaply, does nothing and returns
  // false.
  [[gnu::always_inline]] bool push_cheaply(core::Waker* w) noexcept {
    if (!lock_.enter_cheaply()) [[unlikely]]
      return false;
    push_inside(w);
    return true;
  }

  // Removes and returns the oldest process that is fully suspended, and records `mark` as the
  // worker that runs it. Returns null if there is no such process. (A process can be queued while
  // its last worker is still suspending it; such a process is not taken.)
  ProcessBase* take(std::uint8_t mark) noexcept {
    if (size() == 0) return nullptr;
    lock_.enter();
    return take_inside(mark);
  }
  // Takes like take(); but also returns null if the lock cannot be entered cheaply.
  [[gnu::always_inline]] ProcessBase* take_cheaply(std::uint8_t mark) noexcept {
    return lock_.enter_cheaply() ? take_inside(mark) : nullptr;
  }

  // --- for other workers ------------------------------------------------------------------------
  // Takes about half of the processes, linked, in their order. Returns null if there are no
  // processes or another visitor is here. Processes of one group go together, for they are likely
  // to communicate. The thief takes the oldest groups until it has enough processes, except the
  // group of the process that ran last; of a group that is too big, it takes the oldest processes.
  // If the queue has only one group, its oldest processes are taken only with `split`.
  core::Waker* steal(bool split = true) noexcept {
    if (size() == 0 || !lock_.try_visit()) return nullptr;
    const std::uint32_t n = size();  // 0 if the owner took the last process meanwhile
    Raid raid;
    raid.most = (n + 1) / 2 < kMaxStolen ? (n + 1) / 2 : kMaxStolen;
    for (; raid.seen < n && raid.seen < kSeen; ++raid.seen) raid.waiting[raid.seen] = queue_.pop();
    for (std::uint32_t i = 0; i < raid.seen && raid.taken < raid.most; ++i)
      if (!raid.mine[i] && group_of(raid.waiting[i]) != ran_) raid.take_group(i);
    if (raid.taken == 0 && n > 0 && split) raid.take_group(0);
    core::RunQueue loot, left;
    for (std::uint32_t i = 0; i < raid.seen; ++i)
      (raid.mine[i] ? loot : left).push(raid.waiting[i]);
    left.append(queue_);
    queue_.append(left);
    pushed_.store(pushed_.load(std::memory_order_relaxed) - raid.taken, std::memory_order_relaxed);
    lock_.depart();
    return loot.release();
  }

 private:
  static constexpr std::uint32_t kSeen = 2 * kMaxStolen;

  // The part of the queue that a thief sees, and which of these processes it takes.
  struct Raid {
    core::Waker* waiting[kSeen];
    bool mine[kSeen] = {};
    std::uint32_t seen = 0, taken = 0, most = 0;

    // Takes the whole group of the process waiting[first], if it fits. If it does not fit and the
    // thief has nothing yet, takes as many processes of the group as allowed.
    void take_group(std::uint32_t first) noexcept {
      const Group* const g = group_of(waiting[first]);
      const auto belongs = [g](const core::Waker* w) { return group_of(w) == g; };
      std::uint32_t all = 0;
      for (std::uint32_t i = 0; i < seen; ++i) all += belongs(waiting[i]);
      if (taken > 0 && all > most - taken) return;
      for (std::uint32_t i = first; i < seen && taken < most; ++i)
        if (belongs(waiting[i])) mine[i] = true, ++taken;
    }
  };

  [[gnu::always_inline]] void push_inside(core::Waker* w) noexcept {
    queue_.push(w);
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    lock_.leave();
  }
  [[gnu::always_inline]] ProcessBase* take_inside(std::uint8_t mark) noexcept {
    if (queue_.empty()) [[unlikely]] {
      lock_.leave();
      return nullptr;
    }
    auto* p = static_cast<ProcessBase*>(queue_.head());
    if (p->runs_on.load(std::memory_order_acquire) != 0) [[unlikely]] {
      p = bring_forward();
      if (!p) {
        lock_.leave();
        return nullptr;
      }
    }
    queue_.drop_head();
    p->runs_on.store(mark, std::memory_order_relaxed);
    ran_ = p->group;
    taken_.store(taken() + 1, std::memory_order_relaxed);
    lock_.leave();
    return p;
  }
  // Brings the oldest process that is fully suspended to the front. Returns null if there is no
  // such process, or all were stolen meanwhile.
  [[gnu::noinline]] ProcessBase* bring_forward() noexcept {
    for (std::uint32_t n = size(); n > 0; --n) {
      auto* p = static_cast<ProcessBase*>(queue_.front());
      if (p->runs_on.load(std::memory_order_acquire) == 0) return p;
      queue_.push(queue_.pop());
    }
    return nullptr;
  }

  static const Group* group_of(const core::Waker* w) noexcept {
    return static_cast<const ProcessBase*>(w)->group;
  }

  OwnersLock lock_;
  // How many processes were pushed here, without the stolen ones; and how many the owner has taken.
  prim::atomic<std::uint32_t> pushed_{0}, taken_{0};
  core::RunQueue queue_;
  const Group* ran_ = nullptr;  // the group of the process that was taken last
};

}  // namespace weft::inline WEFT_ABI::runtime
