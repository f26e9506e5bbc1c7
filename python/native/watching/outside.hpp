// The tokens weft.Outside of this program that are open (outside.cpp).
#pragma once
#include "native.hpp"
#include "weft/outside.hpp"

namespace weft::py {

struct OpenTokens {
  unsigned plain, due;
  bool any() const noexcept { return plain + due != 0; }
};
const OpenTokens& open_tokens() noexcept;  // under the GIL
void forget_outside() noexcept;            // in the child of a fork
// The token goes, and runs look again: now, at a safe point; at the next one (pending.cpp).
void exit_now(weft::Outside* owned) noexcept;
void defer_exit(weft::Outside* owned) noexcept;
void forget_exits() noexcept;  // in the child of a fork

int init_outside(PyObject* m);

}  // namespace weft::py
