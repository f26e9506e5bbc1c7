// Threads that are no processes (strangers.cpp, rule 10.3). native.hpp has what the rest of the
// extension says of its own threads.
#pragma once
#include "native.hpp"

namespace weft::py {

// The calling thread uses Weft: it counts until it has ended, if it is none of Weft's own.
void note_stranger() noexcept;
// Are there live threads beyond those of this run: of Python, or of C that have used Weft or were
// found in Python? When one of them ends from now on, runs look again, if watch_foreign() follows.
bool foreign_threads(runtime::Run& run);
// The run stands still for them.
void watch_foreign(runtime::Run& run) noexcept;
#ifdef Py_GIL_DISABLED
// Is it one of the threads that `_thread` counts, or the main thread, which is there and not counted?
inline bool is_counted(PyThreadState* t) noexcept {
  constexpr int init = 1, threading = 3;  // _PyThreadState_WHENCE_…, which CPython keeps to itself
  return t->_whence == threading || t->_whence == init;
}
#endif
void forget_strangers() noexcept;  // in the child of a fork

int init_strangers(PyObject* m);

}  // namespace weft::py
