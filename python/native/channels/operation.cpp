// Reads, writes, syncs and the operations like them: one state machine over three ways of waiting
// (ways.hpp).
//
//   begin() ──begin_at(): at its channel or barrier──► decided ──────────────────────────────► conclude()
//     │                             └──► pending: wait() ──go_on(), or wait() returns──┘
//     └──its caller was cancelled: refused()
//   conclude() ──► the value, None │ refused(): Cancelled, Retired, Poisoned, PeerDied; it contains
//                                    the value that a write meant to send
//
// In a coroutine process or a task the operation is a small awaitable from a free list, whose life
// awaited.hpp describes; elsewhere the operation is a call that blocks: block_in().
//
// The node belongs to the process, or in an asyncio task to a TaskWaiter (task_waiter.hpp). The
// slot is the awaitable's `value`, or the Caller's.
#include "channels/operation.hpp"

#include "channels/ends.hpp"
#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "channels/operations.hpp"
#include "channels/transit.hpp"
#include "choice/barrier.hpp"
#include "declare.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/awaited.hpp"
#include "processes/awaiting.hpp"
#include "processes/caller.hpp"
#include "processes/loops.hpp"
#include "processes/task_waiter.hpp"
#include "processes/ways.hpp"
#include "watching/flight.hpp"
#include "watching/observe.hpp"
#include "wire/values.hpp"

namespace weft::py {

struct OpObject {
  PyObject_HEAD Operation what;
  OpState state;
  bool awaited;
  Value value;
  // The waiting process; borrowed, since the process drops the operation first (awaiting.hpp).
  ProcessObject* process;
  TaskWaiter* task_waiter;  // the task waiter, while an asyncio task waits; owned

