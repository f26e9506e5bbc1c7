// A network as guest of a running asyncio loop (rule 13): its scheduler is stepped from callbacks of the loop.
//
//   Guest() ──► scheduled ──turn()──► more is ready: scheduled again
//                  ▲                  nothing is: resting (no callback but that of the earliest timer) ──rung by a wake-up──► scheduled
//                  └─timer            all have ended: ended, the task that waits is told ──finish()──► results or failures
//
// A turn is bounded by time, so that the loop's own timers and sockets are served in between. An idle network schedules nothing.
#include <algorithm>

#include "asyncio.hpp"

namespace weft::py {

struct EndWaker : core::Waker {  // a group has ended
  GuestObject* guest;
  bool waiting;
};

struct GuestObject {
  PyObject_HEAD PyObject* list;  // the processes it was made of
  LinkObject* link;              // owned
  PyObject* turn;                // bound
  PyObject* ring_up;             // bound: what the timer calls
  PyObject* waiter;              // the future of the task that waits for the end
  PyObject* timer;               // the loop's handle
  PyObject* task;                // of an open block: the task whose block it is, which a failure here cancels (rules 7.5, 13.4)
  PyRun* run;                    // null: finished
  runtime::Scheduler* scheduler;
  runtime::Group *group, *spawned;
  runtime::ThreadProcess::Hosting* hosting;  // of an open block: whoever asks it to end rings us
  EndWaker ends[2];
  GuestObject* next_due;
  std::int64_t armed;    // what `timer` is for
  std::size_t awaiting;  // processes that wait for futures
  std::uint8_t looks;    // in vain, since the last wake-up, for what else is on the loop
  bool due;              // listed: to be scheduled
  bool scheduled;        // turn() is among the loop's callbacks
  bool resting;
  bool open;  // a block that may start more
  bool told;  // its task was cancelled, by us
  bool ended;
  bool in_turn;
  bool gone;  // its loop will not run any more
};

void schedule_due(LinkObject* l, PyObject* loop) noexcept;

namespace {

constexpr std::int64_t kBudget =
    40'000;  // ns of a turn. A task that sleeps needs up to three to be told: the timer is found, run, the task run

GuestObject* gst(PyObject* o) noexcept { return reinterpret_cast<GuestObject*>(o); }
PyObject* obj(GuestObject* g) noexcept { return reinterpret_cast<PyObject*>(g); }
ProcessObject* proc(PyObject* o) noexcept { return reinterpret_cast<ProcessObject*>(o); }

struct Names {
  PyObject *swap, *tasks;  // _swap_current_task, or the dictionary of current tasks
  PyObject *make_task, *alone, *drive, *leave, *current_task;
  PyObject *call_soon, *call_later, *cancel, *add_done_callback, *remove_done_callback, *get_loop, *blocking, *end;
} names;

int load_names() {
  if (names.drive) return 0;
  const struct {
    PyObject** to;
    const char* text;
  } texts[] = {{&names.call_soon, "call_soon"},
               {&names.call_later, "call_later"},
               {&names.cancel, "cancel"},
               {&names.add_done_callback, "add_done_callback"},
               {&names.remove_done_callback, "remove_done_callback"},
               {&names.get_loop, "get_loop"},
               {&names.blocking, "_asyncio_future_blocking"},
               {&names.end, "_end"}};
  for (const auto& t : texts)
    if (!(*t.to = PyUnicode_InternFromString(t.text))) return -1;
  PyObject* m = PyImport_ImportModule("weft._asyncio");
  if (!m) return -1;
  const bool fine = (names.swap = PyObject_GetAttrString(m, "_swap")) && (names.tasks = PyObject_GetAttrString(m, "_tasks")) &&
                    (names.make_task = PyObject_GetAttrString(m, "ProcessTask")) && (names.alone = PyObject_GetAttrString(m, "_alone")) &&
                    (names.leave = PyObject_GetAttrString(m, "_leave")) &&
                    (names.current_task = PyObject_GetAttrString(m, "_current_task")) &&
                    (names.drive = PyObject_GetAttrString(m, "_drive"));
  Py_DECREF(m);
  return fine ? 0 : -1;
}

// --- the current task -------------------------------------------------------------------------------------------------------------------

// Of the loop; owned, the one before. `task` null: none.
PyObject* swap_task(PyObject* loop, PyObject* task) noexcept {
  PyObject* before = nullptr;
  if (names.swap != Py_None) {
    PyObject* args[] = {loop, task ? task : Py_None};
    before = PyObject_Vectorcall(names.swap, args, 2, nullptr);
    if (before == Py_None) Py_CLEAR(before);
  } else {
    before = Py_XNewRef(PyDict_GetItemWithError(names.tasks, loop));
    if (task)
      PyDict_SetItem(names.tasks, loop, task);
    else if (before)
      PyDict_DelItem(names.tasks, loop);
  }
  if (PyErr_Occurred()) PyErr_WriteUnraisable(loop);
  return before;
}

// What the turn that runs on this thread has made of the current task.
struct Turn {
  GuestObject* guest;
  PyObject* loop;  // borrowed; null: its loop does not run
  PyObject* before = nullptr;
  bool entered = false;
  Turn* outer;
};
thread_local Turn* this_turn = nullptr;

void enter_task(PyObject* task) noexcept {
  Turn* t = this_turn;
  if (!t || !t->loop) return;
  if (t->entered && names.swap == Py_None) {
    if (PyDict_SetItem(names.tasks, t->loop, task) < 0) PyErr_WriteUnraisable(t->loop);
    return;
  }
  PyObject* before = swap_task(t->loop, task);
  if (t->entered)
    Py_XDECREF(before);
  else
    t->before = before;
  t->entered = true;
}

// --- turns ------------------------------------------------------------------------------------------------------------------------------

void guest_ring(runtime::Parking& p) noexcept {  // from any thread
  auto* g = static_cast<GuestObject*>(p.host);
  g->looks = 0;
  if (!g->due && !g->ended) {
    g->due = true;
    g->next_due = g->link->due;
    g->link->due = g;
  }
  ring(g->link);
}

void end_wake(core::Node* n) noexcept {
  auto* w = static_cast<EndWaker*>(n);
  w->waiting = false;
  w->guest->scheduler->post(w);
}
void end_run(core::Waker*) {}
const core::WakerOps end_ops{&end_wake, &end_run, nullptr, 0};

void schedule(GuestObject* g, PyObject* loop) noexcept {
  if (g->scheduled || g->gone) return;
  g->scheduled = true;
  PyObject* h = undisturbed([&] { return PyObject_CallMethodOneArg(loop, names.call_soon, g->turn); });
  if (!h) g->scheduled = false;  // the loop is closed
  Py_XDECREF(h);
}

void disarm(GuestObject* g) noexcept {
  PyObject* h = std::exchange(g->timer, nullptr);
  g->armed = prim::forever;
  if (!h) return;
  PyObject* r = undisturbed([&] { return PyObject_CallMethodNoArgs(h, names.cancel); });
  Py_XDECREF(r);
  Py_DECREF(h);
}

// `least`: ns. A loop whose clock is coarse may be early, and must not be asked for less than its clock can tell.
void arm(GuestObject* g, PyObject* loop, std::int64_t at, std::int64_t least = 0) noexcept {
  if (at == g->armed) return;
  disarm(g);
  if (at == prim::forever) return;
  g->armed = at;
  PyObject* d = PyFloat_FromDouble(static_cast<double>(std::max(at - prim::now(), least)) * 1e-9);
  if (d) g->timer = undisturbed([&] { return PyObject_CallMethodObjArgs(loop, names.call_later, d, g->ring_up, nullptr); });
  PyErr_Clear();
  Py_XDECREF(d);
}

bool all_ended(GuestObject* g) noexcept { return !g->open && g->group->done() && g->spawned->done(); }

void tell_waiter(GuestObject* g) noexcept {
  PyObject* f = std::exchange(g->waiter, nullptr);
  if (!f) return;
  set_future(f);
  Py_DECREF(f);
}

// Rules 10.4 and 13.6: is there nothing else on the loop that could wake a process? None: nothing but callbacks that are about to run.
PyObject* alone(GuestObject* g, PyObject* loop) noexcept {
  if (g->awaiting > 0 || g->open || !g->waiter) return Py_False;
  PyObject* r = undisturbed([&] { return PyObject_CallOneArg(names.alone, loop); });
  Py_XDECREF(r);
  return r == Py_True || r == Py_None ? r : Py_False;  // these are immortal enough
}

// A process has failed: the block is to end (rule 7.5). Once; leaving the block takes it back.
void tell_block(GuestObject* g) noexcept {
  if (!g->open || g->told || !g->task || g->run->self.cancel.load() == 0) return;
  g->told = true;
  PyObject* r = undisturbed([&] { return PyObject_CallMethodNoArgs(g->task, names.cancel); });
  if (!r) PyErr_WriteUnraisable(g->task);
  Py_XDECREF(r);
}

// After a turn: again, rest, or the end.
void go_on(GuestObject* g, PyObject* loop) noexcept {
  settle();
  if (g->ended) return;
  tell_block(g);
  if (all_ended(g)) {
    g->ended = true;
    disarm(g);
    tell_waiter(g);
    return;
  }
  runtime::Group* const groups[] = {g->group, g->spawned};
  for (int i = 0; i < 2; ++i)
    if (!g->ends[i].waiting) g->ends[i].waiting = groups[i]->begin_wait(g->ends[i]) == Status::pending;
  if (!g->scheduler->rest()) return schedule(g, loop);
  g->resting = true;
  const std::int64_t at = g->run->run.wake_time();
  arm(g, loop, at);
  if (at != prim::forever) return;
  PyObject* const only = alone(g, loop);
  if (only == Py_None && g->looks < 3 && ++g->looks) schedule(g, loop);  // to look again after them
  if (only != Py_True) return;
  g->run->run.leave_outside();  // concludes: a virtual clock jumps, a deadlock is declared; both ring
  g->run->run.enter_outside();
}

void take_turn(GuestObject* g, PyObject* loop, std::int64_t budget) noexcept {
  if (g->in_turn || !g->run || g->ended) return;
  Turn turn{g, g->gone ? nullptr : loop, nullptr, false, this_turn};
  this_turn = &turn;
  g->in_turn = true;
  if (std::exchange(g->resting, false)) g->scheduler->rise();
  g->scheduler->turn(budget);
  g->in_turn = false;
  if (turn.entered) {
    PyObject* last = swap_task(loop, turn.before);
    Py_XDECREF(last);
    Py_XDECREF(turn.before);
  }
  this_turn = turn.outer;
}

PyObject* guest_turn(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  g->scheduled = false;
  if (!g->run || g->ended || g->gone) Py_RETURN_NONE;
  PyObject* loop = loop_of(g->link);
  if (!loop) Py_RETURN_NONE;
  Py_INCREF(o);
  {
    const Section s(g->link);
    take_turn(g, loop, kBudget);
    go_on(g, loop);
  }
  Py_DECREF(o);
  Py_DECREF(loop);
  Py_RETURN_NONE;
}

PyObject* guest_timer(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  const std::int64_t at = std::exchange(g->armed, prim::forever);
  Py_CLEAR(g->timer);
  if (!g->run || g->ended || g->gone || g->scheduled) Py_RETURN_NONE;
  if (at <= prim::now()) return guest_turn(o, nullptr);
  if (PyObject* loop = loop_of(g->link)) {
    arm(g, loop, at, 1'000'000);
    Py_DECREF(loop);
  }
  Py_RETURN_NONE;
}
PyMethodDef timer_def{"weft_timer", gated<guest_timer>, METH_NOARGS, nullptr};
PyMethodDef turn_def{"weft_turn", gated<guest_turn>, METH_NOARGS, nullptr};

// --- making and ending ------------------------------------------------------------------------------------------------------------------

GuestObject* make_guest(PyObject* list, runtime::Clock clock, bool open) {
  LinkObject* link = link_here();
  if (!link) {
    if (!PyErr_Occurred()) bad_use("no asyncio loop runs here: from ordinary code use weft.coroutines.run(...)");
    return nullptr;
  }
  if (load_names() < 0) return nullptr;
  if (claim_processes(list) < 0) return nullptr;
  GuestObject* g = PyObject_GC_New(GuestObject, &GuestType);
  if (!g) return nullptr;
  g->list = Py_NewRef(list);
  g->link = reinterpret_cast<LinkObject*>(Py_NewRef(reinterpret_cast<PyObject*>(link)));
  g->turn = g->ring_up = g->waiter = g->timer = g->task = nullptr;
  g->hosting = nullptr;
  g->run = nullptr;
  g->scheduler = nullptr;
  g->group = g->spawned = nullptr;
  g->next_due = nullptr;
  g->armed = prim::forever;
  g->awaiting = 0;
  g->due = g->scheduled = g->resting = g->ended = g->in_turn = g->gone = g->told = false;
  g->open = open;
  g->looks = 0;
  PyObject_GC_Track(obj(g));
  g->turn = PyCFunction_New(&turn_def, obj(g));
  g->ring_up = PyCFunction_New(&timer_def, obj(g));
  if (!g->turn || !g->ring_up) {
    Py_DECREF(obj(g));
    return nullptr;
  }
  for (EndWaker& w : g->ends) {
    new (&w) EndWaker;
    w.ops = &end_ops;
    w.guest = g;
    w.waiting = false;
  }
  g->run = new PyRun(clock);
  g->run->state = g->run->self.state = PyThreadState_Get();
  g->run->self.function = "main";
  watch_outside(g->run->run);
  g->run->run.activated();
  g->run->run.enter_outside();  // what the loop holds: go_on() looks closer
  g->scheduler = new runtime::Scheduler(g->run->run);
  g->scheduler->host_by(&guest_ring, g);
  g->group = new runtime::Group(g->run->run, g->scheduler, &g->run->self);
  g->spawned = new runtime::Group(g->run->run, g->scheduler, &g->run->self);
  g->spawned->also = g->group;  // the two fail as one (rule 7.4)
  g->group->also = g->spawned;
  g->run->spawned = g->spawned;
  if (open) {
    g->task = PyObject_CallNoArgs(names.current_task);
    if (!g->task) PyErr_Clear();
    g->hosting = new runtime::ThreadProcess::Hosting(g->run->self, *g->scheduler);
    g->group->open_block();
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) start_process(*g->group, proc(PyList_GET_ITEM(list, i)));
  PyObject* loop = loop_of(g->link);
  if (loop) schedule(g, loop);
  Py_XDECREF(loop);
  return g;
}

void unlist(GuestObject* g) noexcept {
  if (!g->due) return;
  GuestObject** at = &g->link->due;
  while (*at && *at != g) at = &(*at)->next_due;
  if (*at) *at = g->next_due;
  g->due = false;
}

void free_run(GuestObject* g) noexcept {
  disarm(g);
  unlist(g);
  if (!g->run) return;
  delete std::exchange(g->hosting, nullptr);
  if (g->group->done() && g->spawned->done()) {
    delete g->group;
    delete g->spawned;
    delete g->scheduler;
    delete g->run;
  }  // else threads of it live on, and refer to it
  g->group = g->spawned = nullptr;
  g->scheduler = nullptr;
  g->run = nullptr;
}

// The loop will not run any more: the processes are cancelled and stepped to their ends, as far as they go by themselves.
void abandon(GuestObject* g) noexcept {
  if (!g->run || g->in_turn) return;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  g->gone = true;
  g->open = false;
  for (int round = 0; round < 100 && !all_ended(g); ++round) {  // one that catches Cancelled is asked again
    g->run->run.cancel_everybody();
    for (int k = 0; k < 1000 && (k == 0 || g->scheduler->anything_ready()); ++k) {
      if (std::exchange(g->resting, false)) g->scheduler->rise();
      Turn turn{g, nullptr, nullptr, false, this_turn};
      this_turn = &turn;
      g->in_turn = true;
      g->scheduler->turn(kBudget);
      g->in_turn = false;
      this_turn = turn.outer;
    }
  }
  g->ended = true;
  free_run(g);
  PyErr_Restore(t, v, tb);
}

PyObject* guest_new(PyTypeObject*, PyObject* args, PyObject* kw) {
  PyObject* processes;
  int virtual_time;
  if (kw || !PyArg_ParseTuple(args, "O!p", &PyTuple_Type, &processes, &virtual_time)) return nullptr;
  settle();
  PyObject* list = process_list(&PyTuple_GET_ITEM(processes, 0), PyTuple_GET_SIZE(processes));
  if (!list) return nullptr;
  GuestObject* g = make_guest(list, virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady, false);
  Py_DECREF(list);
  return reinterpret_cast<PyObject*>(g);
}

// wait(future): it is set once all have ended.
PyObject* guest_wait(PyObject* o, PyObject* future) {
  GuestObject* g = gst(o);
  Py_XSETREF(g->waiter, Py_NewRef(future));
  PyObject* loop = g->run ? loop_of(g->link) : nullptr;
  if (loop && !g->scheduled) {  // it may rest already, and may be alone only now
    const Section s(g->link);
    if (std::exchange(g->resting, false)) g->scheduler->rise();
    go_on(g, loop);
  }
  Py_XDECREF(loop);
  if (g->ended) tell_waiter(g);
  Py_RETURN_NONE;
}
PyObject* guest_cancel(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  if (g->run && !g->ended) {
    const Section s(g->link);
    g->group->cancel();
    g->spawned->cancel();
  }
  Py_RETURN_NONE;
}
PyObject* guest_abandon(PyObject* o, PyObject*) {
  abandon(gst(o));
  Py_RETURN_NONE;
}
int guest_clear(PyObject* o) {
  Py_CLEAR(gst(o)->turn);
  Py_CLEAR(gst(o)->ring_up);
  Py_CLEAR(gst(o)->waiter);
  Py_CLEAR(gst(o)->task);
  return 0;
}
// finish(block): the results, or raises what failed; `block` is the exception that left the block of a Group, or None.
PyObject* guest_finish(PyObject* o, PyObject* block) {
  GuestObject* g = gst(o);
  if (!g->ended || !g->run) return bad_use("finish of a guest that has not ended");
  PyObject* also = block == Py_None ? nullptr : block;
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  for (auto& f : g->spawned->take_failures()) failures.push_back(std::move(f));
  PyObject* r = nullptr;
  if (g->run->run.deadlocked())
    raise_deadlock(*g->run);
  else if (!failures.empty())
    raise_failures(std::move(failures), also);
  else
    r = results_of(g->list);
  failures.clear();
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  free_run(g);
  guest_clear(o);
  PyErr_Restore(t, v, tb);
  return r;
}
PyObject* guest_ended(PyObject* o, void*) { return PyBool_FromLong(gst(o)->ended); }
PyObject* guest_told(PyObject* o, void*) { return PyBool_FromLong(gst(o)->told); }

int guest_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(gst(o)->list);
  Py_VISIT(gst(o)->turn);
  Py_VISIT(gst(o)->ring_up);
  Py_VISIT(gst(o)->waiter);
  Py_VISIT(gst(o)->timer);
  Py_VISIT(gst(o)->task);
  return 0;
}
void guest_finalize(PyObject* o) { abandon(gst(o)); }
void guest_dealloc(PyObject* o) {
  GuestObject* g = gst(o);
  if (g->run && PyObject_CallFinalizerFromDealloc(o) < 0) return;
  PyObject_GC_UnTrack(o);
  free_run(g);
  guest_clear(o);
  Py_XDECREF(g->timer);
  Py_CLEAR(g->list);
  Py_XDECREF(reinterpret_cast<PyObject*>(g->link));
  PyObject_GC_Del(o);
}

PyMethodDef guest_methods[] = {{"wait", gated<guest_wait>, METH_O, nullptr},
                               {"cancel", gated<guest_cancel>, METH_NOARGS, nullptr},
                               {"abandon", gated<guest_abandon>, METH_NOARGS, nullptr},
                               {"finish", gated<guest_finish>, METH_O, nullptr},
                               {}};
PyGetSetDef guest_getset[] = {
    {"ended", gated<guest_ended>, nullptr, nullptr, nullptr}, {"told", gated<guest_told>, nullptr, nullptr, nullptr}, {}};

// --- a process of a guest ---------------------------------------------------------------------------------------------------------------

// On a future: withdrawn before it is done. (The future is let go of when the process runs: no Python code here.)
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
  GuestObject* g = part->guest;
  p->base.status = Status::ok;
  if (g->in_turn) {
    p->base.ops->wake(&p->base);
    Py_RETURN_NONE;
  }
  Py_INCREF(obj(g));
  {
    const Section s(g->link);
    p->base.ops->wake(&p->base);
    PyObject* loop = g->scheduled || g->gone ? nullptr : loop_of(g->link);
    if (loop) {  // at once: this is a callback of the loop
      unlist(g);
      take_turn(g, loop, kBudget);
      go_on(g, loop);
      Py_DECREF(loop);
    }
  }
  Py_DECREF(obj(g));
  Py_RETURN_NONE;
}
PyMethodDef wakeup_def{"weft_wakeup", gated<future_done>, METH_O, nullptr};

