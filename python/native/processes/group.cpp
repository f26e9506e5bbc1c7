// Composition (rule 7): the outermost run, parallel, spawn, and the outcome of a group. block.cpp
// implements groups as context managers.
//
//   execute()   blocks this thread as the scheduler of the coroutine processes among the children     (run, Parallel in a thread)
//   GroupOp     waits in a coroutine process; its children run on the same scheduler                   (await Parallel, async with Group)
//   wait_for()  the same in a greenlet process, which parks
//
// A group lives until all its processes have ended (rule 7.6); the objects here outlive their
// groups.
#include "processes/group.hpp"

#include <array>

#include "channels/fork.hpp"
#include "channels/operations.hpp"
#include "checking/points.hpp"
#include "choice/choices.hpp"
#include "components/components.hpp"
#include "declare.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/awaiting.hpp"
#include "processes/block.hpp"
#include "processes/block_thread.hpp"
#include "processes/caller.hpp"
#include "processes/generators.hpp"
#include "processes/greenlet.hpp"
#include "processes/life.hpp"
#include "processes/limit.hpp"
#include "processes/loops.hpp"
#include "processes/no_result.hpp"
#include "processes/outermost.hpp"
#include "processes/process_type.hpp"
#include "processes/run.hpp"
#include "rounds/left_open.hpp"
#include "rounds/report.hpp"
#include "rounds/rounds.hpp"
#include "sequences.hpp"
#include "watching/flight.hpp"
#include "watching/observe.hpp"

namespace weft::py {

thread_local PyRun* root_run = nullptr;

PyRun& run_of(runtime::Run& r) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  return *reinterpret_cast<PyRun*>(reinterpret_cast<char*>(&r) - offsetof(PyRun, run));
#pragma GCC diagnostic pop
}

runtime::Run* current_run() noexcept {
  if (ProcessBase* p = this_process())
    if (p->group) return &p->group->run;
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  return t ? t->run : nullptr;
}

namespace {

bool withdraw_wait(ProcessBase& p) noexcept {
  static_cast<runtime::Group*>(p.place)->pass_on();
  return false;
}

}  // namespace

// Called when an exception has left a block in which a process has failed. Returns whether that
// exception would end a process quietly (rules 3.5, 4.3, 6.5), and so is not itself a failure. Such
// an exception follows from the failure, which cancelled the block and released ends, in either
// order.
static bool quiet(PyObject* e) noexcept {
  if (PyErr_GivenExceptionMatches(e, errors.Cancelled)) return true;
  return (PyErr_GivenExceptionMatches(e, errors.Retired) ||
          PyErr_GivenExceptionMatches(e, errors.Poisoned)) &&
         is_met(e);
}

// Raises the failure, or an exception group if there are several (rule 7.2). `also` is the
// exception of the block, or null.
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also) {
  Owned list(PyList_New(0));
  if (also && !quiet(also)) append(list, Py_NewRef(also));
  for (const std::exception_ptr& f : failures) {
    if (!list) break;
    try {
      std::rethrow_exception(f);
    } catch (const Failure& e) {
      append(list, Py_NewRef(e.exception.get()));
    } catch (const std::exception& e) {
      append(list, PyObject_CallFunction(PyExc_RuntimeError, "s", e.what()));
    }
  }
  if (!list) return nullptr;
  PyObject* e = PyList_GET_SIZE(list.get()) == 1 ? Py_NewRef(PyList_GET_ITEM(list.get(), 0))
                                                 : PyObject_CallOneArg(errors.several, list.get());
  if (e) restore_exception(e);
  return nullptr;
}

PyObject* raise_left(const std::exception_ptr& left) {
  try {
    std::rethrow_exception(left);
  } catch (const Failure& e) {
    restore_exception(Py_NewRef(e.exception.get()));
  }
  return nullptr;
}