  const char* verb() const noexcept { return verb_of(what.type); }
  template <class W>
  PySendResult begin(W& way);
  template <class W>
  PySendResult go_on(W& way);
  bool is_mine() const noexcept { return task_waiter->is_mine(); }
  bool with_partner(ProcessBase& p) const noexcept { return p.status == Status::pending; }
  void over(ProcessBase& p, Status s) noexcept;
  Late leave_to_partner() const noexcept {
    return [](PyObject* o, ProcessBase& p) noexcept {
      reinterpret_cast<OpObject*>(o)->over(p, p.status);
    };
  }
  OpObject* heir(ProcessBase& p) noexcept;
  bool only_yields() const noexcept { return what.type == OpType_::yield; }
};

namespace {

OpObject* op_of(PyObject* o) noexcept { return reinterpret_cast<OpObject*>(o); }
Engine& core_of(PyObject* end) noexcept { return end_of(end)->channel->core; }

// The originals of ends that are being written; the key is the slot of the write. Such writes are
// rare, so operations have no field for them.
std::vector<std::pair<Value*, PyObject*>> transits;
Transit take_transit(Operation& o, Value& slot) noexcept {
  Transit t;
  if (!o.transit) return t;
  o.transit = false;
  for (auto it = transits.begin(); it != transits.end(); ++it)
    if (it->first == &slot) {
      t.original = it->second;
      transits.erase(it);
      break;
    }
  return t;
}
// Puts the value of a write into its slot. Returns -1, with an exception, if the value cannot be
// sent.
int load(Operation& o, Value& slot, PyObject* value) noexcept {
  if (!is_end(value)) [[likely]] {
    slot.o = Py_NewRef(value);
    return 0;
  }
  Transit t;
  PyObject* send;
  if (Transit::prepare(value, t, send) < 0) return -1;
  carry_ends(end_of(o.target)->channel);
  slot.o = send;
  o.transit = true;
  transits.emplace_back(&slot, t.original);
  return 0;
}
// Undoes load() for a write that did not commit.
void unload(Operation& o, Value& slot) noexcept {
  Owned value(slot.take());
  if (o.transit) [[unlikely]]
    take_transit(o, slot).abandon(value.release());
}

// --- kinds of waiting ---------------------------------------------------------------------------

bool withdraw_sync(ProcessBase& p) noexcept {
  auto* const barrier = static_cast<BarrierEngine*>(static_cast<core::SyncObject*>(p.place));
  if (!barrier->withdraw(p)) return false;
  p.status = Status::cancelled;
  return true;
}
void visit_sync(ProcessBase& p, runtime::WaitVisitor& v) {
  v.barrier(*static_cast<core::SyncObject*>(p.place));
}

// While an extended reader is queued, its `place` is the channel; once it has committed, its
// `place` is its partner.
bool withdraw_extended(ProcessBase& p) noexcept {
  return p.is(core::NodeFlags::queued) && weft::detail::withdraw_plain<Engine, Side::in>(p);
}
void visit_extended(ProcessBase& p, runtime::WaitVisitor& v) {
  if (p.is(core::NodeFlags::queued)) weft::detail::visit_plain<false>(p, v);
}

constexpr const runtime::OpKind& read_op = weft::detail::read_op<Engine>;
constexpr const runtime::OpKind& write_op = weft::detail::write_op<Engine>;
constexpr runtime::OpKind extended_op{"extended read", &withdraw_extended, &visit_extended};
// The channel's home decides this read, so its place is the channel until the process runs.
constexpr runtime::OpKind far_extended_op{"extended read",
                                          &weft::detail::withdraw_plain<Engine, Side::in>,
                                          &weft::detail::visit_plain<false>};
constexpr runtime::OpKind sync_op{"sync", &withdraw_sync, &visit_sync};
constexpr runtime::OpKind far_sync_op{"sync", &weft::detail::withdraw_plain<Engine, Side::in>,
                                      &weft::detail::visit_plain<false>};

// --- the state machine --------------------------------------------------------------------------

// Returns the core at which the operation reads; null if the operation is not a read.
Engine* read_core(const Operation& o) noexcept {
  if (o.type <= OpType_::far_sync) return &core_of(o.target);
  return o.type == OpType_::extended ? &ext(o.target)->end->channel->core : nullptr;
}

// Begins the operation at its channel or barrier. Sets `kind` to null if an exception is set.
template <class W>
[[gnu::always_inline]] inline Status begin_at(Operation& o, W& way, const runtime::OpKind*& kind) {
  ProcessBase& p = way.process();
  kind = nullptr;
  switch (o.type) {
    case OpType_::read:
    case OpType_::next:
    case OpType_::far_sync:
      if (check_end(end_of(o.target), verb_of(o.type)) < 0) return Status::pending;
      p.slot = &way.slot();
      kind = o.type == OpType_::far_sync ? &far_sync_op : &read_op;
      return way.template begin<Side::in>(end_of(o.target)->channel);
    case OpType_::write:
      if (const int how = check_end(end_of(o.target), "write"); how != 0) [[unlikely]] {
        ChannelObject* const c = end_of(o.target)->channel;
        if (how < 0 || (packs(c) && !(way.slot().o = pack(c, way.slot().take(), W::kReferences))))
          return Status::pending;
      }
      p.slot = &way.slot();
      kind = &write_op;
      return way.template begin<Side::out>(end_of(o.target)->channel);
    case OpType_::extended: {
      ExtendedObject* x = ext(o.target);
      if (check_free(x) < 0) return Status::pending;
      p.slot = &way.slot();
      enter_block(x, p);
      kind = is_far(x->end->channel) ? &far_extended_op : &extended_op;
      return way.template begin<Side::in>(x->end->channel);
    }
    default: {
      BarrierEngine& b = reinterpret_cast<BarrierObject*>(o.target)->core;
      if (b.enrolled() == 0) {
        bad_use("sync on a barrier with nobody enrolled: make it with parties, or enrol() first");
        return Status::pending;
      }
      kind = &sync_op;
      return b.begin_sync(p);
    }
  }
}

// Ends the operation without its value, and raises the reason. The way of waiting is passed by
// value, so that it stays in registers on the path where nothing is refused.
template <class W>
[[gnu::noinline]] PySendResult refused(Operation& o, W way, Status s) {
  Owned<> value;
  PyObject* why = nullptr;
  if (o.type == OpType_::write) {
    why = why_refused(way.slot().o);
    value.reset(unsent(way.slot().take()));
    if (o.transit) {
      Transit t = take_transit(o, way.slot());
      Owned original = new_ref(t.original);
      t.abandon(value.release());
      value = std::move(original);
    }
  }
  if (why)
    restore_exception(why);
  else if (s == Status::cancelled)
    way.withdrawn(value.get());
  else if (s == Status::retired && o.type == OpType_::next)
    way.end_of_iteration();
  else if (o.type == OpType_::sync)
    raise_barrier_died("sync");
  else
    raise_end(s,
              o.type == OpType_::extended ? ext(o.target)->end->channel : end_of(o.target)->channel,
              verb_of(o.type), -1, value.get());
  value.reset();
  return way.give(nullptr);
}

// Concludes the operation, whose outcome is known.
template <class W>
[[gnu::always_inline]] inline PySendResult conclude(Operation& o, W& way, Status s) {
  way.decided(s);
  ProcessBase& p = way.process();
  if (o.type == OpType_::extended) [[unlikely]] {
    ExtendedObject* x = ext(o.target);
    p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
    x->entering = false;
    if (s == Status::ok) {
      begin_block(x, p);
      x->end->channel->core.last_reader = p.id;
      const auto how = way.give(taken_from(x->end->channel, way.slot().take()));
      if (how == PYGEN_ERROR) leave_block(x, true);  // the block will never be entered
      return how;
    }
  }
  if (s != Status::ok) [[unlikely]]
    return refused(o, way, s);
  switch (o.type) {
    case OpType_::read:
    case OpType_::next:
    case OpType_::far_sync:
      core_of(o.target).last_reader = p.id;
      return way.give(taken_from(end_of(o.target)->channel, way.slot().take()));
    case OpType_::write:
      core_of(o.target).last_writer = p.id;
      if (o.transit) [[unlikely]]
        take_transit(o, way.slot()).commit();
      Owned(way.slot().take()).reset();  // drops the value that a full buffer has given back
      [[fallthrough]];
    default: return way.give(Py_NewRef(Py_None));
  }
}

// Runs the operation to its end, or until it waits: then the status is pending.
template <class W>
[[gnu::always_inline]] inline Status run_to_wait(Operation& o, W& way, PySendResult& how) {
  if (way.cancelled()) [[unlikely]] {
    how = refused(o, way, Status::cancelled);
    return Status::cancelled;
  }
  if (o.type == OpType_::yield) [[unlikely]] {
    way.yield();
    how = conclude(o, way, Status::ok);
    return Status::ok;
  }
  const runtime::OpKind* kind;
  Status s = begin_at(o, way, kind);
  if (!kind) [[unlikely]] {
    how = PYGEN_ERROR;
    return Status::cancelled;
  }
  while (s == Status::pending) {
    if (!way.wait(*kind)) {
      how = way.suspended();
      return Status::pending;
    }
    s = way.status(read_core(o));
  }
  how = conclude(o, way, s);
  return s;
}

}  // namespace

template <class W>
[[gnu::always_inline]] inline PySendResult OpObject::begin(W& way) {
  PySendResult how;
  state = run_to_wait(what, way, how) == Status::pending ? OpState::waiting : OpState::done;
  return how;
}

template <class W>
[[gnu::always_inline]] inline PySendResult OpObject::go_on(W& way) {
  Status s = way.status(read_core(what));
  if constexpr (W::is_task) {
    for (; s == Status::pending; s = way.status(read_core(what)))
      if (!way.wait(*task_waiter->op)) return way.suspended();
  }
  state = OpState::done;
  return conclude(what, way, s);
}

// Called when the caller has abandoned the operation and the operation's outcome is known. A value
// that the operation took is lost; a value that it wrote stays with its receiver.
void OpObject::over(ProcessBase& p, Status s) noexcept {
  state = OpState::done;
  if (what.type == OpType_::extended) {
    ExtendedObject* const x = ext(what.target);
    p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
    x->entering = false;
    if (s == Status::ok) {
      begin_block(x, p);
      leave_block(x, true);
    }
  }
  if (what.transit && s == Status::ok) take_transit(what, value).commit();
}

namespace {

// --- the awaitable ------------------------------------------------------------------------------

constexpr int kPool = 256;
OpObject* pool[kPool];
int pooled = 0;

OpObject* new_op(OpType_ type, PyObject* target) noexcept {
  OpObject* o;
  if (pooled > 0) [[likely]] {
    o = pool[--pooled];
    _Py_NewReference(reinterpret_cast<PyObject*>(o));
  } else {
    o = PyObject_New(OpObject, &OpType);
    if (!o) return nullptr;
  }
  o->what = {Py_XNewRef(target), type, false};
  o->state = OpState::fresh;
  o->awaited = false;
  new (&o->value) Value;
  o->process = nullptr;
  o->task_waiter = nullptr;
  return o;
}

}  // namespace

OpObject* OpObject::heir(ProcessBase& p) noexcept {
  OpObject* const h = new_op(what.type, what.target);
  if (!h) prim::fatal("no memory for an operation that was left");
  h->state = OpState::done;
  if (what.transit) {
    h->what.transit = true;
    transits.emplace_back(&h->value, take_transit(what, value).original);
  }
  h->value.o = value.take();
  p.slot = &h->value;
  return h;
}

namespace {

void warn_never_awaited(OpObject* o) {
  const SavedException kept;
  PyObject* const target = o->what.target;
  const Owned on(target && is_end(target)
                     ? to_str(" on channel " + channel_name(end_of(target)->channel))
                     : PyUnicode_FromString(""));
  if (!on ||
      PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s%U was never awaited: write `await` before it",
                       o->verb(), on.get()) < 0)
    PyErr_WriteUnraisable(Py_None);
}

void op_dealloc(PyObject* self) {
  OpObject* o = op_of(self);
  if (is_parked(o->state)) leave_it(o);
  if (o->state == OpState::fresh && o->what.type != OpType_::ready) [[unlikely]]
    warn_never_awaited(o);
  if (o->task_waiter) [[unlikely]]
    delete std::exchange(o->task_waiter, nullptr);
  Owned value(o->value.take());
  if (o->what.transit) [[unlikely]]
    take_transit(o->what, o->value).abandon(value.release());
  const Owned target(o->what.target);
  if (pooled < kPool) [[likely]]
    pool[pooled++] = o;
  else
    PyObject_Free(o);
}

PySendResult op_send(PyObject* self, PyObject* arg, PyObject** r) {
  OpObject* o = op_of(self);
  if (o->what.type == OpType_::ready && o->state == OpState::fresh) [[unlikely]] {
    o->state = OpState::done;
    *r = o->value.take();
    ProcessObject* const me = current_coroutine();
    if (!me || me->owed || me->yielded || me->base.op) return PYGEN_RETURN;
    InProcess<OpObject> way(o, me, r);
    return begun(o, way, PYGEN_RETURN, r);
  }
  return send<OpObject>(self, arg, r);
}

// Records the outcome of a step of a read or a write, if the outcome is one of the two usual: the
// operation has committed, or the process is parked. Returns false for the others.
[[gnu::always_inline]] inline bool is_recorded(OpObject* o, bool writes, PySendResult s) noexcept {
  if (s == PYGEN_RETURN) {
    flight_commits(writes, end_of(o->what.target));
    return true;
  }
  if (s == PYGEN_ERROR || o->state == OpState::gives_way) return false;
  flight_parks();
  return true;
}

// Replaces op_send while there is an observer.
PySendResult op_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  OpObject* o = op_of(self);
  if (o->what.type == OpType_::ready || o->state == OpState::done ||
      (o->state == OpState::gives_way && !o->only_yields()))
    return op_send(self, arg, r);
  const bool writes = o->what.type == OpType_::write;
  if (flight_is_alone && (writes || o->what.type <= OpType_::next)) [[likely]] {
    const PySendResult s = op_send(self, arg, r);
    if (flight_is_alone && is_recorded(o, writes, s)) [[likely]]
      return s;
    observe_step(o, s, o->what.target, *r);
    return s;
  }
  PyObject* target = o->what.target;
  if (o->what.type == OpType_::extended) target = reinterpret_cast<PyObject*>(ext(target)->end);
  if (o->state == OpState::fresh) observe("begin", o->verb(), target, o->value.o);
  const PySendResult s = op_send(self, arg, r);
  observe_step(o, s, target, *r);
  return s;
}

