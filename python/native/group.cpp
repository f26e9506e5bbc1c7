// Composition (rule 7): the outermost run, parallel, groups as context managers, spawn.
//
//   execute()   blocks this thread as the scheduler of the coroutine processes among the children     (run, Parallel in a thread)
//   GroupOp     waits in a coroutine process; its children run on the same scheduler                   (await Parallel, async with Group)
//   wait_for()  the same in a greenlet process, which parks
//
// A block of ordinary code is an outermost run, whose thread is a process of it (`home`) until the block ends: it can be cancelled, and it
// counts when nothing can go on.
//
// A group lives until all its processes have ended (rule 7.6); the objects here outlive their groups.
#include "asyncio.hpp"
#include "interrupt.hpp"
#include "observe.hpp"
#include "weft/compose.hpp"

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

ProcessObject* proc(PyObject* o) noexcept { return reinterpret_cast<ProcessObject*>(o); }

// Whoever was to start them was cancelled first (rule 6.1): that they never start is no mistake of the program's.
void give_up_all(PyObject* list) noexcept {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) proc(PyList_GET_ITEM(list, i))->given_up = 1;
}

}  // namespace

// The results of processes that have all ended without failure, in order.
PyObject* results_of(PyObject* list) {
  const Py_ssize_t n = PyList_GET_SIZE(list);
  PyObject* r = PyList_New(n);
  for (Py_ssize_t i = 0; r && i < n; ++i) {
    PyObject* v = proc(PyList_GET_ITEM(list, i))->outcome;
    PyList_SET_ITEM(r, i, Py_NewRef(v ? v : Py_None));
  }
  return r;
}

// Raises what failed: the one exception, or a group of them (rule 7.2). `also`: the exception of the block, or null; that it was
// cancelled is no failure (rule 6.5).
PyObject* raise_failures(std::vector<std::exception_ptr> failures, PyObject* also) {
  PyObject* list = PyList_New(0);
  if (!list) return nullptr;
  if (also && !PyErr_GivenExceptionMatches(also, errors.Cancelled)) PyList_Append(list, also);
  for (const std::exception_ptr& f : failures) {
    try {
      std::rethrow_exception(f);
    } catch (const Failure& e) {
      PyList_Append(list, e.exception);
    } catch (const std::exception& e) {
      PyObject* x = PyObject_CallFunction(PyExc_RuntimeError, "s", e.what());
      if (x) PyList_Append(list, x);
      Py_XDECREF(x);
    }
  }
  PyObject* e = PyList_GET_SIZE(list) == 1 ? Py_NewRef(PyList_GET_ITEM(list, 0)) : PyObject_CallOneArg(errors.several, list);
  Py_DECREF(list);
  if (e) restore_exception(e);
  return nullptr;
}

PyObject* raise_deadlock(PyRun& run) {
  PyObject* knot = PyList_New(0);
  for (const std::string& k : run.run.knot()) {
    PyObject* s = to_str(k);
    if (s) PyList_Append(knot, s);
    Py_XDECREF(s);
  }
  PyObject* processes = PyList_New(0);
  for (const auto& b : run.blocked) {
    PyObject* places = PyTuple_New(static_cast<Py_ssize_t>(b.places.size()));
    for (std::size_t i = 0; i < b.places.size(); ++i) PyTuple_SET_ITEM(places, static_cast<Py_ssize_t>(i), to_str(b.places[i]));
    PyObject* x = PyObject_CallFunction(errors.Blocked, "ssNs", b.path.c_str(), b.verb.c_str(), places, b.at.c_str());
    if (x) PyList_Append(processes, x);
    Py_XDECREF(x);
  }
  PyObject* report = to_str(run.run.deadlock_report());
  PyObject* e = report ? PyObject_CallFunctionObjArgs(errors.Deadlock, report, knot, processes, nullptr) : nullptr;
  Py_XDECREF(report);
  Py_DECREF(knot);
  Py_DECREF(processes);
  if (e) restore_exception(e);
  return nullptr;
}

