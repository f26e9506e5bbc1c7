// Without a GIL, an object is freed at once only if the last reference to it is dropped by its
// owner, the thread that made it. If another thread drops the last reference, the object is queued
// until its owner runs Python code again. But an owner that sleeps in Weft may be waiting for an
// end within that object (rule 12.2).
//
//   a thread drops what another has made ──► CPython marks its owner
//      └──the owner sleeps here: wake_owners()──► disturbed, drop_own()
//      └──it is about to sleep──► drop_own()
//
// Invariant: while a marked owner sleeps, no run concludes that nothing can wake it.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

namespace weft::py {

#ifdef Py_GIL_DISABLED

inline bool made_by_another(PyObject* o) noexcept {
  const std::uintptr_t owner = _Py_atomic_load_uintptr_relaxed(&o->ob_tid);
  return owner != _Py_UNOWNED_TID && owner != _Py_ThreadId();
}
// Returns whether the thread is marked as the owner of a dropped object.
inline bool owns_dropped(PyThreadState* t) noexcept {
  // the bit _PY_EVAL_EXPLICIT_MERGE_BIT, which is internal to CPython
  constexpr std::uintptr_t merge = 1U << 6;
  return (_Py_atomic_load_uintptr_relaxed(&t->eval_breaker) & merge) != 0;
}
// Wakes the marked threads that sleep. Returns true if there are any. Called inside the gate.
bool wake_owners() noexcept;

#else

inline bool made_by_another(PyObject*) noexcept { return false; }
inline bool wake_owners() noexcept { return false; }

#endif

}  // namespace weft::py
