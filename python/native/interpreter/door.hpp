// A thread takes the interpreter lock through a door, which lets only a few threads ask for the
// lock at a time. lock.hpp declares the two functions by which a thread releases and takes the
// lock.
//
//   runs ──give_up_lock()──► without ──take_lock()──► at the door ──one of the few──► asks CPython ──► runs
//                                └──the interpreter ends──► stays where it is, forever
//
// In CPython every thread that waits for the lock wakes at each switch interval (5 ms), to ask the
// holder for the lock. A few such threads do no harm. When a thousand threads wait, because they
// were started or poisoned together, the machine spends most of its time waking them.
//
// Invariants
//  1 A thread at the door does not have the lock, and a thread with the lock never waits at the
//    door. So no two threads wait for each other.
//  2 A thread that the ending interpreter stops while the thread asks stays in that call forever.
//    The place of the thread is free for the next thread, which is stopped too.
//  3 Without an interpreter lock no crowd forms, since a thread waits only for its own state. In
//    such builds close_door() waits for the threads that are entering, since the states of threads
//    are freed next.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// Calls a function that itself releases the lock and takes it again, as TLS does. Invariant 2 also
// holds for a thread in such a function.
PyObject* called(PyObject* f, PyObject* a = nullptr, PyObject* b = nullptr) noexcept;

// Performs the first step of a thread that the interpreter does not know yet. PyGILState_Release()
// undoes that step.
PyGILState_STATE enter_interpreter();

// Called when the interpreter ends. From then on a thread without the lock never gets it again.
void close_door() noexcept;
// Returns whether the door is closed. If it is, the thread that ends the interpreter must not
// release the lock.
bool door_is_closed() noexcept;
inline bool interpreter_ends() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
void new_door() noexcept;  // called in the child of a fork, where no other thread is at the door

// Makes this thread visible to tools that watch the program (coverage, a profiler, a debugger), as
// the module threading does for its threads.
void let_tools_see_thread() noexcept;

}  // namespace weft::py