namespace {

// --- on a thread ------------------------------------------------------------------------------------------------------------------------

// Waits, as the scheduler of this thread, until the groups have ended.
void wait_here(runtime::Scheduler& scheduler, runtime::ThreadProcess::Hosting& hosting, runtime::Group& group, runtime::Group* spawned) {
  weft::detail::Stop stop(scheduler);
  hosting.waits(wait_op, &group);
  while (!group.done() || (spawned && !spawned->done())) {
    runtime::Group& g = group.done() ? *spawned : group;
    if (g.begin_wait(stop) == Status::pending) scheduler.loop();
    settle();
  }
}

// A signal that came before the processes were started found nobody to cancel.
void cancel_if_interrupted(PyRun& run) noexcept {
  if (run.interrupt || run.interrupted) run.run.cancel_everybody();
}

// One that came when all had ended: the result, if there is one, gives way to it.
void ended_by_interrupt(const PyRun& run, PyObject*& result) noexcept {
  if (!result || !(run.interrupted || PyErr_Occurred())) return;
  if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  Py_CLEAR(result);
}

// Run what is in `list` on this thread, which is `self`; the outermost run waits for what was spawned too. Null: something is to be raised.
PyObject* execute_in(runtime::Run& run, runtime::ThreadProcess& self, PyRun* outermost, PyObject* list) {
  PyObject* result = nullptr;
  std::vector<std::exception_ptr> failures;
  {
    runtime::Scheduler scheduler(run, &self);
    runtime::Group group(run, &scheduler, &self);
    runtime::Group spawned(run, &scheduler, &self);
    if (outermost) {  // the two fail as one (rule 7.4)
      spawned.also = &group;
      group.also = &spawned;
      outermost->spawned = &spawned;
    }
    {
      runtime::ThreadProcess::Hosting hosting(self, scheduler);
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) start_process(group, proc(PyList_GET_ITEM(list, i)));
      if (outermost) cancel_if_interrupted(*outermost);
      wait_here(scheduler, hosting, group, &spawned);
    }
    if (outermost) outermost->spawned = nullptr;
    failures = group.take_failures();
    for (auto& f : spawned.take_failures()) failures.push_back(std::move(f));
  }
  if (outermost && outermost->interrupt) {
    restore_exception(std::exchange(outermost->interrupt, nullptr));
  } else if (outermost && outermost->interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } else if (outermost && run.deadlocked()) {
    raise_deadlock(*outermost);
  } else if (!failures.empty()) {
    raise_failures(std::move(failures));
  } else if (self.cancel.load()) {
    raise_cancelled(self, nullptr);
  } else {
    result = results_of(list);
  }
  failures.clear();
  return result;
}

PyObject* execute(PyObject* list, runtime::Clock clock) {
  if (claim_processes(list) < 0) return nullptr;
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null(); t && t->run) {
    if (t->cancel.load()) {
      give_up_all(list);
      return raise_cancelled(*t, nullptr);
    }
    return execute_in(*t->run, *t, nullptr, list);
  }
  auto run = std::make_unique<PyRun>(clock);
  run->state = PyThreadState_Get();
  watch_outside(run->run);
  run->self.function = "main";
  run->self.state = run->state;
  run->run.activated();
  const ThreadProcess::Scope scope(run->self);
  PyRun* const outer = std::exchange(root_run, run.get());
  PyObject* r;
  {
    const Interrupts interrupts;
    r = execute_in(run->run, run->self, run.get(), list);
  }
  ended_by_interrupt(*run, r);
  root_run = outer;
  return r;
}

// --- in a coroutine process -----------------------------------------------------------------------------------------------------------

enum class GroupState : std::uint8_t { made, open, ended };

struct GroupObject {
  PyObject_HEAD PyObject* list;  // the processes
  runtime::Group* group;         // while open
  PyObject* block;               // the exception that left the block
  PyRun* run;                    // an outermost run that the block is, in ordinary code
  ThreadProcess::Scope* scope;
  Interrupts* interrupts;
  runtime::Scheduler* scheduler;
  runtime::Group* spawned;
  runtime::Group* home;  // of the run's own thread, while the block goes on
  GuestObject* guest;    // the network that the block is, in an asyncio task
  GroupState state;
};
struct GroupOpObject {
  PyObject_HEAD GroupObject* group;
  bool parallel;
  bool waiting;
  bool done;
};
GroupObject* grp(PyObject* o) noexcept { return reinterpret_cast<GroupObject*>(o); }
GroupOpObject* gop(PyObject* o) noexcept { return reinterpret_cast<GroupOpObject*>(o); }

