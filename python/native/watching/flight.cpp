// The flight recorder of the program. flight.hpp has the invariants.
#include "watching/flight.hpp"

#include <memory>
#include <string>

#include "channels/channel.hpp"
#include "choice/barrier.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "processes/run.hpp"
#include "rounds/runs.hpp"
#include "watching/observe.hpp"
#include "weft/runtime/flight.hpp"
#include "weft/runtime/names.hpp"

namespace weft::py {

namespace {

namespace form = runtime::flight;
using form::Known;
using form::Op;
using form::Outcome;

struct Recorder {
  form::Ring ring;
  form::Lane lane;
  form::Moment began;
  explicit Recorder(std::size_t size) : ring(size), lane(ring) {}
};
std::unique_ptr<Recorder> recorder;
PyObject* on_failure = nullptr;  // the function that is called when an outermost run raises

// Returns the name of a thread that is not a process. The function runs Python code, so it is
// called before the lane is changed.
const std::string& name_of_thread() noexcept {
  static thread_local std::string name;
  if (!name.empty()) return name;
  const SavedException kept;
  name = "thread";
  const Owned threading(PyImport_ImportModule("threading"));
  const Owned now(threading ? PyObject_CallMethod(threading.get(), "current_thread", nullptr)
                            : nullptr);
  const Owned text(now ? PyObject_GetAttrString(now.get(), "name") : nullptr);
  if (const char* const s =
          text && PyUnicode_Check(text.get()) ? PyUnicode_AsUTF8(text.get()) : nullptr)
    name = s;
  PyErr_Clear();
  return name;
}

[[gnu::always_inline]] inline Known& the_process(ProcessBase& b) {
  return recorder->lane.process(std::uint32_t(b.id), [&] { return runtime::path_of(b); });
}
Known* the_thread();
// Returns the entry of `b`, the process that runs here, or of this thread; null if nothing is to be
// recorded.
[[gnu::always_inline]] inline Known* the_running(ProcessBase* b) {
  if (b && (coroutine_of(b) || process_object(b))) [[likely]]
    return &the_process(*b);
  return the_thread();
}
[[gnu::noinline]] Known* the_thread() {
  const std::string& name = name_of_thread();
  if (!recorder) return nullptr;
  recorder->lane.room();
  const auto id = static_cast<std::int64_t>(PyThread_get_thread_ident() & 0x7FFFFFFFFFFFFFFF);
  return &recorder->lane.process(-id, [&]() -> const std::string& { return name; });
}

// When the last process parked, and which process its scheduler runs next. When that process goes
// on, no time has passed, so its event needs no reading of the clock.
struct GoneOn {
  std::uint64_t time = 0;
  const core::Waker* next = nullptr;  // null if it is not known
} gone_on;
std::uint64_t time_of(const Known& me, const ProcessBase* b) noexcept {
  const core::Waker* const next = std::exchange(gone_on.next, nullptr);
  return next && me.op != Known::kIdle && next == b ? gone_on.time : form::Clock::now();
}

// Returns a place's name as it is in Python code, without quotes.
std::string plain_name(const core::SyncObject& place) {
  return place.line || !place.name ? runtime::name_of(place) : place.name;
}
// Returns a number that distinguishes a place from an earlier one at its address, whose name might
// have had the same address too.
const void* identity(PyObject* name, const core::SyncObject& place) noexcept {
  // A string keeps its hash once the hash has been computed.
  Py_hash_t hash = PyUnicode_CheckExact(name) ? reinterpret_cast<PyASCIIObject*>(name)->hash : -1;
  if (hash == -1) hash = PyObject_Hash(name);
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(hash) + place.line + 1);
}
[[gnu::always_inline]] inline Known& the_channel(EndObject* end) {
  ChannelObject* const c = end->channel;
  const std::uint64_t drops = c->core.dropped() ? form::kDrops : 0;
  return recorder->lane.place(&c->core, identity(c->name, c->core), drops,
                              [&] { return plain_name(c->core); });
}
[[gnu::always_inline]] inline Known* the_place(PyObject* target) {
  if (!target) return nullptr;
  if (is_end(target)) return &the_channel(reinterpret_cast<EndObject*>(target));
  if (Py_IS_TYPE(target, &BarrierType)) {
    auto* const b = reinterpret_cast<BarrierObject*>(target);
    return &recorder->lane.place(&b->core, identity(b->name, b->core), form::kBarrier,
                                 [&] { return plain_name(b->core); });
  }
  return nullptr;
}

// The verb is nearly always one of a few literals, which are found by their addresses.
Op op_of_verb(const char* verb) noexcept {
  struct Verb {
    const char* verb = nullptr;
    Op op = Op::other;
  };
  static Verb known[64];
  Verb& here = known[(reinterpret_cast<std::uintptr_t>(verb) * 0x9E3779B97F4A7C15u) >> 58];
  if (here.verb == verb) [[likely]]
    return here.op;
  static constexpr std::pair<const char*, Op> kinds[] = {
      {"read", Op::read},           {"write", Op::write},  {"extended read", Op::extended},
      {"select", Op::select_other}, {"sync", Op::sync},    {"sleep", Op::sleep},
      {"tick", Op::tick},           {"yield_", Op::yield}, {"wait for", Op::wait_for}};
  here = {verb, Op::other};
  for (const auto& [name, op] : kinds)
    if (std::strcmp(name, verb) == 0) here.op = op;
  return here.op;
}

// Tests an exception by the name of its type, as a trace does.
bool is(PyObject* exception, const char* name) noexcept {
  return exception && std::strcmp(Py_TYPE(exception)->tp_name, name) == 0;
}

}  // namespace

