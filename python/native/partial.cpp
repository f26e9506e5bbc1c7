// Facts for a report on demand (rules 10.5, 14.3): what every process of every run waits for, and who holds the ends there, at this moment.
// What follows from them is in weft/_deadlocks.py.
//
// Everything is read with the GIL held and without running Python code, so that it is one moment: nothing of a run moves meanwhile
// (invariant 1 of native.hpp), and the garbage collector is kept from running finalisers.
#include <map>
#include <set>

#include "observe.hpp"
#include "weft/runtime/limit.hpp"
#include "wire.hpp"

namespace weft::py {

bool looking = false;

namespace {

PyObject* idle_callback = nullptr;
thread_local bool inside = false;

struct Holders {
  std::set<std::uint32_t> readers, writers;
  std::set<const EndObject*> reader_ends, writer_ends;
};

struct Collect final : runtime::Places {
  std::map<const core::Place*, bool> seen;  // is it a channel?
  std::vector<std::pair<const core::Place*, bool>> at;
  void channel(const core::Place& c, bool writing) override {
    seen[&c] = true;
    at.emplace_back(&c, writing);
  }
  void barrier(const core::Place& c) override {
    seen[&c] = false;
    at.emplace_back(&c, false);
  }
  // As a channel of which the process holds the writer.
  std::set<const core::Place*> ends;
  void end(const core::Place& c) override {
    channel(c, false);
    ends.insert(&c);
  }
  void nowhere() override { never = true; }
  bool never = false;  // it waits for a time that never comes
  void ended(const core::Place& c, std::uint32_t) override { silent.push_back(runtime::name_of(c)); }
  std::vector<std::string> silent;  // names of channels that have ended: nobody comes there (rule 5.6)
};

PyObject* ids(const std::set<std::uint32_t>& s) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(s.size()));
  Py_ssize_t i = 0;
  for (const std::uint32_t id : s) PyTuple_SET_ITEM(t, i++, PyLong_FromUnsignedLong(id));
  return t;
}
PyObject* key_of(const core::Place* p) { return PyLong_FromVoidPtr(const_cast<void*>(static_cast<const void*>(p))); }

// ([(id, path, verb, at, parent, state, [(place, writing)], [name of a silent one])], {place: (name, is a channel, readers, writers,
// unknown readers, unknown writers)}) state: "able", "places", "children".
// `where`: the places at which they wait, as one number; 0: somebody can go on.
// `at_rest`: it is known that none can go on by itself; who waits for another OS process's word is in no line.
PyObject* facts_of(PyRun& run, std::uint64_t* where = nullptr, bool at_rest = false) {
  std::vector<ProcessBase*> all;
  run.run.each_process([&](ProcessBase& p) { all.push_back(&p); });  // they stay: to end they need the GIL
  std::map<const core::Place*, Holders> held;
  for (ProcessBase* p : all) {
    ProcessObject* o = process_object(p);
    for (Py_ssize_t i = 0; o && i < Py_SIZE(o); ++i) {
      const EndObject* e = o->held[i];
      if (e->state != EndState::open) continue;
      Holders& h = held[static_cast<const core::Place*>(&e->channel->core)];
      const bool reader = Py_IS_TYPE(e, &ReaderType);
      (reader ? h.readers : h.writers).insert(p->id);
      (reader ? h.reader_ends : h.writer_ends).insert(e);
    }
  }
  PyObject* processes = PyList_New(0);
  Collect collect;
  bool moving = false;
  std::uint64_t sum = 0;
  for (ProcessBase* p : all) {
    const char* state = "able";
    collect.at.clear();
    collect.silent.clear();
    collect.never = false;
    if (runtime::Limit::any_armed(*p, run.run)) {  // as a timer in its select
    } else if (p->op == &wait_op) {
      state = "children";
    } else if (p->op && p->op->visit && p->cancel().load(std::memory_order_relaxed) == 0 && (at_rest || facing(*p) == Facing::blocked)) {
      p->op->visit(*p, collect);
      if (at_rest || !collect.at.empty() || collect.never) state = "places";
    }
    moving = moving || !p->op || *state == 'a';
    for (const auto& [place, writing] : collect.at) sum += (reinterpret_cast<std::uintptr_t>(place) * 2 + writing) | 1;  // any order
    if (p->op) locate(*p);
    PyObject* places = PyList_New(0);
    for (const auto& [place, writing] : collect.at) {
      PyObject* one = Py_BuildValue("NO", key_of(place), writing ? Py_True : Py_False);
      PyList_Append(places, one);
      Py_DECREF(one);
    }
    PyObject* silent = PyList_New(0);
    for (const std::string& name : collect.silent) {
      PyObject* one = to_str(name);
      PyList_Append(silent, one);
      Py_DECREF(one);
    }
    PyObject* one =
        Py_BuildValue("IsssIsNN", std::uint32_t(p->id), runtime::path_of(*p).c_str(), p->op ? p->op->verb : "", runtime::where(*p).c_str(),
                      p->group && p->group->owner() ? std::uint32_t(p->group->owner()->id) : 0u, state, places, silent);
    if (one) PyList_Append(processes, one);
    Py_XDECREF(one);
  }
  PyObject* places = PyDict_New();
  for (const auto& [place, is_channel] : collect.seen) {
    Holders& h = held[place];
    unsigned long unknown_readers = 0, unknown_writers = 0;
    if (collect.ends.count(place)) {
      if (run_of_end(*place) == &run.run)
        h.writers.insert(place->last_writer);
      else
        unknown_writers = 1;
    } else if (is_channel) {
      const auto& core = static_cast<const Core&>(*place);
      const auto beyond = [](std::uint32_t open, std::size_t known) {
        return open > known ? static_cast<unsigned long>(open - known) : 0ul;
      };
      unknown_readers = beyond(core.reader_ends(), h.reader_ends.size());
      unknown_writers = beyond(core.writer_ends(), h.writer_ends.size());
    }
    PyObject* name = to_str(runtime::name_of(*place));
    PyObject* one =
        Py_BuildValue("NONNkk", name, is_channel ? Py_True : Py_False, ids(h.readers), ids(h.writers), unknown_readers, unknown_writers);
    PyObject* key = key_of(place);
    if (one) PyDict_SetItem(places, key, one);
    Py_DECREF(key);
    Py_XDECREF(one);
  }
  if (where) *where = moving || all.empty() ? 0 : sum | 1;
  return Py_BuildValue("NN", processes, places);
}

