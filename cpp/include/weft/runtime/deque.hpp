// The queue of one worker of a multi-core executor: its owner pushes and takes, others steal.
//
// First come, first served, for the owner too; a thief takes the oldest half, so whom the owner woke last is stolen last. The lock costs
// the owner two stores and a load (asymmetric.hpp): with a Chase–Lev deque or a spin lock it would be one or two locked instructions an
// operation, of which a communication takes two.
//
// State under the lock: the queue. `size` is written under it, and read by anybody as a hint.
// A process is marked as running (`runs_on`) under the lock as well: whoever visits all queues knows that nobody starts to run.
#pragma once
#include "asymmetric.hpp"
#include "process.hpp"

namespace weft::runtime {

class StealQueue {
 public:
  static constexpr std::uint32_t kMost = 64;  // processes that a thief takes at once

  std::uint32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  OwnersLock& lock() noexcept { return lock_; }

  // --- the owner's ----------------------------------------------------------------------------------------------------------------
  // The size from now on.
  std::uint32_t push(core::Waker* w) noexcept {
    lock_.enter();
    queue_.push(w);
    const std::uint32_t n = size() + 1;
    size_.store(n, std::memory_order_relaxed);
    lock_.leave();
    return n;
  }
  // The oldest of those that are wholly suspended (one that was woken before its worker has let go of it may be here already): it runs
  // from now on on the worker of that mark. Null: none.
  ProcessBase* take(std::uint8_t mark) noexcept {
    if (size() == 0) return nullptr;
    lock_.enter();
    for (std::uint32_t n = size(), i = 0; i < n; ++i) {
      auto* p = static_cast<ProcessBase*>(queue_.pop());
      if (p->runs_on.load(std::memory_order_acquire) != 0) [[unlikely]] {
        queue_.push(p);
        continue;
      }
      p->runs_on.store(mark, std::memory_order_relaxed);
      size_.store(n - 1, std::memory_order_relaxed);
      lock_.leave();
      return p;
    }
    lock_.leave();
    return nullptr;
  }

  // --- others' --------------------------------------------------------------------------------------------------------------------
  // The oldest half (of one, it), oldest first, linked; null if there is nothing or another visitor is here.
  core::Waker* steal() noexcept {
    if (size() == 0 || !lock_.try_visit()) return nullptr;
    const std::uint32_t n = size();
    std::uint32_t k = (n + 1) / 2 < kMost ? (n + 1) / 2 : kMost;
    size_.store(n - k, std::memory_order_relaxed);
    core::Waker* first = nullptr;
    core::Waker* last = nullptr;
    for (; k > 0; --k) {
      core::Waker* w = queue_.pop();
      w->next = nullptr;
      if (last)
        last->next = w;
      else
        first = w;
      last = w;
    }
    lock_.depart();
    return first;
  }

 private:
  OwnersLock lock_;
  prim::atomic<std::uint32_t> size_{0};
  core::RunQueue queue_;
};

}  // namespace weft::runtime
