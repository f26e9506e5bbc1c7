// Signal handlers that may act (rule 10.3): handlers from which an end, a channel, a barrier, a
// process or a group can be reached. While such a handler is set, a run in which all processes wait
// is not deadlocked, because a signal may arrive and its handler may act on the run.
//
//   Search: the handler ──► each function that it calls, and that those call: a Context
//   Context: what the function refers to (closure, defaults, the object it is bound to),
//            and the names it uses: in these objects, in its globals and in modules
//
// Only names are followed; otherwise the handler of a web server would reach the whole program. A
// function may pass the objects of its context to the functions that it calls. Therefore the names
// of those functions are looked up in the caller's context too, kCalls calls deep.
//
// Invariants
//  1 The search may run under locks of the runtime. Therefore it runs no Python code, whatever the
//    objects are: no method of a key is called, attributes are read directly from memory, and the
//    collector is off. References are borrowed, since no object is freed meanwhile.
//  2 The search ends: after kMaxSteps steps a handler counts as one that may act. Functions more
//    than kCalls calls deep are not searched.
//  3 Functions of Python's own library and of Weft are not followed: they use only the ends that
//    the program has passed to them. Weft's own objects are searched completely.
#include "interpreter/handlers.hpp"

#include <signal.h>
#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h>  // for PyMember_GetOne()
#endif

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "channels/channel.hpp"
#include "choice/barrier.hpp"
#include "gate.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/interrupt.hpp"
#include "processes/group.hpp"
#include "processes/process.hpp"
#include "sequences.hpp"

namespace weft::py {

namespace {

PyObject* get_signal = nullptr;  // _signal.getsignal
PyObject* python_int_handler = nullptr;
PyObject* text_module = nullptr;          // the string "__module__"
std::string library_folder, weft_folder;  // of Python's library, and of Weft

std::string_view text_of(PyObject* s) noexcept {
  const char* const text = s && PyUnicode_Check(s) ? PyUnicode_AsUTF8(s) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}
bool within(std::string_view path, const std::string& folder) noexcept {
  return !folder.empty() && path.substr(0, folder.size()) == folder;
}
bool ends_with(std::string_view s, std::string_view tail) noexcept {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

}  // namespace

bool of_library(PyCodeObject* code) noexcept {
  const std::string_view path = text_of(code->co_filename);
  return within(path, weft_folder) ||
         (within(path, library_folder) &&
          path.find("-packages/", library_folder.size()) == path.npos) ||
         // The code of a frozen module (os.path and a few more) has this text instead of a file
         // name.
         path.substr(0, 8) == "<frozen ";
}

namespace {

PyCodeObject* code_of(PyObject* function) noexcept {
  return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
}

// Returns whether the handler is Weft's, or the one that asyncio.run() sets for Ctrl-C.
bool is_our_own(PyObject* handler) noexcept {
  PyObject* f = PyMethod_Check(handler) ? PyMethod_GET_FUNCTION(handler) : handler;
  if (PyFunction_Check(f)) return within(text_of(code_of(f)->co_filename), weft_folder);
  bool runner = false;  // asyncio's handler is a functools.partial of a method
  const visitproc visit = [](PyObject* o, void* to) {
    if (PyMethod_Check(o)) o = PyMethod_GET_FUNCTION(o);
    if (PyFunction_Check(o) && ends_with(text_of(code_of(o)->co_filename), "asyncio/runners.py"))
      *static_cast<bool*>(to) = true;
    return 0;
  };
  if (PyObject_IS_GC(f) && Py_TYPE(f)->tp_traverse) Py_TYPE(f)->tp_traverse(f, visit, &runner);
  return runner;
}

// Returns the program's handler of signal `n`, a new reference; null if there is none.
PyObject* handler_of(int n) noexcept {
  struct sigaction a {};
  if (sigaction(n, nullptr, &a) != 0 || (a.sa_flags & SA_SIGINFO) || a.sa_handler == SIG_DFL ||
      a.sa_handler == SIG_IGN)
    return nullptr;
  const Owned number(PyLong_FromLong(n));
  Owned f(number ? PyObject_CallOneArg(get_signal, number.get()) : nullptr);
  if (!f) PyErr_Clear();
  if (f && (!PyCallable_Check(f.get()) || f == python_int_handler || is_weft_interrupt(f.get()) ||
            is_our_own(f.get())))
    f.reset();
  return f.release();
}

#ifndef Py_GIL_DISABLED

// Looks names up in dictionaries whose keys are all plain strings. In any other dictionary a
// look-up might run a method of a key, so names are not looked up there.
class Dictionaries {
 public:
  // Returns a borrowed reference; null if the name is missing, or `dict` has keys that are not
  // plain strings.
  PyObject* get(PyObject* dict, PyObject* name) {
    PyObject* const found = dict && plain(dict) ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (!found) PyErr_Clear();
    return found;
  }
  std::size_t steps = 0;

