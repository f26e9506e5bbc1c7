// The functions and variables of choices that other directories use.
#pragma once
#include "value.hpp"

namespace weft::py {

// For a process whose `op` is set: facing() returns `able` if anything except its places and its
// children could wake it, or if it has already been woken.
enum class Facing : std::uint8_t { able, blocked };
Facing facing(ProcessBase& p) noexcept;
// Returns whether the process is in an operation that has its outcome, but has not run since.
bool is_woken(ProcessBase& p) noexcept;

// Counts the ends closed so far, and the other events after which alternatives check their guards
// again.
extern std::uint64_t ends_closed;

// Returns a value for this channel that belongs to a choice over several homes and is not packed;
// null if there is none.
Value* bare_in_choices(const Engine& c) noexcept;
void forget_far_choices() noexcept;  // called in the child of a fork

}  // namespace weft::py
