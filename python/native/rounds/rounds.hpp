// Rounds of questions between this program and others (rounds.cpp, WIRE.md 10.8).
#pragma once

#include <memory>

#include "value.hpp"
#include "weft/wire/space.hpp"

namespace weft::py {

struct PyRun;

// This program's space; made with this name if there is none yet.
std::shared_ptr<wire::Space> space_named(const char* name);
// Was this run condemned by what was told (10.6), and not taken here before? Its processes are to be
// cancelled then, by carry_out().
bool take_condemned(PyRun* run) noexcept;
// A run that is over may have been condemned just before: who waited in it is known once
// _declare_deadlock() is called, for which this waits, a second at most.
void await_declared(PyRun* run) noexcept;
void forget_rounds() noexcept;  // in the child of a fork
// "file:line" of one that runs; "": not known, as of a component, of a greenlet, and where there is
// no GIL that stops it there.
std::string where_running(ProcessBase& p);
// What a process does, for a list of all: "read 'c' at shop.py:12", "running at shop.py:18".
std::string doing(ProcessBase& p);
// Is there a link, and are links asked whether all stand still there too (network.cpp)? Then this
// says that a run here does.
bool links_are_asked() noexcept;
void say_standing() noexcept;

}  // namespace weft::py
