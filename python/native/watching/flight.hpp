// The flight recorder of the program: events as bytes, in a ring (runtime/flight.hpp). It hears what
// the observer hears (observe.hpp), before it, and calls no Python code.
//
// Invariants
//  1 All of it is used with the GIL held (inside the gate), so there is one lane.
//  2 An operation is recorded when it is over, with how long it waited; one that waits when the
//    file is written is in it as a wait. So a communication is two events.
#pragma once
#include "owned.hpp"
#include "processes/process.hpp"
#include "value.hpp"

namespace weft::py {

bool flying() noexcept;        // is the recorder on?
void flight_parks() noexcept;  // the running process begins to wait
// `result` null: the exception `left` (owned by the caller; may be null too: the end of a loop).
// `target` as for observe().
void flight_over(const char* op, PyObject* target, PyObject* result, PyObject* left) noexcept;
void flight_starts(ProcessObject* p) noexcept;
void flight_ends(ProcessObject* p, PyObject* left) noexcept;  // null: it returned
// An outermost run raises the current exception: the file is written, if that is asked for.
void flight_failed() noexcept;
void forget_flight() noexcept;  // in the child of a fork

}  // namespace weft::py
