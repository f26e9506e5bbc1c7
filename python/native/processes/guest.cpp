// A network as guest of a running asyncio loop (rule 13): its scheduler is stepped from callbacks
// of the loop.
//
//   Guest() ──► scheduled ──turn()──► more is ready: scheduled again
//                  ▲                  nothing is: resting (no callback but that of the earliest timer) ──rung by a wake-up──► scheduled
//                  └─timer            all have ended: ended, the waiting task is woken ──finish()──► results or failures
//
// The time of a turn is limited, so that the loop can serve its own timers and sockets between
// turns. An idle network schedules nothing.
#include "processes/guest.hpp"

#include <algorithm>

#include "declare.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "processes/asyncio.hpp"
#include "processes/group.hpp"
#include "processes/guests.hpp"
#include "processes/life.hpp"
#include "processes/no_result.hpp"
#include "processes/process_type.hpp"
#include "processes/run.hpp"
#include "processes/signals_held.hpp"
#include "rounds/report.hpp"
#include "rounds/rounds.hpp"

namespace weft::py {

GuestNames names;

void schedule_due(LinkObject* l, PyObject* loop) noexcept;

namespace {

constexpr std::int64_t kBudget =
    // The length of a turn in ns. A sleeping task needs up to three turns of the loop: the first
    // finds the timer, the second runs the timer, the third runs the task.
    40'000;

GuestObject* gst(PyObject* o) noexcept { return reinterpret_cast<GuestObject*>(o); }

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
  const Owned m(PyImport_ImportModule("weft._backends.asyncio"));
  if (!m) return -1;
  const bool fine = (names.swap = PyObject_GetAttrString(m.get(), "_swap")) &&
                    (names.tasks = PyObject_GetAttrString(m.get(), "_tasks")) &&
                    (names.make_task = PyObject_GetAttrString(m.get(), "ProcessTask")) &&
                    (names.alone = PyObject_GetAttrString(m.get(), "_alone")) &&
                    (names.leave = PyObject_GetAttrString(m.get(), "_leave")) &&
                    (names.current_task = PyObject_GetAttrString(m.get(), "_current_task")) &&
                    (names.drive = PyObject_GetAttrString(m.get(), "_drive"));
  return fine ? 0 : -1;
}

// --- the current task ----------------------------------------------------------------------------

// Makes `task` (or none, if it is null) the current task of the loop. Returns the previous task.
Owned<> swap_task(PyObject* loop, PyObject* task) noexcept {
  Owned<> before;
  if (names.swap != Py_None) {
    PyObject* args[] = {loop, task ? task : Py_None};
    before.reset(PyObject_Vectorcall(names.swap, args, 2, nullptr));
    if (before == Py_None) before.reset();
  } else {
    before = new_ref(PyDict_GetItemWithError(names.tasks, loop));
    if (task)
      PyDict_SetItem(names.tasks, loop, task);
    else if (before)
      PyDict_DelItem(names.tasks, loop);
  }
  if (PyErr_Occurred()) PyErr_WriteUnraisable(loop);
  return before;
}

// The turn that runs on this thread, and its changes to the loop's current task.
struct Turn {
  GuestObject* guest;
  PyObject* loop;  // borrowed; null if the loop does not run
  Owned<> before;
  bool entered = false;
  Turn* outer;
};
thread_local Turn* this_turn = nullptr;

}  // namespace

void enter_task(PyObject* task) noexcept {
  Turn* t = this_turn;
  if (!t || !t->loop) return;
  if (t->entered && names.swap == Py_None) {
    if (PyDict_SetItem(names.tasks, t->loop, task) < 0) PyErr_WriteUnraisable(t->loop);
    return;
  }
  Owned before = swap_task(t->loop, task);
  if (!t->entered) t->before = std::move(before);
  t->entered = true;
}

