// Group as a context manager (rule 7.5).
//
//   made ──enter──► open: processes are started as the block runs ──exit: all are waited for──► ended
//
// The owner of blocks (a process, the thread of ordinary code, an asyncio task) leaves them, the
// innermost first; any other order is bad use that changes nothing (rule 11.1). Blocks that can no
// longer be left end as follows:
//
//   open ──its owner ends: leave_blocks()──────► cancelled; its owner's group waits for it
//     └──collected: group_finalize()───────────► the same; of ordinary code: closed at once, or, if that is
//                                                not possible (`left`: another thread's, or blocks
//                                                within it are open), as soon as it is:
//                                                close_left_blocks()
//
// Invariant: `innermost` lists each owner's open blocks, linked by `around`; it owns a block that
// is `left`.
//
// A block of ordinary code is an outermost run. The thread of that code is a process of the run
// (`own_group`) until the block ends: the thread can be cancelled, and the search for deadlocks
// includes it. Whenever the thread waits, it runs the coroutines and greenlets of the run
// (block_thread.cpp); the same holds when blocks and Parallels within the block wait.
#include "processes/block.hpp"

#include "checking/points.hpp"

#include <unordered_map>

#include "channels/fork.hpp"
#include "channels/operations.hpp"
#include "declare.hpp"
#include "interpreter/door.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/asyncio.hpp"
#include "processes/block_thread.hpp"
#include "processes/caller.hpp"
#include "processes/greenlet.hpp"
#include "processes/group.hpp"
#include "processes/guests.hpp"
#include "processes/life.hpp"
#include "processes/limit.hpp"
#include "processes/loops.hpp"
#include "processes/outermost.hpp"
#include "processes/process_type.hpp"
#include "processes/run.hpp"

