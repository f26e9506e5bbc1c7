// A lock that costs its owner almost nothing, and costs its rare visitors a fence in every thread
// of the program. While visits are frequent, the lock costs the owner a fence of its own instead,
// and costs the visitors none.
//
//   owner:   inside := 1; light fence, or a full one; visitor? ──no──► in ──leave()──► inside := 0
//                                        └──yes──► inside := 0, wait until visitor == 0, again
//   visitor: visitors' lock; visitor := 1; heavy fence, or none; wait until inside == 0 ──► in
//            in ──depart()──► visitor := 0
//
//   The fence that state_ names (bits kFence):
//     light ──announce_renewing(), heavy fence──► renewed ──own_fence()──► counting
//       ▲                                            ▲──announce_renewing()────┤
//       └────────────────the prim::own_fences-th own_fence()───────────────────┘
//
// Invariant: when an owner and a visitor arrive at once, at least one of them sees the other,
// because there is a fence between the owner's two steps (the owner's own fence, or the visitor's
// heavy fence, which replaces it). (Dekker's entry protocol with an asymmetric fence: Dice, Huang,
// Yang, "Asymmetric Dekker synchronization", 2001.) state_ says in one word whether there is a
// visitor, which of the two fences is in use, and what notices there are; in the usual case state_
// is 0. Only the owner makes the fence light again:
// - A visitor that finds the fence light makes it renewed, announces itself by the same atomic
//   operation, and then passes a heavy fence. If the owner has nevertheless read 0, it read that
//   before the heavy fence. The owner's inside := 1 was earlier still, so this visitor and all
//   later ones see it.
// - A visitor that finds the fence not light announces itself by an atomic operation on state_. If
//   the owner makes the fence light later, also by an atomic operation on state_, the owner's next
//   check sees the visitor; and a later visitor finds the fence light.
// Where the system has no heavy fence, the owner always passes a full fence.
//
// A heavy fence interrupts other CPUs. That takes microseconds, about ten on a virtual machine: as
// long as hundreds of fences of the owner's own. After a visit the owner passes that many fences of
// its own. So the workers of a farm, which often steal from each other and have few but long steps,
// cause no heavy fences.
#pragma once
#include "../core/policy.hpp"

namespace weft::inline WEFT_ABI::runtime {

class OwnersLock {
 public:
  // What other threads leave for the owner, beside the lock's own bits. While there is
  // a notice, enter_cheaply() returns false.
  using Notices = std::uint32_t;
  static constexpr Notices kLook = 8;   // the owner must look for signals and cancellations
  static constexpr Notices kIdle = 16;  // some other worker is idle

  void enter() noexcept {
    while (!entered()) await_visitor();
  }
  // Enters the lock unless there is a visitor, or was one recently, or there is a notice. If
  // enter_cheaply() returns false, the caller must call enter().
  [[gnu::always_inline]] bool enter_cheaply() noexcept {
    prim::light_store(inside_, std::uint8_t{1});
    if (state_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return true;
    inside_.store(0, std::memory_order_release);
    return false;
  }
  void leave() noexcept { inside_.store(0, std::memory_order_release); }

  // Leaves a notice for the owner; any thread may call this.
  void notify(Notices n) noexcept {
    if ((state_.load(std::memory_order_seq_cst) & n) != n)
      state_.fetch_or(n, std::memory_order_seq_cst);
  }
  // Called by the owner.
  bool notified(Notices n) const noexcept {
    return (state_.load(std::memory_order_relaxed) & n) != 0;
  }
  // Called by the owner, before it checks what the notice is about.
  void take_notice(Notices n) noexcept { state_.fetch_and(~n, std::memory_order_seq_cst); }

  // Enters the lock as a visitor. There is one visitor at a time, and the owner is never a visitor.
  // Returns false if there is another visitor.
  bool try_visit() noexcept {
    if (!try_book()) return false;
    if (announce_renewing()) prim::heavy_fence();
    await_owner();
    return true;
  }
  void depart() noexcept {
    state_.fetch_and(~kVisitor, std::memory_order_release);
    unbook();
  }

  // The steps of try_visit(), for a thread that visits several locks at once. That thread books all
  // locks, announces itself at all of them, passes one fence, and waits for each owner.
  bool try_book() noexcept {
    return booked_.load(std::memory_order_relaxed) == 0 &&
           booked_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unbook() noexcept { booked_.store(0, std::memory_order_release); }
  void announce() noexcept { state_.fetch_or(kVisitor, std::memory_order_seq_cst); }
  static void fence() noexcept {
    if (prim::asymmetric()) prim::heavy_fence();
  }
  void await_owner() noexcept {
    for (unsigned round = 0; inside_.load(std::memory_order_seq_cst) != 0;) prim::pause(round++);
  }

 private:
  // The bits of state_: a visitor, and in two bits which fence is in use. 0 means that the owner's
  // fence is light, and that nobody wants anything.
  static constexpr std::uint32_t kVisitor = 1, kFence = 6;
  static constexpr std::uint32_t light = 0, renewed = 2, counting = 4, always = 6;

  // Sets inside; returns false if there is a visitor.
  bool entered() noexcept {
    prim::light_store(inside_, std::uint8_t{1});
    if ((state_.load(std::memory_order_relaxed) & kFence) != light) own_fence();
    return (state_.load(std::memory_order_seq_cst) & kVisitor) == 0;
  }
  void own_fence() noexcept {
    inside_.exchange(1, std::memory_order_seq_cst);
    std::uint32_t s = state_.load(std::memory_order_relaxed);
    if ((s & kFence) == renewed) {
      // If this fails, a notice or a visitor has come meanwhile: the owner counts the next time.
      if (state_.compare_exchange_strong(s, (s & ~kFence) | counting, std::memory_order_seq_cst))
        left_ = prim::own_fences;
    } else if ((s & kFence) == counting && --left_ == 0) {
      if (!state_.compare_exchange_strong(s, s & ~kFence, std::memory_order_seq_cst)) left_ = 1;
    }
  }
  void await_visitor() noexcept {
    inside_.store(0, std::memory_order_release);
    for (unsigned round = 0; (state_.load(std::memory_order_relaxed) & kVisitor) != 0;)
      prim::pause(round++);
  }

  // Announces a visitor, after whom the owner is to pass fences of its own. Returns whether the
  // visitor must pass a heavy fence now, because the owner's fence was light.
  bool announce_renewing() noexcept {
    for (std::uint32_t s = state_.load(std::memory_order_relaxed);;) {
      const std::uint32_t fence = (s & kFence) == always ? always : renewed;
      if (state_.compare_exchange_strong(s, (s & ~kFence) | fence | kVisitor,
                                         std::memory_order_seq_cst))
        return (s & kFence) == light;
    }
  }

  prim::atomic<std::uint32_t> state_{prim::asymmetric() ? light : always};
  prim::atomic<std::uint8_t> inside_{0};
  prim::atomic<std::uint8_t> booked_{0};
  // How many fences the owner has to pass before its fence becomes light. Only the owner uses
  // left_.
  std::uint32_t left_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
