// How processes run and end: a coroutine is stepped by the scheduler; a function runs on its own
// thread or in a greenlet (greenlet.cpp). process_type.cpp defines the type that Python code sees.
//
//   made (holds its ends) ──start_process()──► running ──► ended: releases its ends, then its group
//     │                                                   is notified (rule 7.7)
//     └──collected: its ends are released, RuntimeWarning
//
// A coroutine *apart* runs on its own thread and scheduler. Groups that it started but did not
// leave run to their ends on that thread:
//
//   its coroutine ends ──coroutine_over()──► its thread continues while anybody_here() ──►
//   apart_body(): its group is notified
//
// A process has returned, or ended quietly by a Cancelled or by a Retired or Poisoned that it met,
// or failed (rules 3.5, 4.3, 4.6, 6.5). A process that a Poisoned ends poisons the ends that it
// holds, whether or not it met the Poisoned. A process that did not return has no result
// (no_result.cpp).
#include "processes/process.hpp"

#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "channels/held.hpp"
#include "checking/points.hpp"
#include "choice/watch.hpp"
#include "components/components.hpp"
#include "gate.hpp"
#include "interpreter/door.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/misuse.hpp"
#include "interpreter/own_threads.hpp"
#include "interpreter/pending.hpp"
#include "processes/awaiting.hpp"
#include "processes/block.hpp"
#include "processes/generators.hpp"
#include "processes/greenlet.hpp"
#include "processes/group.hpp"
#include "processes/guests.hpp"
#include "processes/life.hpp"
#include "processes/no_result.hpp"
#include "processes/rare.hpp"
#include "processes/thread.hpp"
#include "watching/observe.hpp"
#include "watching/steps.hpp"
#include "watching/stopped_early.hpp"
#include "weft/runtime/affinity.hpp"
#include "weft/runtime/limit.hpp"

namespace weft::py {

// --- making --------------------------------------------------------------------------------------

ProcessObject* new_process(Kind kind, Ends& ends) {
  ProcessObject* p =
      PyObject_GC_NewVar(ProcessObject, &ProcessType, static_cast<Py_ssize_t>(ends.size()));
  if (!p) {
    ends.clear();
    return nullptr;
  }
  new (&p->base) CoroutineProcess;
  p->body = p->context = p->outcome = nullptr;
  p->thread = nullptr;
  p->greenlet_state = nullptr;
  p->rare = nullptr;
  p->guest = nullptr;
  p->how = Ending::returned;
  p->kind = kind;
  p->given_up = p->done = p->failed = p->yielded = p->within = p->owed = p->over = p->receives =
      p->native_code = 0;
  // Code that finds the process among the collector's objects must not start the process before it
  // is complete: see made().
  p->started = 1;
#ifdef Py_GIL_DISABLED
  p->stepping = 0;
#endif
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ++ends[i]->holders;
    p->held[i] = ends[i].release();
  }
  ends.clear();
  PyObject_GC_Track(reinterpret_cast<PyObject*>(p));
  return p;
}

void made(ProcessObject* p) noexcept { p->started = 0; }

void take_within([[maybe_unused]] ProcessObject* p) noexcept {
#ifndef Py_GIL_DISABLED
  p->within = 1;
  PyObject_GC_UnTrack(p->body);
#endif
}

void leave_within(ProcessObject* p) noexcept {
  if (!p->within) return;
  p->within = 0;
  PyObject_GC_Track(p->body);
}

namespace {

// --- ending --------------------------------------------------------------------------------------

// Takes the current exception, which is leaving the process, and returns it (owned). Records in
// `how` how the process ended.
PyObject* judge(ProcessObject* p) {
  const bool by_asyncio = ended_by_asyncio(p);
  PyObject* e = take_exception();
  if (PyErr_GivenExceptionMatches(e, errors.Poisoned)) poison_held(p, e);
  const auto is_quiet = [&](PyObject* type) {
    return PyErr_GivenExceptionMatches(e, type) && is_met(e);
  };
  if (by_asyncio || PyErr_GivenExceptionMatches(e, errors.Cancelled)) {
    p->how = Ending::cancelled;
  } else if (is_quiet(errors.Retired)) {
    p->how = Ending::retired;
  } else if (is_quiet(errors.Poisoned)) {
    p->how = Ending::poisoned;
  } else {
    p->how = Ending::failed;
    if (!p->guest) explain_no_loop(e);
  }
  return e;
}

}  // namespace

