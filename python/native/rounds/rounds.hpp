// Rounds of questions between this program and others (rounds.cpp, WIRE.md 10.8).
#pragma once

#include <memory>

#include "value.hpp"
#include "weft/wire/space.hpp"

namespace weft::py {

struct PyRun;

// Returns this program's space, which is made with this name if there is none yet.
std::shared_ptr<wire::Space> space_named(const char* name);
// Returns whether a TELL has condemned this run (WIRE.md 10.6), unless an earlier call has already
// returned true for this run. If so, carry_out() must cancel its processes.
bool take_condemned(PyRun* run) noexcept;
// Waits at most one second for the report of a run that might have been condemned just before its
// end. Which processes waited in the run is known once _declare_deadlock() is called.
void await_declared(PyRun* run) noexcept;
void forget_rounds() noexcept;  // called in the child of a fork
// Returns "file:line" of a process that runs. An empty text means that the line is not known: for a
// component, for a greenlet, and in builds without a GIL, where the process continues meanwhile.
std::string where_running(ProcessBase& p);
// Returns what a process does, for a list of all processes: "read 'c' at shop.py:12", "running at
// shop.py:18".
std::string doing(ProcessBase& p);
// Returns whether there is a link and peers are asked whether they are at a standstill too
// (network.cpp). If so, say_standing() reports that a run of this program is at a standstill.
bool links_are_asked() noexcept;
void say_standing() noexcept;

}  // namespace weft::py
