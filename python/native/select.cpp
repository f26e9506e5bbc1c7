// select and Alternative as Python sees them; sleep and Timer.tick are choices with one timer.
//
//   fresh ──awaited: Choice::begin()──► chosen ──► done
//     │                └─► waiting ──resumed: woken()──► chosen ──► done │ held ──resumed──► done
//     └──collected: RuntimeWarning
#include <algorithm>

#include "asyncio.hpp"
#include "awaiting.hpp"
#include "choice.hpp"
#include "observe.hpp"

namespace weft::py {

namespace {

enum class Purpose : std::uint8_t { select, sleep, tick, end };
enum class SelectState : std::uint8_t { fresh, waiting, deciding, held, done };

struct AlternativeObject {
  PyObject_HEAD Choice* choice;  // null: closed
  bool busy;
};

struct SelectOpObject {
  PyObject_HEAD Choice* choice;    // owned, unless of an alternative
  AlternativeObject* alternative;  // owned reference, or null
  ProcessObject* process;          // while waiting; null in an asyncio task
  Party* party;                    // while waiting in an asyncio task; owned
  PyObject* alarm;                 // the loop's timer for it
  Purpose purpose;
  SelectState state;
  bool occupies;  // its alternative
};

AlternativeObject* alt_of(PyObject* o) noexcept { return reinterpret_cast<AlternativeObject*>(o); }
SelectOpObject* sel(PyObject* o) noexcept { return reinterpret_cast<SelectOpObject*>(o); }

// --- kinds of waiting -------------------------------------------------------------------------------------------------------------------

bool withdraw_select(ProcessBase& p) noexcept { return static_cast<Choice*>(p.place)->withdraw(); }
void visit_select(ProcessBase& p, runtime::Places& v) { static_cast<Choice*>(p.place)->visit(v); }
bool withdraw_never(ProcessBase&) noexcept { return false; }
constexpr runtime::OpKind select_op{"select", &withdraw_select, &visit_select};
constexpr runtime::OpKind sleep_op{"sleep", &withdraw_select, &visit_select};
constexpr runtime::OpKind tick_op{"tick", &withdraw_select, &visit_select};
constexpr runtime::OpKind end_op{"wait for", &withdraw_select, &visit_select};
constexpr runtime::OpKind held_op{"select", &withdraw_never, &visit_select};

const runtime::OpKind* kind_of(Purpose p) noexcept {
  constexpr const runtime::OpKind* kinds[] = {&select_op, &sleep_op, &tick_op, &end_op};
  return kinds[static_cast<int>(p)];
}

// `value`: owned; null: an exception is set.
PyObject* outcome(Choice& c, Purpose purpose, int index, PyObject* value) {
  if (!value) return nullptr;
  if (purpose == Purpose::select) {
    PyObject* i = PyLong_FromLong(index);
    PyObject* r = i ? PyTuple_New(2) : nullptr;
    if (!r) {
      Py_XDECREF(i);
      Py_DECREF(value);
      return nullptr;
    }
    PyTuple_SET_ITEM(r, 0, i);
    PyTuple_SET_ITEM(r, 1, value);
    return r;
  }
  if (purpose == Purpose::sleep || purpose == Purpose::end) return value;
  Py_DECREF(value);
  return PyLong_FromLongLong(c.ticks);
}

// --- in a coroutine process -------------------------------------------------------------------------------------------------------------

PySendResult park(SelectOpObject* o, ProcessObject* p, const runtime::OpKind* kind, SelectState state, PyObject** r) {
  await_in(p, reinterpret_cast<PyObject*>(o), kind);
  p->base.place = o->choice;
  o->process = p;
  o->state = state;
  *r = Py_NewRef(Py_None);
  return PYGEN_NEXT;
}

void silence(SelectOpObject* o) noexcept {
  PyObject* h = std::exchange(o->alarm, nullptr);
  if (!h) return;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  PyObject* r = undisturbed([&] { return PyObject_CallMethod(h, "cancel", nullptr); });
  Py_XDECREF(r);
  Py_DECREF(h);
  PyErr_Restore(t, v, tb);
}

void finish(SelectOpObject* o) noexcept {
  o->state = SelectState::done;
  o->process = nullptr;
  delete std::exchange(o->party, nullptr);
  silence(o);
  if (std::exchange(o->occupies, false)) o->alternative->busy = false;
}

PySendResult conclude(SelectOpObject* o, ProcessObject* p, int index, PyObject** r) {
  *r = nullptr;
  PyObject* value = nullptr;
  // A computed output runs code of the user: the choice is this operation's until it is over.
  o->state = SelectState::deciding;
  p->base.op = &held_op;  // and the process does nothing else meanwhile
  p->base.place = o->choice;
  const int s = o->choice->settle_guard(index, p->base, &value);
  p->base.op = nullptr;
  if (s == 0) return park(o, p, &held_op, SelectState::held, r);
  finish(o);
  if (s < 0) return PYGEN_ERROR;
  *r = outcome(*o->choice, o->purpose, index, value);
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

const char* verb_of(Purpose p) noexcept { return kind_of(p)->verb; }

SelectMemory* memory_of(ProcessObject* p) {
  if (!p) {
    static thread_local SelectMemory plain;  // of a thread that is no process
    return &plain;
  }
  if (!p->rare) p->rare = new Rare;
  return &p->rare->selects;
}

// It was left, and a partner held what it had chosen: that is over.
void end_late(PyObject* o, ProcessBase&) noexcept {
  sel(o)->choice->give_up();
  finish(sel(o));
}
// The same of one whose value had been made, and delivered.
void end_delivered(PyObject* o, ProcessBase&) noexcept { finish(sel(o)); }

// It is collected while a partner has its choice: that stays, and an Alternative with it.
void leave_choice(SelectOpObject* o) noexcept {
  o->choice = nullptr;
  o->alternative = nullptr;
}

void abandon(SelectOpObject* o, bool withdrawn = false) noexcept {
  if (Party* const p = withdrawn ? nullptr : o->party) {
    const Section section(p->link);
    let_waiting_task_go_on(p);
    const bool parked = o->state == SelectState::waiting || o->state == SelectState::held;
    if (parked && !p->woken && (o->state == SelectState::held || (!o->choice->withdraw() && !p->woken))) {  // a partner has it yet
      silence(o);
      o->state = SelectState::done;
      if (Py_REFCNT(o) > 0) {
        p->kept = Py_NewRef(reinterpret_cast<PyObject*>(o));
      } else {  // collected, and never closed: both stay
        o->party = nullptr;
        leave_choice(o);
      }
      return;
    }
  }
  if (ProcessObject* const me = std::exchange(o->process, nullptr)) {
    const Left how =
        leave(me, reinterpret_cast<PyObject*>(o), [o](ProcessBase&) { return o->state == SelectState::waiting && o->choice->withdraw(); });
    if (how == Left::decided && o->choice->with_partner()) {
      const bool delivered = std::exchange(o->state, SelectState::done) == SelectState::held;
      if (Py_REFCNT(o) > 0)
        keep_until_woken(me, reinterpret_cast<PyObject*>(o), delivered ? &end_delivered : &end_late);
      else
        leave_choice(o);
      return;
    }
  }
  if (o->state == SelectState::waiting) o->choice->give_up();
  if (o->state != SelectState::fresh) finish(o);
}

PySendResult select_send(PyObject* self, PyObject*, PyObject** r);

// --- in an asyncio task -----------------------------------------------------------------------------------------------------------------

// 0: may begin; -1: bad use.
int prepare(SelectOpObject* o) {
  if (o->alternative) {
    if (!o->alternative->choice) {
      bad_use("select on an Alternative that is closed");
      return -1;
    }
    if (o->alternative->busy) {
      bad_use("select on an Alternative on which another process waits: make one for each process");
      return -1;
    }
    o->choice = o->alternative->choice;
  }
  if (o->choice->check(verb_of(o->purpose)) < 0) return -1;
  if (o->alternative) o->occupies = o->alternative->busy = true;
  return 0;
}

PyObject* alarm_rings(PyObject* self, PyObject*);
PyMethodDef alarm_def{"weft_timer", gated<alarm_rings>, METH_NOARGS, nullptr};

// The loop's timer for the earliest deadline. A loop whose clock is coarse may be early, and is then asked again for 1 ms or more.
int set_alarm(SelectOpObject* o, std::int64_t least) {
  const std::int64_t at = o->choice->deadline();
  if (at == prim::forever) return 0;
  PyObject* loop = loop_of(o->party->link);
  PyObject* f = loop ? PyCFunction_New(&alarm_def, reinterpret_cast<PyObject*>(o)) : nullptr;
  if (f) Py_XSETREF(o->alarm, PyObject_CallMethod(loop, "call_later", "dO", static_cast<double>(std::max(at - now_ns(), least)) * 1e-9, f));
  Py_XDECREF(f);
  Py_XDECREF(loop);
  return o->alarm ? 0 : -1;
}
PyObject* alarm_rings(PyObject* self, PyObject*) {
  SelectOpObject* o = sel(self);
  Py_CLEAR(o->alarm);
  if (o->state != SelectState::waiting || !o->party || o->party->woken) Py_RETURN_NONE;
  if (o->choice->deadline() > now_ns()) {
    if (set_alarm(o, 1'000'000) < 0) return nullptr;
    Py_RETURN_NONE;
  }
  const Section s(o->party->link);
  if (o->choice->expire()) o->party->ops->wake(o->party);
  Py_RETURN_NONE;
}

PySendResult party_chose(SelectOpObject* o, int index, PyObject** r) {
  *r = nullptr;
  PyObject* value = nullptr;
  o->state = SelectState::deciding;
  o->party->woken = false;  // from here on: a wake-up ends a hold
  const int s = o->choice->settle_guard(index, *o->party, &value);
  if (s == 0) {
    o->state = SelectState::held;
    if (o->party->woken) return select_send(reinterpret_cast<PyObject*>(o), Py_None, r);
    return o->party->await(r);
  }
  if (o->party->owed) owe_cancellation();
  finish(o);
  if (s < 0) return PYGEN_ERROR;
  *r = outcome(*o->choice, o->purpose, index, value);
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

PySendResult party_begin(SelectOpObject* o, PyObject** r) {
  std::unique_ptr<Party> p = begin_party(verb_of(o->purpose));
  if (!p) return PYGEN_ERROR;
  const Section section(p->link);
  settle();
  if (prepare(o) < 0) return PYGEN_ERROR;
  o->party = p.release();
  const int i = o->choice->begin(*o->party, nullptr, o->alternative ? nullptr : memory_of(nullptr), true);
  if (i != Choice::parked) return party_chose(o, i, r);
  o->state = SelectState::waiting;
  if (set_alarm(o, 0) < 0) {
    abandon(o);
    return PYGEN_ERROR;
  }
  return o->party->await(r);
}

PySendResult party_resume(SelectOpObject* o, PyObject** r) {
  Party* p = o->party;
  *r = nullptr;
  if (!p->is_mine() || o->state == SelectState::deciding) {
    being_awaited(verb_of(o->purpose), nullptr);
    return PYGEN_ERROR;
  }
  const Section section(p->link);
  if (o->state == SelectState::held) {
    if (!p->woken) return p->await(r);
    PyObject* v = o->choice->finish_held(*p);
    const int index = o->choice->chosen();
    if (p->owed) owe_cancellation();
    finish(o);
    *r = outcome(*o->choice, o->purpose, index, v);
    return *r ? PYGEN_RETURN : PYGEN_ERROR;
  }
  int i = p->woken ? o->choice->woken() : o->choice->look_again();
  if (i == Choice::parked) {
    p->woken = false;
    return p->await(r);
  }
  if (i >= 0) return party_chose(o, i, r);
  // Only its own throw() withdraws it, and at a far end the answer tells.
  finish(o);
  raise_cancellation();
  return PYGEN_ERROR;
}

PyObject* party_throw(SelectOpObject* o, PyObject* const* args, Py_ssize_t n) {
  Party* p = o->party;
  if (!p->is_mine() || o->state == SelectState::deciding) return being_awaited(verb_of(o->purpose), nullptr);
  const Section section(p->link);
  const bool cancelled = is_cancellation(args, n);
  if (cancelled) {
    const bool held = o->state == SelectState::held;
    if (p->woken || held || !o->choice->withdraw()) {  // committed: it completes, and the cancellation comes next (rule 6.3)
      p->owed = true;
      if (p->woken) return send_by(select_send, reinterpret_cast<PyObject*>(o));
      PyObject* r;
      return p->await(&r) == PYGEN_NEXT ? r : nullptr;
    }
  }
  abandon(o, cancelled);
  o->state = SelectState::done;
  return raise_thrown(args, n);
}

// --- in a coroutine process, again ------------------------------------------------------------------------------------------------------

PySendResult select_send(PyObject* self, PyObject*, PyObject** r) {
  SelectOpObject* o = sel(self);
  *r = nullptr;
  if (o->party) [[unlikely]]
    return party_resume(o, r);
  ProcessObject* p = current_coroutine();
  switch (o->state) {
    case SelectState::deciding: being_awaited(verb_of(o->purpose), nullptr); return PYGEN_ERROR;
    case SelectState::waiting: {
      p = o->process;
      if (!resumed(p, self)) {
        being_awaited(verb_of(o->purpose), p);
        return PYGEN_ERROR;
      }
      p->waits = nullptr;
      const int i = o->choice->woken();
      if (i >= 0) return conclude(o, p, i, r);
      if (i == Choice::parked) return park(o, p, kind_of(o->purpose), SelectState::waiting, r);
      finish(o);
      raise_cancelled(p->base, nullptr);
      return PYGEN_ERROR;
    }
    case SelectState::held: {
      p = o->process;
      if (!resumed(p, self)) {
        being_awaited(verb_of(o->purpose), p);
        return PYGEN_ERROR;
      }
      p->waits = nullptr;
      PyObject* v = o->choice->finish_held(p->base);
      const int index = o->choice->chosen();
      finish(o);
      *r = outcome(*o->choice, o->purpose, index, v);
      return *r ? PYGEN_RETURN : PYGEN_ERROR;
    }
    case SelectState::done: bad_use("%s was awaited already: make another", verb_of(o->purpose)); return PYGEN_ERROR;
    default: break;
  }
  if (p && woken_first(p)) [[unlikely]] {
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  o->state = SelectState::done;
  if (!p) return party_begin(o, r);
  settle();
  if (p->base.op) {
    bad_use("%s while another operation of this process waits: a process does one thing at a time", verb_of(o->purpose));
    return PYGEN_ERROR;
  }
  if (p->base.cancel().load(std::memory_order_relaxed)) {
    raise_cancelled(p->base, nullptr);
    return PYGEN_ERROR;
  }
  if (prepare(o) < 0) return PYGEN_ERROR;
  const int i = o->choice->begin(p->base, &p->base.group->run, o->alternative ? nullptr : memory_of(p));
  if (i == Choice::parked) return park(o, p, kind_of(o->purpose), SelectState::waiting, r);
  return conclude(o, p, i, r);
}

SelectOpObject* new_op(Choice* choice, AlternativeObject* alternative, Purpose purpose) {
  SelectOpObject* o = PyObject_New(SelectOpObject, &SelectOpType);
  if (!o) {
    delete choice;
    return nullptr;
  }
  o->choice = choice;
  o->alternative = alternative;
  Py_XINCREF(reinterpret_cast<PyObject*>(alternative));
  o->process = nullptr;
  o->party = nullptr;
  o->alarm = nullptr;
  o->purpose = purpose;
  o->state = SelectState::fresh;
  o->occupies = false;
  return o;
}

void select_dealloc(PyObject* self) {
  SelectOpObject* o = sel(self);
  abandon(o);
  if (o->state == SelectState::fresh) {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s was never awaited: write `await` before it", verb_of(o->purpose)) < 0)
      PyErr_WriteUnraisable(Py_None);
    PyErr_Restore(t, v, tb);
  }
  if (!o->alternative) delete o->choice;
  Py_XDECREF(reinterpret_cast<PyObject*>(o->alternative));
  PyObject_Free(o);
}
// Takes the place of select_send while somebody observes.
PySendResult select_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  SelectOpObject* o = sel(self);
  if (o->state == SelectState::done) return select_send(self, arg, r);
  Choice* c = o->alternative ? o->alternative->choice : o->choice;
  PyObject* guards = c ? c->describe() : nullptr;
  if (o->state == SelectState::fresh) observe("begin", verb_of(o->purpose), guards, nullptr);
  const PySendResult s = select_send(self, arg, r);
  observe_sent(s, verb_of(o->purpose), guards, *r);
  Py_XDECREF(guards);
  return s;
}

PyAsyncMethods select_async{};
PyObject* select_next(PyObject* self) { return iternext_by(select_async.am_send, self); }
PyObject* select_pysend(PyObject* self, PyObject*) { return send_by(select_async.am_send, self); }
PyObject* select_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  SelectOpObject* o = sel(self);
  if (o->party) return party_throw(o, args, n);
  if (o->state == SelectState::deciding || (o->process && !driven_by(o->process))) return being_awaited(verb_of(o->purpose), o->process);
  abandon(o);
  o->state = SelectState::done;
  return raise_thrown(args, n);
}
PyObject* select_close(PyObject* self, PyObject*) {
  SelectOpObject* o = sel(self);
  if (o->state == SelectState::deciding || (o->process && !driven_by(o->process)) ||
      (o->party && !o->party->is_mine() && task_lives(o->party)))
    return being_awaited(verb_of(o->purpose), o->process);
  abandon(o);
  o->state = SelectState::done;
  Py_RETURN_NONE;
}
PyMethodDef select_methods[] = {{"send", gated<select_pysend>, METH_O, nullptr},
                                {"throw", method(gated<select_throw>), METH_FASTCALL, nullptr},
                                {"close", gated<select_close>, METH_NOARGS, nullptr},
                                {}};

// --- in a thread or a greenlet -----------------------------------------------------------------------------------------------------------

PyObject* block_in_select(Choice& c, Purpose purpose, bool remember) {
  Caller self(verb_of(purpose));
  if (!self) return nullptr;
  if (self.cancelled()) return self.withdrawn(nullptr);
  if (c.check(verb_of(purpose)) < 0) return nullptr;
  ProcessBase& p = self.process();
  int i = c.begin(p, self.run(), remember ? memory_of(process_object(this_process())) : nullptr);
  while (i == Choice::parked) {
    self.wait(Status::pending, *kind_of(purpose));
    i = c.woken();
  }
  if (i < 0) return self.withdrawn(nullptr);
  PyObject* value;
  const int s = c.settle_guard(i, p, &value);
  if (s < 0) return self.give(nullptr);
  if (s == 0) {
    p.place = &c;
    self.wait(Status::pending, held_op);
    value = c.finish_held(p);
  }
  return self.give(outcome(c, purpose, i, value));
}

PyObject* blocking_select(Choice& c, Purpose purpose, bool remember) {
  if (!observing) [[likely]]
    return block_in_select(c, purpose, remember);
  PyObject* guards = c.describe();
  observe("begin", verb_of(purpose), guards, nullptr);
  PyObject* r = block_in_select(c, purpose, remember);
  PyObject* e = r ? nullptr : take_exception();
  Py_XSETREF(guards, c.describe());  // some may have fallen silent meanwhile
  if (!r) restore_exception(e);
  observe_returned(verb_of(purpose), guards, r);
  Py_XDECREF(guards);
  return r;
}

PyObject* either(Choice* owned, Purpose purpose) {
  if (current_coroutine() || in_task()) return reinterpret_cast<PyObject*>(new_op(owned, nullptr, purpose));
  const std::unique_ptr<Choice> c(owned);
  return blocking_select(*c, purpose, true);
}

// --- Alternative
// --------------------------------------------------------------------------------------------------------------------------

struct Options {
  Mode mode = Mode::fair;
  bool loud = false;  // ended="raise" for all guards (rule 5.6)
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
  settle();
  Options with;
  PyObject *name, *value;
  for (Py_ssize_t i = 0; kw && PyDict_Next(kw, &i, &name, &value);)
    if (option_of(name, value, with, "Alternative") < 0) return nullptr;
  auto c = std::make_unique<Choice>();
  if (c->fill(PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), with.mode, "Alternative", with.loud) < 0) return nullptr;
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
    bad_use("close of an Alternative on which a process waits");
    return -1;
  }
  delete std::exchange(a->choice, nullptr);
  settle();
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
  settle();
  if (!a->choice) return bad_use("select on an Alternative that is closed");
  if (current_coroutine() || in_task()) return reinterpret_cast<PyObject*>(new_op(nullptr, a, Purpose::select));
  if (a->busy) return bad_use("select on an Alternative on which another process waits: make one for each process");
  a->busy = true;
  Py_INCREF(o);
  PyObject* r = blocking_select(*a->choice, Purpose::select, false);
  a->busy = false;
  Py_DECREF(o);
  return r;
}
PyObject* alternative_enable(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  PyObject* given[2];
  if (!arguments("enable", {"index", "on"}, args, n, keywords, given)) return nullptr;
  const Py_ssize_t i = PyNumber_AsSsize_t(given[0], PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  const int on = PyObject_IsTrue(given[1]);
  if (on < 0) return nullptr;
  if (!alt_of(o)->choice) return bad_use("enable on an Alternative that is closed");
  if (alt_of(o)->busy) return bad_use("enable on an Alternative on which a process waits");
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
     "Commit to one of the guards: (index, value). Raises Retired, Poisoned, PeerDied with .guard, Cancelled, BadUse."},
    {"enable", method(gated<alternative_enable>), kKeywords, "Set the precondition of guard `index`."},
    {"close", gated<alternative_close>, METH_NOARGS, "Leave the lines of all channels."},
    {"__enter__", gated<alternative_enter>, METH_NOARGS, nullptr},
    {"__exit__", method(gated<alternative_exit>), METH_FASTCALL, nullptr},
    {}};

// --- functions
// ----------------------------------------------------------------------------------------------------------------------------

PyObject* f_select(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  settle();
  Options with;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (option_of(PyTuple_GET_ITEM(names, i), args[n + i], with, "select") < 0) return nullptr;
  auto c = std::make_unique<Choice>();
  if (c->fill(args, n, with.mode, "select", with.loud) < 0 || c->check("select") < 0) return nullptr;
  return either(c.release(), Purpose::select);
}

PyMethodDef functions[] = {
    {"select", method(gated<f_select>), METH_FASTCALL | METH_KEYWORDS,
     "Commit to exactly one guard: (index, value). Raises Retired when nothing is left to wait for (rule 5.6; ended='raise': when any "
     "guard's channel has retired); Poisoned, PeerDied; all with .guard; Cancelled, BadUse."},
    {}};

}  // namespace

