// What a plug-and-play process accepts where it needs an end. It accepts an end, which the process
// then holds (an lvalue is copied), or a channel or ChannelHandle, from which it takes a new end at
// once. Where it needs several ends it accepts a braced list of these, or a vector.
#pragma once
#include <initializer_list>

#include "../weft.hpp"

namespace weft::inline WEFT_ABI::plugnplay {

namespace detail {

using weft::detail::IsReader;
using weft::detail::IsWriter;
using weft::detail::never;

template <class X>
using value_of = typename std::remove_cvref_t<X>::value_type;
template <class X>
using policy_of = typename std::remove_cvref_t<X>::policy;

template <class X>
concept Endlike = requires {
  typename value_of<X>;
  typename policy_of<X>;
};

// Returns the end that x is, or that x gives. T is void, or the type that the user has named, as in
// identity<int>(…).
template <class T, class X>
auto reader_of(X&& x) {
  static_assert(Endlike<X>,
                "weft: expected what the process reads from: a reader end or a channel");
  using R = Reader<value_of<X>, policy_of<X>>;
  static_assert(std::is_void_v<T> || std::is_same_v<T, value_of<X>>,
                "weft: the channel carries another type than the one named in <>");
  static_assert(!IsWriter<std::remove_cvref_t<X>>::value,
                "weft: the process reads here, and this is a writer end: give c.reader(), or c");
  return R(std::forward<X>(x));
}
template <class T, class X>
auto writer_of(X&& x) {
  static_assert(Endlike<X>, "weft: expected what the process writes to: a writer end or a channel");
  using W = Writer<value_of<X>, policy_of<X>>;
  static_assert(std::is_void_v<T> || std::is_same_v<T, value_of<X>>,
                "weft: the channel carries another type than the one named in <>");
  static_assert(!IsReader<std::remove_cvref_t<X>>::value,
                "weft: the process writes here, and this is a reader end: give c.writer(), or c");
  return W(std::forward<X>(x));
}

}  // namespace detail

// Several ends of one type. The elements of a braced list exist as long as the whole expression
// that contains the list, so the ends are moved out of them. Otherwise the list would keep the
// network open while it runs.
template <class E>
class Ends {
  struct One {
    template <class X>
      requires std::is_convertible_v<X&&, E> One(X&& x) : end(std::forward<X>(x)) {}
      mutable E end;
  };

 public:
  Ends() = default;
  Ends(std::initializer_list<One> es) {
    ends_.reserve(es.size());
    for (const One& e : es) ends_.push_back(std::move(e.end));
  }
  Ends(std::vector<E> es) : ends_(std::move(es)) {}
  template <class X, class A>
    requires(!std::is_same_v<X, E> && std::is_convertible_v<const X&, E>)
  Ends(const std::vector<X, A>& channels) {
    ends_.reserve(channels.size());
    for (const X& c : channels) ends_.push_back(c);
  }
  std::vector<E> take() { return std::move(ends_); }

 private:
  std::vector<E> ends_;
};

}  // namespace weft::inline WEFT_ABI::plugnplay
