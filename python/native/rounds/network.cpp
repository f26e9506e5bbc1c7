// This program's part in the search for a standstill of a network over several OS processes
// (WIRE.md 10). weft/_distributed_deadlock/rounds.py implements the rounds and the reports.
//
// All facts are read with the GIL held and without running Python code, so they describe one
// moment, as in partial.cpp. A link receives frames under the GIL too, so every frame that was
// received has already woken the processes that it wakes.
#include <set>
#include <unordered_map>

#include "channels/marks.hpp"
#include "choice/abroad.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/pending.hpp"
#include "processes/run.hpp"
#include "rounds/facts.hpp"
#include "rounds/report.hpp"
#include "rounds/rounds.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"
#include "weft/runtime/knot.hpp"
#include "weft/runtime/outside.hpp"
#include "weft/wire/asking.hpp"
#include "wire/far.hpp"

namespace weft::py {

namespace {

PyObject* standing = nullptr;  // weft._distributed_deadlock.rounds.standing

unsigned long long name_of(std::uint64_t key) { return wire::detail::end_name(key); }
PyObject* truth(bool is) { return is ? Py_True : Py_False; }

// Returns the channel of an end that a peer holds; null if it is a barrier.
const Engine* engine_of(const wire::Port& p) noexcept {
  return p.barrier() ? nullptr : static_cast<const Engine*>(p.channel());
}
const core::SyncObject* place_of(const wire::Port& p) noexcept {
  return p.barrier() ? p.place() : engine_of(p);
}

// Returns which process was given which end as an argument: [(process, place, writes, the end)].
PyObject* ends_held() {
  Owned list(PyList_New(0));
  for (PyRun* run : every_run())
    run->run.each_process([&](ProcessBase& p) {
      each_end_held(p, [&](const EndObject* e, const core::SyncObject* place, bool writes) {
        if (!list) return;
        append(list,
               Py_BuildValue("INON", std::uint32_t(p.id), key_of(place), truth(writes), key_of(e)));
      });
    });
  return list.release();
}

// _network(known=0): returns a tuple of
//   this program's incarnation;
//   whether all runs wait only for links, and for `known` others outside, which the caller checks;
//   [(the peer's incarnation, frames sent, frames received)] of the sessions;
//   [(the peer's incarnation, name, place, writes, open ends of the channel)] of the ends of peers;
//   [(place, the home's incarnation, name, open ends)] of the far channels;
//   ends_held().
// The names of ends are those of WIRE.md 10.7.
PyObject* network(int known = 0) {
  // A program that is not a peer yet can also connect over a network (WIRE-NETWORKS.md 17.16).
  bool quiet = !ends_pending() && runtime::due_tokens.load() == runtime::link_tokens.load() + known;
  for (PyRun* run : every_run()) quiet = quiet && run->run.waits_for_links();
  Owned sessions(PyList_New(0)), lent(PyList_New(0)), far(PyList_New(0));
  std::uint64_t mine = 0;
  if (const std::shared_ptr<Space> space = this_space()) {
    const Space::Step step(*space);
    mine = space->greeting().incarnation;
    std::vector<wire::InProgram::Session> all;
    quiet = wire::sessions_of(*space, all) && quiet;
    for (const auto& [theirs, sent, received] : all)
      if (sessions)
        append(sessions,
               Py_BuildValue("KII", static_cast<unsigned long long>(theirs), sent, received));
    for (const Peer* p : space->peers()) {
      if (p->session.is_over()) continue;
      const unsigned long long theirs = p->session.theirs().incarnation;
      p->home.each_end([&](std::uint64_t key, const wire::Port& port) {
        if (!lent) return;
        const Engine* const core = engine_of(port);  // no process holds an end of a barrier
        append(lent, Py_BuildValue("KKNOI", theirs, name_of(key), key_of(place_of(port)),
                                   truth(port.writes()),
                                   core ? core->reader_ends() + core->writer_ends() : 0u));
      });
    }
    each_far_side([&](const FarSide& f) {
      if (!far) return;
      const auto* const place = static_cast<const core::SyncObject*>(f.core);
      append(far,
             Py_BuildValue("NKKI", key_of(place),
                           static_cast<unsigned long long>(f.peer->session.theirs().incarnation),
                           name_of(f.key), f.core->reader_ends() + f.core->writer_ends()));
    });
  }
  return Py_BuildValue("KONNNN", static_cast<unsigned long long>(mine), truth(quiet),
                       sessions.release(), lent.release(), far.release(), ends_held());
}

PyObject* f_network(PyObject*, PyObject* args) {
  int known = 0;
  return PyArg_ParseTuple(args, "|i", &known) ? network(known) : nullptr;
}

// _moment(): returns (_network(), _facts(), {place: its figures, see figures_of()} of channels with
// ends in other programs, [place of a far channel of which an end is also under way, or in a
// value]), all of the same moment (WIRE.md 10.9).
PyObject* f_moment(PyObject*, PyObject*) {
  const OneMoment moment;
  Owned figures(PyDict_New()), shared(PyList_New(0));
  Owned<> around, facts;
  const auto look = [&] {
    around.reset(network());
    facts.reset(every_fact(false));
  };
  const std::shared_ptr<Space> space = this_space();
  if (!space) {
    look();
  } else {
    const Space::Step step(*space);
    look();
    for (const Peer* p : space->peers())
      p->home.each_end([&](std::uint64_t, const wire::Port& port) {
        const Engine* const core = engine_of(port);
        if (!core || !figures) return;
        const Owned key(key_of(place_of(port)));
        const Owned row(figures_row(figures_of(*core)));
        if (figures && (!key || !row || PyDict_SetItem(figures.get(), key.get(), row.get()) < 0))
          figures.reset();
      });
    each_far_side([&](const FarSide& f) {
      if (!f.end || !shared) return;
      long known = 1;
      for (const Abroad* a : abroads) known += a->has(*f.end);
      if (f.end.use_count() > known)
        append(shared, key_of(static_cast<const core::SyncObject*>(f.core)));
    });
  }
  return Py_BuildValue("NNNN", around.release(), facts.release(), figures.release(),
                       shared.release());
}

// _end_runs(numbers of processes, error): cancels the runs of these processes, which raise the
// error.
PyObject* f_end_runs(PyObject*, PyObject* args) {
  PyObject *numbers, *error;
  if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &numbers, &error)) return nullptr;
  const std::set<PyRun*> all = every_run();
  for (PyRun* run : all) {
    bool in_it = false;
    run->run.each_process([&](ProcessBase& p) {
      const Owned id(PyLong_FromUnsignedLong(std::uint32_t(p.id)));
      in_it = in_it || PySet_Contains(numbers, id.get()) == 1;
    });
    if (in_it) keep_interrupt_for(run, Py_NewRef(error));
  }
  Py_RETURN_NONE;
}

