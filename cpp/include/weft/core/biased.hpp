// A lock that costs its owner no atomic read-modify-write. The lock is biased to the thread that
// takes it first, until another thread takes it. Afterwards it may become biased a few times more,
// each time to a thread that then uses it alone. So when another scheduler steals a process, the
// locks of that process's channels become biased to the thief.
//
// Source: asymmetric Dekker locks, Dice, Moir and Scherer, "Quickly reacquirable locks" (2003);
// Linux membarrier(2); the fences are those of P1202, asymmetric_thread_fence_light and _heavy.
//
//   nobody's ──lock_slow() of a thread with an identity──────────────► biased(0, me)
//      ├─────kForeignUses uses by threads without an identity────────► plain(0)
//      └─────lock_slow() while no lock may be biased: bias_allowed()─► plain(0)
//   plain(i) ──one thread comes bias_streak times in a row: count()──► biased(i, me)
//   biased(i, me) ──lock_slow() of another: revoke()─────────────────► plain(i + 1)
//   plain(kBiases): the lock stays plain for good
//
// word_    the ordinary spin lock; only its holder writes owner_, state_ and the bias itself
// held_    one flag for each bias, written by that bias's owner only: the owner has the lock, or is
//          about to check whether it may take it
// state_   i < kBiases: the holder holds held_[i]. Otherwise the holder holds word_, and the part
//          above kPlain is a count: of uses by threads without an identity while the lock is
//          nobody's, then of how often in a row the thread named by owner_ has taken the lock
//
// Mutual exclusion. The owner stores held = 1, passes a light fence and loads owner_; the revoker
// stores owner_ = plain, passes a heavy fence and loads held. A light and a heavy fence together
// order as two seq_cst fences do, so not both can miss the other's store (Dekker): either the owner
// sees that its bias is revoked, resets held and queues for word_, or the revoker sees held and
// waits until the owner has left. Before the revoker has seen held == 0 it changes no state_ and
// enters nothing. On the machine, membarrier interrupts every running thread of the program: what
// the owner stored before is visible after it, and what the owner loads after it is fresh. A former
// owner that is late may still write its held at any time, so each bias has a held_ of its own. No
// value of owner_ that says "biased" is ever used again. A thread that saw "plain" and then took
// word_ reads owner_ again, because the lock may have become biased meanwhile.
//
// Happens-before. For the owner it follows from program order. From the owner to the revoker:
// unlock() releases held = 0, and the revoker, which acquires held, reads that store or a later
// one. (An older value would need the owner's held = 1 to be after the fence in its order, and then
// the owner's load of owner_ sees the revocation.) Among all other threads it follows from word_. A
// thread's identity is never given to another thread.
//
// unlock() uses state_, which names a bias only while that bias is in force (unlock_cheaply() uses
// the held that lock_cheaply() has set). If the owner is inside by held, no other thread has
// changed state_: a thread that changes state_ waits for held == 0 first.
#pragma once
#include <cstdint>

#include "../prim.hpp"

namespace weft::inline WEFT_ABI::core {

class BiasedLock {
 public:
  [[gnu::always_inline]] void lock() noexcept {
    const std::uint32_t me = prim::bias_self();
    if (is_plain(owner_.load(std::memory_order_relaxed))) {
      if (word_.exchange(1, std::memory_order_acquire) == 0) return held_word(me);
    } else if (lock_cheaply()) [[likely]] {
      return;
    }
    lock_slow(me);
  }

  // If the lock is biased to the calling thread, locks it, and returns what unlock_cheaply() needs
  // to unlock it; otherwise returns null.
  using Held = prim::atomic<std::uint8_t>*;
  [[gnu::always_inline]] Held lock_cheaply() noexcept {
    const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
    if (((owner ^ prim::bias_self()) & ~kWhich) != 0) [[unlikely]]
      return nullptr;
    prim::atomic<std::uint8_t>& held = held_[owner >> kShift];
    prim::light_store(held, std::uint8_t{1});
    if (owner_.load(std::memory_order_relaxed) == owner) [[likely]]
      return &held;
    held.store(0, std::memory_order_relaxed);
    return nullptr;
  }
  [[gnu::always_inline]] static void unlock_cheaply(Held held) noexcept {
    held->store(0, std::memory_order_release);
  }

