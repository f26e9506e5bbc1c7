// The definitions of usual.hpp; see config.hpp.
#pragma once
#include "../usual.hpp"

namespace weft::inline WEFT_ABI {
WEFT_USUAL_ENGINES()
}
