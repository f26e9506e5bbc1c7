// A lock that costs its owner almost nothing, and costs its rare visitors a fence in every thread
// of the program. While visits are frequent, the lock costs the owner a fence of its own instead,
// and costs the visitors none.
//
//   owner:   inside := 1; light fence, or a full one; visitor? ──no──► in ──leave()──► inside := 0
//                                        └──yes──► inside := 0, wait until visitor == 0, again
//   visitor: visitors' lock; visitor := 1; heavy fence, or none; wait until inside == 0 ──► in
//            in ──depart()──► visitor := 0
//
//   fences_: owners_fence() of a visitor ──► renewed ──own_fence()──► counting ──the prim::own_fences-th own_fence()──► light
//                ▲ from light, with a heavy fence                        │ owners_fence(): no fence
//                └───────────────────────────────────────────────────────┘
//
// Invariant: when an owner and a visitor arrive at once, at least one of them sees the other,
// because there is a fence between the owner's two steps (the owner's own fence, or the visitor's
// heavy fence, which replaces it). (Dekker's entry protocol with an asymmetric fence: Dice, Huang,
// Yang, "Asymmetric Dekker synchronization", 2001.) fences_ says which of the two fences is in use,
// and only the owner makes fences_ light again:
// - A visitor that finds fences_ light makes it renewed and then passes a heavy fence. If the owner
//   has nevertheless read `light`, it read that before the heavy fence. The owner's inside := 1 was
//   earlier still, so this visitor and all later ones see it.
// - A visitor that finds fences_ not light does an atomic operation on fences_. If the owner makes
//   fences_ light later, also by an atomic operation, the owner's next check sees this visitor's
//   visitor := 1; and a later visitor finds fences_ light.
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
  void enter() noexcept {
    while (!entered()) await_visitor();
  }
  // Enters the lock unless there is a visitor, or was one recently. If enter_cheaply() returns
  // false, the caller must call enter().
  [[gnu::always_inline]] bool enter_cheaply() noexcept {
    prim::light_store(inside_, std::uint8_t{1});
    if (fences_.load(std::memory_order_relaxed) == light &&
        visitor_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return true;
    inside_.store(0, std::memory_order_release);
    return false;
  }
  void leave() noexcept { inside_.store(0, std::memory_order_release); }

  // Enters the lock as a visitor. There is one visitor at a time, and the owner is never a visitor.
  // Returns false if there is another visitor.
  bool try_visit() noexcept {
    if (!try_book()) return false;
    announce();
    owners_fence();
    await_owner();
    return true;
  }
  void depart() noexcept {
    visitor_.store(0, std::memory_order_release);
    unbook();
  }

  // The steps of try_visit(), for a thread that visits several locks at once. That thread books all
  // locks, announces itself at all of them, passes one fence, and waits for each owner.
  bool try_book() noexcept {
    return booked_.load(std::memory_order_relaxed) == 0 &&
           booked_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unbook() noexcept { booked_.store(0, std::memory_order_release); }
  void announce() noexcept { visitor_.exchange(1, std::memory_order_seq_cst); }
  static void fence() noexcept {
    if (prim::asymmetric()) prim::heavy_fence();
  }
  void await_owner() noexcept {
    for (unsigned round = 0; inside_.load(std::memory_order_seq_cst) != 0;) prim::pause(round++);
  }

 private:
  enum : std::uint8_t { light, renewed, counting, always };

  // Sets inside; returns false if there is a visitor.
  bool entered() noexcept {
    prim::light_store(inside_, std::uint8_t{1});
    if (fences_.load(std::memory_order_relaxed) != light) own_fence();
    return visitor_.load(std::memory_order_seq_cst) == 0;
  }
  void own_fence() noexcept {
    inside_.exchange(1, std::memory_order_seq_cst);
    const std::uint8_t f = fences_.load(std::memory_order_relaxed);
    if (f == renewed) {
      fences_.store(counting, std::memory_order_relaxed);
      left_ = prim::own_fences;
    } else if (f == counting && --left_ == 0) {
      fences_.exchange(light, std::memory_order_seq_cst);
    }
  }
  void await_visitor() noexcept {
    inside_.store(0, std::memory_order_release);
    for (unsigned round = 0; visitor_.load(std::memory_order_relaxed) != 0;) prim::pause(round++);
  }

  // Passes the fence between a visitor's announcement and the visitor's check whether the owner is
  // inside.
  void owners_fence() noexcept {
    for (std::uint8_t f = fences_.load(std::memory_order_relaxed); f != always;) {
      if (f == light) {
        fences_.store(renewed, std::memory_order_relaxed);
        prim::heavy_fence();
        return;
      }
      if (fences_.compare_exchange_strong(f, renewed, std::memory_order_seq_cst)) return;
    }
  }

  prim::atomic<std::uint8_t> inside_{0};
  prim::atomic<std::uint8_t> visitor_{0};
  prim::atomic<std::uint8_t> fences_{prim::asymmetric() ? light : always};
  prim::atomic<std::uint8_t> booked_{0};
  // How many fences the owner has to pass before fences_ becomes light. Only the owner uses left_.
  std::uint32_t left_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