PyObject* raise_deadlock(PyRun& run) {
  Owned knot(PyList_New(0));
  for (const std::string& k : run.run.knot())
    if (knot) append(knot, to_str(k));
  Owned processes(knot ? PyList_New(0) : nullptr);
  for (const auto& b : run.blocked) {
    if (!processes) break;
    Owned places(PyTuple_New(static_cast<Py_ssize_t>(b.places.size())));
    Py_ssize_t i = 0;
    for (const std::string& place : b.places)
      if (places) put(places, i++, to_str(place));
    append(processes, places ? PyObject_CallFunction(errors.Blocked, "ssNs", b.path.c_str(),
                                                     b.verb.c_str(), places.release(), b.at.c_str())
                             : nullptr);
  }
  if (!processes) return nullptr;
  const Owned report(to_str(run.run.deadlock_report() + say_left_open(run)));
  PyObject* e = report ? PyObject_CallFunctionObjArgs(errors.Deadlock, report.get(), knot.get(),
                                                      processes.get(), nullptr)
                       : nullptr;
  if (e) restore_exception(e);
  return nullptr;
}

// --- on a thread ---------------------------------------------------------------------------------

namespace {
constexpr runtime::OpKind between_op{"the beginning or the end of a run",
                                     [](ProcessBase&) noexcept { return false; }, nullptr};
}  // namespace

Outermost::Outermost(runtime::Clock clock)
    : run(checking ? runtime::Clock::virtual_time : clock), outer_(std::exchange(root_run, &run)) {
  run.self.op = &between_op;
  run.state = run.self.state = PyThreadState_Get();
  run.self.function = "main";
  watch_outside(run.run);
  run.run.activated();
  if (!runtime::ThreadProcess::current_or_null()) {
    plain_ = &runtime::ThreadProcess::self();
    runtime::Limit::lend(*plain_, *plain_->run, run.self, run.run);
  }
  scope_.emplace(run.self);
  interrupts_.emplace();
}
void Outermost::over() noexcept {
  run.spawned = nullptr;
  run.self.op = &between_op;
}
void Outermost::end(PyObject*& result) noexcept {
  interrupts_.reset();
  scope_.reset();
  if (plain_) runtime::Limit::give_back(run.self, run.run, *plain_, *plain_->run);
  root_run = outer_;
  if (!result || !(run.interrupted || PyErr_Occurred())) return;
  if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  Py_CLEAR(result);
}

void wait_here(runtime::Scheduler& scheduler, runtime::ThreadProcess& self, runtime::Group& group,
               runtime::Group* spawned) {
  bool waited = false;
  {
    runtime::ThreadProcess::Hosting hosting(self, scheduler);
    // The Stop is on the heap, as groups are: a greenlet that was started from a shallower stack
    // uses this part of the stack when it wakes the waiting greenlet (greenlet.cpp).
    const auto waiting = std::make_unique<runtime::Stop>(scheduler);
    runtime::Stop& stop = *waiting;
    const GeneratorHooks hooks(scheduler.run);
    hosting.waits(wait_op, &group);
    while (!group.done() || (spawned && (!spawned->done() || close_generators(scheduler.run)))) {
      runtime::Group& g = group.done() ? *spawned : group;
      if (g.begin_wait(stop) == Status::pending) {
        waited = true;
        scheduler.loop();
      }
      run_deferred();
    }
  }
  if (spawned || !scheduler_of_block(self)) return;       // nothing runs after the last group
  const bool gives_way = !waited && self.line.at_once();  // rule 7.7
  if (waited || gives_way) self.line.begin_anew();
  if (gives_way) yield_in_block(self);
}

void goes_on_after(runtime::ThreadProcess& self, std::initializer_list<runtime::Group*> groups) {
  for (runtime::Group* const group : groups) checking->joined(&self, group);
  if (checking->pauses(&self, nullptr, false)) checking->stops(&self);
}