// --- a standstill (rule 10.6): what is told of it is in weft/_standstill.py
// ---------------------------------------------------------------

class FoundStandstill final : public runtime::Run::Standstill {
 public:
  FoundStandstill(runtime::Run& run, PyObject* facts) : run_(run), facts_(facts) {}
  ~FoundStandstill() override { Py_DECREF(facts_); }
  void tell() noexcept override {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    PyObject* others = foreign_idents(&run_);
    PyObject* r = nullptr;
    if (others) {
      const Beyond beyond;
      PyObject* m = PyImport_ImportModule("weft._standstill");  // not before: it imports logging
      if (m)
        r = PyObject_CallMethod(m, "tell", "OOd", facts_, others,
                                static_cast<double>(runtime::patience().load(std::memory_order_relaxed)) * 1e-9);
      Py_XDECREF(m);
    }
    if (!r) keep_interrupt_for(&run_of(run_), take_exception());
    Py_XDECREF(others);
    Py_XDECREF(r);
    PyErr_Restore(t, v, tb);
  }

 private:
  runtime::Run& run_;
  PyObject* const facts_;  // owned
};

// A run waits for other OS processes: they are asked.
class WaitsForLinks final : public runtime::Run::Standstill {
 public:
  void tell() noexcept override {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    say_standing();
    PyErr_Restore(t, v, tb);
  }
};

// Nothing moves meanwhile: the GIL is held.
std::unique_ptr<runtime::Run::Standstill> look_at_standstill(runtime::Run& run) noexcept {
  if (links_are_asked()) return std::make_unique<WaitsForLinks>();
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  const int collector = PyGC_Disable();
  std::uint64_t where = 0;
  PyObject* facts = facts_of(run_of(run), &where);
  if (collector) PyGC_Enable();
  PyErr_Restore(t, v, tb);
  if (!facts) return nullptr;
  if (where != 0 && run.first_of(where)) return std::make_unique<FoundStandstill>(run, facts);
  Py_DECREF(facts);
  return nullptr;
}

// _facts(at_rest=False): the facts of every run that goes on.
PyObject* f_facts(PyObject*, PyObject* args) {
  int at_rest = 0;
  if (!PyArg_ParseTuple(args, "|p", &at_rest)) return nullptr;
  const int collector = PyGC_Disable();
  PyObject* list = PyList_New(0);
  for (PyRun* run : every_run()) {
    PyObject* one = facts_of(*run, nullptr, at_rest != 0);
    if (one) PyList_Append(list, one);
    Py_XDECREF(one);
  }
  if (collector) PyGC_Enable();
  return list;
}

PyObject* f_set_idle(PyObject*, PyObject* f) {
  Py_XSETREF(idle_callback, f == Py_None ? nullptr : Py_NewRef(f));
  looking = idle_callback != nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_facts", gated<f_facts>, METH_VARARGS, nullptr}, {"_set_idle", gated<f_set_idle>, METH_O, nullptr}, {}};

}  // namespace

void watch_standstill(runtime::Run& run) noexcept { run.look_at_standstill = &look_at_standstill; }

void fell_idle() noexcept {
  if (inside || !idle_callback) return;
  inside = true;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* f = Py_NewRef(idle_callback);
  PyObject* r;
  {
    const Beyond beyond;
    r = PyObject_CallNoArgs(f);
  }
  if (!r) {
    runtime::Run* run = current_run();
    keep_interrupt_for(run ? &run_of(*run) : nullptr, take_exception());
  }
  Py_XDECREF(r);
  Py_DECREF(f);
  PyErr_Restore(t, v, tb);
  inside = false;
}

int init_partial(PyObject* m) { return PyModule_AddFunctions(m, functions); }

}  // namespace weft::py
