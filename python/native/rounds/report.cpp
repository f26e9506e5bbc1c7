// The functions of the extension that the runtime calls. They release the GIL around a sleep, and
// report where each process is and which process holds which end.
#include "rounds/report.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "channels/held.hpp"
#include "channels/marks.hpp"
#include "checking/points.hpp"
#include "choice/watch.hpp"
#include "components/components.hpp"
#include "gate.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/door.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/handlers.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/outside.hpp"
#include "interpreter/owners.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/sites.hpp"
#include "processes/generators.hpp"
#include "processes/greenlet.hpp"
#include "processes/life.hpp"
#include "processes/loops.hpp"
#include "processes/run.hpp"
#include "rounds/facts.hpp"
#include "rounds/rounds.hpp"
#include "rounds/runs.hpp"
#include "watching/flight.hpp"
#include "watching/look.hpp"
#include "watching/observe.hpp"
#include "watching/steps.hpp"
#include "weft/runtime/outside.hpp"
#include "wire/wire.hpp"

namespace weft::py {

thread_local PyObject* guest_interrupt = nullptr;

namespace {

// --- sleeping ------------------------------------------------------------------------------------

// Without a GIL a frame can be read only while no thread runs it. The frame of a thread can be read
// while the thread sleeps here; this flag records that.
void say_asleep([[maybe_unused]] bool is) noexcept {
#ifdef Py_GIL_DISABLED
  runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  if (t && t->run) static_cast<ThreadProcess*>(t)->asleep = is;
#endif
}

void take_back(void* state) {
  take_lock(static_cast<PyThreadState*>(state));
  say_asleep(false);
}
void* give_up() {
  say_asleep(true);
  return give_up_lock();
}
// A thread that runs a component sleeps and yields without the GIL (aside.hpp). The address that
// step_aside() returns and step_back() receives shows whether the thread sleeps or yields.
char as_it_sleeps, as_it_yields;
// Not null while a sleeping thread is called out of its sleep for a moment.
thread_local PyThreadState* called_back = nullptr;

void* step_aside() {
  if (aside()) return &as_it_yields;
  if (!called_back) return give_up();
  give_up_lock();
  aside_state = std::exchange(called_back, nullptr);
  return &as_it_sleeps;
}
void step_back(void* state) {
  if (state == &as_it_yields) return;
  if (state != &as_it_sleeps) return take_back(state);
  take_lock(called_back = std::exchange(aside_state, nullptr));
}

// Acquires the GIL, which a run needs in order to conclude (Run::conclude).
void* take_to_conclude() {
  if (!aside()) return nullptr;
  PyThreadState* const mine = std::exchange(aside_state, nullptr);
  take_lock(mine);
  return mine;
}
void leave_concluded(void* state) {
  give_up_lock();
  aside_state = static_cast<PyThreadState*>(state);
}
// A thread between begin_sleep() and end_sleep(). The GIL protects the list of these threads.
struct Sleeper {
  runtime::Parking* by = nullptr;
  PyThreadState* state = nullptr;
  // How many sleeps of signal handlers are nested in this sleep. Nested sleeps are not in the list.
  unsigned within = 0;
  Sleeper *next = nullptr, *before = nullptr;
};
thread_local Sleeper sleeper;
Sleeper* sleepers = nullptr;

void list_sleeper(runtime::Parking& by) noexcept {
  Sleeper& s = sleeper;
  if (s.by) {
    ++s.within;
    return;
  }
  s = {&by, PyThreadState_Get(), 0, sleepers, nullptr};
  if (sleepers) sleepers->before = &s;
  sleepers = &s;
}
void unlist_sleeper() noexcept {
  Sleeper& s = sleeper;
  if (s.within > 0) {
    --s.within;
    return;
  }
  if (s.next) s.next->before = s.before;
  if (s.before)
    s.before->next = s.next;
  else if (sleepers == &s)
    sleepers = s.next;
  s = {};
}

// Keeps the exception of a signal handler for the code that waits on this thread.
void keep_interrupt() { keep_interrupt_for(nullptr, take_exception()); }

int check_signals() {
  const std::uint32_t before = generation;
  const int r = run_handlers();
  not_in_child(before);
  return r;
}

// Frees the objects that this thread has made and that other threads have dropped (owners.hpp).
// CPython frees them when Python code begins to run, and handles signals at that moment too.
// Returns false if a signal handler has raised; the exception is kept.
#ifdef Py_GIL_DISABLED
PyObject* nothing = nullptr;  // a Python function that does nothing
bool has_own_to_drop() noexcept { return owns_dropped(PyThreadState_Get()); }
bool drop_own() {
  while (has_own_to_drop()) {
    Owned<> r;
    {
      const OutsideGate beyond;
      r.reset(PyObject_CallNoArgs(nothing));
    }
    if (!r) {
      keep_interrupt();
      return false;
    }
  }
  return true;
}
#else
constexpr bool has_own_to_drop() noexcept { return false; }
constexpr bool drop_own() noexcept { return true; }
#endif

void end_sleep(void* state) {
  if (state == &as_it_sleeps) return;
  main_sleeps_by(nullptr);
  take_back(state);
  unlist_sleeper();
  if (ends_pending()) [[unlikely]]
    run_deferred();
}

void* begin_sleep(runtime::Parking& by) {
  if (aside()) return &as_it_sleeps;
  if (looking) [[unlikely]]
    fell_idle();
  if (!drop_own()) return nullptr;
  main_sleeps_by(&by);  // set before the check below: a signal after the check wakes this thread
  if (check_signals() < 0) {
    main_sleeps_by(nullptr);
    keep_interrupt();
    return nullptr;
  }
  if (ends_pending() || has_own_to_drop()) [[unlikely]] {
    main_sleeps_by(nullptr);
    run_deferred();
    return nullptr;
  }
  list_sleeper(by);
  return give_up();
}

bool disturbed(void* state) {
  if (state == &as_it_sleeps) return false;
  take_back(state);
  if (check_signals() < 0) keep_interrupt();
  drop_own();
  if (ends_pending()) run_deferred();
  give_up();
  return true;  // a handler, or the release of an end, might have made a process runnable here
}
// --- where processes are -------------------------------------------------------------------------

// This function runs under locks of the runtime, so references that it takes are dropped later
// (gate.hpp, invariant 4).
void at_line(ProcessBase& p, int line, PyCodeObject* owned) {
  p.line = static_cast<std::uint32_t>(line);
  // The name lives long enough: the code object keeps it, and the frame keeps the code object; or
  // the name is kept forever.
  PyObject* const name = file_name(owned->co_filename);
  if (!name) PyErr_Clear();
  p.about = runtime::in_file(nullptr, name ? PyUnicode_AsUTF8(name) : nullptr);
  defer_decref(reinterpret_cast<PyObject*>(owned));
}
void at_frame(ProcessBase& p, PyFrameObject* f) {
  if (f) at_line(p, PyFrame_GetLineNumber(f), PyFrame_GetCode(f));
}
#ifdef Py_GIL_DISABLED
// No frame object is made, because it would belong to this thread. If another thread then returned
// from the frame, the variables, with the ends in them, would move to the frame object, and remain
// there until this thread runs Python code again.
void at_frame_itself(ProcessBase& p, _PyInterpreterFrame* f) {
  PyObject* const code = f ? PyUnstable_InterpreterFrame_GetCode(f) : nullptr;
  if (code && PyCode_Check(code))
    at_line(p, PyUnstable_InterpreterFrame_GetLine(f), reinterpret_cast<PyCodeObject*>(code));
  else if (code)
    defer_decref(code);
}
#endif
void let_go(PyObject* o) noexcept {
  if (o) defer_decref(o);
}

// Coroutine.cr_frame and .cr_await. They are read by their descriptors, because a look-up can take
// the lock for all types.
PyObject *cr_frame, *cr_await;
PyObject* get(PyObject* descriptor, PyObject* o) {
  if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) [[likely]] {
    const PyGetSetDef* d = reinterpret_cast<PyGetSetDescrObject*>(descriptor)->d_getset;
    return d->get(o, d->closure);
  }
  // In 3.10 the descriptor is a member.
  return Py_TYPE(descriptor)->tp_descr_get(descriptor, o, reinterpret_cast<PyObject*>(Py_TYPE(o)));
}
PyObject* descriptor_of(const char* name) {
  return PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyCoro_Type), name);  // kept forever
}

