// Process functions: the objects that @process makes from functions. A call of a process function
// makes a process object, which holds the ends among its arguments.
//
//   @process def f ──function_call()──► process object, not started (process.cpp)
//   f.on(backend) ──function_on()──► the same function for another backend or place (rule 15.3)
#include "processes/function.hpp"

#include <algorithm>
#include <unordered_set>

#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/greenlet.hpp"
#include "processes/life.hpp"
#include "wire/wiring.hpp"

namespace weft::py {
namespace {

struct FunctionObject {
  PyObject_HEAD PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* name;
  vectorcallfunc call;
  Kind kind;
  bool away;  // whether its processes run in another OS process
};
FunctionObject* func(PyObject* o) noexcept { return reinterpret_cast<FunctionObject*>(o); }

// Names of processes are compared by address (group.hpp), and outlive the processes in reports.
// Therefore each name is stored once.
PyObject* kept_names = nullptr;

}  // namespace

const char* intern(PyObject* name) {
  if (!kept_names && !(kept_names = PyDict_New())) return nullptr;
  PyObject* kept = PyDict_SetDefault(kept_names, name, name);
  return kept ? PyUnicode_AsUTF8(kept) : nullptr;
}

namespace {

// --- the ends among the arguments ----------------------------------------------------------------

bool is_container(PyObject* o) noexcept {
  return PyList_Check(o) || PyTuple_Check(o) || PyAnySet_Check(o) || PyDict_Check(o);
}

// Finds, in order, the ends in an argument and in the lists, tuples, sets and dictionaries inside
// the argument (rule 2.3). The search keeps a list instead of recursing, so the argument can be
// nested as deeply as memory allows. No code of the user's runs: a subclass is searched as its
// built-in base.
class Search {
 public:
  explicit Search(Ends& to) noexcept : to_(to) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    for (PyObject* o : ahead_) Py_DECREF(o);
  }

  int of(PyObject* o) {
    if (!meet(o)) return 0;
    while (!ahead_.empty()) {
      const Owned next(ahead_.back());
      ahead_.pop_back();
      const bool good = is_end(next.get()) || look_into(next.get()) == 0;
      if (is_end(next.get())) found(next.get());
      if (!good) return -1;
    }
    return 0;
  }

 private:
  // Adds the object to the list if it is an end or a container. (A reference is taken: the
  // container that holds the object can change as soon as the container's lock is released.)
  bool meet(PyObject* o) {
    if (!is_end(o) && !is_container(o)) return false;
    ahead_.push_back(Py_NewRef(o));
    return true;
  }
  void found(PyObject* o) {
    auto* const e = reinterpret_cast<EndObject*>(o);
    if (e->state == EndState::open) to_.push_back(new_ref(e));
  }
  // Adds the items of a container to the list, the first item last.
  int look_into(PyObject* o) {
    if (seen_.count(o) != 0) return 0;
    const std::size_t before = ahead_.size();
    Py_ssize_t size = 0;
    {
      const Locked locked(o);
      if (PyList_Check(o) || PyTuple_Check(o)) {
        for (; size < PySequence_Fast_GET_SIZE(o); ++size) meet(PySequence_Fast_GET_ITEM(o, size));
      } else if (PyDict_Check(o)) {
        PyObject *k, *v;
        for (Py_ssize_t i = 0; PyDict_Next(o, &i, &k, &v); ++size) {
          meet(k);
          meet(v);
        }
      } else if (look_into_set(o, size) < 0) {
        return -1;
      }
    }
    std::reverse(ahead_.begin() + static_cast<std::ptrdiff_t>(before), ahead_.end());
    // The largest size of a container that is not remembered. Such a container, if it has no ends
    // or containers inside, can quickly be searched again each time it occurs.
    constexpr Py_ssize_t kSmall = 16;
    if (ahead_.size() > before || size > kSmall) seen_.insert(o);
    return 0;
  }
  int look_into_set(PyObject* o, Py_ssize_t& size) {
    const Owned it(PySet_Type.tp_iter(o));
    if (!it) return -1;
    for (Owned<> k; k.reset(Py_TYPE(it.get())->tp_iternext(it.get())), k; ++size) meet(k.get());
    return PyErr_Occurred() ? -1 : 0;
  }

  Ends& to_;
  std::vector<PyObject*> ahead_;        // owned; the last element is the next to be searched
  std::unordered_set<PyObject*> seen_;  // containers that need not be searched again
};

}  // namespace

int collect_ends(PyObject* o, Ends& to) {
  if (!is_end(o)) return is_container(o) ? Search(to).of(o) : 0;
  if (auto* const e = reinterpret_cast<EndObject*>(o); e->state == EndState::open)
    to.push_back(new_ref(e));
  return 0;
}