void let_go_of_future(GuestPart* part, PyObject* future) noexcept {
  PyObject* r = PyObject_CallMethodOneArg(future, names.remove_done_callback, part->wakeup);
  if (!r) PyErr_Clear();
  Py_XDECREF(r);
  r = undisturbed([&] { return PyObject_CallMethodNoArgs(future, names.cancel); });
  Py_XDECREF(r);
}

bool cancel_future(GuestPart* part) noexcept {
  PyObject* r = part->message ? PyObject_CallMethodOneArg(part->future, names.cancel, part->message)
                              : PyObject_CallMethodNoArgs(part->future, names.cancel);
  if (!r) PyErr_Clear();
  Py_XDECREF(r);
  return r == Py_True;
}

ProcessObject* process_with_task(PyObject* o) {
  if (!Py_IS_TYPE(o, &ProcessType) || !proc(o)->guest) return nullptr;
  return proc(o);
}

// _task_cancel(process, message): asyncio's cancellation of it.
PyObject* f_task_cancel(PyObject*, PyObject* args) {
  PyObject *o, *message;
  if (!PyArg_ParseTuple(args, "OO", &o, &message)) return nullptr;
  ProcessObject* p = process_with_task(o);
  if (!p) Py_RETURN_FALSE;
  GuestPart* part = p->guest;
  const Section s(part->guest->link);
  Py_XSETREF(part->message, message == Py_None ? nullptr : Py_NewRef(message));
  if (p->base.op == &await_op && p->base.status == Status::pending && cancel_future(part)) Py_RETURN_TRUE;
  part->must_cancel = true;
  p->base.cancel.fetch_or(2);
  if (p->base.op && p->base.op != &await_op && p->base.op->withdraw(p->base)) {
    part->interrupted = true;
    p->base.ops->wake(&p->base);
  }
  Py_RETURN_TRUE;
}
// _task_uncancel(process): no cancellation is asked for any more.
PyObject* f_task_uncancel(PyObject*, PyObject* o) {
  if (ProcessObject* p = process_with_task(o)) {
    p->guest->must_cancel = false;
    p->base.cancel.fetch_and(1);
  }
  Py_RETURN_NONE;
}
// _task_state(process): (the future it awaits, must_cancel)
PyObject* f_task_state(PyObject*, PyObject* o) {
  ProcessObject* p = process_with_task(o);
  PyObject* f = p && p->guest->future ? p->guest->future : Py_None;
  return PyTuple_Pack(2, f, p && p->guest->must_cancel ? Py_True : Py_False);
}
PyObject* f_task_coroutine(PyObject*, PyObject* o) {
  PyObject* body = Py_IS_TYPE(o, &ProcessType) ? proc(o)->body : nullptr;
  return Py_NewRef(body ? body : Py_None);
}

