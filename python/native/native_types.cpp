// Types of native values, their conversions and their blocks (native_types.hpp).
#include "native_types.hpp"

#include <cstring>
#include <map>
#include <mutex>

namespace weft::py {

// --- types ------------------------------------------------------------------------------------------------------------------------------

class NativeType {
 public:
  char kind;  // the first letter: i d b n s y [ ( { ? a
  char code;  // of an array's numbers, as in Python's module struct
  std::vector<const NativeType*> parts;
  std::string text;

  std::size_t item() const noexcept { return std::strchr("bB", code) ? 1 : std::strchr("hH", code) ? 2 : std::strchr("iIf", code) ? 4 : 8; }
  bool in_line() const noexcept { return kind == 'i' || kind == 'd' || kind == 'b' || kind == 'n'; }
  bool bare() const noexcept { return kind == 's' || kind == 'y'; }
};

namespace {

std::map<std::string, std::unique_ptr<NativeType>, std::less<>> types;  // under the GIL

constexpr int kDeepest = 32;  // types within types

const NativeType* parse(const char*& at, int depth) {
  const char* const begin = at;
  NativeType t{};
  t.kind = *at;
  const auto inner = [&](char close) {
    ++at;
    while (*at && *at != close) {
      const NativeType* p = depth < kDeepest ? parse(at, depth + 1) : nullptr;
      if (!p) return false;
      t.parts.push_back(p);
    }
    return *at == close;
  };
  switch (t.kind) {
    case 'i':
    case 'd':
    case 'b':
    case 'n':
    case 's':
    case 'y': break;
    case 'a':
      if (depth > 0 || !at[1] || !std::strchr("bBhHiIqQfd", at[1])) return nullptr;
      t.code = *++at;
      break;
    case '[':
      if (!inner(']') || t.parts.size() != 1) return nullptr;
      break;
    case '(':
      if (!inner(')')) return nullptr;
      break;
    case '{':
      if (!inner('}') || t.parts.size() != 2) return nullptr;
      break;
    case '?': {
      ++at;
      const NativeType* p = depth < kDeepest ? parse(at, depth + 1) : nullptr;
      if (!p) return nullptr;
      t.parts.push_back(p);
      --at;
      break;
    }
    default: return nullptr;
  }
  ++at;
  t.text.assign(begin, at);
  auto& kept = types[t.text];
  if (!kept) kept = std::make_unique<NativeType>(std::move(t));
  return kept.get();
}

}  // namespace

const NativeType* native_type(const char* text) {
  const char* at = text;
  const NativeType* t = parse(at, 0);
  if (t && !*at) return t;
  bad_use("'%s' is no type of a native value: see weft/component_abi.h", text);
  return nullptr;
}

std::string describe(const NativeType* t) {
  switch (t->kind) {
    case 'i': return "int";
    case 'd': return "float";
    case 'b': return "bool";
    case 'n': return "None";
    case 's': return "str";
    case 'y': return "bytes";
    case 'a':
      return "array[" +
             std::string(t->code == 'f' || t->code == 'd' ? "float"
                         : t->code < 'a'                  ? "uint"
                                                          : "int") +
             std::to_string(8 * t->item()) + "]";
    case '[': return "list[" + describe(t->parts[0]) + "]";
    case '{': return "dict[" + describe(t->parts[0]) + ", " + describe(t->parts[1]) + "]";
    case '?': return describe(t->parts[0]) + " | None";
    default: {
      std::string s = "tuple[";
      for (std::size_t i = 0; i < t->parts.size(); ++i) s.append(i ? ", " : "").append(describe(t->parts[i]));
      return s + (t->parts.empty() ? "()]" : "]");
    }
  }
}

// --- from Python ------------------------------------------------------------------------------------------------------------------------

namespace {

int refuse(const NativeType* t, PyObject* value) {
  PyErr_Format(PyExc_TypeError, "%s is wanted, and %R is of type %.100s", describe(t).c_str(), value, Py_TYPE(value)->tp_name);
  return -1;
}

int bits_of(const NativeType* t, PyObject* v, std::uint64_t& bits) {
  bits = 0;
  switch (t->kind) {
    case 'i': {
      if (!PyIndex_Check(v)) return refuse(t, v);
      PyObject* const n = PyNumber_Index(v);
      if (!n) return -1;
      int beyond = 0;
      bits = static_cast<std::uint64_t>(PyLong_AsLongLongAndOverflow(n, &beyond));
      Py_DECREF(n);
      if (beyond) {
        PyErr_Format(PyExc_OverflowError, "%R does not fit into 64 bits", v);
        return -1;
      }
      return PyErr_Occurred() ? -1 : 0;
    }
    case 'd': {
      const PyNumberMethods* const as = Py_TYPE(v)->tp_as_number;
      if (!as || (!as->nb_float && !as->nb_index)) return refuse(t, v);
      const double d = PyFloat_AsDouble(v);
      if (d == -1.0 && PyErr_Occurred()) return -1;
      std::memcpy(&bits, &d, 8);
      return 0;
    }
    case 'b':
      if (!PyBool_Check(v)) return refuse(t, v);
      bits = v == Py_True;
      return 0;
    default: return v == Py_None ? 0 : refuse(t, v);
  }
}

// The characters or bytes of a value of type s or y; `f(data, size)`.
template <class F>
int bare_of(const NativeType* t, PyObject* v, F&& f) {
  if (t->kind == 's') {
    if (!PyUnicode_Check(v)) return refuse(t, v);
    Py_ssize_t n = 0;
    const char* const p = PyUnicode_AsUTF8AndSize(v, &n);
    return p ? f(p, static_cast<std::size_t>(n)) : -1;
  }
  if (PyUnicode_Check(v) || !PyObject_CheckBuffer(v)) return refuse(t, v);
  Py_buffer b;
  if (PyObject_GetBuffer(v, &b, PyBUF_SIMPLE) < 0) return -1;
  const int r = f(static_cast<const char*>(b.buf), static_cast<std::size_t>(b.len));
  PyBuffer_Release(&b);
  return r;
}

void put_bits(std::string& to, std::uint64_t bits) { to.append(reinterpret_cast<const char*>(&bits), 8); }

int flatten(const NativeType* t, PyObject* v, std::string& to);

int flatten_items(const NativeType* t, PyObject* v, std::string& to) {
  if (PyUnicode_Check(v) || PyBytes_Check(v) || PyByteArray_Check(v) || PyDict_Check(v) || PyAnySet_Check(v) || !PySequence_Check(v) ||
      (t->kind == '(' && !PyTuple_Check(v) && !PyList_Check(v)))
    return refuse(t, v);
  PyObject* const all = PySequence_Tuple(v);  // its own: what converts an item may change a list
  if (!all) return -1;
  const Py_ssize_t n = PyTuple_GET_SIZE(all);
  int r = 0;
  if (t->kind == '[')
    put_bits(to, static_cast<std::uint64_t>(n));
  else if (static_cast<std::size_t>(n) != t->parts.size())
    r = refuse(t, v);
  for (Py_ssize_t i = 0; r == 0 && i < n; ++i)
    r = flatten(t->kind == '[' ? t->parts[0] : t->parts[static_cast<std::size_t>(i)], PyTuple_GET_ITEM(all, i), to);
  Py_DECREF(all);
  return r;
}
int flatten_dict(const NativeType* t, PyObject* v, std::string& to) {
  if (!PyDict_Check(v)) return refuse(t, v);
  PyObject* const all = PyDict_Items(v);
  if (!all) return -1;
  int r = 0;
  put_bits(to, static_cast<std::uint64_t>(PyList_GET_SIZE(all)));
  for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(all); ++i) {
    PyObject* const kv = PyList_GET_ITEM(all, i);
    r = flatten(t->parts[0], PyTuple_GET_ITEM(kv, 0), to) < 0 ? -1 : flatten(t->parts[1], PyTuple_GET_ITEM(kv, 1), to);
  }
  Py_DECREF(all);
  return r;
}

int flatten(const NativeType* t, PyObject* v, std::string& to) {
  std::uint64_t bits;
  switch (t->kind) {
    case 'i':
    case 'd':
      if (bits_of(t, v, bits) < 0) return -1;
      put_bits(to, bits);
      return 0;
    case 'b':
      if (bits_of(t, v, bits) < 0) return -1;
      to.push_back(bits ? '\1' : '\0');
      return 0;
    case 'n': return bits_of(t, v, bits);
    case 's':
    case 'y':
      return bare_of(t, v, [&](const char* p, std::size_t n) {
        put_bits(to, n);
        to.append(p, n);
        return 0;
      });
    case '?': to.push_back(v == Py_None ? '\0' : '\1'); return v == Py_None ? 0 : flatten(t->parts[0], v, to);
    case '{': return flatten_dict(t, v, to);
    default: {
      if (Py_EnterRecursiveCall(" while a value is converted for a native channel")) return -1;
      const int r = flatten_items(t, v, to);
      Py_LeaveRecursiveCall();
      return r;
    }
  }
}

// --- arrays -----------------------------------------------------------------------------------------------------------------------------

struct BlockHead {
  void (*give_back)(void* block) noexcept;  // null: it is memory and nothing else
  std::uint64_t unused;
};
BlockHead* head_of(void* block) noexcept { return static_cast<BlockHead*>(block) - 1; }

struct Lent {  // a block
  weft_buffer buffer;
  Py_buffer view;
};
prim::Mutex lent_lock;
std::vector<Lent*> lent_back;  // lent_lock
prim::atomic<bool> any_back{false};

int release_when_called(void*) {
  release_lent();
  return 0;
}
// Perhaps without the GIL, perhaps under a lock of the core, where no finaliser may run.
void give_back_lent(void* block) noexcept {
  bool first;
  {
    const std::lock_guard g(lent_lock);
    first = lent_back.empty();
    lent_back.push_back(static_cast<Lent*>(block));
    any_back.store(true, std::memory_order_release);
  }
  if (first) Py_AddPendingCall(gated<release_when_called>, nullptr);  // if it does not take it: at the next safe point of any of ours
}

// i, u or f: what kind of numbers a format of the buffer protocol has; 0: none that we know.
char kind_of_format(const char* f) noexcept {
  if (!f) return 'u';
  if (*f && std::strchr("@=<", *f)) ++f;  // this machine's order of bytes
  if (!*f || f[1]) return 0;
  return std::strchr("bhilqn", *f) ? 'i' : std::strchr("BHILQN", *f) ? 'u' : std::strchr("fd", *f) ? 'f' : 0;
}

int lend(const NativeType* t, PyObject* v, weft_value& to) {
  if (!PyObject_CheckBuffer(v)) return refuse(t, v);
  void* const memory = allocate_block(sizeof(Lent));
  if (!memory) {
    PyErr_NoMemory();
    return -1;
  }
  auto* const l = new (memory) Lent{};
  if (PyObject_GetBuffer(v, &l->view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
    release_block(memory);
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s is wanted, and %R of type %.100s is not contiguous memory that may be written to: make a copy of it",
                 describe(t).c_str(), v, Py_TYPE(v)->tp_name);
    return -1;
  }
  const char kind = t->code == 'f' || t->code == 'd' ? 'f' : t->code < 'a' ? 'u' : 'i';
  if (kind_of_format(l->view.format) != kind || static_cast<std::size_t>(l->view.itemsize) != t->item()) {
    PyErr_Format(PyExc_TypeError, "%s is wanted, and the items of %.100s are of format '%s', %zd bytes each", describe(t).c_str(),
                 Py_TYPE(v)->tp_name, l->view.format ? l->view.format : "B", l->view.itemsize);
    PyBuffer_Release(&l->view);
    release_block(memory);
    return -1;
  }
  head_of(memory)->give_back = &give_back_lent;
  l->buffer = {l->view.buf, static_cast<std::uint64_t>(l->view.len)};
  to = {static_cast<std::uint64_t>(l->view.len) / t->item(), memory};
  return 0;
}

// An array that a component has written, as Python sees it: the exporter of a memoryview.
struct ArrayObject {
  PyObject_HEAD void* block;
  Py_ssize_t count, item;
  char format[2];
};
PyTypeObject ArrayType{PyVarObject_HEAD_INIT(nullptr, 0)};
void array_dealloc(PyObject* o) {
  release_block(reinterpret_cast<ArrayObject*>(o)->block);
  PyObject_Free(o);
}
int array_buffer(PyObject* o, Py_buffer* view, int flags) {
  auto* const a = reinterpret_cast<ArrayObject*>(o);
  static char nothing[8];
  void* const data = a->block ? static_cast<weft_buffer*>(a->block)->data : nothing;
  if (PyBuffer_FillInfo(view, o, data, a->count * a->item, 0, flags) < 0) return -1;
  view->itemsize = a->item;
  if (flags & PyBUF_FORMAT) view->format = a->format;
  if ((flags & PyBUF_ND) == PyBUF_ND) view->shape = &a->count;
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = &a->item;
  return 0;
}
// Takes the block over; null with an exception: it is given back.
PyObject* view_of(const NativeType* t, weft_value& v) {
  ArrayObject* const a = PyObject_New(ArrayObject, &ArrayType);
  if (!a) {
    drop_native(v);
    return nullptr;
  }
  a->block = std::exchange(v.block, nullptr);
  a->count = static_cast<Py_ssize_t>(v.bits);
  a->item = static_cast<Py_ssize_t>(t->item());
  a->format[0] = t->code;
  a->format[1] = 0;
  PyObject* const r = PyMemoryView_FromObject(reinterpret_cast<PyObject*>(a));
  Py_DECREF(reinterpret_cast<PyObject*>(a));
  return r;
}

int copy_block(const char* data, std::size_t size, weft_value& to) {
  to.bits = size;
  if (size == 0) return 0;
  if (!(to.block = allocate_block(size))) {
    PyErr_NoMemory();
    return -1;
  }
  std::memcpy(to.block, data, size);
  return 0;
}

}  // namespace

