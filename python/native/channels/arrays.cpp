// `process * n` and `channel * n`. weft/_backends/arrays.py makes the objects, from the properties
// of the original that this file passes to it.
#include "channels/arrays.hpp"

#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "processes/process.hpp"
#include "values/cells.hpp"

namespace weft::py {

namespace {

PyObject* make_clones = nullptr;
PyObject* make_channels = nullptr;

PyMethodDef arrays_functions[] = {
    {"_set_arrays", gated<keep_given<&make_clones, &make_channels>>, METH_VARARGS, nullptr}, {}};

// Stores the operand that is a number in `n`, and returns the other operand. Returns null if there
// is no number; the operator then returns NotImplemented.
PyObject* times(PyObject* a, PyObject* b, PyTypeObject* type, Py_ssize_t& n) {
  PyObject* it = Py_IS_TYPE(a, type) ? a : b;
  PyObject* number = it == a ? b : a;
  if (!PyIndex_Check(number)) return nullptr;
  n = PyNumber_AsSsize_t(number, PyExc_OverflowError);
  return it;
}

}  // namespace

PyObject* process_times(PyObject* a, PyObject* b) {
  Py_ssize_t n = 0;
  PyObject* o = times(a, b, &ProcessType, n);
  if (!o) Py_RETURN_NOTIMPLEMENTED;
  if (n == -1 && PyErr_Occurred()) return nullptr;
  auto* p = reinterpret_cast<ProcessObject*>(o);
  if (p->started || !p->body)
    return bad_use(
        "process %s * %zd: the process has already started; multiply it before it starts",
        p->base.function ? p->base.function : "?", n);
  PyObject* r =
      PyObject_CallFunction(make_clones, "OOOn", o, p->outcome ? p->outcome : Py_None, p->body, n);
  // the caller asked for no process, so this one is never started
  if (r && n == 0) p->given_up = 1;
  return r;
}

PyObject* channel_times(PyObject* a, PyObject* b) {
  Py_ssize_t n = 0;
  PyObject* o = times(a, b, &ChannelType, n);
  if (!o) Py_RETURN_NOTIMPLEMENTED;
  if (n == -1 && PyErr_Occurred()) return nullptr;
  Engine& c = reinterpret_cast<ChannelObject*>(o)->core;
  static const char* const overflows[] = {"block", "drop_oldest", "drop_newest", "unbounded"};
  const char* overflow = overflows[c.ring ? static_cast<int>(c.ring->overflow) : 0];
  PyObject* name = PyObject_GetAttrString(o, "name");
  if (!name) return nullptr;
  Owned all(
      PyObject_CallFunction(make_channels, "Nnnsi", name, n,
                            c.ring ? static_cast<Py_ssize_t>(c.ring->capacity) : Py_ssize_t{0},
                            overflow, int{reinterpret_cast<ChannelObject*>(o)->immunity}));
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i)
    if (type_like(reinterpret_cast<ChannelObject*>(o),
                  reinterpret_cast<ChannelObject*>(PyList_GET_ITEM(all.get(), i))) < 0)
      all.reset();
  return all.release();
}

int init_arrays(PyObject* m) { return PyModule_AddFunctions(m, arrays_functions); }

}  // namespace weft::py