PyMethodDef functions[] = {{"_task_cancel", gated<f_task_cancel>, METH_VARARGS, nullptr},
                           {"_task_uncancel", gated<f_task_uncancel>, METH_O, nullptr},
                           {"_task_state", gated<f_task_state>, METH_O, nullptr},
                           {"_task_coroutine", gated<f_task_coroutine>, METH_O, nullptr},
                           {}};

}  // namespace

PyTypeObject GuestType{PyVarObject_HEAD_INIT(nullptr, 0)};

void schedule_due(LinkObject* l, PyObject* loop) noexcept {
  while (GuestObject* g = l->due) {
    l->due = g->next_due;
    g->due = false;
    schedule(g, loop);
  }
}

void join_guest(runtime::Scheduler& s, ProcessObject* p) noexcept {
  auto* g = static_cast<GuestObject*>(s.host());
  auto* part = new GuestPart{};
  part->guest = reinterpret_cast<GuestObject*>(Py_NewRef(obj(g)));
  PyObject* loop = loop_of(g->link);
  part->task = loop ? PyObject_CallFunctionObjArgs(names.make_task, reinterpret_cast<PyObject*>(p), loop, nullptr) : nullptr;
  part->wakeup = PyCFunction_New(&wakeup_def, reinterpret_cast<PyObject*>(p));
  Py_XDECREF(loop);
  if (!part->task || !part->wakeup) PyErr_WriteUnraisable(Py_None);
  p->guest = part;
}