// Set from the end of a coroutine apart to the end of its thread: the coroutine's group. The group
// counts the thread as one more child (adopt() in coroutine_over(), finished() in apart_body()), so
// the group ends after the thread.
static thread_local runtime::Group* waits_for_thread = nullptr;

// Sets `left` to the exception that has left the process. Returns why the process has no result;
// null if no code can ask for the reason.
static Owned<> judge_end(ProcessObject* p, ProcessBase& b, Owned<>& left) {
  left.reset(judge(p));
  Owned why(why_no_result(p, b, left.get()));
  if (why && p->how == Ending::retired) look_for_early_stop(left.get(), why.get());
  if (p->how != Ending::failed && !b.group->keeps_end()) left.reset();
  return why;
}
// Stores the outcome. `why` is the reason why the process has no result, or null.
static void take_outcome(ProcessObject* p, PyObject* result, PyObject* failure, Owned<> why) {
  p->failed = failure != nullptr;
  if (failure && why) p->watch()->why = std::move(why);
  if (failure)
    p->outcome = Py_NewRef(failure);
  else if (result)
    p->outcome = result;
  else
    p->outcome = why ? why.release() : Py_NewRef(Py_None);
}
static void let_go_of_all(ProcessObject* p) {
  Py_CLEAR(p->body);
  let_go(p);
  Py_CLEAR(p->context);
  if (!p->watch()) delete std::exchange(p->rare, nullptr);  // the process will not select again
  if (p->guest) leave_guest(p);
  run_deferred();
}

// Called when the process has ended with `result` (owned) or, if that is null, with the current
// exception. `b` is the part of the process that its group knows.
void end_process(ProcessObject* p, ProcessBase& b, PyObject* result) {
  if (observing()) [[unlikely]]
    observe_end(p, result);
  runtime::Group* g = b.group;
  Owned<> left, why;
  if (!result) why = judge_end(p, b, left);
  PyObject* const failure = p->how == Ending::failed ? left.get() : nullptr;
  const std::uint32_t id = b.id;
  if (blocks_open > 0) [[unlikely]]
    leave_blocks(b);
  b.op = nullptr;
  runtime::Limit::close_all(b, g->run);
  p->done = 1;
  // A coroutine has no stack any more: operations that finalisers begin from now on belong to no
  // process. For the other types of process, Caller refuses such operations.
  if (coroutine_of(&b) && this_process() == &b) runtime::this_context->running = nullptr;
  take_outcome(p, result, failure, std::move(why));
  let_go_of_all(p);
  g->unlink(b);
  b.group = nullptr;
  p->thread = nullptr;
  std::exception_ptr ptr;
  if (left && !(failure && watched_by_others(p)))
    ptr = std::make_exception_ptr(Failure(left.release()));
  left.reset();  // before the group is notified, because the run might then end
  const auto how = static_cast<weft::Ending>(p->how);
  if (checking) [[unlikely]]
    checking->ended(p, g);
  if (p->watch()) tell_watchers(p);
  g->finished(id, std::move(ptr), how);
  // This process might have been the last on its thread: then the scheduler's loop ends.
  if (waits_for_thread) runtime::Scheduler::current()->stop();
}

// Called when the code that was to start these processes was cancelled before it did so, failed, or
// was never reached (rules 6.1, 7.3). The processes end without having run, and release their ends
// (rules 2.3, 6.5).
void never_run(PyObject* list) noexcept {
  const SavedException kept;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    ProcessObject* p = proc(PyList_GET_ITEM(list, i));
    if (p->started) continue;
    p->started = p->done = 1;
    leave_within(p);
    const Owned body(std::exchange(p->body, nullptr));
    p->how = Ending::cancelled;
    Py_XSETREF(p->outcome, why_no_result(p, p->base, nullptr));
    if (!p->outcome) p->outcome = Py_NewRef(Py_None);
    if (body && is_async(p->kind)) {
      const Owned r(PyObject_CallMethod(body.get(), "close", nullptr));
      if (!r) PyErr_WriteUnraisable(body.get());
    }
    let_go(p);
    if (p->watch()) tell_watchers(p);
  }
  run_deferred();
}