bool flight_is_on = false;
bool flight_is_alone = false;

void flight_parks() noexcept {
  recorder->lane.room();
  const runtime::Context* const c = runtime::this_context;
  ProcessBase* const b = c ? c->running : nullptr;
  Known* const me = the_running(b);
  if (!me || me->hidden) return;
  me->since = form::Clock::now();
  me->op = 0;
  gone_on = {me->since, nullptr};
  if (!b || !coroutine_of(b) || !c->executor) return;
  // Between two steps the scheduler of a guest returns to its host's loop, which can take any
  // amount of time.
  const auto* const here = static_cast<const runtime::Scheduler*>(c->executor);
  if (!here->host()) gone_on.next = here->next_ready();
}

void flight_commits(bool writes, EndObject* end) noexcept {
  recorder->lane.room();
  ProcessBase* const b = this_process();
  Known* const me = the_running(b);
  if (!me || me->hidden) return;
  const std::uint64_t now = time_of(*me, b);
  recorder->lane.over(now, *me, writes ? Op::write : Op::read, Outcome::commit, &the_channel(end),
                      0, false);
}

void flight_over(const char* verb, PyObject* target, PyObject* result, PyObject* left) noexcept {
  recorder->lane.room();
  ProcessBase* const b = this_process();
  Known* const me = the_running(b);
  if (!me || me->hidden) return;
  const std::uint64_t now = time_of(*me, b);
  Op op = op_of_verb(verb);
  Known* place = nullptr;
  std::uint64_t more = 0;
  bool has_more = false;
  Outcome outcome = Outcome::commit;
  if (op == Op::select_other) {
    has_more = true;  // In this case the guard's index plus one follows.
    PyObject* const i = result && PyTuple_Check(result) && PyTuple_GET_SIZE(result)
                            ? PyTuple_GET_ITEM(result, 0)
                            : nullptr;
    const Py_ssize_t guard = i && PyLong_CheckExact(i) ? PyLong_AsSsize_t(i) : -1;
    if (guard >= 0) more = static_cast<std::uint64_t>(guard) + 1;
    if (guard >= 0 && target && PyTuple_Check(target) && guard < PyTuple_GET_SIZE(target)) {
      PyObject* const end = PyTuple_GET_ITEM(PyTuple_GET_ITEM(target, guard), 1);
      place = the_place(end);
      if (is_reader(end)) op = Op::select_input;
      if (is_writer(end)) op = Op::select_output;
    }
  } else {
    place = the_place(target);
  }
  if (!result) {
    outcome = is(left, "Cancelled") ? Outcome::withdrawn : Outcome::ended;
    if (outcome == Outcome::ended) {
      const form::Why why = is(left, "Poisoned")   ? form::Why::poisoned
                            : is(left, "PeerDied") ? form::Why::peer_died
                            : is(left, "BadUse")   ? form::Why::bad_use
                                                   : form::Why::retired;
      more =
          has_more ? more * 4 + static_cast<std::uint64_t>(why) : static_cast<std::uint64_t>(why);
      has_more = true;
    }
  }
  if (op == Op::other) recorder->lane.other(verb);
  recorder->lane.over(now, *me, op, outcome, place, more, has_more);
}

void flight_starts(ProcessObject* p) noexcept {
  recorder->lane.room();
  recorder->lane.start(form::Clock::now(), the_process(base_of(p)));
}

void flight_ends(ProcessObject* p, PyObject* left) noexcept {
  std::string why;
  auto how = static_cast<std::uint8_t>(Ending::returned);
  if (left) {
    how = static_cast<std::uint8_t>(is(left, "Cancelled")  ? Ending::cancelled
                                    : is(left, "Poisoned") ? Ending::poisoned
                                    : is(left, "Retired")  ? Ending::retired
                                                           : Ending::failed);
    if (how == static_cast<std::uint8_t>(Ending::failed)) {
      const Owned text(PyObject_Str(left));
      const char* const s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
      why = std::string(Py_TYPE(left)->tp_name) + (s && *s ? std::string(": ") + s : std::string());
      PyErr_Clear();
    }
  }
  if (!recorder) return;  // str() has run Python code, which might have stopped the recorder
  recorder->lane.room();
  recorder->lane.end(form::Clock::now(), the_process(base_of(p)), how, why);
}