namespace {

// --- calling -------------------------------------------------------------------------------------

PyObject* coroutine_for(FunctionObject* f, PyObject* const* args, std::size_t nf,
                        PyObject* kwnames) {
  Owned<> made;
  {
    const OutsideGate beyond;
    made.reset(PyObject_Vectorcall(f->function, args, nf, kwnames));
  }
  if (!made || PyCoro_CheckExact(made.get())) return made.release();
  return PyErr_Format(PyExc_TypeError,
                      "process %U: the function returned %.100s in place of a coroutine", f->name,
                      Py_TYPE(made.get())->tp_name);
}
// Makes the tuple (function, arguments, keywords or None).
PyObject* call_for(FunctionObject* f, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Owned positional(PyTuple_New(n));
  const Owned keywords(kwnames ? PyDict_New() : Py_NewRef(Py_None));
  if (!positional || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0)
      return nullptr;
  return PyTuple_Pack(3, f->function, positional.get(), keywords.get());
}

PyObject* function_call(PyObject* self, PyObject* const* args, std::size_t nf, PyObject* kwnames) {
  run_deferred();
  FunctionObject* f = func(self);
  const Py_ssize_t n = PyVectorcall_NARGS(nf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  // The list is kept for its storage. It is moved out during the call, because Python code that
  // runs during the call can also call a process function.
  static Ends spare_ends;
  Ends ends = std::move(spare_ends);
  ends.clear();
  for (Py_ssize_t i = 0; i < n; ++i)
    if (collect_ends(args[i], ends) < 0) return nullptr;
  if (f->away && wire_away(ends) < 0) return nullptr;
  Owned p(new_process(f->kind, ends));
  spare_ends = std::move(ends);
  if (!p) return nullptr;
  p->base.function = PyUnicode_AsUTF8(f->name);
  p->body = is_async(f->kind) ? coroutine_for(f, args, nf, kwnames)
                              : call_for(f, args, PyVectorcall_NARGS(nf), kwnames);
  if (!p->body) return nullptr;
  if (is_async(f->kind)) take_within(p.get());
  p->outcome = Py_NewRef(self);
  made(p.get());
  return reinterpret_cast<PyObject*>(p.release());
}

// --- the type ------------------------------------------------------------------------------------

int function_init(PyObject* o, PyObject* args, PyObject* kw) {
  static const char* positional[] = {"", "", "", nullptr};
  PyObject *f, *name;
  int kind;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OUi:ProcessFunction", const_cast<char**>(positional),
                                   &f, &name, &kind))
    return -1;
  if (!PyCallable_Check(f)) {
    bad_use("@process must decorate a function, not %R", f);
    return -1;
  }
  if (kind < 0 || kind > static_cast<int>(Kind::pooled)) {
    bad_use("ProcessFunction: there is no kind %d", kind);
    return -1;
  }
  if (static_cast<Kind>(kind) == Kind::greenlet && need_greenlets() < 0) return -1;
  if (!intern(name)) return -1;
  Py_XSETREF(func(o)->function, Py_NewRef(f));
  Py_XSETREF(func(o)->name, Py_NewRef(PyDict_GetItem(kept_names, name)));
  func(o)->kind = static_cast<Kind>(kind);
  func(o)->away = runs_away(f);
  func(o)->call = gated<function_call>;
  return 0;
}
int function_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(func(o)->function);
  Py_VISIT(func(o)->dict);
  return 0;
}
int function_clear(PyObject* o) {
  Py_CLEAR(func(o)->function);
  Py_CLEAR(func(o)->dict);
  return 0;
}
void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (func(o)->weakrefs) PyObject_ClearWeakRefs(o);
  function_clear(o);
  Py_CLEAR(func(o)->name);
  Py_TYPE(o)->tp_free(o);
}
PyObject* like(FunctionObject* f, PyObject* function, Kind kind) {
  Owned o(PyObject_CallFunction(reinterpret_cast<PyObject*>(&ProcessFunctionType), "OOi", function,
                                f->name, static_cast<int>(kind)));
  if (!o || !f->dict || PyObject_SetAttrString(o.get(), "__dict__", f->dict) == 0)
    return o.release();
  return nullptr;
}
PyObject* function_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None || !func(self)->function) return Py_NewRef(self);
  const Owned bound(PyMethod_New(func(self)->function, object));
  return bound ? like(func(self), bound.get(), func(self)->kind) : nullptr;
}
// Asks weft._hosts.processes for a version of the function that runs in another OS process, or for
// the original of such a version.
PyObject* away_from(PyObject* function, PyObject* where, PyObject* name) {
  const OutsideGate beyond;
  const Owned m(PyImport_ImportModule("weft._hosts.processes"));
  return m ? PyObject_CallMethod(m.get(), "moved", "OOO", function, where, name) : nullptr;
}
std::string_view backend_named(PyObject* name) {
  const char* const s = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  std::string_view on = s ? s : "";
  if (on.starts_with("weft.")) on.remove_prefix(5);
  return on;
}
PyObject* on_greenlets(FunctionObject* f) {
  if (is_async(f->kind))
    return bad_use(
        "process %U is an `async def`, and a greenlet cannot await: run it on coroutines or "
        "threads, "
        "or write it as a `def`",
        f->name);
  return need_greenlets() < 0 ? nullptr : like(f, f->function, Kind::greenlet);
}
PyObject* on_coroutines(FunctionObject* f) {
  if (is_async(f->kind)) return like(f, f->function, Kind::coroutine);
  return bad_use(
      "process %U is a `def`, which would stop the scheduler where it calls: write an `async "
      "def`, or put it on greenlets",
      f->name);
}
// on(where): returns the function for another backend or place (rule 15.3).
PyObject* function_on(PyObject* self, PyObject* where) {
  FunctionObject* f = func(self);
  if (!f->function)
    return bad_use("on: this process function was never made: decorate a function with @process");
  const Owned name(PyModule_Check(where) ? PyModule_GetNameObject(where) : Py_NewRef(where));
  if (!name) return nullptr;
  const std::string_view on = backend_named(name.get());
  if (on == "processes" || !(PyModule_Check(where) || PyUnicode_Check(where)) ||
      (f->function && PyObject_HasAttrString(f->function, "_weft_body")))
    return away_from(f->function, where, f->name);  // weft._hosts.processes handles these functions
  if (on == "threads") return like(f, f->function, is_async(f->kind) ? Kind::apart : Kind::thread);
  if (on == "greenlets") return on_greenlets(f);
  if (on == "coroutines") return on_coroutines(f);
  if (PyUnicode_Check(where)) return away_from(f->function, where, f->name);  // the name of a host
  return bad_use(
      "on(%R): no such backend; give weft.coroutines, weft.threads, weft.greenlets or "
      "weft.processes, or its name",
      where);
}
// Called when an attribute of processes is read from their function. The error message says that
// the call is missing.
PyObject* function_getattro(PyObject* o, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name) ||
      !func(o)->name)
    return found;
  for (const char* const of_process : {"cancel", "done", "ended", "id", "named", "path", "result"})
    if (PyUnicode_CompareWithASCIIString(name, of_process) == 0) {
      PyErr_Format(PyExc_AttributeError,
                   "%R has no '%U', which a process has: call it first, %U(...).%U", o, name,
                   func(o)->name, name);
      break;
    }
  return nullptr;
}
PyObject* function_await(PyObject* o) {
  return bad_use("%R is not awaited: `await Parallel(%V(...))` runs a process of it", o,
                 func(o)->name, "?");
}

