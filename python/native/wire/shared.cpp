// The type weft.processes.Shared, and how it is pickled.
#include "wire/shared.hpp"

#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/lock.hpp"
#include "interpreter/numbers_alone.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

constexpr int kDims = 16;
thread_local AllSealed* beside = nullptr;
// The function of weft._hosts.pickling that pickle calls; it calls f_shared_found.
PyObject* shared_found_by = nullptr;

struct SharedObject {
  PyObject_HEAD Sealed* at;
  PyObject* format;  // a bytes object
  Py_ssize_t item;
  int dims;
  Py_ssize_t shape[kDims], strides[kDims];
};
PyTypeObject SharedType{PyVarObject_HEAD_INIT(nullptr, 0)};
SharedObject* shared_of(PyObject* o) noexcept { return reinterpret_cast<SharedObject*>(o); }

#ifdef __linux__
Py_ssize_t bytes_of(const Sealed& s) noexcept { return static_cast<Py_ssize_t>(s->bytes().size()); }
const void* data_of(const Sealed& s) noexcept { return s->bytes().data(); }
Sealed copy_of(const Py_buffer& b, bool again) {
  const wire::Bytes bytes{static_cast<const std::byte*>(b.buf), static_cast<std::size_t>(b.len)};
  return again ? wire::Sealed::copy_again(bytes) : wire::Sealed::copy_of(bytes);
}
void free_unused() noexcept { wire::Sealed::free_unused(); }
#else
Py_ssize_t bytes_of(const Sealed&) noexcept { return 0; }
const void* data_of(const Sealed&) noexcept { return nullptr; }
Sealed copy_of(const Py_buffer&, bool) {
  weft::detail::bad_use("Shared is for Linux: its memory is a sealed memfd");
}
void free_unused() noexcept {}
#endif

// Makes a Shared, which takes ownership of the format. Returns null with an exception if shape and
// bytes do not match.
PyObject* new_shared(PyTypeObject* type, Sealed s, Owned<> format, Py_ssize_t item, int dims,
                     const Py_ssize_t* shape) {
  Py_ssize_t size = item;
  for (int i = 0; i < dims; ++i) size *= shape[i];
  auto* const o =
      size == bytes_of(s) ? reinterpret_cast<SharedObject*>(type->tp_alloc(type, 0)) : nullptr;
  if (!o)
    return PyErr_Occurred() ? nullptr
                            : bad_use("a shared array came whose shape is not that of its memory");
  o->at = new Sealed(std::move(s));
  o->format = format.release();
  o->item = item;
  o->dims = dims;
  Py_ssize_t stride = item;
  for (int i = dims; i-- > 0; stride *= shape[i]) o->shape[i] = shape[i], o->strides[i] = stride;
  return reinterpret_cast<PyObject*>(o);
}

// Returns whether a buffer's format contains objects (O). In a format, field names are enclosed in
// colons.
bool has_objects(const char* format) noexcept {
  bool name = false;
  for (; *format; ++format) {
    if (*format == ':') name = !name;
    if (*format == 'O' && !name) return true;
  }
  return false;
}

// Makes the Shared of a copy. `again`: the memory of the copy is used again for later copies.
PyObject* shared_copy(PyTypeObject* type, PyObject* from, bool again) {
  if (const std::string more = more_than_numbers(from); !more.empty())
    return bad_use("Shared: %s", more.c_str());
  Py_buffer b;
  if (PyObject_GetBuffer(from, &b, PyBUF_CONTIG_RO | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    if (const std::string why = no_buffer_of(from); !why.empty())
      return bad_use("Shared: %s", why.c_str());
    return bad_use(
        "Shared: %.200s has no buffer whose bytes lie in one piece: take bytes, array.array, or "
        "numpy.ascontiguousarray(a)",
        Py_TYPE(from)->tp_name);
  }
  const char* const format = b.format ? b.format : "B";
  PyObject* made = nullptr;
  if (has_objects(format)) {
    bad_use(
        "Shared: the array's elements are objects, which mean nothing in another OS process: take "
        "numbers");
  } else if (b.ndim > kDims) {
    bad_use("Shared: an array of %d dimensions; %d are the most", b.ndim, kDims);
  } else {
    Sealed s;
    std::string wrong;
    PyThreadState* const state = give_up_lock();
    try {
      s = copy_of(b, again);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    take_lock(state);
    if (s) {
      if (Owned f(PyBytes_FromString(format)); f) {
        // A buffer without a shape counts as a row of bytes.
        const Py_ssize_t row = b.itemsize ? b.len / b.itemsize : b.len;
        made = new_shared(type, std::move(s), std::move(f), b.itemsize,
                          b.shape || b.ndim == 0 ? b.ndim : 1, b.shape ? b.shape : &row);
      }
    } else
      bad_use("Shared: %s", wrong.c_str());
  }
  PyBuffer_Release(&b);
  return made;
}
PyObject* shared_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* from;
  static const char* names[] = {"array", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Shared", const_cast<char**>(names), &from))
    return nullptr;
  return shared_copy(type, from, false);
}
// _shared_again(array): like Shared(array), but in memory that is used again when no OS process has
// the copy any more.
PyObject* f_shared_again(PyObject*, PyObject* from) { return shared_copy(&SharedType, from, true); }
// _free_unused_shared(): frees the memory that _shared_again() keeps for further copies.
PyObject* f_free_unused(PyObject*, PyObject*) {
  free_unused();
  Py_RETURN_NONE;
}
void shared_dealloc(PyObject* o) {
  delete shared_of(o)->at;
  Py_XDECREF(shared_of(o)->format);
  Py_TYPE(o)->tp_free(o);
}
int shared_buffer(PyObject* o, Py_buffer* view, int flags) {
  SharedObject* const s = shared_of(o);
  view->obj = nullptr;
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError,
                    "a Shared array is read-only for everyone who has it: change a copy");
    return -1;
  }
  view->buf = const_cast<void*>(data_of(*s->at));
  view->len = bytes_of(*s->at);
  view->itemsize = s->item;
  view->readonly = 1;
  view->ndim = s->dims;
  view->format = (flags & PyBUF_FORMAT) ? PyBytes_AS_STRING(s->format) : nullptr;
  view->shape = (flags & PyBUF_ND) ? s->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? s->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  view->obj = Py_NewRef(o);
  return 0;
}

