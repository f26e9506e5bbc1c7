// Extracts for `weft trace` from files of the flight recorder: what each process and place did, the
// critical path, and the events one after the other.
//
// The critical path is found backwards, from the last event. A process that had waited at a place
// could go on because of the last process that acted there (at the other side of a channel, as the
// last to arrive at a barrier, or as a child that ended). Before that moment the path is the path
// of that other process. Therefore one pass is enough, and only a sum for each process and place is
// kept.
#include <map>
#include <string>
#include <vector>

#include "declare.hpp"
#include "sequences.hpp"
#include "watching/flight_file.hpp"

namespace weft::py {

namespace {

namespace form = runtime::flight;
using flight_file::Event;
using flight_file::Files;
using flight_file::kNone;
using form::Op;
using form::Outcome;

// The types of waiting of an operation, which are the categories of shares.py.
enum Kind : std::uint8_t { kReads, kWrites, kTime, kIo, kOtherWait, kKinds };
Kind kind_of(const Event& e) noexcept {
  if (e.reads()) return kReads;
  if (e.writes()) return kWrites;
  switch (e.op) {
    case Op::sleep:
    case Op::tick: return kTime;
    case Op::other:
      return e.text == "io call" || e.text == "await" || e.text == "blocking call" ? kIo
                                                                                   : kOtherWait;
    default: return kOtherWait;
  }
}

struct Totals {
  std::uint64_t done[3] = {};  // the index is an Outcome
  std::int64_t waited[kKinds] = {};
  void add(const Event& e) noexcept {
    ++done[static_cast<std::size_t>(e.outcome)];
    waited[kind_of(e)] += e.waited;
  }
};
struct Of : Totals {  // the totals of a process
  bool seen = false, started = false, ended = false, waits = false;
  std::int64_t first = 0, last = 0, since = 0;
  Kind what = kReads;
  // in: the places from which the process has read; out: those to which it has written.
  std::vector<std::uint32_t> in, out;
};
void note(std::vector<std::uint32_t>& all, std::uint32_t place) {
  for (std::size_t i = all.size(); i > 0; --i)
    if (all[i - 1] == place) {
      // speeds up the next search
      if (i != all.size()) std::swap(all[i - 1], all.back());
      return;
    }
  if (all.size() < 64) all.push_back(place);
}

constexpr const char* kFlight = "weft flight";
Files* files_in(PyObject* o) { return static_cast<Files*>(PyCapsule_GetPointer(o, kFlight)); }

PyObject* text_of(std::string_view s) noexcept {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}

// Checks for signals at every 2**20th call. Returns -1 if a handler has raised, otherwise 0.
int heed(std::uint64_t& count) { return (++count & 0xFFFFF) == 0 ? PyErr_CheckSignals() : 0; }

PyObject* f_open(PyObject*, PyObject* o) {
  std::vector<std::string> names;
  const Owned list(PySequence_List(o));
  if (!list) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    const char* const name = PyUnicode_AsUTF8(PyList_GET_ITEM(list.get(), i));
    if (!name) return nullptr;
    names.emplace_back(name);
  }
  try {
    return PyCapsule_New(new Files(names), kFlight, [](PyObject* c) { delete files_in(c); });
  } catch (const flight_file::NoTrace& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

PyObject* places_list(const std::vector<std::uint32_t>& all) {
  Owned list(PyList_New(0));
  for (const std::uint32_t p : all) append(list, PyLong_FromUnsignedLong(p));
  return list.release();
}
PyObject* waits_tuple(const Totals& t) {
  return Py_BuildValue("(LLLLL)", static_cast<long long>(t.waited[0]),
                       static_cast<long long>(t.waited[1]), static_cast<long long>(t.waited[2]),
                       static_cast<long long>(t.waited[3]), static_cast<long long>(t.waited[4]));
}
PyObject* done_tuple(const Totals& t) {
  return Py_BuildValue("(KKK)", static_cast<unsigned long long>(t.done[0]),
                       static_cast<unsigned long long>(t.done[1]),
                       static_cast<unsigned long long>(t.done[2]));
}

// _flight_summary(files): returns (events, first, last, processes, places): processes and places in
// the order of _flight_names(), a process as (first, last, ended, done, waits, in, out, what it
// waits for, since), a place as (done, waits).
PyObject* f_summary(PyObject*, PyObject* o) {
  Files* const files = files_in(o);
  if (!files) return nullptr;
  files->rewind(false);
  std::vector<Of> processes;
  std::vector<Totals> places;
  std::uint64_t events = 0;
  std::int64_t last = files->first();
  while (const Event* const e = files->next()) {
    if (heed(events) < 0) return nullptr;
    last = e->t;
    if (e->process >= processes.size()) processes.resize(files->processes.size());
    Of& p = processes[e->process];
    if (!p.seen) {
      p.seen = true;
      p.first = e->what == form::kOther || e->what == form::kWaits
                    ? std::max(e->t - e->waited, files->first())
                    : e->t;
    }
    p.last = e->t;
    switch (e->what) {
      case form::kOther:
        p.waits = false;
        p.add(*e);
        if (e->place != kNone) {
          if (e->place >= places.size()) places.resize(files->places.size());
          places[e->place].add(*e);
          note(e->writes() ? p.out : p.in, e->place);
        }
        break;
      case form::kEnd:
        p.ended = true;
        p.waits = false;
        break;
      case form::kWaits:
        --events;
        p.waits = true;
        p.what = kind_of(*e);
        p.since = e->t - e->waited;
        break;
      default: break;
    }
  }
  processes.resize(files->processes.size());
  places.resize(files->places.size());
  Owned ps(PyList_New(0)), cs(PyList_New(0));
  for (const Of& p : processes)
    append(ps,
           Py_BuildValue("(LLONNNNiL)", static_cast<long long>(p.first),
                         static_cast<long long>(p.last), p.ended ? Py_True : Py_False,
                         done_tuple(p), waits_tuple(p), places_list(p.in), places_list(p.out),
                         p.waits ? static_cast<int>(p.what) : -1, static_cast<long long>(p.since)));
  for (const Totals& c : places) append(cs, Py_BuildValue("(NN)", done_tuple(c), waits_tuple(c)));
  if (!ps || !cs) return nullptr;
  return Py_BuildValue("(KLLNN)", static_cast<unsigned long long>(events),
                       static_cast<long long>(files->first()), static_cast<long long>(last),
                       ps.release(), cs.release());
}

// --- the critical path ---------------------------------------------------------------------------

class Backwards {
 public:
  explicit Backwards(Files& files) : files_(files) {}

  struct Share {  // what a process contributes to the path, in ns
    std::int64_t busy = 0, time = 0, unknown = 0, late = 0;
  };
  std::map<std::uint32_t, Share> processes;
  std::map<std::pair<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>, std::uint64_t> hands;
  std::int64_t from = 0, to = 0;  // the path's beginning and end, in ns

  bool walk() {
    files_.rewind(true);
    std::uint64_t count = 0;
    while (const Event* const e = files_.next()) {
      if (heed(count) < 0) return false;
      if (e->what == form::kAway) continue;
      if (!begun_) {
        // waits were recorded when the file was written, so they are not events of the path
        if (e->what == form::kWaits) continue;
        begun_ = true;
        me_ = e->process;
        to = at_ = e->t;
      }
      from = e->t;
      if (seeks_) seek(*e);
      if (!seeks_ && !over_ && e->process == me_) own(*e);
      if (e->what == form::kEnd || e->parked) step_of(e->process) = e->t - e->waited;
    }
    if (begun_ && !over_) {
      const std::int64_t end = std::min(from, at_);
      (seeks_ ? processes[me_].unknown : processes[me_].busy) += at_ - end;
    }
    return true;
  }

 private:
  void own(const Event& e) {
    if (e.what == form::kStart) {
      processes[me_].busy += at_ - e.t;
      at_ = e.t;
      to_parent();
      return;
    }
    if (e.what != form::kOther || !e.parked) return;
    processes[me_].busy += at_ - std::min(e.t, at_);
    at_ = std::min(at_, e.t);
    waited_from_ = e.t - e.waited;
    if (e.op == Op::wait_for || e.place != kNone) {
      seeks_ = true;
      wanted_ = e;
      return;
    }
    processes[me_].time += std::max<std::int64_t>(at_ - waited_from_, 0);
    at_ = std::min(at_, waited_from_);
  }
  void seek(const Event& e) {
    if (e.t < waited_from_) {  // no process in these files has let this one go on
      processes[me_].unknown += std::max<std::int64_t>(at_ - waited_from_, 0);
      at_ = std::min(at_, waited_from_);
      seeks_ = false;
      return;
    }
    if (e.process == me_ || !lets_go_on(e)) return;
    // On one thread, the process could not go on before the other process had finished its step.
    const std::int64_t until = std::min(at_, std::max(step_of(e.process), e.t));
    processes[me_].late += std::max<std::int64_t>(at_ - until, 0);
    if (wanted_.place != kNone) ++hands[{wanted_.place, {e.process, me_}}];
    me_ = e.process;
    at_ = until;
    seeks_ = false;
  }
  // Returns a reference to the end of the process's last step that was read: the time at which the
  // process began to wait, or ended.
  std::int64_t& step_of(std::uint32_t process) {
    if (process >= steps_.size()) steps_.resize(files_.processes.size(), 0);
    return steps_[process];
  }
  bool lets_go_on(const Event& e) const {
    if (wanted_.op == Op::wait_for) {
      if (e.what != form::kEnd) return false;
      const std::string& mine = files_.processes[me_].path;
      const std::string& its = files_.processes[e.process].path;
      return files_.processes[me_].id < 0 ||
             (its.size() > mine.size() && its[mine.size()] == '/' && its.starts_with(mine));
    }
    if (e.what != form::kOther || e.place != wanted_.place) return false;
    if (wanted_.op == Op::sync) return e.op == Op::sync;
    return wanted_.writes() ? e.reads() : e.writes();
  }
  // Before a process started, the path is that of the process that started it.
  void to_parent() {
    const flight_file::Process& mine = files_.processes[me_];
    const std::string_view path(mine.path);
    const std::size_t end = path.rfind('/');
    if (by_path_.empty())
      for (std::uint32_t i = 0; i < files_.processes.size(); ++i)
        by_path_.try_emplace(files_.processes[i].path, i);
    const auto it =
        end == path.npos ? by_path_.end() : by_path_.find(std::string(path.substr(0, end)));
    if (it == by_path_.end() || it->second == me_)
      over_ = true;  // ordinary code started the process
    else
      me_ = it->second;
  }

  Files& files_;
  bool begun_ = false, seeks_ = false, over_ = false;
  std::uint32_t me_ = 0;
  std::int64_t at_ = 0, waited_from_ = 0;
  Event wanted_;
  std::vector<std::int64_t> steps_;
  std::map<std::string, std::uint32_t> by_path_;
};

// _flight_path(files): returns (the length of the path in ns, [(process, busy, time, unknown,
// late)], [(place, from, to, how often)]).
PyObject* f_path(PyObject*, PyObject* o) {
  Files* const files = files_in(o);
  if (!files) return nullptr;
  Backwards path(*files);
  if (!path.walk()) return nullptr;
  Owned ps(PyList_New(0)), hs(PyList_New(0));
  for (const auto& [p, s] : path.processes)
    append(ps, Py_BuildValue("(ILLLL)", p, static_cast<long long>(s.busy),
                             static_cast<long long>(s.time), static_cast<long long>(s.unknown),
                             static_cast<long long>(s.late)));
  for (const auto& [key, n] : path.hands)
    append(hs, Py_BuildValue("(IIIK)", key.first, key.second.first, key.second.second,
                             static_cast<unsigned long long>(n)));
  if (!ps || !hs) return nullptr;
  return Py_BuildValue("(LNN)", static_cast<long long>(path.to - path.from), ps.release(),
                       hs.release());
}

// --- the events, in order ------------------------------------------------------------------------

PyObject* f_rewind(PyObject*, PyObject* o) {
  Files* const files = files_in(o);
  if (!files) return nullptr;
  files->rewind(false);
  Py_RETURN_NONE;
}
// _flight_next(files, n): returns at most n events, [] at the end. An event is (ns since the first,
// tag, process, Op, place or -1, Outcome, why, guard or -1, ns waited or -1, number, text).
PyObject* f_next(PyObject*, PyObject* args) {
  PyObject* o;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "On", &o, &n)) return nullptr;
  Files* const files = files_in(o);
  if (!files) return nullptr;
  Owned list(PyList_New(0));
  while (list && n-- > 0) {
    const Event* const e = files->next();
    if (!e) break;
    append(list, Py_BuildValue("(LiIiLiiLLKN)", static_cast<long long>(e->t - files->first()),
                               static_cast<int>(e->what), e->process, static_cast<int>(e->op),
                               e->place == kNone ? -1LL : static_cast<long long>(e->place),
                               static_cast<int>(
                                   e->what == form::kEnd ? e->how : static_cast<int>(e->outcome)),
                               static_cast<int>(e->why),
                               e->guard == kNone ? -1LL : static_cast<long long>(e->guard),
                               e->parked ? static_cast<long long>(e->waited) : -1LL,
                               static_cast<unsigned long long>(e->number), text_of(e->text)));
  }
  return list.release();
}
// _flight_names(files): returns ([(path, number, file)], [(name, flags)], [(pid, host, program,
// version, events dropped, how exact the times are)], what is wrong with the files or "", the steady
// clock, in ns, at the first event).
PyObject* f_names(PyObject*, PyObject* o) {
  Files* const files = files_in(o);
  if (!files) return nullptr;
  Owned ps(PyList_New(0)), cs(PyList_New(0)), hs(PyList_New(0));
  for (const auto& p : files->processes)
    append(ps, Py_BuildValue("(NLI)", text_of(p.path), static_cast<long long>(p.id), p.file));
  for (const auto& c : files->places)
    append(cs, Py_BuildValue("(NK)", text_of(c.name), static_cast<unsigned long long>(c.flags)));
  for (const auto& h : files->heads)
    append(hs, Py_BuildValue("(KNNNKL)", static_cast<unsigned long long>(h.pid), text_of(h.host),
                             text_of(h.program), text_of(h.version),
                             static_cast<unsigned long long>(h.dropped),
                             static_cast<long long>(h.within)));
  if (!ps || !cs || !hs) return nullptr;
  return Py_BuildValue("(NNNNL)", ps.release(), cs.release(), hs.release(), text_of(files->fault),
                       static_cast<long long>(files->first()));
}

PyMethodDef flight_read_functions[] = {{"_flight_open", f_open, METH_O, nullptr},
                                       {"_flight_summary", f_summary, METH_O, nullptr},
                                       {"_flight_path", f_path, METH_O, nullptr},
                                       {"_flight_rewind", f_rewind, METH_O, nullptr},
                                       {"_flight_next", f_next, METH_VARARGS, nullptr},
                                       {"_flight_names", f_names, METH_O, nullptr},
                                       {}};

}  // namespace

int init_flight_read(PyObject* m) { return PyModule_AddFunctions(m, flight_read_functions); }

}  // namespace weft::py