GroupObject* new_group(PyObject* list) {
  GroupObject* g = PyObject_GC_New(GroupObject, &GroupType);
  if (!g) {
    Py_DECREF(list);
    return nullptr;
  }
  g->list = list;
  g->group = nullptr;
  g->block = nullptr;
  g->run = nullptr;
  g->scope = nullptr;
  g->interrupts = nullptr;
  g->scheduler = nullptr;
  g->spawned = nullptr;
  g->home = nullptr;
  g->guest = nullptr;
  g->state = GroupState::made;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(g));
  return g;
}

PyObject* new_group_op(GroupObject* owned, bool parallel) {
  if (!owned) return nullptr;
  GroupOpObject* o = PyObject_New(GroupOpObject, &GroupOpType);
  if (!o) {
    Py_DECREF(reinterpret_cast<PyObject*>(owned));
    return nullptr;
  }
  o->group = owned;
  o->parallel = parallel;
  o->waiting = o->done = false;
  return reinterpret_cast<PyObject*>(o);
}

// The processes of a Parallel, started. -1: not.
int open_parallel(GroupObject* g, ProcessBase& p) {
  if (p.cancel.load()) {
    give_up_all(g->list);
    raise_cancelled(p, nullptr);
    return -1;
  }
  if (claim_processes(g->list) < 0) return -1;
  g->group = new runtime::Group(p.group->run, p.executor(), &p);
  g->state = GroupState::open;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(g->list); ++i) start_process(*g->group, proc(PyList_GET_ITEM(g->list, i)));
  return 0;
}

Status begin_to_wait(GroupObject* g, ProcessBase& p) {
  g->group->begin_passing_on();
  if (p.cancel.load()) g->group->pass_on();
  p.place = g->group;
  return g->group->begin_wait(p);
}

// All have ended: the outcome of the parallel, or of the block.
PyObject* conclude(GroupObject* g, ProcessBase& p, bool parallel) {
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  delete std::exchange(g->group, nullptr);
  g->state = GroupState::ended;
  if (!failures.empty()) return raise_failures(std::move(failures), g->block);
  if ((parallel || !g->block) && p.cancel.load()) return raise_cancelled(p, nullptr);
  return parallel ? results_of(g->list) : Py_NewRef(Py_False);  // the block's exception goes on
}

PySendResult conclude_op(GroupOpObject* o, ProcessBase& p, PyObject** r) {
  o->done = true;
  o->waiting = false;
  *r = conclude(o->group, p, o->parallel);
  return *r ? PYGEN_RETURN : PYGEN_ERROR;
}

// In a greenlet process, which waits.
PyObject* wait_for(Caller& self, GroupObject* g, bool parallel) {
  ProcessBase& p = self.process();
  self.wait(begin_to_wait(g, p), wait_op);
  return self.give(conclude(g, p, parallel));
}
PyObject* parallel_here(PyObject* list) {
  Caller self("Parallel");
  if (!self) return nullptr;
  GroupObject* g = new_group(Py_NewRef(list));
  PyObject* r = g && open_parallel(g, self.process()) == 0 ? wait_for(self, g, true) : nullptr;
  Py_XDECREF(reinterpret_cast<PyObject*>(g));
  return r;
}

PySendResult group_op_send(PyObject* self, PyObject*, PyObject** r) {
  GroupOpObject* o = gop(self);
  GroupObject* g = o->group;
  *r = nullptr;
  ProcessObject* me = current_coroutine();
  if (o->done) {
    bad_use("%s was awaited already", o->parallel ? "Parallel" : "a group");
    return PYGEN_ERROR;
  }
  if (!me) {
    o->done = true;
    bad_use("%s was awaited outside the coroutine process that made it", o->parallel ? "Parallel" : "a group");
    return PYGEN_ERROR;
  }
  ProcessBase& p = me->base;
  if (o->waiting) {
    p.op = nullptr;
    return conclude_op(o, p, r);
  }
  settle();
  if (o->parallel) {
    o->done = true;
    if (open_parallel(g, p) < 0) return PYGEN_ERROR;
    o->done = false;
  }
  if (begin_to_wait(g, p) == Status::ok) return conclude_op(o, p, r);
  p.op = &wait_op;
  o->waiting = true;
  *r = Py_NewRef(Py_None);
  return PYGEN_NEXT;
}

