// The open weft.Outside tokens of this program (outside.cpp).
#pragma once
#include "weft/outside.hpp"

namespace weft::py {

struct OpenTokens {
  unsigned plain, due;
  bool any() const noexcept { return plain + due != 0; }
};
const OpenTokens& open_tokens() noexcept;  // needs the GIL
void forget_outside() noexcept;            // called in the child of a fork
// The next three functions handle tokens that are dropped. When a token is freed, the runs check
// again.
void exit_now(weft::Outside* owned) noexcept;  // called at a safe point
// frees the token at the next safe point (pending.cpp)
void defer_exit(weft::Outside* owned) noexcept;
void forget_exits() noexcept;  // called in the child of a fork

}  // namespace weft::py
