// A blocking function on a worker thread, and the process that waits for it (rule 7.9).
//
//   fresh ──awaited, or wait(): begin()──► waiting ──run() on a worker──► done
//     │                                       └──cancelled, closed: left; the call continues
//     ├──collected: RuntimeWarning
//     └──the pool could not accept the call: refused
//
// `process` is the waiting process; it is changed only under the GIL. While a process waits, the
// call counts as outside (rule 10.3). The pool of workers is written in Python
// (weft/_backends/io.py).
#include "channels/operations.hpp"
#include "checking/points.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/own_threads.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/awaiting.hpp"
#include "processes/caller.hpp"
#include "processes/limit.hpp"
#include "rounds/report.hpp"
#include "rounds/runs.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

namespace {

enum class CallState : std::uint8_t { fresh, waiting, refused, done };

struct CallObject {
  PyObject_HEAD PyObject* function;
  PyObject* args;      // a tuple
  PyObject* keywords;  // a dict, or null
  PyObject* context;   // a copy of the caller's context variables
  PyObject* result;
  PyObject* error;        // the exception, if there is no result
  ProcessBase* process;   // the process that waits and has not been woken yet, or null
  ProcessObject* awaits;  // the coroutine process that awaits the call, or null
  runtime::Run* run;
  CallState state;
  bool awaited;
};
CallObject* call_of(PyObject* o) noexcept { return reinterpret_cast<CallObject*>(o); }

PyTypeObject CallType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyObject* submit = nullptr;  // the function that gives a call to the pool

// Called when the call is no longer waited for. Returns false if its process has already been
// woken.
bool leave(CallObject* c) noexcept {
  ProcessBase* p = std::exchange(c->process, nullptr);
  if (!p) return false;
  p->status = Status::cancelled;
  c->run->leave_outside();
  return true;
}
bool withdraw_call(ProcessBase& p) noexcept { return leave(static_cast<CallObject*>(p.place)); }
constexpr runtime::OpKind io_op{"io call", &withdraw_call, nullptr};

// Gives the call to the pool. Returns false, with the exception set, if the pool could not accept
// it.
bool begin(CallObject* c, ProcessBase& p) {
  c->state = CallState::waiting;
  c->run = &p.group->run;
  c->process = &p;
  c->run->enter_outside();
  p.place = c;
  p.op = &io_op;  // set before the pool has the call, which might be done before submit returns
  if (Owned(PyObject_CallOneArg(submit, reinterpret_cast<PyObject*>(c)))) return true;
  if (!leave(c)) {
    // The call has already been done or cancelled, so the pool has accepted it. Only the exception
    // of a signal handler matters.
    if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    // The exception of a signal handler is raised here, as if the signal had arrived a little
    // later. In a guest no run would raise the exception.
    else if (p.status == Status::ok)
      Py_XSETREF(c->error, take_exception());
    else
      keep_interrupt_for(nullptr, take_exception());
    return true;
  }
  p.op = nullptr;
  // From now on run() ignores the call, even if the pool has accepted it after all.
  c->state = CallState::refused;
  return false;
}

// Returns the outcome, for a process that has waited.
PyObject* outcome(CallObject* c) {
  c->state = CallState::done;
  if (!c->error) return std::exchange(c->result, nullptr);
  restore_exception(std::exchange(c->error, nullptr));
  return nullptr;
}

// Called when a process has waited for the call and steps it again.
PySendResult resume(CallObject* c, ProcessObject* me, PyObject** r) {
  ProcessBase& p = me->base;
  if (c->awaits != me || !resumed(me, reinterpret_cast<PyObject*>(c))) {
    being_awaited("an io call", c->awaits);
    return PYGEN_ERROR;
  }
  me->waits = nullptr;
  c->awaits = nullptr;
  if (p.status == Status::cancelled) {
    c->state = CallState::done;
    raise_cancelled(p, nullptr);
    return PYGEN_ERROR;
  }
  *r = outcome(c);
  if (*r) return PYGEN_RETURN;
  // A StopIteration would look like a result (PEP 479).
  if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
    PyObject* e = take_exception();
    PyErr_SetString(PyExc_RuntimeError, "the io call raised StopIteration");
    PyObject* instead = take_exception();
    PyException_SetCause(instead, e);
    restore_exception(instead);
  }
  return PYGEN_ERROR;
}

