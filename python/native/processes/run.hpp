// A PyRun is an outermost run of Python, and these functions tell which run a thread is in.
#pragma once
#include <vector>

#include "processes/thread.hpp"
#include "weft/runtime/report.hpp"

namespace weft::py {

struct ChannelObject;

// A channel at which a process was blocked at a deadlock, while ends of the other side were open
// that no process had been given.
struct LeftOpen {
  ChannelObject* channel;  // owned
  bool readers;            // those ends are readers
};
// An outermost run: what the runtime's Run does not know.
struct PyRun {
  runtime::Run run;
  ThreadProcess self;
  PyThreadState* state = nullptr;
  runtime::Group* spawned = nullptr;
  // The exception that a signal's handler raised while the run slept. In the block of ordinary code
  // its thread raises it where it waits, or at its next operation (Cancel::host says so to it);
  // elsewhere the run is cancelled, and it is raised at its end.
  PyObject* interrupt = nullptr;
  bool interrupted = false;             // by Ctrl-C
  runtime::Scheduler* guest = nullptr;  // of a guest: it looks in its next turn
  // for a guest that concludes: does its loop have a signal handler that may act (handlers.hpp)?
  bool loop_acts = false;
  PyObject* generators = nullptr;  // its hook (generators.cpp); owned
#ifdef Py_GIL_DISABLED
  bool counted;          // its thread, among those that the interpreter counts (report.cpp)
  unsigned long thread;  // its identity
#endif
  std::vector<runtime::Report::Blocked> blocked;                    // at a deadlock
  std::vector<LeftOpen> left_open;                                  // at a deadlock
  bool in_block() const noexcept { return self.group != nullptr; }  // of ordinary code
  std::vector<PoolThread*> pool;  // its threads of the pool; under the GIL
  explicit PyRun(runtime::Clock c);
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;
  ~PyRun();
};
PyRun& run_of(runtime::Run& r) noexcept;
extern thread_local PyRun* root_run;  // the outermost run that this thread runs
runtime::Run* current_run() noexcept;

}  // namespace weft::py
