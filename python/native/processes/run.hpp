// A PyRun is an outermost run of Python. The functions declared here return the run of a thread.
#pragma once
#include <vector>

#include "processes/thread.hpp"
#include "weft/runtime/report.hpp"

namespace weft::py {

struct ChannelObject;

// A channel at which a process was blocked at a deadlock, while ends of the other side were open
// but had been given to no process.
struct LeftOpen {
  ChannelObject* channel;  // owned
  bool readers;            // whether the open ends are readers
};
// An outermost run: the runtime's Run, and the state that only Python's runs have.
struct PyRun {
  runtime::Run run;
  ThreadProcess self;
  PyThreadState* state = nullptr;
  runtime::Group* spawned = nullptr;
  // The exception that a signal handler raised while the run slept. In a block of ordinary code,
  // the thread raises this exception where it waits, or at its next operation (by Cancel::host).
  // Elsewhere the run is cancelled, and raises the exception at its end.
  PyObject* interrupt = nullptr;
  bool interrupted = false;  // whether Ctrl-C has interrupted the run
  // For a guest: its scheduler, which checks for such an exception in its next turn.
  runtime::Scheduler* guest = nullptr;
  // For a guest that concludes that no process can continue: whether its loop has a signal handler
  // that may act (handlers.hpp).
  bool loop_acts = false;
  PyObject* generators = nullptr;  // the run's hook for async generators (generators.cpp); owned
#ifdef Py_GIL_DISABLED
  // Whether the run's thread is among those that the interpreter counts (report.cpp).
  bool counted;
  unsigned long thread;  // the identity of the run's thread
#endif
  // The blocked processes at a deadlock.
  std::vector<runtime::Report::Blocked> blocked;
  std::vector<LeftOpen> left_open;  // filled at a deadlock
  // Returns whether this is the run of a block in ordinary code.
  bool in_block() const noexcept { return self.group != nullptr; }
  std::vector<PoolThread*> pool;  // the run's threads of the pool; protected by the GIL
  // Whether a check has made the run. If so, nothing outside can wake it (rule 17.9).
  const bool checked;
  explicit PyRun(runtime::Clock c);
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;
  ~PyRun();
};
PyRun& run_of(runtime::Run& r) noexcept;
extern thread_local PyRun* root_run;  // the outermost run that this thread runs
runtime::Run* current_run() noexcept;

}  // namespace weft::py
