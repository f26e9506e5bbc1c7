// A report on demand (rules 10.5, 14.3). The report states what every process of every run waits
// for at this moment, which processes hold the ends there, and which processes may go on.
// weft/_watching/deadlocks.py puts these facts into words.
//
//   each process: look() ──► places_of() ──► going_on() ──► rows for Python: facts_of()
//
// Invariants
//  1 Everything is read with the GIL held and without running Python code, so the report describes
//    one moment: nothing in a run moves meanwhile (value.hpp, invariant 1), and the garbage
//    collector runs no finalisers.
//  2 Components run without the GIL. While a report on demand is made, their operations take the
//    GIL (aside.hpp), so no operation that waits is committed, and no process that is woken waits
//    again. An operation that was woken earlier may clear its `op` at any time, so `op` is read
//    only once.
#include <array>
#include <map>
#include <optional>
#include <set>

#include "channels/marks.hpp"
#include "choice/choices.hpp"
#include "choice/watch.hpp"
#include "components/components.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/outside.hpp"
#include "processes/group.hpp"
#include "processes/run.hpp"
#include "rounds/facts.hpp"
#include "rounds/report.hpp"
#include "rounds/rounds.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"
#include "weft/runtime/going_on.hpp"
#include "weft/runtime/limit.hpp"
#include "wire/far.hpp"

namespace weft::py {

bool looking = false;

bool waits_afar(ProcessBase& p, const runtime::OpKind& op) noexcept {
  if (op.withdraw != &weft::detail::withdraw_plain<Engine, Side::in> &&
      op.withdraw != &weft::detail::withdraw_plain<Engine, Side::out>)
    return false;
  const auto& core = *static_cast<const Engine*>(static_cast<const core::SyncObject*>(p.place));
  const ChannelObject* const c = channel_of_core(core);
  return is_far(c) && side_of(c).asks_for(p);
}

namespace {

PyObject* idle_callback = nullptr;
thread_local bool inside = false;

struct Place final : Holders {
  bool is_channel = false;
  // What figures_of() returned for the channel.
  std::optional<std::array<unsigned long long, 3>> moved;
  // The number of open ends whose holder is not known.
  unsigned long unknown_readers = 0, unknown_writers = 0;