void flight_failed() noexcept {
  if (!recorder || !on_failure) return;
  const SavedException kept;
  const Owned f = new_ref(on_failure);
  const OutsideGate beyond;
  const Owned<> r(PyObject_CallNoArgs(f.get()));
  if (!r) PyErr_WriteUnraisable(f.get());
}

void forget_flight() noexcept {
  flight_is_on = flight_is_alone = false;
  gone_on = {};
  recorder.reset();
}

namespace {

// _flight_on(bytes): starts the recorder, with a ring of `bytes` bytes.
PyObject* f_on(PyObject*, PyObject* o) {
  const std::size_t size = PyLong_AsSize_t(o);
  if (size == static_cast<std::size_t>(-1) && PyErr_Occurred()) return nullptr;
  try {
    recorder = std::make_unique<Recorder>(size);
    flight_is_on = true;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  observe_more();
  Py_RETURN_NONE;
}
PyObject* f_off(PyObject*, PyObject*) {
  forget_flight();
  observe_more();
  Py_RETURN_NONE;
}
// Records the processes that wait now, at the end of the ring.
void record_waits() {
  const std::uint64_t now = form::Clock::now();
  for (PyRun* run : every_run())
    run->run.each_process([&](ProcessBase& b) {
      const runtime::OpKind* const kind = b.operation();
      if (!kind || !process_object(&b)) return;
      recorder->lane.room();
      Known& me = the_process(b);
      if (me.op == Known::kIdle || me.hidden) return;
      struct Places final : runtime::WaitVisitor {
        const core::SyncObject* first = nullptr;
        bool writes = false, barrier_ = false;
        int count = 0;
        void channel(const core::SyncObject& c, bool writing) override {
          if (!count++) first = &c, writes = writing;
        }
        void barrier(const core::SyncObject& c) override {
          if (!count++) first = &c, barrier_ = true;
        }
        void end(const core::SyncObject&) override { ++count; }
      } places;
      if (kind->visit) kind->visit(b, places);
      Op op = op_of_verb(kind->verb);
      Known* place = nullptr;
      if (places.first && places.count == 1 && !places.barrier_) {
        const Engine& core = static_cast<const Engine&>(*places.first);
        place = &recorder->lane.place(&core, nullptr, 0, [&] { return plain_name(core); });
        if (op == Op::select_other) op = places.writes ? Op::select_output : Op::select_input;
      }
      if (op == Op::other) recorder->lane.other(kind->verb);
      recorder->lane.waits(now, me, op, place, now - me.since);
    });
}
// _flight_write(fd, program): writes the file. Raises OSError.
PyObject* f_write(PyObject*, PyObject* args) {
  int fd;
  const char* program;
  if (!PyArg_ParseTuple(args, "is", &fd, &program)) return nullptr;
  if (!recorder) return PyErr_Format(PyExc_RuntimeError, "the recorder is off");
  record_waits();
  if (const int error = form::write_file(fd, recorder->ring, recorder->began, program)) {
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  Py_RETURN_NONE;
}
// _flight_hide(on): sets whether the operations of the calling process are Weft's own work, which
// is not recorded.
PyObject* f_hide(PyObject*, PyObject* on) {
  if (!recorder) Py_RETURN_NONE;
  const bool hides = PyObject_IsTrue(on) == 1;
  recorder->lane.room();
  if (Known* const me = the_running(this_process()))
    me->hidden = hides ? me->hidden + 1 : me->hidden - (me->hidden > 0);
  Py_RETURN_NONE;
}
PyObject* f_away(PyObject*, PyObject* where) {
  const char* const text = PyUnicode_AsUTF8(where);
  if (!text) return nullptr;
  if (!recorder) Py_RETURN_NONE;
  recorder->lane.room();
  if (Known* const me = the_running(this_process()))
    recorder->lane.away(form::Clock::now(), *me, text);
  Py_RETURN_NONE;
}

PyMethodDef flight_functions[] = {
    {"_flight_on", gated<f_on>, METH_O, nullptr},
    {"_flight_off", gated<f_off>, METH_NOARGS, nullptr},
    {"_flight_write", gated<f_write>, METH_VARARGS, nullptr},
    {"_flight_hide", gated<f_hide>, METH_O, nullptr},
    {"_flight_away", gated<f_away>, METH_O, nullptr},
    {"_flight_on_failure", gated<keep_given<&on_failure>>, METH_VARARGS, nullptr},
    {}};

}  // namespace

int init_flight(PyObject* m) { return PyModule_AddFunctions(m, flight_functions); }

}  // namespace weft::py
