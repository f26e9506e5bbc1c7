// What a channel moves in place of a value. A channel asks of a value's type how to move and how to
// destroy it, and nothing else; for a number, an enumeration or a pointer that is a copy of its
// bits. So all those of one size share one engine, which is compiled once: `int` and `float` here,
// `double` and `long` there.
//
// A scalar alone: to ask anything of a class it must be complete, and a struct may have an end of a
// channel of itself in it.
#pragma once
#include <cstddef>
#include <type_traits>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::core {

template <std::size_t N>
struct Bits {
  alignas(N) unsigned char bytes[N];

  // By memcpy: what is there is an object of another type.
  Bits(Bits&& o) noexcept { __builtin_memcpy(bytes, o.bytes, N); }
};

template <class T, bool Scalar = std::is_scalar_v<T>>
struct StoredAs {
  using type = T;
};
template <class T>
struct StoredAs<T, true> {
  static constexpr std::size_t n = sizeof(T);
  static constexpr bool word = (n == 1 || n == 2 || n == 4 || n == 8) && alignof(T) == n;
  using type = std::conditional_t<word, Bits<word ? n : 1>, T>;
};
// What is stored already is stored as it is.
template <class T>
using Stored = typename StoredAs<T>::type;

}  // namespace weft::inline WEFT_ABI::core