bool raise_outcome(ProcessBase& self, PyRun* outermost, std::vector<std::exception_ptr>& failures,
                   PyObject* block) {
  if (PyObject* const e =
          outermost ? std::exchange(outermost->interrupt, nullptr) : block_interrupt(self))
    restore_exception(e);
  else if (outermost && outermost->interrupted)
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  else if (outermost && outermost->run.deadlocked()) {
    await_declared(outermost);
    raise_deadlock(*outermost);
  } else if (!failures.empty())
    raise_failures(std::move(failures), block);
  else
    return false;
  failures.clear();
  if (outermost) flight_failed();
  return true;
}

namespace {

// Runs the processes in `list` on this thread, whose process is `self`. The outermost run waits for
// spawned processes too. Returns null if an exception must be raised. `alone` means that the list
// contains one process; an exception that leaves this process is raised (rule 7.1).
PyObject* execute_in(runtime::Run& run, runtime::ThreadProcess& self, Outermost* outermost,
                     PyObject* list, bool alone) {
  std::vector<std::exception_ptr> failures;
  std::exception_ptr left;
  {
    std::optional<runtime::Scheduler> own;
    runtime::Scheduler* const of_block = scheduler_of_block(self);
    runtime::Scheduler& scheduler = of_block ? *of_block : own.emplace(run, &self);
    const auto groups = std::array{std::make_unique<runtime::Group>(run, &scheduler, &self),
                                   std::make_unique<runtime::Group>(run, &scheduler, &self)};
    runtime::Group& group = *groups[0];
    runtime::Group& spawned = *groups[1];
    if (outermost) {  // if one of the two groups fails, both fail (rule 7.4)
      spawned.also = &group;
      group.also = &spawned;
      outermost->run.spawned = &spawned;
    }
    if (alone) group.keep_end();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
      start_process(group, proc(PyList_GET_ITEM(list, i)));
    if (outermost && outermost->was_interrupted()) run.cancel_everybody();
    wait_here(scheduler, self, group, &spawned);
    if (checking && of_block) [[unlikely]]
      goes_on_after(self, {&group, &spawned});
    if (outermost) outermost->over();
    failures = group.take_failures();
    for (auto& f : spawned.take_failures()) failures.push_back(std::move(f));
    left = group.take_end();
  }
  if (raise_outcome(self, outermost ? &outermost->run : nullptr, failures)) return nullptr;
  if (self.cancel().load()) return raise_cancelled(self, nullptr);
  return left ? raise_left(left) : results_of(list);
}

PyObject* execute(PyObject* list, runtime::Clock clock, bool alone = false) {
  runtime::ThreadProcess* const t = runtime::ThreadProcess::current_or_null();
  if (t && t->run) {
    if (t->cancel().load()) {
      never_run(list);
      return raise_cancelled(*t, nullptr);
    }
    if (t->op) return in_another_operation("a network cannot be run", "run it");
    if (claim_processes(list) < 0) return nullptr;
    return execute_in(*t->run, *t, nullptr, list, alone);
  }
  const auto outermost = std::make_unique<Outermost>(clock);
  PyObject* r = nullptr;
  // If the run is cancelled, the time limit of an enclosing block has expired and has cancelled it.
  if (outermost->run.self.cancel().load()) {
    never_run(list);
    raise_cancelled(outermost->run.self, nullptr);
  } else if (claim_processes(list) == 0) {
    r = execute_in(outermost->run.run, outermost->run.self, outermost.get(), list, alone);
  }
  outermost->end(r);
  return r;
}

// --- in a coroutine process ----------------------------------------------------------------------

struct GroupOpObject {
  PyObject_HEAD GroupObject* group;
  ProcessObject* process;  // the process that waits; null otherwise
  bool parallel;
  bool waiting;
  bool done;
  bool awaited;
};
GroupOpObject* gop(PyObject* o) noexcept { return reinterpret_cast<GroupOpObject*>(o); }

}  // namespace