// Takes the place of group_op_send while somebody observes.
PySendResult group_op_send_observed(PyObject* self, PyObject* arg, PyObject** r) {
  GroupOpObject* o = gop(self);
  if (o->done) return group_op_send(self, arg, r);
  PyObject* list = Py_NewRef(o->group->list);
  if (!o->waiting) observe("begin", "wait for", list, nullptr);
  const PySendResult s = group_op_send(self, arg, r);
  observe_sent(s, "wait for", list, *r);
  Py_DECREF(list);
  return s;
}

PyAsyncMethods group_op_async{};
PyObject* group_op_next(PyObject* self) { return iternext_by(group_op_async.am_send, self); }
PyObject* group_op_pysend(PyObject* self, PyObject*) { return send_by(group_op_async.am_send, self); }
PyObject* group_op_throw(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  gop(self)->done = true;
  return raise_thrown(args, n);
}
PyObject* group_op_close(PyObject* self, PyObject*) {
  gop(self)->done = true;
  Py_RETURN_NONE;
}
void group_op_dealloc(PyObject* self) {
  GroupOpObject* o = gop(self);
  if (o->parallel && !o->done && !o->waiting) {
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "Parallel of %zd processes was never awaited: write `await` before it",
                         PyList_GET_SIZE(o->group->list)) < 0)
      PyErr_WriteUnraisable(Py_None);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o->group->list); ++i) {  // one warning is enough
      ProcessObject* p = proc(PyList_GET_ITEM(o->group->list, i));
      if (p->started || !p->body || !PyCoro_CheckExact(p->body)) continue;
      p->started = 1;
      PyObject* x = PyObject_CallMethod(p->body, "close", nullptr);
      if (!x) PyErr_Clear();
      Py_XDECREF(x);
    }
    PyErr_Restore(t, v, tb);
  }
  Py_DECREF(reinterpret_cast<PyObject*>(o->group));
  PyObject_Free(o);
}
PyMethodDef group_op_methods[] = {{"send", gated<group_op_pysend>, METH_O, nullptr},
                                  {"throw", method(gated<group_op_throw>), METH_FASTCALL, nullptr},
                                  {"close", gated<group_op_close>, METH_NOARGS, nullptr},
                                  {}};

// --- Group as a context manager (rule 7.5) ----------------------------------------------------------------------------------------------

int check_made(GroupObject* g) {
  if (g->state == GroupState::made) return 0;
  bad_use("a Group is entered once: make another");
  return -1;
}

// In a process that a scheduler runs.
void open_block(GroupObject* g, ProcessBase& p) {
  settle();
  g->group = new runtime::Group(p.group->run, p.executor(), &p);
  g->group->open_block();
  g->state = GroupState::open;
}
PyObject* group_aenter(PyObject* o, PyObject*) {
  ProcessObject* me = current_coroutine();
  if (!me && !in_task())
    return bad_use(
        "async with Group() is for coroutine processes and asyncio tasks: from ordinary code use run(...), in a thread "
        "`with Group()`");
  if (check_made(grp(o)) < 0) return nullptr;
  if (!me) {
    settle();
    if (!(grp(o)->guest = guest_open())) return nullptr;
    grp(o)->group = group_of(grp(o)->guest);
    grp(o)->state = GroupState::open;
    return operation_ready(Py_NewRef(o));
  }
  open_block(grp(o), me->base);
  return operation_ready(Py_NewRef(o));
}
void leave_with(GroupObject* g, PyObject* e) {
  settle();
  g->group->close_block();
  if (g->home) {
    g->home->unlink(g->run->self);
    g->run->self.group = nullptr;
    delete std::exchange(g->home, nullptr);
  }
  if (e == Py_None) return;
  Py_XSETREF(g->block, Py_NewRef(e));
  g->group->cancel();
  if (g->spawned) g->spawned->cancel();  // rule 7.4
}
PyObject* group_aexit(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "__aexit__ takes three arguments");
  if (grp(o)->state != GroupState::open) return bad_use("this Group is not open");
  if (GuestObject* guest = grp(o)->guest) {
    const Section section(link_of(guest));
    leave_with(grp(o), args[1]);
    grp(o)->group = nullptr;
    grp(o)->state = GroupState::ended;
    PyObject* r = guest_leave(guest, grp(o)->block);
    Py_CLEAR(grp(o)->guest);
    return r;
  }
  leave_with(grp(o), args[1]);
  return new_group_op(grp(Py_NewRef(o)), false);
}

