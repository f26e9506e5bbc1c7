// The door to the interpreter lock (door.hpp).
#include "interpreter/door.hpp"

#include <cxxabi.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "interpreter/lock.hpp"
#include "owned.hpp"

namespace weft::py {

namespace {

std::atomic<bool> closed{false};

#ifdef Py_GIL_DISABLED

// The number of threads that have checked `closed` and are still in the call by which they enter.
std::atomic<unsigned> coming{0};

struct DoorPlace {
  DoorPlace() noexcept { ++coming; }
  DoorPlace(const DoorPlace&) = delete;
  DoorPlace& operator=(const DoorPlace&) = delete;
  ~DoorPlace() { --coming; }
};

// Waits until no thread is entering, because the interpreter next frees the states of all other
// threads, and a thread that was entering would find its own state freed. Meanwhile the state of
// this thread is released, because an entering thread might wait for this thread to stop, or for
// the gate.
void wait_for_who_comes() noexcept {
  PyThreadState* const mine = PyEval_SaveThread();
  while (coming > 0) sched_yield();
  PyEval_RestoreThread(mine);
}

#else

class Door {
 public:
  Door() noexcept { sem_init(&places_, 0, kPlaces); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  void enter() noexcept {
    while (sem_wait(&places_) != 0) continue;  // the wait was interrupted by a signal
  }
  void leave() noexcept { sem_post(&places_); }

 private:
  // Just enough places to keep the lock busy: while one thread is leaving the kernel, another
  // thread is ready.
  static constexpr unsigned kPlaces = 4;
  sem_t places_;
};
Door door;
void wait_for_who_comes() noexcept {}

class DoorPlace {  // while this object exists, the thread has a place
 public:
  DoorPlace() noexcept { door.enter(); }
  DoorPlace(const DoorPlace&) = delete;
  DoorPlace& operator=(const DoorPlace&) = delete;
  ~DoorPlace() { door.leave(); }
};

#endif

}  // namespace

PyThreadState* give_up_lock() noexcept { return PyEval_SaveThread(); }

void take_lock(PyThreadState* mine) noexcept {
  try {
    std::optional<DoorPlace> place(std::in_place);
    if (closed) {
      place.reset();
      for (;;) pause();
    }
    PyEval_RestoreThread(mine);
  } catch (abi::__forced_unwind&) {
    // This exception comes from pthread_exit(): the interpreter ended while the thread waited for
    // the lock. Unwinding would destroy frames that must stay.
    for (;;) pause();
  }
}

PyObject* called(PyObject* f, PyObject* a, PyObject* b) noexcept {
  PyObject* const args[] = {a, b};
  try {
    return PyObject_Vectorcall(f, args, b ? 2 : a ? 1 : 0, nullptr);
  } catch (abi::__forced_unwind&) {  // The thread stays here forever, as in take_lock().
    for (;;) pause();
  }
}

PyGILState_STATE enter_interpreter() {
  try {
    std::optional<DoorPlace> place(std::in_place);
    if (closed) {  // the door might have been closed while this thread waited for a place
      place.reset();
      for (;;) pause();
    }
    return PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {  // The thread stays here forever, as in take_lock().
    for (;;) pause();
  }
}

void close_door() noexcept {
  closed = true;
  wait_for_who_comes();
}
bool door_is_closed() noexcept { return closed; }

void new_door() noexcept {
#ifdef Py_GIL_DISABLED
  coming = 0;
#else
  new (&door) Door;
#endif
}

static void set_hook(PyObject* threading, const char* name, const char* setter) noexcept {
  const Owned hook(PyObject_GetAttrString(threading, name));
  PyObject* const set = PySys_GetObject(setter);  // a borrowed reference
  const Owned r(hook && hook != Py_None && set ? PyObject_CallOneArg(set, hook.get()) : nullptr);
  if (!r && PyErr_Occurred()) PyErr_WriteUnraisable(hook.get());
}
void let_tools_see_thread() noexcept {
  const Owned threading(PyImport_ImportModule("threading"));
  if (!threading) return PyErr_Clear();
  set_hook(threading.get(), "_profile_hook", "setprofile");
  set_hook(threading.get(), "_trace_hook", "settrace");
}

}  // namespace weft::py
