// Storage for objects of which there are millions: coroutine frames and channels. Blocks of one
// size class (multiples of 8) are cut from slabs and reused through a free list. So a block has no
// header, its size is not rounded to 16, and a freed block is the next one given out. A chunk of
// slabs that is full becomes a huge page. The first slab of a class is cut at cache lines: a small
// network fits into the first-level cache, where a block that begins a line is quicker (2 ns in
// commstime).
//
// State under a class's lock: its free list and the slab being cut. Slabs are kept until the
// program ends (they are reused, not returned). A block that is larger than kLargest, or
// over-aligned, is allocated from the global heap. Under AddressSanitizer every block is, so that
// the sanitizer still sees every block.
#pragma once
#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "../core/policy.hpp"
#include "pages.hpp"

// WEFT_POOL_HEADER is a header of a checker, which defines class Pool with allocate(n) and
// release(p, n).
#if defined(WEFT_POOL_HEADER)
#include WEFT_POOL_HEADER
#else
namespace weft::inline WEFT_ABI::runtime {

struct PoolBlock {
  PoolBlock* next;
};
struct PoolClass {
  core::SpinLock lock;
  PoolBlock* free = nullptr;
  char* at = nullptr;
  std::size_t left = 0;
  bool packed = false;  // whether the first slab is used up
};

struct PoolSlabs {
  core::SpinLock lock;
  char* begin = nullptr;  // the chunk being cut
  char* at = nullptr;
  std::size_t left = 0;  // in bytes
};

class Pool {
 public:
  // in bytes; larger blocks are allocated from the global heap
  static constexpr std::size_t kLargest = WEFT_ASAN ? 0 : 512;

  [[gnu::noinline]] static void* allocate(std::size_t n) {
    if (n > kLargest) return ::operator new(n);
    Class& c = of(n);
    c.lock.lock();
    if (Block* b = c.free) {
      c.free = b->next;
      c.lock.unlock();
      return b;
    }
    return cut(c, n);
  }

  [[gnu::noinline]] static void release(void* p, std::size_t n) noexcept {
    if (n > kLargest) return ::operator delete(p);
    Class& c = of(n);
    Block* b = ::new (p) Block;
    c.lock.lock();
    b->next = c.free;
    c.free = b;
    c.lock.unlock();
  }

 private:
  static constexpr std::size_t kSlab = std::size_t{1} << 16;
  using Block = PoolBlock;
  using Class = PoolClass;
  static constexpr std::size_t lined(std::size_t n) noexcept {
    return (n + kLine - 1) / kLine * kLine;
  }
  static constexpr std::size_t rounded(std::size_t n) noexcept { return (n + 7) / 8 * 8; }
  // Cuts a block from the current slab. Called with c's lock held, and releases it.
  static void* cut(Class& c, std::size_t n);
  // Returns a new slab. Slabs are cut from chunks of the size of a huge page; a chunk becomes a
  // huge page when all of it has been given out.
  static char* new_slab();
  static inline constinit PoolSlabs slabs_{};
  static Class& of(std::size_t n) noexcept { return classes_[rounded(n) / 8]; }
  static inline constinit std::array<Class, kLargest / 8 + 1> classes_{};
};

}  // namespace weft::inline WEFT_ABI::runtime
#endif

namespace weft::inline WEFT_ABI::runtime {

// The base of a class whose objects are allocated from the pool by their exact type.
struct Pooled {
  static void* operator new(std::size_t n) { return Pool::allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { Pool::release(p, n); }
};

}  // namespace weft::inline WEFT_ABI::runtime