// _declare_deadlock(report, [path of the knot], [(path, operation, (place, …), where)]): returns
// whether the reported deadlock concerns any run of this program.
PyObject* f_declare(PyObject*, PyObject* args) {
  const char* report;
  PyObject *knot, *rows;
  if (!PyArg_ParseTuple(args, "sO!O!", &report, &PyList_Type, &knot, &PyList_Type, &rows))
    return nullptr;
  std::vector<std::string> paths;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(knot); ++i)
    paths.emplace_back(PyUnicode_AsUTF8(PyList_GET_ITEM(knot, i)));
  std::vector<runtime::Report::Blocked> blocked;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); ++i) {
    const char *path, *verb, *at;
    PyObject* places;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "ssO!s", &path, &verb, &PyTuple_Type, &places,
                          &at))
      return nullptr;
    runtime::Report::Blocked b;
    b.path = path;
    b.verb = verb;
    b.at = at;
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(places); ++j)
      b.places.push_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(places, j)));
    blocked.push_back(std::move(b));
  }
  bool any = false;
  for (PyRun* run : every_run()) {
    const bool condemned = take_condemned(run);
    if (!condemned && (!run->run.detect_deadlock || !run->run.waits_for_links())) continue;
    run->blocked = blocked;
    if (condemned) run->run.carry_out();
    any = condemned || run->run.declare(report, paths) || any;
  }
  return PyBool_FromLong(any);
}