namespace {

// --- turns ---------------------------------------------------------------------------------------

void guest_ring(runtime::Parking& p) noexcept {  // can be called from any thread
  auto* g = static_cast<GuestObject*>(p.host);
  // A thread without the GIL must not wait for the GIL here, because the code that releases the
  // guest waits for the threads that ring the guest.
  if (aside()) {
    g->called.store(true);
    return ring(g->link);
  }
  g->looks = 0;
  if (!g->due && !g->ended) {
    g->due = true;
    g->next_due = g->link->due;
    g->link->due = g;
  }
  ring(g->link);
}

// The waker counts as waiting until it has run, because go_on() must not use it again while it is
// in the queue.
void end_wake(core::Node* n) noexcept {
  auto* w = static_cast<EndWaker*>(n);
  w->guest->scheduler->post(w);
}
void end_run(core::Waker* w) { static_cast<EndWaker*>(w)->waiting = false; }
const core::WakerOps end_ops{&end_wake, &end_run, nullptr, 0};

void schedule(GuestObject* g, PyObject* loop) noexcept {
  if (g->scheduled || g->gone) return;
  g->scheduled = true;
  const Owned h(
      with_signals_held([&] { return PyObject_CallMethodOneArg(loop, names.call_soon, g->turn); }));
  if (!h) g->scheduled = false;  // the call fails if the loop is closed
}

void disarm(GuestObject* g) noexcept {
  const Owned h(std::exchange(g->timer, nullptr));
  g->armed = prim::forever;
  if (!h) return;
  const Owned r(
      with_signals_held([&] { return PyObject_CallMethodNoArgs(h.get(), names.cancel); }));
}

// Sets the timer, to at least `least` ns: a loop with a coarse clock can call early, and the timer
// must not be shorter than that clock can resolve.
void arm(GuestObject* g, PyObject* loop, std::int64_t at, std::int64_t least = 0) noexcept {
  if (at == g->armed) return;
  disarm(g);
  if (at == prim::forever) return;
  g->armed = at;
  const Owned d(PyFloat_FromDouble(static_cast<double>(std::max(at - prim::now(), least)) * 1e-9));
  if (d)
    g->timer = with_signals_held([&] {
      return PyObject_CallMethodObjArgs(loop, names.call_later, d.get(), g->ring_up, nullptr);
    });
  PyErr_Clear();
}

// Sets the timer for one check for a standstill, if the guest rests until then (rule 10.6).
void look_later(GuestObject* g, PyObject* loop, std::uint32_t number) noexcept {
  g->standstill = number;
  const Owned d(PyFloat_FromDouble(
      static_cast<double>(runtime::patience().load(std::memory_order_relaxed)) * 1e-9));
  if (d)
    g->look = with_signals_held([&] {
      return PyObject_CallMethodObjArgs(loop, names.call_later, d.get(), g->look_up, nullptr);
    });
  PyErr_Clear();
}
void look_no_more(GuestObject* g) noexcept {
  const Owned h(std::exchange(g->look, nullptr));
  if (!h) return;
  const Owned r(
      with_signals_held([&] { return PyObject_CallMethodNoArgs(h.get(), names.cancel); }));
}

bool all_ended(GuestObject* g) noexcept {
  return !g->open && g->group->done() && g->spawned->done();
}

void tell_waiter(GuestObject* g) noexcept {
  const Owned f(std::exchange(g->waiter, nullptr));
  if (!f) return;
  set_future(f.get());
}

// Returns True if nothing else on the loop could wake a process (rules 10.4 and 13.6), False if
// something could, None if only callbacks that are about to run could. The function also records
// whether a signal handler of the loop may act.
PyObject* alone(GuestObject* g, PyObject* loop) noexcept {
  if (g->awaiting > 0 || g->open || !g->waiter) return Py_False;
  const Owned r(with_signals_held([&] { return PyObject_CallOneArg(names.alone, loop); }));
  g->run->loop_acts = r && PyList_CheckExact(r.get());
  if (g->run->loop_acts) return Py_True;
  // These objects are immortal, so a borrowed reference stays valid.
  return r == Py_True || r == Py_None ? r.get() : Py_False;
}

// Called when a process has failed, so that the block must end (rule 7.5). The task is cancelled
// once; leaving the block withdraws that request.
void tell_block(GuestObject* g) noexcept {
  if (!g->open || g->told || !g->task || g->run->self.cancel().load() == 0) return;
  g->told = true;
  const Owned r(
      with_signals_held([&] { return PyObject_CallMethodNoArgs(g->task, names.cancel); }));
  if (!r) PyErr_WriteUnraisable(g->task);
}

// Decides what follows a turn: another turn, a rest, or the end.
void go_on(GuestObject* g, PyObject* loop) noexcept {
  run_deferred();
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
    if (!g->ends[i].waiting)
      g->ends[i].waiting = groups[i]->begin_wait(g->ends[i]) == Status::pending;
  if (!g->scheduler->end_turn()) return schedule(g, loop);
  g->resting = true;
  const std::int64_t at = g->run->run.wake_time();
  arm(g, loop, at);
  if (at != prim::forever) return;
  PyObject* const only = alone(g, loop);
  // The callbacks that are about to run might wake a process, so another check is scheduled after
  // them.
  if (only == Py_None && g->looks < 3 && ++g->looks) schedule(g, loop);
  if (only != Py_True) return;
  // If a virtual clock jumps, or a deadlock is declared, the guest is rung. Otherwise a standstill
  // can begin.
  if (const std::uint32_t n = g->run->run.conclude()) look_later(g, loop, n);
}

void take_turn(GuestObject* g, PyObject* loop, std::int64_t budget) noexcept {
  if (g->in_turn || !g->run || g->ended) return;
  if (g->look) look_no_more(g);
  Turn turn{g, g->gone ? nullptr : loop, {}, false, this_turn};
  this_turn = &turn;
  g->in_turn = true;
  if (std::exchange(g->resting, false)) g->scheduler->begin_turn();
  g->scheduler->turn(budget);
  g->in_turn = false;
  if (turn.entered) {
    const Owned last = swap_task(loop, turn.before.get());
    turn.before.reset();
  }
  this_turn = turn.outer;
}

PyObject* guest_turn(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  g->scheduled = false;
  if (!g->run || g->ended || g->gone) Py_RETURN_NONE;
  const Owned loop(loop_of(g->link));
  if (!loop) Py_RETURN_NONE;
  const Owned held = new_ref(o);
  const Section s(g->link);
  take_turn(g, loop.get(), kBudget);
  go_on(g, loop.get());
  Py_RETURN_NONE;
}

PyObject* guest_timer(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  const std::int64_t at = std::exchange(g->armed, prim::forever);
  Py_CLEAR(g->timer);
  if (!g->run || g->ended || g->gone || g->scheduled) Py_RETURN_NONE;
  if (at <= prim::now()) return guest_turn(o, nullptr);
  if (const Owned loop(loop_of(g->link)); loop) arm(g, loop.get(), at, 1'000'000);
  Py_RETURN_NONE;
}
PyObject* guest_look(PyObject* o, PyObject*) {
  GuestObject* g = gst(o);
  Py_CLEAR(g->look);
  if (!g->run || g->ended || g->gone || !g->resting) Py_RETURN_NONE;
  const Owned held = new_ref(o);
  g->run->run.stood_still(g->standstill);
  Py_RETURN_NONE;
}
// _alone() in weft._backends.asyncio recognises the method by its name.
PyMethodDef look_def{"weft_standstill", gated<guest_look>, METH_NOARGS, nullptr};
PyMethodDef timer_def{"weft_timer", gated<guest_timer>, METH_NOARGS, nullptr};
PyMethodDef turn_def{"weft_turn", gated<guest_turn>, METH_NOARGS, nullptr};

// --- making and ending ---------------------------------------------------------------------------

GuestObject* new_guest(PyObject* list, LinkObject* link, bool open) {
  Owned g(PyObject_GC_New(GuestObject, &GuestType));
  if (!g) return nullptr;
  g->list = Py_NewRef(list);
  g->link = new_ref(link).release();
  g->turn = g->ring_up = g->look_up = g->waiter = g->timer = g->look = g->task = nullptr;
  g->standstill = 0;
  g->hosting = nullptr;
  g->run = nullptr;
  g->scheduler = nullptr;
  g->group = g->spawned = nullptr;
  g->next_due = g->before = nullptr;
  if ((g->next = link->guests)) g->next->before = g.get();
  link->guests = g.get();
  g->armed = prim::forever;
  g->awaiting = 0;
  g->due = g->scheduled = g->resting = g->ended = g->in_turn = g->gone = g->told = false;
  g->open = open;
  g->looks = 0;
  new (&g->called) prim::atomic<bool>(false);
  PyObject_GC_Track(obj(g.get()));
  g->turn = PyCFunction_New(&turn_def, obj(g.get()));
  g->ring_up = PyCFunction_New(&timer_def, obj(g.get()));
  g->look_up = PyCFunction_New(&look_def, obj(g.get()));
  return g->turn && g->ring_up && g->look_up ? g.release() : nullptr;
}

// Makes the guest's run, scheduler and groups.
void begin_run(GuestObject* g, runtime::Clock clock) {
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
  // The guest counts as something outside, since the loop's own timers and sockets can act; go_on()
  // examines these.
  g->run->run.enter_outside();
  g->scheduler = new runtime::Scheduler(g->run->run);
  g->scheduler->host_by(&guest_ring, g);
  g->run->guest = g->scheduler;
  g->group = new runtime::Group(g->run->run, g->scheduler, &g->run->self);
  g->spawned = new runtime::Group(g->run->run, g->scheduler, &g->run->self);
  g->spawned->also = g->group;  // if one of the two groups fails, both fail (rule 7.4)
  g->group->also = g->spawned;
  g->run->spawned = g->spawned;
}

// `alone`: there is exactly one process; an exception that leaves it is raised (rule 7.1).
GuestObject* make_guest(PyObject* list, runtime::Clock clock, bool open, bool alone = false) {
  LinkObject* link = link_here();
  if (!link) {
    if (!PyErr_Occurred())
      bad_use("no asyncio loop runs here: from ordinary code use weft.coroutines.run(...)");
    return nullptr;
  }
  if (load_names() < 0 || claim_processes(list) < 0) return nullptr;
  GuestObject* const g = new_guest(list, link, open);
  if (!g) {
    unclaim_processes(list);
    return nullptr;
  }
  begin_run(g, clock);
  if (alone) g->group->keep_end();
  if (open) {
    g->task = PyObject_CallNoArgs(names.current_task);
    if (!g->task) PyErr_Clear();
    g->hosting = new runtime::ThreadProcess::Hosting(g->run->self, *g->scheduler);
    g->group->open_block();
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    start_process(*g->group, proc(PyList_GET_ITEM(list, i)));
  const Owned loop(loop_of(g->link));
  if (loop) schedule(g, loop.get());
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
  look_no_more(g);
  unlist(g);
  if (GuestObject*& first = g->link->guests; g->before || first == g) {
    (g->before ? g->before->next : first) = g->next;
    if (g->next) g->next->before = g->before;
    g->next = g->before = nullptr;
  }
  if (!g->run) return;
  delete std::exchange(g->hosting, nullptr);
  if (g->group->done() && g->spawned->done()) {
    delete g->group;
    delete g->spawned;
    delete g->scheduler;
    delete g->run;
  } else {
    // The threads of the network continue, and refer to the guest. From now on no task waits for
    // them, and they ring no loop.
    g->group->end_wait(g->ends[0]);
    g->spawned->end_wait(g->ends[1]);
    g->scheduler->host_by(nullptr, nullptr);
    g->run->guest = nullptr;
  }
  g->group = g->spawned = nullptr;
  g->scheduler = nullptr;
  g->run = nullptr;
}

// Called when the loop will not run any more. The processes are cancelled and stepped to their
// ends, as far as that is possible without the loop.
void abandon(GuestObject* g) noexcept {
  if (!g->run || g->in_turn) return;
  const SavedException kept;
  g->gone = true;
  g->open = false;
  for (int round = 0; round < 100 && !all_ended(g); ++round) {
    // A process that catches Cancelled is cancelled again.
    g->run->run.cancel_everybody();
    for (int k = 0; k < 1000 && (k == 0 || g->scheduler->anything_ready()); ++k) {
      if (std::exchange(g->resting, false)) g->scheduler->begin_turn();
      Turn turn{g, nullptr, {}, false, this_turn};
      this_turn = &turn;
      g->in_turn = true;
      g->scheduler->turn(kBudget);
      g->in_turn = false;
      this_turn = turn.outer;
    }
  }
  g->ended = true;
  free_run(g);
}

PyObject* guest_new(PyTypeObject*, PyObject* args, PyObject* kw) {
  static const char* names[] = {"", "", "", nullptr};
  PyObject* processes;
  int virtual_time, alone = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O!p|p:Guest", const_cast<char**>(names),
                                   &PyTuple_Type, &processes, &virtual_time, &alone))
    return nullptr;
  run_deferred();
  const Owned list(process_list(&PyTuple_GET_ITEM(processes, 0), PyTuple_GET_SIZE(processes)));
  if (!list) return nullptr;
  Owned g(make_guest(list.get(),
                     virtual_time ? runtime::Clock::virtual_time : runtime::Clock::steady, false,
                     alone != 0));
  if (PyObject* raised = g ? raised_meanwhile() : nullptr) {
    // A signal handler has raised, so the code that was to wait for the guest will never do so.
    abandon(g.get());
    g.reset();
    restore_exception(raised);
  }
  return reinterpret_cast<PyObject*>(g.release());
}

