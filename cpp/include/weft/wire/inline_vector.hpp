// A sequence that stores up to N values in the object itself, so that usual sizes need no
// allocation.
//
// Invariant: `more_` is null until there are more than N values; from then on it holds all of them.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::wire {

template <class T, std::size_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  InlineVector() noexcept {}
  InlineVector(InlineVector&& o) noexcept
      : more_(std::exchange(o.more_, nullptr)), room_(std::exchange(o.room_, N)) {
    if (!more_) std::uninitialized_move_n(o.begin(), o.n_, here());
    n_ = o.n_;
    if (more_)
      o.n_ = 0;
    else
      o.clear();
  }
  InlineVector& operator=(InlineVector&&) = delete;
  ~InlineVector() {
    clear();
    if (more_) std::allocator<T>().deallocate(more_, room_);
  }

  std::size_t size() const noexcept { return n_; }
  bool empty() const noexcept { return n_ == 0; }
  T* begin() noexcept { return more_ ? more_ : here(); }
  T* end() noexcept { return begin() + n_; }
  const T* begin() const noexcept { return const_cast<InlineVector*>(this)->begin(); }
  const T* end() const noexcept { return begin() + n_; }
  T& operator[](std::size_t i) noexcept { return begin()[i]; }
  const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  T& back() noexcept { return end()[-1]; }
  const T& back() const noexcept { return end()[-1]; }

  // Appends a value. References to values are valid until the next push_back().
  T& push_back(T v) {
    if (n_ == room_) grow();
    T* const at = ::new (static_cast<void*>(end())) T(std::move(v));
    ++n_;
    return *at;
  }
  void clear() noexcept {
    std::destroy_n(begin(), n_);
    n_ = 0;
  }

 private:
  T* here() noexcept { return std::launder(reinterpret_cast<T*>(bytes_)); }
  void grow() {
    T* const wider = std::allocator<T>().allocate(2 * room_);
    std::uninitialized_move_n(begin(), n_, wider);
    std::destroy_n(begin(), n_);
    if (more_) std::allocator<T>().deallocate(more_, room_);
    more_ = wider;
    room_ *= 2;
  }

  alignas(T) std::byte bytes_[N * sizeof(T)];
  T* more_ = nullptr;
  std::size_t n_ = 0, room_ = N;
};

}  // namespace weft::inline WEFT_ABI::wire
