// Group as a context manager (rule 7.5).
//
//   made ──enter──► open: processes are started as the block runs ──exit: all are waited for──► ended
//
// A block of ordinary code is an outermost run, whose thread is a process of it (`home`) until the block ends: it can be cancelled, and it
// counts when nothing can go on. Whenever it waits it runs the coroutines and greenlets of the run (home.cpp); so do blocks and Parallels
// within the block.
#include "group.hpp"

namespace weft::py {

namespace {

GroupObject* grp(PyObject* o) noexcept { return reinterpret_cast<GroupObject*>(o); }

// `run`: within which it is to be entered; null: none of ours.
int check_made(GroupObject* g, const runtime::Run* run) {
  if (g->state != GroupState::made)
    bad_use("a Group is entered once: make another");
  else if (g->virtual_time && run && run->clock() == runtime::Clock::steady)
    bad_use("Group(clock='virtual') inside a run on the steady clock: the clock belongs to the outermost run");
  else
    return 0;
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
    return bad_use("async with Group() is for coroutine processes and asyncio tasks: in ordinary code, or in a thread, use `with Group()`");
  if (check_made(grp(o), me ? &me->base.group->run : nullptr) < 0) return nullptr;
  if (!me) {
    if (grp(o)->virtual_time) return bad_use("Group(clock='virtual') in an asyncio task: await run_async(..., clock='virtual')");
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
    g->home->unlink(g->outermost->run.self);
    g->outermost->run.self.group = nullptr;
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
  if (check_made(g, current_run()) < 0) return nullptr;
  if (ProcessObject* me = current_greenlet()) {
    open_block(g, me->base);
    return Py_NewRef(o);
  }
  settle();
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  if (!t || !t->run) {  // ordinary code: the block is an outermost run
    g->outermost = new Outermost(g->virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady);
    t = &g->outermost->run.self;
  }
  runtime::Scheduler* const home = home_here(*t);
  // Of a thread that has none, but for a new block in ordinary code, it serves the waiting for the end alone.
  g->scheduler = home ? home : new runtime::Scheduler(*t->run, g->outermost ? nullptr : t);
  g->borrowed = home != nullptr;
  // Coroutine processes of a group in a thread run where the outermost run's do: this thread is busy with the block.
  runtime::Group* spawned = run_of(*t->run).spawned;
  g->group = new runtime::Group(*t->run, spawned ? spawned->executor : g->scheduler, t);
  if (g->outermost) {
    settle_home(g->outermost->run.self, *g->scheduler);
    g->spawned = new runtime::Group(*t->run, g->scheduler, t);
    g->spawned->also = g->group;  // the two fail as one (rule 7.4)
    g->group->also = g->spawned;
    g->outermost->run.spawned = g->spawned;
    g->home = new runtime::Group(*t->run, g->scheduler, nullptr);
    g->home->add(*t);
  }
  g->group->open_block();
  g->state = GroupState::open;
  if (g->outermost) g->outermost->cancel_if_interrupted();
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
  wait_here(*g->scheduler, self, *g->group, g->spawned);
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  if (g->spawned)
    for (auto& f : g->spawned->take_failures()) failures.push_back(std::move(f));
  delete std::exchange(g->group, nullptr);
  delete std::exchange(g->spawned, nullptr);
  if (!g->borrowed) delete g->scheduler;
  g->scheduler = nullptr;
  g->state = GroupState::ended;
  PyObject* r = nullptr;
  if (!raise_outcome(g->outermost ? &g->outermost->run : nullptr, failures, g->block))
    r = !g->block && self.cancel().load() ? raise_cancelled(self, nullptr) : Py_NewRef(Py_False);
  if (g->outermost) {
    g->outermost->end(r);
    delete std::exchange(g->outermost, nullptr);
  }
  return r;
}

PyObject* group_start(PyObject* o, PyObject* p) {
  GroupObject* g = grp(o);
  settle();
  if (g->state != GroupState::open || (g->group->done() && g->block))
    return bad_use("start in a Group that is not open: start processes inside its with block");
  if (!Py_IS_TYPE(p, &ProcessType)) return bad_use("%R is no process: call a function that is decorated with @process", p);
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
  static const char* names[] = {"clock", nullptr};
  const char* clock = "steady";
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$s:Group", const_cast<char**>(names), &clock)) return nullptr;
  const std::string_view c = clock;
  if (c != "steady" && c != "virtual") return bad_use("Group(clock='%s'): a clock is 'steady' or 'virtual'", clock);
  PyObject* list = PyList_New(0);
  GroupObject* g = list ? new_group(list) : nullptr;
  if (g) g->virtual_time = c == "virtual";
  return reinterpret_cast<PyObject*>(g);
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

}  // namespace

PyTypeObject GroupType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_block(PyObject* m) {
  GroupType.tp_name = "weft.Group";
  GroupType.tp_doc =
      "Group(*, clock='steady'): processes as a context manager: leaving the block waits for all of them (rule 7.5).\n\n"
      "In ordinary code the block is an outermost run: greenlets and coroutines that are started in it run while the block waits,\n"
      "and clock='virtual' gives it virtual time (rule 8.6).\n\n"
      "Raises:\n    what failed in it (several: an ExceptionGroup), at its end; Cancelled; Deadlock; BadUse.";
  GroupType.tp_basicsize = sizeof(GroupObject);
  GroupType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  GroupType.tp_new = gated<group_new>;
  GroupType.tp_dealloc = gated<group_dealloc>;
  GroupType.tp_traverse = group_traverse;
  GroupType.tp_clear = gated<group_clear>;
  GroupType.tp_methods = group_methods;
  return PyType_Ready(&GroupType) < 0 ? -1 : add_type(m, "Group", &GroupType);
}

}  // namespace weft::py