// Follows the chain of awaited coroutines to the frame that began the operation.
void locate_coroutine(ProcessBase& p, PyObject* coroutine) {
  PyObject* o = Py_NewRef(coroutine);
  while (o && PyCoro_CheckExact(o)) {
// In 3.14 the field is internal to the interpreter.
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030E0000
    auto* const c = reinterpret_cast<PyCoroObject*>(o);
    if (c->cr_frame_state < 0)  // true if the coroutine waits
      at_frame_itself(p, reinterpret_cast<_PyInterpreterFrame*>(c->cr_iframe));
#else
    PyObject* f = get(cr_frame, o);
    if (f && f != Py_None) at_frame(p, reinterpret_cast<PyFrameObject*>(f));
    let_go(f);
#endif
    let_go(std::exchange(o, get(cr_await, o)));
  }
  let_go(o);
  PyErr_Clear();
}
void locate_greenlet(ProcessBase& p, ProcessObject* o) {
  PyObject* f = greenlet_frame(o);
  at_frame(p, reinterpret_cast<PyFrameObject*>(f));
  let_go(f);
}
void locate_thread(ThreadProcess& t) {
  if (!t.state || in_component(t)) return;
#ifdef Py_GIL_DISABLED
  if (!t.asleep && t.state != PyThreadState_Get()) return;
  at_frame_itself(t, t.state->current_frame);
#else
  PyFrameObject* f = PyThreadState_GetFrame(t.state);
  at_frame(t, f);
  let_go(reinterpret_cast<PyObject*>(f));
#endif
}

