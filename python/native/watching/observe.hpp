// Hooks for those who observe a run: traces, measurements, the debug mode, the watchdog, reports on
// demand (rule 14).
//
// Invariants
//  1 Off, it costs an operation of a coroutine process nothing: observing exchanges the functions
//    that the interpreter calls (am_send). Where a thread blocks, at each step of the scheduler and
//    in each operation of a component, one flag is tested.
//  2 The observer is called with the GIL held, outside every lock, before the operation begins and
//    after it has its outcome; never from within itself. A component takes the GIL for it
//    (component_observe.cpp), and not for the flags: what was observed a moment ago may be missed.
//  3 What the observer raises does not reach the process. An Exception is printed; what a signal's
//    handler raised there is kept for the run.
#pragma once
#include "owned.hpp"
#include "value.hpp"
#include "watching/observing.hpp"

namespace weft::py {

struct ProcessObject;

// `what`: "begin" (detail: the value written), "park", "commit" (the value read, (index, value) of
// a select), "raise" (the exception), "start", "end" (the result or the exception), "lent" (an end
// of the channel `target` is about to go to another program). `target` of the others: the end, the
// barrier, the guards (Choice::describe()) or the group's list; may be null.
void observe(const char* what, const char* op, PyObject* target, PyObject* detail) noexcept;
void observe_sent(PySendResult s, const char* op, PyObject* target, PyObject* result) noexcept;
// of a thread; from here on it is in the operation
void observe_park(ProcessBase& p, const runtime::OpKind& kind) noexcept;
void observe_returned(const char* op, PyObject* target, PyObject* result) noexcept;
void observe_start(ProcessObject* p) noexcept;
// result null: the current exception
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

// The flight recorder was switched on or off: hears who hears of operations.
void observe_more() noexcept;

// Each in the file that has the functions to exchange.
void observe_operations(bool on) noexcept;
void observe_selects(bool on) noexcept;
void observe_groups(bool on) noexcept;

}  // namespace weft::py
