// Places a source on a bare microcontroller (rule 19.6); weft/anywhere.hpp includes this header in
// a freestanding build. The header checks that the parameters of a process fit a board.
#pragma once
#include "weft_mcu/csp_placed.hpp"
#include "weft_mcu/csp_placed_select.hpp"

#include "weft/placing.hpp"

namespace weft::inline WEFT_ABI {

namespace placing {
using Declared = Undeclared;
using Parameter = Unread;

template <class T>
inline constexpr bool kParameter = std::is_trivially_copyable_v<T>;
template <class T>
inline constexpr bool kParameter<Reader<T>> = true;
template <class T>
inline constexpr bool kParameter<Writer<T>> = true;
template <class R, class... A>
constexpr bool fits_board(R (*)(A...)) noexcept {
  static_assert((kParameter<A> && ...),
                "weft: on a board the parameters of a placeable process are ends, barriers, and "
                "values that are trivially copyable. A string or a container needs a heap");
  return true;
}

}  // namespace placing
}  // namespace weft::inline WEFT_ABI

#if WEFT_PLACED_BOARD
#include "weft_mcu/csp_board.hpp"
#else
#define WEFT_PLACING_DECLARE(F) static_assert(::weft::placing::fits_board(&F));
#endif