// _ask_links(standing): from now on, links are asked too. standing() is called when a run waits
// only for links.
PyObject* f_ask_links(PyObject*, PyObject* f) {
  Py_XSETREF(standing, Py_NewRef(f));
  runtime::links_are_asked = true;
  Py_RETURN_NONE;
}
// _waits_at(end): returns whether a party of this program waits at this far end, and its home has
// been notified.
PyObject* f_waits_at(PyObject*, PyObject* o) {
  if (!is_end(o)) return bad_use("_waits_at: expected a channel end, got %R", o);
  const auto* const c = reinterpret_cast<const EndObject*>(o)->channel;
  if (!is_far(c)) return bad_use("_waits_at: the home of %R is this program", o);
  const FarSide& side = *reinterpret_cast<const FarChannelObject*>(c)->side;
  const Space::Step step(*side.peer->space);
  return PyBool_FromLong(side.peer->far.waits_at(side.number));
}
// _foreign_threads(): returns (True, identities of the threads that are neither processes of any
// run nor Weft's own). On a free-threaded build, where these threads cannot be listed, returns
// (False, identities of the other threads), without threads that C code has made known.
PyObject* f_foreign_threads(PyObject*, PyObject*) {
#ifdef Py_GIL_DISABLED
  return Py_BuildValue("ON", Py_False, known_of_all());
#else
  return Py_BuildValue("ON", Py_True, foreign_threads_of_all());
#endif
}
// _ends_under_way(): returns how many ends of other programs' channels this program has sent and is
// still responsible for, or has received without confirmation by their home so far (WIRE.md 7.4).
PyObject* f_under_way(PyObject*, PyObject*) {
  std::size_t n = 0;
  if (const std::shared_ptr<Space> space = this_space()) {
    const Space::Step step(*space);
    for (const Peer* p : space->peers())
      if (!p->session.is_over()) n += p->carrier.under_way() + p->being_adopted();
  }
  return PyLong_FromSize_t(n);
}
// _lent(): returns the channels made in this program of which other programs have ends.
PyObject* f_lent(PyObject*, PyObject*) {
  std::set<ChannelObject*> found;
  if (const std::shared_ptr<Space> space = this_space()) {
    const Space::Step step(*space);
    for (const Peer* p : space->peers())
      p->home.each_end([&](std::uint64_t, const wire::Port& port) {
        if (port.barrier()) return;
        ChannelObject* const c = channel_of_core(*static_cast<const Engine*>(port.channel()));
        if (found.insert(c).second) Py_INCREF(reinterpret_cast<PyObject*>(c));
      });
  }
  Owned list(PyList_New(0));
  for (ChannelObject* c : found) append(list, reinterpret_cast<PyObject*>(c));
  return list.release();
}
// _ancestors(process): returns the number of the process, then the number of the process to whose
// group it belongs, and so on.
PyObject* f_ancestors(PyObject*, PyObject* o) {
  if (!Py_IS_TYPE(o, &ProcessType)) return bad_use("_ancestors: expected a process, got %R", o);
  const ProcessBase& first = base_of(reinterpret_cast<ProcessObject*>(o));
  std::vector<std::uint32_t> ids;
  const auto walk = [&] {
    for (const ProcessBase* p = &first; p; p = p->group ? p->group->owner() : nullptr)
      ids.push_back(std::uint32_t(p->id));
  };
  if (first.group)
    first.group->run.still(walk);
  else
    walk();
  Owned list(PyList_New(0));
  for (const std::uint32_t id : ids) append(list, PyLong_FromUnsignedLong(id));
  return list.release();
}
// _smallest_knot([[node to which an edge leads]] for each node 0, 1, …): returns the nodes of the
// knot, ascending (weft/runtime/knot.hpp).
PyObject* f_smallest_knot(PyObject*, PyObject* to) {
  runtime::Pairs edges;
  const Py_ssize_t n = PyList_Size(to);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const those = PyList_GET_ITEM(to, i);
    for (Py_ssize_t j = 0; j < PyList_Size(those); ++j) {
      const std::size_t node = PyLong_AsSize_t(PyList_GET_ITEM(those, j));
      if (node < static_cast<std::size_t>(n)) edges.add(static_cast<std::size_t>(i), node);
    }
  }
  if (PyErr_Occurred()) return nullptr;
  edges.sort();
  Owned knot(PyList_New(0));
  const auto count = static_cast<std::uint32_t>(n);
  for (const std::uint32_t node : runtime::smallest_knot(edges, count, count, count))
    append(knot, PyLong_FromUnsignedLong(node));
  return knot.release();
}
PyMethodDef network_functions[] = {
    {"_smallest_knot", gated<f_smallest_knot>, METH_O, nullptr},
    {"_lent", gated<f_lent>, METH_NOARGS, nullptr},
    {"_ancestors", gated<f_ancestors>, METH_O, nullptr},
    {"_ends_under_way", gated<f_under_way>, METH_NOARGS, nullptr},
    {"_network", gated<f_network>, METH_VARARGS, nullptr},
    {"_moment", gated<f_moment>, METH_NOARGS, nullptr},
    {"_end_runs", gated<f_end_runs>, METH_VARARGS, nullptr},
    {"_declare_deadlock", gated<f_declare>, METH_VARARGS, nullptr},
    {"_ask_links", gated<f_ask_links>, METH_O, nullptr},
    {"_waits_at", gated<f_waits_at>, METH_O, nullptr},
    {"_foreign_threads", gated<f_foreign_threads>, METH_NOARGS, nullptr},
    {}};

}  // namespace

bool links_are_asked() noexcept {
  return runtime::links_are_asked.load() && runtime::due_tokens.load() != 0;
}

void say_standing() noexcept {
  const OutsideGate beyond;
  const Owned r(PyObject_CallNoArgs(standing));
  if (!r) PyErr_Clear();  // the process for which the error was meant has ended
}

int init_network(PyObject* m) { return PyModule_AddFunctions(m, network_functions); }

}  // namespace weft::py
