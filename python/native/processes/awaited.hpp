// The states of an awaited operation. Each type of operation has its own begin() and go_on(). This
// file contains what all types share: the rules for the code that may step an operation, and the
// treatment of an operation that is left before it has ended.
//
//   fresh ──send()──► begin() ──► done (a value is returned, or an exception raised)
//     │                  ├──► gives_way: ended; the next step gives the outcome ──send()──► done
//     │                  └──► waiting │ held ──send(): go_on()──► done │ waiting │ held
//     │                           ├──throw_in()──► done: withdrawn, or it was left
//     │                           │         └──► waiting yet: a task's, committed; it completes, and
//     │                           │              the cancellation follows (rule 6.3)
//     │                           └──close_it(), collected, forsaken: leave_it()──► done
//     └──collected: RuntimeWarning, it was never awaited
//
//   deciding: user code runs within begin() or go_on(). No other code may step the operation.
//   gives_way: many operations have completed at once, so that others run now (rule 7.7). The
//   operation cannot be cancelled in this state, unless it is a yield of the program's own
//   (only_yields()).
//
// Invariants
//  1 While the operation waits, is held or gives way, either `process` or `task_waiter` is set;
//    while the operation gives way, the one that is set holds its Outcome. Otherwise `task_waiter`
//    is null, with one exception: if the operation was left while a partner holds it, `task_waiter`
//    is null only from the wake-up on.
//  2 An operation that is left before its commit is withdrawn. If it is left after the commit,
//    over() is called once its outcome is known. While a partner holds it, it stays until the
//    wake-up: with a process (keep_until_woken), or as `kept` of the task waiter. If it is being
//    collected, its heir() stays instead.
//
// An object D has `state`, `process`, `task_waiter`, and
//   const char* verb()              what the operation does, for messages
//   PySendResult begin(W&), go_on(W&)   W: a way of waiting (ways.hpp)
//   bool is_mine()                  for an operation that waits in a task: whether that task runs
//   bool with_partner(ProcessBase&) for one that has committed: whether a partner still holds it
//   void over(ProcessBase&, Status) called when the operation was left, and has this outcome
//   Late leave_to_partner()         for one left while a partner holds it: what to do at wake-up
//   D* heir(ProcessBase&)           the same, while it is collected: a new object in its place
//   bool only_yields()              whether the operation is a yield
#pragma once
#include "channels/operations.hpp"
#include "checking/points.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/returned.hpp"
#include "processes/ways.hpp"
#include "watching/observe.hpp"