PySendResult op_send_plainly(PyObject* self, PyObject* arg, PyObject** r) {
  return observing() ? op_send_observed(self, arg, r) : op_send(self, arg, r);
}

// Returns the place at which a process arrives, and sets `how` to the kind of access. Returns null
// if no other process can notice the operation.
const void* arrival_of(const Operation& o, Access& how) noexcept {
  switch (o.type) {
    case OpType_::read:
    case OpType_::next:
    case OpType_::far_sync: how = Access::read; return place_at(core_of(o.target));
    case OpType_::write: how = Access::write; return place_at(core_of(o.target));
    case OpType_::extended: how = Access::all; return place_at(ext(o.target)->end->channel->core);
    case OpType_::sync:
      how = Access::join;
      return place_at(reinterpret_cast<BarrierObject*>(o.target)->core);
    default: return nullptr;
  }
}
void arrive(ProcessBase* me, const Operation& o) noexcept {
  Access how = Access::all;
  const void* const place = arrival_of(o, how);
  checking->arrives(me, place, how);
}

// Replaces op_send while the program is checked.
PySendResult op_send_checked(PyObject* self, PyObject* arg, PyObject** r) {
  OpObject* o = op_of(self);
  ProcessObject* const me = checking ? current_coroutine() : nullptr;
  if (!me || o->state != OpState::fresh || o->what.type == OpType_::ready)
    return op_send_plainly(self, arg, r);
  if (pauses(me, self, o->only_yields(), r)) return PYGEN_NEXT;
  if (o->only_yields() && !me->base.cancel().load(std::memory_order_relaxed)) {
    o->state = OpState::done;
    *r = Py_NewRef(Py_None);
    return PYGEN_RETURN;
  }
  arrive(&me->base, o->what);
  return begun_checked(o, me, op_send_plainly(self, arg, r), r);
}

