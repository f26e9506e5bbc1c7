// Choices, for the other rooms.
#pragma once
#include "value.hpp"

namespace weft::py {

// Of a process whose `op` is set: could anything but its places and its children wake it, or has it
// been woken already?
enum class Facing : std::uint8_t { able, blocked };
Facing facing(ProcessBase& p) noexcept;
// It is in an operation that has come to its outcome, and has not gone on yet.
bool is_woken(ProcessBase& p) noexcept;

// Counts the ends closed so far, and what else makes alternatives look at their guards again.
extern std::uint64_t ends_closed;

// A value for this channel that a choice at several homes has, and that is not packed; null: none.
Value* bare_in_choices(const Engine& c) noexcept;
void forget_far_choices() noexcept;  // in the child of a fork

}  // namespace weft::py
