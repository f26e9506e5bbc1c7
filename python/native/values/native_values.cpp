// Converts native values to Python objects, and Python objects to native values (native_types.hpp).
#include <algorithm>

#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "sequences.hpp"
#include "values/native_type.hpp"
#include "values/native_types.hpp"

namespace weft::py {

// --- from Python ---------------------------------------------------------------------------------

PyObject* shown(PyObject* value, const char* otherwise) {
  constexpr Py_ssize_t kShown = 200;
  Owned text(PyObject_Repr(value));
  if (!text) {  // the value is nested too deeply, or its repr() fails
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    PyErr_Clear();
    return PyUnicode_FromFormat(otherwise, Py_TYPE(value)->tp_name);
  }
  if (PyUnicode_GET_LENGTH(text.get()) > kShown) {
    text.reset(PyUnicode_Substring(text.get(), 0, kShown));
    if (text) text.reset(PyUnicode_FromFormat("%U…", text.get()));
  }
  return text.release();
}
int refuse(const NativeType* t, PyObject* value) {
  const Owned what(shown(value, "what came"));
  if (what)
    PyErr_Format(PyExc_TypeError, "expected %s, but %U is of type %.100s", describe(t).c_str(),
                 what.get(), Py_TYPE(value)->tp_name);
  return -1;
}
bool says_no_value(PyObject* raised) {
  PyObject* const types[] = {PyExc_TypeError, PyExc_OverflowError, PyExc_UnicodeError,
                             errors.NoResult};
  return std::any_of(std::begin(types), std::end(types),
                     [=](PyObject* t) { return PyErr_GivenExceptionMatches(raised, t); });
}

namespace {

int bits_of(const NativeType* t, PyObject* v, std::uint64_t& bits) {
  bits = 0;
  switch (t->kind) {
    case 'i': {
      if (!PyIndex_Check(v)) return refuse(t, v);
      const Owned n(PyNumber_Index(v));
      if (!n) return -1;
      int beyond = 0;
      bits = static_cast<std::uint64_t>(PyLong_AsLongLongAndOverflow(n.get(), &beyond));
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

// Passes the characters or bytes of a value of type s or y to `f(data, size)`.
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

void put_bits(Flattened& to, std::uint64_t bits) {
  to.bytes.append(reinterpret_cast<const char*>(&bits), 8);
}

int flatten(const NativeType* t, PyObject* v, Flattened& to);

bool has_items(const NativeType* t, PyObject* v) noexcept {
  if (t->kind == '(') return PyTuple_Check(v) || PyList_Check(v);
  return PySequence_Check(v) && !PyUnicode_Check(v) && !PyBytes_Check(v) && !PyByteArray_Check(v) &&
         !PyDict_Check(v) && !PyAnySet_Check(v);
}
int flatten_items(const NativeType* t, PyObject* v, Flattened& to) {
  if (!has_items(t, v)) return refuse(t, v);
  const Owned all(PySequence_Tuple(v));  // copied, because converting an item can change a list
  if (!all) return -1;
  const Py_ssize_t n = PyTuple_GET_SIZE(all.get());
  int r = 0;
  if (t->kind == '[')
    put_bits(to, static_cast<std::uint64_t>(n));
  else if (static_cast<std::size_t>(n) != t->parts.size())
    r = refuse(t, v);
  for (Py_ssize_t i = 0; r == 0 && i < n; ++i)
    r = flatten(t->kind == '[' ? t->parts[0] : t->parts[static_cast<std::size_t>(i)],
                PyTuple_GET_ITEM(all.get(), i), to);
  return r;
}
int flatten_dict(const NativeType* t, PyObject* v, Flattened& to) {
  if (!PyDict_Check(v)) return refuse(t, v);
  const Owned all(PyDict_Items(v));
  if (!all) return -1;
  int r = 0;
  put_bits(to, static_cast<std::uint64_t>(PyList_GET_SIZE(all.get())));
  for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* const kv = PyList_GET_ITEM(all.get(), i);
    r = flatten(t->parts[0], PyTuple_GET_ITEM(kv, 0), to) < 0
            ? -1
            : flatten(t->parts[1], PyTuple_GET_ITEM(kv, 1), to);
  }
  return r;
}

int flatten_fields(const NativeType* t, PyObject* v, Flattened& to) {
  const int fits = fits_aggregate(t, Py_TYPE(v));
  if (fits <= 0) return fits < 0 ? -1 : refuse(t, v);
  for (std::size_t i = 0; i < t->parts.size(); ++i) {
    const Owned x(PyObject_GetAttr(v, PyTuple_GET_ITEM(t->names, static_cast<Py_ssize_t>(i))));
    const int r = x ? flatten(t->parts[i], x.get(), to) : -1;
    if (r < 0) return -1;
  }
  return 0;
}

// In the flattened form a value of type v is preceded by a letter for the type of that value.
constexpr int kDeepestValue = 100;  // the deepest nesting of lists and dicts
// Returns the letter of a value that is neither a list nor a dict; 0 if it cannot be a Value.
char kind_of_scalar(PyObject* v) noexcept {
  if (v == Py_None) return 'n';
  if (PyBool_Check(v)) return 'b';
  if (PyUnicode_Check(v)) return 's';
  if (PyBytes_Check(v) || PyByteArray_Check(v)) return 'y';
  const PyNumberMethods* const number = Py_TYPE(v)->tp_as_number;
  if (PySequence_Check(v) || !number) return 0;
  return number->nb_index ? 'i' : number->nb_float ? 'd' : '\0';
}

int flatten_any(const NativeType* t, PyObject* v, Flattened& to, int depth);
// Flattens a list, a tuple or a dict.
int flatten_any_items(const NativeType* t, PyObject* v, Flattened& to, int depth) {
  const bool dict = PyDict_Check(v);
  // The items are copied, because converting an item can change the original.
  const Owned all(dict ? PyDict_Items(v) : PySequence_Tuple(v));
  if (!all) return -1;
  const Py_ssize_t n = PySequence_Size(all.get());
  to.bytes.push_back(dict ? '{' : '[');
  put_bits(to, static_cast<std::uint64_t>(n));
  int r = 0;
  for (Py_ssize_t i = 0; r == 0 && i < n; ++i) {
    PyObject* const x = dict ? PyList_GET_ITEM(all.get(), i) : PyTuple_GET_ITEM(all.get(), i);
    if (dict && flatten_any(t, PyTuple_GET_ITEM(x, 0), to, depth) < 0) return -1;
    r = flatten_any(t, dict ? PyTuple_GET_ITEM(x, 1) : x, to, depth);
  }
  return r;
}
int flatten_any(const NativeType* t, PyObject* v, Flattened& to, int depth) {
  if (!PyList_Check(v) && !PyTuple_Check(v) && !PyDict_Check(v)) {
    static const NativeType* const known[] = {native_type("n"), native_type("b"), native_type("i"),
                                              native_type("d"), native_type("s"), native_type("y")};
    const char kind = kind_of_scalar(v);
    if (!kind) return refuse(t, v);
    to.bytes.push_back(kind);
    for (const NativeType* k : known)
      if (k && k->kind == kind) return flatten(k, v, to);
    return -1;
  }
  if (depth == kDeepestValue) {
    PyErr_Format(PyExc_TypeError,
                 "a Value holds lists and dicts up to %d deep: this one is deeper, or holds itself",
                 kDeepestValue);
    return -1;
  }
  return flatten_any_items(t, v, to, depth + 1);
}

int flatten_number(const NativeType* t, PyObject* v, Flattened& to) {
  std::uint64_t bits;
  if (bits_of(t, v, bits) < 0) return -1;
  if (t->kind == 'b')
    to.bytes.push_back(bits ? '\1' : '\0');
  else if (t->kind != 'n')
    put_bits(to, bits);
  return 0;
}
int flatten_array(const NativeType* t, PyObject* v, Flattened& to) {
  weft_value a;
  if (lend(t, v, a) < 0) return -1;
  to.parts.push_back(a.block);
  put_bits(to, a.bits);
  put_bits(to, reinterpret_cast<std::uintptr_t>(a.block));
  return 0;
}

int flatten(const NativeType* t, PyObject* v, Flattened& to) {
  switch (t->kind) {
    case 'i':
    case 'd':
    case 'b':
    case 'n': return flatten_number(t, v, to);
    case 's':
    case 'y':
      return bare_of(t, v, [&](const char* p, std::size_t n) {
        put_bits(to, n);
        to.bytes.append(p, n);
        return 0;
      });
    case '?':
      to.bytes.push_back(v == Py_None ? '\0' : '\1');
      return v == Py_None ? 0 : flatten(t->parts[0], v, to);
    case '{': return flatten_dict(t, v, to);
    case 'v': return flatten_any(t, v, to, 0);
    case 'a': return flatten_array(t, v, to);
    default: {
      if (Py_EnterRecursiveCall(" while a value is converted for a native channel")) return -1;
      const int r = t->kind == '<' ? flatten_fields(t, v, to) : flatten_items(t, v, to);
      Py_LeaveRecursiveCall();
      return r;
    }
  }
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

int to_native(const NativeType* t, PyObject* value, weft_value& to) {
  to = {0, nullptr};
  if (t->kind == 'a') return lend(t, value, to);
  if (t->in_line()) return bits_of(t, value, to.bits);
  if (t->bare())
    return bare_of(t, value, [&](const char* p, std::size_t n) { return copy_block(p, n, to); });
  try {
    Flattened flat;
    if (flatten(t, value, flat) < 0 || copy_block(flat.bytes.data(), flat.bytes.size(), to) < 0)
      return -1;
    while (!flat.parts.empty()) {
      keep_part(to.block, flat.parts.back());
      flat.parts.pop_back();
    }
    return 0;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  }
}

// --- to Python -----------------------------------------------------------------------------------

namespace {

struct Flat {
  void* block;
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

PyObject* unflatten(const NativeType* t, Flat& from);

PyObject* unflatten_list(const NativeType* t, Flat& from) {
  const std::uint64_t n = from.bits();
  Owned all(from.cut ? nullptr : PyList_New(0));
  for (std::uint64_t i = 0; all && i < n; ++i) {
    const Owned x(unflatten(t, from));
    if (!x || PyList_Append(all.get(), x.get()) < 0) all.reset();
  }
  return all.release();
}
PyObject* unflatten_dict(const NativeType* key, const NativeType* value, Flat& from) {
  const std::uint64_t n = from.bits();
  Owned all(from.cut ? nullptr : PyDict_New());
  for (std::uint64_t i = 0; all && i < n; ++i) {
    const Owned k(unflatten(key, from));
    const Owned x(k ? unflatten(value, from) : nullptr);
    if (!x || PyDict_SetItem(all.get(), k.get(), x.get()) < 0) all.reset();
  }
  return all.release();
}
PyObject* unflatten_any(const NativeType* t, Flat& from) {
  const char* const p = from.take(1);
  if (!p || !*p || !std::strchr("nbidsy[{", *p)) return nullptr;
  if (*p != '[' && *p != '{') {
    const char text[] = {*p, 0};
    return unflatten(native_type(text), from);
  }
  if (Py_EnterRecursiveCall(" while a value of a native channel is converted")) return nullptr;
  PyObject* const r = *p == '[' ? unflatten_list(t, from) : unflatten_dict(t, t, from);
  Py_LeaveRecursiveCall();
  return r;
}
PyObject* unflatten_fields(const NativeType* t, Flat& from) {
  std::vector<Owned<>> fields;
  std::vector<PyObject*> given;
  for (const NativeType* part : t->parts) {
    fields.emplace_back(unflatten(part, from));
    given.push_back(fields.back().get());
    if (!fields.back()) break;
  }
  if (!t->made)
    return bad_use("%s has no class in Python: load its component by weft.native.load",
                   t->name.c_str());
  return given.empty() || given.back() ? PyObject_Vectorcall(t->made, given.data(), 0, t->names)
                                       : nullptr;
}

PyObject* unflatten_array(const NativeType* t, Flat& from) {
  weft_value v{};
  v.bits = from.bits();
  v.block = reinterpret_cast<void*>(static_cast<std::uintptr_t>(from.bits()));
  if (from.cut) return nullptr;
  take_part(from.block, v.block);
  return view_of(t, v);
}
PyObject* unflatten_tuple(const NativeType* t, Flat& from) {
  Owned all(PyTuple_New(static_cast<Py_ssize_t>(t->parts.size())));
  for (std::size_t i = 0; all && i < t->parts.size(); ++i)
    put(all, static_cast<Py_ssize_t>(i), unflatten(t->parts[i], from));
  return all.release();
}
PyObject* unflatten_number(const NativeType* t, Flat& from) {
  const std::uint64_t bits = from.bits();
  return from.cut ? nullptr : of_bits(t, bits);
}
PyObject* unflatten_bool(const NativeType* t, Flat& from) {
  const char* p = from.take(1);
  return p ? of_bits(t, static_cast<std::uint64_t>(*p)) : nullptr;
}
PyObject* unflatten_text(const NativeType* t, Flat& from) {
  const std::uint64_t n = from.bits();
  const char* p = from.cut ? nullptr : from.take(n);
  return p ? of_bare(t, p, n) : nullptr;
}
PyObject* unflatten_optional(const NativeType* t, Flat& from) {
  const char* p = from.take(1);
  return !p ? nullptr : *p ? unflatten(t->parts[0], from) : Py_NewRef(Py_None);
}

PyObject* unflatten(const NativeType* t, Flat& from) {
  switch (t->kind) {
    case 'i':
    case 'd': return unflatten_number(t, from);
    case 'b': return unflatten_bool(t, from);
    case 'n': return Py_NewRef(Py_None);
    case 's':
    case 'y': return unflatten_text(t, from);
    case '?': return unflatten_optional(t, from);
    case '[': return unflatten_list(t->parts[0], from);
    case '{': return unflatten_dict(t->parts[0], t->parts[1], from);
    case 'v': return unflatten_any(t, from);
    case '<': return unflatten_fields(t, from);
    case 'a': return unflatten_array(t, from);
    default: return unflatten_tuple(t, from);
  }
}

}  // namespace

PyObject* from_native(const NativeType* t, const weft_value& v) {
  if (t->in_line()) return of_bits(t, v.bits);
  const auto* const p = static_cast<const char*>(v.block);
  if (t->bare()) return of_bare(t, p, static_cast<std::size_t>(v.bits));
  Flat from{v.block, p, p ? static_cast<std::size_t>(v.bits) : 0};
  PyObject* const r = unflatten(t, from);
  if (!r && !PyErr_Occurred())
    bad_use("a component wrote a value that is not a %s: its block is too short",
            describe(t).c_str());
  return r;
}

PyObject* to_python(const NativeType* t, weft_value& v) {
  return t->kind == 'a' ? view_of(t, v) : from_native(t, v);
}

}  // namespace weft::py