// --- which process holds what --------------------------------------------------------------------

std::map<const core::SyncObject*, Holders> held;  // filled during a report
// The ends that the last report has found. They are borrowed, so they are valid only until
// processes run again.
std::vector<LeftOpen> left_open;

void note_ends(ProcessBase& p) {
  each_end_held(p, [&p](const EndObject* e, const core::SyncObject* place, bool writes) {
    held[place].add(p.id, e, writes);
  });
  if (const ProcessObject* const o = process_object(&p))
    for (const EndObject* const e : received_by(o))
      held[&e->channel->core].add(p.id, e, Py_IS_TYPE(e, &WriterType) != 0);
}

bool collector_was_on = false;

void begin_report(runtime::Run& run) {
  // Frames are made below under the runtime's locks, under which no finaliser must run.
  collector_was_on = PyGC_Disable();
  held.clear();
  left_open.clear();
  run.each_process([](ProcessBase& p) {
    note_ends(p);
    locate(p);
  });
}
void end_report(runtime::Run&) {
  held.clear();
  if (collector_was_on) PyGC_Enable();
}
}  // namespace
ChannelObject* channel_of_core(const Engine& core) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  auto* const c = reinterpret_cast<ChannelObject*>(
      const_cast<char*>(reinterpret_cast<const char*>(&core)) - offsetof(ChannelObject, core));
