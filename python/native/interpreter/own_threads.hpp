// The threads that Weft has started. foreign_threads.hpp is about foreign threads.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/runtime/run.hpp"

namespace weft::py {

// Records a thread that Weft started, so that it is not foreign to its run. A null `run` means that
// the thread is idle, and works for no run.
void own_thread(PyThreadState* t, runtime::Run* run);
void lend_thread(PyThreadState* t);  // until own_thread(), every run counts the thread as foreign
void disown_thread(PyThreadState* t) noexcept;
bool is_own_thread(PyThreadState* t) noexcept;
// Returns whether the thread is an idle worker of the pool of io calls.
bool idle_worker(PyThreadState* t) noexcept;
// Makes a worker of the pool foreign while this object exists; has no effect on other threads.
class ForeignThread {
 public:
  ForeignThread() : worker_(idle_worker(PyThreadState_Get())) {
    if (worker_) lend_thread(PyThreadState_Get());
  }
  ForeignThread(const ForeignThread&) = delete;
  ForeignThread& operator=(const ForeignThread&) = delete;
  ~ForeignThread() {
    if (worker_) own_thread(PyThreadState_Get(), nullptr);
  }

 private:
  const bool worker_;
};

}  // namespace weft::py
