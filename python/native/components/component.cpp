// Loads components, and makes calls of their processes. Users see this as the Python module
// weft.native.
//
//   _component_open(path): dlopen, its entry, its ABI ──► (capsule, what it declares)
//   _component_call(capsule, number, arguments, cpu): converts the arguments, attaches the channels ──► a call, the body of one thread process
//
// Invariant: a library is never unloaded, since references to its processes, its types and places
// in its source remain forever.
#include "components/component.hpp"

#include <algorithm>

#include <dlfcn.h>

#include "channels/ends.hpp"
#include "choice/barrier.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/lock.hpp"
#include "sequences.hpp"
#include "values/cells.hpp"
#include "values/native_types.hpp"
#include "weft/runtime/function_info.hpp"
#include "weft/version.hpp"

namespace weft::py {

namespace {

constexpr const char* kCapsule = "weft.native component";

struct CallObject {
  PyObject_HEAD NativeCall* call;
};
PyTypeObject CallType{PyVarObject_HEAD_INIT(nullptr, 0)};

// --- what a library declares, whatever its edition of the ABI ------------------------------------

// The sizes of the structures in the first edition of the ABI.
constexpr std::uint32_t kFirstComponent = offsetof(weft_component, api_size);
constexpr std::uint32_t kFirstInfo = 8 + 5 * sizeof(void*),
                        kFirstParameter = 8 + 3 * sizeof(void*) + sizeof(weft_value);
static_assert(sizeof(weft_process_info) >= kFirstInfo && sizeof(weft_parameter) >= kFirstParameter);

// A component, with its structures at the size of this edition. Fields that are newer than the
// component are zero. The structures are in the library.
struct Loaded {
  weft_component component{};
  std::vector<weft_process_info> processes;
  std::deque<std::vector<weft_parameter>> parameters;
};

template <class T>
T grown(const void* from, std::size_t size) noexcept {
  T t{};
  std::memcpy(&t, from, std::min(size, sizeof t));
  return t;
}

// Reads the declarations of a library. Returns null, with BadUse, if the component does not fit
// this Weft.
std::unique_ptr<Loaded> understood(const weft_component* c, const char* path) {
  const auto refuse = [&](const char* what) {
    bad_use("load: %s was built with headers of %s", path, what);
    return nullptr;
  };
  constexpr const char
      *kBroken = "no Weft that there was: build it again, weft build SOURCE.cpp",
      *kNewer = "a newer Weft than this one, " WEFT_VERSION
                ": install that Weft, or build it again with this one, weft build SOURCE.cpp";
  if (c->size < kFirstComponent) return refuse(kBroken);
  auto l = std::make_unique<Loaded>();
  weft_component& mine = l->component;
  mine = grown<weft_component>(c, c->size);
  if (mine.parameter_size == 0) mine.parameter_size = kFirstParameter;
  if (mine.info_size < kFirstInfo || mine.parameter_size < kFirstParameter) return refuse(kBroken);
  if (c->size > sizeof(weft_component) || mine.info_size > sizeof(weft_process_info) ||
      mine.parameter_size > sizeof(weft_parameter) || mine.api_size > sizeof(weft_api))
    return refuse(kNewer);
  const auto at = [](const void* first, std::uint32_t size, std::uint32_t i) {
    return static_cast<const char*>(first) + std::size_t{size} * i;
  };
  for (std::uint32_t i = 0; i < mine.count; ++i) {
    auto& info = l->processes.emplace_back(
        grown<weft_process_info>(at(mine.processes, mine.info_size, i), mine.info_size));
    auto& all = l->parameters.emplace_back();
    for (std::uint32_t k = 0; k < info.count; ++k)
      all.push_back(
          grown<weft_parameter>(at(info.parameters, mine.parameter_size, k), mine.parameter_size));
    info.parameters = all.data();
  }
  mine.processes = l->processes.data();
  return l;
}

// --- opening -------------------------------------------------------------------------------------

const char* or_empty(const char* s) noexcept { return s ? s : ""; }

PyObject* declared(const weft_process_info& info) {
  const Owned all(PyList_New(0));
  for (std::uint32_t i = 0; all && i < info.count; ++i) {
    const weft_parameter& p = info.parameters[i];
    const NativeType* const t = native_type(p.type);
    const Owned one(t ? Py_BuildValue("sIssOs", p.name, p.role, describe(t, false).c_str(),
                                      or_empty(p.doc), p.has_default ? Py_True : Py_False, p.type)
                      : nullptr);
    const bool bad = !one || PyList_Append(all.get(), one.get()) < 0;
    if (bad) return nullptr;
  }
  PyObject* const r =
      all ? Py_BuildValue("sssIOO", info.name, or_empty(info.doc), or_empty(info.file), info.line,
                          all.get(), info.step ? Py_True : Py_False)
          : nullptr;
  return r;
}

// Opens the library. Returns null, with BadUse, if that fails.
void* opened(const char* path) {
  void* library;
  {
    const OutsideGate beyond;
    PyThreadState* const state = give_up_lock();
    library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    take_lock(state);
  }
  if (library) return library;
  const std::string why = ::dlerror();  // the error of this thread: NOLINT(concurrency-mt-unsafe)
  const bool lacks = why.find("undefined symbol") != std::string::npos;
  bad_use("load: %s%s", why.c_str(),
          lacks ? ": it is declared and nowhere defined; define it, or link the library that "
                  "defines it (weft "
                  "build SOURCE.cpp -- -lNAME)"
                : "");
  return nullptr;
}

PyObject* f_open(PyObject*, PyObject* path) {
  const char* const p = PyUnicode_AsUTF8(path);
  if (!p) return nullptr;
  void* const library = opened(p);
  if (!library) return nullptr;
  void* const entry = ::dlsym(library, WEFT_COMPONENT_ENTRY);
  if (!entry)
    return bad_use(
        "load: %s is a library, but not a component of Weft: it has no %s(), which the macro "
        "WEFT_COMPONENT of <weft/component.hpp> makes",
        p, WEFT_COMPONENT_ENTRY);
  const weft_component* const c = reinterpret_cast<weft_component_entry_function>(entry)();
  if (!c || c->abi != WEFT_COMPONENT_ABI)
    return bad_use(
        "load: %s was built for version %u of the component ABI, and this Weft has version %d: "
        "build it again, weft build SOURCE.cpp",
        p, c ? c->abi : 0, WEFT_COMPONENT_ABI);
  std::unique_ptr<Loaded> loaded = understood(c, p);
  if (!loaded) return nullptr;
  if (c->error) return bad_use("load: %s has a declaration that is wrong: %s", p, c->error);
  Owned processes(PyList_New(0));
  for (const auto& process : loaded->processes) append(processes, declared(process));
  const Owned capsule(processes ? PyCapsule_New(loaded.get(), kCapsule, nullptr) : nullptr);
  // released because the library stays loaded forever
  if (capsule) static_cast<void>(loaded.release());
  return capsule ? Py_BuildValue("OsssO", capsule.get(), c->name, or_empty(c->doc),
                                 or_empty(c->compiler), processes.get())
                 : nullptr;
}

const Loaded* loaded_of(PyObject* capsule, unsigned process) {
  const auto* const l = static_cast<const Loaded*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (l && process < l->processes.size()) return l;
  if (l) bad_use("the component has no process %u", process);
  return nullptr;
}

// This is a separate function, because the class of an aggregate is known only after the whole
// declaration was read.
PyObject* f_default(PyObject*, PyObject* args) {
  PyObject* capsule;
  unsigned process, i;
  if (!PyArg_ParseTuple(args, "OII", &capsule, &process, &i)) return nullptr;
  const Loaded* const l = loaded_of(capsule, process);
  if (!l) return nullptr;
  const auto& all = l->parameters[process];
  if (i >= all.size() || !all[i].has_default) return bad_use("parameter %u has no default", i);
  const NativeType* const t = native_type(all[i].type);
  return t ? from_native(t, all[i].fallback) : nullptr;
}

// --- calling -------------------------------------------------------------------------------------

int add_end(NativeCall& c, const weft_parameter& p, const NativeType* t, PyObject* value,
            const std::string& who) {
  const bool reads = p.role == WEFT_READER;
  if (!is_end(value) || is_reader(value) != reads) {
    if (const Owned what(shown(value, "an object of type %.100s")); what)
      bad_use("%s: its argument '%s' must be a %s end of a channel of %s, not %U", who.c_str(),
              p.name, reads ? "reader" : "writer", describe(t).c_str(), what.get());
    return -1;
  }
  auto* const e = reinterpret_cast<EndObject*>(value);
  if (check_end(e, who.c_str()) < 0) return -1;
  c.arguments.push_back({static_cast<std::uint32_t>(c.ends.size()), {0, nullptr}});
  c.ends.push_back(reinterpret_cast<EndObject*>(Py_NewRef(value)));
  c.types.push_back(t);
  return 0;
}
int add_barrier(NativeCall& c, const weft_parameter& p, PyObject* value, const std::string& who) {
  if (!Py_IS_TYPE(value, &BarrierType)) {
    if (const Owned what(shown(value, "an object of type %.100s")); what)
      bad_use("%s: its argument '%s' must be a Barrier, not %U", who.c_str(), p.name, what.get());
    return -1;
  }
  if (check_barrier(reinterpret_cast<BarrierObject*>(value), who.c_str()) < 0) return -1;
  if (reinterpret_cast<BarrierObject*>(value)->far) {
    bad_use(
        "%s: its argument '%s' must be a barrier that was made in this OS process, and another has "
        "made this one",
        who.c_str(), p.name);
    return -1;
  }
  c.arguments.push_back({static_cast<std::uint32_t>(c.barriers.size()), {0, nullptr}});
  c.barriers.push_back(reinterpret_cast<BarrierObject*>(Py_NewRef(value)));
  return 0;
}
int add_value(NativeCall& c, const weft_parameter& p, const NativeType* t, PyObject* value,
              const std::string& who) {
  c.arguments.push_back({0, {0, nullptr}});
  if (to_native(t, value, c.arguments.back().value) == 0) return 0;
  Owned why(take_exception());
  if (!says_no_value(why.get())) {
    restore_exception(why.release());
    return -1;
  }
  const Owned text(PyObject_Str(why.get()));
  if (text) bad_use("%s: its argument '%s': %U", who.c_str(), p.name, text.get());
  return -1;
}

int add(NativeCall& c, const weft_parameter& p, PyObject* value, const std::string& who) {
  const NativeType* const t = native_type(p.type);
  if (!t) return -1;
  if (p.role == WEFT_BARRIER) return add_barrier(c, p, value, who);
  return p.role == WEFT_VALUE ? add_value(c, p, t, value, who) : add_end(c, p, t, value, who);
}

// Reports bad use if one channel is given twice with different types.
int look_for_twice(const NativeCall& call, std::size_t i, const std::string& who) {
  ChannelObject* const c = call.ends[i]->channel;
  for (std::size_t k = 0; k < i; ++k)
    if (call.ends[k]->channel == c && call.types[k] != call.types[i]) {
      bad_use(
          "%s: channel %s is given twice, as a channel of %s and as a channel of %s: give it two "
          "channels",
          who.c_str(), channel_name(c).c_str(), describe(call.types[k]).c_str(),
          describe(call.types[i]).c_str());
      return -1;
    }
  return 0;
}

// Attaches the channels, once all arguments are right. A refused call leaves all of its channels as
// they were (rule 11.1), so all channels are checked before the first is changed.
int attach_all(const NativeCall& call, const std::string& who) {
  const std::size_t n = call.ends.size();
  for (std::size_t i = 0; n > 1 && i < n; ++i)
    if (may_attach(call.ends[i]->channel, call.types[i], who.c_str()) < 0 ||
        look_for_twice(call, i, who) < 0)
      return -1;
  for (std::size_t i = 0; i < n; ++i)
    if (attach(call.ends[i]->channel, call.types[i], who.c_str()) < 0) return -1;
  return 0;
}

PyObject* f_call(PyObject*, PyObject* args) {
  PyObject *capsule, *given;
  unsigned number;
  int cpu;
  if (!PyArg_ParseTuple(args, "OIO!i", &capsule, &number, &PyTuple_Type, &given, &cpu))
    return nullptr;
  const Loaded* const loaded = loaded_of(capsule, number);
  if (!loaded) return nullptr;
  const weft_component* const component = &loaded->component;
  const weft_process_info& info = component->processes[number];
  if (PyTuple_GET_SIZE(given) != static_cast<Py_ssize_t>(info.count))
    return bad_use("process %s takes %u arguments", info.name, info.count);
  auto call = std::make_unique<NativeCall>();
  call->info = &info;
  call->component = component->name;
  call->cpu = cpu;
  const std::string who = std::string("process ") + info.name + " of component " + component->name;
  for (std::uint32_t i = 0; i < info.count; ++i)
    if (add(*call, info.parameters[i], PyTuple_GET_ITEM(given, i), who) < 0) return nullptr;
  if (attach_all(*call, who) < 0) return nullptr;
  CallObject* const o = PyObject_New(CallObject, &CallType);
  if (o) o->call = call.release();
  return reinterpret_cast<PyObject*>(o);
}

// Runs the body of the process. No arguments are passed, since the call already holds the arguments
// and the ends among them.
PyObject* call_run(PyObject* o, PyObject*, PyObject*) {
  return run_call(*reinterpret_cast<CallObject*>(o)->call);
}
void call_dealloc(PyObject* o) {
  delete reinterpret_cast<CallObject*>(o)->call;
  PyObject_Free(o);
}

// _component_place(process): returns the (file, line) of the last operation that the component's
// process began with a place; before the first such operation, the place of the declaration.
// Returns None if the process runs no component, or has ended.
PyObject* f_place(PyObject*, PyObject* o) {
  if (!Py_IS_TYPE(o, &ProcessType) || !proc(o)->native_code || proc(o)->done) Py_RETURN_NONE;
  ProcessBase& b = base_of(proc(o));
  const runtime::FunctionInfo* const about = b.stands_in();
  if (!about || !about->file) Py_RETURN_NONE;
  return Py_BuildValue("sI", about->file, b.stands_on());
}

PyMethodDef component_functions[] = {
    {"_component_open", gated<f_open>, METH_O, nullptr},
    {"_component_default", gated<f_default>, METH_VARARGS, nullptr},
    {"_component_call", gated<f_call>, METH_VARARGS, nullptr},
    {"_component_place", gated<f_place>, METH_O, nullptr},
    {}};

}  // namespace

NativeCall& native_call(PyObject* o) noexcept { return *reinterpret_cast<CallObject*>(o)->call; }

int init_component(PyObject* m) {
  CallType.tp_name = "weft._NativeCall";
  CallType.tp_basicsize = sizeof(CallObject);
  CallType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  CallType.tp_dealloc = gated<call_dealloc>;
  CallType.tp_call = gated<call_run>;
  if (PyType_Ready(&CallType) < 0) return -1;
  return PyModule_AddFunctions(m, component_functions);
}

}  // namespace weft::py
