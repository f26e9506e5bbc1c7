// A look from outside (rules 14.9 to 14.11): samples of what every process does, and of the values
// that have passed through channels.
//
//   _look_new() ──► Look ──_look_parts(), _look_base(): a round──► _look(): one sample, as often as
//   wanted ──► _look_rows(): pieces, until one is empty ──► _look_channels() ──► _look_parts() …
//
// No process counts or records anything for a look. A sample reads, with the GIL, the state that
// the runtime keeps in any case. Therefore looks cost nothing unless a program takes samples.
//
// Invariants
//  1 A sample makes no object for a process, and runs no Python code. Rows are made in pieces, and
//    a round begins and ends in parts of the processes, since the GIL is not released within a
//    call.
//  2 Between two samples processes and channels may be made and destroyed. A process is identified
//    by its number. A channel is identified by its address, and by its counts, which never fall: if
//    the counts at an address have become smaller, another channel has that address.
//  3 A Look drops what it keeps of a process once the samples do not find that process any more,
//    and what it keeps of a channel at the end of the second round that does not find the channel.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "channels/ends.hpp"
#include "channels/held.hpp"
#include "choice/choices.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "processes/caller.hpp"
#include "processes/greenlet.hpp"
#include "processes/loops.hpp"
#include "processes/run.hpp"
#include "processes/thread.hpp"
#include "rounds/facts.hpp"
#include "rounds/report.hpp"
#include "rounds/rounds.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"
#include "value.hpp"
#include "weft/runtime/names.hpp"

namespace weft::py {

namespace {

// The states of a process, in the order of STATES in weft/_watching/look.py.
enum Now : std::uint8_t { runs, due, reads, writes, either, timed, barrier, children, io, kStates };

PyObject* cr_running = nullptr;  // Coroutine.cr_running; kept forever

bool runs_now(const ProcessObject* o) noexcept {
  if (!o || o->native_code || o->kind == Kind::thread || o->kind == Kind::pooled) return true;
  if (o->kind == Kind::greenlet) {
    // A greenlet that runs has no frame to show.
    if (!o->greenlet_state) return false;
    PyObject* const f = greenlet_frame(const_cast<ProcessObject*>(o));
    if (f) defer_decref(f);
    return !f;
  }
  if (!o->body || !PyCoro_CheckExact(o->body) || !Py_IS_TYPE(cr_running, &PyGetSetDescr_Type))
    return false;
  const PyGetSetDef* const d = reinterpret_cast<PyGetSetDescrObject*>(cr_running)->d_getset;
  PyObject* const is = d->get(o->body, d->closure);
  const bool yes = is == Py_True;
  if (!is) PyErr_Clear();
  Py_XDECREF(is);
  return yes;
}

struct Sides final : runtime::WaitVisitor {
  std::vector<std::pair<const core::SyncObject*, bool>> at;
  bool others = false;
  void channel(const core::SyncObject& c, bool writing) override { at.emplace_back(&c, writing); }
  void barrier(const core::SyncObject&) override { others = true; }
  void end(const core::SyncObject&) override { others = true; }
};

Now by_verb(const char* verb) noexcept {
  struct Verb {
    const char* verb;
    Now now;
  };
  static constexpr Verb verbs[] = {
      {"read", reads},        {"write", writes}, {"extended read", reads},
      {"select", either},     {"sleep", timed},  {"tick", timed},
      {"wait for", children}, {"sync", barrier}, {"io call", io},
      {"blocking call", io},  {"await", io},     {"yield_", due}};
  for (const auto& [v, now] : verbs)
    if (std::strcmp(v, verb) == 0) return now;
  return children;  // the process is beginning or ending a run
}

// Returns what the process does at this moment. Puts the channels at which it waits into `sides`.
Now state_of(ProcessBase& p, Sides& sides) {
  sides.at.clear();
  sides.others = false;
  const runtime::OpKind* const op = p.operation();
  if (!op) return runs_now(process_object(&p)) ? runs : due;
  const Now now = by_verb(op->verb);
  if (now == timed || now == io || now == children) return now;
  // The thread of a component continues meanwhile, so its place is not examined.
  const ProcessObject* const o = process_object(&p);
  const bool afar = o && !o->native_code && o->kind != Kind::pooled && waits_afar(p, *op);
  if (!afar && is_woken(p)) return due;
  if (now == barrier) return now;
  if (op->undecided && !afar)
    op->undecided(p, sides);
  else if (op->visit)
    op->visit(p, sides);
  bool in = false, out = false;
  for (const auto& [place, writing] : sides.at) (writing ? out : in) = true;
  if (now == reads || now == writes) return now;
  if (in && out) return either;
  if (in) return reads;
  if (out) return writes;
  return sides.others ? children : timed;
}

struct Seen {
  // How many samples have found the process in each state since the last rows.
  std::array<std::uint32_t, kStates> found{};
  // The number of the last sample that found the process.
  std::uint64_t sample = 0;
  std::uint64_t rows = 0;  // the number of the last round whose rows contained the process
  std::int64_t since = 0;  // when the state began, as far as is known, in ns
  std::int64_t cpu = -1;   // CPU time of the process's thread at the time of the last rows, in ns
  // How many values had passed at the process's ends at the time of the last rows.
  std::uint64_t mark = 0;
  Now now = runs;
  bool before = true;  // whether the process has been in this state since it was first seen
};
struct Flow {
  std::uint64_t sample = 0;
  std::uint64_t round = 0;                        // the round to which `waits` and `line` belong
  std::uint64_t told = 0;                         // the last round that told the channel's figures
  unsigned long long transfers = 0, dropped = 0;  // the counts at the time of the last rows
  // In how many samples a process waited to read, and in how many to write.
  std::array<std::uint32_t, 2> waits{};
  // How many processes waited to read, and how many to write, at the last sample.
  std::array<std::uint32_t, 2> line{};
};

struct Look {
  std::unordered_map<std::uint32_t, Seen> seen;
  std::unordered_map<const core::SyncObject*, Flow> flows;
  std::uint64_t samples = 0, round = 1;
  std::uint32_t in_round = 0;
  std::uint64_t stride = 1;  // a sample examines one process out of this many, in turn
  std::uint32_t parts = 1;   // in how many parts the round begins and ends
  // The processes that the samples of the round have found busy, at time or at io. The bits are
  // those of the numbers, so two processes can share a bit.
  static constexpr std::size_t kBits = 1 << 14;
  std::bitset<kBits> weighty;

