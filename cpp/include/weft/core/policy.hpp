// Local or shared: whether the parties of a channel are on one scheduler or anywhere in the address space.
//
// Local costs no atomic operation. Shared takes a spin lock per operation: held for a few tens of instructions, never across user code
// (rule 12), never two of them at once (invariant 1 of waiter.hpp). As long as one scheduler alone uses a channel its lock is biased to it
// (biased.hpp).
#pragma once
#include <cstdint>

#include "../prim.hpp"
#include "waiter.hpp"
#if WEFT_PRIM_BIASED
#include "biased.hpp"
#endif

namespace weft {

namespace core {

// A lock has a second pair, for a fast path that is written out at each place where it is used: lock_cheaply() may refuse.
class NoLock {
 public:
  void lock() noexcept {}
  void unlock() noexcept {}
  bool lock_cheaply() noexcept { return true; }
  void unlock_cheaply() noexcept {}
};

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::pause(round++);
  }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }
  bool lock_cheaply() noexcept {
    lock();
    return true;
  }
  void unlock_cheaply() noexcept { unlock(); }

 private:
  prim::atomic<std::uint8_t> word_{0};
};

// A count that several threads may change (shared) or only one (local).
template <bool Shared>
class Count {
 public:
  constexpr explicit Count(std::uint32_t n = 0) noexcept : n_(n) {}
  std::uint32_t get() const noexcept { return n_.load(std::memory_order_relaxed); }
  void up() noexcept {
    if constexpr (Shared)
      n_.fetch_add(1, std::memory_order_relaxed);
    else
      n_.store(get() + 1, std::memory_order_relaxed);
  }
  // True if this was the last.
  bool down() noexcept {
    if constexpr (Shared) {
      return n_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    } else {
      n_.store(get() - 1, std::memory_order_relaxed);
      return get() == 0;
    }
  }

 private:
  prim::atomic<std::uint32_t> n_;
};

// A scheduler's queue of what is runnable. Parties of a local channel are all on the scheduler that runs now, so waking one is a push.
class RunQueue {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  Waker* front() const noexcept { return head_; }
  void push(Waker* w) noexcept {
    w->next = nullptr;
    if (head_)
      tail_->next = w;
    else
      head_ = w;
    tail_ = w;
  }
  Waker* pop() noexcept {
    Waker* w = head_;
    head_ = next_of(w);
    return w;
  }
  void append(const RunQueue& other) noexcept {
    if (other.empty()) return;
    if (head_)
      tail_->next = other.head_;
    else
      head_ = other.head_;
    tail_ = other.tail_;
  }

 private:
  Waker* head_ = nullptr;
  Waker* tail_ = nullptr;  // meaningless while the queue is empty
};

#if __STDC_HOSTED__
inline constinit thread_local RunQueue* current_run_queue = nullptr;
#else
inline constinit RunQueue* current_run_queue = nullptr;  // one core; a platform with more sets it when it switches
#endif

}  // namespace core

// In a program compiled without NDEBUG the use of a local channel from a second scheduler or thread is found where one party waits for the
// other (rule 11.2): BadUse where it can be raised, else the program stops.
#ifndef WEFT_CHECK_LOCAL
#if __STDC_HOSTED__ && !defined(NDEBUG)
#define WEFT_CHECK_LOCAL 1
#else
#define WEFT_CHECK_LOCAL 0
#endif
#endif

struct Local {
  using Lock = core::NoLock;
  using Count = core::Count<false>;
  static constexpr bool shared = false;
  [[gnu::always_inline]] static void wake(core::Waker* w) noexcept {
#if WEFT_CHECK_LOCAL
    if (w->ops->home ? w->ops->home != core::current_run_queue : !core::current_run_queue) [[unlikely]]
      prim::fatal(
          "an end of a local channel went on another scheduler or thread than the process that waits at it (rule 11.2); "
          "make the channel weft::Shared");
#endif
    core::current_run_queue->push(w);
  }
};

struct Shared {
#if WEFT_PRIM_BIASED
  using Lock = core::BiasedLock;
#else
  using Lock = core::SpinLock;
#endif
  using Count = core::Count<true>;
  static constexpr bool shared = true;
  [[gnu::always_inline]] static void wake(core::Waker* w) noexcept {
    if (w->ops->home && w->ops->home == core::current_run_queue)
      w->ops->home->push(w);
    else
      w->ops->wake(w);
  }
};

// Shared, with one reader end and one writer end, over a buffer: one2one.hpp (rule 1.8).
struct OneToOne : Shared {
  static constexpr bool one_to_one = true;
};

}  // namespace weft