PyMethodDef function_methods[] = {
    {"on", method(gated<with_keyword<"on", "backend", function_on>>), kKeywords,
     "Returns the same process function for another backend: a module of weft, its name, or Hosts "
     "of weft.processes. Raises BadUse, ImportError."},
    {}};
PyObject* function_repr(PyObject* o) {
  return func(o)->name ? PyUnicode_FromFormat("<process %U>", func(o)->name)
                       : PyUnicode_FromString("<process ?>");
}
PyGetSetDef function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

}  // namespace

PyTypeObject ProcessFunctionType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_function(PyObject* m) {
  ProcessFunctionType.tp_name = "weft.ProcessFunction";
  ProcessFunctionType.tp_basicsize = sizeof(FunctionObject);
  ProcessFunctionType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                 Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  ProcessFunctionType.tp_new = PyType_GenericNew;
  ProcessFunctionType.tp_init = gated<function_init>;
  ProcessFunctionType.tp_dealloc = gated<function_dealloc>;
  ProcessFunctionType.tp_traverse = function_traverse;
  ProcessFunctionType.tp_clear = gated<function_clear>;
  ProcessFunctionType.tp_call = PyVectorcall_Call;
  ProcessFunctionType.tp_vectorcall_offset = offsetof(FunctionObject, call);
  ProcessFunctionType.tp_dictoffset = offsetof(FunctionObject, dict);
  ProcessFunctionType.tp_weaklistoffset = offsetof(FunctionObject, weakrefs);
  ProcessFunctionType.tp_descr_get = gated<function_get>;
  ProcessFunctionType.tp_repr = gated<function_repr>;
  static PyAsyncMethods async{};
  async.am_await = gated<function_await>;
  ProcessFunctionType.tp_as_async = &async;
  ProcessFunctionType.tp_getattro = function_getattro;
  ProcessFunctionType.tp_getset = function_getset;
  ProcessFunctionType.tp_methods = function_methods;
  if (PyType_Ready(&ProcessFunctionType) < 0) return -1;
  return add_type(m, "ProcessFunction", &ProcessFunctionType);
}

}  // namespace weft::py