  // Returns true if an unknown process might operate at the place, or if the other side has no end
  // in a known process.
  bool open(bool writing) const {
    return unknown_readers + unknown_writers > 0 || (writing ? readers : writers).empty();
  }
};
using Places = std::map<const core::SyncObject*, Place>;

// The state of a process at one moment.
struct One {
  ProcessBase* process;
  const char* state = "able";
  // The places at which the process waits, each with a flag: whether the process writes there.
  std::vector<std::pair<const core::SyncObject*, bool>> at;
  // The names of channels that have ended, so that no party can arrive there (rule 5.6).
  std::vector<std::string> silent;
};

struct Collect final : runtime::WaitVisitor {
  One* one = nullptr;
  bool never = false;  // whether the process waits for a time that never comes
  std::set<const core::SyncObject*> channels, ends;
  void channel(const core::SyncObject& c, bool writing) override {
    channels.insert(&c);
    one->at.emplace_back(&c, writing);
  }
  void barrier(const core::SyncObject& c) override { one->at.emplace_back(&c, false); }
  // The end of a process is treated like a channel of which that process holds the writer.
  void end(const core::SyncObject& c) override {
    channel(c, false);
    ends.insert(&c);
  }
  void nowhere() override { never = true; }
  void ended(const core::SyncObject& c, std::uint32_t) override {
    one->silent.push_back(runtime::name_of(c));
  }
};

std::uint32_t parent_of(const ProcessBase& p) {
  return p.group && p.group->owner() ? std::uint32_t(p.group->owner()->id) : 0u;
}

// Records in `one` what the process waits for, if nothing else can wake it. `at_rest`: see
// facts_of().
void look(PyRun& run, One& one, Collect& collect, bool at_rest) {
  ProcessBase& p = *one.process;
  collect.one = &one;
  collect.never = false;
  // A virtual clock does not advance at a standstill (rule 8.6).
  const bool timers_stand = at_rest && run.run.clock() != runtime::Clock::steady;
  // A time limit counts like a timer in a select.
  if (!timers_stand && runtime::Limit::any_armed(p, run.run)) return;
  const runtime::OpKind* const op = p.operation();
  if (op == &wait_op) {
    one.state = "children";
  } else if (op && op->visit && p.cancel().load(std::memory_order_relaxed) == 0 &&
             (at_rest || facing(p) == Facing::blocked ||
              waits_afar(p, *op))) {  // in all of these cases the process stays in that operation
    op->visit(p, collect);
    if (at_rest || !one.at.empty() || collect.never) one.state = "places";
  }
}

// Returns the places at which processes wait, and the processes that hold ends there.
Places places_of(PyRun& run, const std::vector<One>& all, const Collect& collect) {
  Places places;
  for (const One& one : all)
    for (const auto& [place, writing] : one.at)
      places[place].is_channel = collect.channels.count(place) != 0;
  for (const One& one : all)
    each_end_held(*one.process, [&](const EndObject* e, const core::SyncObject* at, bool writes) {
      // If `place` is the end of `places`, no process waits there.
      const auto place = places.find(at);
      if (place != places.end()) place->second.add(one.process->id, e, writes);
    });
  const auto beyond = [](std::uint32_t open, std::size_t known) {
    return open > known ? static_cast<unsigned long>(open - known) : 0ul;
  };
  for (auto& [place, h] : places) {
    if (collect.ends.count(place)) {
      if (run_of_end(*place) == &run.run)
        h.writers.insert(place->last_writer);
      else
        h.unknown_writers = 1;
    } else if (h.is_channel) {
      const auto& core = static_cast<const Engine&>(*place);
      h.moved = figures_of(core);
      h.unknown_readers = beyond(core.reader_ends(), h.reader_ends.size());
      h.unknown_writers = beyond(core.writer_ends(), h.writer_ends.size());
    }
  }
  return places;
}

// Finds the processes that can go on, by the same rules as the C++ runtime (runtime/going_on.hpp).
// A family consists of the children of a process.
runtime::GoingOn going_on(const std::vector<One>& all, const Places& places) {
  runtime::GoingOn g;
  const auto family = [](std::uint32_t parent) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(parent));
  };
  for (const One& one : all) g.process(one.process->id, family(parent_of(*one.process)));
  for (const One& one : all) {
    const std::uint32_t id = one.process->id;
    if (*one.state == 'a') g.able(id);
    if (*one.state == 'c') g.waits_for(id, family(id));
    for (const auto& [place, writing] : one.at) {
      const Place& h = places.at(place);
      if (!h.is_channel)
        g.waits_at_barrier(id);
      else if (h.open(writing))
        g.able(id);
      else
        g.waits_at(id, place);
    }
  }
  for (const auto& [place, h] : places)
    for (const auto* side : {&h.readers, &h.writers})
      for (const std::uint32_t id : *side) g.holds(id, place);
  g.solve();
  return g;
}

PyObject* ids(const std::set<std::uint32_t>& s) {
  Owned t(PyTuple_New(static_cast<Py_ssize_t>(s.size())));
  Py_ssize_t i = 0;
  for (const std::uint32_t id : s)
    if (t) put(t, i++, PyLong_FromUnsignedLong(id));
  return t.release();
}

PyObject* process_row(const One& one, bool may_go_on) {
  ProcessBase& p = *one.process;
  const runtime::OpKind* const op = p.operation();
  if (op) locate(p);
  Owned places(PyList_New(0));
  for (const auto& [place, writing] : one.at)
    if (places) append(places, Py_BuildValue("NO", key_of(place), writing ? Py_True : Py_False));
  Owned silent(places ? PyList_New(0) : nullptr);
  for (const std::string& name : one.silent)
    if (silent) append(silent, to_str(name));
  if (!silent) return nullptr;
  return Py_BuildValue("IsssIsNNO", std::uint32_t(p.id), runtime::path_of(p).c_str(),
                       op ? op->verb : "", runtime::where(p).c_str(), parent_of(p), one.state,
                       places.release(), silent.release(), may_go_on ? Py_True : Py_False);
}
PyObject* place_row(const core::SyncObject& place, const Place& h) {
  PyObject* const moved = h.moved ? figures_row(*h.moved) : Py_NewRef(Py_None);
  return Py_BuildValue("NONNkkN", to_str(runtime::name_of(place)),
                       h.is_channel ? Py_True : Py_False, ids(h.readers), ids(h.writers),
                       h.unknown_readers, h.unknown_writers, moved);
}