void forsake_select(PyObject* o) noexcept {
  Py_INCREF(o);
  abandon(sel(o));
  sel(o)->state = SelectState::done;
  Py_DECREF(o);
}

PyTypeObject SelectOpType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject AlternativeType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* timed_operation(GuardKind kind, std::int64_t ns, TimerObject* timer) {
  auto c = std::make_unique<Choice>();
  c->fill_timer(kind, ns, timer);
  return either(c.release(), timer ? Purpose::tick : Purpose::sleep);
}

PyObject* end_operation(PyObject* guard) {
  auto c = std::make_unique<Choice>();
  if (c->fill(&guard, 1, Mode::priority, "wait for") < 0 || c->check("wait for") < 0) return nullptr;
  return either(c.release(), Purpose::end);
}

void observe_selects(bool on) noexcept { select_async.am_send = on ? gated<select_send_observed> : gated<select_send>; }

Facing facing(ProcessBase& p) noexcept {
  if (p.op == &held_op) return Facing::able;
  if (p.op->undecided) {
    struct Any final : runtime::Places {
      void channel(const core::Place&, bool) override { found = true; }
      void barrier(const core::Place&) override { found = true; }
      void end(const core::Place&) override { found = true; }
      void nowhere() override { found = true; }
      bool found = false;
    } any;
    p.op->undecided(p, any);
    return any.found ? Facing::blocked : Facing::able;
  }
  if (p.op->withdraw != &withdraw_select) return p.status == Status::pending ? Facing::blocked : Facing::able;
  auto* c = static_cast<Choice*>(p.place);
  return c->has_timers() || !c->undecided() ? Facing::able : Facing::blocked;
}

