// The functions for asyncio's loops that other directories use. asyncio.hpp declares all others.
#pragma once

namespace weft::py {

bool in_asyncio() noexcept;  // returns whether a loop runs on this thread
// Returns true if a loop runs and the caller is not a process of a scheduler, but a task or a
// callback.
bool in_task() noexcept;
void ring_loops() noexcept;  // wakes the loops in which something waits

}  // namespace weft::py