PyObject* guest_begin(ProcessObject* p, bool yielded) noexcept {
  GuestPart* part = p->guest;
  if (part->task) enter_task(part->task);
  if (p->base.op != &await_op) [[likely]]
    return yielded && part->must_cancel ? guest_cancellation(p->base) : nullptr;
  p->base.op = nullptr;
  --part->guest->awaiting;
  PyObject* f = std::exchange(part->future, nullptr);
  PyObject* e = nullptr;
  if (p->base.status == Status::cancelled) {
    let_go_of_future(part, f);
    raise_cancelled(p->base, nullptr);
    e = take_exception();
  }
  Py_DECREF(f);
  return e;
}

int guest_await(ProcessObject* p, PyObject* f) noexcept {
  GuestPart* part = p->guest;
  PyObject* blocking = PyObject_GetAttr(f, names.blocking);
  if (!blocking) {
    PyErr_Clear();
    return 0;
  }
  Py_DECREF(blocking);
  if (blocking == Py_None) return 0;
  PyObject* loop = loop_of(part->guest->link);
  PyObject* its = PyObject_CallMethodNoArgs(f, names.get_loop);
  Py_XDECREF(loop);
  Py_XDECREF(its);
  if (!its) return -1;
  if (loop != its) {
    PyErr_Format(PyExc_RuntimeError, "process %s awaits a future of another event loop: %R", p->base.function, f);
    return -1;
  }
  if (f == part->task) {
    bad_use("a process cannot await its own task");
    return -1;
  }
  if (blocking != Py_True) {
    PyErr_Format(PyExc_RuntimeError, "process %s was given %R by a yield: use yield from or await", p->base.function, f);
    return -1;
  }
  if (p->base.cancel.load() != 0) {  // rule 6.1
    PyObject_SetAttr(f, names.blocking, Py_False);
    let_go_of_future(part, f);
    PyErr_Clear();
    raise_cancelled(p->base, nullptr);
    return -1;
  }
  PyObject* r =
      PyObject_SetAttr(f, names.blocking, Py_False) < 0 ? nullptr : PyObject_CallMethodOneArg(f, names.add_done_callback, part->wakeup);
  if (!r) return -1;
  Py_DECREF(r);
  part->future = Py_NewRef(f);
  ++part->guest->awaiting;
  p->base.status = Status::pending;
  p->base.place = nullptr;
  p->base.op = &await_op;
  return 1;
}