// wait(future): the future is completed once all processes have ended.
PyObject* guest_wait(PyObject* o, PyObject* future) {
  GuestObject* g = gst(o);
  Py_XSETREF(g->waiter, Py_NewRef(future));
  const Owned loop(g->run ? loop_of(g->link) : nullptr);
  // The guest might already be resting. Until a task waits for the guest, the guest does not count
  // as alone on its loop (alone()). Therefore alone() is evaluated again.
  if (loop && !g->scheduled) {
    const Section s(g->link);
    if (std::exchange(g->resting, false)) g->scheduler->begin_turn();
    go_on(g, loop.get());
  }
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
  Py_CLEAR(gst(o)->look_up);
  Py_CLEAR(gst(o)->waiter);
  Py_CLEAR(gst(o)->task);
  return 0;
}
// finish(block, asked): returns the results, or raises the failures. `block` is the exception that
// left the block of a Group, or None. `asked` means that the task that awaits the guest was
// cancelled; the cancellation takes precedence over a quiet end of a single process.
PyObject* guest_finish(PyObject* o, PyObject* args) {
  GuestObject* g = gst(o);
  PyObject* block;
  int asked;
  if (!PyArg_ParseTuple(args, "Op:finish", &block, &asked)) return nullptr;
  if (!g->ended || !g->run)
    return bad_use("finish() of a guest that still runs: wait until it has ended");
  PyObject* also = block == Py_None ? nullptr : block;
  std::vector<std::exception_ptr> failures = g->group->take_failures();
  for (auto& f : g->spawned->take_failures()) failures.push_back(std::move(f));
  const std::exception_ptr left = asked ? nullptr : g->group->take_end();
  PyObject* r = nullptr;
  if (g->run->run.deadlocked()) {
    await_declared(g->run);
    raise_deadlock(*g->run);
  } else if (!failures.empty())
    raise_failures(std::move(failures), also);
  else
    r = left ? raise_left(left) : results_of(g->list);
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
  Py_VISIT(gst(o)->look_up);
  Py_VISIT(gst(o)->look);
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
  Py_XDECREF(g->look);
  Py_CLEAR(g->list);
  Py_XDECREF(reinterpret_cast<PyObject*>(g->link));
  PyObject_GC_Del(o);
}

