// The gate. On free-threaded builds of CPython, which have no interpreter lock (GIL), the gate does
// what the GIL does elsewhere for the extension.
//
//   Python ──method, slot, finaliser, callback: gated<f>──► Gate: inside ──OutsideGate: user code──► outside ──back──► inside
//
// The gate is one critical section of CPython's, over an object that no other code knows. Therefore
// any operation that makes a thread release its critical sections also opens the gate, as it would
// release the GIL elsewhere: waiting for a lock of the interpreter's, sleeping,
// PyEval_SaveThread(). Afterwards the thread takes the gate again.
//
// Invariants
//  1 A function that Python calls, and that uses any state of the extension, is registered as
//    gated<f>. tp_traverse is not, because all threads are stopped while it runs.
//  2 Where the extension calls the user's code (a process's body, what a select computes, an
//    observer, iterables, finalisers of values that are dropped) the extension holds an
//    OutsideGate, so that this code runs in parallel. Other calls of the interpreter may run such
//    code inside the gate (a finaliser, a `__float__`): that code may wait for locks and use Weft,
//    but an endless loop there stops all of Weft.
//  3 Inside, the gate is the thread's innermost critical section, except while a function of the
//    interpreter runs. If such a function calls the extension, the extension takes the gate as if
//    from outside; the section that was suspended is restored when the call returns.
//  4 Under a lock of the runtime or of the core, no function may be called that might open the
//    gate: the next holder of the gate would wait for that lock, and the lock's holder for the
//    gate. Under such a lock code may read and make objects, fill objects that no other code knows,
//    and take references. It drops references by defer_decref().
//  5 Builds with an interpreter lock have no gate: gated<f> is f, and the classes are empty.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace weft::py {

#ifdef Py_GIL_DISABLED

extern "C" {  // functions that CPython exports but its headers do not declare
void _PyCriticalSection_SuspendAll(PyThreadState*);
void _PyCriticalSection_Resume(PyThreadState*);
}

struct GateObject {
  PyObject_HEAD
};
extern GateObject gate_object;

// Returns this thread's innermost critical section if it is the gate; otherwise returns null.
inline PyCriticalSection* inside_gate() noexcept {
  constexpr std::uintptr_t tags = 3;  // tags of a section that is suspended, or that has two locks
  auto* const s =
      reinterpret_cast<PyCriticalSection*>(PyThreadState_Get()->critical_section & ~tags);
  return s && s->_cs_mutex == &gate_object.ob_base.ob_mutex ? s : nullptr;
}

// If a thread outlives the interpreter, the interpreter ends that thread by pthread_exit(), which
// destroys the objects on the thread's stack without a thread state. Therefore the thread stays
// here forever, as threads do in later versions of CPython.
inline void stay_if_ended() noexcept {
  while (!PyThreadState_GetUnchecked()) pause();
}

class Gate {  // while this object exists, the thread is inside the gate
 public:
  Gate() : taken_(!inside_gate()) {
    if (taken_) PyCriticalSection_Begin(&section_, &gate_object.ob_base);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    stay_if_ended();
    if (taken_) PyCriticalSection_End(&section_);
  }

 private:
  PyCriticalSection section_;
  const bool taken_;
};

class OutsideGate {  // while this object exists, the thread is outside the gate
 public:
  OutsideGate() noexcept : section_(inside_gate()) {
    if (section_) PyCriticalSection_End(section_);
  }
  OutsideGate(const OutsideGate&) = delete;
  OutsideGate& operator=(const OutsideGate&) = delete;
  ~OutsideGate() noexcept(false) {
    stay_if_ended();
    if (section_) PyCriticalSection_Begin(section_, &gate_object.ob_base);
  }

 private:
  PyCriticalSection* const section_;
};

// Holds the lock of a user's object, which other threads can change. A call made meanwhile can open
// this lock and the gate.
class Locked {
 public:
  explicit Locked(PyObject* o) { PyCriticalSection_Begin(&section_, o); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    stay_if_ended();
    PyCriticalSection_End(&section_);
  }

 private:
  PyCriticalSection section_;
};

// Suspends the thread's critical sections while stacks are switched, because the sections are on
// the stack, and the thread's state lists them.
class NoCriticalSections {
 public:
  NoCriticalSections() noexcept : state_(PyThreadState_Get()) {
    if (!state_->critical_section) return;
    _PyCriticalSection_SuspendAll(state_);
    chain_ = std::exchange(state_->critical_section, 0);
  }
  NoCriticalSections(const NoCriticalSections&) = delete;
  NoCriticalSections& operator=(const NoCriticalSections&) = delete;
  ~NoCriticalSections() noexcept(false) {
    stay_if_ended();
    if (!chain_) return;
    state_->critical_section = chain_;
    _PyCriticalSection_Resume(state_);
  }

 private:
  PyThreadState* const state_;
  std::uintptr_t chain_ = 0;
};

// Makes all threads count the references to `o` in the same way. `o` must be new, or one of the
// interpreter's immortal objects. Without this, if another thread drops the last reference, the
// object is freed only when the thread that made it runs Python code again. That thread might sleep
// until the object is freed (rule 12.2), or be the thread of a link, which never runs Python code.
inline void count_alike(PyObject* o) noexcept {
  if (_Py_IsImmortal(o)) return;
  o->ob_tid = _Py_UNOWNED_TID;
  o->ob_ref_local = 0;
  o->ob_ref_shared = _Py_REF_SHARED(1, _Py_REF_MERGED);
}

template <auto F>
struct Gated;
template <class R, class... A, R (*F)(A...)>
struct Gated<F> {
  static R call(A... a) {
    const Gate inside;
    return F(a...);
  }
};
template <class R, class... A, R (*F)(A...) noexcept>
struct Gated<F> {
  static R call(A... a) noexcept {
    const Gate inside;
    return F(a...);
  }
};
template <auto F>
inline constexpr auto gated = &Gated<F>::call;

#else

struct Gate {
  Gate() noexcept {}
};
struct OutsideGate {
  OutsideGate() noexcept {}
};
struct Locked {
  explicit Locked(PyObject*) noexcept {}
};
struct NoCriticalSections {
  NoCriticalSections() noexcept {}
};
inline void count_alike(PyObject*) noexcept {}
template <auto F>
inline constexpr auto gated = F;

#endif

}  // namespace weft::py