 private:
  bool plain(PyObject* dict) {
    const auto [it, is_new] = known_.try_emplace(dict, true);
    if (!is_new) return it->second;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; it->second && PyDict_Next(dict, &at, &key, &value); ++steps)
      it->second = PyUnicode_CheckExact(key);
    return it->second;
  }
  std::unordered_map<PyObject*, bool> known_;
};

class Search {
 public:
  // Returns whether one of these handlers may act.
  bool reaches(const std::vector<PyObject*>& handlers) {
    Context start(*this);
    for (PyObject* h : handlers) start.push(h);
    start.run(0);
    for (std::size_t i = 0; i < calls_.size() && !is_over(); ++i) {
      const auto [f, self, depth] = calls_[i];
      depth_ = depth;
      Context here(*this);
      here.push(self);
      here.push_parts(f);
      here.follow_names(f);
      here.run(kCalls);
    }
    return is_over();
  }
  Search() = default;
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search() {
    for (PyObject* o : owned_) Py_DECREF(o);
  }

 private:
  // The largest number of steps, which take at most 0.1 s.
  static constexpr std::size_t kMaxSteps = 600'000;
  static constexpr int kCalls = 2;

  bool is_over() const noexcept { return found_ || dicts_.steps > kMaxSteps; }
  // Queues function `f`, which is searched in its own Context. `self` is the object to which it is
  // bound, or null.
  void call(PyObject* f, PyObject* self) {
    if (depth_ < kCalls && called_.insert({f, self}).second)
      calls_.push_back({f, self, depth_ + 1});
  }

  static bool acts(PyObject* o) noexcept {
    return is_end(o) || PyObject_TypeCheck(o, &ChannelType) ||
           PyObject_TypeCheck(o, &BarrierType) || Py_IS_TYPE(o, &ProcessType) ||
           Py_IS_TYPE(o, &GroupType);
  }
  // Returns whether the class is written in Python. All such classes have the same C functions; a
  // class written in C has C functions of its own.
  static bool of_python(PyTypeObject* t) noexcept {
    const auto* const one = reinterpret_cast<PyTypeObject*>(errors.BadUse);
    return t->tp_dealloc == one->tp_dealloc &&
           (t->tp_traverse == one->tp_traverse || !PyType_IS_GC(t));
  }
  // Returns whether the class is written in Python and is not one of Weft's. (Weft's objects are
  // searched completely.)
  bool of_others(PyTypeObject* t) {
    if (!of_python(t)) return false;
    const auto [it, is_new] = others_.try_emplace(t, false);
    if (is_new) {
      const std::string_view module = text_of(dicts_.get(t->tp_dict, text_module));
      it->second = module.substr(0, module.find('.')) != "weft";
    }
    return it->second;
  }
  // Returns whether the interpreter itself calls methods of this name, as for an operator, a with
  // block or a missing attribute.
  static bool is_special(std::string_view name) noexcept {
    return name.size() > 4 && name.substr(0, 2) == "__" && ends_with(name, "__");
  }
  static constexpr std::string_view kUsed[] = {
      "__call__",    "__enter__",   "__exit__",    "__getattr__", "__getattribute__", "__setattr__",
      "__getitem__", "__setitem__", "__delitem__", "__iter__",    "__next__",         "__get__",
      "__set__",     "__iadd__",    "__ior__",     "__lshift__",  "__rshift__",       "__or__"};
  struct Special {
    std::vector<PyObject*> of_instance, of_type;
  };
  const Special& special_of(PyTypeObject* t) {
    const auto [it, is_new] = special_.try_emplace(t);
    if (!is_new) return it->second;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(t->tp_dict, &at, &key, &value); ++dicts_.steps) {
      const std::string_view s = PyFunction_Check(value) ? text_of(key) : "";
      if (!is_special(s)) continue;
      if (s == "__init__" || s == "__new__") it->second.of_type.push_back(value);
      for (const std::string_view used : kUsed)
        if (s == used) it->second.of_instance.push_back(value);
    }
    return it->second;
  }

  // The objects that one function can use.
  class Context {
   public:
    explicit Context(Search& s) noexcept : s_(s) {}