// Called in the child of a fork that a process made, when the code of the process has ended, with
// `result` or, if that is null, the current exception. The code that would run next belongs to the
// parent. Therefore this program ends here, as other programs do (rule 11.4).
[[noreturn]] static void end_child(PyObject* result) {
  const OutsideGate beyond;
  if (!result) PyErr_Print();  // for SystemExit this ends the program
  Py_Exit(result ? 0 : 1);
}

// _continue_with_parent(): makes the system send SIGCONT to this program when the thread that
// started it ends (usually with its whole program), since this program might be stopped at that
// time. A signal that ends this program would be wrong, because that thread can end alone. Only
// Linux supports such a request.
PyObject* f_continue_with_parent(PyObject*, PyObject*) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGCONT);
#endif
  Py_RETURN_NONE;
}

PyObject* f_end_program(PyObject*, PyObject* error) {
  if (error != Py_None) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  end_child(error == Py_None ? error : nullptr);
}

void not_in_child(std::uint32_t before) {
  if (generation == before) [[likely]]
    return;
  if (!PyErr_Occurred())
    bad_use(
        "a signal's handler has forked while its thread waited in an operation, and returns in the "
        "child, where nobody could ever end that wait: end the child in the handler, by sys.exit() "
        "or os._exit()");
  end_child(nullptr);
}

PyObject* call_body(ProcessObject* p) {
  PyObject* keywords = PyTuple_GET_ITEM(p->body, 2);
  PyObject* r;
  const std::uint32_t before = generation;
  {
    const OutsideGate beyond;
    r = PyObject_Call(PyTuple_GET_ITEM(p->body, 0), PyTuple_GET_ITEM(p->body, 1),
                      keywords == Py_None ? nullptr : keywords);
  }
  if (generation != before) [[unlikely]]
    end_child(r);
  if (!r || !PyCoro_CheckExact(r)) return r;
  const Owned coroutine(r);
  return PyErr_Format(PyExc_TypeError, "process %s returned a coroutine: declare it `async def`",
                      p->base.function);
}

runtime::Executor* executor_of_group(ProcessBase& p) noexcept { return p.group->executor; }
void post_to_group(core::Waker* w) noexcept {
  static_cast<runtime::Scheduler*>(static_cast<ProcessBase*>(w)->group->executor)->post(w);
}

namespace {

// --- coroutines ----------------------------------------------------------------------------------

// While the process runs, its context variables replace the scheduler's. An empty context is made
// only when something is set.
class Variables {
 public:
  explicit Variables(PyObject** mine) noexcept
      : state_(PyThreadState_Get()), mine_(mine), outer_(state_->context) {
    state_->context = *mine;
    ++state_->context_ver;
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    *mine_ = state_->context;
    state_->context = outer_;
    ++state_->context_ver;
  }

