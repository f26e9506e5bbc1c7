// Which threads Weft has started itself. strangers.hpp has the foreign threads.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/runtime/run.hpp"

namespace weft::py {

// Threads that Weft started are not foreign to their run. `run` null: it is of no run, and idle.
void own_thread(PyThreadState* t, runtime::Run* run);
void lend_thread(PyThreadState* t);  // foreign to every run for a time
void disown_thread(PyThreadState* t) noexcept;
bool is_own_thread(PyThreadState* t) noexcept;
bool idle_worker(PyThreadState* t) noexcept;  // of the pool of io calls
// makes a worker of the pool foreign while it lives; on other threads nothing
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
