// The pool under exploration is an arena that every execution fills from its beginning, so that
// addresses (by which choices are ordered) do not depend on earlier executions. No block is used
// twice within an execution, so the use of a block after its release is detected.
#pragma once
#include <cstddef>
#include <cstring>

#include "engine.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Pool {
 public:
  static void* allocate(std::size_t n) {
    void* const p = arena_ + at_;
    at_ += (n + 63) / 64 * 64;
    if (at_ > sizeof arena_) explorer::engine().fail("the arena of the exploration is full");
    return p;
  }
  static void release(void* p, std::size_t n) noexcept { std::memset(p, 0xDD, n); }
  static void reset() noexcept { at_ = 0; }

 private:
  alignas(64) static inline unsigned char arena_[1 << 20];
  static inline std::size_t at_ = 0;
};

// Empties the pool. The object is made before any other object of an execution.
struct FreshPool {
  FreshPool() noexcept { Pool::reset(); }
};

}  // namespace weft::inline WEFT_ABI::runtime
