// A lock that costs its owner next to nothing, and its rare visitors a fence in every thread of the program.
//
//   owner:   inside := 1; light fence; visitor? ──no──► in ──leave()──► inside := 0
//                                         └──yes──► inside := 0, wait until the visitor has gone, again
//   visitor: visitors' lock; visitor := 1; heavy fence; wait until inside == 0 ──► in ──depart()──► visitor := 0
//
// Invariant: of an owner and a visitor that come at once at least one sees the other, since the heavy fence stands for a fence between the
// owner's two steps. (Dekker's entry protocol with an asymmetric fence: Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001.)
// Where the system has no such fence the owner's first step is a full one itself.
#pragma once
#include "../core/policy.hpp"

namespace weft::runtime {

class OwnersLock {
 public:
  [[gnu::always_inline]] void enter() noexcept {
    if (!entered()) [[unlikely]]
      enter_slowly();
  }
  void leave() noexcept { inside_.store(0, std::memory_order_release); }

  // One visitor at a time, other than the owner.
  bool try_visit() noexcept {
    if (!try_book()) return false;
    announce();
    fence();
    await_owner();
    return true;
  }
  void depart() noexcept {
    visitor_.store(0, std::memory_order_release);
    unbook();
  }

  // The same in steps, for one who visits several at once: book all, announce all, one fence, await each.
  bool try_book() noexcept { return booked_.load(std::memory_order_relaxed) == 0 && booked_.exchange(1, std::memory_order_acquire) == 0; }
  void unbook() noexcept { booked_.store(0, std::memory_order_release); }
  void announce() noexcept { visitor_.exchange(1, std::memory_order_seq_cst); }
  static void fence() noexcept {
    if (prim::asymmetric()) prim::heavy_fence();
  }
  void await_owner() noexcept {
    for (unsigned round = 0; inside_.load(std::memory_order_seq_cst) != 0;) prim::pause(round++);
  }

 private:
  // Unless there is a visitor.
  [[gnu::always_inline]] bool entered() noexcept {
    if (asymmetric_) [[likely]] {
      inside_.store(1, std::memory_order_relaxed);
      prim::light_fence();
    } else {
      inside_.exchange(1, std::memory_order_seq_cst);
    }
    return visitor_.load(std::memory_order_seq_cst) == 0;
  }
  [[gnu::noinline]] void enter_slowly() noexcept {
    do {
      inside_.store(0, std::memory_order_release);
      for (unsigned round = 0; visitor_.load(std::memory_order_relaxed) != 0;) prim::pause(round++);
    } while (!entered());
  }

  const bool asymmetric_ = prim::asymmetric();
  prim::atomic<std::uint8_t> inside_{0};
  prim::atomic<std::uint8_t> visitor_{0};
  prim::atomic<std::uint8_t> booked_{0};
};

}  // namespace weft::runtime
