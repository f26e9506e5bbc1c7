// The types that a channel moves in place of a value's own type. A channel needs to know about a
// value's type only how to move and how to destroy it. For a number, an enumeration or a pointer, a
// move is a copy of the bits. So all such types of one size share one engine, which is compiled
// once: `int` and `float` share an engine, and so do `double` and `long`.
//
// This holds only for scalars: a class must be complete before its properties can be tested, and a
// struct may contain an end of a channel of itself.
#pragma once
#include <cstddef>
#include <type_traits>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::core {

template <std::size_t N>
struct Bits {
  alignas(N) unsigned char bytes[N];

  // The copy is by memcpy, because the bytes are an object of another type.
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
// Stored<T>: the type that is stored for T. Stored<Stored<T>> is the same.
template <class T>
using Stored = typename StoredAs<T>::type;

}  // namespace weft::inline WEFT_ABI::core
