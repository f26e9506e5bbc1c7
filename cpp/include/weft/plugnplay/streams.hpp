// Processes that begin and end streams, and processes that shift or merge them.
#pragma once
#include <iostream>
#include <string>

#include "ends.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

namespace detail {

template <class T, class P, class Q>
Process prefixing(T value, Reader<T, P> in, Writer<T, Q> out) {
  co_await out.write(std::move(value));
  while (auto v = co_await in.next()) co_await out.write(std::move(*v));
}
template <class T, class P, class Q>
Process beheading(Reader<T, P> in, Writer<T, Q> out) {
  co_await in.read();
  while (auto v = co_await in.next()) co_await out.write(std::move(*v));
}
template <class T, class P, class Q>
Process pairing(Reader<T, P> in, Writer<T, Q> out) {
  T before = co_await in.read();
  while (auto v = co_await in.next()) {
    co_await out.write(before + *v);
    before = std::move(*v);
  }
}
template <class T, class P>
Process repeating(Writer<T, P> out, T value) {
  for (;;) co_await out.write(value);
}
template <class T, class P>
Process counting(Writer<T, P> out) {
  for (T n{};; ++n) co_await out.write(n);
}
template <class T, class P>
Process swallowing(Reader<T, P> in) {
  for (;;) co_await in.read();
}
template <class T, class P>
Process printing(Reader<T, P> in, std::string prefix, std::string suffix, std::ostream* to) {
  while (auto v = co_await in.next()) *to << prefix << *v << suffix << std::flush;
}
template <class T, class P, class Q>
Process merging(std::vector<Reader<T, P>> ins, Writer<T, Q> out) {
  std::vector<std::optional<T>> heads;  // the first values of the inputs that have not ended
  for (auto& in : ins) heads.push_back(co_await in.next());
  for (;;) {
    const T* least = nullptr;
    for (const auto& h : heads)
      if (h && (!least || *h < *least)) least = &*h;
    if (!least) co_return;
    const T value = *least;
    co_await out.write(value);
    for (std::size_t i = 0; i < ins.size(); ++i)
      if (heads[i] && !(value < *heads[i])) heads[i] = co_await ins[i].next();
  }
}

}  // namespace detail

// Writes `value`, and then the values that it reads from `in`.
template <class T = void, class I, class O>
Process prefix(std::type_identity_t<detail::value_of<I>> value, I&& in, O&& out) {
  return detail::prefixing(std::move(value), detail::reader_of<T>(std::forward<I>(in)),
                           detail::writer_of<T>(std::forward<O>(out)))
      .named("prefix");
}
// Copies the input without its first value.
template <class T = void, class I, class O>
Process tail(I&& in, O&& out) {
  return detail::beheading(detail::reader_of<T>(std::forward<I>(in)),
                           detail::writer_of<T>(std::forward<O>(out)))
      .named("tail");
}
// Computes out[k] = in[k] + in[k + 1].
template <class T = void, class I, class O>
Process pairs(I&& in, O&& out) {
  return detail::pairing(detail::reader_of<T>(std::forward<I>(in)),
                         detail::writer_of<T>(std::forward<O>(out)))
      .named("pairs");
}
// Writes `value` forever.
template <class T = void, class O>
Process generate(O&& out, std::type_identity_t<detail::value_of<O>> value) {
  return detail::repeating(detail::writer_of<T>(std::forward<O>(out)), std::move(value))
      .named("generate");
}
// Writes 0, 1, 2, …
template <class T = void, class O>
Process numbers(O&& out) {
  return detail::counting(detail::writer_of<T>(std::forward<O>(out))).named("numbers");
}
// Reads forever, and drops the values.
template <class T = void, class I>
Process black_hole(I&& in) {
  return detail::swallowing(detail::reader_of<T>(std::forward<I>(in))).named("black_hole");
}
// Prints each value with the texts around it; `to` must outlive the process.
template <class T = void, class I>
Process printer(I&& in, std::string prefix = "", std::string suffix = "\n",
                std::ostream& to = std::cout) {
  return detail::printing(detail::reader_of<T>(std::forward<I>(in)), std::move(prefix),
                          std::move(suffix), &to)
      .named("printer");
}
// Merges ascending streams into one, without duplicates between them: the union. An input that has
// ended is left out; the process ends when the last input has ended.
template <class T = void, class O>
Process merge(Ends<Reader<detail::value_of<O>, detail::policy_of<O>>> ins, O&& out) {
  auto rs = ins.take();
  if (rs.empty()) weft::detail::bad_use("merge: it needs at least one input");
  return detail::merging(std::move(rs), detail::writer_of<T>(std::forward<O>(out))).named("merge");
}

}  // namespace weft::inline WEFT_ABI::plugnplay