PyObject* shape_of(PyObject* o, void*) {
  const SharedObject* const s = shared_of(o);
  Owned t(PyTuple_New(s->dims));
  for (int i = 0; t && i < s->dims; ++i) put(t, i, PyLong_FromSsize_t(s->shape[i]));
  return t.release();
}
PyObject* format_of(PyObject* o, void*) {
  return PyUnicode_FromString(PyBytes_AS_STRING(shared_of(o)->format));
}
PyObject* nbytes_of(PyObject* o, void*) { return PyLong_FromSsize_t(bytes_of(*shared_of(o)->at)); }
PyObject* shared_repr(PyObject* o) {
  const Owned shape(shape_of(o, nullptr));
  if (!shape) return nullptr;
  return PyUnicode_FromFormat("<Shared array of %R, format '%s'>", shape.get(),
                              PyBytes_AS_STRING(shared_of(o)->format));
}

PyObject* shared_reduce(PyObject* o, PyObject*) {
  const SharedObject* const s = shared_of(o);
  if (!beside)
    return bad_use(
        "a Shared array goes to other OS processes as an argument of theirs, or through a "
        "channel: it cannot be pickled by itself, without its memory");
  beside->push_back(*s->at);
  PyObject* const shape = shape_of(o, nullptr);
  return shape
             ? Py_BuildValue("(O(nOnN))", shared_found_by,
                             static_cast<Py_ssize_t>(beside->size() - 1), s->format, s->item, shape)
             : nullptr;
}
// _shared_found(number, format, item, shape): makes the Shared that shared_reduce() has pickled.
PyObject* f_shared_found(PyObject*, PyObject* args) {
  Py_ssize_t number, item, shape[kDims];
  PyObject *format, *sizes;
  if (!PyArg_ParseTuple(args, "nSnO!", &number, &format, &item, &PyTuple_Type, &sizes))
    return nullptr;
  const Py_ssize_t dims = PyTuple_GET_SIZE(sizes);
  if (!beside || number < 0 || static_cast<std::size_t>(number) >= beside->size() || dims > kDims ||
      item < 0)
    return bad_use("a shared array came without its memory");
  for (Py_ssize_t i = 0; i < dims; ++i)
    if ((shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i))) < 0) return nullptr;
  return new_shared(&SharedType, (*beside)[static_cast<std::size_t>(number)], new_ref(format), item,
                    static_cast<int>(dims), shape);
}

// --- a copy of the bytes that this OS process can change -----------------------------------------

#ifdef __linux__
struct OwnObject {
  PyObject_HEAD wire::Sealed::Own* at;
  Sealed* of;  // the array, which lives as long as this copy
};
PyTypeObject OwnType{PyVarObject_HEAD_INIT(nullptr, 0)};
OwnObject* own_of(PyObject* o) noexcept { return reinterpret_cast<OwnObject*>(o); }

// The last array of which this OS process had a copy to change, and that copy, if no code uses the
// copy and no code has written to it. Mapping a large array takes longer than reading it, so
// several calls of an Executor that have the same array use one mapping. Access needs the GIL.
struct Recent {
  Sealed array;
  std::unique_ptr<wire::Sealed::Own> copy;
};
Recent& recent() {
  static Recent* r = new Recent;  // never destroyed: copies can outlive the program's statics
  return *r;
}

