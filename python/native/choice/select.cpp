// select; also sleep, Timer.tick, and the waits for a process's end and for a descriptor, which are
// choices with one guard. One state machine serves three ways of waiting (ways.hpp).
//
//   begin() ─► advance() ──parked: wait()──► waiting ──go_on(): way.look()──► advance()
//                  ├──chosen: Choice::conclude_guard()──► done
//                  │                              └──► held ──go_on(): finish_held()──► done
//                  └──withdrawn──► done: Cancelled
//
// In a coroutine process or a task the select is an awaitable, whose life awaited.hpp describes;
// elsewhere it is a call that blocks: block_in_select().
#include "choice/select.hpp"

#include <algorithm>

#include "choice/choice.hpp"
#include "choice/choices.hpp"
#include "choice/guard.hpp"
#include "choice/time.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/asyncio.hpp"
#include "processes/awaited.hpp"
#include "processes/awaiting.hpp"
#include "processes/caller.hpp"
#include "processes/loops.hpp"
#include "processes/rare.hpp"
#include "processes/signals_held.hpp"
#include "processes/task_waiter.hpp"
#include "processes/ways.hpp"
#include "watching/observe.hpp"

namespace weft::py {

template <class D>
int InProcess<D>::look(Choice& c) const noexcept {
  return c.woken();
}
template <class D>
int InTask<D>::look(Choice& c) const noexcept {
  TaskWaiter& p = *o_->task_waiter;
  const int i = p.woken ? c.woken() : c.look_again();
  if (i == Choice::parked) p.woken = false;
  return i;
}
int InCaller::look(Choice& c) const noexcept { return c.woken(); }

struct SelectOpObject {
  PyObject_HEAD Choice* choice;    // owned, unless it belongs to the alternative
  AlternativeObject* alternative;  // an owned reference, or null
  ProcessObject* process;          // the process, while a coroutine process waits
  TaskWaiter* task_waiter;         // the waiter, while an asyncio task waits; owned
  PyObject* alarm;                 // the event loop's timer for this select
  Purpose purpose;
  OpState state;
  bool occupies;  // whether this select keeps its alternative busy
  bool awaited;

