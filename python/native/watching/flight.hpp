// The flight recorder of the program keeps events as bytes in a ring (runtime/flight.hpp). It is
// called for the same events as the observer (observe.hpp), before the observer, and calls no
// Python code.
//
// Invariants
//  1 The recorder is used only with the GIL held (inside the gate), so there is one lane.
//  2 An operation is recorded when it ends, with the time for which it waited. An operation that
//    waits when the file is written is recorded as a wait. So a communication is recorded as two
//    events.
#pragma once
#include "owned.hpp"
#include "processes/process.hpp"
#include "value.hpp"

namespace weft::py {

extern bool flight_is_on;  // whether the recorder is on; written with the GIL held
inline bool flying() noexcept { return flight_is_on; }
// Whether the recorder is on and nothing else observes. The operations at ends then call
// flight_parks() and flight_commits(), and not the observer, which takes twice as long. Written
// with the GIL held.
extern bool flight_is_alone;
void flight_parks() noexcept;  // called when the running process begins to wait
// Called when a read or a write at `end` has committed: flight_over() without what these never
// need.
void flight_commits(bool writes, EndObject* end) noexcept;
// Called when an operation has ended. If `result` is null, `left` is the exception (owned by the
// caller); `left` can be null too, at the end of a loop. `target` is as for observe().
void flight_over(const char* op, PyObject* target, PyObject* result, PyObject* left) noexcept;
void flight_starts(ProcessObject* p) noexcept;
// `left` is null if the process returned
void flight_ends(ProcessObject* p, PyObject* left) noexcept;
// Called when an outermost run raises the current exception: writes the file, if the program asked
// for that.
void flight_failed() noexcept;
void forget_flight() noexcept;  // called in the child of a fork

}  // namespace weft::py