PyObject* group_enter(PyObject* o, PyObject*) {
  GroupObject* g = grp(o);
  if (current_coroutine() || in_task()) return bad_use("with Group() blocks: in a coroutine process or an asyncio task use `async with`");
  if (check_made(g) < 0) return nullptr;
  if (ProcessObject* me = current_greenlet()) {
    open_block(g, me->base);
    return Py_NewRef(o);
  }
  settle();
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  if (!t || !t->run) {  // ordinary code: the block is an outermost run
    g->run = new PyRun(runtime::Clock::steady);
    g->run->state = g->run->self.state = PyThreadState_Get();
    g->run->self.function = "main";
    watch_outside(g->run->run);
    g->run->run.activated();
    g->scope = new ThreadProcess::Scope(g->run->self);
    root_run = g->run;
    g->interrupts = new Interrupts;
    t = &g->run->self;
  }
  g->scheduler = new runtime::Scheduler(*t->run, t);
  // Coroutine processes of a group in a thread run where the outermost run's do: this thread is busy with the block.
  runtime::Group* spawned = run_of(*t->run).spawned;
  g->group = new runtime::Group(*t->run, spawned ? spawned->executor : g->scheduler, t);
  if (g->run) {
    g->spawned = new runtime::Group(*t->run, g->scheduler, t);
    g->spawned->also = g->group;  // the two fail as one (rule 7.4)
    g->group->also = g->spawned;
    g->run->spawned = g->spawned;
    g->home = new runtime::Group(*t->run, g->scheduler, nullptr);
    g->home->add(*t);
  }
  g->group->open_block();
  g->state = GroupState::open;
  if (g->run) cancel_if_interrupted(*g->run);
  return Py_NewRef(o);
}
PyObject* group_exit(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  GroupObject* g = grp(o);
  if (n != 3) return PyErr_Format(PyExc_TypeError, "__exit__ takes three arguments");
  if (g->state != GroupState::open) return bad_use("this Group is not open");
  leave_with(g, args[1]);
  if (!g->scheduler) {
    Caller self("leaving a group");
    return self ? wait_for(self, g, false) : nullptr;
  }
  runtime::ThreadProcess& self = *static_cast<runtime::ThreadProcess*>(static_cast<ThreadProcess*>(g->group->parent));
  {
    runtime::ThreadProcess::Hosting hosting(self, *g->scheduler);
    wait_here(*g->scheduler, hosting, *g->group, g->spawned);
  }
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  if (g->spawned)
    for (auto& f : g->spawned->take_failures()) failures.push_back(std::move(f));
  delete std::exchange(g->group, nullptr);
  delete std::exchange(g->spawned, nullptr);
  delete std::exchange(g->scheduler, nullptr);
  g->state = GroupState::ended;
  PyObject* r = nullptr;
  if (g->run && g->run->interrupt)
    restore_exception(std::exchange(g->run->interrupt, nullptr));
  else if (g->run && g->run->interrupted)
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  else if (g->run && g->run->run.deadlocked())
    raise_deadlock(*g->run);
  else if (!failures.empty())
    raise_failures(std::move(failures), g->block);
  else if (!g->block && self.cancel.load())
    raise_cancelled(self, nullptr);
  else
    r = Py_NewRef(Py_False);
  failures.clear();
  if (g->run) {
    delete std::exchange(g->interrupts, nullptr);
    delete std::exchange(g->scope, nullptr);
    ended_by_interrupt(*g->run, r);
    root_run = nullptr;
    delete std::exchange(g->run, nullptr);
  }
  return r;
}

