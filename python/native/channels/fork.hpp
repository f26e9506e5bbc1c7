// The generation of this OS process. It shows whether this OS process or a parent of it has made an
// object (rule 11.2): the child of a fork has a generation of its own.
#pragma once
#include <cstdint>

namespace weft::py {

extern std::uint32_t generation;  // the generation of this OS process

}  // namespace weft::py
