// What interpreter/ offers to the other rooms: which threads are Weft's and which are foreign
// (strangers.cpp), and the methods of generators (returned.cpp).
#pragma once
#include "native.hpp"

namespace weft::py {

// Threads that Weft started are not foreign to their run. `run` null: it is of no run, and idle.
void own_thread(PyThreadState* t, runtime::Run* run);
void lend_thread(PyThreadState* t);  // foreign to every run for a time
void disown_thread(PyThreadState* t) noexcept;
bool is_own_thread(PyThreadState* t) noexcept;
bool idle_worker(PyThreadState* t) noexcept;  // of the pool of io calls
// Does the thread belong to the package's own Python? It uses no end then (rule 10.3).
bool is_helper(PyThreadState* t) noexcept;
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
void forget_threads() noexcept;  // in the child of a fork
// each run looks again whether anything outside may wake it
void look_again() noexcept;
void look_again_in_loops() noexcept;  // only runs that are guests of a loop
#ifdef Py_GIL_DISABLED
// identities of the threads that are not foreign to every run, and that the interpreter counts
PyObject* known_of_all();
#else
// identities of the threads that are foreign to every run
PyObject* strangers_of_all();
#endif
// no run, and no other Python thread that could use an end
bool nobody_else() noexcept;
// Of the live Python threads that are not the run's, as far as they can be seen. `run` null: of
// those that are no processes, without the caller's.
PyObject* foreign_idents(runtime::Run* run);
// A thread for a process. False: there is none, and an exception is set, which says what to do
// `instead`.
bool begin_thread(void (*body)(void*), void* arg, const char* process, const char* instead);

// tp_iternext, send, throw, close over an am_send (returned.cpp).
PyObject* iternext_by(sendfunc send, PyObject* self);
// the same for a method, which must set StopIteration also for None
PyObject* send_by(sendfunc send, PyObject* self);
PyObject* raise_thrown(PyObject* const* args, Py_ssize_t n);

}  // namespace weft::py
