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
  Owned m(PyModule_Create(&definition));
  if (!m) return nullptr;
#ifdef Py_GIL_DISABLED
  if (PyUnstable_Module_SetGIL(m.get(), Py_MOD_GIL_NOT_USED) < 0) return nullptr;  // gate.hpp
#endif
  if (PyModule_AddStringConstant(m.get(), "version", WEFT_VERSION) < 0) return nullptr;
  if (init_channel(m.get()) < 0 || init_operation(m.get()) < 0 || init_many(m.get()) < 0 ||
      init_process(m.get()) < 0 || init_function(m.get()) < 0 || init_group(m.get()) < 0 ||
      init_choice(m.get()) < 0 || init_time(m.get()) < 0 || init_arrays(m.get()) < 0 ||
      init_observe(m.get()) < 0 || init_partial(m.get()) < 0 || init_report(m.get()) < 0 ||
      init_returned() < 0 || init_greenlet(m.get()) < 0 || init_io(m.get()) < 0 ||
      init_limit(m.get()) < 0 || init_line(m.get()) < 0 || init_left_open(m.get()) < 0 ||
      init_watch(m.get()) < 0 || init_strangers(m.get()) < 0 || init_wire(m.get()) < 0 ||
      init_network(m.get()) < 0 || init_rounds(m.get()) < 0 || init_native_types(m.get()) < 0 ||
      init_cells(m.get()) < 0 || init_component(m.get()) < 0 || init_alloc(m.get()) < 0 ||
      init_asyncio(m.get()) < 0 || init_guest(m.get()) < 0 || init_interrupts(m.get()) < 0 ||
      init_handlers(m.get()) < 0 || init_outside(m.get()) < 0 || init_no_result() < 0 ||
      init_stopped_early() < 0)
    return nullptr;
  return m.release();
}