PySendResult call_send(PyObject* self, PyObject*, PyObject** r) {
  CallObject* c = call_of(self);
  *r = nullptr;
  ProcessObject* me = current_coroutine();
  if (!me) {
    bad_use(
        "an io call was awaited outside any coroutine process of Weft: call the function instead");
    return PYGEN_ERROR;
  }
  ProcessBase& p = me->base;
  if (c->state == CallState::waiting) return resume(c, me, r);
  if (c->state == CallState::fresh && (woken_first(me) || gives_way_first(me))) {
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  if (checking && c->state == CallState::fresh && checking->pauses(&me->base, self, false))
      [[unlikely]] {
    me->yielded = 1;
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  if (c->state != CallState::fresh || p.op || !c->function) {
    bad_use(p.op ? "io call while another operation of this process waits: a process does one "
                   "thing at a time"
                 : "an io call was awaited already: make another");
    return PYGEN_ERROR;
  }
  run_deferred();
  if (p.cancel().load(std::memory_order_relaxed)) {
    c->state = CallState::done;
    raise_cancelled(p, nullptr);
    return PYGEN_ERROR;
  }
  if (checking) [[unlikely]] {  // a check runs the call here, as a step of the process
    c->state = CallState::done;
    *r = PyObject_Call(c->function, c->args, c->keywords);
    return *r ? PYGEN_RETURN : PYGEN_ERROR;
  }
  me->waits = self;
  c->awaits = me;
  if (!begin(c, p)) {
    me->waits = nullptr;
    c->awaits = nullptr;
    return PYGEN_ERROR;
  }
  *r = Py_NewRef(Py_None);
  return PYGEN_NEXT;
}
PyObject* call_next(PyObject* self) { return iternext_by(call_send, self); }
PyObject* call_pysend(PyObject* self, PyObject*) { return send_by(call_send, self); }

// Called when a coroutine that waits for the call is closed or thrown into.
void give_up(CallObject* c) noexcept {
  if (ProcessObject* const me = std::exchange(c->awaits, nullptr))
    leave(me, reinterpret_cast<PyObject*>(c), [](ProcessBase& p) { return p.op->withdraw(p); });
  c->state = CallState::done;
}
// Returns whether a process waits for the call and is not the one that is running now.
bool others(CallObject* c) noexcept {
  return c->awaits ? !driven_by(c->awaits) : c->process != nullptr;
}
PyObject* call_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (others(call_of(self))) return being_awaited("an io call", call_of(self)->awaits);
  give_up(call_of(self));
  return raise_thrown(args, n);
}
PyObject* call_close(PyObject* self, PyObject*) {
  if (others(call_of(self))) return being_awaited("an io call", call_of(self)->awaits);
  give_up(call_of(self));
  Py_RETURN_NONE;
}

// wait(): waits for the call in a greenlet process.
PyObject* call_wait(PyObject* self, PyObject*) {
  run_deferred();
  Caller caller("io call");
  if (!caller) return nullptr;
  CallObject* c = call_of(self);
  if (c->state != CallState::fresh || !c->function)
    return bad_use("an io call was awaited already: make another");
  if (!caller.process().group)
    return bad_use(
        "an io call can be waited for only in a process: here call the function instead");
  if (caller.cancelled()) {
    c->state = CallState::done;
    return caller.withdrawn(nullptr);
  }
  if (const CheckedCall checked(caller); checked) [[unlikely]] {
    c->state = CallState::done;
    return PyObject_Call(c->function, c->args, c->keywords);
  }
  if (!begin(c, caller.process())) return nullptr;
  if (caller.wait(Status::pending, io_op) == Status::cancelled) {
    c->state = CallState::done;
    return caller.withdrawn(nullptr);
  }
  return caller.give(outcome(c));
}

// run(): makes the call, on a worker.
PyObject* call_run(PyObject* self, PyObject*) {
  CallObject* c = call_of(self);
  // The code that submitted this call believes that the pool has not accepted it.
  if (c->state == CallState::refused) Py_RETURN_NONE;
  if (!c->function) {
    if (c->state == CallState::fresh) return bad_use("this io call was already made: make another");
    Py_RETURN_NONE;  // a thread outside the pool has called this function
  }
  Owned function(std::exchange(c->function, nullptr));
  {
    const ForeignThread beyond;  // a call that is no longer waited for might hold ends
    PyObject* r = nullptr;
    if (PyContext_Enter(c->context) == 0) {
      {
        const OutsideGate outside;
        r = PyObject_Call(function.get(), c->args, c->keywords);
      }
      PyObject* e = r ? nullptr : take_exception();
      PyContext_Exit(c->context);
      if (e) restore_exception(e);
    }
    c->result = r;
    if (!r) c->error = take_exception();
    function.reset();
    Py_CLEAR(c->args);
    Py_CLEAR(c->keywords);
  }
  if (ProcessBase* p = std::exchange(c->process, nullptr)) {
    runtime::Run* run = c->run;
    p->status = Status::ok;
    p->ops->wake(p);
    // The call follows wake(), since a run with nothing runnable or outside is deadlocked.
    run->leave_outside();
  } else {
    look_again();
  }
  Py_RETURN_NONE;
}

PyObject* call_new(PyTypeObject* type, PyObject* given, PyObject* kw) {
  static const char* names[] = {"", "", "", nullptr};
  PyObject *function, *args, *keywords;
  if (!PyArg_ParseTupleAndKeywords(given, kw, "OO!O!:Call", const_cast<char**>(names), &function,
                                   &PyTuple_Type, &args, &PyDict_Type, &keywords))
    return nullptr;
  Owned context(PyContext_CopyCurrent());
  auto* c = context ? reinterpret_cast<CallObject*>(type->tp_alloc(type, 0)) : nullptr;
  if (!c) return nullptr;
  c->function = Py_NewRef(function);
  c->args = Py_NewRef(args);
  c->keywords = Py_NewRef(keywords);
  c->context = context.release();
  return reinterpret_cast<PyObject*>(c);
}
int call_traverse(PyObject* o, visitproc visit, void* arg) {
  for (PyObject* x : {call_of(o)->function, call_of(o)->args, call_of(o)->keywords,
                      call_of(o)->context, call_of(o)->result, call_of(o)->error})
    Py_VISIT(x);
  return 0;
}
int call_clear(PyObject* o) {
  CallObject* c = call_of(o);
  for (PyObject** x : {&c->function, &c->args, &c->keywords, &c->context, &c->result, &c->error})
    Py_CLEAR(*x);
  return 0;
}
void call_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  CallObject* c = call_of(o);
  if (c->state == CallState::fresh && c->function) {
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "io call of %R was never awaited: write `await` before it",
                         c->function) < 0)
      PyErr_WriteUnraisable(Py_None);
  }
  if (c->awaits) give_up(c);
  call_clear(o);
  Py_TYPE(o)->tp_free(o);
}
PyMethodDef call_methods[] = {
    {"run", gated<call_run>, METH_NOARGS, "Makes the call, on a thread of the pool."},
    {"wait", gated<call_wait>, METH_NOARGS,
     "Makes the call on a thread of the pool, and waits for it, in a greenlet process."},
    {"send", gated<call_pysend>, METH_O, nullptr},
    {"throw", method(gated<call_throw>), METH_FASTCALL, nullptr},
    {"close", gated<call_close>, METH_NOARGS, nullptr},
    {}};
