// Local or shared: whether the parties of a channel are on one scheduler or anywhere in the address space.
//
// Local costs no atomic operation. Shared takes a spin lock of one byte per operation: held for a few tens of instructions, never
// across user code (rule 12), never two of them at once (invariant 1 of waiter.hpp).
#pragma once
#include <cstdint>

#include "../prim.hpp"

namespace weft {

namespace core {

class NoLock {
 public:
  void lock() noexcept {}
  void unlock() noexcept {}
};

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0;)
      while (word_.load(std::memory_order_relaxed) != 0) prim::pause(round++);
  }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }

 private:
  prim::atomic<std::uint8_t> word_{0};
};

// A count that several threads may change (shared) or only one (local).
template <bool Shared>
class Count {
 public:
  explicit Count(std::uint32_t n = 0) noexcept : n_(n) {}
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

}  // namespace core

struct Local {
  using Lock = core::NoLock;
  using Count = core::Count<false>;
  static constexpr bool shared = false;
};

struct Shared {
  using Lock = core::SpinLock;
  using Count = core::Count<true>;
  static constexpr bool shared = true;
};

}  // namespace weft
