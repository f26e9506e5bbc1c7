// Values on their way to another OS process: the bytes of a pickle, and the object that they were made of if it was made here.
#include "packed.hpp"

namespace weft::py {

namespace {

PyTypeObject PackedType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyObject* dumps = nullptr;  // (value, channel) -> bytes, by weft._pickling
PyObject* loads = nullptr;  // (bytes, channel) -> value

PackedObject* packed_of(PyObject* o) noexcept { return reinterpret_cast<PackedObject*>(o); }

PyObject* new_packed(PyObject* bytes, PyObject* original) noexcept {
  PackedObject* p = PyObject_New(PackedObject, &PackedType);
  if (p) {
    p->bytes = bytes;
    p->original = original;
    return reinterpret_cast<PyObject*>(p);
  }
  Py_DECREF(bytes);
  Py_XDECREF(original);
  return nullptr;
}

void packed_dealloc(PyObject* o) {
  Py_DECREF(packed_of(o)->bytes);
  Py_XDECREF(packed_of(o)->original);
  PyObject_Free(o);
}

PyObject* f_set_pickling(PyObject*, PyObject* args) {
  PyObject *d, *l;
  if (!PyArg_ParseTuple(args, "OO", &d, &l)) return nullptr;
  Py_XSETREF(dumps, Py_NewRef(d));
  Py_XSETREF(loads, Py_NewRef(l));
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_set_pickling", gated<f_set_pickling>, METH_VARARGS, nullptr}, {}};

}  // namespace

bool is_packed(PyObject* o) noexcept { return Py_IS_TYPE(o, &PackedType); }

PyObject* packed_from(const void* data, std::size_t size) noexcept {
  PyObject* bytes = PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(size));
  return bytes ? new_packed(bytes, nullptr) : nullptr;
}

PyObject* pack(ChannelObject* c, PyObject* value) {
  if (is_packed(value)) return value;
  PyObject* bytes;
  {
    const Beyond beyond;
    bytes = PyObject_CallFunctionObjArgs(dumps, value, reinterpret_cast<PyObject*>(c), nullptr);
  }
  if (bytes) return new_packed(bytes, value);
  Py_DECREF(value);
  return nullptr;
}

PyObject* unpack(const ChannelObject* c, PyObject* packed) {
  if (!is_packed(packed)) return packed;
  PyObject* r;
  {
    const Beyond beyond;
    r = PyObject_CallFunctionObjArgs(loads, packed_of(packed)->bytes, reinterpret_cast<const PyObject*>(c), nullptr);
  }
  Py_DECREF(packed);
  return r;
}

PyObject* unsent(PyObject* packed) noexcept {
  if (!packed || !is_packed(packed) || !packed_of(packed)->original) return packed;
  PyObject* original = Py_NewRef(packed_of(packed)->original);
  Py_DECREF(packed);
  return original;
}

int init_packed(PyObject* m) {
  PackedType.tp_name = "weft._Packed";
  PackedType.tp_basicsize = sizeof(PackedObject);
  PackedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PackedType.tp_dealloc = gated<packed_dealloc>;
  if (PyType_Ready(&PackedType) < 0) return -1;
  return PyModule_AddFunctions(m, functions);
}

}  // namespace weft::py