#pragma GCC diagnostic pop
  return c;
}
namespace {
void holders_of(const core::SyncObject& c, bool readers, runtime::Numbers& add) {
  if (const auto it = held.find(&c); it != held.end()) {
    const auto& who = readers ? it->second.readers : it->second.writers;
    for (const std::uint32_t one : who) add.push_back(one);
  }
  const auto& core = static_cast<const Engine&>(c);
  if (add.empty() && (readers ? core.reader_ends() : core.writer_ends()) > 0)
    left_open.push_back({channel_of_core(core), readers});
}
// Returns whether this side has never had an end. (If it had had one, the release of its last end
// would have woken the party that waits at the channel; that party keeps the channel alive.)
bool never_had(const core::SyncObject& c, bool readers) {
  const auto& core = static_cast<const Engine&>(c);
  return !is_far(channel_of_core(core)) && (readers ? core.reader_ends() : core.writer_ends()) == 0;
}
void on_deadlock(runtime::Run& run, const runtime::Report& r) {
  PyRun& mine = run_of(run);
  for (const auto& [id, b] : r.blocked) mine.blocked.push_back(b);
  mine.left_open.swap(left_open);
  for (const LeftOpen& l : mine.left_open) Py_INCREF(reinterpret_cast<PyObject*>(l.channel));
}

// --- threads that are not processes (rule 10.3) --------------------------------------------------

std::set<PyRun*> all_runs;  // protected by the GIL

// Returns whether a thread might hold an end that no process holds, at a channel where a party
// waits for the other side.
bool thread_outside(runtime::Run& run) noexcept {
  if (!foreign_threads(run)) return false;
  held.clear();
  run.each_process(note_ends);
  struct Look final : runtime::WaitVisitor {
    bool found = false;
    void channel(const core::SyncObject& c, bool writing) override {
      const auto& core = static_cast<const Engine&>(c);
      const auto it = held.find(&c);
      const std::size_t known =
          it == held.end() ? 0 : (writing ? it->second.reader_ends : it->second.writer_ends).size();
      found = found || (writing ? core.reader_ends() : core.writer_ends()) > known;
    }
    void barrier(const core::SyncObject&) override { found = true; }
    // Called for the end of a process. A process of another run might still go on.
    void end(const core::SyncObject& e) override { found = found || run_of_end(e) != &run; }
    runtime::Run& run;
    explicit Look(runtime::Run& r) : run(r) {}
  } look(run);
  run.each_process([&](ProcessBase& p) {
    if (p.op && p.op->visit) p.op->visit(p, look);
  });
  held.clear();
  if (look.found) watch_foreign(run);
  return look.found;
}
bool anything_outside(runtime::Run& run) noexcept {
  if (ends_pending()) return true;  // the thread that retires those ends will check again
  if (wake_owners()) return true;   // the woken owners will also check again before they sleep
  const PyRun& r = run_of(run);
  return !r.checked && (thread_outside(run) || r.loop_acts || handlers_may_act());
}

PyObject* f_shutdown(PyObject*, PyObject*) {
  close_door();
  Py_RETURN_NONE;
}
PyMethodDef shutdown_def{"_shutdown", gated<f_shutdown>, METH_NOARGS, nullptr};

}  // namespace

PyRun::PyRun(runtime::Clock c) : run(c), self(&run, nullptr), checked(checking) {
#ifdef Py_GIL_DISABLED
  counted = is_counted(PyThreadState_Get());
  thread = PyThread_get_thread_ident();
#endif
  watch_standstill(run);
  all_runs.insert(this);
  can_be_looked_at();
  // Links to other OS processes count as outside, and so do open tokens.
  if (!checked) runtime::Outsiders::all().join(run);
}
PyRun::~PyRun() {
  forget_generators(*this);
  runtime::Outsiders::all().leave(run);
  take_condemned(this);
  all_runs.erase(this);
}
const std::set<PyRun*>& every_run() noexcept { return all_runs; }
void look_again() noexcept {
  for (PyRun* r : all_runs) {
    r->run.enter_outside();
    r->run.leave_outside();
  }
  look_again_in_loops();
}
void look_again_in_loops() noexcept {
  for (PyRun* r : all_runs)
    if (r->guest) r->guest->nudge();
}
void look_for_ends() noexcept {
  ProcessBase* const p = this_process();
  // The next turn of the process's scheduler runs the deferred work.
  if (coroutine_of(p) || greenlet_of(p)) return;
  if (interpreter_ends()) return;  // all sleeping threads have ended, or will end
  if (sleepers) sleepers->by->disturb();
  ring_loops();
}
#ifdef Py_GIL_DISABLED
bool wake_owners() noexcept {
  bool any = false;
  if (interpreter_ends()) return any;
  for (const Sleeper* s = sleepers; s; s = s->next) {
    if (!owns_dropped(s->state)) continue;
    any = true;
    s->by->disturb();
  }
  return any;
}
#endif
void keep_interrupt_for(PyRun* run, PyObject* owned) noexcept {
  if (!run) run = root_run;
  if (run && run == root_run && run->in_block()) {
    Py_XSETREF(run->interrupt, owned);
    run->self.cancel().fetch_or(runtime::Identity::Cancel::host);
    runtime::Group::ask(run->self);
  } else if (run) {
    Py_XSETREF(run->interrupt, owned);
    run->run.cancel_everybody();
  } else {
    Py_XSETREF(guest_interrupt, owned);
  }
}

