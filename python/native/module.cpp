// The extension module weft._native.
#include "asyncio.hpp"
#include "observe.hpp"
#include "weft/version.hpp"

namespace weft::py {
namespace {
PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "weft._native",
                       "The native part of weft; use weft.coroutines, weft.greenlets or weft.threads.",
                       -1,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

// Importing this module turns the interpreter lock on (it does not declare that it needs none), unless that was forbidden.
int need_lock() {
#ifdef Py_GIL_DISABLED
  PyObject* is_on = PySys_GetObject("_is_gil_enabled");
  PyObject* r = is_on ? PyObject_CallNoArgs(is_on) : Py_NewRef(Py_True);
  if (!r) return -1;
  const bool on = r == Py_True;
  Py_DECREF(r);
  if (on) return 0;
  PyErr_SetString(
      PyExc_ImportError,
      "weft needs the interpreter lock, which PYTHON_GIL=0 or -X gil=0 keeps off: start Python without; the lock is then on from "
      "the import of weft");
  return -1;
#else
  return 0;
#endif
}
}  // namespace
}  // namespace weft::py

PyMODINIT_FUNC PyInit__native() {
  using namespace weft::py;
  if (need_lock() < 0 || import_errors() < 0) return nullptr;
  PyObject* m = PyModule_Create(&definition);
  if (!m) return nullptr;
  if (PyModule_AddStringConstant(m, "version", WEFT_VERSION) < 0) return nullptr;
  if (init_channel(m) < 0 || init_operation(m) < 0 || init_process(m) < 0 || init_group(m) < 0 || init_choice(m) < 0 || init_time(m) < 0 ||
      init_arrays(m) < 0 || init_observe(m) < 0 || init_partial(m) < 0 || init_report() < 0 || init_returned() < 0 ||
      init_greenlet(m) < 0 || init_io(m) < 0 || init_alloc(m) < 0 || init_asyncio(m) < 0 || init_guest(m) < 0) {
    Py_DECREF(m);
    return nullptr;
  }
  return m;
}
