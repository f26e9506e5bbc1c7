// Lets an awaitable return its value where the interpreter calls tp_iternext. CPython 3.12 and
// later always call tp_iternext; earlier versions call am_send.
//
//   am_send ──value──► a StopIteration: a new one, or the spare one ──raised──► the interpreter
//       takes the value, and drops the StopIteration ──► spare
//
// The StopIteration raised here is of a subclass that keeps its last freed object for reuse, so
// that a communication allocates no such object. It has no context (the exception being handled),
// since no program sees it.
//
// Invariant: the spare object is untracked, and holds no value and no attribute that was set on it.
// Its `args` are empty, as are those of every object of this subclass.
#include "interpreter/returned.hpp"

#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "owned.hpp"

namespace weft::py {

#if PY_VERSION_HEX >= 0x030C0000

namespace {

PyTypeObject StopType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyObject* spare = nullptr;
destructor dealloc_for_good;

void stop_dealloc(PyObject* o) {
  auto* e = reinterpret_cast<PyStopIterationObject*>(o);
  // An object without args was cleared by the collector.
  if (spare || !e->args) return dealloc_for_good(o);
  PyObject_GC_UnTrack(o);
  Owned args = new_ref(e->args);
  Py_TYPE(o)->tp_clear(o);
  e->suppress_context = 0;
  // Code that ran during the clearing might have filled `spare`.
  if (PyTuple_GET_SIZE(args.get()) == 0 && !spare) {
    e->args = args.release();
    spare = o;
    return;
  }
  args.reset();
  PyObject_GC_Del(o);
}

PyObject* stop_with(PyObject* owned) {
  PyObject* o = std::exchange(spare, nullptr);
  if (o) [[likely]] {
    _Py_NewReference(o);
    PyObject_GC_Track(o);
  } else {
    o = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&StopType));
  }
  Owned value(owned);
  if (o) Py_XSETREF(reinterpret_cast<PyStopIterationObject*>(o)->value, value.release());
  return o;
}

}  // namespace

int init_returned(PyObject*) {
  auto* base = reinterpret_cast<PyTypeObject*>(PyExc_StopIteration);
  StopType.tp_name = "StopIteration";
  StopType.tp_doc = base->tp_doc;
  StopType.tp_base = base;
  StopType.tp_basicsize = base->tp_basicsize;
  StopType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  StopType.tp_traverse = base->tp_traverse;
  StopType.tp_clear = base->tp_clear;
  StopType.tp_dealloc = gated<stop_dealloc>;
  dealloc_for_good = base->tp_dealloc;
  return PyType_Ready(&StopType);
}

#else

namespace {
PyObject* stop_with(PyObject* owned) {
  const Owned value(owned);
  return PyObject_CallOneArg(PyExc_StopIteration, owned);
}
}  // namespace

int init_returned(PyObject*) { return 0; }

#endif

PyObject* iternext_by(sendfunc send, PyObject* self) {
  PyObject* r = nullptr;
  switch (send(self, Py_None, &r)) {
    case PYGEN_NEXT: return r;
    case PYGEN_ERROR: return nullptr;
    default: break;
  }
  Owned value(r);
  if (r == Py_None) return nullptr;  // null without an exception means None
  if (PyObject* stop = stop_with(value.release())) restore_exception(stop);
  return nullptr;
}

PyObject* send_by(sendfunc send, PyObject* self) {
  PyObject* r = iternext_by(send, self);
  if (!r && !PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
  return r;
}

}  // namespace weft::py
