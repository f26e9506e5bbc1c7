// Types of native values, their conversions, and cells (cells.hpp).
#include "cells.hpp"

#include <cstring>
#include <map>
#include <unordered_map>

#include "choice.hpp"
#include "wire.hpp"

namespace weft::py {

// --- types ------------------------------------------------------------------------------------------------------------------------------

class NativeType {
 public:
  char kind;  // the first letter: i d b n s y [ ( { ?
  std::vector<const NativeType*> parts;
  std::string text;

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

int copy_block(const char* data, std::size_t size, weft_value& to) {
  to.bits = size;
  if (size == 0) return 0;
  if (!(to.block = std::malloc(size))) {
    PyErr_NoMemory();
    return -1;
  }
  std::memcpy(to.block, data, size);
  return 0;
}

}  // namespace

int to_native(const NativeType* t, PyObject* value, weft_value& to) {
  to = {0, nullptr};
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

// --- cells ------------------------------------------------------------------------------------------------------------------------------

namespace {

struct CellObject {
  PyObject_HEAD const NativeType* type;
  weft_value value;
};
PyTypeObject CellType{PyVarObject_HEAD_INIT(nullptr, 0)};
CellObject* cell_of(PyObject* o) noexcept { return reinterpret_cast<CellObject*>(o); }

struct Native {
  const NativeType* type;
  std::string by;
};
std::unordered_map<const ChannelObject*, Native> natives;  // under the GIL

}  // namespace

bool is_cell(PyObject* o) noexcept { return Py_IS_TYPE(o, &CellType); }

PyObject* new_cell(const NativeType* t, weft_value v) noexcept {
  auto* const c = static_cast<CellObject*>(std::calloc(1, sizeof(CellObject)));
  if (!c) return nullptr;
  c->type = t;
  c->value = v;
  // As PyObject_Init() does, of whom it may not be asked without the GIL; the type is static, and not counted.
#ifdef Py_GIL_DISABLED
  c->ob_base.ob_ref_shared = _Py_REF_SHARED(1, _Py_REF_MERGED);  // of no thread
  c->ob_base.ob_type = &CellType;
#else
  c->ob_base.ob_refcnt = 1;
  c->ob_base.ob_type = &CellType;
#endif
  return reinterpret_cast<PyObject*>(c);
}
weft_value take_cell(PyObject* o) noexcept {
  const weft_value v = cell_of(o)->value;
  std::free(o);
  return v;
}
void drop_cell(PyObject* o) noexcept {
  std::free(cell_of(o)->value.block);
  std::free(o);
}

// --- channels ---------------------------------------------------------------------------------------------------------------------------

const NativeType* type_of(const ChannelObject* c) noexcept {
  const auto at = natives.find(c);
  return at == natives.end() ? nullptr : at->second.type;
}
void forget_native(ChannelObject* c) noexcept { natives.erase(c); }

namespace {

// The conversion's TypeError or OverflowError, as BadUse that names the channel; anything else is left.
PyObject* explain(ChannelObject* c, const Native& n, const char* what) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError) &&
      !PyErr_ExceptionMatches(PyExc_UnicodeError))
    return nullptr;
  PyObject* const why = take_exception();
  PyObject* const text = PyObject_Str(why);
  Py_DECREF(why);
  if (!text) return nullptr;
  bad_use("%s channel %s, which carries %s (%s): %U", what, channel_name(c).c_str(), describe(n.type).c_str(), n.by.c_str(), text);
  Py_DECREF(text);
  return nullptr;
}

// A value that waits at the channel and is no cell yet: in a writer's slot or in the buffer. Borrowed; null: none.
Value* first_bare(Core& c) {
  Value* found = nullptr;
  c.with_lock([&](core::Queue&, core::Queue& writers) {
    for (core::Link* l = writers.front(); l && !found; l = l->next) {
      auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot);
      if (v && v->o && !is_cell(v->o)) found = v;
    }
    if (core::Ring<Value>* r = c.ring)
      for (std::uint32_t i = 0; i < r->size && !found; ++i) {
        Value& v = r->data[(r->head + i) % r->capacity];
        if (!is_cell(v.o)) found = &v;
      }
  });
  return found;
}

