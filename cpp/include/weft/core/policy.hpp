// The policies of a channel, local and shared. They say whether its parties are all on one
// scheduler, or anywhere in the address space.
//
// A local channel costs no atomic operation. A shared channel takes a spin lock for each operation.
// The lock is held for a few tens of instructions, and never while user code runs (rule 12.1 names
// the exceptions). No party holds two such locks at once (invariant 1 of waiter.hpp). While only
// one scheduler uses a channel, the lock is biased to that scheduler (biased.hpp).
#pragma once
#include <cstdint>

#include "../prim.hpp"
#include "waiter.hpp"
#if WEFT_PRIM_BIASED
#include "biased.hpp"
#endif

namespace weft::inline WEFT_ABI {

namespace core {

// Each lock has a second pair of functions, for a fast path that is inlined at each use.
// lock_cheaply() can refuse, by returning null; otherwise its result is passed to unlock_cheaply().
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
#if __STDC_HOSTED__  // On a hosted system, the rare case is a call.
    if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      await();
#else
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::pause(round++);
#endif
  }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }
  using Held = SpinLock*;
  Held lock_cheaply() noexcept {
    lock();
    return this;
  }
  static void unlock_cheaply(Held held) noexcept { held->unlock(); }

 private:
  [[gnu::noinline]] void await() noexcept {
    unsigned round = 0;
    do
      while (word_.load(std::memory_order_relaxed) != 0) prim::pause(round++);
    while (word_.exchange(1, std::memory_order_acquire) != 0);
  }
  prim::atomic<std::uint8_t> word_{0};
};

// A count that several threads can change if Shared is true, and only one thread otherwise.
template <bool Shared>
class Count {
 public:
  constexpr explicit Count(std::uint32_t n = 0) noexcept : n_(n) {}
  std::uint32_t get() const noexcept { return n_.load(std::memory_order_relaxed); }
  // Returns whether the caller's reference is the only one left. If so, the caller sees everything
  // that the holders of the other references did.
  bool is_last() const noexcept { return n_.load(std::memory_order_acquire) == 1; }
  void up() noexcept {
    if constexpr (Shared)
      n_.fetch_add(1, std::memory_order_relaxed);
    else
      n_.store(get() + 1, std::memory_order_relaxed);
  }
  // Returns true if the count is 0 now.
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

// A scheduler's queue of runnable wakers. Parties of a local channel are all on the scheduler that
// runs now, so waking one is a push.
//
// A communication on one core takes as long as its stores: a core completes one store in a cycle,
// or two to one cache line. So a push is two stores. The place where the next address goes tells
// whether the queue is empty; a null at the end would be a third store.
//
// Invariants
//  1 tail_ points to where the address of the next waker goes: the link of the last waker, or head_
//    if the queue is empty.
//  2 While the queue is empty head_ means nothing. The link of the last waker never means anything.
//  3 While the queue is advanced (from advance() until rest_at()) head_ means nothing either: only
//    push() and empty() may be called.
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
  // The first waker, of a queue that is not empty; and its removal.
  Waker* head() const noexcept { return static_cast<Waker*>(head_); }
  void drop_head() noexcept {
    if (tail_ == &head_->next)
      tail_ = &head_;
    else
      head_ = head_->next;
  }
  // Appends all of `other`, which is empty afterwards.
  void append(RunQueue& other) noexcept {
    if (other.empty()) return;
    *tail_ = other.head_;
    tail_ = other.tail_;
    other.tail_ = &other.head_;
  }
  // Removes all wakers, and returns the first; they are linked, with a null after the last. The
  // queue is empty afterwards.
  Waker* release() noexcept {
    *tail_ = nullptr;
    Waker* const all = static_cast<Waker*>(head_);
    tail_ = &head_;
    return all;
  }

  // The next five functions are for code that keeps a list of the queue's wakers, and removes them
  // in any order (deciding.hpp). They must not be called while the queue is advanced.
  //
  // Returns where the address of the next waker goes. The result serves from_here() as long as the
  // last waker stays in the queue.
  Link** end() const noexcept { return tail_; }
  // Visits the wakers that were pushed since `at` was the end; all of them if `at` is null.
  template <class F>
  void from_here(Link** at, F&& f) noexcept {
    for (at = at ? at : &head_; at != tail_;) {
      Waker* const w = static_cast<Waker*>(*at);
      at = &w->next;
      f(w);
    }
  }
  void take(Waker* w) noexcept {
    Link** at = &head_;
    while (*at != w) at = &static_cast<Waker*>(*at)->next;
    take_at(at, w);
  }
  // Where the address of the first waker stands.
  Link** begin() noexcept { return &head_; }
  // Removes w, whose address stands at `at`: in the link of the waker before it, or at begin().
  // Both stores are made whether w is the last waker or not: a branch would be mispredicted often.
  void take_at(Link** at, Waker* w) noexcept {
    *at = w->next;
    tail_ = tail_ == &w->next ? at : tail_;
  }

  // Removes w, which is the head. Returns the next waker, or null if the queue is empty. advance()
  // serves a loop that keeps the head in a register while it runs wakers one after another.
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
// The queue of the only core. A platform with more cores sets this pointer when it switches cores.
inline constinit RunQueue* current_run_queue = nullptr;
#endif

}  // namespace core

// With WEFT_CHECKS, the use of a local channel from a second scheduler or thread is detected when
// one party waits for the other (rule 11.2). The detection throws BadUse where an exception can be
// thrown; otherwise the program stops.
#if __STDC_HOSTED__
#define WEFT_CHECK_LOCAL WEFT_CHECKS
#else
#define WEFT_CHECK_LOCAL 0
#endif

// A policy's wake() returns whether it put the waker on the run queue of this scheduler. Such
// wake-ups happen only as often as processes of this scheduler wait, so the caller need not count
// them in order to give way (rule 7.7).
struct Local {
  using Lock = core::NoLock;
  using Count = core::Count<false>;
  static constexpr bool shared = false;
  [[gnu::always_inline]] static bool wake(core::Waker* w) noexcept {
#if WEFT_CHECK_LOCAL
    if (w->ops->home ? w->ops->home != core::current_run_queue : !core::current_run_queue)
        [[unlikely]]
      prim::fatal(
          "an end of a local channel went on another scheduler or thread than the process that "
          "waits at it (rule 11.2); make the channel weft::Shared");
#endif
    core::current_run_queue->push(w);
    return true;
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
  [[gnu::always_inline]] static bool wake(core::Waker* w) noexcept {
    if (w->ops->home && w->ops->home == core::current_run_queue) {
      w->ops->home->push(w);
      return true;
    }
    w->ops->wake(w);
    return false;
  }
};

// The shared policy of a channel with one reader end and one writer end, over a buffer: one2one.hpp
// (rule 1.8).
struct OneToOne : Shared {
  static constexpr bool one_to_one = true;
};

}  // namespace weft::inline WEFT_ABI