PyAsyncMethods op_async{};
PyObject* op_iternext(PyObject* self) { return iternext_by(op_async.am_send, self); }
PyObject* op_pysend(PyObject* self, PyObject*) { return send_by(op_async.am_send, self); }
PyObject* op_name(PyObject* self, void*) { return PyUnicode_FromString(op_of(self)->verb()); }
PyGetSetDef op_getset[] = {
    {"__name__", gated<op_name>, nullptr, "The name of the operation: read, write, ...", nullptr},
    {}};
PyMethodDef op_methods[] = {{"send", gated<op_pysend>, METH_O, nullptr},
                            {"throw", method(gated<throw_in<OpObject>>), METH_FASTCALL, nullptr},
                            {"close", gated<close_it<OpObject>>, METH_NOARGS, nullptr},
                            {}};

bool is_awaited_here() noexcept { return current_coroutine() || in_task(); }

PyObject* new_write(PyObject* end, PyObject* v) {
  Owned o(new_op(OpType_::write, end));
  if (!o) return nullptr;
  if (load(o->what, o->value, v) == 0) [[likely]]
    return reinterpret_cast<PyObject*>(o.release());
  o->state = OpState::done;
  return nullptr;
}

}  // namespace

// --- what the other files call ------------------------------------------------------------------

