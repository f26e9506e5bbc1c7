// Some objects in a row, which belong to somebody else: as much of std::span as every file that
// includes weft.hpp needs. The constructors of std::span ask for concepts of iterators, which takes
// g++ as long as sixty functions for the first type of objects.
#pragma once
#include <cstddef>

#include "config.hpp"

namespace weft::inline WEFT_ABI::runtime {

template <class T>
struct Row {
  T* first = nullptr;
  std::size_t n = 0;

  T* begin() const noexcept { return first; }
  T* end() const noexcept { return first + n; }
  std::size_t size() const noexcept { return n; }
  bool empty() const noexcept { return n == 0; }
  T& operator[](std::size_t i) const noexcept { return first[i]; }
};

}  // namespace weft::inline WEFT_ABI::runtime
