// Threads that are no processes (strangers.cpp, rule 10.3). interpreter.hpp has the functions by
// which the extension notes its own threads.
#pragma once
#include "native.hpp"

namespace weft::py {

// The calling thread uses Weft. Unless it is one of Weft's own it counts until it ends.
void note_stranger() noexcept;
// Are there live threads besides those of this run: Python threads, or C threads that have used
// Weft or were found in Python? If watch_foreign() follows, runs look again when one of them ends.
bool foreign_threads(runtime::Run& run);
// The run stands still because of these threads.
void watch_foreign(runtime::Run& run) noexcept;
#ifdef Py_GIL_DISABLED
// Does `_thread` count it? True also for the main thread, which `_thread` leaves out.
inline bool is_counted(PyThreadState* t) noexcept {
  constexpr int init = 1, threading = 3;  // _PyThreadState_WHENCE_…, which CPython keeps to itself
  return t->_whence == threading || t->_whence == init;
}
#endif
void forget_strangers() noexcept;  // in the child of a fork

}  // namespace weft::py