namespace weft::py {

std::size_t blocks_open = 0;

namespace {

GroupObject* grp(PyObject* o) noexcept { return reinterpret_cast<GroupObject*>(o); }

std::unordered_map<const void*, GroupObject*> innermost;
std::size_t left_blocks = 0;

void begin_block(GroupObject* g, const void* owner) {
  g->owner = owner;
  GroupObject*& in = innermost[owner];
  g->around = std::exchange(in, g);
  ++blocks_open;
  if (PyFrameObject* f = PyEval_GetFrame()) {
    const Owned code(PyFrame_GetCode(f));
    Py_XSETREF(g->file, Py_NewRef(code->co_filename));
    g->line = PyFrame_GetLineNumber(f);
  }
}

// Returns the asyncio task that calls this function; in a callback, the loop.
const void* task_here() noexcept {
  const void* const t = current_task();
  return t ? t : link_here();
}

// Checks that the block can be left here. `here` identifies the caller, as owners are identified.
// Returns -1 for bad use.
int check_leaving(GroupObject* g, const void* here) {
  if (g->state == GroupState::left)
    bad_use("this Group's block is already ending, and cannot be left again");
  else if (g->state != GroupState::open)
    bad_use("this Group is not open: its block was not entered, or has ended");
  else if (g->generation != generation)
    bad_use(
        "a Group that was entered before a fork cannot be left in the child: leave it in the "
        "process that entered it");
  else if (g->owner != here)
    bad_use(
        "a Group can be left only by the process, task or thread that entered it, and this is "
        "another: leave it there; it "
        "stays open until then, and its processes "
        "go on");
  else if (innermost[here] != g)
    bad_use(
        "a Group cannot be left before one that was entered after it: leave that one first; both "
        "stay "
        "open, and their processes go on");
  else if (g->starting > 0)
    bad_use(
        "a Group cannot be left while a process is being started in it (%s ran there): leave it "
        "elsewhere",
        who_ran_there());
  else
    return 0;
  return -1;
}

// Returns whether the exception passes through the block. In the child of a fork an exception
// (SystemExit too) leaves a block of the parent as if the block did not exist (rule 11.4).
bool passes_by(const GroupObject* g, PyObject* e) noexcept {
  return g->generation != generation && e != Py_None;
}

// Checks that the group can be entered. `run` is the run within which it is entered, or null.
int check_made(GroupObject* g, const runtime::Run* run) {
  if (g->state != GroupState::made)
    bad_use("a Group can be entered only once: make another");
  else if (g->virtual_time && run && run->clock() == runtime::Clock::steady)
    bad_use(
        "Group(clock='virtual') cannot begin inside a run on the steady clock: give "
        "clock='virtual' "
        "to the outermost run or Group");
  else if (is_over(this_process()))
    bad_use(
        "a Group cannot be entered in a process that has ended (a finaliser ran there): do it "
        "elsewhere");
  else
    return 0;
  return -1;
}

// Opens the block in a process that a scheduler runs.
void open_block(GroupObject* g, ProcessBase& p) {
  run_deferred();
  begin_block(g, static_cast<const ProcessBase*>(&p));
  g->group = new runtime::Group(p.group->run, p.executor(), &p);
  g->group->open_block();
  g->state = GroupState::open;
}
PyObject* group_aenter(PyObject* o, PyObject*) {
  ProcessObject* me = current_coroutine();
  if (!me && !in_task())
    return bad_use(
        "async with Group() is for coroutine processes and asyncio tasks: in ordinary code, or in "
        "a thread, use `with Group()`");
  if (check_made(grp(o), me ? &me->base.group->run : nullptr) < 0) return nullptr;
  if (!me) {
    if (grp(o)->virtual_time)
      return bad_use(
          "Group(clock='virtual') in an asyncio task: await run_async(..., clock='virtual')");
    run_deferred();
    if (!(grp(o)->guest = guest_open())) return nullptr;
    begin_block(grp(o), task_here());
    grp(o)->group = group_of(grp(o)->guest);
    grp(o)->state = GroupState::open;
    return operation_ready(Py_NewRef(o));
  }
  open_block(grp(o), me->base);
  return operation_ready(Py_NewRef(o));
}
void leave_with(GroupObject* g, PyObject* e) {
  run_deferred();
  g->state = GroupState::left;
  g->group->close_block();
  if (g->own_group) {
    g->own_group->unlink(g->outermost->run.self);
    g->outermost->run.self.group = nullptr;
    delete std::exchange(g->own_group, nullptr);
  }
  // Whether a signal handler has raised an exception that no operation of the block has raised yet.
  const bool interrupted = g->outermost && g->outermost->run.interrupt;
  if (e == Py_None && !interrupted) return;
  if (e != Py_None) Py_XSETREF(g->block, Py_NewRef(e));
  g->group->cancel();
  if (g->spawned) g->spawned->cancel();  // rule 7.4
}
PyObject* group_aexit(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "__aexit__ takes three arguments");
  if (passes_by(grp(o), args[1])) return operation_ready(Py_NewRef(Py_False));
  ProcessObject* const me = current_coroutine();
  const void* const here = me          ? static_cast<const ProcessBase*>(&me->base)
                           : in_task() ? task_here()
                                       : nullptr;
  GuestObject* const guest = grp(o)->guest;
  // If the loop is closed, or has dropped the task, the block is abandoned here on behalf of the
  // task (rule 13.5).
  const bool forgotten = guest && grp(o)->state == GroupState::open && !me &&
                         !task_lives(link_of(guest), grp(o)->owner);
  if (!forgotten && check_leaving(grp(o), here) < 0) return nullptr;
  if (guest) {
    const Section section(link_of(guest));
    leave_with(grp(o), args[1]);
    grp(o)->group = nullptr;
    grp(o)->state = GroupState::ended;
    end_block(grp(o));
    PyObject* r = guest_leave(guest, grp(o)->block);
    Py_CLEAR(grp(o)->guest);
    return r;
  }
  leave_with(grp(o), args[1]);
  return new_group_op(grp(Py_NewRef(o)), false);
}

PyObject* leave_on_thread(GroupObject* g, PyObject* e);

// Sets the block's scheduler and groups, in a thread or in ordinary code.
void open_in_thread(GroupObject* g, runtime::ThreadProcess* t) {
  runtime::Scheduler* const of_block = scheduler_of_block(*t);
  // If the thread has no scheduler, a scheduler is made only to wait for the end, unless this is a
  // new block in ordinary code.
  g->scheduler = of_block ? of_block : new runtime::Scheduler(*t->run, g->outermost ? nullptr : t);
  g->borrowed = of_block != nullptr;
  // Coroutine processes of a group in a thread run on the scheduler of the outermost run, because
  // this thread is busy with the block.
  runtime::Group* spawned = run_of(*t->run).spawned;
  g->group = new runtime::Group(*t->run, spawned ? spawned->executor : g->scheduler, t);
  if (g->outermost) {
    join_scheduler(g->outermost->run.self, *g->scheduler);
    g->spawned = new runtime::Group(*t->run, g->scheduler, t);
    g->spawned->also = g->group;  // if one fails, both fail (rule 7.4)
    g->group->also = g->spawned;
    g->outermost->run.spawned = g->spawned;
    g->own_group = new runtime::Group(*t->run, g->scheduler, nullptr);
    g->own_group->add(*t);
  }
}

PyObject* group_enter(PyObject* o, PyObject*) {
  GroupObject* g = grp(o);
  close_left_blocks();
  if (current_coroutine() || in_task())
    return bad_use(
        "with Group() blocks: in a coroutine process or an asyncio task use `async with`");
  if (check_made(g, current_run()) < 0) return nullptr;
  if (ProcessObject* me = current_greenlet()) {
    open_block(g, me->base);
    return Py_NewRef(o);
  }
  run_deferred();
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  if (t && t->op) return in_another_operation("a Group cannot be entered", "enter it");
  if (!t || !t->run) {  // ordinary code: the block is an outermost run
    g->outermost =
        new Outermost(g->virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady);
    t = &g->outermost->run.self;
  }
  open_in_thread(g, t);
  begin_block(g, static_cast<ProcessBase*>(t));
  g->group->open_block();
  g->state = GroupState::open;
  if (g->outermost) g->outermost->begun();
  if (checking && g->outermost) [[unlikely]]
    checking->in_ordinary_code(t, t->run);
  // leave_on_thread() raises the signal handler's exception.
  if (g->outermost && g->outermost->was_interrupted()) return leave_on_thread(g, Py_None);
  return Py_NewRef(o);
}
// Leaves the block of a thread, with the exception `e` or None.
PyObject* leave_on_thread(GroupObject* g, PyObject* e) {
  leave_with(g, e);
  runtime::ThreadProcess& self =
      *static_cast<runtime::ThreadProcess*>(static_cast<ThreadProcess*>(g->group->parent));
  wait_here(*g->scheduler, self, *g->group, g->spawned);
  if (checking && g->borrowed) [[unlikely]]
    goes_on_after(self, {g->group});
  g->state = GroupState::ended;
  end_block(g);
  if (g->outermost) g->outermost->over();
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  if (g->spawned)
    for (auto& f : g->spawned->take_failures()) failures.push_back(std::move(f));
  delete std::exchange(g->group, nullptr);
  delete std::exchange(g->spawned, nullptr);
  if (g->outermost) leave_scheduler(g->outermost->run.self);
  if (!g->borrowed) delete g->scheduler;
  g->scheduler = nullptr;
  PyObject* r = nullptr;
  if (!raise_outcome(self, g->outermost ? &g->outermost->run : nullptr, failures, g->block))
    r = !g->block && self.cancel().load() ? raise_cancelled(self, nullptr) : Py_NewRef(Py_False);
  if (g->outermost) {
    g->outermost->end(r);
    delete std::exchange(g->outermost, nullptr);
  }
  return r;
}

// Returns the caller, in the form that identifies the owners of blocks that are left by a call;
// null if the caller is not allowed to leave a block.
const void* caller_here() noexcept {
  ProcessBase* const p = this_process();
  if (greenlet_of(p)) return p;
  if (coroutine_of(p) || in_asyncio()) return nullptr;
  // While a thread waits, it runs other processes and finalisers. If one of these makes the call,
  // the thread is not the caller.
  runtime::ThreadProcess* const t = runtime::ThreadProcess::plain();
  return t && !t->op ? static_cast<const ProcessBase*>(t) : nullptr;
}

PyObject* group_exit(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  GroupObject* g = grp(o);
  if (n != 3) return PyErr_Format(PyExc_TypeError, "__exit__ takes three arguments");
  if (passes_by(g, args[1])) Py_RETURN_FALSE;
  if (g->scheduler == nullptr && g->state == GroupState::open && current_greenlet()) {
    if (check_leaving(g, caller_here()) < 0) return nullptr;
    Caller self("leaving a group");
    if (!self) return nullptr;
    leave_with(g, args[1]);
    return wait_for(self, g, false);
  }
  close_left_blocks();
  if (check_leaving(g, caller_here()) < 0) return nullptr;
  PyObject* r = leave_on_thread(g, args[1]);
  close_left_blocks();
  return r;
}

PyObject* group_start(PyObject* o, PyObject* p) {
  GroupObject* g = grp(o);
  run_deferred();
  if (!g->group || g->generation != generation || g->state == GroupState::made ||
      g->state == GroupState::ended || (g->state == GroupState::left && g->group->done()))
    return bad_use("start in a Group that is not open: start processes inside its with block");
  if (!Py_IS_TYPE(p, &ProcessType)) return no_process(p, "");
  const Owned one(PyList_New(1));
  if (!one) return nullptr;
  PyList_SET_ITEM(one.get(), 0, Py_NewRef(p));
  const int claimed = claim_processes(one.get());
  if (claimed < 0) return nullptr;
  const Section section(g->guest ? link_of(g->guest) : nullptr);
  ++g->starting;
  start_process(*g->group, proc(p));
  --g->starting;
  return Py_NewRef(p);
}
PyObject* group_cancel(PyObject* o, PyObject*) {
  run_deferred();
  note_foreign_thread();
  const Section section(grp(o)->guest ? link_of(grp(o)->guest) : nullptr);
  if (checking) [[unlikely]]
    checking->cancels();
  if (grp(o)->group && grp(o)->generation == generation) grp(o)->group->cancel();
  Py_RETURN_NONE;
}
PyObject* group_new(PyTypeObject*, PyObject* args, PyObject* kw) {
  static const char* names[] = {"clock", nullptr};
  const char* clock = "steady";
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$s:Group", const_cast<char**>(names), &clock))
    return nullptr;
  const std::string_view c = clock;
  if (c != "steady" && c != "virtual")
    return bad_use("Group(clock='%s'): a clock is 'steady' or 'virtual'", clock);
  Owned list(PyList_New(0));
  GroupObject* g = list ? new_group(std::move(list)) : nullptr;
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

// Abandons the block of a thread within a run: its processes are cancelled, and the run, instead of
// the thread, waits for them.
void abandon_block(GroupObject* g) noexcept {
  runtime::Scheduler* const own = g->borrowed ? nullptr : std::exchange(g->scheduler, nullptr);
  g->scheduler = nullptr;
  ProcessBase* const owner = g->group->parent;
  // The thread of a block in ordinary code has a group of its own, which ends with the block. The
  // run's group stays.
  GroupObject* outer = g->around;
  while (outer && !outer->outermost) outer = outer->around;
  runtime::Group* const successor = outer          ? outer->group
                                    : owner->group ? owner->group
                                                   : run_of(g->group->run).spawned;
  g->group->close_block();
  if (successor) abandon_group(g, *successor);
  delete own;
}

void name_left(GroupObject* g, const char* how) noexcept {
  const Owned where(g->file ? PyUnicode_FromFormat(", entered at %U:%d,", g->file, g->line)
                            : PyUnicode_FromString(""));
  std::string names;
  std::size_t n = 0;
  if (g->group && !g->guest)
    g->group->each_child([&](ProcessBase& p) {
      if (++n <= 8) names.append(n > 1 ? ", " : "").append(p.function ? p.function : "?");
    });
  if (n > 8) names.append(", …");
  const Owned which(to_str(n ? names : std::string("none")));
  if (!where || !which ||
      PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                       "a Group%U %s: its processes are cancelled (%U); leave it by its with block",
                       where.get(), how, which.get()) < 0)
    PyErr_WriteUnraisable(Py_None);
}

// Returns whether the block can be waited for now: its run's thread is the current thread, and is
// idle.
bool can_close(GroupObject* g) noexcept {
  return g->outermost && caller_here() == g->owner && innermost[g->owner] == g &&
         !deferred_runs_here() && g->starting == 0;
}
void close_now(GroupObject* g) noexcept {
  const Owned why(PyObject_CallNoArgs(PyExc_GeneratorExit));
  const Owned r(leave_on_thread(g, why ? why.get() : Py_None));
  if (!r) PyErr_WriteUnraisable(reinterpret_cast<PyObject*>(g));
}

int close_when_called(void*) {
  close_left_blocks();
  return 0;
}

void group_finalize(PyObject* o) {
  GroupObject* g = grp(o);
  if ((g->state != GroupState::open && g->state != GroupState::left) ||
      g->generation != generation || interpreter_ends())
    return;
  const SavedException kept;
  name_left(g, "was collected while it was open");
  if (g->guest) {
    end_block(g);
    g->group = nullptr;
    g->state = GroupState::ended;  // the block's network is abandoned with the block
  } else if (!g->outermost) {
    abandon_block(g);
  } else if (can_close(g)) {
    close_now(g);
  } else {
    // A failure in this block must not cancel the block that the thread is in now.
    g->group->close_block();
    g->group->cancel();
    g->spawned->cancel();
    g->state = GroupState::left;
    Py_INCREF(o);  // this reference keeps the run alive for its thread until the block can be
                   // closed
    ++left_blocks;
    Py_AddPendingCall(gated<close_when_called>, nullptr);
  }
}
void group_dealloc(PyObject* o) {
  if (PyObject_CallFinalizerFromDealloc(o) < 0) return;
  PyObject_GC_UnTrack(o);
  GroupObject* g = grp(o);
  Py_XDECREF(g->file);
  Py_XDECREF(reinterpret_cast<PyObject*>(g->guest));
  Py_CLEAR(g->list);
  Py_CLEAR(g->block);
  PyObject_GC_Del(o);
}
PyMethodDef group_methods[] = {
    {"start", method(gated<with_keyword<"start", "process", group_start>>), kKeywords,
     "Starts a process in the group, and returns the process."},
    {"cancel", gated<group_cancel>, METH_NOARGS,
     "Asks every process of the group to end (rule 6)."},
    {"__aenter__", gated<group_aenter>, METH_NOARGS, nullptr},
    {"__aexit__", method(gated<group_aexit>), METH_FASTCALL, nullptr},
    {"__enter__", gated<group_enter>, METH_NOARGS, nullptr},
    {"__exit__", method(gated<group_exit>), METH_FASTCALL, nullptr},
    {}};

}  // namespace