  const char* verb() const noexcept;
  template <class W>
  PySendResult begin(W& way);
  template <class W>
  PySendResult go_on(W& way);
  bool is_mine() const noexcept { return task_waiter->is_mine(); }
  bool with_partner(ProcessBase&) const noexcept { return choice->with_partner(); }
  void over(ProcessBase&, Status) noexcept;
  Late leave_to_partner() noexcept;
  SelectOpObject* heir(ProcessBase&) noexcept;
  bool only_yields() const noexcept { return false; }
};

namespace {

SelectOpObject* sel(PyObject* o) noexcept { return reinterpret_cast<SelectOpObject*>(o); }

// --- kinds of waiting ---------------------------------------------------------------------------

bool withdraw_select(ProcessBase& p) noexcept { return static_cast<Choice*>(p.place)->withdraw(); }
void visit_select(ProcessBase& p, runtime::WaitVisitor& v) {
  static_cast<Choice*>(p.place)->visit(v);
}
bool withdraw_never(ProcessBase&) noexcept { return false; }
constexpr runtime::OpKind select_op{"select", &withdraw_select, &visit_select};
constexpr runtime::OpKind sleep_op{"sleep", &withdraw_select, &visit_select};
constexpr runtime::OpKind tick_op{"tick", &withdraw_select, &visit_select};
constexpr runtime::OpKind end_op{"wait for", &withdraw_select, &visit_select};
constexpr runtime::OpKind reads_op{"read from a descriptor", &withdraw_select, &visit_select};
constexpr runtime::OpKind writes_op{"write to a descriptor", &withdraw_select, &visit_select};
constexpr runtime::OpKind held_op{"select", &withdraw_never, &visit_select};

const runtime::OpKind& kind_of(Purpose p) noexcept {
  constexpr const runtime::OpKind* kinds[] = {&select_op, &sleep_op, &tick_op,
                                              &end_op,    &reads_op, &writes_op};
  return *kinds[static_cast<int>(p)];
}
const char* verb_of(Purpose p) noexcept { return kind_of(p).verb; }

// --- the state machine --------------------------------------------------------------------------

// Makes the result from `value`, of which it takes ownership. A null `value` means that an
// exception is set.
PyObject* outcome(Choice& c, Purpose purpose, int index, PyObject* value) {
  if (!value || (purpose != Purpose::select && purpose != Purpose::tick)) return value;
  Owned given(value);
  if (purpose == Purpose::tick) return PyLong_FromLongLong(c.ticks);
  Owned i(PyLong_FromLong(index));
  PyObject* r = i ? PyTuple_New(2) : nullptr;
  if (!r) return nullptr;
  PyTuple_SET_ITEM(r, 0, i.release());
  PyTuple_SET_ITEM(r, 1, given.release());
  return r;
}

thread_local SelectMemory plain_memory;  // for a thread that is not a process
SelectMemory* memory_of(ProcessObject* p) {
  if (!p) {
    return &plain_memory;
  }
  if (!p->rare) p->rare = new Rare;
  return &p->rare->selects;
}

template <class W>
int begin_choice(Choice& c, W& way, bool remember) {
  SelectMemory* const memory = remember ? memory_of(way.object()) : nullptr;
  const auto begins = [&] { return c.begin(way.process(), way.run(), memory, W::is_task); };
  if constexpr (std::is_same_v<W, InCaller>)
    if (c.any_far()) return way.begin_far(begins, static_cast<int>(Choice::parked));
  return begins();
}

template <class W>
bool park(Choice& c, W& way, const runtime::OpKind& kind) {
  way.process().place = &c;
  return way.wait(kind);
}

// Called when the value of the chosen guard can be given to its reader. Until now the value was
// being computed or held back.
template <class W, class Over>
PySendResult deliver(Choice& c, Purpose purpose, W& way, int index, PyObject* value, Over& over) {
  way.decided(Status::ok);
  over();
  return way.give(value ? outcome(c, purpose, index, value) : nullptr);
}

// Continues after begin_choice() or look(), whose result is `i`. `state` is the state of a waiting
// operation. `over` is called before the operation gives its result.
template <class W, class Over>
PySendResult advance(Choice& c, Purpose purpose, W& way, int i, OpState& state, Over over) {
  while (i == Choice::parked) {
    state = OpState::waiting;
    if (!park(c, way, kind_of(purpose))) return way.suspended();
    i = way.look(c);
  }
  if (i < 0) {
    over();
    if (!c.raise_refused()) way.withdrawn(nullptr);
    return way.give(nullptr);
  }
  // A computed output runs user code. Until that code has returned, the choice belongs to this
  // operation.
  state = OpState::deciding;
  PyObject* value = nullptr;
  way.process().place = &c;
  way.hold(held_op);
  const int settled = c.conclude_guard(i, way.process(), &value);
  way.release();
  if (settled == 0) {  // an extended reader holds the choice
    state = OpState::held;
    if (!park(c, way, held_op)) return way.suspended();
    value = c.finish_held(way.process());
  }
  return deliver(c, purpose, way, i, value, over);
}

void silence(SelectOpObject* o) noexcept {
  const Owned h(std::exchange(o->alarm, nullptr));
  if (!h) return;
  const SavedException kept;
  const Owned r(with_signals_held([&] { return PyObject_CallMethod(h.get(), "cancel", nullptr); }));
}

void finish(SelectOpObject* o) noexcept {
  o->state = OpState::done;
  silence(o);
  if (std::exchange(o->occupies, false)) o->alternative->busy = false;
}

// Returns 0 if the select can begin, -1 for bad use.
int prepare(SelectOpObject* o) {
  if (o->alternative) {
    if (!o->alternative->choice) {
      bad_use("select on an Alternative that is closed");
      return -1;
    }
    if (o->alternative->busy) {
      bad_use(
          "select on an Alternative while another process waits in a select on it: make one for "
          "each process");
      return -1;
    }
    o->choice = o->alternative->choice;
  }
  if (o->choice->check(verb_of(o->purpose)) < 0) return -1;
  if (o->alternative) o->occupies = o->alternative->busy = true;
  return 0;
}

// --- the timer of a select that waits in a task -------------------------------------------------

PyObject* alarm_rings(PyObject* self, PyObject*);
PyMethodDef alarm_def{"weft_timer", gated<alarm_rings>, METH_NOARGS, nullptr};

// Sets the event loop's timer for the earliest deadline. A loop with a coarse clock can call too
// early. Then the timer is set again, to at least 1 ms.
int set_alarm(SelectOpObject* o, std::int64_t least) {
  const std::int64_t at = o->choice->deadline();
  if (at == prim::forever) return 0;
  const Owned loop(loop_of(o->task_waiter->link));
  const Owned f(loop ? PyCFunction_New(&alarm_def, reinterpret_cast<PyObject*>(o)) : nullptr);
  const double seconds = static_cast<double>(std::max(at - now_ns(), least)) * 1e-9;
  if (f)
    Py_XSETREF(o->alarm, PyObject_CallMethod(loop.get(), "call_later", "dO", seconds, f.get()));
  return o->alarm ? 0 : -1;
}
PyObject* alarm_rings(PyObject* self, PyObject*) {
  SelectOpObject* o = sel(self);
  Py_CLEAR(o->alarm);
  if (o->state != OpState::waiting || !o->task_waiter || o->task_waiter->woken) Py_RETURN_NONE;
  if (o->choice->deadline() > now_ns()) {
    if (set_alarm(o, 1'000'000) < 0) return nullptr;
    Py_RETURN_NONE;
  }
  const Section s(o->task_waiter->link);
  if (o->choice->expire()) o->task_waiter->ops->wake(o->task_waiter);
  Py_RETURN_NONE;
}

}  // namespace

// --- the awaitable ------------------------------------------------------------------------------

const char* SelectOpObject::verb() const noexcept { return verb_of(purpose); }

template <class W>
inline PySendResult SelectOpObject::begin(W& way) {
  if (way.cancelled()) {
    way.withdrawn(nullptr);
    return PYGEN_ERROR;
  }
  if (prepare(this) < 0) return PYGEN_ERROR;
  const int i = begin_choice(*choice, way, !alternative);
  if constexpr (W::is_task) {
    if (i == Choice::parked && set_alarm(this, 0) < 0) {
      state = OpState::waiting;
      task_waiter->op = &kind_of(purpose);
      task_waiter->place = choice;
      leave_it(this);
      return PYGEN_ERROR;
    }
  }
  return advance(*choice, purpose, way, i, state, [this] { finish(this); });
}

template <class W>
inline PySendResult SelectOpObject::go_on(W& way) {
  const auto over = [this] { finish(this); };
  if (state == OpState::waiting)
    return advance(*choice, purpose, way, way.look(*choice), state, over);
  if constexpr (W::is_task) {
    if (!task_waiter->woken && !way.wait(held_op)) return way.suspended();
  }
  PyObject* const value = choice->finish_held(way.process());
  return deliver(*choice, purpose, way, choice->chosen(), value, over);
}

void SelectOpObject::over(ProcessBase&, Status) noexcept {
  if (state == OpState::waiting) choice->give_up();
  finish(this);
}

// The outcome is dropped at the wake-up, although the choice has committed, because by then the
// value of the chosen guard might have been made and delivered.
Late SelectOpObject::leave_to_partner() noexcept {
  if (task_waiter) silence(this);
  if (state == OpState::held) return [](PyObject* o, ProcessBase&) noexcept { finish(sel(o)); };
  return [](PyObject* o, ProcessBase&) noexcept {
    sel(o)->choice->give_up();
    finish(sel(o));
  };
}

SelectOpObject* SelectOpObject::heir(ProcessBase&) noexcept {
  SelectOpObject* const h = sel(new_select(std::exchange(choice, nullptr), alternative, purpose));
  if (!h) prim::fatal("no memory for a select that was left");
  h->state = OpState::done;
  h->occupies = std::exchange(occupies, false);
  h->awaited = true;
  return h;
}

namespace {

void select_dealloc(PyObject* self) {
  SelectOpObject* o = sel(self);
  leave_it(o);
  if (o->task_waiter) delete std::exchange(o->task_waiter, nullptr);
  if (o->state == OpState::fresh) {
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s was never awaited: write `await` before it",
                         o->verb()) < 0)
      PyErr_WriteUnraisable(Py_None);
  } else if (o->choice) {
    finish(o);
  }
  if (!o->alternative) delete o->choice;
  Py_XDECREF(reinterpret_cast<PyObject*>(o->alternative));
  PyObject_Free(o);
}
// Replaces send<SelectOpObject> while there is an observer.
PySendResult select_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  SelectOpObject* o = sel(self);
  if (o->state == OpState::done || o->state == OpState::gives_way)
    return send<SelectOpObject>(self, arg, r);
  Choice* c = o->alternative ? o->alternative->choice : o->choice;
  const Owned guards(c ? c->describe() : nullptr);
  if (o->state == OpState::fresh) observe("begin", o->verb(), guards.get(), nullptr);
  const PySendResult s = send<SelectOpObject>(self, arg, r);
  observe_step(o, s, guards.get(), *r);
  return s;
}