    void push(PyObject* o) {
      if (!o || !seen_.insert(o).second) return;
      ++s_.dicts_.steps;
      todo_.push_back(o);
    }
    // Adds the objects to which a function refers without a name.
    void push_parts(PyObject* f) {
      push(PyFunction_GET_CLOSURE(f));
      push(PyFunction_GET_DEFAULTS(f));
      push(PyFunction_GET_KW_DEFAULTS(f));
      push(reinterpret_cast<PyFunctionObject*>(f)->func_dict);
    }
    // Adds the function's names, to be looked up in its globals and among the modules.
    void follow_names(PyObject* f) {
      add_names(code_of(f));
      named_.push_back({PyFunction_GET_GLOBALS(f), How::space, 0});
      named_.push_back({PyImport_GetModuleDict(), How::space, 0});
    }
    // Looks the names up. `calls` is how many calls deep the names of called functions are looked
    // up in this context.
    void run(int calls) {
      for (;; --calls) {
        do {
          while (!todo_.empty() && !s_.is_over()) {
            PyObject* const o = todo_.back();
            todo_.pop_back();
            look(o);
          }
          for (std::size_t i = 0; i < named_.size() && !s_.is_over(); ++i) scan(i);
        } while (!todo_.empty() && !s_.is_over());
        if (calls == 0 || s_.is_over()) return;
        for (PyObject* f : std::exchange(reached_, {})) add_names(code_of(f));
      }
    }

   private:
    enum class How : std::uint8_t { space, type, instance };
    struct Named {
      PyObject* o;
      How how;
      std::size_t done;  // how many of the names have been looked up
    };

    void add_names(PyCodeObject* c) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_names); ++i)
        if (PyObject* const n = PyTuple_GET_ITEM(c->co_names, i);
            !is_special(text_of(n)) && named_so_.insert(n).second)
          names_.push_back(n);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->co_consts); ++i)
        if (PyObject* const inner = PyTuple_GET_ITEM(c->co_consts, i); PyCode_Check(inner))
          add_names(reinterpret_cast<PyCodeObject*>(inner));
    }
    static int visit(PyObject* o, void* me) {
      static_cast<Context*>(me)->push(o);
      return static_cast<Context*>(me)->s_.is_over();
    }
    void traverse(PyTypeObject* as, PyObject* o) {
      if (PyObject_IS_GC(o) && as->tp_traverse) as->tp_traverse(o, &visit, this);
    }
    void keep(PyObject* owned) {
      if (!owned) return PyErr_Clear();
      s_.owned_.push_back(owned);
      push(owned);
    }

    void look(PyObject* o) {
      if (acts(o)) {
        s_.found_ = true;
      } else if (PyFunction_Check(o)) {
        function(o, nullptr);
      } else if (PyMethod_Check(o)) {
        push(PyMethod_GET_SELF(o));
        if (PyFunction_Check(PyMethod_GET_FUNCTION(o)))
          function(PyMethod_GET_FUNCTION(o), PyMethod_GET_SELF(o));
        else
          push(PyMethod_GET_FUNCTION(o));
      } else if (PyModule_Check(o)) {
        named_.push_back({PyModule_GetDict(o), How::space, 0});
      } else if (PyType_Check(o)) {
        if (!s_.of_others(reinterpret_cast<PyTypeObject*>(o))) return;
        named_.push_back({o, How::type, 0});
      } else {
        if (PyWeakref_Check(o)) referent(o);
        PyTypeObject* t = Py_TYPE(o);
        if (s_.of_others(t)) {
          named_.push_back({o, How::instance, 0});
          while (of_python(t)) t = t->tp_base;
        }
        traverse(t, o);
      }
    }
    void function(PyObject* f, PyObject* self) {
      push_parts(f);
      if (of_library(code_of(f))) return;
      s_.call(f, self);
      reached_.push_back(f);
    }
    void referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030D0000
      PyObject* o = nullptr;
      if (PyWeakref_GetRef(weak, &o) > 0) keep(o);
#else
      if (PyObject* const o = PyWeakref_GET_OBJECT(weak); o != Py_None) push(o);