void leave_guest(ProcessObject* p) noexcept {
  GuestPart* part = std::exchange(p->guest, nullptr);
  if (part->task) {
    PyObject* r = PyObject_CallMethodObjArgs(part->task, names.end, p->outcome, p->failed ? Py_True : Py_False, nullptr);
    if (!r) PyErr_WriteUnraisable(part->task);
    Py_XDECREF(r);
  }
  Py_XDECREF(part->task);
  Py_XDECREF(part->wakeup);
  Py_XDECREF(part->future);
  Py_XDECREF(part->message);
  Py_DECREF(obj(part->guest));
  delete part;
}

PyObject* new_cancellation(PyObject* message) noexcept;

PyObject* guest_cancellation(ProcessBase& b) noexcept {
  ProcessObject* p = coroutine_of(&b);
  GuestPart* part = p ? p->guest : nullptr;
  if (!part || !(part->must_cancel || part->interrupted)) return nullptr;
  part->must_cancel = part->interrupted = false;
  if (b.cancel.exchange(0) & 1) b.cancel.store(1);  // Weft's own comes next
  return new_cancellation(part->message);
}

GuestObject* guest_open() noexcept {
  PyObject* list = PyList_New(0);
  GuestObject* g = list ? make_guest(list, runtime::Clock::steady, true) : nullptr;
  Py_XDECREF(list);
  return g;
}
runtime::Group* group_of(GuestObject* g) noexcept { return g->group; }
LinkObject* link_of(GuestObject* g) noexcept { return g->link; }
PyObject* guest_leave(GuestObject* g, PyObject* block) {
  g->open = false;
  return PyObject_CallFunctionObjArgs(names.leave, obj(g), block ? block : Py_None, nullptr);
}

int init_guest(PyObject* m) {
  GuestType.tp_name = "weft._native.Guest";
  GuestType.tp_basicsize = sizeof(GuestObject);
  GuestType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  GuestType.tp_new = gated<guest_new>;
  GuestType.tp_dealloc = gated<guest_dealloc>;
  GuestType.tp_finalize = gated<guest_finalize>;
  GuestType.tp_traverse = guest_traverse;
  GuestType.tp_clear = gated<guest_clear>;
  GuestType.tp_methods = guest_methods;
  GuestType.tp_getset = guest_getset;
  if (PyType_Ready(&GuestType) < 0 || PyModule_AddFunctions(m, functions) < 0) return -1;
  return add_type(m, "Guest", &GuestType);
}

}  // namespace weft::py