  [[gnu::always_inline]] void unlock() noexcept {
    if (state_ < kPlain)
      held_[state_].store(0, std::memory_order_release);
    else
      word_.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::uint8_t kBiases = 6;
  // owner_ holds one of two things: either an identity (below prim::bias_identities_end) and the
  // number of the bias, or kIsPlain, the identity of the thread that last took the lock, and the
  // number of the next bias.
  static constexpr std::uint32_t kNobody = 0, kIsPlain = 1u << 31, kShift = 28,
                                 kWhich = 7u << kShift;
  // The values of state_.
  static constexpr std::uint8_t kPlain = kBiases;
  // Ends are made and dropped outside processes too, so the lock becomes plain only after several
  // uses by threads without an identity.
  static constexpr std::uint8_t kForeignUses = 16;
  static constexpr std::uint8_t kStreak = kPlain + prim::bias_streak;
  static_assert(kStreak > kPlain);

  static bool is_plain(std::uint32_t owner) noexcept { return owner >= kIsPlain; }
  static std::uint32_t which(std::uint32_t owner) noexcept { return (owner & kWhich) >> kShift; }

  [[gnu::noinline]] void lock_slow(std::uint32_t me) noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::back_off(round++);
    held_word(me);
  }

  // Called with word_ held. If the lock is biased, that is not enough, and the bias is revoked.
  // When this function returns, the caller has the lock.
  [[gnu::always_inline]] void held_word(std::uint32_t me) noexcept {
    const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
    if (is_plain(owner)) [[likely]]
      return count(owner, me);
    if (owner != kNobody) {
      revoke(owner);
      return;
    }
    if (me == prim::no_bias ? ++state_ == kPlain + kForeignUses : !prim::bias_allowed())
      become_plain(kIsPlain);
    if (me != prim::no_bias && owner_.load(std::memory_order_relaxed) == kNobody) become(me, 0);
  }

  [[gnu::noinline]] void become(std::uint32_t me, std::uint32_t i) noexcept {
    state_ = static_cast<std::uint8_t>(i);
    held_[i].store(1, std::memory_order_relaxed);
    owner_.store(me | i << kShift, std::memory_order_relaxed);
    word_.store(0, std::memory_order_release);  // A revoker acquires word_, and so sees held.
  }
  void become_plain(std::uint32_t owner) noexcept {
    owner_.store(owner, std::memory_order_relaxed);
    state_ = kPlain;
  }

  // Counts how often in a row the thread `me` has taken the lock.
  void count(std::uint32_t owner, std::uint32_t me) noexcept {
    const std::uint32_t i = which(owner);
    if (i == kBiases) return;
    if (((owner ^ me) & ~kWhich) == kIsPlain) {
      if (++state_ == kStreak) [[unlikely]]
        become(me, i);
    } else {
      become_plain(kIsPlain | i << kShift | (me == prim::no_bias ? 0 : me));
    }
  }

  // Ends a bias. Called with word_ held, once for each bias.
  [[gnu::noinline]] void revoke(std::uint32_t owner) noexcept {
    owner_.store(kIsPlain | (which(owner) + 1) << kShift, std::memory_order_relaxed);
    prim::heavy_fence();
    for (unsigned round = 0; held_[state_].load(std::memory_order_acquire) != 0; ++round)
      prim::pause(round);
    state_ = kPlain;
    prim::bias_revoked();
  }

  prim::atomic<std::uint32_t> owner_{kNobody};
  prim::atomic<std::uint8_t> held_[kBiases] = {};
  prim::atomic<std::uint8_t> word_{0};
  std::uint8_t state_ = kPlain;
};

}  // namespace weft::inline WEFT_ABI::core
