// The blocks of Groups that are open, and how they are ended from elsewhere (block.cpp).
#pragma once
#include <cstddef>

#include "value.hpp"

namespace weft::py {

struct GroupObject;

extern std::size_t blocks_open;
// A process ends: its group takes over the groups whose blocks it never left.
void leave_blocks(ProcessBase& p) noexcept;
void end_block(GroupObject* g) noexcept;  // the block is no longer among the open ones
void forget_blocks() noexcept;            // in the child of a fork
// Closes the blocks of ordinary code on this thread that nobody can leave any more.
void close_left_blocks() noexcept;

}  // namespace weft::py
