// Processes whose k-th output depends only on the k-th inputs: out[k] = f(in[k]), or f(in1[k],
// in2[k]).
//
// These processes end when an input or an output has ended, and pass poison on (rules 3.5, 4.3).
// Processes with two inputs read both in parallel.
#pragma once
#include <functional>
#include <sstream>
#include <string>

#include "ends.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

namespace detail {

template <class T, class U, class P, class Q, class F>
Process mapping(Reader<T, P> in, Writer<U, Q> out, F f) {
  while (auto v = co_await in.next()) co_await out.write(f(std::move(*v)));
}
template <class T, class U, class P, class Q, class F>
Process combining(Reader<T, P> in1, Reader<T, P> in2, Writer<U, Q> out, F f) {
  for (;;) {
    auto v = co_await par_read(in1, in2);
    co_await out.write(f(std::move(v[0]), std::move(v[1])));
  }
}
template <class T, class A, class B, class O, class F>
Process binary(A&& in1, B&& in2, O&& out, F f) {
  return combining(reader_of<T>(std::forward<A>(in1)), reader_of<T>(std::forward<B>(in2)),
                   writer_of<T>(std::forward<O>(out)), f);
}
// Returns the complement of the bits; for bool, the logical complement.
template <class T>
T complement(T v) {
  if constexpr (std::is_same_v<T, bool>)
    return !v;
  else
    return static_cast<T>(~v);
}
template <class T, class A, class B, class O, class F>
Process bitwise(A&& in1, B&& in2, O&& out, F f) {
  static_assert(std::is_integral_v<value_of<A>>,
                "weft: and_, or_, xor_, nand and nor are for whole numbers and bool");
  return binary<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                   [f](value_of<A> x, value_of<A> y) { return static_cast<value_of<A>>(f(x, y)); });
}

}  // namespace detail

// Copies its input: out[k] = in[k].
template <class T = void, class I, class O>
Process identity(I&& in, O&& out) {
  return detail::mapping(detail::reader_of<T>(std::forward<I>(in)),
                         detail::writer_of<T>(std::forward<O>(out)), std::identity())
      .named("identity");
}
// Computes out[k] = f(in[k]); the types may differ.
template <class T = void, class U = void, class I, class O, class F>
Process transform(I&& in, O&& out, F f) {
  return detail::mapping(detail::reader_of<T>(std::forward<I>(in)),
                         detail::writer_of<U>(std::forward<O>(out)), std::move(f))
      .named("transform");
}
// Computes out[k] = in[k] + 1.
template <class T = void, class I, class O>
Process successor(I&& in, O&& out) {
  return transform<T, T>(std::forward<I>(in), std::forward<O>(out),
                         [](detail::value_of<I> v) { return ++v; })
      .named("successor");
}
// Computes out[k] = n · in[k].
template <class T = void, class I, class O>
Process mult(std::type_identity_t<detail::value_of<I>> n, I&& in, O&& out) {
  return transform<T, T>(std::forward<I>(in), std::forward<O>(out),
                         [n = std::move(n)](const detail::value_of<I>& v) -> detail::value_of<I> {
                           return n * v;
                         })
      .named("mult");
}
// Replaces each value: out[k] = value.
template <class T = void, class I, class O>
Process substitute(I&& in, O&& out, std::type_identity_t<detail::value_of<O>> value) {
  return transform<void, T>(std::forward<I>(in), std::forward<O>(out),
                            [value = std::move(value)](const auto&) { return value; })
      .named("substitute");
}
// Writes out[k] = text followed by in[k], as a std::string.
template <class T = void, class I, class O>
Process sign(I&& in, O&& out, std::string text) {
  return transform<T, std::string>(std::forward<I>(in), std::forward<O>(out),
                                   [text = std::move(text)](const detail::value_of<I>& v) {
                                     std::ostringstream s;
                                     s << text << v;
                                     return s.str();
                                   })
      .named("sign");
}

// Computes out[k] = in1[k] + in2[k].
template <class T = void, class A, class B, class O>
Process plus(A&& in1, B&& in2, O&& out) {
  return detail::binary<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                           std::plus())
      .named("plus");
}
// Computes out[k] = in1[k] · in2[k].
template <class T = void, class A, class B, class O>
Process times(A&& in1, B&& in2, O&& out) {
  return detail::binary<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                           std::multiplies())
      .named("times");
}
// These processes combine the bits of both inputs, which carry whole numbers or bool.
template <class T = void, class A, class B, class O>
Process and_(A&& in1, B&& in2, O&& out) {
  return detail::bitwise<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                            std::bit_and())
      .named("and");
}
template <class T = void, class A, class B, class O>
Process or_(A&& in1, B&& in2, O&& out) {
  return detail::bitwise<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                            std::bit_or())
      .named("or");
}
template <class T = void, class A, class B, class O>
Process xor_(A&& in1, B&& in2, O&& out) {
  return detail::bitwise<T>(std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
                            std::bit_xor())
      .named("xor");
}
template <class T = void, class A, class B, class O>
Process nand(A&& in1, B&& in2, O&& out) {
  return detail::bitwise<T>(
             std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
             [](auto x, auto y) {
               return detail::complement<decltype(x)>(static_cast<decltype(x)>(x & y));
             })
      .named("nand");
}
template <class T = void, class A, class B, class O>
Process nor(A&& in1, B&& in2, O&& out) {
  return detail::bitwise<T>(
             std::forward<A>(in1), std::forward<B>(in2), std::forward<O>(out),
             [](auto x, auto y) {
               return detail::complement<decltype(x)>(static_cast<decltype(x)>(x | y));
             })
      .named("nor");
}

}  // namespace weft::inline WEFT_ABI::plugnplay
