// A process of a network that is a guest of asyncio (rules 13.1, 13.4). To the loop this process is
// a task, which may await the loop's futures.
//
//   join_guest() ──► between steps ──guest_await()──► parked on a future ──future_done() │ withdraw_await()──► guest_begin() ─┐
//                       │   ▲─────────────────────────────────────────────────────────────────────────────────────────────────┘
//                       └──ended: leave_guest()
//
// asyncio cancels the process by _task_cancel(). If the process waits for a future, the future is
// cancelled; if the process waits in an operation, the operation is withdrawn; otherwise the
// cancellation takes effect at the process's next point (rules 6.1 to 6.3).
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "processes/asyncio.hpp"
#include "processes/awaiting.hpp"
#include "processes/guest.hpp"
#include "processes/guests.hpp"
#include "processes/limit.hpp"
#include "processes/signals_held.hpp"

namespace weft::py {
namespace {

// Withdraws a process from a future that is not done. (The process drops the future when it runs,
// because no Python code must run here.)
bool withdraw_await(ProcessBase& p) noexcept {
  if (p.status != Status::pending) return false;
  p.status = Status::cancelled;
  return true;
}
constexpr runtime::OpKind await_op{"await", &withdraw_await, nullptr};

PyObject* future_done(PyObject* self, PyObject* future) {
  ProcessObject* p = proc(self);
  GuestPart* part = p->guest;
  if (!part || part->future != future || p->base.status != Status::pending) Py_RETURN_NONE;
  GuestObject* g = part->guest.get();
  p->base.status = Status::ok;
  if (g->in_turn) {
    p->base.ops->wake(&p->base);
    Py_RETURN_NONE;
  }
  const Owned held = new_ref(g);
  const Section s(g->link);
  p->base.ops->wake(&p->base);
  turn_at_once(g);
  Py_RETURN_NONE;
}
PyMethodDef wakeup_def{"weft_wakeup", gated<future_done>, METH_O, nullptr};

void let_go_of_future(GuestPart* part, PyObject* future) noexcept {
  Owned r(with_signals_held([&] {
    return PyObject_CallMethodOneArg(future, names.remove_done_callback, part->wakeup.get());
  }));
  r.reset(with_signals_held([&] { return PyObject_CallMethodNoArgs(future, names.cancel); }));
}

bool cancel_future(GuestPart* part) noexcept {
  const Owned f = new_ref(part->future.get());
  const Owned r(with_signals_held([&] {
    return part->message ? PyObject_CallMethodOneArg(f.get(), names.cancel, part->message.get())
                         : PyObject_CallMethodNoArgs(f.get(), names.cancel);
  }));
  return r == Py_True;
}

ProcessObject* process_with_task(PyObject* o) {
  if (!Py_IS_TYPE(o, &ProcessType) || !proc(o)->guest) return nullptr;
  return proc(o);
}

// _task_cancel(process, message): asyncio's request to cancel the process.
PyObject* f_task_cancel(PyObject*, PyObject* args) {
  PyObject *o, *message;
  if (!PyArg_ParseTuple(args, "OO", &o, &message)) return nullptr;
  ProcessObject* p = process_with_task(o);
  if (!p) Py_RETURN_FALSE;
  GuestPart* part = p->guest;
  const Section s(part->guest->link);
  part->message = new_ref(message == Py_None ? nullptr : message);
  if (p->base.op == &await_op && p->base.status == Status::pending && cancel_future(part))
    Py_RETURN_TRUE;
  part->must_cancel = true;
  p->base.cancel().fetch_or(runtime::Identity::Cancel::host);
  if (p->base.op && p->base.op != &await_op && p->base.op->withdraw(p->base)) {
    part->interrupted = true;
    p->base.ops->wake(&p->base);
  }
  Py_RETURN_TRUE;
}
// _task_uncancel(process): withdraws asyncio's request to cancel.
PyObject* f_task_uncancel(PyObject*, PyObject* o) {
  if (ProcessObject* p = process_with_task(o)) {
    p->guest->must_cancel = false;
    p->base.cancel().take_back(runtime::Identity::Cancel::host);
  }
  Py_RETURN_NONE;
}
// _task_state(process): returns the future that the process awaits, and must_cancel.
PyObject* f_task_state(PyObject*, PyObject* o) {
  ProcessObject* p = process_with_task(o);
  PyObject* f = p && p->guest->future ? p->guest->future.get() : Py_None;
  return PyTuple_Pack(2, f, p && p->guest->must_cancel ? Py_True : Py_False);
}
PyObject* f_task_coroutine(PyObject*, PyObject* o) {
  PyObject* body = Py_IS_TYPE(o, &ProcessType) ? proc(o)->body : nullptr;
  return Py_NewRef(body ? body : Py_None);
}

PyMethodDef guest_process_functions[] = {
    {"_task_cancel", gated<f_task_cancel>, METH_VARARGS, nullptr},
    {"_task_uncancel", gated<f_task_uncancel>, METH_O, nullptr},
    {"_task_state", gated<f_task_state>, METH_O, nullptr},
    {"_task_coroutine", gated<f_task_coroutine>, METH_O, nullptr},
    {}};

}  // namespace

void join_guest(runtime::Scheduler& s, ProcessObject* p) noexcept {
  auto* g = static_cast<GuestObject*>(s.host());
  auto* part = new GuestPart{};
  part->guest = new_ref(g);
  const Owned loop(loop_of(g->link));
  if (loop)
    part->task.reset(with_signals_held([&] {
      return PyObject_CallFunctionObjArgs(names.make_task, reinterpret_cast<PyObject*>(p),
                                          loop.get(), nullptr);
    }));
  part->wakeup.reset(PyCFunction_New(&wakeup_def, reinterpret_cast<PyObject*>(p)));
  if (!part->task || !part->wakeup) PyErr_WriteUnraisable(Py_None);
  p->guest = part;
}

PyObject* guest_begin(ProcessObject* p, const runtime::OpKind* woken_in, bool yielded) noexcept {
  GuestPart* part = p->guest;
  if (part->task) enter_task(part->task.get());
  if (woken_in != &await_op) [[likely]]
    return yielded && part->must_cancel ? guest_cancellation(p->base) : nullptr;
  --part->guest->awaiting;
  const Owned f(std::move(part->future));
  PyObject* e = nullptr;
  if (p->base.status == Status::cancelled) {
    let_go_of_future(part, f.get());
    raise_cancelled(p->base, nullptr);
    e = take_exception();
  }
  return e;
}

int guest_await(ProcessObject* p, PyObject* f) noexcept {
  GuestPart* part = p->guest;
  const Owned blocking(PyObject_GetAttr(f, names.blocking));
  if (!blocking) PyErr_Clear();
  if (!blocking || blocking == Py_None) return 0;
  const Owned loop(loop_of(part->guest->link));
  const Owned its(PyObject_CallMethodNoArgs(f, names.get_loop));
  if (!its) return -1;
  if (loop != its.get()) {
    PyErr_Format(
        PyExc_RuntimeError,
        "process %s awaits %R, which belongs to another event loop: await it in that loop, "
        "and send the result through a channel",
        p->base.function, f);
    return -1;
  }
  if (part->task == f) {
    bad_use("a process cannot await its own task");
    return -1;
  }
  if (blocking != Py_True) {
    PyErr_Format(PyExc_RuntimeError, "process %s yielded %R: use `yield from` or `await`",
                 p->base.function, f);
    return -1;
  }
  if (p->base.cancel().load() != 0) {  // rule 6.1
    PyObject_SetAttr(f, names.blocking, Py_False);
    let_go_of_future(part, f);
    PyErr_Clear();
    raise_cancelled(p->base, nullptr);
    return -1;
  }
  const Owned r(PyObject_SetAttr(f, names.blocking, Py_False) < 0
                    ? nullptr
                    : PyObject_CallMethodOneArg(f, names.add_done_callback, part->wakeup.get()));
  if (!r) return -1;
  part->future = new_ref(f);
  ++part->guest->awaiting;
  p->base.status = Status::pending;
  p->base.place = nullptr;
  await_in(p, nullptr, &await_op);
  return 1;
}

void leave_guest(ProcessObject* p) noexcept {
  const std::unique_ptr<GuestPart> part(std::exchange(p->guest, nullptr));
  if (part->task) {
    PyObject* const outcome = p->failed || p->how == Ending::returned ? p->outcome : Py_None;
    const Owned r(with_signals_held([&] {
      return PyObject_CallMethodObjArgs(part->task.get(), names.end, outcome,
                                        p->failed ? Py_True : Py_False, nullptr);
    }));
  }
}

PyObject* new_cancellation(PyObject* message) noexcept;

PyObject* guest_cancellation(ProcessBase& b) noexcept {
  ProcessObject* p = coroutine_of(&b);
  GuestPart* part = p ? p->guest : nullptr;
  if (!part || !(part->must_cancel || part->interrupted)) return nullptr;
  part->must_cancel = part->interrupted = false;
  // If Weft itself has asked the process to end, that request takes effect next.
  b.cancel().take_back(runtime::Identity::Cancel::host);
  return new_cancellation(part->message.get());
}

int init_guest_process(PyObject* m) { return PyModule_AddFunctions(m, guest_process_functions); }

}  // namespace weft::py
