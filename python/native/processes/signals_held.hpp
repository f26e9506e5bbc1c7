// How a loop's methods are called so that no handler of a signal runs within a call (asyncio.cpp).
#pragma once
#include "interpreter/errors.hpp"
#include "interpreter/interrupt.hpp"
#include "owned.hpp"

namespace weft::py {

// In a method of the loop that is written in Python a signal's handler could raise half-way, and
// leave a future done whose task is never told. So signals are held back while we call one
// (HoldSignals). What the handlers of earlier signals raise does not belong here either: it is
// kept, and raised in the main thread as soon as that runs Python code again.
PyObject* raised_by_signals() noexcept;  // of those that are there already: owned, or null
void raise_in_main(PyObject* owned_or_null) noexcept;
PyObject* raised_meanwhile() noexcept;  // what is kept so far, on the main thread: owned, or null
// The call's result; null: it raised something, which is cleared. A signal whose handler was set
// after the loop was first met is not held back: if one raises, the call is made again: only what
// may be done twice.
template <class F>
PyObject* with_signals_held(F call) noexcept {
  Owned raised(raised_by_signals());
  PyObject* r = nullptr;
  {
    const HoldSignals hold;
    r = call();
    if (!r && !PyErr_ExceptionMatches(PyExc_RuntimeError)) {  // that one: the loop is closed
      raised.reset(take_exception());
      r = call();
    }
  }
  if (!r) PyErr_Clear();
  raise_in_main(raised.release());  // only now: it comes with the next Python code that runs
  return r;
}

}  // namespace weft::py
