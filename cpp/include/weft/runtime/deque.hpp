// The queue of one worker of a multi-core executor: its owner pushes and takes, others steal.
//
// First come, first served, for the owner too; a thief takes the older half, so whom the owner woke last is stolen last, and keeps together
// what is of one group. The lock costs the owner two stores and a load (asymmetric.hpp): with a Chase–Lev deque or a spin lock it would be
// one or two locked instructions an operation, of which a communication takes two.
//
// State under the lock: the queue, and what was taken last. `size` is written under it, and read by anybody as a hint.
// A process is marked as running (`runs_on`) under the lock as well: whoever visits all queues knows that nobody starts to run.
#pragma once
#include <algorithm>
#include <utility>

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
    return push_inside(w);
  }
  // The same, unless others visit: 0.
  [[gnu::always_inline]] std::uint32_t push_cheaply(core::Waker* w) noexcept { return lock_.enter_cheaply() ? push_inside(w) : 0; }

  // The oldest of those that are wholly suspended (one that was woken before its worker has let go of it may be here already): it runs
  // from now on on the worker of that mark. Null: none.
  [[gnu::always_inline]] ProcessBase* take(std::uint8_t mark) noexcept {
    if (size() == 0) return nullptr;
    if (!lock_.enter_cheaply()) [[unlikely]]
      return take_slowly(mark);
    return take_inside(mark);
  }

  // --- others' --------------------------------------------------------------------------------------------------------------------
  // About half, linked; null if there is nothing or another visitor is here. What belongs to one group goes together, for it is likely to
  // communicate: the oldest groups, but not that of the process which ran last, until there are enough; of one that is too big the oldest.
  // If there is but that one group: its oldest, if `tear`.
  core::Waker* steal(bool tear = true) noexcept {
    if (size() == 0 || !lock_.try_visit()) return nullptr;
    const std::uint32_t n = size();
    core::Waker* waiting[2 * kMost];
    const std::uint32_t seen = n < 2 * kMost ? n : 2 * kMost;
    for (std::uint32_t i = 0; i < seen; ++i) waiting[i] = queue_.pop();
    Loot loot((n + 1) / 2 < kMost ? (n + 1) / 2 : kMost);
    for (std::uint32_t i = 0; i < seen && loot.more > 0; ++i)
      if (waiting[i] && group_of(waiting[i]) != ran_) take_group(waiting, i, seen, loot);
    if (loot.queue.empty() && tear)
      for (std::uint32_t i = 0; i < seen && loot.more > 0; ++i) loot.take(waiting[i]);
    core::RunQueue left;
    for (std::uint32_t i = 0; i < seen; ++i)
      if (waiting[i]) left.push(waiting[i]);
    left.append(queue_);
    queue_ = left;
    size_.store(n - loot.taken, std::memory_order_relaxed);
    lock_.depart();
    return loot.queue.front();
  }

 private:
  struct Loot {
    explicit Loot(std::uint32_t most) noexcept : more(most) {}
    void take(core::Waker*& w) noexcept {
      queue.push(std::exchange(w, nullptr));
      ++taken, --more;
    }
    core::RunQueue queue;
    std::uint32_t taken = 0, more;
  };

  [[gnu::always_inline]] std::uint32_t push_inside(core::Waker* w) noexcept {
    queue_.push(w);
    const std::uint32_t n = size() + 1;
    size_.store(n, std::memory_order_relaxed);
    lock_.leave();
    return n;
  }
  [[gnu::always_inline]] ProcessBase* take_inside(std::uint8_t mark) noexcept {
    auto* p = static_cast<ProcessBase*>(queue_.front());
    if (!p || p->runs_on.load(std::memory_order_acquire) != 0) [[unlikely]]
      p = bring_forward();
    if (p) [[likely]] {
      queue_.pop();
      p->runs_on.store(mark, std::memory_order_relaxed);
      ran_ = p->group;
      size_.store(size() - 1, std::memory_order_relaxed);
    }
    lock_.leave();
    return p;
  }
  [[gnu::noinline]] ProcessBase* take_slowly(std::uint8_t mark) noexcept {
    lock_.enter();
    return take_inside(mark);
  }
  // The oldest that is wholly suspended, to the front. Null: none is, or all were stolen meanwhile.
  [[gnu::noinline]] ProcessBase* bring_forward() noexcept {
    for (std::uint32_t n = size(); n > 0; --n) {
      auto* p = static_cast<ProcessBase*>(queue_.front());
      if (p->runs_on.load(std::memory_order_acquire) == 0) return p;
      queue_.push(queue_.pop());
    }
    return nullptr;
  }

  static const Group* group_of(const core::Waker* w) noexcept { return static_cast<const ProcessBase*>(w)->group; }
  // Of the group of the first: all, if they are not too many; or as many as there may be more, if these are the first that are taken.
  static void take_group(core::Waker** waiting, std::uint32_t first, std::uint32_t end, Loot& loot) noexcept {
    const Group* const g = group_of(waiting[first]);
    const auto belongs = [g](const core::Waker* w) { return w && group_of(w) == g; };
    if (loot.taken > 0 && std::count_if(waiting, waiting + end, belongs) > loot.more) return;
    for (std::uint32_t i = first; i < end && loot.more > 0; ++i)
      if (belongs(waiting[i])) loot.take(waiting[i]);
  }
  OwnersLock lock_;
  prim::atomic<std::uint32_t> size_{0};
  core::RunQueue queue_;
  const Group* ran_ = nullptr;  // that of the process which was taken last
};

}  // namespace weft::runtime
