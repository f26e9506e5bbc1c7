// Refuses the use of one of Weft's awaitables as if it were its result: `a, b = select(r)`, `if
// r.read() == 3`. Python would step the awaitable, or compare the object itself. So each such use
// raises BadUse, which advises the user to write `await` (rule 11.2).
//
// Invariant: `await` calls am_await first, which sets `awaited`. So if tp_iter is called while
// `awaited` is false, the program iterates over the awaitable; the call does not come from `yield
// from op.__await__()`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {

// The am_await of an awaitable that is its own iterator. D has a field `awaited`, which is
// initially false.
template <class D>
PyObject* await_itself(PyObject* o) noexcept {
  reinterpret_cast<D*>(o)->awaited = true;
  return Py_NewRef(o);
}

using VerbOf = const char* (*)(PyObject*) noexcept;  // returns the name of the awaitable's
                                                     // operation
using WasAwaited = bool (*)(PyObject*) noexcept;

// Sets the slots of `type`; it must be called before PyType_Ready.
void refuse_as_result(PyTypeObject& type, VerbOf verb, WasAwaited awaited);

template <class D>
void refuse_as_result(PyTypeObject& type, PyAsyncMethods& async, VerbOf verb) {
  async.am_await = await_itself<D>;
  refuse_as_result(type, verb,
                   [](PyObject* o) noexcept { return reinterpret_cast<D*>(o)->awaited; });
}

}  // namespace weft::py