PyObject* group_start(PyObject* o, PyObject* p) {
  GroupObject* g = grp(o);
  settle();
  if (g->state != GroupState::open || (g->group->done() && g->block))
    return bad_use("start in a Group that is not open: start processes inside its with block");
  if (!Py_IS_TYPE(p, &ProcessType)) return bad_use("%R is no process: call a function that is decorated with @process", p);
  // The thread of an outermost block does not run its scheduler while the block goes on.
  if (g->scheduler && g->group->parent == &run_of(g->group->run).self &&
      (proc(p)->kind == Kind::coroutine || proc(p)->kind == Kind::greenlet))
    return bad_use("a Group in ordinary code starts thread processes: for process %s, which is a %s, use run(...)", proc(p)->base.function,
                   proc(p)->kind == Kind::coroutine ? "coroutine" : "greenlet");
  PyObject* one = PyList_New(1);
  if (!one) return nullptr;
  PyList_SET_ITEM(one, 0, Py_NewRef(p));
  const int claimed = claim_processes(one);
  Py_DECREF(one);
  if (claimed < 0) return nullptr;
  const Section section(g->guest ? link_of(g->guest) : nullptr);
  start_process(*g->group, proc(p));
  return Py_NewRef(p);
}
PyObject* group_cancel(PyObject* o, PyObject*) {
  settle();
  const Section section(grp(o)->guest ? link_of(grp(o)->guest) : nullptr);
  if (grp(o)->group) grp(o)->group->cancel();
  Py_RETURN_NONE;
}
PyObject* group_new(PyTypeObject*, PyObject* args, PyObject* kw) {
  if (PyTuple_GET_SIZE(args) || kw) return PyErr_Format(PyExc_TypeError, "Group() takes no arguments");
  PyObject* list = PyList_New(0);
  return list ? reinterpret_cast<PyObject*>(new_group(list)) : nullptr;
}
int group_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(grp(o)->list);
  Py_VISIT(grp(o)->block);
  return 0;
}
int group_clear(PyObject* o) {
  Py_CLEAR(grp(o)->block);
  return 0;
}
void group_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  GroupObject* g = grp(o);
  if (!g->guest && g->group && g->group->done()) delete g->group;  // else its processes still refer to it: an owner that was torn down
  Py_XDECREF(reinterpret_cast<PyObject*>(g->guest));
  Py_CLEAR(g->list);
  Py_CLEAR(g->block);
  PyObject_GC_Del(o);
}
PyMethodDef group_methods[] = {{"start", gated<group_start>, METH_O, "Start a process in the group; returns it."},
                               {"cancel", gated<group_cancel>, METH_NOARGS, "Ask every process of the group to end."},
                               {"__aenter__", gated<group_aenter>, METH_NOARGS, nullptr},
                               {"__aexit__", method(gated<group_aexit>), METH_FASTCALL, nullptr},
                               {"__enter__", gated<group_enter>, METH_NOARGS, nullptr},
                               {"__exit__", method(gated<group_exit>), METH_FASTCALL, nullptr},
                               {}};

// --- functions ------------------------------------------------------------------------------------------------------------------------

PyObject* f_parallel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  settle();
  PyObject* list = process_list(args, n);
  if (!list) return nullptr;
  if (current_coroutine()) return new_group_op(new_group(list), true);
  if (in_task()) {
    Py_DECREF(list);
    return bad_use("Parallel of weft.threads would block the running asyncio loop: await that of weft.coroutines");
  }
  PyObject* r =
      observed("wait for", list, nullptr, [&] { return current_greenlet() ? parallel_here(list) : execute(list, runtime::Clock::steady); });
  Py_DECREF(list);
  return r;
}

// run(processes, virtual): from ordinary code or a thread process.
PyObject* f_run(PyObject*, PyObject* args) {
  PyObject* processes;
  int virtual_time;
  if (!PyArg_ParseTuple(args, "O!p", &PyTuple_Type, &processes, &virtual_time)) return nullptr;
  settle();
  if (current_coroutine()) return bad_use("run inside a coroutine process would stop its scheduler: use `await Parallel(...)`");
  if (in_task()) return bad_use("run would block the running asyncio loop: use `await Parallel(...)` or `await run_async(...)`");
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
      t && t->run && virtual_time && t->run->clock() == runtime::Clock::steady)
    return bad_use("run(clock='virtual') inside a run on the steady clock: the clock belongs to the outermost run");
  PyObject* list = process_list(&PyTuple_GET_ITEM(processes, 0), PyTuple_GET_SIZE(processes));
  if (!list) return nullptr;
  PyObject* r =
      current_greenlet() ? parallel_here(list) : execute(list, virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady);
  Py_DECREF(list);
  return r;
}