GroupObject* new_group(Owned<> list) {
  GroupObject* g = PyObject_GC_New(GroupObject, &GroupType);
  if (!g) return nullptr;
  g->list = list.release();
  g->group = nullptr;
  g->block = nullptr;
  g->outermost = nullptr;
  g->scheduler = nullptr;
  g->spawned = nullptr;
  g->own_group = nullptr;
  g->guest = nullptr;
  g->owner = nullptr;
  g->around = nullptr;
  g->file = nullptr;
  g->line = 0;
  g->generation = generation;
  g->starting = 0;
  g->state = GroupState::made;
  g->borrowed = g->virtual_time = false;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(g));
  return g;
}

PyObject* new_group_op(GroupObject* owned, bool parallel) {
  if (!owned) return nullptr;
  Owned group(owned);
  GroupOpObject* o = PyObject_New(GroupOpObject, &GroupOpType);
  if (!o) return nullptr;
  o->group = group.release();
  o->process = nullptr;
  o->parallel = parallel;
  o->waiting = o->done = o->awaited = false;
  return reinterpret_cast<PyObject*>(o);
}

namespace {

// Starts the processes of a Parallel. Returns -1 if they are not started.
int open_parallel(GroupObject* g, ProcessBase& p, bool alone = false) {
  if (p.cancel().load()) {
    never_run(g->list);
    raise_cancelled(p, nullptr);
    return -1;
  }
  if (claim_processes(g->list) < 0) return -1;
  g->group = new runtime::Group(p.group->run, p.executor(), &p);
  if (alone) g->group->keep_end();
  g->state = GroupState::open;
  ++g->starting;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(g->list); ++i)
    start_process(*g->group, proc(PyList_GET_ITEM(g->list, i)));
  --g->starting;
  return 0;
}

Status begin_to_wait(GroupObject* g, ProcessBase& p) {
  g->group->begin_passing_on();
  if (p.cancel().load()) g->group->pass_on();
  p.place = g->group;
  return g->group->begin_wait(p);
}

// Called when all processes have ended. Returns the outcome of the Parallel or of the block.
PyObject* conclude(GroupObject* g, ProcessBase& p, bool parallel) {
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  const std::exception_ptr left = g->group->take_end();
  delete std::exchange(g->group, nullptr);
  g->state = GroupState::ended;
  end_block(g);
  if (!failures.empty()) return raise_failures(std::move(failures), g->block);
  if ((parallel || !g->block) && p.cancel().load()) return raise_cancelled(p, nullptr);
  if (left) return raise_left(left);
  // if the block raised an exception, that exception continues
  return parallel ? results_of(g->list) : Py_NewRef(Py_False);
}

PySendResult conclude_op(GroupOpObject* o, ProcessBase& p, PyObject** r) {
  o->done = true;
  o->waiting = false;
  o->process = nullptr;
  *r = conclude(o->group, p, o->parallel);
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

}  // namespace

// Waits for the group in a greenlet process.
PyObject* wait_for(Caller& self, GroupObject* g, bool parallel) {
  ProcessBase& p = self.process();
  self.wait(begin_to_wait(g, p), wait_op);
  return self.give(conclude(g, p, parallel));
}

