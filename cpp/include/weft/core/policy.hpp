// Local or shared: whether the parties of a channel are on one scheduler or anywhere in the address
// space.
//
// Local costs no atomic operation. Shared takes a spin lock per operation: held for a few tens of
// instructions, never across user code (rule 12), never two of them at once (invariant 1 of
// waiter.hpp). As long as one scheduler alone uses a channel its lock is biased to it (biased.hpp).
#pragma once
#include <cstdint>

#include "../prim.hpp"
#include "waiter.hpp"
#if WEFT_PRIM_BIASED
#include "biased.hpp"
#endif

namespace weft::inline WEFT_ABI {

namespace core {

// A lock has a second pair, for a fast path that is written out at each place where it is used:
// lock_cheaply() may refuse (null), and what it gives is handed back to unlock_cheaply().
class NoLock {
 public:
  void lock() noexcept {}
  void unlock() noexcept {}
  using Held = NoLock*;
  Held lock_cheaply() noexcept { return this; }
  static void unlock_cheaply(Held) noexcept {}
};

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::pause(round++);
  }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }
  using Held = SpinLock*;
  Held lock_cheaply() noexcept {
    lock();
    return this;
  }
  static void unlock_cheaply(Held held) noexcept { held->unlock(); }

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

// A scheduler's queue of what is runnable. Parties of a local channel are all on the scheduler that
// runs now, so waking one is a push.
//
// A communication on one core is as quick as its stores: a core completes one a cycle, or two to
// one cache line. So a push is two, and what says "empty" is where the next one's address goes, not
// a null at the end.
//
// Invariants
//  1 tail_ is where the address of the next one to be pushed goes: the link of the last one, or
//    head_ if there is nobody.
//  2 While it is empty head_ means nothing; nor does the link of the last one, ever.
//  3 While it is advanced (advance() until rest_at()) head_ means nothing either: only push() and
//    empty() may be called.
class RunQueue {
 public:
  RunQueue() = default;
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  bool empty() const noexcept { return tail_ == &head_; }
  Waker* front() const noexcept { return empty() ? nullptr : static_cast<Waker*>(head_); }
  void push(Waker* w) noexcept {
    *tail_ = w;
    tail_ = &w->next;
  }
  Waker* pop() noexcept {
    Waker* const w = static_cast<Waker*>(head_);
    if (Waker* const next = advance(w)) rest_at(next);
    return w;
  }
  // All of `other`, which is empty then.
  void append(RunQueue& other) noexcept {
    if (other.empty()) return;
    *tail_ = other.head_;
    tail_ = other.tail_;
    other.tail_ = &other.head_;
  }
  // All, linked, after the last one a null; it is empty then.
  Waker* release() noexcept {
    *tail_ = nullptr;
    Waker* const all = static_cast<Waker*>(head_);
    tail_ = &head_;
    return all;
  }

  // For a loop that keeps the head in a register while it runs one after another: take out w, the
  // head. Who follows; null: nobody, and the queue is empty.
  Waker* advance(Waker* w) noexcept {
    if (tail_ == &w->next) {
      tail_ = &head_;
      return nullptr;
    }
    return next_of(w);
  }
  void rest_at(Waker* head) noexcept { head_ = head; }

 private:
  Link* head_ = nullptr;
  Link** tail_ = &head_;
};

#if __STDC_HOSTED__
inline constinit thread_local RunQueue* current_run_queue = nullptr;
#else
// one core; a platform with more sets it when it switches
inline constinit RunQueue* current_run_queue = nullptr;
#endif

}  // namespace core

// With WEFT_CHECKS the use of a local channel from a second scheduler or thread is found where one
// party waits for the other (rule 11.2): BadUse where it can be raised, else the program stops.
#if __STDC_HOSTED__
#define WEFT_CHECK_LOCAL WEFT_CHECKS
#else
#define WEFT_CHECK_LOCAL 0
#endif

struct Local {
  using Lock = core::NoLock;
  using Count = core::Count<false>;
  static constexpr bool shared = false;
  [[gnu::always_inline]] static void wake(core::Waker* w) noexcept {
#if WEFT_CHECK_LOCAL
    if (w->ops->home ? w->ops->home != core::current_run_queue : !core::current_run_queue)
        [[unlikely]]
      prim::fatal(
          "an end of a local channel went on another scheduler or thread than the process that "
          "waits at it (rule 11.2); "
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

}  // namespace weft::inline WEFT_ABI