#endif
    }

    void scan(std::size_t i) {
      const auto [o, how, done] = named_[i];
      named_[i].done = names_.size();
      if (how == How::space) return ask(o, done, [&](PyObject* value) { push(value); });
      auto* const t = how == How::type ? reinterpret_cast<PyTypeObject*>(o) : Py_TYPE(o);
      PyObject* const self = how == How::type ? nullptr : o;
      for (Py_ssize_t k = 0; t->tp_mro && k < PyTuple_GET_SIZE(t->tp_mro); ++k) {
        auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, k));
        if (!PyType_Check(base) || !s_.of_others(base)) continue;
        if (done == 0) special(base, self);
        ask(base->tp_dict, done, [&](PyObject* value) { member(value, self); });
      }
      if (self) attributes(self, done);
    }
    template <class F>
    void ask(PyObject* dict, std::size_t done, F&& f) {
      for (std::size_t k = done; k < names_.size(); ++k, ++s_.dicts_.steps)
        if (PyObject* const value = s_.dicts_.get(dict, names_[k])) f(value);
    }
    void special(PyTypeObject* t, PyObject* self) {
      const Special& of = s_.special_of(t);
      for (PyObject* f : of.of_instance) function(f, self);
      for (PyObject* f : of.of_type)
        if (!self) function(f, nullptr);
    }
    void member(PyObject* value, PyObject* self) {
      if (PyFunction_Check(value)) return function(value, self);
      if (!Py_IS_TYPE(value, &PyMemberDescr_Type)) return push(value);
      auto* const d = reinterpret_cast<PyMemberDescrObject*>(value);
      if (self && PyObject_TypeCheck(self, PyDescr_TYPE(d)))
        keep(PyMember_GetOne(reinterpret_cast<const char*>(self), d->d_member));
    }
    void attributes(PyObject* o, std::size_t done) {
      bool has = Py_TYPE(o)->tp_dictoffset != 0;
#ifdef Py_TPFLAGS_MANAGED_DICT
      has = has || PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_MANAGED_DICT);
#endif
      PyObject* const dict = has ? PyObject_GenericGetDict(o, nullptr) : nullptr;
      if (!dict) return PyErr_Clear();
      s_.owned_.push_back(dict);
      ask(dict, done, [&](PyObject* value) { push(value); });
    }

    Search& s_;
    std::vector<PyObject*> todo_, names_, reached_;
    std::unordered_set<PyObject*> seen_, named_so_;
    std::vector<Named> named_;
  };

  Dictionaries dicts_;
  struct Call {
    PyObject *f, *self;
    int depth;
  };
  std::vector<Call> calls_;
  std::set<std::pair<PyObject*, PyObject*>> called_;
  int depth_ = 0;  // how many calls lead to the function that is being searched
  std::unordered_map<PyTypeObject*, bool> others_;
  std::unordered_map<PyTypeObject*, Special> special_;
  std::vector<PyObject*> owned_;
  bool found_ = false;
};

bool may_act(const std::vector<PyObject*>& handlers) noexcept {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const int collector = PyGC_Disable();
  const bool so = Search().reaches(handlers);
  if (collector) PyGC_Enable();
  PyErr_Restore(type, value, trace);
  return so;
}

#else
// Other threads can change the objects meanwhile, and no lock must be taken here. Therefore every
// handler counts as a handler that may act.
bool may_act(const std::vector<PyObject*>& handlers) noexcept { return !handlers.empty(); }
#endif

// _handlers_that_act({signal: the handler that an asyncio loop calls}): returns the signals with a
// handler that may act, set by the loop or by the module `signal`.
PyObject* f_handlers_that_act(PyObject*, PyObject* of_loop) {
  if (!PyDict_CheckExact(of_loop))
    return bad_use("_handlers_that_act: expected a dict, got %R", of_loop);
  Owned list(PyList_New(0));
  PyObject *number, *handler;
  for (Py_ssize_t at = 0; PyDict_Next(of_loop, &at, &number, &handler);)
    if (list && may_act({handler})) append(list, Py_NewRef(number));
  for (int n = 1; n <= kSignals && list; ++n) {
    const Owned set(handler_of(n));
    if (set && may_act({set.get()})) append(list, PyLong_FromLong(n));
  }
  return list.release();
}
PyMethodDef handlers_functions[] = {
    {"_handlers_that_act", gated<f_handlers_that_act>, METH_O, nullptr}, {}};

// Returns the directory of a package or module that has been imported.
std::string folder_of(const char* module) {
  const Owned m(PyImport_ImportModule(module));
  const Owned file(m ? PyObject_GetAttrString(m.get(), "__file__") : nullptr);
  const std::string found(text_of(file.get()));
  PyErr_Clear();
  return found.substr(0, found.rfind('/') + 1);
}

}  // namespace

bool handlers_may_act() noexcept {
  std::vector<PyObject*> all;
  for (int n = 1; n <= kSignals; ++n)
    if (PyObject* const handler = handler_of(n)) all.push_back(handler);
  const bool so = !all.empty() && may_act(all);
  for (PyObject* handler : all) defer_decref(handler);
  return so;
}

int init_handlers(PyObject* m) {
  library_folder = folder_of("os");
  weft_folder = folder_of("weft");
  const Owned signals(PyImport_ImportModule("_signal"));
  if (!signals || !(get_signal = PyObject_GetAttrString(signals.get(), "getsignal")) ||
      !(python_int_handler = PyObject_GetAttrString(signals.get(), "default_int_handler")) ||
      !(text_module = PyUnicode_InternFromString("__module__")))
    return -1;
  return PyModule_AddFunctions(m, handlers_functions);
}

}  // namespace weft::py
