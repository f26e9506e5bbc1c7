// Types of native values, made from their texts, and the classes that represent aggregates in
// Python (native_types.hpp).
#include "values/native_types.hpp"

#include <map>
#include <memory>

#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "sequences.hpp"
#include "values/native_type.hpp"

namespace weft::py {

namespace {

std::map<std::string, std::unique_ptr<NativeType>, std::less<>> types;  // protected by the GIL

constexpr int kDeepest = 32;  // the deepest nesting of types

std::string name_at(const char*& at) {
  const char* const begin = at;
  while (*at == '_' || (*at & 0x80) || std::isalnum(static_cast<unsigned char>(*at))) ++at;
  return {begin, at};
}

bool parse_array(const char*& at, NativeType& t) {
  t.lends = true;
  if (*++at == 'r') t.constant = true, ++at;
  if (*at >= '2' && *at <= '6') t.dimensions = *at++ - '0';
  if (!*at || !std::strchr("bBhHiIqQfd", *at)) return false;
  t.code = *at++;
  return true;
}
template <class Inner>
bool parse_fields(const char*& at, NativeType& t, Inner&& inner) {
  t.name = name_at(++at);
  while (*at == ' ') {
    t.fields.push_back(name_at(++at));
    if (t.fields.back().empty() || *at++ != ' ' || !inner()) return false;
  }
  return !t.name.empty() && *at++ == '>';
}
// Parses the inner types, up to `close`.
template <class Inner>
bool parse_until(const char*& at, char close, Inner&& inner) {
  for (++at; *at && *at != close;)
    if (!inner()) return false;
  return *at++ == close;
}
template <class Inner>
bool parse_kind(const char*& at, NativeType& t, Inner&& inner) {
  switch (t.kind) {
    case 'a': return parse_array(at, t);
    case '[': return parse_until(at, ']', inner) && t.parts.size() == 1;
    case '(': return parse_until(at, ')', inner);
    case '{': return parse_until(at, '}', inner) && t.parts.size() == 2 && !t.parts[0]->lends;
    case '?': return ++at, inner();
    case '<': return parse_fields(at, t, inner);
    default: return *at && std::strchr("idbnsyv", *at++) != nullptr;
  }
}
const NativeType* parse(const char*& at, int depth) {
  const char* const begin = at;
  NativeType t{};
  t.kind = *at;
  const auto inner = [&]() {
    const NativeType* const p = depth < kDeepest ? parse(at, depth + 1) : nullptr;
    if (p) t.parts.push_back(p), t.lends = t.lends || p->lends;
    return p != nullptr;
  };
  if (!parse_kind(at, t, inner)) return nullptr;
  t.text.assign(begin, at);
  auto& kept = types[t.text];
  if (!kept) kept = std::make_unique<NativeType>(std::move(t));
  return kept.get();
}

std::string listed(const NativeType* t, const char* open, const char* close, bool whole) {
  std::string s = open;
  for (std::size_t i = 0; i < t->parts.size(); ++i)
    s.append(i ? ", " : "")
        .append(i < t->fields.size() ? t->fields[i] + ": " : "")
        .append(describe(t->parts[i], whole));
  return s + close;
}

// --- classes of aggregates -----------------------------------------------------------------------

PyObject* fitting = nullptr;  // a function of weft._components.types: (class, names) -> bool
PyObject* text_of = nullptr;  // a function of the same module: (Python type) -> text

// Appends to a list the aggregates in a type, the inner ones first: (text, name, names of fields,
// descriptions of fields).
int aggregates(const NativeType* t, PyObject* to) {
  for (const NativeType* p : t->parts)
    if (aggregates(p, to) < 0) return -1;
  if (t->kind != '<') return 0;
  const Owned kinds(PyTuple_New(static_cast<Py_ssize_t>(t->parts.size())));
  for (std::size_t i = 0; kinds && i < t->parts.size(); ++i) {
    PyObject* const text = to_str(t->parts[i]->text);
    if (!text) return -1;
    PyTuple_SET_ITEM(kinds.get(), static_cast<Py_ssize_t>(i), text);
  }
  const Owned one(
      kinds ? Py_BuildValue("ssOO", t->text.c_str(), t->name.c_str(), t->names, kinds.get())
            : nullptr);
  const int r = one ? PyList_Append(to, one.get()) : -1;
  return r;
}
PyObject* f_aggregates(PyObject*, PyObject* text) {
  const char* const s = PyUnicode_AsUTF8(text);
  const NativeType* const t = s ? native_type(s) : nullptr;
  Owned all(t ? PyList_New(0) : nullptr);
  if (all && aggregates(t, all.get()) < 0) return nullptr;
  return all.release();
}
PyObject* f_set_class(PyObject*, PyObject* args) {
  const char* text;
  PyObject* cls;
  if (!PyArg_ParseTuple(args, "sO!", &text, &PyType_Type, &cls)) return nullptr;
  const NativeType* const t = native_type(text);
  if (!t) return nullptr;
  Py_XSETREF(t->made, Py_NewRef(cls));
  Py_RETURN_NONE;
}
PyObject* f_describe(PyObject*, PyObject* args) {
  const char* text;
  int whole = 1;
  if (!PyArg_ParseTuple(args, "s|p", &text, &whole)) return nullptr;
  const NativeType* const t = native_type(text);
  return t ? to_str(describe(t, whole != 0)) : nullptr;
}
PyMethodDef native_types_functions[] = {
    {"_set_native_types", gated<keep_given<&fitting, &text_of>>, METH_VARARGS, nullptr},
    {"_native_aggregates", gated<f_aggregates>, METH_O, nullptr},
    {"_native_set_class", gated<f_set_class>, METH_VARARGS, nullptr},
    {"_native_describe", gated<f_describe>, METH_VARARGS, nullptr},
    {}};

}  // namespace

const NativeType* native_type(const char* text) {
  const char* at = text;
  const NativeType* t = parse(at, 0);
  if (!t || *at) {
    bad_use("'%s' is not a type of a native value: see weft/component_abi.h", text);
    return nullptr;
  }
  for (auto& [_, x] : types) {
    if (x->kind != '<' || x->names) continue;
    Owned names(PyTuple_New(static_cast<Py_ssize_t>(x->fields.size())));
    for (std::size_t i = 0; i < x->fields.size(); ++i)
      put(names, static_cast<Py_ssize_t>(i), PyUnicode_InternFromString(x->fields[i].c_str()));
    if (!names) return nullptr;
    x->names = names.release();
  }
  return t;
}

bool is_array(const NativeType* t) noexcept { return t->kind == 'a'; }

static std::string describe_array(const NativeType* t) {
  const std::string kind = t->code == 'f' || t->code == 'd' ? "float"
                           : t->code < 'a'                  ? "uint"
                                                            : "int";
  const std::string item = (t->constant ? "const " : "") + kind + std::to_string(8 * t->item());
  return "array[" + item + (t->dimensions > 1 ? ", " + std::to_string(t->dimensions) : "") + "]";
}

std::string describe(const NativeType* t, bool whole) {
  static constexpr std::pair<char, const char*> plain[] = {
      {'i', "int"}, {'d', "float"}, {'b', "bool"}, {'n', "None"}, {'s', "str"}, {'y', "bytes"}};
  for (const auto& [kind, name] : plain)
    if (kind == t->kind) return name;
  switch (t->kind) {
    case 'v': return whole ? "Value (None, bool, int, float, str, bytes, list or dict)" : "Any";
    case 'a': return whole ? describe_array(t) : "memoryview";
    case '[': return listed(t, "list[", "]", whole);
    case '{': return listed(t, "dict[", "]", whole);
    case '?': return describe(t->parts[0], whole) + " | None";
    case '<': return whole ? listed(t, (t->name + "(").c_str(), ")", whole) : t->name;
    default: return listed(t, "tuple[", t->parts.empty() ? "()]" : "]", whole);
  }
}

int fits_aggregate(const NativeType* t, PyTypeObject* cls) {
  auto* const c = reinterpret_cast<PyObject*>(cls);
  if (c == t->made || c == t->fits) return 1;
  const Owned yes(fitting ? PyObject_CallFunctionObjArgs(fitting, c, t->names, nullptr)
                          : Py_NewRef(Py_False));
  if (!yes) return -1;
  const bool fits = yes == Py_True;
  if (fits) Py_XSETREF(t->fits, Py_NewRef(c));
  return fits;
}

const NativeType* native_type_of(PyObject* type) {
  if (!text_of) {
    const Owned m(PyImport_ImportModule("weft._components.types"));
    if (!m) return nullptr;
  }
  const Owned text(PyObject_CallFunctionObjArgs(text_of, type, nullptr));
  const char* const s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const NativeType* const t = s ? native_type(s) : nullptr;
  return t;
}

int init_native_types(PyObject* m) { return PyModule_AddFunctions(m, native_types_functions); }

}  // namespace weft::py