 private:
  PyThreadState* state_;
  PyObject** mine_;
  PyObject* outer_;
};

class Stepping {
 public:
#ifdef Py_GIL_DISABLED
  explicit Stepping(ProcessObject* p) noexcept : p_(p) { p->stepping = 1; }
  ~Stepping() { p_->stepping = 0; }
#else
  explicit Stepping(ProcessObject*) noexcept {}
  ~Stepping() = default;
#endif
  Stepping(const Stepping&) = delete;
  Stepping& operator=(const Stepping&) = delete;

#ifdef Py_GIL_DISABLED
 private:
  ProcessObject* const p_;
#endif
};

void not_awaitable(ProcessObject* p, PyObject* r) {
  const Owned future(PyObject_GetAttrString(r, "_asyncio_future_blocking"));
  if (!future) PyErr_Clear();
  if (future && !p->guest)
    bad_use(
        "awaited a %.100s of asyncio: run the network inside an asyncio loop, by await "
        "Parallel(...) in a task or by "
        "run(..., host='asyncio')",
        Py_TYPE(r)->tp_name);
  else
    bad_use("awaited a %.100s, which is not an operation of Weft", Py_TYPE(r)->tp_name);
}

// Called when a coroutine has returned from a step in the child of a fork that the coroutine made.
[[noreturn]] void end_child_at(PySendResult s, PyObject* r) {
  if (s == PYGEN_NEXT)
    bad_use(
        "awaited in the child of a fork, where nobody runs this coroutine any more: begin a "
        "network there, by run(...), or end it by os._exit()");
  end_child(s == PYGEN_RETURN ? r : nullptr);
}

PySendResult send_into(PyObject* body, PyObject** r) {
  const std::uint32_t before = generation;
  PySendResult s;
  {
    const OutsideGate beyond;
    s = PyIter_Send(body, Py_None, r);
  }
  if (generation != before) [[unlikely]]
    end_child_at(s, *r);
  return s;
}
PySendResult throw_into(PyObject* body, PyObject* owned, PyObject** r) {
  const std::uint32_t before = generation;
  {
    const OutsideGate beyond;
    const Owned thrown(owned);
    *r = PyObject_CallMethod(body, "throw", "O", owned);
  }
  if (generation != before) [[unlikely]]
    end_child_at(*r                                            ? PYGEN_NEXT
                 : PyErr_ExceptionMatches(PyExc_StopIteration) ? PYGEN_RETURN
                                                               : PYGEN_ERROR,
                 Py_None);
  if (*r) return PYGEN_NEXT;
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return PYGEN_ERROR;
  const Owned stop(take_exception());
  *r = PyObject_GetAttrString(stop.get(), "value");
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

// Copies the caller's context for the process. Returns false if an exception is set.
bool inherit_context(ProcessObject* p) {
  PyObject* const now = PyThreadState_Get()->context;
  const Py_ssize_t n = now ? PyObject_Size(now) : 0;
  if (n > 0) p->context = PyContext_CopyCurrent();
  return n == 0 || p->context;
}

// Called when the process's coroutine has ended, with `result` (owned) or the current exception.
void coroutine_over(ProcessObject* p, PyObject* result) {
  const Owned held(p);
  if (p->kind == Kind::apart) (waits_for_thread = p->base.group)->adopt();
  end_process(p, p->base, result);
}

// Like coroutine_over(), for a coroutine that has left an operation behind (awaiting.hpp,
// invariants 1 and 3). Returns false if the process is owed no wake-up, and can end.
bool has_to_wait(ProcessObject* p, PyObject* result) {
  PyObject* e = result ? nullptr : take_exception();
  if (p->waits) drop_awaited(p->waits);
  if (p->owed) {
    p->over = 1;
    p->failed = e != nullptr;
    Py_XSETREF(p->outcome, e ? e : result);
    return true;
  }
  if (e) restore_exception(e);
  return false;
}
void end_late(ProcessObject* p) {
  PyObject* outcome = std::exchange(p->outcome, nullptr);
  if (std::exchange(p->failed, 0)) {
    restore_exception(outcome);
    outcome = nullptr;
  }
  coroutine_over(p, outcome);
}

}  // namespace

// Called when the process has yielded an object that is not one of Weft's operations. A bare yield
// lets other processes run; a future is waited for if a loop runs. Returns false, with an exception
// set, if the object cannot be waited for here.
[[gnu::noinline]] static bool is_parked_on(ProcessObject* p, PyObject* yielded) {
  if (yielded == Py_None) {
    if (p->owed) return true;  // the wake-up that the process is owed will run it again
    p->yielded = 1;
    runtime::Scheduler::current()->push(&p->base);
    return true;
  }
  const int parked = p->guest && !woken_first(p) ? guest_await(p, yielded) : 0;
  if (parked > 0) return true;
  if (p->owed)
    bad_use(
        "awaited a %.100s while an operation that was left is being completed: await that first",
        Py_TYPE(yielded)->tp_name);
  else if (parked == 0)
    not_awaitable(p, yielded);
  return false;
}

// Called when the process's coroutine has returned `result`, or has raised an exception.
static void coroutine_left(ProcessObject* p, PyObject* result) {
  if (checking && !p->waits && !p->owed && checking->ends_later(p)) [[unlikely]]
    p->owed = 1;  // the process is in the run queue
  if (!(p->waits || p->owed) || !has_to_wait(p, result)) [[likely]]
    coroutine_over(p, result);
}

// Called when the wake-up that the process was owed has arrived. Returns true if the process had
// already ended, and is now complete.
static bool is_over_by_wake_up(ProcessObject* p) {
  wake_up_came(p);
  if (!p->over) return false;
  end_late(p);
  return true;
}

void coroutine_run(core::Waker* w) {
  ProcessObject* p = object_of(coroutine_of(w));
  runtime::Context& here = *runtime::this_context;
  here.running = &p->base;
  const runtime::OpKind* const woken_in = std::exchange(p->base.op, nullptr);
  const bool yielded = p->yielded == 1;
  p->yielded = 0;
  p->base.line = 0;
  if (p->owed && is_over_by_wake_up(p)) [[unlikely]] {
    here.running = nullptr;
    return run_deferred();
  }
  if (stepping()) [[unlikely]]
    step_begins(p);
  PyObject* r = nullptr;
  PySendResult s;
  {
    const Stepping now(p);
    const Variables v(&p->context);
    PyObject* thrown = p->guest ? guest_begin(p, woken_in, yielded) : nullptr;
    s = thrown ? throw_into(p->body, thrown, &r) : send_into(p->body, &r);
    while (s == PYGEN_NEXT && !p->base.op && !p->yielded && !is_parked_on(p, r)) [[unlikely]] {
        Owned(r).reset();
        s = throw_into(p->body, take_exception(), &r);
      }
  }
  if (stepping()) [[unlikely]]
    step_ends();
  if (s == PYGEN_NEXT) [[likely]]
    Owned(r).reset();
  else
    coroutine_left(p, s == PYGEN_RETURN ? r : nullptr);
  here.running = nullptr;
  run_deferred();
}

namespace {

const runtime::ProcessOps coroutine_ops{{&post_to_group, &coroutine_run, nullptr, 0},
                                        &executor_of_group};

// --- threads -------------------------------------------------------------------------------------

void thread_body(void* arg) {
  auto* t = static_cast<ThreadProcess*>(arg);
  const PyGILState_STATE gil = enter_interpreter();
  {
    const Gate inside;
    Owned p(t->object);
    t->state = PyThreadState_Get();
    own_thread(t->state, t->run);
    runtime::name_this_thread(*t);
    {
      const ThreadProcess::Scope scope(*t);
      PyObject* r;
      {
        const Variables v(&p->context);
        let_tools_see_thread();
        r = call_body(p.get());
      }
      end_process(p.get(), *t, r);
    }
    own_thread(t->state, nullptr);
    // The thread leaves the run before any user code runs on this thread: as soon as another thread
    // has the GIL, the run can end.
    t->run->gone();
    delete t;
    p.reset();
    run_deferred();
    disown_thread(PyThreadState_Get());
  }
  PyGILState_Release(gil);
}

}  // namespace

bool begin_thread(void (*body)(void*), void* arg, const char* process, const char* instead) {
  if (interpreter_ends()) {  // such a thread would never get the interpreter's lock
    bad_use(
        "process %s: the interpreter is ending and starts no more threads: run the process "
        "earlier, in an atexit function at the latest",
        process);
    return false;
  }
  if (PyThread_start_new_thread(body, arg) != static_cast<unsigned long>(-1)) return true;
  PyErr_Format(PyExc_RuntimeError, "process %s: the system has no room for another thread; %s",
               process, instead);
  return false;
}

namespace {

void start_thread(runtime::Group& g, ProcessObject* p) {
  auto* t = new ThreadProcess(&g.run, p);
  t->function = p->base.function;
  t->cancel().store(p->base.cancel().load());
  p->thread = t;
  g.add(*t);
  p->base.id = std::uint32_t(t->id);
  if (p->watch()) name_watch(p);
  if (observing()) [[unlikely]]
    observe_start(p);
  Owned its = new_ref(p);  // the thread's reference
  g.run.activated();
  if (begin_thread(thread_body, t, t->function, "use coroutine processes (async def)"))
    return static_cast<void>(its.release());
  end_process(p, *t, nullptr);  // the process has failed, and its group is notified
  delete t;
  g.run.deactivated();
}

// --- coroutines apart ----------------------------------------------------------------------------

runtime::Executor* executor_apart(ProcessBase& p) noexcept {
  return object_of(static_cast<CoroutineProcess*>(&p))->own;
}
void wake_apart(core::Waker* w) noexcept { object_of(coroutine_of(w))->own->post(w); }
const runtime::ProcessOps apart_ops{{&wake_apart, &coroutine_run, nullptr, 0}, &executor_apart};

// Returns whether there are processes that the coroutine has left behind and that run here.
bool anybody_here(runtime::Scheduler& mine) {
  bool any = false;
  mine.run.each_process([&](ProcessBase& p) { any = any || p.executor() == &mine; });
  return any;
}

void apart_body(void* arg) {
  const PyGILState_STATE gil = enter_interpreter();
  {
    const Gate inside;
    Owned p(static_cast<ProcessObject*>(arg));
    runtime::Scheduler* const mine = p->own;
    own_thread(PyThreadState_Get(), &mine->run);
    runtime::name_this_thread(p->base);
    let_tools_see_thread();
    {
      const GeneratorHooks hooks(mine->run);
      while (!p->done || anybody_here(*mine)) mine->loop();  // end_process() stops the loop
    }
    own_thread(PyThreadState_Get(), nullptr);
    std::exchange(waits_for_thread, nullptr)->finished(0, nullptr);
    // The thread leaves the run before any user code runs on this thread: as soon as another thread
    // has the GIL, the run can end.
    mine->run.gone();
    delete mine;
    p->own = nullptr;
    p.reset();
    run_deferred();
    disown_thread(PyThreadState_Get());
  }
  PyGILState_Release(gil);
}

void start_apart(runtime::Group& g, ProcessObject* p) {
  p->own = new runtime::Scheduler(g.run);
  p->base.ops = &p->own->ops_here(apart_ops);
  g.add(p->base);
  if (p->watch()) name_watch(p);
  // The process and the thread each own a reference to the object, and the thread lasts longer.
  Owned its = new_ref(p), beyond = new_ref(p);
  p->own->post(&p->base);
  g.run.activated();
  if (begin_thread(apart_body, p, p->base.function, "start it without on(threads)")) {
    static_cast<void>(its.release());
    return static_cast<void>(beyond.release());
  }
  end_process(p, p->base, nullptr);  // the process has failed, and its group is notified
  delete std::exchange(p->own, nullptr);
  g.run.deactivated();
}

}  // namespace

ProcessObject* process_object(ProcessBase* p) noexcept {
  if (!p) return nullptr;
  if (ProcessObject* c = coroutine_of(p)) return c;
  if (ProcessObject* g = greenlet_of(p)) return g;
  if (is_pooled(*p)) return object_of(static_cast<CoroutineProcess*>(p));
  return static_cast<ThreadProcess*>(p)->object;
}

static void unclaim(ProcessObject* p) noexcept {
  p->started = 0;
  Py_CLEAR(p->context);
}
void unclaim_processes(PyObject* list) noexcept {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) unclaim(proc(PyList_GET_ITEM(list, i)));
}