PySendResult select_send_plainly(PyObject* self, PyObject* arg, PyObject** r) {
  return observing() ? select_send_observed(self, arg, r) : send<SelectOpObject>(self, arg, r);
}
// Replaces send<SelectOpObject> while the program is checked.
PySendResult select_send_checked(PyObject* self, PyObject* arg, PyObject** r) {
  SelectOpObject* o = sel(self);
  ProcessObject* const me = checking ? current_coroutine() : nullptr;
  Choice* const c = o->alternative ? o->alternative->choice : o->choice;
  if (!me || o->state != OpState::fresh || !c) return select_send_plainly(self, arg, r);
  if (pauses(me, self, false, r)) return PYGEN_NEXT;
  c->begins_checked(&me->base, o->alternative ? nullptr : memory_of(me));
  return begun_checked(o, me, select_send_plainly(self, arg, r), r);
}

PyAsyncMethods select_async{};
PyObject* select_next(PyObject* self) { return iternext_by(select_async.am_send, self); }
PyObject* select_pysend(PyObject* self, PyObject*) { return send_by(select_async.am_send, self); }
PyMethodDef select_methods[] = {
    {"send", gated<select_pysend>, METH_O, nullptr},
    {"throw", method(gated<throw_in<SelectOpObject>>), METH_FASTCALL, nullptr},
    {"close", gated<close_it<SelectOpObject>>, METH_NOARGS, nullptr},
    {}};

