// The extension module weft._native.
#include "components/cells.hpp"
#include "components/component.hpp"
#include "interpreter/handlers.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/strangers.hpp"
#include "processes/asyncio.hpp"
#include "processes/no_result.hpp"
#include "watching/observe.hpp"
#include "watching/outside.hpp"
#include "watching/rounds.hpp"
#include "watching/stopped_early.hpp"
#include "weft/version.hpp"
#include "wire/wire.hpp"

namespace weft::py {
namespace {
// Types and objects of the extension are static, and its threads enter the main interpreter (rule
// 16.11). A subinterpreter that shares the lock gets a copy of the module's dictionary without a
// call of PyInit__native; so weft._extension asks as well.
bool in_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

PyMethodDef functions[] = {
    {"_in_main_interpreter",
     [](PyObject*, PyObject*) { return PyBool_FromLong(in_main_interpreter()); }, METH_NOARGS,
     "Whether the caller is in the main interpreter of its OS process."},
    {}};

PyModuleDef definition{
    PyModuleDef_HEAD_INIT,
    "weft._native",
    "The native part of weft; use weft.coroutines, weft.greenlets or weft.threads.",
    -1,
    functions,
    nullptr,
    nullptr,
    nullptr,
    nullptr};
}  // namespace

#ifdef Py_GIL_DISABLED
GateObject gate_object{PyObject_HEAD_INIT(&PyBaseObject_Type)};
#endif
}  // namespace weft::py

PyMODINIT_FUNC PyInit__native() {
  using namespace weft::py;
  if (!in_main_interpreter()) {  // in the words that CPython has for it where it refuses by itself
    PyErr_SetString(PyExc_ImportError,
                    "module weft._native does not support loading in subinterpreters");
    return nullptr;
  }
  if (import_errors() < 0) return nullptr;
  PyObject* m = PyModule_Create(&definition);
  if (!m) return nullptr;
#ifdef Py_GIL_DISABLED
  if (PyUnstable_Module_SetGIL(m, Py_MOD_GIL_NOT_USED) < 0) return nullptr;  // gate.hpp
#endif
  if (PyModule_AddStringConstant(m, "version", WEFT_VERSION) < 0) return nullptr;
  if (init_channel(m) < 0 || init_operation(m) < 0 || init_many(m) < 0 || init_process(m) < 0 ||
      init_function(m) < 0 || init_group(m) < 0 || init_choice(m) < 0 || init_time(m) < 0 ||
      init_arrays(m) < 0 || init_observe(m) < 0 || init_partial(m) < 0 || init_report(m) < 0 ||
      init_returned() < 0 || init_greenlet(m) < 0 || init_io(m) < 0 || init_limit(m) < 0 ||
      init_line(m) < 0 || init_left_open(m) < 0 || init_watch(m) < 0 || init_strangers(m) < 0 ||
      init_wire(m) < 0 || init_network(m) < 0 || init_rounds(m) < 0 || init_native_types(m) < 0 ||
      init_cells(m) < 0 || init_component(m) < 0 || init_alloc(m) < 0 || init_asyncio(m) < 0 ||
      init_guest(m) < 0 || init_interrupts(m) < 0 || init_handlers(m) < 0 || init_outside(m) < 0 ||
      init_no_result() < 0 || init_stopped_early() < 0) {
    Py_DECREF(m);
    return nullptr;
  }
  return m;
}