namespace weft::py {

enum class OpState : std::uint8_t { fresh, waiting, held, gives_way, deciding, done };

inline bool is_parked(OpState s) noexcept {
  return s >= OpState::waiting && s <= OpState::gives_way;
}

template <class D>
PyObject* object_of_op(D* o) noexcept {
  return reinterpret_cast<PyObject*>(o);
}

// Returns the outcome of an operation that gives way.
template <class D>
Outcome& outcome_of(D* o) noexcept {
  // one of the two is set: NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn)
  return o->process ? o->process->rare->kept : o->task_waiter->outcome;
}

template <class D>
void drop_task_waiter(D* o) noexcept {
  if (!is_parked(o->state) && o->task_waiter && !o->task_waiter->kept)
    delete std::exchange(o->task_waiter, nullptr);
}

template <class D>
void leave_task(D* o) noexcept {
  TaskWaiter* const p = o->task_waiter;
  const Section section(p->link);
  let_waiting_task_go_on(p);
  if (p->woken || p->op->withdraw(*p) || p->woken) {
    o->over(*p, p->woken ? p->status : Status::cancelled);
    return drop_task_waiter(o);
  }
  p->late = o->leave_to_partner();
  o->state = OpState::done;
  if (Py_REFCNT(o) > 0) {
    p->kept = Py_NewRef(object_of_op(o));
  } else {  // collected without having been closed
    o->task_waiter = nullptr;
    D* const heir = o->heir(*p);
    heir->task_waiter = p;
    p->kept = object_of_op(heir);
  }
}

// Drops the outcome of an operation that has ended but has not given the outcome to its process or
// task, which is still running.
template <class D>
void leave_outcome(D* o) noexcept {
  outcome_of(o).drop();
  o->state = OpState::done;
  ProcessObject* const me = std::exchange(o->process, nullptr);
  if (!me) return drop_task_waiter(o);
  if (me->waits == object_of_op(o)) me->waits = nullptr;
  if (std::exchange(me->yielded, 0)) me->owed = 1;
}

// Called when the operation is no longer awaited.
template <class D>
void leave_it(D* o) noexcept {
  if (!is_parked(o->state)) return;
  if (o->state == OpState::gives_way) return leave_outcome(o);
  ProcessObject* const me = std::exchange(o->process, nullptr);
  if (!me) return leave_task(o);
  ProcessBase& p = me->base;
  const Left how = leave(me, object_of_op(o), [](ProcessBase& b) { return b.op->withdraw(b); });
  if (how == Left::withdrawn) return o->over(p, Status::cancelled);
  if (how == Left::resumed || !o->with_partner(p)) return o->over(p, p.status);
  const Late late = o->leave_to_partner();
  o->state = OpState::done;
  PyObject* const stays = Py_REFCNT(o) > 0 ? Py_NewRef(object_of_op(o)) : object_of_op(o->heir(p));
  keep_until_woken(me, stays, late);
}

// Called when a process has ended, and left the operation.
template <class D>
void drop_awaited_it(PyObject* self) noexcept {
  D* o = reinterpret_cast<D*>(self);
  const Owned held = new_ref(self);
  leave_it(o);
  o->state = OpState::done;
}

// Called when the operation has begun; `how` says whether it has ended. An operation that has ended
// gives way if it must (rule 7.7).
template <class D, class W>
[[gnu::always_inline]] inline PySendResult begun(D* o, W& way, PySendResult how, PyObject** r) {
  if (how == PYGEN_NEXT || !way.at_once()) [[likely]]
    return how;
  o->state = OpState::gives_way;
  way.give_way(how == PYGEN_RETURN ? *r : nullptr);
  return way.suspended();
}
// While the program is checked: returns whether another process runs before the operation begins.
inline bool pauses(ProcessObject* me, PyObject* operation, bool yields, PyObject** r) {
  if (!checking->pauses(&me->base, operation, yields)) return false;
  me->yielded = 1;
  *r = Py_NewRef(Py_None);
  return true;
}
// Like pauses(), but called after the operation has begun. If `how` says that the operation has
// ended, another process can run first, and the operation gives way.
template <class D>
[[gnu::noinline]] PySendResult begun_checked(D* o, ProcessObject* me, PySendResult how,
                                             PyObject** r) {
  me->base.line.begin_anew();  // only the check decides that an operation gives way
  if (!checking) return how;
  Outcome outcome;
  if (how != PYGEN_NEXT) outcome.keep(*r);
  const Begun as = how == PYGEN_NEXT ? Begun::parked : *r ? Begun::done : Begun::raised;
  if (!checking->begun(&me->base, as)) {
    if (how != PYGEN_NEXT) *r = outcome.take();
    return how;
  }
  if (!me->rare) me->rare = new Rare;
  me->rare->kept = std::move(outcome);
  me->yielded = 2;
  me->waits = object_of_op(o);
  o->process = me;
  o->state = OpState::gives_way;
  *r = Py_NewRef(Py_None);
  return PYGEN_NEXT;
}
// Called when an operation that has given way is stepped again.
template <class D>
[[gnu::noinline]] PySendResult tell_outcome(D* o, PyObject** r) {
  ProcessObject* const me = o->process;
  if (me ? !resumed(me, object_of_op(o)) || me->yielded : !o->is_mine()) {
    being_awaited(o->verb(), me);
    return PYGEN_ERROR;
  }
  *r = outcome_of(o).take();
  o->state = OpState::done;
  o->process = nullptr;
  if (me)
    me->waits = nullptr;
  else
    drop_task_waiter(o);
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

// Reports the outcome of a step to observers. To observers, an operation that gives way has ended.
template <class D>
void observe_step(D* o, PySendResult s, PyObject* target, PyObject* result) {
  if (s != PYGEN_NEXT || o->state != OpState::gives_way || o->only_yields())
    return observe_sent(s, o->verb(), target, result);
  Outcome& kept = outcome_of(o);
  PyObject* const value = kept.take();
  observe_sent(value ? PYGEN_RETURN : PYGEN_ERROR, o->verb(), target, value);
  kept.keep(value);
}

template <class D>
[[gnu::noinline]] PySendResult begin_in_task(D* o, PyObject** r) {
  o->state = OpState::done;
  std::unique_ptr<TaskWaiter> p = begin_task_waiter(o->verb());
  if (!p) return PYGEN_ERROR;
  const Section section(p->link);
  run_deferred();
  o->task_waiter = p.release();
  InTask<D> way(o, r);
  const PySendResult how = begun(o, way, o->begin(way), r);
  drop_task_waiter(o);
  return how;
}

// Called when the task's future is done: either the operation has its outcome, or it has to check
// again.
template <class D>
[[gnu::noinline]] PySendResult go_on_in_task(D* o, PyObject** r) {
  if (!o->is_mine()) {
    being_awaited(o->verb(), nullptr);
    return PYGEN_ERROR;
  }
  const Section section(o->task_waiter ? o->task_waiter->link : nullptr);
  InTask<D> way(o, r);
  const PySendResult how = o->go_on(way);
  drop_task_waiter(o);
  return how;
}

template <class D>
[[gnu::always_inline]] inline PySendResult send(PyObject* self, PyObject*, PyObject** r) {
  D* o = reinterpret_cast<D*>(self);
  *r = nullptr;
  switch (o->state) {
    case OpState::waiting:
    case OpState::held: {
      ProcessObject* const me = o->process;
      if (!me) [[unlikely]]
        return go_on_in_task(o, r);
      if (!resumed(me, self) || me->yielded) [[unlikely]] {
        being_awaited(o->verb(), me);
        return PYGEN_ERROR;
      }
      me->waits = nullptr;
      o->process = nullptr;
      InProcess<D> way(o, me, r);
      return o->go_on(way);
    }
    case OpState::gives_way: return tell_outcome(o, r);
    case OpState::deciding: being_awaited(o->verb(), nullptr); return PYGEN_ERROR;
    case OpState::done:
      bad_use("%s was awaited already: make another operation", o->verb());
      return PYGEN_ERROR;
    default: break;
  }
  ProcessObject* const me = current_coroutine();
  if (!me) [[unlikely]]
    return begin_in_task(o, r);
  InProcess<D> way(o, me, r);
  if (woken_first(me)) [[unlikely]]
    return way.suspended();
  o->state = OpState::done;
  run_deferred();
  if (me->base.op) [[unlikely]] {
    bad_use(
        "%s while another operation of this process waits: a process does one thing at a time; "
        "use select or Parallel",
        o->verb());
    return PYGEN_ERROR;
  }
  return begun(o, way, o->begin(way), r);
}

// Called when asyncio cancels a task that waits.
template <class D>
PyObject* cancel_in_task(D* o, TaskWaiter* p, PyObject* const* args, Py_ssize_t n) {
  const Section section(p->link);
  if (p->woken || !p->op->withdraw(*p)) {  // the operation has committed
    p->owed = true;
    if (p->woken) return send_by(&send<D>, object_of_op(o));
    PyObject* r;
    return p->await(&r) == PYGEN_NEXT ? r : nullptr;
  }
  o->over(*p, Status::cancelled);  // the operation was withdrawn, so leave_it() must not withdraw
                                   // it again
  drop_task_waiter(o);
  return raise_thrown(args, n);
}

template <class D>
PyObject* throw_in(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  D* o = reinterpret_cast<D*>(self);
  if (o->state == OpState::deciding) return being_awaited(o->verb(), nullptr);
  if (is_parked(o->state)) {
    if (o->process ? !driven_by(o->process) : !o->is_mine())
      return being_awaited(o->verb(), o->process);
    TaskWaiter* const p = o->task_waiter;
    if (p && o->state == OpState::gives_way && !o->only_yields() && is_cancellation(args, n)) {
      owe_cancellation();
      return send_by(&send<D>, self);
    }
    if (p && o->state != OpState::gives_way && is_cancellation(args, n))
      return cancel_in_task(o, p, args, n);
  }
  leave_it(o);
  o->state = OpState::done;
  return raise_thrown(args, n);
}

template <class D>
PyObject* close_it(PyObject* self, PyObject*) {
  D* o = reinterpret_cast<D*>(self);
  if (o->state == OpState::deciding) return being_awaited(o->verb(), nullptr);
  if (is_parked(o->state)) {
    if (o->process && !driven_by(o->process)) return being_awaited(o->verb(), o->process);
    if (o->task_waiter && !o->task_waiter->is_mine() && task_lives(o->task_waiter))
      return being_awaited(o->verb(), nullptr);
  }
  leave_it(o);
  o->state = OpState::done;
  Py_RETURN_NONE;
}

}  // namespace weft::py
