// Memory in big pieces. Where many thousands of processes, channels or guards are visited one after
// another, most of the time is spent on address translation. With pages of 2 MiB (Linux, madvise) a
// select over 65,536 channels takes half the time.
#pragma once
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

inline constexpr std::size_t kLine = 64;  // a cache line
inline constexpr std::size_t kShort = 16 * kLine;
// in bytes; the size on x86-64, and usually on aarch64
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Turns memory that is already in use into huge pages, as far as the memory fills them, so that
// none is added. The call is only a request. If the system does not grant it (before Linux 6.1, or
// when there is no free huge page), nothing changes.
inline void make_huge([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  constexpr int collapse = 25;  // MADV_COLLAPSE, which older headers do not name
  if (const std::size_t whole = bytes / kHugePage * kHugePage; whole > 0)
    madvise(p, whole, collapse);
#endif
}

// An array whose length is fixed when it is made, for elements that cannot be moved.
template <class T>
class FixedArray {
 public:
  FixedArray() noexcept = default;
  explicit FixedArray(std::size_t n)
      : at_(static_cast<T*>(::operator new(n * sizeof(T), alignment(n)))), n_(n) {
    static_assert(std::is_nothrow_default_constructible_v<T>);
    for (std::size_t i = 0; i < n; ++i) ::new (static_cast<void*>(at_ + i)) T();
    make_huge(at_, n * sizeof(T));
  }
  FixedArray(FixedArray&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)), n_(std::exchange(o.n_, 0)) {}
  FixedArray& operator=(FixedArray o) noexcept {
    std::swap(at_, o.at_);
    std::swap(n_, o.n_);
    return *this;
  }
  ~FixedArray() {
    if (!at_) return;
    for (std::size_t i = n_; i > 0;) at_[--i].~T();
    ::operator delete(static_cast<void*>(at_), alignment(n_));
  }
  T* get() const noexcept { return at_; }
  T& operator[](std::size_t i) const noexcept { return at_[i]; }

 private:
  // A short array is aligned as malloc() aligns. To align it to a cache line, glibc would take a
  // larger block and give the rest back, which would cost a quarter of the instructions of a select
  // that is used once.
  static std::align_val_t alignment(std::size_t n) noexcept {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    const std::size_t bytes = n * sizeof(T);
    return std::align_val_t(bytes < kShort      ? __STDCPP_DEFAULT_NEW_ALIGNMENT__
                            : bytes < kHugePage ? kLine
                                                : kHugePage);
  }
  T* at_ = nullptr;
  std::size_t n_ = 0;
};

}  // namespace weft::inline WEFT_ABI::runtime
