// Turns outcomes of the core into Python exceptions, which name process, operation and channel.
#include "interpreter/errors.hpp"

#include <cstdarg>
#include <cstring>
#include <iterator>
#include <string_view>

#include "choice/barrier.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/misuse.hpp"
#include "processes/process.hpp"
#include "weft/runtime/limit.hpp"
#include "wire/wire.hpp"

namespace weft::py {

Errors errors;

namespace {

// The names of the attributes of a ChannelEnd. They are interned, so that the interpreter finds
// them quickly in its cache.
struct {
  PyObject *channel, *guard, *in_doubt, *met, *strength, *value;
} names;

// Makes a ChannelEnd without calling its __init__ (errors.py), which would take four times as long;
// processes commonly end by a ChannelEnd. raise_end() sets the same attributes as __init__.
PyObject* new_end(PyObject* type, PyObject* text) {
  const Owned args(text ? PyTuple_Pack(1, text) : nullptr);
  auto* const t = reinterpret_cast<PyTypeObject*>(type);
  return args ? t->tp_new(t, args.get(), nullptr) : nullptr;
}
bool set(const Owned<>& e, PyObject* name, const Owned<>& value) {
  return value && PyObject_SetAttr(e.get(), name, value.get()) == 0;
}

}  // namespace

int import_errors() {
  const Owned m(PyImport_ImportModule("weft.errors"));
  if (!m) return -1;
  const struct {
    const char* name;
    PyObject** to;
  } wanted[] = {{"ChannelEnd", &errors.ChannelEnd},  {"Retired", &errors.Retired},
                {"Poisoned", &errors.Poisoned},      {"PeerDied", &errors.PeerDied},
                {"Cancelled", &errors.Cancelled},    {"BadUse", &errors.BadUse},
                {"Deadlock", &errors.Deadlock},      {"_several", &errors.several},
                {"BlockedProcess", &errors.Blocked}, {"Ended", &errors.Ended},
                {"NoResult", &errors.NoResult}};
  for (const auto& w : wanted) {
    *w.to = PyObject_GetAttrString(m.get(), w.name);
    if (!*w.to) return -1;
  }
  const std::pair<PyObject**, const char*> texts[] = {
      {&names.channel, "channel"}, {&names.guard, "guard"},       {&names.in_doubt, "in_doubt"},
      {&names.met, "met"},         {&names.strength, "strength"}, {&names.value, "value"}};
  for (const auto& [to, text] : texts)
    if (!(*to = PyUnicode_InternFromString(text))) return -1;
  return 0;
}

PyObject* to_str(const std::string& s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
}

std::string channel_name(ChannelObject* c) { return runtime::name_of(c->core); }

// Returns the format without reprs, for use when a `__repr__` has raised. The `__repr__` of a
// deeply nested list raises, for example.
static std::string without_reprs(std::string format) {
  // "%.0s" skips the object, so that nothing else of the object is shown.
  constexpr std::string_view kInstead = "an object whose repr() fails%.0s";
  for (std::size_t at = 0; (at = format.find("%R", at)) != std::string::npos; at += kInstead.size())
    format.replace(at, 2, kInstead);
  return format;
}

PyObject* bad_use(const char* format, ...) {
  va_list va;
  va_start(va, format);
  Owned what(PyUnicode_FromFormatV(format, va));
  va_end(va);
  if (!what && PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
    const std::string other = without_reprs(format);
    va_start(va, format);
    what.reset(PyUnicode_FromFormatV(other.c_str(), va));
    va_end(va);
  }
  if (!what) return nullptr;
  if (const ProcessBase* p = this_process()) {
    const Owned where(to_str(runtime::path_of(*p)));
    what.reset(where ? PyUnicode_FromFormat("%U: %U", where.get(), what.get()) : nullptr);
  }
  if (what) PyErr_SetObject(errors.BadUse, what.get());
  return nullptr;
}

void bad_use_of_cpp(const std::string& message) noexcept {
  if (const Owned text(to_str(message)); text) PyErr_SetObject(errors.BadUse, text.get());
}

bool whole_number(PyObject* o, const char* what, const char* range, Py_ssize_t least,
                  Py_ssize_t most, Py_ssize_t& to) {
  if (!PyIndex_Check(o)) {
    PyErr_Format(PyExc_TypeError, "%s must be a whole number, not %.100s", what,
                 Py_TYPE(o)->tp_name);
    return false;
  }
  to = PyNumber_AsSsize_t(o, nullptr);  // a number that is out of range becomes the nearest one
  if (to == -1 && PyErr_Occurred()) return false;
  if (to >= least && to <= most) return true;
  bad_use("%s must be %s, not %R", what, range, o);
  return false;
}

PyObject* no_copy(PyObject* o, PyObject*) {
  if (Py_IS_TYPE(o, &ProcessType))
    return bad_use(
        "%R: a process can be neither copied nor pickled: call its function again; for another OS "
        "process worker.on('processes')(...), which takes the ends in its arguments there",
        o);
  const char* again = "for another make Barrier(parties)";
  const char* it = "it";
  if (is_end(o)) {
    again = is_reader(o) ? "for another one end.channel.reader()"
                         : "for another one end.channel.writer()";
  } else if (!Py_IS_TYPE(o, &BarrierType)) {
    again = "for another make Channel()";
    it = "an end of it, reader() or writer(),";
  }
  return bad_use(
      "%R: by itself it can be neither copied nor pickled: %s. To another OS process %s goes as an "
      "argument of a process that runs there (from weft.processes import process, or "
      "worker.on('processes')(...)), or in a value on a channel; multiprocessing, "
      "concurrent.futures and joblib cannot take it",
      o, again, it);
}

PyObject* raise_closed(EndObject* e, const char* verb) {
  const char* side = is_reader(reinterpret_cast<PyObject*>(e)) ? "reader" : "writer";
  const Owned name(to_str(channel_name(e->channel)));
  if (!name) return nullptr;
  switch (e->state) {
    case EndState::open:
      bad_use(
          "%s on channel %U: the channel was made before a fork, and this is the child: make "
          "channels in the process that uses them",
          verb, name.get());
      break;
    case EndState::retired:
      bad_use(
          "%s on channel %U: this %s end is closed: it was retired; make another with channel.%s()",
          verb, name.get(), side, side);
      break;
    case EndState::let_go:
      bad_use(
          "%s on channel %U: this %s end is closed: the last process that held it has finished; "
          "make another with channel.%s()",
          verb, name.get(), side, side);
      break;
    case EndState::sent:
      bad_use(
          "%s on channel %U: this %s end is closed: it was sent away, over a channel or to another "
          "OS process; make another with "
          "channel.%s()",
          verb, name.get(), side, side);
      break;
    case EndState::died:
      bad_use(
          "%s on channel %U: this %s end is closed: it was declared dead; make another with "
          "channel.%s()",
          verb, name.get(), side, side);
      break;
  }
  return nullptr;
}

PyObject* raise_barrier_died(const char* verb, int guard) {
  const ProcessBase* p = this_process();
  const Owned text(to_str((p ? runtime::path_of(*p) + ": " : std::string()) + verb +
                          " at a barrier: an OS process that had it, or has made it, has died"));
  const Owned index(guard < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(guard));
  if (text && index) {
    PyObject* const args[] = {text.get(), Py_None, index.get()};
    const Owned e(PyObject_Vectorcall(errors.PeerDied, args, std::size(args), nullptr));
    if (e) PyErr_SetObject(errors.PeerDied, e.get());
  }
  return nullptr;
}

static bool set_by_status(const Owned<>& e, Status s, ChannelObject* c) {
  if (s == Status::poisoned)
    return set(e, names.strength, Owned(PyLong_FromLong(c->core.poison_strength())));
  return s != Status::in_doubt || set(e, names.in_doubt, new_ref(Py_True));
}

static PyObject* type_of_end(Status s) noexcept {
  if (s == Status::poisoned) return errors.Poisoned;
  return is_end(s) && s != Status::retired ? errors.PeerDied : errors.Retired;
}

static const char* why_ended(Status s, const char* verb) noexcept {
  if (s == Status::poisoned) return ": it was poisoned";
  if (s == Status::in_doubt) return ": the other side died; the value may have been taken";
  if (s == Status::died) return ": the other side died";
  return verb[std::strlen(verb) - 1] == ')'
             ? ": one of its sides has retired, so the channel has ended: make its ends before"
             : ": the other side has retired";
}

PyObject* raise_end(Status s, ChannelObject* c, const char* verb, int guard, PyObject* value,
                    bool met) {
  if (is_far_barrier(c)) {
    const char* const what = guard < 0 ? "sync" : verb;
    if (s != Status::retired) return raise_barrier_died(what, guard);
    return bad_use("%s on a barrier with nobody enrolled: make it with parties, or enrol() first",
                   what);
  }
  const ProcessBase* p = this_process();
  PyObject* const type = type_of_end(s);
  const Owned text(to_str((p ? runtime::path_of(*p) + ": " : std::string()) + verb +
                          " on channel " + channel_name(c) + why_ended(s, verb)));
  const Owned e(new_end(type, text.get()));
  if (e && set(e, names.channel, new_ref(reinterpret_cast<PyObject*>(c))) &&
      set(e, names.met, new_ref(met ? Py_True : Py_False)) &&
      (guard < 0 || set(e, names.guard, Owned(PyLong_FromLong(guard)))) &&
      (!value || value == Py_None || set(e, names.value, new_ref(value))) && set_by_status(e, s, c))
    PyErr_SetObject(type, e.get());
  return nullptr;
}

// Called with an exception set, which user code has raised while a value was packed or unpacked. If
// the caller of the operation would take that exception for the end of a loop or of a channel,
// BadUse replaces it.
void only_failed(ChannelObject* c, const char* verb, const char* done) noexcept {
  for (PyObject* const means_more :
       {PyExc_StopIteration, PyExc_StopAsyncIteration, PyExc_GeneratorExit, errors.ChannelEnd}) {
    if (!PyErr_ExceptionMatches(means_more)) continue;
    Owned cause(take_exception());
    if (bad_use("%s on channel %s: the value cannot be %s, because that raises %.100s", verb,
                channel_name(c).c_str(), done, Py_TYPE(cause.get())->tp_name);
        PyObject* const e = take_exception()) {
      PyException_SetCause(e, cause.release());
      restore_exception(e);
    }
    return;
  }
}

bool is_met(PyObject* end) {
  const Owned met(PyObject_GetAttr(end, names.met));
  if (!met) PyErr_Clear();
  return met == Py_True;
}

// Replaces the text of the exception, which asyncio has raised. The type stays the same, for code
// that catches the exception.
void explain_no_loop(PyObject* failure) noexcept {
  if (!Py_IS_TYPE(failure, reinterpret_cast<PyTypeObject*>(PyExc_RuntimeError))) return;
  const Owned args(PyObject_GetAttrString(failure, "args"));
  PyObject* text = args && PyTuple_Check(args.get()) && PyTuple_GET_SIZE(args.get()) == 1
                       ? PyTuple_GET_ITEM(args.get(), 0)
                       : nullptr;
  if (text && PyUnicode_Check(text) &&
      PyUnicode_CompareWithASCIIString(text, "no running event loop") == 0) {
    const Owned more(
        Py_BuildValue("(s)",
                      "no running event loop: asyncio's functions work in an `async def` process "
                      "whose network runs inside an asyncio loop: "
                      "run(..., host=\"asyncio\"), or `await Parallel(...)` in a task"));
    if (more) PyObject_SetAttrString(failure, "args", more.get());
  }
  PyErr_Clear();
}

PyObject* take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) return nullptr;
  if (!value || reinterpret_cast<PyObject*>(Py_TYPE(value)) != type)
    PyErr_NormalizeException(&type, &value, &trace);
  const Owned its_type(type), its_trace(trace);
  if (trace) PyException_SetTraceback(value, trace);
  return value;
#endif
}

void restore_exception(PyObject* e) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(e);
#else
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(e))), e, PyException_GetTraceback(e));
#endif
}

}  // namespace weft::py