PyObject* f_spawn(PyObject*, PyObject* const* args, Py_ssize_t n) {
  settle();
  runtime::Run* run = current_run();
  runtime::Group* spawned = run ? run_of(*run).spawned : nullptr;
  if (!spawned) return bad_use("Spawn outside any run: there is nobody to wait for the process; start the network by run(...)");
  PyObject* list = process_list(args, n);
  if (!list) return nullptr;
  if (claim_processes(list) < 0) {
    Py_DECREF(list);
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) start_process(*spawned, proc(PyList_GET_ITEM(list, i)));
  Py_DECREF(list);
  Py_RETURN_NONE;
}

PyObject* f_current_process(PyObject*, PyObject*) {
  ProcessObject* p = process_object(this_process());
  return Py_NewRef(p ? reinterpret_cast<PyObject*>(p) : Py_None);
}
// 0: ordinary code, 1: a coroutine process, 2: a thread process (or a thread that runs a network), 3: a greenlet process,
// 4: an asyncio loop.
PyObject* f_where(PyObject*, PyObject*) {
  if (current_coroutine()) return PyLong_FromLong(1);
  if (current_greenlet()) return PyLong_FromLong(3);
  if (in_task()) return PyLong_FromLong(4);
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  return PyLong_FromLong(t && t->run ? 2 : 0);
}
PyObject* f_flatten(PyObject*, PyObject* const* args, Py_ssize_t n) { return process_list(args, n); }
PyObject* f_must_block(PyObject*, PyObject* verb) {
  if (current_coroutine()) return bad_use("this %U blocks: in a coroutine process await that of weft.coroutines", verb);
  Py_RETURN_NONE;
}
PyObject* f_yield(PyObject*, PyObject*) { return operation_yield(); }

PyObject* f_after_fork(PyObject*, PyObject*) {
  ++generation;
  forget_threads();
  main_is_this_thread();
  runtime::this_context = nullptr;
  root_run = nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"parallel", method(gated<f_parallel>), METH_FASTCALL, nullptr},
                           {"run", gated<f_run>, METH_VARARGS, nullptr},
                           {"spawn", method(gated<f_spawn>), METH_FASTCALL, nullptr},
                           {"current_process", gated<f_current_process>, METH_NOARGS, "The process that calls, or None in ordinary code."},
                           {"flatten", method(gated<f_flatten>), METH_FASTCALL, nullptr},
                           {"must_block", gated<f_must_block>, METH_O, nullptr},
                           {"where", gated<f_where>, METH_NOARGS, nullptr},
                           {"yield_", gated<f_yield>, METH_NOARGS, "Let every other runnable process of this scheduler run (rule 7.7)."},
                           {"_after_fork_in_child", gated<f_after_fork>, METH_NOARGS, nullptr},
                           {}};

}  // namespace

void observe_groups(bool on) noexcept { group_op_async.am_send = on ? gated<group_op_send_observed> : gated<group_op_send>; }

constexpr runtime::OpKind make_wait_op() { return {"wait for", &withdraw_wait, nullptr}; }
const runtime::OpKind wait_op = make_wait_op();

PyTypeObject GroupType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject GroupOpType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_group(PyObject* m) {
  GroupType.tp_name = "weft.Group";
  GroupType.tp_doc = "A group of processes as a context manager: leaving the block waits for all of them (rule 7.5).";
  GroupType.tp_basicsize = sizeof(GroupObject);
  GroupType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  GroupType.tp_new = gated<group_new>;
  GroupType.tp_dealloc = gated<group_dealloc>;
  GroupType.tp_traverse = group_traverse;
  GroupType.tp_clear = gated<group_clear>;
  GroupType.tp_methods = group_methods;
  group_op_async.am_await = PyObject_SelfIter;
  group_op_async.am_send = gated<group_op_send>;
  GroupOpType.tp_name = "weft.GroupOperation";
  GroupOpType.tp_basicsize = sizeof(GroupOpObject);
  GroupOpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  GroupOpType.tp_dealloc = gated<group_op_dealloc>;
  GroupOpType.tp_iter = PyObject_SelfIter;
  GroupOpType.tp_iternext = gated<group_op_next>;
  GroupOpType.tp_methods = group_op_methods;
  GroupOpType.tp_as_async = &group_op_async;
  if (PyType_Ready(&GroupType) < 0 || PyType_Ready(&GroupOpType) < 0) return -1;
  if (add_type(m, "Group", &GroupType) < 0) return -1;
  return PyModule_AddFunctions(m, functions);
}

}  // namespace weft::py
