// A lock that costs its first owner no atomic read-modify-write: it is biased to the thread that takes it first, until another one comes.
//
// Source: asymmetric Dekker locks, Dice, Moir and Scherer, "Quickly reacquirable locks" (2003); Linux membarrier(2); the fences are those
// of P1202, asymmetric_thread_fence_light and _heavy.
//
//   nobody's ──lock_slow() of a thread with an identity──► biased(me) ──lock_slow() of another: revoke()──► plain
//      └────the kStrangers-th lock_slow() of threads without one──────────────────────────────────────────────► plain (for good)
//
// word_   the ordinary spin lock; owner_, plain_ and strangers_ are written by its holder only
// held_   written by the owner only: it is inside, or about to look whether it may be
// plain_  the holder holds word_, not held_
//
// Mutual exclusion. The owner stores held_ = 1, passes a light fence and loads owner_; the revoker stores owner_ = kPlain, passes a heavy
// fence and loads held_. A light and a heavy fence together order as two seq_cst fences do, so not both can miss the other's store
// (Dekker): either the owner sees that it is revoked, takes held_ back and queues for word_, or the revoker sees held_ and waits until the
// owner has left. Before the revoker has seen held_ == 0 it sets no plain_ and enters nothing. On the machine: membarrier interrupts every
// running thread of the program; what the owner stored before is visible after it, what the owner loads after it is fresh.
//
// Happens before. To the owner itself by program order. From the owner to the revoker: unlock() releases held_ = 0, and the revoker, which
// acquires held_, reads that store or a later one: an older value would need the owner's held_ = 1 to be after the fence in its order, and
// then its load of owner_ sees the revocation. Among the rest by word_. A thread's identity is never given to another thread.
//
// unlock() by plain_: it is true but while a bias is in force. If the owner is inside by held_, nobody has set plain_ (who does has waited
// for held_ == 0).
#pragma once
#include <cstdint>

#include "../prim.hpp"

// Mutants of the lock, for the explorer (cpp/tests/explore_biased.hpp). 0 is the real thing.

namespace weft::core {

class BiasedLock {
 public:
  [[gnu::always_inline]] void lock() noexcept {
    const std::uint32_t me = prim::bias_self();
    if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
      prim::light_store(held_, std::uint8_t{1});  // and a light fence
      if (WEFT_MUTANT == 9 || owner_.load(std::memory_order_relaxed) == me) [[likely]]
        return;
      held_.store(0, std::memory_order_relaxed);
    } else if (owner_.load(std::memory_order_relaxed) == kPlain && word_.exchange(1, std::memory_order_acquire) == 0) {
      return;
    }
    lock_slow(me);
  }

  // If the bias is to the calling thread; and what ends that.
  [[gnu::always_inline]] bool lock_cheaply() noexcept {
    const std::uint32_t me = prim::bias_self();
    if (owner_.load(std::memory_order_relaxed) != me) [[unlikely]]
      return false;
    prim::light_store(held_, std::uint8_t{1});
    if (WEFT_MUTANT == 9 || owner_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    held_.store(0, std::memory_order_relaxed);
    return false;
  }
  [[gnu::always_inline]] void unlock_cheaply() noexcept { held_.store(0, std::memory_order_release); }

  [[gnu::always_inline]] void unlock() noexcept {
    if (!plain_) [[likely]]
      held_.store(0, std::memory_order_release);
    else
      word_.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kNobody = 0, kPlain = prim::no_bias - 1;
  static constexpr std::uint8_t kStrangers = 16;  // ends are made and dropped by threads that run no processes: so many are no sign

  [[gnu::noinline]] void lock_slow(std::uint32_t me) noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::back_off(round++);
    const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
    if (owner == kPlain) [[likely]]
      return;
    if (owner != kNobody) return revoke();
    if (me == prim::no_bias ? ++strangers_ == kStrangers : !prim::bias_allowed()) owner_.store(kPlain, std::memory_order_relaxed);
    if (me == prim::no_bias || owner_.load(std::memory_order_relaxed) == kPlain) return;
    plain_ = false;
    held_.store(1, std::memory_order_relaxed);
    owner_.store(me, std::memory_order_relaxed);
    word_.store(0, std::memory_order_release);  // a revoker acquires it, and so sees held_
  }

  // With word_ held. Once in the life of the lock, if ever.
  void revoke() noexcept {
    owner_.store(kPlain, std::memory_order_relaxed);
    if (WEFT_MUTANT != 10) prim::heavy_fence();
    if (WEFT_MUTANT != 11)
      for (unsigned round = 0; held_.load(std::memory_order_acquire) != 0; ++round) prim::pause(round);
    plain_ = true;
    prim::bias_revoked();
  }

  prim::atomic<std::uint32_t> owner_{kNobody};
  prim::atomic<std::uint8_t> held_{0};
  prim::atomic<std::uint8_t> word_{0};
  bool plain_ = true;
  std::uint8_t strangers_ = 0;  // (word_)
};

}  // namespace weft::core