void* allocate_block(std::size_t bytes) noexcept {
  auto* const h = static_cast<BlockHead*>(std::malloc(sizeof(BlockHead) + bytes));
  if (!h) return nullptr;
  *h = {};
  return h + 1;
}
void release_block(void* block) noexcept {
  if (!block) return;
  if (const auto give_back = head_of(block)->give_back) return give_back(block);
  std::free(head_of(block));
}
void release_lent() noexcept {
  if (!any_back.load(std::memory_order_acquire)) [[likely]]
    return;
  std::vector<Lent*> all;
  {
    const std::lock_guard g(lent_lock);
    all.swap(lent_back);
    any_back.store(false, std::memory_order_release);
  }
  const Beyond beyond;
  for (Lent* l : all) {
    PyBuffer_Release(&l->view);
    std::free(head_of(l));
  }
}

int to_native(const NativeType* t, PyObject* value, weft_value& to) {
  to = {0, nullptr};
  if (t->kind == 'a') return lend(t, value, to);
  if (t->in_line()) return bits_of(t, value, to.bits);
  if (t->bare()) return bare_of(t, value, [&](const char* p, std::size_t n) { return copy_block(p, n, to); });
  try {
    std::string flat;
    return flatten(t, value, flat) < 0 ? -1 : copy_block(flat.data(), flat.size(), to);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  }
}

