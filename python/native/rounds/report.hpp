// What the other rooms ask of report.cpp: who is told to look again, what an interrupt raises, and
// whose core a channel is.
#pragma once
#include "value.hpp"

namespace weft::py {

struct ChannelObject;

// threads that are no processes may hold ends (rule 10.3)
void watch_outside(runtime::Run& run) noexcept;
PyObject* block_interrupt(
    // owned: what `p`, in the block of a run, is to raise instead of Cancelled; or null
    const ProcessBase& p) noexcept;
// what a signal's handler raised in a plain thread that waits
extern thread_local PyObject* guest_interrupt;
void look_for_ends() noexcept;  // wakes a thread that sleeps, to retire them (pending.hpp)
// each run looks again whether anything outside may wake it
void look_again() noexcept;
void look_again_in_loops() noexcept;  // only runs that are guests of a loop
void forget_threads() noexcept;       // in the child of a fork
// Of which this is the core.
ChannelObject* channel_of_core(const Engine& core) noexcept;

}  // namespace weft::py
