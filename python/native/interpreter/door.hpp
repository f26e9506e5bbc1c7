// How a thread gives the interpreter lock up and takes it again: through a door that lets only a
// few ask for it at a time. lock.hpp has the two functions that do so.
//
//   runs ──give_up_lock()──► without ──take_lock()──► at the door ──one of the few──► asks CPython ──► runs
//                                └──the interpreter ends──► stays where it is, for ever
//
// CPython's waiters for the lock each wake every switch interval (5 ms) to ask its holder for it. A
// few do no harm; when a thousand wait, because they were started or poisoned together, the machine
// does nothing but wake them.
//
// Invariants
//  1 Who waits at the door does not have the lock; who has the lock never waits at the door. So no
//    two wait for each other.
//  2 A thread that the ending interpreter stops while it asks stays there for ever; its place is
//    free for the next, which is stopped too.
//  3 Without an interpreter lock there is no crowd: a thread waits for its own state alone. There
//    close_door() waits for those on their way in, since the states of threads go next.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Calls what gives the lock up, and takes it again, by itself, as TLS does: 2 is so there too.
PyObject* called(PyObject* f, PyObject* a = nullptr, PyObject* b = nullptr) noexcept;

// The first step of a thread that the interpreter does not know yet; PyGILState_Release() takes it
// out again.
PyGILState_STATE enter_interpreter();

void close_door() noexcept;  // the interpreter ends: who is without the lock stays so
// then the thread that ends the interpreter must not give the lock up
bool door_is_closed() noexcept;
inline bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
void new_door() noexcept;  // in the child of a fork, where nobody stands in it any more

// As threading does for its threads: what watches the program (coverage, a profiler, a debugger) is
// to see this one of ours too.
void let_tools_see_thread() noexcept;

}  // namespace weft::py
