// The module weft._checking._engine: a search through the orders of a program, run by run.
//
//   configure() ──► seed() │ follow() ──► begin() ──the user's function runs──► end() ──► advance()
//                                           ▲                                                │
//                                           └──────────────── the next schedule ─────────────┘
//
// weft/_checking/engine.py calls these functions, and defines what a search is.
#include "checking/engine.hpp"

namespace weft::py {
namespace {

namespace wc = weft::checking;

Checker* checker = nullptr;  // made once, and kept
wc::Strategy* strategy = nullptr;
wc::Plain plain;
wc::Replay replay;
wc::Walk walk;
wc::Priorities priorities;
wc::Bounded bounded;
wc::Reduced reduced;

PyObject* refuse(const char* why) {
  PyErr_SetString(PyExc_RuntimeError, why);
  return nullptr;
}

constexpr const char* kinds[] = {"go", "time", "guard", "fault"};
bool kind_of(const char* name, wc::Kind& kind) {
  for (unsigned i = 0; i < std::size(kinds); ++i)
    if (std::string_view(kinds[i]) == name) {
      kind = static_cast<wc::Kind>(i);
      return true;
    }
  return false;
}

PyObject* to_str(const std::string& s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}

// configure(search, any_time, park, seed, bound, depth, limit, early): sets how the next search
// makes its schedules (see Options in weft/_checking/engine.py).
PyObject* f_configure(PyObject*, PyObject* args) {
  const char* search;
  int any_time, park;
  unsigned long long seed;
  unsigned bound, depth;
  wc::Settings s;
  if (!PyArg_ParseTuple(args, "sppKIIII", &search, &any_time, &park, &seed, &bound, &depth,
                        &s.limit, &s.early))
    return nullptr;
  if (checker->on) return refuse("a check within a check");
  s.any_time = any_time != 0;
  s.park = park != 0;
  checker->run.settings = s;
  const std::string_view way = search;
  checker->fair = way == "plain" || way == "walk" || way == "replay";
  walk.seed = priorities.seed = seed;
  priorities.depth = depth;
  if (way == "plain") {
    strategy = &plain;
  } else if (way == "replay") {
    replay.deviations.clear();
    replay.numbers.clear();
    strategy = &replay;
  } else if (way == "walk") {
    strategy = &walk;
  } else if (way == "pct") {
    strategy = &priorities;
  } else if (way == "few" || way == "all") {
    bounded.forget();
    bounded.bound = way == "all" ? ~0u : bound;
    strategy = &bounded;
  } else if (way == "reduced") {
    reduced.forget();
    reduced.with_cancels = reduced.with_crowds = false;
    strategy = &reduced;
  } else {
    return refuse("there is no such search");
  }
  Py_RETURN_NONE;
}

// seed(seed, longest): sets the seed of the next random run, and the number of steps among which
// its changes of priority are drawn.
PyObject* f_seed(PyObject*, PyObject* args) {
  unsigned long long seed;
  unsigned longest;
  if (!PyArg_ParseTuple(args, "KI", &seed, &longest)) return nullptr;
  walk.seed = priorities.seed = seed;
  priorities.longest = longest ? longest : 1;
  Py_RETURN_NONE;
}

// follow([(process, step, kind, choice, nth)…]) │ follow([(decision, choice)…]): sets the schedule
// to replay: its deviations from the usual order, by names, or its choices, by numbers.
PyObject* f_follow(PyObject*, PyObject* list) {
  replay.deviations.clear();
  replay.numbers.clear();
  checker->fair = PySequence_Size(list) == 0;
  for (Py_ssize_t i = 0; i < PySequence_Size(list); ++i) {
    const Owned o(PySequence_GetItem(list, i));
    if (!o) return nullptr;
    if (PyTuple_Size(o.get()) == 2) {
      Py_ssize_t decision;
      unsigned choice;
      if (!PyArg_ParseTuple(o.get(), "nI", &decision, &choice)) return nullptr;
      replay.numbers.push_back({static_cast<std::size_t>(decision), choice});
      continue;
    }
    const char *process, *kind;
    unsigned step, nth = 0;
    PyObject* choice;
    if (!PyArg_ParseTuple(o.get(), "sIsO|I", &process, &step, &kind, &choice, &nth)) return nullptr;
    wc::Replay::Deviation d{process, step, wc::Kind::go, "", 0, 0};
    if (!kind_of(kind, d.kind)) return refuse("a deviation is of kind go, time, guard or fault");
    if (PyUnicode_Check(choice)) {
      const char* who = PyUnicode_AsUTF8(choice);
      if (!who) return nullptr;
      d.who = who;
    } else {
      d.number = static_cast<unsigned>(PyLong_AsUnsignedLong(choice));
      if (PyErr_Occurred()) return nullptr;
    }
    d.nth = nth;
    replay.deviations.push_back(std::move(d));
  }
  Py_RETURN_NONE;
}

PyObject* f_begin(PyObject*, PyObject*) {
  if (checker->on) return refuse("a check within a check");
  if (!strategy) return refuse("nothing is configured");
  checker->begin(*strategy);
  Py_RETURN_NONE;
}

// end(): ends the run. Returns a tuple of (the reason why it stopped, steps, values lost, early
// times, what cut the run short, product of the numbers of choices, whether a timer was set).
PyObject* f_end(PyObject*, PyObject*) {
  if (!checker->on) return refuse("no run of a check is under way");
  checker->end();
  const wc::Run& run = checker->run;
  const char* cut = run.why() == wc::Stopped::limit ? "limit"
                    : run.too_large                 ? "size"
                    : run.early_cut                 ? "early"
                    : run.polls_cut                 ? "polls"
                                                    : "";
  return Py_BuildValue("iIKIsdO", static_cast<int>(run.why()), run.steps,
                       static_cast<unsigned long long>(checker->lost), run.early, cut, run.chances,
                       run.record.timed ? Py_True : Py_False);
}

// noted(): returns the observations of the last run: ([(channel, values lost)…], [sentence about
// starvation…]).
PyObject* f_noted(PyObject*, PyObject*) {
  Owned lost(PyList_New(0)), starved(PyList_New(0));
  if (!lost || !starved) return nullptr;
  for (const auto& [name, values] : checker->lost_in) {
    const Owned one(Py_BuildValue("NK", to_str(name), static_cast<unsigned long long>(values)));
    if (!one || PyList_Append(lost.get(), one.get()) < 0) return nullptr;
  }
  for (const std::string& sentence : checker->starved) {
    const Owned one(to_str(sentence));
    if (!one || PyList_Append(starved.get(), one.get()) < 0) return nullptr;
  }
  return Py_BuildValue("OO", lost.get(), starved.get());
}

PyObject* f_advance(PyObject*, PyObject*) {
  return strategy ? PyBool_FromLong(strategy->advance()) : refuse("nothing is configured");
}
PyObject* f_restarts(PyObject*, PyObject*) {
  return strategy ? PyBool_FromLong(strategy->restarts(checker->run))
                  : refuse("nothing is configured");
}
PyObject* f_difference(PyObject*, PyObject*) { return to_str(checker->run.difference); }
PyObject* f_is_checking(PyObject*, PyObject*) { return PyBool_FromLong(checker->on); }

PyObject* f_races(PyObject*, PyObject*) {
  const wc::Reduced::Races r = reduced.races();
  return Py_BuildValue("nn", static_cast<Py_ssize_t>(r.both), static_cast<Py_ssize_t>(r.all));
}

PyObject* f_decisions(PyObject*, PyObject*) {
  const wc::Run& run = checker->run;
  Owned list(PyList_New(0));
  for (const wc::Decision& d : run.decisions()) {
    if (!list) return nullptr;
    const Owned who(to_str(run.record.path(d.process)));
    const Owned choice(d.kind == wc::Kind::go     ? to_str(run.record.path(d.choice))
                       : d.kind == wc::Kind::time ? to_str("")
                                                  : PyLong_FromLong(d.choice));
    const Owned one(who && choice
                        ? Py_BuildValue("OIsOIIOI", who.get(), d.step,
                                        kinds[static_cast<std::size_t>(d.kind)], choice.get(),
                                        d.options, d.index, d.goes_on ? Py_True : Py_False, d.nth)
                        : nullptr);
    if (!one || PyList_Append(list.get(), one.get()) < 0) return nullptr;
  }
  return list.release();
}

// choose(options, kind): returns the index of the option that is chosen, out of `options` options;
// 0 outside a check.
PyObject* f_choose(PyObject*, PyObject* args) {
  unsigned options;
  const char* name;
  wc::Kind kind;
  if (!PyArg_ParseTuple(args, "Is", &options, &name)) return nullptr;
  if (!kind_of(name, kind)) return refuse("a choice is of kind go, time, guard or fault");
  return PyLong_FromUnsignedLong(checker->on ? checker->run.take(options, kind) : 0);
}

PyObject* f_steps(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLong(checker->on ? checker->run.steps : 0);
}

// mark(callback): the callback is called before each operation of the process that calls mark().
// None removes the callback.
PyObject* f_mark(PyObject*, PyObject* callback) {
  const ProcessBase* const p = checker->on ? checker->services->running() : nullptr;
  if (!p) return refuse("mark() was called outside a process of a checked run");
  if (callback == Py_None)
    checker->marked.erase(p);
  else
    checker->marked[p] = new_ref(callback);
  Py_RETURN_NONE;
}

PyObject* f_events(PyObject*, PyObject*) {
  const wc::Record& r = checker->run.record;
  Owned list(PyList_New(0));
  for (int i = 0; list && i < static_cast<int>(r.events.size()); ++i) {
    const Owned s(to_str(r.in_words(i)));
    if (!s || PyList_Append(list.get(), s.get()) < 0) return nullptr;
  }
  return list.release();
}

// flip(access, access, buffered): inverts or restores an entry of the table of conflicts. For
// tests.
PyObject* f_flip(PyObject*, PyObject* args) {
  unsigned a, b;
  int buffered;
  if (!PyArg_ParseTuple(args, "IIp", &a, &b, &buffered)) return nullptr;
  if (a >= wc::kAccesses || b >= wc::kAccesses) return refuse("there is no such access");
  reduced.relation.flip(static_cast<Access>(a), static_cast<Access>(b), buffered != 0);
  Py_RETURN_NONE;
}

// conflicts(access, access, buffered): returns an entry of the table of conflicts. For tests.
PyObject* f_conflicts(PyObject*, PyObject* args) {
  unsigned a, b;
  int buffered;
  if (!PyArg_ParseTuple(args, "IIp", &a, &b, &buffered)) return nullptr;
  if (a >= wc::kAccesses || b >= wc::kAccesses) return refuse("there is no such access");
  return PyBool_FromLong(
      reduced.relation.conflict(static_cast<Access>(a), static_cast<Access>(b), buffered != 0));
}

PyMethodDef functions[] = {{"configure", f_configure, METH_VARARGS, nullptr},
                           {"seed", f_seed, METH_VARARGS, nullptr},
                           {"follow", f_follow, METH_O, nullptr},
                           {"begin", f_begin, METH_NOARGS, nullptr},
                           {"end", f_end, METH_NOARGS, nullptr},
                           {"noted", f_noted, METH_NOARGS, nullptr},
                           {"advance", f_advance, METH_NOARGS, nullptr},
                           {"restarts", f_restarts, METH_NOARGS, nullptr},
                           {"difference", f_difference, METH_NOARGS, nullptr},
                           {"is_checking", f_is_checking, METH_NOARGS, nullptr},
                           {"races", f_races, METH_NOARGS, nullptr},
                           {"decisions", f_decisions, METH_NOARGS, nullptr},
                           {"choose", f_choose, METH_VARARGS, nullptr},
                           {"steps", f_steps, METH_NOARGS, nullptr},
                           {"mark", f_mark, METH_O, nullptr},
                           {"events", f_events, METH_NOARGS, nullptr},
                           {"conflicts", f_conflicts, METH_VARARGS, nullptr},
                           {"flip", f_flip, METH_VARARGS, nullptr},
                           {}};

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "weft._checking._engine",
                       "The engine of weft check.",
                       -1,
                       functions,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace weft::py

PyMODINIT_FUNC PyInit__engine() {
  using namespace weft::py;
  // Importing weft._extension raises an error whose message says why there is no extension.
  const Owned extension(PyImport_ImportModule("weft._extension"));
  const Owned native(extension ? PyObject_GetAttrString(extension.get(), "native") : nullptr);
  const Owned capsule(native ? PyObject_GetAttrString(native.get(), "_checking") : nullptr);
  const auto* services =
      capsule
          ? static_cast<const Services*>(PyCapsule_GetPointer(capsule.get(), Services::kCapsule))
          : nullptr;
  if (!services) return nullptr;
  if (services->version != Services::kVersion) {
    PyErr_SetString(
        PyExc_ImportError,
        "weft._checking._engine and weft._native are of two versions: install weft anew");
    return nullptr;
  }
  Owned m(PyModule_Create(&definition));
  if (!m) return nullptr;
  if (!checker) checker = new Checker;
  checker->services = services;
  return m.release();
}