PyObject* rows_of(const Places& places) {
  Owned by_key(PyDict_New());
  for (const auto& [place, h] : places) {
    if (!by_key) break;
    const Owned row(place_row(*place, h));
    const Owned key(row ? key_of(place) : nullptr);
    if (!key || PyDict_SetItem(by_key.get(), key.get(), row.get()) < 0) by_key.reset();
  }
  return by_key.release();
}

// Returns the facts that weft/_watching/deadlocks.py puts into words: ([Waiter], {key: Place}).
//
// Sets `where` to the places at which processes wait, as one number; 0 means that some process can
// go on. `at_rest` means that no process can go on without an event from outside, even though a
// process that waits for the answer of another OS process is in no waiting queue.
PyObject* facts_of(PyRun& run, std::uint64_t* where = nullptr, bool at_rest = false) {
  std::vector<One> all;
  // The processes in `all` stay alive, because they need the GIL to end.
  run.run.each_process([&](ProcessBase& p) { all.push_back({&p, "able", {}, {}}); });
  Collect collect;
  bool moving = false;
  std::uint64_t sum = 0;
  for (One& one : all) {
    look(run, one, collect, at_rest);
    moving = moving || !one.process->operation() || *one.state == 'a';
    // The sum does not depend on the order of the places.
    for (const auto& [place, writing] : one.at)
      sum += (reinterpret_cast<std::uintptr_t>(place) * 2 + writing) | 1;
  }
  if (where) *where = moving || all.empty() ? 0 : sum | 1;
  const Places places = places_of(run, all, collect);
  const runtime::GoingOn able = going_on(all, places);
  Owned processes(PyList_New(0));
  for (const One& one : all)
    if (processes) append(processes, process_row(one, able.is_able(one.process->id)));
  const Owned by_key(processes ? rows_of(places) : nullptr);
  return by_key ? Py_BuildValue("OO", processes.get(), by_key.get()) : nullptr;
}

// --- a standstill (rule 10.6), which weft/_watching/standstill.py reports ------------------------

class FoundStandstill final : public runtime::Run::Standstill {
 public:
  FoundStandstill(runtime::Run& run, Owned<> facts) : run_(run), facts_(std::move(facts)) {}
  void tell() noexcept override {
    const SavedException kept;
    const Owned others(foreign_idents(&run_));
    Owned<> r;
    if (others) {
      const OutsideGate beyond;
      // The module is imported only here, since it imports logging.
      const Owned m(PyImport_ImportModule("weft._watching.standstill"));
      if (m)
        r.reset(PyObject_CallMethod(
            m.get(), "tell", "OOId", facts_.get(), others.get(), open_tokens().plain,
            static_cast<double>(runtime::patience().load(std::memory_order_relaxed)) * 1e-9));
    }
    if (!r) keep_interrupt_for(&run_of(run_), take_exception());
  }

 private:
  runtime::Run& run_;
  const Owned<> facts_;
};

// Returned for a run that waits for other OS processes, which are asked next.
class WaitsForLinks final : public runtime::Run::Standstill {
 public:
  void tell() noexcept override {
    const SavedException kept;
    say_standing();
  }
};

// Examines a standstill. Nothing moves during this call, because the GIL is held.
runtime::Run::Standstill* look_at_standstill(runtime::Run& run) noexcept {
  if (links_are_asked()) return new WaitsForLinks;
  const SavedException kept;
  const int collector = PyGC_Disable();
  std::uint64_t where = 0;
  // A virtual clock does not advance either, so no process can continue because of a timer.
  Owned facts(facts_of(run_of(run), &where, run.clock() != runtime::Clock::steady));
  if (collector) PyGC_Enable();
  if (!facts || where == 0 || !run.first_of(where)) return nullptr;
  return new FoundStandstill(run, std::move(facts));
}