void end_block(GroupObject* g) noexcept {
  if (!g->owner) return;
  const auto at = innermost.find(std::exchange(g->owner, nullptr));
  if (at == innermost.end()) return;
  --blocks_open;
  if (at->second == g) {
    if (!(at->second = g->around)) innermost.erase(at);
  } else {
    GroupObject* within = at->second;
    while (within && within->around != g) within = within->around;
    if (within) within->around = g->around;
  }
  g->around = nullptr;
}

void forget_blocks() noexcept {
  innermost.clear();
  blocks_open = left_blocks = 0;
}

void close_left_blocks() noexcept {
  if (left_blocks == 0) [[likely]]
    return;
  const SavedException kept;
  for (;;) {
    const void* const here = caller_here();
    const auto at = here ? innermost.find(here) : innermost.end();
    if (at == innermost.end() || at->second->state != GroupState::left || !can_close(at->second))
      break;
    const Owned g(at->second);
    --left_blocks;
    close_now(g.get());
  }
}

void leave_blocks(ProcessBase& p) noexcept {
  const SavedException kept;
  const ProcessBase* const owner = &p;
  for (auto at = innermost.find(owner); at != innermost.end(); at = innermost.find(owner)) {
    GroupObject* g = at->second;
    name_left(g, "was never left by the process that entered it, which has ended");
    abandon_block(g);
  }
}

PyTypeObject GroupType{PyVarObject_HEAD_INIT(nullptr, 0)};

int init_block(PyObject* m) {
  GroupType.tp_name = "weft.Group";
  GroupType.tp_doc =
      "Group(*, clock='steady'): a group of processes, as a context manager. The end of its block "
      "waits until all of them have ended (rule 7.5).\n\n"
      "In ordinary code the block is an outermost run: greenlets and coroutines that are started "
      "in it run while the block waits, and clock='virtual' gives it virtual time (rule 8.6).\n\n"
      "Raises:\n"
      "    At the end of the block: what failed in the group (several failures: an "
      "ExceptionGroup); Cancelled; Deadlock; BadUse.";
  GroupType.tp_basicsize = sizeof(GroupObject);
  GroupType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  GroupType.tp_new = gated<group_new>;
  GroupType.tp_dealloc = gated<group_dealloc>;
  GroupType.tp_finalize = gated<group_finalize>;
  GroupType.tp_traverse = group_traverse;
  GroupType.tp_clear = gated<group_clear>;
  GroupType.tp_methods = group_methods;
  return PyType_Ready(&GroupType) < 0 ? -1 : add_type(m, "Group", &GroupType);
}

}  // namespace weft::py
