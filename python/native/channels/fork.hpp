// The generation of this OS process, which a fork changes in the child. The generation shows
// whether an object was made by this OS process or by a parent of it (rule 11.2).
#pragma once
#include <cstdint>

namespace weft::py {

extern std::uint32_t generation;  // the generation of this OS process

}  // namespace weft::py
