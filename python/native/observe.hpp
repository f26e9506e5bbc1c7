// Hooks for those who observe a run: traces, measurements, the debug mode, the watchdog, reports on
// demand (rule 14).
//
// Invariants
//  1 Off, it costs an operation of a coroutine process nothing: observing exchanges the functions
//    that the interpreter calls (am_send). Where a thread blocks, and at each step of the
//    scheduler, one flag is tested.
//  2 The observer is called with the GIL held, outside every lock, before the operation begins and
//    after it has its outcome; never from within itself.
//  3 What the observer raises does not reach the process. An Exception is printed; what a signal's
//    handler raised there is kept for the run.
#pragma once
#include <set>

#include "native.hpp"

namespace weft::py {

extern bool observing;  // an observer is set
extern bool stepping;   // a watchdog looks at what the schedulers run
extern bool looking;    // there is a function to call when an executor falls idle

// `what`: "begin" (detail: the value written), "park", "commit" (the value read, (index, value) of
// a select), "raise" (the exception), "start", "end" (the result or the exception). `target`: the
// end, the barrier, the guards (Choice::describe()) or the group's list; may be null.
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
  if (!observing) [[likely]]
    return f();
  Py_XINCREF(target);
  observe("begin", op, target, value);
  PyObject* r = f();
  observe_returned(op, target, r);
  Py_XDECREF(target);
  return r;
}

// Each in the file that has the functions to exchange.
void observe_operations(bool on) noexcept;
void observe_selects(bool on) noexcept;
void observe_groups(bool on) noexcept;

// --- the watchdog --------------------------------------------------------------------------------

void step_begins(ProcessObject* p) noexcept;
void step_ends() noexcept;
bool is_helper(PyThreadState* t) noexcept;  // a thread of Weft's own: it uses no end (rule 10.3)
const std::set<PyThreadState*>& every_helper() noexcept;

// --- reports on demand ---------------------------------------------------------------------------

// Of a process whose `op` is set: could anything but its places and its children wake it, or has it
// been woken already?
enum class Facing : std::uint8_t { able, blocked };
Facing facing(ProcessBase& p) noexcept;

void locate(ProcessBase& p) noexcept;  // brings its file and line up to date
void keep_interrupt_for(PyRun* run, PyObject* owned) noexcept;
void fell_idle() noexcept;  // an executor is about to sleep
const std::set<PyRun*>& every_run() noexcept;

int init_observe(PyObject* m);
int init_partial(PyObject* m);

}  // namespace weft::py