namespace {

PyObject* parallel_here(PyObject* list, bool alone = false) {
  Caller self("Parallel");
  if (!self) return nullptr;
  const Owned g(new_group(new_ref(list)));
  return g && open_parallel(g.get(), self.process(), alone) == 0 ? wait_for(self, g.get(), true)
                                                                 : nullptr;
}

const char* verb_of(GroupOpObject* o) noexcept {
  return o->parallel ? "Parallel" : "leaving a Group";
}

// Called when the operation is no longer awaited. The processes for which it waited are cancelled,
// and the owner's group waits for them (rules 6.2, 7.6).
void give_up(GroupOpObject* o) noexcept {
  GroupObject* const g = o->group;
  if (o->done) return;
  o->done = true;
  o->waiting = false;
  if (ProcessObject* const me = std::exchange(o->process, nullptr)) {
    leave(me, reinterpret_cast<PyObject*>(o),
          [g](ProcessBase& p) { return g->group->end_wait(p); });
    abandon_group(g, *me->base.group);
  } else if (o->parallel) {
    never_run(g->list);
  }  // if the block is open, its owner still has to leave it: leave_blocks() handles that
}

// Returns false, with an exception set, if `me` is not allowed to step the operation.
bool may_step(GroupOpObject* o, ProcessObject* me) {
  const char* const what = o->parallel ? "Parallel" : "a group";
  if (o->done)
    bad_use("%s was awaited already", what);
  else if (o->waiting && (o->process != me || !resumed(me, reinterpret_cast<PyObject*>(o))))
    being_awaited(verb_of(o), o->process);
  else if (!me)
    bad_use("%s was awaited outside the coroutine process that made it", what);
  else if (!o->waiting && !o->parallel &&
           o->group->owner != static_cast<const ProcessBase*>(&me->base))
    bad_use("leaving a Group is awaited by the process that entered it, and by no other");
  else
    return true;
  return false;
}

PySendResult group_op_send(PyObject* self, PyObject*, PyObject** r) {
  GroupOpObject* o = gop(self);
  GroupObject* g = o->group;
  *r = nullptr;
  ProcessObject* me = current_coroutine();
  if (!may_step(o, me)) return PYGEN_ERROR;
  ProcessBase& p = me->base;
  if (o->waiting) {
    me->waits = nullptr;
    return conclude_op(o, p, r);
  }
  if (woken_first(me) || gives_way_first(me)) [[unlikely]] {
    *r = Py_NewRef(Py_None);
    return PYGEN_NEXT;
  }
  run_deferred();
  if (p.op || g->starting > 0) {
    bad_use("%s while another operation of this process waits: a process does one thing at a time",
            verb_of(o));
    return PYGEN_ERROR;
  }
  if (o->parallel) {
    o->done = true;
    if (open_parallel(g, p) < 0) return PYGEN_ERROR;
    o->done = false;
  }
  if (begin_to_wait(g, p) == Status::ok) return conclude_op(o, p, r);
  await_in(me, self, &wait_op);
  o->process = me;
  o->waiting = true;
  *r = Py_NewRef(Py_None);
  return PYGEN_NEXT;
}

// Replaces group_op_send while there is an observer.
PySendResult group_op_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  GroupOpObject* o = gop(self);
  if (o->done) return group_op_send(self, arg, r);
  const Owned list = new_ref(o->group->list);
  if (!o->waiting) observe("begin", "wait for", list.get(), nullptr);
  const PySendResult s = group_op_send(self, arg, r);
  observe_sent(s, "wait for", list.get(), *r);
  return s;
}

PyAsyncMethods group_op_async{};
PyObject* group_op_next(PyObject* self) { return iternext_by(group_op_async.am_send, self); }
PyObject* group_op_pysend(PyObject* self, PyObject*) {
  return send_by(group_op_async.am_send, self);
}
PyObject* group_op_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  GroupOpObject* o = gop(self);
  if (o->process && !driven_by(o->process)) return being_awaited(verb_of(o), o->process);
  give_up(o);
  return raise_thrown(args, n);
}
PyObject* group_op_close(PyObject* self, PyObject*) {
  GroupOpObject* o = gop(self);
  if (o->process && !driven_by(o->process)) return being_awaited(verb_of(o), o->process);
  give_up(o);
  Py_RETURN_NONE;
}
void group_op_dealloc(PyObject* self) {
  GroupOpObject* o = gop(self);
  if (o->parallel && !o->done && !o->waiting) {
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "Parallel of %zd process%s was never awaited: write `await` before it",
                         PyList_GET_SIZE(o->group->list),
                         PyList_GET_SIZE(o->group->list) == 1 ? "" : "es") < 0)
      PyErr_WriteUnraisable(Py_None);
  }
  give_up(o);
  Py_DECREF(reinterpret_cast<PyObject*>(o->group));
  PyObject_Free(o);
}
PyMethodDef group_op_methods[] = {{"send", gated<group_op_pysend>, METH_O, nullptr},
                                  {"throw", method(gated<group_op_throw>), METH_FASTCALL, nullptr},
                                  {"close", gated<group_op_close>, METH_NOARGS, nullptr},
                                  {}};