// --- to Python --------------------------------------------------------------------------------------------------------------------------

namespace {

struct Flat {
  const char* at;
  std::size_t left;
  bool cut = false;

  const char* take(std::size_t n) noexcept {
    if (n > left) {
      cut = true;
      return nullptr;
    }
    left -= n;
    return std::exchange(at, at + n);
  }
  std::uint64_t bits() noexcept {
    std::uint64_t b = 0;
    if (const char* p = take(8)) std::memcpy(&b, p, 8);
    return b;
  }
};

PyObject* of_bits(const NativeType* t, std::uint64_t bits) {
  switch (t->kind) {
    case 'i': return PyLong_FromLongLong(static_cast<long long>(bits));
    case 'd': {
      double d;
      std::memcpy(&d, &bits, 8);
      return PyFloat_FromDouble(d);
    }
    case 'b': return PyBool_FromLong(bits != 0);
    default: return Py_NewRef(Py_None);
  }
}
PyObject* of_bare(const NativeType* t, const char* p, std::size_t n) {
  if (!p && n > 0) return nullptr;
  return t->kind == 's' ? PyUnicode_DecodeUTF8(p ? p : "", static_cast<Py_ssize_t>(n), "strict")
                        : PyBytes_FromStringAndSize(p, static_cast<Py_ssize_t>(n));
}

PyObject* unflatten(const NativeType* t, Flat& from) {
  switch (t->kind) {
    case 'i':
    case 'd': {
      const std::uint64_t bits = from.bits();
      return from.cut ? nullptr : of_bits(t, bits);
    }
    case 'b': {
      const char* p = from.take(1);
      return p ? of_bits(t, static_cast<std::uint64_t>(*p)) : nullptr;
    }
    case 'n': return Py_NewRef(Py_None);
    case 's':
    case 'y': {
      const std::uint64_t n = from.bits();
      const char* p = from.cut ? nullptr : from.take(n);
      return p ? of_bare(t, p, n) : nullptr;
    }
    case '?': {
      const char* p = from.take(1);
      return !p ? nullptr : *p ? unflatten(t->parts[0], from) : Py_NewRef(Py_None);
    }
    case '[': {
      const std::uint64_t n = from.bits();
      PyObject* all = from.cut ? nullptr : PyList_New(0);
      for (std::uint64_t i = 0; all && i < n; ++i) {
        PyObject* const x = unflatten(t->parts[0], from);
        if (!x || PyList_Append(all, x) < 0) Py_CLEAR(all);
        Py_XDECREF(x);
      }
      return all;
    }
    case '{': {
      const std::uint64_t n = from.bits();
      PyObject* all = from.cut ? nullptr : PyDict_New();
      for (std::uint64_t i = 0; all && i < n; ++i) {
        PyObject* const k = unflatten(t->parts[0], from);
        PyObject* const x = k ? unflatten(t->parts[1], from) : nullptr;
        if (!x || PyDict_SetItem(all, k, x) < 0) Py_CLEAR(all);
        Py_XDECREF(k);
        Py_XDECREF(x);
      }
      return all;
    }
    default: {
      PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(t->parts.size()));
      for (std::size_t i = 0; all && i < t->parts.size(); ++i) {
        PyObject* const x = unflatten(t->parts[i], from);
        if (x)
          PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), x);
        else
          Py_CLEAR(all);
      }
      return all;
    }
  }
}

}  // namespace

PyObject* from_native(const NativeType* t, const weft_value& v) {
  if (t->in_line()) return of_bits(t, v.bits);
  const auto* const p = static_cast<const char*>(v.block);
  if (t->bare()) return of_bare(t, p, static_cast<std::size_t>(v.bits));
  Flat from{p, p ? static_cast<std::size_t>(v.bits) : 0};
  PyObject* const r = unflatten(t, from);
  if (!r && !PyErr_Occurred()) bad_use("a component wrote a value that is no %s: its block is too short", describe(t).c_str());
  return r;
}

PyObject* to_python(const NativeType* t, weft_value& v) { return t->kind == 'a' ? view_of(t, v) : from_native(t, v); }

int init_native_types() {
  static PyBufferProcs buffer{&array_buffer, nullptr};
  ArrayType.tp_name = "weft.native.Array";
  ArrayType.tp_basicsize = sizeof(ArrayObject);
  ArrayType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ArrayType.tp_dealloc = array_dealloc;
  ArrayType.tp_as_buffer = &buffer;
  return PyType_Ready(&ArrayType);
}

}  // namespace weft::py