PyObject* block_interrupt(const ProcessBase& p) noexcept {
  PyRun* const run = root_run;
  if (!run || !run->interrupt || !run->in_block() || &p != &run->self) return nullptr;
  run->self.cancel().take_back(runtime::Identity::Cancel::host);
  return std::exchange(run->interrupt, nullptr);
}

void locate(ProcessBase& p) noexcept {
  ProcessObject* o = process_object(&p);
  if (!o)  // the thread of an outermost block has no object
    locate_thread(static_cast<ThreadProcess&>(p));
  else if (o->kind == Kind::thread && o->thread)
    locate_thread(*static_cast<ThreadProcess*>(o->thread));
  else if (o->kind == Kind::greenlet)
    locate_greenlet(p, o);
#ifdef Py_GIL_DISABLED
  else if (o->stepping)
    return;
#endif
  else if (o->body)
    locate_coroutine(p, o->body);
}

#ifndef Py_GIL_DISABLED
// Returns whether the function is part of Python's own library, or of Weft.
bool of_library(PyFrameObject* f) { return of_library(Owned(PyFrame_GetCode(f)).get()); }
// Finds the thread's innermost function that belongs neither to Python's library nor to Weft, if
// there is one. A line within `threading`, for example, would not help the reader of a report.
void at_users_frame(ThreadProcess& t) {
  const Owned first(PyThreadState_GetFrame(t.state));
  Owned f = new_ref(first.get());
  while (f && of_library(f.get())) f.reset(PyFrame_GetBack(f.get()));
  at_frame(t, f ? f.get() : first.get());
}
#endif

std::string where_running([[maybe_unused]] ProcessBase& p) {
#ifndef Py_GIL_DISABLED
  ProcessObject* o = process_object(&p);
  const bool thread = o && o->kind == Kind::thread && o->thread;
  auto* const t = thread ? static_cast<ThreadProcess*>(o->thread) : nullptr;
  if (t ? t->state && !in_component(*t) : o && o->kind == Kind::coroutine && o->body) {
    const bool collects = PyGC_Disable();  // as in begin_report(): no finaliser must run meanwhile
    if (t)
      at_users_frame(*t);
    else
      locate(p);
    if (collects) PyGC_Enable();
    return runtime::where(p);
  }
#endif
  return "";
}

void forget_threads() noexcept {
  all_runs.clear();
  sleepers = nullptr;
  sleeper.next = sleeper.before = nullptr;
  forget_steps();
  forget_flight();
  forget_look_door();
  forget_foreign_threads();
  forget_outside();
  forget_links();
  new_door();
}

void watch_outside(runtime::Run& run) noexcept { run.anything_outside = &anything_outside; }

int init_report(PyObject*) {
  if (!(cr_frame = descriptor_of("cr_frame")) || !(cr_await = descriptor_of("cr_await"))) return -1;
#ifdef Py_GIL_DISABLED
  const Owned names(PyDict_New());
  nothing = names ? PyRun_String("lambda: None", Py_eval_input, names.get(), names.get()) : nullptr;
  if (!nothing) return -1;
#endif
  runtime::patience();  // reads the environment, so that an error in it is raised now
  runtime::around_sleep.begin = &begin_sleep;
  runtime::around_sleep.end = &end_sleep;
  runtime::around_sleep.disturbed = &disturbed;
  runtime::around_sleep.step_aside = &step_aside;
  runtime::around_sleep.step_back = &step_back;
  runtime::around_sleep.conclude = &take_to_conclude;
  runtime::around_sleep.concluded = &leave_concluded;
  runtime::report_hooks.begin = &begin_report;
  runtime::report_hooks.end = &end_report;
  runtime::report_hooks.holders = &holders_of;
  runtime::report_hooks.never = &never_had;
  runtime::report_hooks.deadlock = &on_deadlock;
  runtime::report_hooks.ends = "ended=\"raise\"";
  runtime::report_hooks.outside = nullptr;  // left_open.py gives this advice
  const Owned m(PyImport_ImportModule("atexit"));
  const Owned f(m ? PyCFunction_New(&shutdown_def, nullptr) : nullptr);
  const Owned r(f ? PyObject_CallMethod(m.get(), "register", "O", f.get()) : nullptr);
  return r ? 0 : -1;
}

}  // namespace weft::py
