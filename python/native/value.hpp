// The values that channels move, and the engines of the core that move them.
//
// Every channel is a core::ChannelEngine<Value, Shared>, whatever callers meet there: coroutine
// processes on a scheduler, thread processes, plain threads. The caller of an operation determines
// how the operation waits (ways.hpp): in a coroutine process the operation is an awaitable;
// elsewhere it blocks the thread or the greenlet (caller.cpp).
//
// Invariants
//  1 Engines over Value, and all state of the extension, are read and changed only with the GIL
//    held. The GIL is released only in a real sleep (runtime::around_sleep) and in calls of the
//    interpreter, never under a lock. On a free-threaded build "the GIL" means the gate (gate.hpp).
//  2 Under a lock of the core no Python code runs. A Value that is destroyed there is queued
//    (pending.cpp) and dropped at a safe point; the same holds for the retirement of an end that is
//    collected (rules 12.1, 12.2).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "weft/channel.hpp"

namespace weft::py {

using core::Side;
using runtime::ProcessBase;
using runtime::this_process;

void defer_decref(PyObject* o) noexcept;  // defined in pending.cpp

// An owned reference that moves without a change of the reference count.
struct Value {
  PyObject* o = nullptr;

  Value() noexcept = default;
  explicit Value(PyObject* owned) noexcept : o(owned) {}
  Value(Value&& x) noexcept : o(x.o) { x.o = nullptr; }
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (o) defer_decref(o);
  }
  PyObject* take() noexcept {
    PyObject* r = o;
    o = nullptr;
    return r;
  }
};

using Engine = core::ChannelEngine<Value, Shared>;
using BarrierEngine = core::BarrierEngine<Shared>;

}  // namespace weft::py