int init_choice(PyObject* m) {
  select_async.am_await = PyObject_SelfIter;
  select_async.am_send = gated<select_send>;
  SelectOpType.tp_name = "weft.SelectOperation";
  SelectOpType.tp_basicsize = sizeof(SelectOpObject);
  SelectOpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  SelectOpType.tp_dealloc = gated<select_dealloc>;
  SelectOpType.tp_iter = PyObject_SelfIter;
  SelectOpType.tp_iternext = gated<select_next>;
  SelectOpType.tp_methods = select_methods;
  SelectOpType.tp_as_async = &select_async;
  AlternativeType.tp_name = "weft.Alternative";
  AlternativeType.tp_doc =
      "Alternative(*guards, mode='fair', ended='silent'): a choice that is kept; a fair one costs the same for any number of guards "
      "(rule 5.9).";
  AlternativeType.tp_basicsize = sizeof(AlternativeObject);
  AlternativeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  AlternativeType.tp_new = gated<alternative_new>;
  AlternativeType.tp_dealloc = gated<alternative_dealloc>;
  AlternativeType.tp_traverse = alternative_traverse;
  AlternativeType.tp_clear = gated<alternative_clear>;
  AlternativeType.tp_methods = alternative_methods;
  if (init_guard(m) < 0 || PyType_Ready(&SelectOpType) < 0 || PyType_Ready(&AlternativeType) < 0) return -1;
  if (add_type(m, "Alternative", &AlternativeType) < 0) return -1;
  return PyModule_AddFunctions(m, functions);
}

}  // namespace weft::py
