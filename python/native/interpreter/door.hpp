// How a thread gives the interpreter lock up and takes it again: through a door that lets only a
// few ask for it at a time. lock.hpp has the two functions that do so.
//
//   runs ──give_up_lock()──► without ──take_lock()──► at the door ──one of the few──► asks CPython ──► runs
//                                └──the interpreter ends──► stays where it is, for ever
//
// CPython's waiters for the lock each wake every switch interval (5 ms) to ask its holder for it. A
// few waiters do no harm. When a thousand wait, because they were started or poisoned together, the
// machine does nothing but wake them.
//
// Invariants
//  1 A thread at the door does not have the lock, and a thread with the lock never waits at the
//    door. So no two threads wait for each other.
//  2 A thread that the ending interpreter stops while it asks stays there for ever; its place is
//    free for the next, which is stopped too.
//  3 Without an interpreter lock there is no crowd: a thread waits for its own state alone. In such
//    builds close_door() waits for the threads that are entering, since the states of threads are
//    freed next.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Calls a function that gives the lock up and takes it again by itself, as TLS does. Invariant 2
// holds there too.
PyObject* called(PyObject* f, PyObject* a = nullptr, PyObject* b = nullptr) noexcept;

// The first step of a thread that the interpreter does not know yet; PyGILState_Release() undoes
// it.
PyGILState_STATE enter_interpreter();

void close_door() noexcept;  // the interpreter ends: a thread without the lock never gets it again
// If so, the thread that ends the interpreter must not give the lock up.
bool door_is_closed() noexcept;
inline bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
void new_door() noexcept;  // in the child of a fork, where no thread stands in the door

// Does what the module threading does for its threads: tools that watch the program (coverage, a
// profiler, a debugger) are to see this thread of Weft's too.
void let_tools_see_thread() noexcept;

}  // namespace weft::py
