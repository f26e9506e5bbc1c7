// Read, write, sync and their like: in a coroutine process a small awaitable from a free list, elsewhere a call that blocks (caller.cpp).
//
//   fresh ──awaited: begin()──► done (value returned or exception raised)
//     │                └──────► waiting ──resumed by the scheduler──► done
//     │                            └──throw, close, collected: withdrawn
//     └──collected: RuntimeWarning, it was never awaited
//
// The node is the process's, or in an asyncio task a Party's (asyncio.hpp); the slot is the operation's `value`.
#include "asyncio.hpp"
#include "awaiting.hpp"
#include "far.hpp"
#include "observe.hpp"
#include "wire.hpp"

namespace weft::py {

// receive and receive_next: read and next at a channel through which ends come (held.cpp); what has begun becomes that. Last, so that the
// others are told apart as if they were not there.
enum class OpType_ : std::uint8_t { read, next, write, extended, sync, yield, ready, receive, receive_next };
enum class OpState : std::uint8_t { fresh, waiting, done };

struct OpObject {
  PyObject_HEAD PyObject* target;  // the end, the barrier, the Extended
  Value value;
  ProcessObject* process;  // while waiting; not owned: it lets go first (awaiting.hpp). Null in an asyncio task
  Party* party;            // while waiting in an asyncio task; owned
  OpType_ type;
  OpState state;
  bool transit;  // the value stands for an end that was sent: see `transits`
  bool zero;     // of a write: it gives 0, as aPyCSP's does
};

struct ExtendedObject {
  PyObject_HEAD EndObject* end;
  union {
    core::Node* partner;   // the held writer (rendezvous)
    std::uint64_t number;  // far: what the home knows the read by
  };
  bool entering;  // an operation of its waits
  bool inside;
  bool entered;  // once, well or not
  bool keeps;    // far: if the block ends badly, or this program does, the value is the next to be read (WIRE.md 4.7)
};

namespace {

OpObject* op_of(PyObject* o) noexcept { return reinterpret_cast<OpObject*>(o); }
EndObject* end_of(PyObject* o) noexcept { return reinterpret_cast<EndObject*>(o); }
Core& core_of(PyObject* end) noexcept { return end_of(end)->channel->core; }

// The originals of ends that are being written, by operation: rare, so not in every operation.
std::vector<std::pair<OpObject*, PyObject*>> transits;
Transit take_transit(OpObject* o) noexcept {
  Transit t;
  if (!o->transit) return t;
  o->transit = false;
  for (auto it = transits.begin(); it != transits.end(); ++it)
    if (it->first == o) {
      t.original = it->second;
      transits.erase(it);
      break;
    }
  return t;
}

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
  o->target = Py_XNewRef(target);
  new (&o->value) Value;
  o->process = nullptr;
  o->party = nullptr;
  o->type = type;
  o->state = OpState::fresh;
  o->transit = o->zero = false;
  return o;
}

const char* verb_of(OpType_ t) noexcept {
  switch (t) {
    case OpType_::write: return "write";
    case OpType_::extended: return "extended read";
    case OpType_::sync: return "sync";
    case OpType_::yield: return "yield_";
    default: return "read";
  }
}

// --- kinds of waiting -----------------------------------------------------------------------------------------------------------------

bool withdraw_sync(ProcessBase& p) noexcept {
  if (!static_cast<BarrierCore*>(static_cast<core::Place*>(p.place))->withdraw(p)) return false;
  p.status = Status::cancelled;
  return true;
}
void visit_sync(ProcessBase& p, runtime::Places& v) { v.barrier(*static_cast<core::Place*>(p.place)); }

// An extended reader that is committed has its partner in `place`; only while queued is that the channel.
bool withdraw_extended(ProcessBase& p) noexcept { return p.is(core::NodeFlags::queued) && weft::detail::withdraw_plain<Core, Side::in>(p); }
void visit_extended(ProcessBase& p, runtime::Places& v) {
  if (p.is(core::NodeFlags::queued)) weft::detail::visit_plain<false>(p, v);
}

constexpr const runtime::OpKind& read_op = weft::detail::read_op<Core>;
constexpr const runtime::OpKind& write_op = weft::detail::write_op<Core>;
constexpr runtime::OpKind extended_op{"extended read", &withdraw_extended, &visit_extended};
// Its home decides, and its place is the channel until it runs.
constexpr runtime::OpKind far_extended_op{"extended read", &weft::detail::withdraw_plain<Core, Side::in>,
                                          &weft::detail::visit_plain<false>};
constexpr runtime::OpKind sync_op{"sync", &withdraw_sync, &visit_sync};

ExtendedObject* ext(PyObject* o) noexcept { return reinterpret_cast<ExtendedObject*>(o); }

const runtime::OpKind& op_of(const ExtendedObject* x) noexcept { return is_far(x->end->channel) ? far_extended_op : extended_op; }

// It is about to begin, at p; it has happened.
void enter_block(ExtendedObject* x, ProcessBase& p) noexcept {
  p.set(core::NodeFlags::extended | (x->keeps ? core::NodeFlags::kept : 0));
  x->entering = true;
}
void begin_block(ExtendedObject* x, ProcessBase& p) noexcept {
  if (is_far(x->end->channel))
    x->number = side_of(x->end->channel).happened(p);
  else
    x->partner = p.partner();
  x->inside = true;
}
// `back`: it was not used.
void leave_block(ExtendedObject* x, bool back = false) noexcept {
  if (!x->inside) return;
  x->inside = false;
  ChannelObject* const c = x->end->channel;
  if (is_far(c) && !of_this_fork(c)) return;  // it is the parent's
  if (is_far(c)) return side_of(c).held_end(x->number, back && x->keeps);
  core::Node n;
  n.hold(x->partner);
  c->core.end_extended(n);
}

// It was left, and has its outcome: what it took goes with it, what it gave has been given.
void drop_outcome(OpObject* o, ProcessBase& p, Status s) noexcept {
  if (o->type == OpType_::extended) {
    p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
    ext(o->target)->entering = false;
    if (s == Status::ok) {
      begin_block(ext(o->target), p);
      leave_block(ext(o->target), true);
    }
  }
  if (o->transit && s == Status::ok) take_transit(o).commit();
}
void drop_late(PyObject* o, ProcessBase& p) noexcept { drop_outcome(op_of(o), p, p.status); }

void give_up_party(OpObject* o) noexcept {
  Party* const p = o->party;
  if (!p) return;
  const Section s(p->link);
  let_waiting_task_go_on(p);
  if (p->woken) {
    drop_outcome(o, *p, p->status);
    delete std::exchange(o->party, nullptr);
  } else if (p->op->withdraw(*p)) {
    drop_outcome(o, *p, Status::cancelled);
    delete std::exchange(o->party, nullptr);
  } else if (Py_REFCNT(o) > 0) {
    p->kept = Py_NewRef(reinterpret_cast<PyObject*>(o));
  } else {  // collected, and never closed: the party stays
    o->party = nullptr;
    p->slot = new Value;
  }
}

// Withdraw what a coroutine that is closed or thrown into was waiting for.
void give_up(OpObject* o) noexcept {
  if (o->state != OpState::waiting) return;
  o->state = OpState::done;
  if (!o->process) return give_up_party(o);
  ProcessObject* const me = std::exchange(o->process, nullptr);
  if (o->type == OpType_::yield) {
    if (me->waits == reinterpret_cast<PyObject*>(o)) me->waits = nullptr;
    if (std::exchange(me->yielded, 0)) me->owed = 1;  // it is in the run queue
    return;
  }
  ProcessBase& p = me->base;
  switch (leave(me, reinterpret_cast<PyObject*>(o), [](ProcessBase& b) { return b.op->withdraw(b); })) {
    case Left::withdrawn: drop_outcome(o, p, Status::cancelled); break;
    case Left::resumed: drop_outcome(o, p, p.status); break;
    default:
      if (p.status != Status::pending)
        drop_outcome(o, p, p.status);
      else if (Py_REFCNT(o) > 0)
        keep_until_woken(me, reinterpret_cast<PyObject*>(o), &drop_late);
      else  // collected, and a partner is about to write there
        p.slot = new Value;
  }
}

void op_dealloc(PyObject* self) {
  OpObject* o = op_of(self);
  if (o->state == OpState::waiting) give_up(o);
  if (o->state == OpState::fresh && o->type != OpType_::ready) [[unlikely]] {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    PyObject* on =
        o->target && is_end(o->target) ? to_str(" on channel " + channel_name(end_of(o->target)->channel)) : PyUnicode_FromString("");
    if (!on || PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s%U was never awaited: write `await` before it", verb_of(o->type), on) < 0)
      PyErr_WriteUnraisable(Py_None);
    Py_XDECREF(on);
    PyErr_Restore(t, v, tb);
  }
  if (o->party) delete std::exchange(o->party, nullptr);
  PyObject* value = o->value.take();
  if (o->transit) [[unlikely]] {
    take_transit(o).abandon(value);
    value = nullptr;
  }
  PyObject* target = o->target;
  if (pooled < kPool) [[likely]]
    pool[pooled++] = o;
  else
    PyObject_Free(o);
  Py_XDECREF(target);
  Py_XDECREF(value);
}

// --- in a coroutine process -------------------------------------------------------------------------------------------------------------

[[gnu::noinline]] PySendResult conclude_receive(OpObject* o, ProcessBase& p, PyObject** r) {
  core_of(o->target).last_reader = p.id;
  *r = received(end_of(o->target)->channel, o->value.take());
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

// The operation has its outcome.
PySendResult conclude(OpObject* o, ProcessBase& p, Status s, PyObject** r) {
  o->state = OpState::done;
  if (s == Status::ok) [[likely]] {
    switch (o->type) {
      case OpType_::read:
      case OpType_::next:
        core_of(o->target).last_reader = p.id;
        *r = o->value.take();
        return PYGEN_RETURN;
      case OpType_::extended: {
        ExtendedObject* x = ext(o->target);
        p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
        x->entering = false;
        begin_block(x, p);
        x->end->channel->core.last_reader = p.id;
        *r = taken_from(x->end->channel, o->value.take());
        if (*r) return PYGEN_RETURN;
        leave_block(x, true);  // it cannot be unpickled: nobody will enter
        return PYGEN_ERROR;
      }
      case OpType_::write:
        core_of(o->target).last_writer = p.id;
        if (o->transit) [[unlikely]]
          take_transit(o).commit();
        if (o->value.o) Py_XDECREF(o->value.take());  // dropped by a full buffer
        if (!o->zero) return return_none(r);
        *r = PyLong_FromLong(0);
        return PYGEN_RETURN;
      default: return o->type < OpType_::receive ? return_none(r) : conclude_receive(o, p, r);
    }
  }
  *r = nullptr;
  if (o->type == OpType_::extended) {
    p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
    ext(o->target)->entering = false;
  }
  PyObject* value = nullptr;
  if (o->type == OpType_::write) {
    value = unsent(o->value.take());
    if (o->transit) {
      Transit t = take_transit(o);
      PyObject* original = Py_NewRef(t.original);
      t.abandon(value);
      value = original;
    }
  }
  if (s == Status::cancelled)
    raise_cancelled(p, value);
  else if (s == Status::retired && (o->type == OpType_::next || o->type == OpType_::receive_next))
    PyErr_SetNone(PyExc_StopAsyncIteration);
  else
    raise_end(s, o->type == OpType_::extended ? reinterpret_cast<ExtendedObject*>(o->target)->end->channel : end_of(o->target)->channel,
              verb_of(o->type), -1, value);
  Py_XDECREF(value);
  return PYGEN_ERROR;
}

// One extended read at a time: its block is left once.
int check_free(ExtendedObject* x) {
  if (check_end(x->end, "extended read") < 0) return -1;
  if (!x->entering && !x->inside) return 0;
  bad_use("an extended read that is entered already: make another, reader.extended()");
  return -1;
}

void look_at_value(OpObject* o) noexcept {
  if (o->type == OpType_::read)
    o->type = OpType_::receive;
  else if (o->type == OpType_::next)
    o->type = OpType_::receive_next;
}

// Begins the operation, which is the caller's to conclude; null `kind`: an exception is set. `P`: the process, or a Party.
template <class P>
Status begin_op(OpObject* o, P& p, const runtime::OpKind*& kind) {
  constexpr bool foreign = std::is_same_v<P, Party>;
  const auto read = [&](Core& c) {
    if constexpr (foreign)
      return c.begin_foreign(p);
    else
      return c.template begin<Side::in>(p);
  };
  kind = nullptr;
  switch (o->type) {
    case OpType_::read:
    case OpType_::next:
      if (const int how = check_end(end_of(o->target), "read"); how != 0) [[unlikely]] {
        if (how < 0) return Status::pending;
        look_at_value(o);
      }
      p.slot = &o->value;
      kind = &read_op;
      return read(core_of(o->target));
    case OpType_::write:
      if (const int how = check_end(end_of(o->target), "write"); how != 0) [[unlikely]] {
        ChannelObject* const c = end_of(o->target)->channel;
        if (how < 0 || (packs(c) && !(o->value.o = pack(c, o->value.take())))) return Status::pending;
      }
      p.slot = &o->value;
      kind = &write_op;
      return core_of(o->target).begin<Side::out>(p);
    case OpType_::extended: {
      ExtendedObject* x = ext(o->target);
      if (check_free(x) < 0) return Status::pending;
      p.slot = &o->value;
      enter_block(x, p);
      kind = &op_of(x);
      return read(x->end->channel->core);
    }
    default: {
      BarrierCore& b = reinterpret_cast<BarrierObject*>(o->target)->core;
      if (b.enrolled() == 0) {
        bad_use("sync on a barrier with nobody enrolled: make it with parties, or enrol() first");
        return Status::pending;
      }
      kind = &sync_op;
      return b.begin_sync(p);
    }
  }
}

// --- in an asyncio task -----------------------------------------------------------------------------------------------------------------

PySendResult op_send(PyObject* self, PyObject*, PyObject** r);

PySendResult conclude_party(OpObject* o, Status s, PyObject** r) {
  const std::unique_ptr<Party> p(std::exchange(o->party, nullptr));
  if (o->type <= OpType_::next && (end_of(o->target)->channel->generation & kCarries)) look_at_value(o);  // since it began
  const bool withdrawn = p->owed && s == Status::cancelled;  // at a far end: only the answer tells
  if (p->owed && !withdrawn) owe_cancellation();
  const PySendResult how = conclude(o, *p, s, r);
  if (withdrawn) raise_cancellation();
  return how;
}

PySendResult party_begin(OpObject* o, PyObject** r) {
  o->state = OpState::done;
  std::unique_ptr<Party> p = begin_party(verb_of(o->type));
  if (!p) return PYGEN_ERROR;
  const Section section(p->link);
  settle();
  if (o->type == OpType_::yield) {  // asyncio's own: the other callbacks run
    o->state = OpState::waiting;
    o->value.o = PyLong_FromVoidPtr(const_cast<void*>(p->task));  // whose it is
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  const Status s = begin_op(o, *p, p->op);
  if (!p->op) return PYGEN_ERROR;
  if (s != Status::pending) return conclude(o, *p, s, r);
  o->party = p.release();
  o->state = OpState::waiting;
  return o->party->await(r);
}

// Of an operation that waits in a task: is it this one?
bool is_mine(OpObject* o) noexcept { return o->party ? o->party->is_mine() : o->value.o && PyLong_AsVoidPtr(o->value.o) == current_task(); }

// The future is done: told to look, or decided.
PySendResult party_resume(OpObject* o, PyObject** r) {
  Party* p = o->party;
  if (!is_mine(o)) {
    being_awaited(verb_of(o->type), nullptr);
    return PYGEN_ERROR;
  }
  if (!p) {  // yield_
    o->state = OpState::done;
    return return_none(r);
  }
  const Section section(p->link);
  if (p->woken) return conclude_party(o, p->status, r);
  if (p->is(core::NodeFlags::foreign)) {
    Core& c = o->type == OpType_::extended ? ext(o->target)->end->channel->core : core_of(o->target);
    switch (c.take(*p, core::Free{})) {
      case core::Try::committed: return conclude_party(o, Status::ok, r);
      case core::Try::ended: return conclude_party(o, p->status, r);
      default: break;
    }
  }
  return p->await(r);
}

PyObject* party_throw(OpObject* o, PyObject* const* args, Py_ssize_t n) {
  Party* p = o->party;
  if (!is_mine(o)) return being_awaited(verb_of(o->type), nullptr);
  if (!p || !is_cancellation(args, n)) {
    give_up(o);
    return raise_thrown(args, n);
  }
  const Section section(p->link);
  if (p->woken) {
    p->owed = true;
    return send_by(op_send, reinterpret_cast<PyObject*>(o));
  }
  if (!p->op->withdraw(*p)) {  // committed, and held: by an extended read, or for a value that is being made
    p->owed = true;
    PyObject* r;
    return p->await(&r) == PYGEN_NEXT ? r : nullptr;
  }
  o->state = OpState::done;  // withdrawn above: not given up, which would withdraw it again and take it for one that a partner holds
  drop_outcome(o, *p, Status::cancelled);
  delete std::exchange(o->party, nullptr);
  return raise_thrown(args, n);
}

// --- in a coroutine process, again ------------------------------------------------------------------------------------------------------

PySendResult op_send(PyObject* self, PyObject*, PyObject** r) {
  OpObject* o = op_of(self);
  *r = nullptr;
  if (o->state == OpState::waiting) {
    if (!o->process) [[unlikely]]
      return party_resume(o, r);
    ProcessObject* const me = o->process;
    if (!resumed(me, self) || me->yielded) [[unlikely]] {
      being_awaited(verb_of(o->type), me);
      return PYGEN_ERROR;
    }
    ProcessBase& p = me->base;
    me->waits = nullptr;
    o->process = nullptr;
    if (o->type == OpType_::yield) {
      o->state = OpState::done;
      return return_none(r);
    }
    return conclude(o, p, p.status, r);
  }
  if (o->state == OpState::done) [[unlikely]] {
    bad_use("%s was awaited already: make another operation", verb_of(o->type));
    return PYGEN_ERROR;
  }
  if (o->type == OpType_::ready) {
    o->state = OpState::done;
    *r = o->value.take();
    return PYGEN_RETURN;
  }
  ProcessObject* self_process = current_coroutine();
  if (!self_process) [[unlikely]]
    return party_begin(o, r);
  ProcessBase& p = self_process->base;
  if (woken_first(self_process)) [[unlikely]] {
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  o->state = OpState::done;
  settle();
  if (p.op) [[unlikely]] {
    bad_use("%s while another operation of this process waits: a process does one thing at a time; use select or Parallel",
            verb_of(o->type));
    return PYGEN_ERROR;
  }
  if (p.cancel().load(std::memory_order_relaxed) != 0) [[unlikely]]
    return conclude(o, p, Status::cancelled, r);
  if (o->type == OpType_::yield) {
    self_process->yielded = 1;
    self_process->waits = self;
    o->process = self_process;
    o->state = OpState::waiting;
    runtime::Scheduler::current()->push(&p);
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  const runtime::OpKind* kind;
  const Status s = begin_op(o, p, kind);
  if (!kind) [[unlikely]]
    return PYGEN_ERROR;
  if (s == Status::pending) {
    await_in(self_process, self, kind);
    o->process = self_process;
    o->state = OpState::waiting;
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  return conclude(o, p, s, r);
}

// Takes the place of op_send while somebody observes.
PySendResult op_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  OpObject* o = op_of(self);
  if (o->type == OpType_::ready || o->state == OpState::done) return op_send(self, arg, r);
  PyObject* target = o->type == OpType_::extended ? reinterpret_cast<PyObject*>(ext(o->target)->end) : o->target;
  if (o->state == OpState::fresh) observe("begin", verb_of(o->type), target, o->value.o);
  const PySendResult s = op_send(self, arg, r);
  observe_sent(s, verb_of(o->type), target, *r);
  return s;
}

PyAsyncMethods op_async{};
PyObject* op_iternext(PyObject* self) { return iternext_by(op_async.am_send, self); }
PyObject* op_pysend(PyObject* self, PyObject*) { return send_by(op_async.am_send, self); }
PyObject* op_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  OpObject* o = op_of(self);
  if (o->state == OpState::waiting && !o->process) return party_throw(o, args, n);
  if (o->state == OpState::waiting && !driven_by(o->process)) return being_awaited(verb_of(o->type), o->process);
  give_up(o);
  o->state = OpState::done;
  return raise_thrown(args, n);
}
PyObject* op_close(PyObject* self, PyObject*) {
  OpObject* o = op_of(self);
  if (o->state == OpState::waiting) {
    if (o->process && !driven_by(o->process)) return being_awaited(verb_of(o->type), o->process);
    if (o->party && !o->party->is_mine() && task_lives(o->party)) return being_awaited(verb_of(o->type), nullptr);
  }
  give_up(o);
  o->state = OpState::done;
  Py_RETURN_NONE;
}
PyObject* op_name(PyObject* self, void*) { return PyUnicode_FromString(verb_of(op_of(self)->type)); }
PyGetSetDef op_getset[] = {{"__name__", gated<op_name>, nullptr, "What it does: read, write, ...", nullptr}, {}};
PyMethodDef op_methods[] = {{"send", gated<op_pysend>, METH_O, nullptr},
                            {"throw", method(gated<op_throw>), METH_FASTCALL, nullptr},
                            {"close", gated<op_close>, METH_NOARGS, nullptr},
                            {}};

// --- in a thread or a greenlet
// ------------------------------------------------------------------------------------------------------------------

PyObject* failed_here(Caller& self, Status s, EndObject* e, const char* verb, bool next, PyObject* value) {
  if (s == Status::cancelled) return self.withdrawn(value);
  if (s == Status::retired && next) return nullptr;  // the end of an iteration
  return raise_end(s, e->channel, verb, -1, value);
}

PyObject* blocking_read(PyObject* end, bool next) {
  Caller self("read");
  if (!self) return nullptr;
  if (self.cancelled()) return self.withdrawn(nullptr);
  ProcessBase& p = self.process();
  p.slot = &self.slot();
  Core& c = core_of(end);
  Py_INCREF(end);
  const Status s = self.wait(c.begin<Side::in>(p), read_op);
  PyObject* r;
  if (s == Status::ok) {
    c.last_reader = p.id;
    r = taken_from(end_of(end)->channel, self.slot().take());
  } else {
    r = failed_here(self, s, end_of(end), "read", next, nullptr);
  }
  Py_DECREF(end);
  return self.give(r);
}

PyObject* blocking_write(PyObject* end, PyObject* v) {
  Caller self("write");
  if (!self) return nullptr;
  if (self.cancelled()) return self.withdrawn(v);
  Transit t;
  PyObject* send;
  if (Transit::prepare(v, t, send) < 0) return nullptr;
  if (t.original) [[unlikely]]
    carry_ends(end_of(end)->channel);
  if (packs(end_of(end)->channel) && !(send = pack(end_of(end)->channel, send))) {
    t.abandon(nullptr);
    return nullptr;
  }
  ProcessBase& p = self.process();
  Value& slot = self.slot();
  slot.o = send;
  p.slot = &slot;
  Core& c = core_of(end);
  Py_INCREF(end);
  const Status s = self.wait(c.begin<Side::out>(p), write_op);
  PyObject* r = nullptr;
  if (s == Status::ok) {
    c.last_writer = p.id;
    t.commit();
    Py_XDECREF(slot.take());
    r = Py_NewRef(Py_None);
  } else {
    if (t.original)
      t.abandon(slot.take());
    else
      Py_XDECREF(slot.take());
    failed_here(self, s, end_of(end), "write", false, v);
  }
  Py_DECREF(end);
  return self.give(r);
}

// --- extended reads (rule 1.6) ----------------------------------------------------------------------------------------------------------

void extended_dealloc(PyObject* o) {
  if (!ext(o)->entered) [[unlikely]] {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "extended read on channel %s was never entered: write `async with` before it (`with` where operations block)",
                         channel_name(ext(o)->end->channel).c_str()) < 0)
      PyErr_WriteUnraisable(Py_None);
    PyErr_Restore(t, v, tb);
  }
  leave_block(ext(o), true);
  Py_DECREF(reinterpret_cast<PyObject*>(ext(o)->end));
  PyObject_Free(o);
}
PyObject* extended_await(PyObject* o) {
  ext(o)->entered = true;  // said already
  return bad_use("an extended read is a block: write `async with reader.extended() as value:`");
}
PyObject* extended_aenter(PyObject* o, PyObject*) {
  ext(o)->entered = true;
  if (!current_coroutine() && !in_task()) return bad_use("async with over an extended read is for coroutine processes: use with");
  return reinterpret_cast<PyObject*>(new_op(OpType_::extended, o));
}
// Of the arguments of __exit__: did an exception leave the block?
bool failed(PyObject* args) noexcept { return PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None; }

PyObject* extended_aexit(PyObject* o, PyObject* args) {
  leave_block(ext(o), failed(args));
  return operation_ready(Py_NewRef(Py_None));
}
PyObject* enter_extended(PyObject* o) {
  ext(o)->entered = true;
  if (current_coroutine()) return bad_use("with over an extended read blocks: in a coroutine process use `async with`");
  settle();
  if (check_free(ext(o)) < 0) return nullptr;
  Caller self("extended read");
  if (!self) return nullptr;
  if (self.cancelled()) return self.withdrawn(nullptr);
  ProcessBase& p = self.process();
  p.slot = &self.slot();
  Core& c = ext(o)->end->channel->core;
  enter_block(ext(o), p);
  Py_INCREF(o);
  const Status s = self.wait(c.begin<Side::in>(p), op_of(ext(o)));
  ext(o)->entering = false;
  p.clear(core::NodeFlags::extended | core::NodeFlags::kept);
  PyObject* r;
  if (s != Status::ok) {
    r = failed_here(self, s, ext(o)->end, "extended read", false, nullptr);
  } else {
    c.last_reader = p.id;
    begin_block(ext(o), p);
    r = self.give(taken_from(ext(o)->end->channel, self.slot().take()));
    if (!r) leave_block(ext(o), true);
  }
  Py_DECREF(o);
  return r;
}
PyObject* extended_enter(PyObject* o, PyObject*) {
  return observed("extended read", reinterpret_cast<PyObject*>(ext(o)->end), nullptr, [&] { return enter_extended(o); });
}
PyObject* extended_exit(PyObject* o, PyObject* args) {
  leave_block(ext(o), failed(args));
  settle();
  Py_RETURN_NONE;
}
PyMethodDef extended_methods[] = {{"__aenter__", gated<extended_aenter>, METH_NOARGS, nullptr},
                                  {"__aexit__", gated<extended_aexit>, METH_VARARGS, nullptr},
                                  {"__enter__", gated<extended_enter>, METH_NOARGS, nullptr},
                                  {"__exit__", gated<extended_exit>, METH_VARARGS, nullptr},
                                  {}};

}  // namespace

PyTypeObject OpType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ExtendedType{PyVarObject_HEAD_INIT(nullptr, 0)};

PySendResult return_none(PyObject** r) noexcept {
  *r = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

void look_at_value(ProcessObject* p) noexcept {
  if (p->base.op == &read_op && p->waits) look_at_value(op_of(p->waits));
}

void forsake_operation(PyObject* o) noexcept {
  Py_INCREF(o);
  give_up(op_of(o));
  Py_DECREF(o);
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
  settle();
  if (check_end(end_of(end), "read") < 0) return nullptr;
  if (current_coroutine() || in_task()) return reinterpret_cast<PyObject*>(new_op(next ? OpType_::next : OpType_::read, end));
  return observed("read", end, nullptr, [&] { return blocking_read(end, next); });
}

static PyObject* new_write(PyObject* end, PyObject* v, bool zero) {
  OpObject* o = new_op(OpType_::write, end);
  if (!o) return nullptr;
  o->zero = zero;
  if (!is_end(v)) [[likely]] {
    o->value.o = Py_NewRef(v);
    return reinterpret_cast<PyObject*>(o);
  }
  Transit t;
  PyObject* send;
  if (Transit::prepare(v, t, send) < 0) {
    o->state = OpState::done;
    Py_DECREF(o);
    return nullptr;
  }
  carry_ends(end_of(end)->channel);
  o->value.o = send;
  o->transit = true;
  transits.emplace_back(o, t.original);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* operation_write(PyObject* end, PyObject* v) {
  settle();
  if (check_end(end_of(end), "write") < 0) return nullptr;
  if (!current_coroutine() && !in_task()) return observed("write", end, v, [&] { return blocking_write(end, v); });
  return new_write(end, v, false);
}

PyObject* operation_write_zero(PyObject* end, PyObject* v) {
  settle();
  if (check_end(end_of(end), "write") < 0) return nullptr;
  return new_write(end, v, true);
}

static PyObject* blocking_sync(BarrierObject* b) {
  Caller self("sync");
  if (!self) return nullptr;
  if (b->core.enrolled() == 0) return bad_use("sync on a barrier with nobody enrolled: make it with parties, or enrol() first");
  if (self.cancelled()) return self.withdrawn(nullptr);
  Py_INCREF(reinterpret_cast<PyObject*>(b));
  const Status s = self.wait(b->core.begin_sync(self.process()), sync_op);
  Py_DECREF(reinterpret_cast<PyObject*>(b));
  if (s == Status::cancelled) return self.withdrawn(nullptr);
  return self.give(Py_NewRef(Py_None));
}

PyObject* operation_sync(BarrierObject* b) {
  settle();
  PyObject* o = reinterpret_cast<PyObject*>(b);
  if (current_coroutine() || in_task()) return reinterpret_cast<PyObject*>(new_op(OpType_::sync, o));
  return observed("sync", o, nullptr, [&] { return blocking_sync(b); });
}

void observe_operations(bool on) noexcept { op_async.am_send = on ? gated<op_send_observed> : gated<op_send>; }

PyObject* operation_ready(PyObject* owned) {
  OpObject* o = new_op(OpType_::ready, nullptr);
  if (!o) {
    Py_XDECREF(owned);
    return nullptr;
  }
  o->value.o = owned;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* operation_yield() {
  settle();
  if (current_coroutine() || in_task()) return reinterpret_cast<PyObject*>(new_op(OpType_::yield, nullptr));
  Caller self("yield_");
  if (!self) return nullptr;
  if (self.cancelled()) return self.withdrawn(nullptr);
  self.yield();
  return self.give(Py_NewRef(Py_None));
}

PyObject* extended_new(PyObject* end, bool keeps) {
  settle();
  if (check_end(end_of(end), "extended read") < 0) return nullptr;
  if (keeps && !is_far(end_of(end)->channel))
    return bad_use("extended read on channel %s: redeliver=True is for a reader end in another OS process; here nobody dies alone",
                   channel_name(end_of(end)->channel).c_str());
  ExtendedObject* x = PyObject_New(ExtendedObject, &ExtendedType);
  if (!x) return nullptr;
  x->end = end_of(Py_NewRef(end));
  x->number = 0;
  x->partner = nullptr;
  x->entering = x->inside = x->entered = false;
  x->keeps = keeps;
  return reinterpret_cast<PyObject*>(x);
}

int init_operation(PyObject* m) {
  op_async.am_await = PyObject_SelfIter;
  op_async.am_send = gated<op_send>;
  OpType.tp_name = "weft.Operation";
  OpType.tp_basicsize = sizeof(OpObject);
  OpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  OpType.tp_dealloc = gated<op_dealloc>;
  OpType.tp_iter = PyObject_SelfIter;
  OpType.tp_iternext = gated<op_iternext>;
  OpType.tp_methods = op_methods;
  OpType.tp_getset = op_getset;
  OpType.tp_as_async = &op_async;
  ExtendedType.tp_name = "weft.Extended";
  ExtendedType.tp_basicsize = sizeof(ExtendedObject);
  ExtendedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ExtendedType.tp_dealloc = gated<extended_dealloc>;
  ExtendedType.tp_methods = extended_methods;
  static PyAsyncMethods extended_async{};
  extended_async.am_await = gated<extended_await>;
  ExtendedType.tp_as_async = &extended_async;
  if (PyType_Ready(&OpType) < 0 || PyType_Ready(&ExtendedType) < 0) return -1;
  return add_type(m, "Operation", &OpType);
}

}  // namespace weft::py
