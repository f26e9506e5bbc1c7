// Loading components, and making calls of their processes; what a user sees of it is weft.native, in Python.
//
//   _component_open(path): dlopen, its entry, its ABI ──► (capsule, what it declares)
//   _component_call(capsule, number, arguments, cpu): arguments converted, channels attached ──► a call, the body of one thread process
//
// Invariant: a library is never unloaded: processes, types and places in its source are referred to for ever.
#include "component.hpp"

#include <dlfcn.h>

namespace weft::py {

namespace {

constexpr const char* kCapsule = "weft.native component";

struct CallObject {
  PyObject_HEAD NativeCall* call;
};
PyTypeObject CallType{PyVarObject_HEAD_INIT(nullptr, 0)};

// --- opening ----------------------------------------------------------------------------------------------------------------------------

const char* or_empty(const char* s) noexcept { return s ? s : ""; }

PyObject* declared(const weft_process_info& info) {
  PyObject* const all = PyList_New(0);
  for (std::uint32_t i = 0; all && i < info.count; ++i) {
    const weft_parameter& p = info.parameters[i];
    const NativeType* const t = native_type(p.type);
    PyObject* const fallback = !t ? nullptr : p.has_default ? from_native(t, p.fallback) : Py_NewRef(Py_None);
    PyObject* const one = fallback ? Py_BuildValue("sIssOO", p.name, p.role, describe(t).c_str(), or_empty(p.doc),
                                                   p.has_default ? Py_True : Py_False, fallback)
                                   : nullptr;
    Py_XDECREF(fallback);
    const bool bad = !one || PyList_Append(all, one) < 0;
    Py_XDECREF(one);
    if (bad) {
      Py_DECREF(all);
      return nullptr;
    }
  }
  PyObject* const r = all ? Py_BuildValue("sssIO", info.name, or_empty(info.doc), or_empty(info.file), info.line, all) : nullptr;
  Py_XDECREF(all);
  return r;
}

PyObject* f_open(PyObject*, PyObject* path) {
  const char* const p = PyUnicode_AsUTF8(path);
  if (!p) return nullptr;
  void* library;
  {
    const Beyond beyond;
    Py_BEGIN_ALLOW_THREADS library = ::dlopen(p, RTLD_NOW | RTLD_LOCAL);
    Py_END_ALLOW_THREADS
  }
  if (!library) return bad_use("load: %s", ::dlerror());
  void* const entry = ::dlsym(library, WEFT_COMPONENT_ENTRY);
  if (!entry)
    return bad_use(
        "load: %s is a library, but no component of Weft: it has no %s(), which the macro WEFT_COMPONENT of <weft/component.hpp> makes", p,
        WEFT_COMPONENT_ENTRY);
  const weft_component* const c = reinterpret_cast<weft_component_entry_function>(entry)();
  if (!c || c->abi != WEFT_COMPONENT_ABI)
    return bad_use(
        "load: %s was built for version %u of the component ABI, and this Weft has version %d: build it again, weft build SOURCE.cpp", p,
        c ? c->abi : 0, WEFT_COMPONENT_ABI);
  if (c->size < sizeof(weft_component) || c->info_size != sizeof(weft_process_info))
    return bad_use("load: %s was built with headers of another Weft: build it again, weft build SOURCE.cpp", p);
  if (c->error) return bad_use("load: %s declares what cannot be: %s", p, c->error);
  PyObject* const processes = PyList_New(0);
  for (std::uint32_t i = 0; processes && i < c->count; ++i) {
    PyObject* const one = declared(c->processes[i]);
    const bool bad = !one || PyList_Append(processes, one) < 0;
    Py_XDECREF(one);
    if (bad) {
      Py_DECREF(processes);
      return nullptr;
    }
  }
  PyObject* const capsule = processes ? PyCapsule_New(const_cast<weft_component*>(c), kCapsule, nullptr) : nullptr;
  PyObject* const r = capsule ? Py_BuildValue("OsssO", capsule, c->name, or_empty(c->doc), or_empty(c->compiler), processes) : nullptr;
  Py_XDECREF(capsule);
  Py_XDECREF(processes);
  return r;
}

// --- calling ----------------------------------------------------------------------------------------------------------------------------

int add_end(NativeCall& c, const weft_parameter& p, const NativeType* t, PyObject* value, const std::string& who) {
  const bool reads = p.role == WEFT_READER;
  if (!is_end(value) || is_reader(value) != reads) {
    PyObject* const what = PyObject_Repr(value);
    if (what)
      bad_use("%s: its argument '%s' is a %s end of a channel of %s; given was %U", who.c_str(), p.name, reads ? "reader" : "writer",
              describe(t).c_str(), what);
    Py_XDECREF(what);
    return -1;
  }
  auto* const e = reinterpret_cast<EndObject*>(value);
  if (check_end(e, who.c_str()) < 0) return -1;
  c.arguments.push_back({static_cast<std::uint32_t>(c.ends.size()), {0, nullptr}});
  c.ends.push_back(reinterpret_cast<EndObject*>(Py_NewRef(value)));
  c.types.push_back(t);
  return 0;
}
int add_value(NativeCall& c, const weft_parameter& p, const NativeType* t, PyObject* value, const std::string& who) {
  c.arguments.push_back({0, {0, nullptr}});
  if (to_native(t, value, c.arguments.back().value) == 0) return 0;
  PyObject* const why = take_exception();
  if (PyErr_GivenExceptionMatches(why, PyExc_TypeError) || PyErr_GivenExceptionMatches(why, PyExc_OverflowError)) {
    PyObject* const text = PyObject_Str(why);
    if (text) bad_use("%s: its argument '%s': %U", who.c_str(), p.name, text);
    Py_XDECREF(text);
    Py_DECREF(why);
  } else {
    restore_exception(why);
  }
  return -1;
}

PyObject* f_call(PyObject*, PyObject* args) {
  PyObject *capsule, *given;
  unsigned number;
  int cpu;
  if (!PyArg_ParseTuple(args, "OIO!i", &capsule, &number, &PyTuple_Type, &given, &cpu)) return nullptr;
  const auto* const component = static_cast<const weft_component*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!component) return nullptr;
  if (number >= component->count) return bad_use("the component has no process %u", number);
  const weft_process_info& info = component->processes[number];
  if (PyTuple_GET_SIZE(given) != static_cast<Py_ssize_t>(info.count))
    return bad_use("process %s takes %u arguments", info.name, info.count);
  auto call = std::make_unique<NativeCall>();
  call->info = &info;
  call->component = component->name;
  call->cpu = cpu;
  const std::string who = std::string("process ") + info.name + " of component " + component->name;
  for (std::uint32_t i = 0; i < info.count; ++i) {
    const weft_parameter& p = info.parameters[i];
    const NativeType* const t = native_type(p.type);
    PyObject* const value = PyTuple_GET_ITEM(given, i);
    if (!t || (p.role == WEFT_VALUE ? add_value(*call, p, t, value, who) : add_end(*call, p, t, value, who)) < 0) return nullptr;
  }
  for (std::size_t i = 0; i < call->ends.size(); ++i)  // when all else is right
    if (attach(call->ends[i]->channel, call->types[i], who.c_str()) < 0) return nullptr;
  CallObject* const o = PyObject_New(CallObject, &CallType);
  if (o) o->call = call.release();
  return reinterpret_cast<PyObject*>(o);
}

// The body of the process; the ends among its arguments are those that the call knows.
PyObject* call_run(PyObject* o, PyObject*, PyObject*) { return run_call(*reinterpret_cast<CallObject*>(o)->call); }
void call_dealloc(PyObject* o) {
  delete reinterpret_cast<CallObject*>(o)->call;
  PyObject_Free(o);
}

PyMethodDef functions[] = {
    {"_component_open", gated<f_open>, METH_O, nullptr}, {"_component_call", gated<f_call>, METH_VARARGS, nullptr}, {}};

}  // namespace

int init_component(PyObject* m) {
  CallType.tp_name = "weft._NativeCall";
  CallType.tp_basicsize = sizeof(CallObject);
  CallType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  CallType.tp_dealloc = gated<call_dealloc>;
  CallType.tp_call = gated<call_run>;
  if (PyType_Ready(&CallType) < 0 || init_component_calls(m) < 0) return -1;
  return PyModule_AddFunctions(m, functions);
}

}  // namespace weft::py
