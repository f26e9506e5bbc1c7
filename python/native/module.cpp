// The extension module weft._native.
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "owned.hpp"
#include "weft/version.hpp"

namespace weft::py {
namespace {
// Types and objects of the extension are static, and its threads enter the main interpreter (rule
// 16.11). A subinterpreter that shares the lock gets a copy of the module's dictionary without a
// call of PyInit__native. Therefore weft._extension also checks that it runs in the main
// interpreter.
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

// Each file has a function init_… that makes its types and functions. The function returns 0, or -1
// with an exception. The functions are called in this order.
// clang-format off
#define WEFT_PARTS(X) \
  X(channel) X(operation) X(extended) X(many) X(process) X(function) X(guard) X(choice) \
  X(alternative) X(group) X(block) X(generators) X(time) X(arrays) X(observe) X(partial) \
  X(report) X(caller) X(returned) X(greenlet) X(io) X(limit) X(line) X(left_open) X(watch) \
  X(foreign_threads) X(far_channel) X(plain) X(places) X(numpy_memory) X(packed) X(shared) X(moved) X(feed) X(passing) \
  X(wire) X(network) X(rounds) X(native_arrays) X(native_types) X(cells) X(component_calls) \
  X(component) X(alloc) X(asyncio) X(guest_process) X(guest) X(interrupts) X(handlers) \
  X(outside) X(no_result) X(stopped_early) X(checking) X(look) X(look_door) X(flight) \
  X(flight_read) X(socket_operation) X(streams)
// clang-format on
#define WEFT_DECLARED(part) int init_##part(PyObject*);
WEFT_PARTS(WEFT_DECLARED)
#define WEFT_LISTED(part) &init_##part,
static constexpr int (*inits[])(PyObject*) = {WEFT_PARTS(WEFT_LISTED)};

#ifdef Py_GIL_DISABLED
GateObject gate_object{PyObject_HEAD_INIT(&PyBaseObject_Type)};
#endif
}  // namespace weft::py

PyMODINIT_FUNC PyInit__native() {
  using namespace weft::py;
  // CPython uses the same text when it refuses a module in a subinterpreter
  if (!in_main_interpreter()) {
    PyErr_SetString(PyExc_ImportError,
                    "module weft._native does not support loading in subinterpreters");
    return nullptr;
  }
  if (import_errors() < 0) return nullptr;
  Owned m(PyModule_Create(&definition));
  if (!m) return nullptr;
#ifdef Py_GIL_DISABLED
  if (PyUnstable_Module_SetGIL(m.get(), Py_MOD_GIL_NOT_USED) < 0) return nullptr;  // see gate.hpp
#endif
  if (PyModule_AddStringConstant(m.get(), "version", WEFT_VERSION) < 0) return nullptr;
  for (const auto init : inits)
    if (init(m.get()) < 0) return nullptr;
  return m.release();
}
