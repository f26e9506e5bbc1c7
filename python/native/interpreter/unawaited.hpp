// An awaitable of Weft's that the program uses as if it were its result: `a, b = select(r)`,
// `if r.read() == 3`. Python would step it, or compare the object, so each such use is BadUse that
// says `await` (rule 11.2).
//
// Invariant: what is awaited is asked for by am_await first, which sets `awaited`. So tp_iter without
// it is an iteration of the program's, and no `yield from op.__await__()`.
#pragma once
#include "native.hpp"

namespace weft::py {

// am_await of an awaitable that steps itself. D has a field `awaited`, false at first.
template <class D>
PyObject* await_itself(PyObject* o) noexcept {
  reinterpret_cast<D*>(o)->awaited = true;
  return Py_NewRef(o);
}

using VerbOf = const char* (*)(PyObject*) noexcept;  // what an awaitable does
using WasAwaited = bool (*)(PyObject*) noexcept;

// Sets the slots of `type`, before it is made ready.
void refuse_as_result(PyTypeObject& type, VerbOf verb, WasAwaited awaited);

template <class D>
void refuse_as_result(PyTypeObject& type, PyAsyncMethods& async, VerbOf verb) {
  async.am_await = await_itself<D>;
  refuse_as_result(type, verb,
                   [](PyObject* o) noexcept { return reinterpret_cast<D*>(o)->awaited; });
}

}  // namespace weft::py