  // Returns the figures of a channel, for this round.
  Flow& flow(const core::SyncObject* place);
};

// The approximate largest numbers of processes that a sample, and a part of a round, examine. The
// limits keep each of them short, since other threads wait for the GIL during a sample or a part.
constexpr std::size_t kInASample = 10'000, kInAPart = 10'000;

constexpr const char* kLook = "weft look";
Look* look_in(PyObject* o) { return static_cast<Look*>(PyCapsule_GetPointer(o, kLook)); }

// Returns the processes whose number leaves this remainder when it is divided by `divisor`, and
// how many processes there are. The processes stay alive as long as the GIL is held.
struct Some {
  std::vector<ProcessBase*> list;
  std::size_t of = 0;
};
Some some(std::uint64_t divisor, std::uint64_t remainder) {
  Some s;
  for (PyRun* run : every_run())
    run->run.each_process([&](ProcessBase& p) {
      ++s.of;
      if (divisor == 1 || std::uint32_t(p.id) % divisor == remainder) s.list.push_back(&p);
    });
  return s;
}
std::vector<ProcessBase*> everybody() { return some(1, 0).list; }

const Engine& engine(const core::SyncObject* place) noexcept {
  return static_cast<const Engine&>(*place);
}

Flow& Look::flow(const core::SyncObject* place) {
  Flow& f = flows[place];
  if (f.round != round) {
    if (f.round == 0 || f.told + 1 < round) {
      f.transfers = engine(place).transfers();
      f.dropped = engine(place).dropped();
    }
    f.round = round;
    f.waits = f.line = {};
  }
  return f;
}
std::size_t bit_of(const ProcessBase& p) noexcept { return std::uint32_t(p.id) % Look::kBits; }

PyObject* f_new(PyObject*, PyObject*) {
  return PyCapsule_New(new Look, kLook, [](PyObject* o) {
    delete static_cast<Look*>(PyCapsule_GetPointer(o, kLook));
  });
}

// _look(look): takes one sample. Returns how many processes there are.
PyObject* f_look(PyObject*, PyObject* o) {
  Look* const look = look_in(o);
  if (!look) return nullptr;
  const OneMoment moment;
  const std::int64_t at = prim::now();
  ++look->samples;
  ++look->in_round;
  Sides sides;
  const Some sampled = some(look->stride, look->samples % look->stride);
  look->stride = sampled.of / kInASample + 1;
  for (ProcessBase* p : sampled.list) {
    const Now now = state_of(*p, sides);
    auto [it, fresh] = look->seen.try_emplace(std::uint32_t(p->id));
    Seen& s = it->second;
    if (fresh) {
      s.now = now;
      s.since = at;
      s.before = look->samples <= look->stride + 1;
    } else if (s.now != now) {
      s.now = now;
      s.since = at;
      s.before = false;
    }
    s.sample = look->samples;
    ++s.found[now];
    if (now == runs || now == timed || now == io) look->weighty.set(bit_of(*p));
    for (const auto& [place, writing] : sides.at) {
      Flow& f = look->flow(place);
      if (f.sample != look->samples) {
        f.sample = look->samples;
        f.line = {};
      }
      if (f.line[writing]++ == 0) ++f.waits[writing];
    }
  }
  return PyLong_FromSize_t(sampled.of);
}

// Calls f(channel, whether the end is a writer) for each open end that a process was given or has
// received.
template <class F>
void each_end(ProcessBase& p, F&& f) {
  each_end_held(
      p, [&](const EndObject*, const core::SyncObject* place, bool writes) { f(place, writes); });
  if (const ProcessObject* const o = process_object(&p))
    for (const EndObject* const e : received_by(o))
      if (e->state == EndState::open)
        f(static_cast<const core::SyncObject*>(&e->channel->core), Py_IS_TYPE(e, &WriterType) != 0);
}

pthread_t thread_of(const ThreadProcess& t, bool& known) noexcept {
  known = t.state != nullptr;
  return known ? static_cast<pthread_t>(t.state->thread_id) : pthread_t{};
}
std::int64_t cpu_of(const ProcessObject* o) noexcept {
  if (!o || o->kind != Kind::thread || !o->thread) return -1;
  bool known = false;
  const pthread_t thread = thread_of(*static_cast<const ThreadProcess*>(o->thread), known);
  clockid_t clock;
  timespec t{};
  if (!known || pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &t) != 0)
    return -1;
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// _look_parts(look): begins a round. Returns in how many parts the round begins and ends.
PyObject* f_parts(PyObject*, PyObject* o) {
  Look* const look = look_in(o);
  if (!look) return nullptr;
  const std::size_t count = some(2, 2).of;
  ++look->samples;
  look->in_round = 0;
  look->weighty.reset();
  look->stride = count / kInASample + 1;
  look->parts = static_cast<std::uint32_t>(count / kInAPart + 1);
  look->seen.reserve(count + count / 4);  // the table would otherwise grow within one part
  return PyLong_FromUnsignedLong(look->parts);
}
// Takes the arguments (look, part, a number). Returns null and raises if they are wrong.
Look* look_and_part(PyObject* args, unsigned& part, int& more) {
  PyObject* o;
  if (!PyArg_ParseTuple(args, "OI|p", &o, &part, &more)) return nullptr;
  return look_in(o);
}
// _look_base(look, part, anew): begins the round for the processes of a part. The next rows and
// channels describe what has happened since then. If `anew` is false, the values of the channels
// that the last round has told are counted from the end of that round.
PyObject* f_base(PyObject*, PyObject* args) {
  unsigned part = 0;
  int anew = 1;
  Look* const look = look_and_part(args, part, anew);
  if (!look) return nullptr;
  const OneMoment moment;
  const std::int64_t at = prim::now();
  Sides sides;
  for (ProcessBase* p : some(look->parts, part).list) {
    auto [it, fresh] = look->seen.try_emplace(std::uint32_t(p->id));
    Seen& s = it->second;
    if (fresh) {
      s.now = state_of(*p, sides);
      s.since = at;
      s.before = look->round == 1;
    }
    s.sample = look->samples;
    s.found = {};
    s.cpu = cpu_of(process_object(p));
    std::uint64_t mark = 0;
    each_end(*p, [&](const core::SyncObject* place, bool) {
      const Engine& c = engine(place);
      mark += c.transfers() + c.dropped();
      Flow& f = look->flow(place);
      if (!anew) return;
      f.transfers = c.transfers();
      f.dropped = c.dropped();
    });
    if (fresh) s.mark = mark;
  }
  Py_RETURN_NONE;
}

const char* kind_of(const ProcessObject* o) noexcept {
  if (!o) return "main";
  switch (o->kind) {
    case Kind::coroutine: return "coroutine";
    case Kind::thread: return "thread";
    case Kind::greenlet: return "greenlet";
    case Kind::apart: return "coroutine apart";
    case Kind::pooled: return "component";
  }
  return "";
}

// Returns at most `most` processes that had no row in this round. If that leaves out some, the
// processes that did more than wait for others come first.
std::vector<ProcessBase*> without_row(Look& look, std::size_t most) {
  std::vector<ProcessBase*> chosen;
  const auto all = everybody();
  const auto choose = [&](auto&& wanted) {
    for (ProcessBase* p : all) {
      if (chosen.size() >= most) return;
      if (!wanted(p)) continue;
      const auto it = look.seen.find(std::uint32_t(p->id));
      if (it == look.seen.end() || it->second.rows == look.round) continue;
      it->second.rows = look.round;
      chosen.push_back(p);
    }
  };
  if (all.size() > most) choose([&](ProcessBase* p) { return look.weighty.test(bit_of(*p)); });
  choose([](ProcessBase*) { return true; });
  return chosen;
}

// _look_rows(look, most): returns a row for each of at most `most` processes that had no row since
// the last _look_channels(). A row is (number, its parent's number, path, kind, state, ns in that
// state, whether it was in that state when it was first seen, what it does (doing()), samples by
// state, ns of CPU time since its last row or -1, the ends that it holds, the ends at which it
// waits); an end is (channel, whether it is a writer).
PyObject* f_rows(PyObject*, PyObject* args) {
  PyObject* o;
  Py_ssize_t most;
  if (!PyArg_ParseTuple(args, "On", &o, &most)) return nullptr;
  Look* const look = look_in(o);
  if (!look) return nullptr;
  const OneMoment moment;
  const std::int64_t at = prim::now();
  Owned list(PyList_New(0));
  Sides sides;
  for (ProcessBase* p :
       without_row(*look, static_cast<std::size_t>(std::max<Py_ssize_t>(most, 0)))) {
    Seen& s = look->seen.find(std::uint32_t(p->id))->second;
    const ProcessObject* const obj = process_object(p);
    Owned held(PyList_New(0)), waits(held ? PyList_New(0) : nullptr);
    std::uint64_t mark = 0;
    each_end(*p, [&](const core::SyncObject* place, bool writing) {
      mark += engine(place).transfers() + engine(place).dropped();
      if (held && waits)
        append(held, Py_BuildValue("NO", key_of(place), writing ? Py_True : Py_False));
      look->flow(place);
    });
    // A value has passed at the process's ends, so the process might have left this state and
    // returned to it.
    if (mark != s.mark) {
      s.since = at;
      s.before = false;
    }
    s.mark = mark;
    const Now now = state_of(*p, sides);
    const std::string does = doing(*p);
    for (const auto& [place, writing] : sides.at)
      if (waits) append(waits, Py_BuildValue("NO", key_of(place), writing ? Py_True : Py_False));
    Owned counts(waits ? PyTuple_New(kStates) : nullptr);
    for (int i = 0; counts && i < kStates; ++i)
      put(counts, i, PyLong_FromUnsignedLong(s.found[static_cast<std::size_t>(i)]));
    s.found = {};
    const std::int64_t cpu = cpu_of(obj);
    const long long used = cpu < 0 || s.cpu < 0 ? -1 : cpu - s.cpu;
    s.cpu = cpu;
    const std::uint32_t parent =
        p->group && p->group->owner() ? std::uint32_t(p->group->owner()->id) : 0u;
    if (!counts) return nullptr;
    append(list,
           Py_BuildValue("IIssiLOsNLNN", std::uint32_t(p->id), parent, runtime::path_of(*p).c_str(),
                         kind_of(obj), int(now), static_cast<long long>(at - s.since),
                         s.before ? Py_True : Py_False, does.c_str(), counts.release(), used,
                         held.release(), waits.release()));
  }
  return list.release();
}

// Returns the row of a channel, and counts its values anew from now on.
PyObject* row_of(Look& look, const core::SyncObject* place, Flow& f) {
  const Engine& c = engine(place);
  const auto [transfers, dropped, buffered] = figures_of(c);
  if (transfers < f.transfers) f.transfers = 0;  // another channel has this address now
  if (dropped < f.dropped) f.dropped = 0;
  // A sample that examines only some of the processes finds only some of those that wait.
  const auto now = f.sample == look.samples ? f.line : std::array<std::uint32_t, 2>{};
  ChannelObject* const channel = channel_of_core(c);
  PyObject* const row =
      Py_BuildValue("NKKKIIIIIK", to_str(channel_name(channel)), transfers - f.transfers,
                    dropped - f.dropped, buffered, c.ring ? c.ring->capacity : 0u, f.waits[0],
                    f.waits[1], now[0], now[1], reinterpret_cast<std::uintptr_t>(channel));
  f.transfers = transfers;
  f.dropped = dropped;
  return row;
}
// Drops the entries of a part of a table that are not needed any more.
template <class Table, class Dead>
void tidy(Table& table, std::size_t part, std::size_t parts, Dead&& dead) {
  std::vector<typename Table::key_type> gone;
  const std::size_t n = table.bucket_count();
  for (std::size_t i = part * n / parts; i < (part + 1) * n / parts; ++i)
    for (auto it = table.begin(i); it != table.end(i); ++it)
      if (dead(it->second)) gone.push_back(it->first);
  for (const auto& key : gone) table.erase(key);
}
// _look_channels(look, part): returns ({channel: (name, values passed since the last time, values
// dropped, values in the buffer, capacity, samples in which a process waited to read, to write, how
// many wait to read now, to write, id() of the channel)}, how many samples there were) for the
// channels of the part's processes that no part before has told. The last part ends the round.
PyObject* f_channels(PyObject*, PyObject* args) {
  unsigned part = 0;
  int unused = 0;
  Look* const look = look_and_part(args, part, unused);
  if (!look) return nullptr;
  const OneMoment moment;
  Owned by_key(PyDict_New());
  bool failed = !by_key;
  // Only a channel at which a living process waits, or of which a living process holds an end, is
  // certain to exist.
  const auto tell = [&](const core::SyncObject* place) {
    Flow& f = look->flow(place);
    if (failed || f.told == look->round) return;
    f.told = look->round;
    const Owned row(row_of(*look, place, f)), key(row ? key_of(place) : nullptr);
    failed = !key || PyDict_SetItem(by_key.get(), key.get(), row.get()) < 0;
  };
  Sides sides;
  for (ProcessBase* p : some(look->parts, part).list) {
    each_end(*p, [&](const core::SyncObject* place, bool) { tell(place); });
    state_of(*p, sides);
    for (const auto& [place, writing] : sides.at) tell(place);
  }
  if (failed) return nullptr;
  tidy(look->flows, part, look->parts,
       [&](const Flow& f) { return f.told + 1 < look->round && f.round < look->round; });
  tidy(look->seen, part, look->parts,
       [&](const Seen& s) { return s.sample + look->stride <= look->samples; });
  const std::uint32_t samples = look->in_round;
  if (part + 1 == look->parts) ++look->round;
  return Py_BuildValue("NI", by_key.release(), samples);
}

PyMethodDef look_functions[] = {{"_look_new", gated<f_new>, METH_NOARGS, nullptr},
                                {"_look_parts", gated<f_parts>, METH_O, nullptr},
                                {"_look_base", gated<f_base>, METH_VARARGS, nullptr},
                                {"_look", gated<f_look>, METH_O, nullptr},
                                {"_look_rows", gated<f_rows>, METH_VARARGS, nullptr},
                                {"_look_channels", gated<f_channels>, METH_VARARGS, nullptr},
                                {}};

struct PlaceNames final : runtime::WaitVisitor {
  std::string all;
  std::size_t count = 0;
  void add(const core::SyncObject& c, const char* more = "") {
    if (count++ < 8) all.append(count > 1 ? ", " : " ").append(runtime::name_of(c)).append(more);
  }
  void channel(const core::SyncObject& c, bool) override { add(c); }
  void barrier(const core::SyncObject& c) override { add(c); }
  void end(const core::SyncObject& c) override { add(c); }
  void ended(const core::SyncObject& c, std::uint32_t) override { add(c, " (ended)"); }
};

}  // namespace

std::string doing(ProcessBase& p) {
  const runtime::OpKind* const op = p.operation();
  if (!op) {
    const std::string at = where_running(p);
    return at.empty() ? "running" : "running at " + at;
  }
  const bool collects = PyGC_Disable();  // as in begin_report(): no finaliser must run meanwhile
  locate(p);
  if (collects) PyGC_Enable();
  const bool of_children = !op->visit && by_verb(op->verb) == children;
  PlaceNames names;
  if (op->visit) op->visit(p, names);
  return (of_children ? "waits for its processes" : op->verb + names.all) + " at " +
         runtime::where(p);
}

int init_look(PyObject* m) {
  cr_running = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyCoro_Type), "cr_running");
  return cr_running ? PyModule_AddFunctions(m, look_functions) : -1;
}

}  // namespace weft::py
