// The open blocks of Groups, and how they are ended from outside (block.cpp).
#pragma once
#include <cstddef>

#include "value.hpp"

namespace weft::py {

struct GroupObject;

extern std::size_t blocks_open;
// Called when a process ends: its group receives the groups whose blocks the process never left.
void leave_blocks(ProcessBase& p) noexcept;
void end_block(GroupObject* g) noexcept;  // removes the block from the open ones
void forget_blocks() noexcept;            // called in the child of a fork
// Closes the blocks of ordinary code on this thread that can no longer be left.
void close_left_blocks() noexcept;

}  // namespace weft::py
