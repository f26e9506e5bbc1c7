// Calls a loop's methods so that no signal handler runs within a call (asyncio.cpp).
#pragma once
#include "interpreter/errors.hpp"
#include "interpreter/interrupt.hpp"
#include "owned.hpp"

namespace weft::py {

// A signal handler could raise in the middle of a loop's method that is written in Python. Then a
// future could be done whose task is never notified. Therefore signals are held back during such a
// call (HoldSignals). Exceptions from handlers of earlier signals must not be raised in such a call
// either. They are kept, and raised in the main thread as soon as it runs Python code again.
//
// raised_by_signals() returns the exception that handlers of earlier signals raise (a new
// reference); null if there is none.
PyObject* raised_by_signals() noexcept;
void raise_in_main(PyObject* owned_or_null) noexcept;
// Returns the exception that was kept so far, on the main thread (a new reference); null if there
// is none.
PyObject* raised_meanwhile() noexcept;
// Returns the call's result; null if the call raised an exception, which is cleared. A signal whose
// handler was set after Weft first used the loop is not held back. If such a handler raises, the
// call is made again. Therefore `call` must be an operation that can safely be done twice.
template <class F>
PyObject* with_signals_held(F call) noexcept {
  Owned raised(raised_by_signals());
  PyObject* r = nullptr;
  {
    const HoldSignals hold;
    r = call();
    // A RuntimeError means that the loop is closed.
    if (!r && !PyErr_ExceptionMatches(PyExc_RuntimeError)) {
      raised.reset(take_exception());
      r = call();
    }
  }
  if (!r) PyErr_Clear();
  // This call comes last, because the next Python code that runs raises the exception.
  raise_in_main(raised.release());
  return r;
}

}  // namespace weft::py