// Runs the choice in a thread or a greenlet, which it blocks.
PyObject* block_in_select(Choice& c, Purpose purpose, bool remember) {
  Caller self(verb_of(purpose));
  if (!self) return nullptr;
  PyObject* r = nullptr;
  InCaller way(self, &r);
  if (way.cancelled()) {
    way.withdrawn(nullptr);
    return self.give(nullptr);
  }
  if (c.check(verb_of(purpose)) < 0) return nullptr;
  CheckedCall checked(self);
  if (checked) [[unlikely]]
    c.begins_checked(checked.process(), remember ? memory_of(self.greenlet()) : nullptr);
  OpState state = OpState::fresh;
  advance(c, purpose, way, begin_choice(c, way, remember), state, [] {});
  return checked ? checked.over(r) : r;
}

}  // namespace

// --- what the other files call ------------------------------------------------------------------

PyTypeObject SelectOpType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* new_select(Choice* choice, AlternativeObject* alternative, Purpose purpose) {
  SelectOpObject* o = PyObject_New(SelectOpObject, &SelectOpType);
  if (!o) {
    delete choice;
    return nullptr;
  }
  o->choice = choice;
  o->alternative = alternative;
  Py_XINCREF(reinterpret_cast<PyObject*>(alternative));
  o->process = nullptr;
  o->task_waiter = nullptr;
  o->alarm = nullptr;
  o->purpose = purpose;
  o->state = OpState::fresh;
  o->occupies = o->awaited = false;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* blocking_select(Choice& c, Purpose purpose, bool remember) {
  if (!observing()) [[likely]]
    return block_in_select(c, purpose, remember);
  Owned guards(c.describe());
  observe("begin", verb_of(purpose), guards.get(), nullptr);
  PyObject* r = block_in_select(c, purpose, remember);
  PyObject* e = r ? nullptr : take_exception();
  guards.reset(c.describe());  // the choice is described again, because channels might have retired
                               // meanwhile
  if (!r) restore_exception(e);
  observe_returned(verb_of(purpose), guards.get(), r);
  return r;
}

PyObject* select_here(Choice* owned, Purpose purpose) {
  if (current_coroutine() || in_task()) return new_select(owned, nullptr, purpose);
  const std::unique_ptr<Choice> c(owned);
  return blocking_select(*c, purpose, true);
}

void drop_awaited_select(PyObject* o) noexcept { drop_awaited_it<SelectOpObject>(o); }

PyObject* timed_operation(GuardKind kind, std::int64_t ns, TimerObject* timer) {
  auto c = std::make_unique<Choice>();
  if (c->fill_timer(kind, ns, timer) < 0) return nullptr;
  return select_here(c.release(), timer ? Purpose::tick : Purpose::sleep);
}

PyObject* guard_operation(PyObject* guard, Purpose purpose) {
  auto c = std::make_unique<Choice>();
  const char* const verb = verb_of(purpose);
  if (c->fill(&guard, 1, Mode::priority, verb) < 0 || c->check(verb) < 0) return nullptr;
  return select_here(c.release(), purpose);
}
PyObject* end_operation(PyObject* guard) { return guard_operation(guard, Purpose::end); }
PyObject* ready_operation(PyObject* guard, bool writes) {
  return guard_operation(guard, writes ? Purpose::writes : Purpose::reads);
}

void check_selects(bool on) noexcept {
  plain_memory = {};  // makes selects in ordinary code begin alike in each checked run
  select_async.am_send = on            ? gated<select_send_checked>
                         : observing() ? gated<select_send_observed>
                                       : gated<send<SelectOpObject>>;
}

void observe_selects(bool on) noexcept {
  if (checking) return;  // select_send_checked handles observers itself
  select_async.am_send = on ? gated<select_send_observed> : gated<send<SelectOpObject>>;
}

Facing facing(ProcessBase& p) noexcept {
  // The operation is read only once, because a component's thread can clear the pointer without the
  // GIL.
  const runtime::OpKind* const op = p.operation();
  if (!op || op == &held_op) return Facing::able;
  if (op->undecided) {
    struct Any final : runtime::WaitVisitor {
      void channel(const core::SyncObject&, bool) override { found = true; }
      void barrier(const core::SyncObject&) override { found = true; }
      void end(const core::SyncObject&) override { found = true; }
      void nowhere() override { found = true; }
      bool found = false;
    } any;
    op->undecided(p, any);
    return any.found ? Facing::blocked : Facing::able;
  }
  if (op->withdraw != &withdraw_select)
    return p.status == Status::pending ? Facing::blocked : Facing::able;
  auto* c = static_cast<Choice*>(p.place);
  return c->has_timers() || c->watches() || !c->undecided() || c->asks_afar() ? Facing::able
                                                                              : Facing::blocked;
}

bool is_woken(ProcessBase& p) noexcept {
  const runtime::OpKind* const op = p.operation();
  if (!op) return true;
  if (op->undecided) return facing(p) == Facing::able;
  if (op->withdraw != &withdraw_select) return p.status != Status::pending;
  auto* c = static_cast<Choice*>(p.place);
  return !c->undecided() && !c->asks_afar();
}

int init_choice(PyObject*) {
  refuse_as_result<SelectOpObject>(SelectOpType, select_async,
                                   [](PyObject* o) noexcept { return sel(o)->verb(); });
  select_async.am_send = gated<send<SelectOpObject>>;
  SelectOpType.tp_name = "weft.SelectOperation";
  SelectOpType.tp_basicsize = sizeof(SelectOpObject);
  SelectOpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  SelectOpType.tp_dealloc = gated<select_dealloc>;
  SelectOpType.tp_iternext = gated<select_next>;
  SelectOpType.tp_methods = select_methods;
  SelectOpType.tp_as_async = &select_async;
  return PyType_Ready(&SelectOpType);
}

}  // namespace weft::py