PyAsyncMethods call_async{};

// _worker(on): makes the calling thread a worker of the pool or, if `on` is False, no longer one.
PyObject* f_worker(PyObject*, PyObject* on) {
  if (on == Py_True) {
    own_thread(PyThreadState_Get(), nullptr);
    look_again();  // runs have counted this thread as a foreign thread until now
  } else {
    disown_thread(PyThreadState_Get());
  }
  Py_RETURN_NONE;
}
PyMethodDef io_functions[] = {{"_set_pool", gated<keep_given<&submit>>, METH_VARARGS, nullptr},
                              {"_worker", gated<f_worker>, METH_O, nullptr},
                              {}};

}  // namespace

void drop_awaited_call(PyObject* o) noexcept {
  const Owned held = new_ref(o);
  give_up(call_of(o));
}

int init_io(PyObject* m) {
  refuse_as_result<CallObject>(CallType, call_async, [](PyObject*) noexcept { return "io call"; });
  call_async.am_send = gated<call_send>;
  CallType.tp_name = "weft.Call";
  CallType.tp_basicsize = sizeof(CallObject);
  CallType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  CallType.tp_new = gated<call_new>;
  CallType.tp_dealloc = gated<call_dealloc>;
  CallType.tp_traverse = call_traverse;
  CallType.tp_clear = gated<call_clear>;
  CallType.tp_iternext = gated<call_next>;
  CallType.tp_methods = call_methods;
  CallType.tp_as_async = &call_async;
  if (PyType_Ready(&CallType) < 0 || add_type(m, "Call", &CallType) < 0) return -1;
  return PyModule_AddFunctions(m, io_functions);
}

}  // namespace weft::py
