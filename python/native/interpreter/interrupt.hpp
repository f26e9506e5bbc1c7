// Handles Ctrl-C while a network runs, and signals that arrive when the main thread is about to
// sleep.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/runtime/own_thread.hpp"

namespace weft::py {

struct PyRun;

inline constexpr int kSignals = 64;  // the numbers of signals are 1 to kSignals

// While this object exists, during an outermost run on the main thread, Ctrl-C cancels the network,
// unless the program has its own handler. Meanwhile each signal that Python handles wakes the main
// thread.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

 private:
  PyObject* old_ = nullptr;
  bool watching_ = false;
};

// Between watch_signals() and unwatch_signals(), a signal that has a Python function wakes a
// sleeping main thread, and HoldSignals holds such a signal back. Both functions are called on the
// main thread, with the interpreter lock. watch_signals() returns false where there are no signals
// to watch.
void say_where(PyRun& run);  // writes each process to standard error
bool watch_signals();
void unwatch_signals() noexcept;

// While such an object exists on the main thread, no handler of a watched signal runs there:
// signals that arrive are passed on to Python when the object is destroyed. On other threads the
// object has no effect.
class HoldSignals {
 public:
  HoldSignals() noexcept;
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;
  ~HoldSignals();

 private:
  bool mine_;
};

// Called when the main thread is about to check for signals and then to sleep in `p`; null means
// that the thread is awake. On other threads this function has no effect.
void main_sleeps_by(runtime::Parking* p) noexcept;

// Does what PyErr_CheckSignals() does, on a thread that is in an operation.
int run_handlers() noexcept;
// Returns a text, for messages, for the code that ran on this thread while it was in an operation.
const char* who_ran_there() noexcept;
// Sets BadUse for something that this thread cannot do while it is in another operation. Returns
// null. `what` is that thing, "a network cannot be run"; `do_it` says how to do it later, "run it".
PyObject* in_another_operation(const char* what, const char* do_it);

// Called in the child of a fork: the thread that forked is the main thread there.
void main_is_this_thread() noexcept;
bool on_main_thread() noexcept;
bool is_main_thread(unsigned long identity) noexcept;
// Returns whether this is Weft's handler of Ctrl-C. In the child of a fork that handler raises
// KeyboardInterrupt.
bool is_weft_interrupt(PyObject* handler) noexcept;

}  // namespace weft::py