void own_dealloc(PyObject* o) {
  std::unique_ptr<wire::Sealed::Own> copy(own_of(o)->at);
  const std::unique_ptr<Sealed> of(own_of(o)->of);
  Py_TYPE(o)->tp_free(o);
  Recent& r = recent();
  if (of && r.array == *of && !r.copy && copy->is_unchanged()) r.copy.swap(copy);
}
int own_buffer(PyObject* o, Py_buffer* view, int flags) {
  const std::span<std::byte> bytes = own_of(o)->at->bytes();
  return PyBuffer_FillInfo(view, o, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), 0, flags);
}
#endif

// _shared_to_change(shared): returns a writable buffer of the array's bytes, which no other code
// sees. Its pages are copied when they are written to. Returns None if there is no such memory.
PyObject* f_to_change(PyObject*, PyObject* o) {
  if (!PyObject_TypeCheck(o, &SharedType)) return bad_use("_shared_to_change takes a Shared array");
#ifdef __linux__
  const Sealed& array = *shared_of(o)->at;
  Recent& r = recent();
  if (r.array != array) {
    const bool kept = array->bytes().size() <= wire::Sealed::kMaxKept;
    r = {kept ? array : Sealed(), nullptr};
  }
  std::unique_ptr<wire::Sealed::Own> memory = std::move(r.copy);
  if (!memory) memory = array->to_change();
  if (memory) {
    PyObject* const own = OwnType.tp_alloc(&OwnType, 0);
    if (own) own_of(own)->at = memory.release(), own_of(own)->of = new Sealed(array);
    return own;
  }
#endif
  Py_RETURN_NONE;
}

PyMethodDef shared_methods[] = {{"__reduce_ex__", shared_reduce, METH_O, nullptr}, {}};
PyGetSetDef members[] = {
    {"shape", shape_of, nullptr, "The number of elements in each dimension.", nullptr},
    {"format", format_of, nullptr, "The type of an element, as the module struct writes it.",
     nullptr},
    {"nbytes", nbytes_of, nullptr, "The size of the array in bytes.", nullptr},
    {}};
PyMethodDef shared_functions[] = {
    {"_shared_found", f_shared_found, METH_VARARGS, nullptr},
    {"_shared_to_change", gated<f_to_change>, METH_O, nullptr},
    {"_shared_again", gated<f_shared_again>, METH_O, nullptr},
    {"_free_unused_shared", gated<f_free_unused>, METH_NOARGS, nullptr},
    {"_set_shared_found", gated<keep_given<&shared_found_by>>, METH_VARARGS, nullptr},
    {}};

}  // namespace

Beside::Beside(AllSealed& a) noexcept : outer_(std::exchange(beside, &a)) {}
Beside::~Beside() { beside = outer_; }

int init_shared(PyObject* m) {
  static PyBufferProcs buffer{&shared_buffer, nullptr};
  SharedType.tp_name = "weft.processes.Shared";
  SharedType.tp_doc = PyDoc_STR(
      "Shared(array)\n"
      "--\n\n"
      "An array that many OS processes read and none changes. It is copied once, when it is made, "
      "and mapped by each OS process that receives it. Linux only.\n\n"
      "It goes to another OS process as an argument of a process or through a channel, alone or "
      "within any value. memoryview(s) and numpy.asarray(s) are read-only views of its memory, "
      "which is freed with its last holder.\n\n"
      "Args:\n"
      "    array: any object with a C-contiguous buffer of numbers: bytes, array.array, a numpy "
      "array of up to 16 dimensions.\n"
      "Raises:\n"
      "    BadUse: `array` has no such buffer, or a buffer of objects; or there is no memory.");
  SharedType.tp_basicsize = sizeof(SharedObject);
  SharedType.tp_flags = Py_TPFLAGS_DEFAULT;
  SharedType.tp_new = shared_new;
  SharedType.tp_dealloc = shared_dealloc;
  SharedType.tp_repr = shared_repr;
  SharedType.tp_as_buffer = &buffer;
  SharedType.tp_methods = shared_methods;
  SharedType.tp_getset = members;
#ifdef __linux__
  static PyBufferProcs own{&own_buffer, nullptr};
  OwnType.tp_name = "weft._native._ToChange";
  OwnType.tp_doc = PyDoc_STR("The bytes of a Shared array, to be changed by one OS process alone.");
  OwnType.tp_basicsize = sizeof(OwnObject);
  OwnType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  OwnType.tp_dealloc = own_dealloc;
  OwnType.tp_as_buffer = &own;
  if (PyType_Ready(&OwnType) < 0) return -1;
#endif
  if (PyType_Ready(&SharedType) < 0 ||
      PyModule_AddObjectRef(m, "Shared", reinterpret_cast<PyObject*>(&SharedType)) < 0)
    return -1;
  return PyModule_AddFunctions(m, shared_functions);
}

}  // namespace weft::py