// _facts(at_rest=False): returns the facts of every run that has not ended.
PyObject* f_facts(PyObject*, PyObject* args) {
  int at_rest = 0;
  if (!PyArg_ParseTuple(args, "|p", &at_rest)) return nullptr;
  const OneMoment moment;
  return every_fact(at_rest != 0);
}

PyObject* f_set_idle(PyObject*, PyObject* f) {
  Py_XSETREF(idle_callback, f == Py_None ? nullptr : Py_NewRef(f));
  looking = idle_callback != nullptr;
  Py_RETURN_NONE;
}

void put(runtime::GoingOn& g, std::string_view fact, std::uint32_t id, std::uint32_t number) {
  const void* const key = reinterpret_cast<const void*>(std::uintptr_t{number});
  if (fact == "process") g.process(id, key);
  if (fact == "able") g.able(id);
  if (fact == "waits_at") g.waits_at(id, key);
  if (fact == "waits_at_barrier") g.waits_at_barrier(id);
  if (fact == "waits_for") g.waits_for(id, key);
  if (fact == "holds") g.holds(id, key);
}
// _going_on([(name of a function of GoingOn, process, key or 0)]): returns the processes that can
// go on. The caller has numbered the processes and the keys
// (weft/_distributed_deadlock/partial.py).
PyObject* f_going_on(PyObject*, PyObject* facts) {
  runtime::GoingOn g;
  std::set<std::uint32_t> all, able;
  for (Py_ssize_t i = 0; i < PyList_Size(facts); ++i) {
    const char* fact;
    unsigned id, key;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(facts, i), "sII", &fact, &id, &key)) return nullptr;
    put(g, fact, id, key);
    all.insert(id);
  }
  if (PyErr_Occurred()) return nullptr;
  g.solve();
  for (const std::uint32_t id : all)
    if (g.is_able(id)) able.insert(id);
  return ids(able);
}

PyMethodDef partial_functions[] = {{"_facts", gated<f_facts>, METH_VARARGS, nullptr},
                                   {"_going_on", gated<f_going_on>, METH_O, nullptr},
                                   {"_set_idle", gated<f_set_idle>, METH_O, nullptr},
                                   {}};

}  // namespace

OneMoment::OneMoment() noexcept {
  // waits until components have left their operations, and prevents new operations of components
  task_waiter_comes();
  collector_ = PyGC_Disable();
}
OneMoment::~OneMoment() {
  if (collector_) PyGC_Enable();
  task_waiter_goes();
}
PyObject* every_fact(bool at_rest) {
  Owned list(PyList_New(0));
  for (PyRun* run : every_run()) {
    if (list) append(list, facts_of(*run, nullptr, at_rest));
  }
  return list.release();
}
std::array<unsigned long long, 3> figures_of(const Engine& c) noexcept {
  return {c.transfers(), c.dropped(), c.ring ? c.ring->size : 0u};
}
PyObject* figures_row(const std::array<unsigned long long, 3>& f) {
  return Py_BuildValue("KKK", f[0], f[1], f[2]);
}

PyObject* facts_at_rest(PyRun& run) noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  const int collector = PyGC_Disable();
  PyObject* facts = facts_of(run, nullptr, true);
  if (collector) PyGC_Enable();
  PyErr_Restore(t, v, tb);
  return facts;
}
void watch_standstill(runtime::Run& run) noexcept { run.look_at_standstill = &look_at_standstill; }

void fell_idle() noexcept {
  if (inside || !idle_callback) return;
  inside = true;
  {
    const SavedException kept;
    const Owned f = new_ref(idle_callback);
    Owned<> r;
    {
      const OutsideGate beyond;
      r.reset(PyObject_CallNoArgs(f.get()));
    }
    if (!r) {
      runtime::Run* run = current_run();
      keep_interrupt_for(run ? &run_of(*run) : nullptr, take_exception());
    }
  }
  inside = false;
}

int init_partial(PyObject* m) { return PyModule_AddFunctions(m, partial_functions); }

}  // namespace weft::py