PyTypeObject OpType{PyVarObject_HEAD_INIT(nullptr, 0)};

const char* verb_of(OpType_ type) noexcept {
  switch (type) {
    case OpType_::write: return "write";
    case OpType_::extended: return "extended read";
    case OpType_::far_sync:
    case OpType_::sync: return "sync";
    case OpType_::yield: return "yield_";
    default: return "read";
  }
}

void drop_awaited_operation(PyObject* o) noexcept { drop_awaited_it<OpObject>(o); }

PyObject* new_operation(OpType_ type, PyObject* target) noexcept {
  return reinterpret_cast<PyObject*>(new_op(type, target));
}

// Runs the operation in a thread or a greenlet, which it blocks.
PyObject* block_in(OpType_ type, PyObject* target, PyObject* value) noexcept {
  Caller self(verb_of(type));
  if (!self) return nullptr;
  Operation o{target, type, false};
  CheckedCall checked(self, type == OpType_::yield);
  if (checked) [[unlikely]] {
    if (type == OpType_::yield && !self.cancelled()) Py_RETURN_NONE;
    arrive(checked.process(), o);
  }
  if (value && load(o, self.slot(), value) < 0) return nullptr;
  PyObject* r = nullptr;
  InCaller way(self, &r);
  const Owned held = new_ref(target);
  PySendResult how;
  run_to_wait(o, way, how);
  unload(o, self.slot());  // drops the value of a write that could not begin
  return checked ? checked.over(r) : r;
}