int claim_processes(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    ProcessObject* p = proc(PyList_GET_ITEM(list, i));
    const bool before = p->started;
    p->started = 1;
    if (!before && inherit_context(p)) continue;
    for (Py_ssize_t k = 0; k < (before ? i : i + 1); ++k) unclaim(proc(PyList_GET_ITEM(list, k)));
    if (before)
      bad_use("process %s was started already: call its function again to make another",
              p->base.function ? p->base.function : "?");
    return -1;
  }
  return 0;
}

void start_process(runtime::Group& g, ProcessObject* p) {
  leave_within(p);
  Py_CLEAR(p->outcome);
  if (checking && p->kind == Kind::thread && need_greenlets() == 0) [[unlikely]]
    p->kind = Kind::greenlet;  // greenlets run one at a time, in the order that the check decides
  if (p->kind == Kind::thread) return start_thread(g, p);
  if (p->kind == Kind::apart) return start_apart(g, p);
  if (p->kind == Kind::pooled) return start_pooled(g, p);
  Py_INCREF(p);
  g.add(p->base);
  for (Py_ssize_t i = 0; i < Py_SIZE(p); ++i) {
    Engine& c = p->held[i]->channel->core;
    (is_reader(reinterpret_cast<PyObject*>(p->held[i])) ? c.last_reader : c.last_writer) =
        p->base.id;
  }
  // The scheduler on which the process was started.
  auto& here = *static_cast<runtime::Scheduler*>(g.executor);
  p->base.ops = p->kind == Kind::greenlet ? &greenlet_ops_on(here) : &here.ops_here(coroutine_ops);
  if (p->watch()) name_watch(p);
  if (p->kind == Kind::coroutine && here.host()) join_guest(here, p);
  if (checking) [[unlikely]]
    checking->starts(p);
  if (observing()) [[unlikely]]
    observe_start(p);
  here.post(&p->base);
}

}  // namespace weft::py