// --- functions -----------------------------------------------------------------------------------

PyObject* f_parallel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  run_deferred();
  close_left_blocks();
  Owned list(process_list(args, n));
  if (!list) return nullptr;
  if (current_coroutine()) return new_group_op(new_group(std::move(list)), true);
  if (in_task())
    return bad_use(
        "Parallel of weft.threads would block the running asyncio loop: await that of "
        "weft.coroutines");
  PyObject* r = observed("wait for", list.get(), nullptr, [&] {
    return current_greenlet() ? parallel_here(list.get())
                              : execute(list.get(), runtime::Clock::steady);
  });
  return r;
}

// run(processes, virtual, alone): called by ordinary code or a thread process. `alone` means that
// there is exactly one process (rule 7.1).
PyObject* f_run(PyObject*, PyObject* args) {
  PyObject* processes;
  int virtual_time, alone = 0;
  if (!PyArg_ParseTuple(args, "O!p|p", &PyTuple_Type, &processes, &virtual_time, &alone))
    return nullptr;
  run_deferred();
  close_left_blocks();
  if (current_coroutine())
    return bad_use(
        "run inside a coroutine process would stop its scheduler: use `await Parallel(...)`");
  if (in_task())
    return bad_use(
        "run would block the running asyncio loop: use `await Parallel(...)` or `await "
        "run_async(...)`");
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
      t && t->run && virtual_time && t->run->clock() == runtime::Clock::steady)
    return bad_use(
        "run(clock='virtual') inside a run on the steady clock: the clock belongs to the outermost "
        "run");
  const Owned list(process_list(&PyTuple_GET_ITEM(processes, 0), PyTuple_GET_SIZE(processes)));
  if (!list) return nullptr;
  const runtime::Clock clock = virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady;
  return current_greenlet() ? parallel_here(list.get(), alone != 0)
                            : execute(list.get(), clock, alone != 0);
}

PyObject* f_spawn(PyObject*, PyObject* const* args, Py_ssize_t n) {
  run_deferred();
  // Iterating over the arguments runs user code, in which a block can begin or end.
  const Owned list(process_list(args, n));
  if (!list) return nullptr;
  runtime::Run* run = current_run();
  runtime::Group* spawned = run ? run_of(*run).spawned : nullptr;
  if (!spawned)
    bad_use(
        "Spawn outside any run: there is nobody to wait for the process; start the network by "
        "run(...)");
  if (!spawned || claim_processes(list.get()) < 0) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
    start_process(*spawned, proc(PyList_GET_ITEM(list.get(), i)));
  Py_RETURN_NONE;
}

PyObject* f_current_process(PyObject*, PyObject*) {
  ProcessObject* p = process_object(this_process());
  return Py_NewRef(p ? reinterpret_cast<PyObject*>(p) : Py_None);
}
// _where(): returns the type of the caller: 0 for ordinary code, 1 for a coroutine process, 2 for a
// thread process (or a thread that runs a network), 3 for a greenlet process, 4 for an asyncio
// loop.
PyObject* f_where(PyObject*, PyObject*) {
  if (current_coroutine()) return PyLong_FromLong(1);
  if (current_greenlet()) return PyLong_FromLong(3);
  if (in_task()) return PyLong_FromLong(4);
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  return PyLong_FromLong(t && t->run ? 2 : 0);
}
PyObject* f_flatten(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return process_list(args, n);
}
// Returns the processes of a Sequence, which starts them later. Raises BadUse if a process was
// already started, or is listed twice.
PyObject* f_in_turn(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Owned list(process_list(args, n));
  if (!list || claim_processes(list.get()) < 0) return nullptr;
  unclaim_processes(list.get());
  return list.release();
}
PyObject* f_must_block(PyObject*, PyObject* verb) {
  if (current_coroutine())
    return bad_use("this %U blocks: in a coroutine process await that of weft.coroutines", verb);
  Py_RETURN_NONE;
}
PyObject* f_yield(PyObject*, PyObject*) { return operation_yield(); }