PyObject* convert(ChannelObject* c, const Native& n, PyObject* value, const char* what) {
  weft_value v;
  if (to_native(n.type, value, v) < 0) {
    drop_native(v);
    return explain(c, n, what);
  }
  PyObject* const cell = new_cell(n.type, v);
  if (cell) return cell;
  drop_native(v);
  return PyErr_NoMemory();
}

}  // namespace

int attach(ChannelObject* c, const NativeType* t, const char* who) {
  if (const auto at = natives.find(c); at != natives.end()) {
    if (at->second.type == t) return 0;
    bad_use("channel %s carries %s (%s), and %s wants %s: give it another channel", channel_name(c).c_str(),
            describe(at->second.type).c_str(), at->second.by.c_str(), who, describe(t).c_str());
    return -1;
  }
  if (is_wired(c)) {
    bad_use("channel %s has ends in other OS processes, and %s is native: that is not built yet; put a Python process between them",
            channel_name(c).c_str(), who);
    return -1;
  }
  carry_ends(c);  // its reads look at what they take, those that wait there too
  const Native n{t, who};
  // All are converted before the first is put in its place: what fails changes nothing.
  std::vector<std::pair<PyObject*, PyObject*>> done;  // owned: what it was, the cell
  int r = 0;
  for (Value* v; r == 0 && (v = first_bare(c->core));) {
    PyObject* const value = Py_NewRef(v->o);
    PyObject* const cell = convert(c, n, value, "a value that waits at");
    // The program may have gone on meanwhile: is it there yet?
    if (!cell) {
      r = -1;
    } else if (first_bare(c->core) == v && v->o == value) {
      v->o = cell;
      done.emplace_back(value, cell);
      Py_DECREF(value);  // the slot's
      continue;
    } else {
      drop_cell(cell);
    }
    Py_DECREF(value);
  }
  if (r < 0)
    c->core.with_lock([&](core::Queue&, core::Queue& writers) {
      const auto back = [&](Value& v) {
        for (const auto& [value, cell] : done)
          if (v.o == cell) {
            v.o = Py_NewRef(value);
            drop_cell(cell);
          }
      };
      for (core::Link* l = writers.front(); l; l = l->next)
        if (auto* const v = static_cast<Value*>(static_cast<core::Node*>(l)->slot); v && v->o && is_cell(v->o)) back(*v);
      if (core::Ring<Value>* ring = c->core.ring)
        for (std::uint32_t i = 0; i < ring->size; ++i)
          if (Value& v = ring->data[(ring->head + i) % ring->capacity]; is_cell(v.o)) back(v);
    });
  for (const auto& d : done) defer_decref(d.first);
  if (r < 0) return -1;
  natives.emplace(c, n);
  ++ends_closed;  // alternatives that hold values to be written there look at them again
  c->generation |= kNative;
  return 0;
}

PyObject* pack_native(ChannelObject* c, PyObject* value) {
  if (is_cell(value)) return value;
  const auto at = natives.find(c);
  const Native n = at->second;
  PyObject* const cell = convert(c, n, value, "a value written to");
  Py_DECREF(value);
  return cell;
}

PyObject* unpack_native(PyObject* cell) {
  PyObject* const r = from_native(cell_of(cell)->type, cell_of(cell)->value);
  drop_cell(cell);
  return r;
}

PyObject* unsent_native(PyObject* cell) noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* const r = unpack_native(cell);
  if (!r) PyErr_Clear();
  PyErr_Restore(t, v, tb);
  return r;
}

int init_cells(PyObject*) {
  CellType.tp_name = "weft._Cell";
  CellType.tp_basicsize = sizeof(CellObject);
  CellType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  CellType.tp_dealloc = drop_cell;
  return PyType_Ready(&CellType);
}

}  // namespace weft::py
