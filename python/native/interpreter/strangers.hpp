// Threads that are no processes (strangers.cpp, rule 10.3). own_threads.hpp has the functions by
// which the extension notes its own threads.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/runtime/run.hpp"

namespace weft::py {

// The calling thread uses Weft. Unless it is one of Weft's own it counts until it ends.
void note_stranger() noexcept;
// Does the thread belong to the package's own Python? It uses no end then (rule 10.3).
bool is_helper(PyThreadState* t) noexcept;
// Are there live threads besides those of this run: Python threads, or C threads that have used
// Weft or were found in Python? If watch_foreign() follows, runs look again when one of them ends.
bool foreign_threads(runtime::Run& run);
// The run stands still because of these threads.
void watch_foreign(runtime::Run& run) noexcept;
// no run, and no other Python thread that could use an end
bool nobody_else() noexcept;
// Of the live Python threads that are not the run's, as far as they can be seen. `run` null: of
// those that are no processes, without the caller's.
PyObject* foreign_idents(runtime::Run* run);
#ifdef Py_GIL_DISABLED
// identities of the threads that are not foreign to every run, and that the interpreter counts
PyObject* known_of_all();
// Does `_thread` count it? True also for the main thread, which `_thread` leaves out.
inline bool is_counted(PyThreadState* t) noexcept {
  constexpr int init = 1, threading = 3;  // _PyThreadState_WHENCE_…, which CPython keeps to itself
  return t->_whence == threading || t->_whence == init;
}
#else
// identities of the threads that are foreign to every run
PyObject* strangers_of_all();
#endif
void forget_strangers() noexcept;  // in the child of a fork

}  // namespace weft::py