PyObject* f_after_fork(PyObject*, PyObject*) {
  ++generation;
  ++ends_closed;  // makes existing choices check their channels again
  forget_threads();
  forget_calls();
  forget_blocks();
  main_is_this_thread();
  runtime::this_context = nullptr;
  // In the parent this thread was a process, which does not exist in the child.
  runtime::ThreadProcess::become(nullptr);
  root_run = nullptr;
  Py_RETURN_NONE;
}

PyMethodDef group_functions[] = {
    {"parallel", method(gated<f_parallel>), METH_FASTCALL, nullptr},
    {"run", gated<f_run>, METH_VARARGS, nullptr},
    {"spawn", method(gated<f_spawn>), METH_FASTCALL, nullptr},
    {"current_process", gated<f_current_process>, METH_NOARGS,
     "Returns the process that calls, or None in ordinary code."},
    {"flatten", method(gated<f_flatten>), METH_FASTCALL, nullptr},
    {"in_turn", method(gated<f_in_turn>), METH_FASTCALL, nullptr},
    {"must_block", gated<f_must_block>, METH_O, nullptr},
    {"where", gated<f_where>, METH_NOARGS, nullptr},
    {"yield_", gated<f_yield>, METH_NOARGS,
     "Lets every other runnable process of this scheduler run (rule 7.7)."},
    {"_after_fork_in_child", gated<f_after_fork>, METH_NOARGS, nullptr},
    {"_continue_with_parent", f_continue_with_parent, METH_NOARGS, nullptr},
    {"_end_program", gated<f_end_program>, METH_O, nullptr},
    {}};

}  // namespace

void abandon_group(GroupObject* g, runtime::Group& successor) noexcept {
  if (!g->group) return;
  runtime::Group* const group = std::exchange(g->group, nullptr);
  g->state = GroupState::ended;
  end_block(g);
  if (!group->abandon(successor)) delete group;
}

void drop_awaited_group_wait(PyObject* o) noexcept {
  const Owned held = new_ref(o);
  give_up(gop(o));
}

void observe_groups(bool on) noexcept {
  group_op_async.am_send = on ? gated<group_op_send_observed> : gated<group_op_send>;
}

constexpr runtime::OpKind make_wait_op() { return {"wait for", &withdraw_wait, nullptr}; }
const runtime::OpKind wait_op = make_wait_op();

PyTypeObject GroupOpType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_group(PyObject* m) {
  refuse_as_result<GroupOpObject>(GroupOpType, group_op_async,
                                  [](PyObject* o) noexcept { return verb_of(gop(o)); });
  group_op_async.am_send = gated<group_op_send>;
  GroupOpType.tp_name = "weft.GroupOperation";
  GroupOpType.tp_basicsize = sizeof(GroupOpObject);
  GroupOpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  GroupOpType.tp_dealloc = gated<group_op_dealloc>;
  GroupOpType.tp_iternext = gated<group_op_next>;
  GroupOpType.tp_methods = group_op_methods;
  GroupOpType.tp_as_async = &group_op_async;
  if (PyType_Ready(&GroupOpType) < 0) return -1;
  return PyModule_AddFunctions(m, group_functions);
}

}  // namespace weft::py
