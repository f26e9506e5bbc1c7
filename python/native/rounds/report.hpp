// The functions of report.cpp that other directories use: they make runs check again, return the
// exception of an interrupt, and find the channel of a core.
#pragma once
#include "value.hpp"

namespace weft::py {

struct ChannelObject;

// Called when threads that are not processes might hold ends (rule 10.3).
void watch_outside(runtime::Run& run) noexcept;
PyObject* block_interrupt(
    // Returns the exception (owned) that `p`, in the block of a run, must raise instead of
    // Cancelled; null if there is none.
    const ProcessBase& p) noexcept;
// The exception that a signal handler raised in a waiting plain thread.
extern thread_local PyObject* guest_interrupt;
// Wakes a sleeping thread, which then retires the pending ends (pending.hpp).
void look_for_ends() noexcept;
// Makes each run check again whether something outside might wake it.
void look_again() noexcept;
void look_again_in_loops() noexcept;  // does the same for the runs that are guests of a loop
void forget_threads() noexcept;       // called in the child of a fork
// Returns the channel whose core is `core`.
ChannelObject* channel_of_core(const Engine& core) noexcept;

}  // namespace weft::py
