// Hooks for tools that observe a run: traces, measurements, the debug mode, the watchdog, reports
// on demand (rule 14).
//
// Invariants
//  1 While there is no observer, the hooks cost the operations of coroutine processes nothing: an
//    observer exchanges the functions that the interpreter calls (am_send). One flag is tested
//    where a thread blocks, at each step of the scheduler, and in each operation of a component.
//  2 The observer is called with the GIL held, outside every lock, before the operation begins and
//    after the operation has its outcome; the observer never calls itself. A component takes the
//    GIL to call the observer (component_observe.cpp), but not to read the flags. Therefore an
//    observer that was set a moment ago may miss an operation.
//  3 An exception of the observer does not reach the process. An Exception is printed; an exception
//    that a signal handler raised in the observer is kept for the run.
#pragma once
#include "owned.hpp"
#include "value.hpp"
#include "watching/observing.hpp"

namespace weft::py {

struct ProcessObject;

// Calls the observer. `what` is "begin" (detail: the value written), "park", "commit" (the value
// read, (index, value) of a select), "raise" (the exception), "start", "end" (the result or the
// exception), or "lent" (an end of the channel `target` is about to go to another program).
// `target` of the other events is the end, the barrier, the guards (Choice::describe()) or the
// group's list; it may be null.
void observe(const char* what, const char* op, PyObject* target, PyObject* detail) noexcept;
void observe_sent(PySendResult s, const char* op, PyObject* target, PyObject* result) noexcept;
// Reports that a thread parks; from now on the thread is in the operation.
void observe_park(ProcessBase& p, const runtime::OpKind& kind) noexcept;
void observe_returned(const char* op, PyObject* target, PyObject* result) noexcept;
void observe_start(ProcessObject* p) noexcept;
// If the result is null, the current exception has ended the process.
void observe_end(ProcessObject* p, PyObject* result) noexcept;

template <class F>
PyObject* observed(const char* op, PyObject* target, PyObject* value, F&& f) {
  if (!observing()) [[likely]]
    return f();
  const Owned held = new_ref(target);
  observe("begin", op, target, value);
  PyObject* r = f();
  observe_returned(op, target, r);
  return r;
}

// Called when the flight recorder was switched on or off. Updates the flags and hooks.
void observe_more() noexcept;

// Each of the next functions is defined in the same file as the functions that it exchanges.
void observe_operations(bool on) noexcept;
void observe_selects(bool on) noexcept;
void observe_groups(bool on) noexcept;

}  // namespace weft::py