PyObject* raise_thrown(PyObject* const* args, Py_ssize_t n) {
  if (n < 1) return PyErr_Format(PyExc_TypeError, "throw() takes an exception");
  PyObject* e = args[0];
  if (PyExceptionInstance_Check(e)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(e)), e);
  } else if (PyExceptionClass_Check(e)) {
    if (n > 1 && PyExceptionInstance_Check(args[1]))
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(args[1])), args[1]);
    else
      PyErr_SetObject(e, n > 1 ? args[1] : nullptr);
  } else {
    PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
  }
  return nullptr;
}

PyObject* operation_read(PyObject* end, bool next) {
  run_deferred();
  if (check_end(end_of(end), "read") < 0) return nullptr;
  const OpType_ type = next ? OpType_::next : OpType_::read;
  if (is_awaited_here()) return new_operation(type, end);
  return observed("read", end, nullptr, [&] { return block_in(type, end, nullptr); });
}

PyObject* operation_write(PyObject* end, PyObject* v) {
  run_deferred();
  if (check_end(end_of(end), "write") < 0) return nullptr;
  if (is_awaited_here()) return new_write(end, v);
  return observed("write", end, v, [&] { return block_in(OpType_::write, end, v); });
}

PyObject* operation_sync(BarrierObject* b) {
  run_deferred();
  if (check_barrier(b, "sync") < 0) return nullptr;
  PyObject* const o = b->far ? b->far : reinterpret_cast<PyObject*>(b);
  const OpType_ type = b->far ? OpType_::far_sync : OpType_::sync;
  if (is_awaited_here()) return new_operation(type, o);
  return observed("sync", o, nullptr, [&] { return block_in(type, o, nullptr); });
}

PyObject* operation_yield() {
  run_deferred();
  if (is_awaited_here()) return new_operation(OpType_::yield, nullptr);
  return block_in(OpType_::yield, nullptr, nullptr);
}

PyObject* operation_ready(PyObject* owned) {
  Owned value(owned);
  OpObject* o = new_op(OpType_::ready, nullptr);
  if (o) o->value.o = value.release();
  return reinterpret_cast<PyObject*>(o);
}

void check_operations(bool on) noexcept {
  op_async.am_send = on            ? gated<op_send_checked>
                     : observing() ? gated<op_send_observed>
                                   : gated<op_send>;
}

void observe_operations(bool on) noexcept {
  if (checking) return;  // op_send_checked handles observers itself
  op_async.am_send = on ? gated<op_send_observed> : gated<op_send>;
}

int init_operation(PyObject* m) {
  refuse_as_result<OpObject>(OpType, op_async,
                             [](PyObject* o) noexcept { return op_of(o)->verb(); });
  op_async.am_send = gated<op_send>;
  OpType.tp_name = "weft.Operation";
  OpType.tp_basicsize = sizeof(OpObject);
  OpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  OpType.tp_dealloc = gated<op_dealloc>;
  OpType.tp_iternext = gated<op_iternext>;
  OpType.tp_methods = op_methods;
  OpType.tp_getset = op_getset;
  OpType.tp_as_async = &op_async;
  if (PyType_Ready(&OpType) < 0) return -1;
  return add_type(m, "Operation", &OpType);
}

}  // namespace weft::py
