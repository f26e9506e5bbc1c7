// Alternative, a reusable choice, and the function select: their guards and arguments.
//   made: its guards are enrolled ──select()──► busy ──select.cpp: finish()──► not busy
//                                  └──close(), __exit__, collected──► closed
// Invariant: while an Alternative is busy, one select uses its `choice`, which is neither closed
//     nor changed.
#include "choice/choice.hpp"
#include "choice/guard.hpp"
#include "choice/select.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/loops.hpp"
#include "processes/process.hpp"

namespace weft::py {

namespace {

AlternativeObject* alt_of(PyObject* o) noexcept { return reinterpret_cast<AlternativeObject*>(o); }

struct Options {
  Mode mode = Mode::fair;
  bool loud = false;  // whether ended="raise" holds for all guards (rule 5.6)
};

int option_of(PyObject* name, PyObject* value, Options& o, const char* verb) {
  if (PyUnicode_CompareWithASCIIString(name, "ended") == 0) {
    const int loud = loud_by(value, verb);
    o.loud = loud > 0;
    return loud < 0 ? -1 : 0;
  }
  if (PyUnicode_CompareWithASCIIString(name, "mode") != 0) {
    PyErr_Format(PyExc_TypeError, "%s() has no argument %R", verb, name);
    return -1;
  }
  const char* s = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : "";
  const std::string_view m = s ? s : "";
  if (m == "fair")
    o.mode = Mode::fair;
  else if (m == "priority")
    o.mode = Mode::priority;
  else if (m == "random")
    o.mode = Mode::random;
  else {
    bad_use("%s: mode must be 'fair', 'priority' or 'random', not %R", verb, value);
    return -1;
  }
  return 0;
}

PyObject* alternative_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  run_deferred();
  Options with;
  PyObject *name, *value;
  for (Py_ssize_t i = 0; kw && PyDict_Next(kw, &i, &name, &value);)
    if (option_of(name, value, with, "Alternative") < 0) return nullptr;
  auto c = std::make_unique<Choice>();
  if (c->fill(PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), with.mode, "Alternative",
              with.loud) < 0)
    return nullptr;
  if (c->check_open("Alternative") < 0) return nullptr;
  auto* a = reinterpret_cast<AlternativeObject*>(type->tp_alloc(type, 0));
  if (!a) return nullptr;
  c->stand();
  a->choice = c.release();
  a->busy = false;
  return reinterpret_cast<PyObject*>(a);
}
int alternative_traverse(PyObject* o, visitproc visit, void* arg) {
  if (!alt_of(o)->choice) return 0;
  return alt_of(o)->choice->traverse([&](PyObject* x) { return visit(x, arg); });
}
int close_alternative(AlternativeObject* a) {
  if (a->busy) {
    bad_use(
        "close of an Alternative while a process waits in a select on it: close it once that "
        "select is over");
    return -1;
  }
  delete std::exchange(a->choice, nullptr);
  run_deferred();
  return 0;
}
int alternative_clear(PyObject* o) {
  if (!alt_of(o)->busy) delete std::exchange(alt_of(o)->choice, nullptr);
  return 0;
}
void alternative_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  delete std::exchange(alt_of(o)->choice, nullptr);
  Py_TYPE(o)->tp_free(o);
}
PyObject* alternative_select(PyObject* o, PyObject*) {
  AlternativeObject* a = alt_of(o);
  run_deferred();
  if (!a->choice) return bad_use("select on an Alternative that is closed: make another");
  if (current_coroutine() || in_task()) return new_select(nullptr, a, Purpose::select);
  if (a->busy)
    return bad_use(
        "select on an Alternative while another process waits in a select on it: make one for each "
        "process");
  a->busy = true;
  const Owned held = new_ref(o);
  PyObject* r = blocking_select(*a->choice, Purpose::select, false);
  a->busy = false;
  return r;
}
PyObject* alternative_enable(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  PyObject* given[2];
  if (!arguments("enable", {"index", "on"}, args, n, keywords, given)) return nullptr;
  const Py_ssize_t i = PyNumber_AsSsize_t(given[0], PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  const int on = PyObject_IsTrue(given[1]);
  if (on < 0) return nullptr;
  if (!alt_of(o)->choice) return bad_use("enable on an Alternative that is closed: make another");
  if (alt_of(o)->busy)
    return bad_use(
        "enable on an Alternative while a process waits in a select on it: switch a guard between "
        "selects");
  if (alt_of(o)->choice->enable(i, on != 0) < 0) return nullptr;
  Py_RETURN_NONE;
}
PyObject* alternative_close(PyObject* o, PyObject*) {
  if (close_alternative(alt_of(o)) < 0) return nullptr;
  Py_RETURN_NONE;
}
PyObject* alternative_enter(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyObject* alternative_exit(PyObject* o, PyObject* const*, Py_ssize_t) {
  if (close_alternative(alt_of(o)) < 0) return nullptr;
  Py_RETURN_FALSE;
}
PyMethodDef alternative_methods[] = {
    {"select", gated<alternative_select>, METH_NOARGS,
     "Waits until one of the guards can commit, and commits it. Returns (its index, its value). "
     "Raises Retired, Poisoned or PeerDied, each with the index of the guard in `.guard`; "
     "Cancelled; BadUse."},
    {"enable", method(gated<alternative_enable>), kKeywords,
     "Switches guard `index` on or off, for all selects from now on. Raises IndexError if there is "
     "no such guard; BadUse while a process waits in a select here."},
    {"close", gated<alternative_close>, METH_NOARGS,
     "Takes the guards out of the waiting queues of all channels. Raises BadUse while a process "
     "waits in a select here."},
    {"__enter__", gated<alternative_enter>, METH_NOARGS, nullptr},
    {"__exit__", method(gated<alternative_exit>), METH_FASTCALL, nullptr},
    {}};

PyObject* f_select(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  run_deferred();
  Options with;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (option_of(PyTuple_GET_ITEM(names, i), args[n + i], with, "select") < 0) return nullptr;
  auto c = std::make_unique<Choice>();
  if (c->fill(args, n, with.mode, "select", with.loud) < 0 || c->check("select") < 0)
    return nullptr;
  return select_here(c.release(), Purpose::select);
}

PyMethodDef alternative_functions[] = {
    {"select", method(gated<f_select>), METH_FASTCALL | METH_KEYWORDS,
     "Waits until one of the guards can commit, and commits that one alone. Returns (its index, "
     "its value).\n\n"
     "Raises:\n"
     "    Retired: no guard is left to wait for (rule 5.6), or with ended='raise': the channel of "
     "a guard has retired. Poisoned; PeerDied. Each of the three has the index of the guard in "
     "`.guard`. Cancelled. BadUse."},
    {}};

}  // namespace

PyTypeObject AlternativeType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_alternative(PyObject* m) {
  AlternativeType.tp_name = "weft.Alternative";
  AlternativeType.tp_doc =
      "Alternative(*guards, mode='fair', ended='silent'): a choice that is kept for many selects. "
      "With mode='fair' a select costs the same for any number of guards (rule 5.9).";
  AlternativeType.tp_basicsize = sizeof(AlternativeObject);
  AlternativeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  AlternativeType.tp_new = gated<alternative_new>;
  AlternativeType.tp_dealloc = gated<alternative_dealloc>;
  AlternativeType.tp_traverse = alternative_traverse;
  AlternativeType.tp_clear = gated<alternative_clear>;
  AlternativeType.tp_methods = alternative_methods;
  if (PyType_Ready(&AlternativeType) < 0 || add_type(m, "Alternative", &AlternativeType) < 0)
    return -1;
  return PyModule_AddFunctions(m, alternative_functions);
}

}  // namespace weft::py
