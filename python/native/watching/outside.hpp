// The tokens weft.Outside of this program that are open (outside.cpp).
#pragma once
#include "native.hpp"

namespace weft::py {

struct OpenTokens {
  unsigned plain, due;
  bool any() const noexcept { return plain + due != 0; }
};
const OpenTokens& open_tokens() noexcept;  // under the GIL
void forget_outside() noexcept;            // in the child of a fork

int init_outside(PyObject* m);

}  // namespace weft::py