PyMethodDef guest_methods[] = {{"wait", gated<guest_wait>, METH_O, nullptr},
                               {"cancel", gated<guest_cancel>, METH_NOARGS, nullptr},
                               {"abandon", gated<guest_abandon>, METH_NOARGS, nullptr},
                               {"finish", gated<guest_finish>, METH_VARARGS, nullptr},
                               {}};
PyGetSetDef guest_getset[] = {{"ended", gated<guest_ended>, nullptr, nullptr, nullptr},
                              {"told", gated<guest_told>, nullptr, nullptr, nullptr},
                              {}};

}  // namespace

PyTypeObject GuestType{PyVarObject_HEAD_INIT(nullptr, 0)};

void turn_at_once(GuestObject* g) noexcept {
  const Owned loop(g->scheduled || g->gone ? nullptr : loop_of(g->link));
  if (!loop) return;
  unlist(g);
  take_turn(g, loop.get(), kBudget);
  go_on(g, loop.get());
}

void abandon_orphans(LinkObject* l) noexcept {
  for (GuestObject* g = l->guests; g;) {
    if (g->waiter || g->task || g->in_turn || !g->run) {
      g = g->next;
      continue;
    }
    const Owned held = new_ref(g);
    abandon(g);  // removes the guest from the list, whatever its processes do meanwhile
    g = l->guests;
  }
}
void let_go_of_tasks(LinkObject* l, std::vector<PyObject*>& kept) {
  for (GuestObject* g = l->guests; g; g = g->next)
    for (PyObject** o : {&g->waiter, &g->task})
      if (*o) kept.push_back(std::exchange(*o, nullptr));
}

void list_called(LinkObject* l) noexcept {
  for (GuestObject* g = l->guests; g; g = g->next) {
    if (!g->called.load(std::memory_order_relaxed) || !g->called.exchange(false)) continue;
    g->looks = 0;
    if (g->due || g->ended) continue;
    g->due = true;
    g->next_due = l->due;
    l->due = g;
  }
}
void schedule_due(LinkObject* l, PyObject* loop) noexcept {
  while (GuestObject* g = l->due) {
    l->due = g->next_due;
    g->due = false;
    schedule(g, loop);
  }
}

GuestObject* guest_open() noexcept {
  const Owned list(PyList_New(0));
  GuestObject* g = list ? make_guest(list.get(), runtime::Clock::steady, true) : nullptr;
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
  if (PyType_Ready(&GuestType) < 0) return -1;
  return add_type(m, "Guest", &GuestType);
}

}  // namespace weft::py
