// What all placements of a placeable source (anywhere.hpp) share: the checks of a declaration, and
// the macros that expand to something for each parameter's name.
//
// Invariant: this header needs neither the hosted library, nor the component interface, nor a heap.
#pragma once
#include <cstddef>
#include <type_traits>

#include "config.hpp"
#include "each.hpp"

namespace weft::inline WEFT_ABI::placing {

// Whether the process function F has as many parameters as there are Ns; a declaration gives one N
// for each name.
template <auto F, int... N>
inline constexpr bool kNamed = [] {
  static_assert(std::is_function_v<std::remove_pointer_t<decltype(F)>>,
                "weft: WEFT_PLACEABLE is for a function, which returns a weft::Process");
  return false;
}();
template <class R, class... A, R (*F)(A...), int... N>
inline constexpr bool kNamed<F, N...> = [] {
  static_assert(!(std::is_reference_v<A> || ...),
                "weft: a placeable process takes its parameters by value: a reference refers to "
                "something of one program, which another placement does not have");
  static_assert(!(std::is_pointer_v<A> || ...),
                "weft: a placeable process takes no pointers: a pointer refers to something of one "
                "program, which another placement does not have");
  return sizeof...(A) == sizeof...(N);
}();

// Used by placements that do not need the names and the defaults.
struct Undeclared {
  void next(const char*) noexcept {}
};
struct Unread {
  Unread() noexcept {}
  template <class T>
  Unread(const T&) noexcept {}  // NOLINT: implicit, for `n = 8`
};

}  // namespace weft::inline WEFT_ABI::placing

// Expands to a 0 for each name, with commas between them.
#define WEFT_PLACING_NAMES(...) __VA_OPT__(0 WEFT_PLACING_REST(__VA_ARGS__))
#define WEFT_PLACING_REST(FIRST, ...) WEFT_EACH(WEFT_PLACING_ONE, , __VA_ARGS__)
#define WEFT_PLACING_ONE(WITH, NAME) , 0

// Declares a variable for a parameter, in the function weft_placeable_F(), which only the
// declaration of a component calls. So `n = 8` is an initialisation. The text of the argument,
// which is passed to next(), begins with the parameter's name.
#define WEFT_PLACING_PARAMETER(WITH, NAME) \
  weft_declared.next(#NAME);               \
  [[maybe_unused]] const ::weft::placing::Parameter NAME;
