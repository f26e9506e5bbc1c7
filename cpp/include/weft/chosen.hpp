// The type of a select's result, for the hosted library and for placeable sources (anywhere.hpp).
#pragma once
#include <optional>
#include <type_traits>
#include <variant>

#include "config.hpp"

namespace weft::inline WEFT_ABI {

// The result of a select: the index of the guard, and the value if the guard was an input.
template <class V>
struct Chosen {
  int index;
  V value;
};

namespace detail {

template <class... Ts>
struct Unique;
template <class... Us>
struct Unique<std::variant<Us...>> {
  using type = std::variant<Us...>;
};
template <class... Us, class T, class... Ts>
struct Unique<std::variant<Us...>, T, Ts...> {
  using type = typename std::conditional_t<std::is_void_v<T> || (std::is_same_v<T, Us> || ...),
                                           Unique<std::variant<Us...>, Ts...>,
                                           Unique<std::variant<Us..., T>, Ts...>>::type;
};
template <class V>
struct Simplify {
  using type = V;
};
template <class T>
struct Simplify<std::variant<std::monostate, T>> {
  using type = std::optional<T>;
};
// The type of a select's value: optional<T> if all inputs have the type T; otherwise a variant
// whose first type is monostate. In Ts a guard that is no input has the type void.
template <class... Ts>
using ValueOf = typename Simplify<typename Unique<std::variant<std::monostate>, Ts...>::type>::type;

}  // namespace detail
}  // namespace weft::inline WEFT_ABI
