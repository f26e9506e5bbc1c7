// Foreign threads, which are not processes (foreign_threads.cpp, rule 10.3). own_threads.hpp has
// the functions by which the extension records its own threads.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/runtime/run.hpp"

namespace weft::py {

// Records that the calling thread uses Weft. The thread counts as foreign until it ends, unless it
// is one of Weft's own.
void note_foreign_thread() noexcept;
// Returns whether the thread belongs to one of the package's Python modules. Such a thread uses no
// end (rule 10.3).
bool is_helper(PyThreadState* t) noexcept;
// Returns whether there are live threads besides those of this run: Python threads, or C threads
// that have used Weft or were found in Python. If watch_foreign() is called next, runs check again
// when one of these threads ends.
bool foreign_threads(runtime::Run& run);
// Called when the run is at a standstill because of these threads.
void watch_foreign(runtime::Run& run) noexcept;
// Returns true if there is no run, and no other Python thread that could use an end.
bool nobody_else() noexcept;
// Returns the identities of the live Python threads that do not belong to the run, as far as these
// threads can be found. With a null `run`, returns the identities of all threads that are not
// processes, except the caller's.
PyObject* foreign_idents(runtime::Run* run);
#ifdef Py_GIL_DISABLED
// Returns the identities of the threads that the interpreter counts and that are not foreign to all
// runs: the caller's, the helpers', Weft's own, and those of runs.
PyObject* known_of_all();
// Returns whether `_thread` counts the thread. Returns true for the main thread too, which
// `_thread` leaves out.
inline bool is_counted(PyThreadState* t) noexcept {
  constexpr int init = 1, threading = 3;  // _PyThreadState_WHENCE_…, which is internal to CPython
  return t->_whence == threading || t->_whence == init;
}
#else
// Returns the identities of the threads that are foreign to every run.
PyObject* foreign_threads_of_all();
#endif
void forget_foreign_threads() noexcept;  // called in the child of a fork

}  // namespace weft::py
