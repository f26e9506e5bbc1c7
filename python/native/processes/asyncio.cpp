// The link between Weft and an asyncio loop, whose tasks are foreign waiters (rule 6.6).
//
//   TaskWaiter:  begin ──► done │ waiting: its task awaits a future ──notified (check again) or woken (decided)──► the future is set, the task runs
//   throw:  not committed ──► withdrawn, the exception is raised
//           committed     ──► the operation completes; the cancellation is owed: it is raised at the task's next point (rule 6.3)
#include "processes/asyncio.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "components/components.hpp"
#include "declare.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/pending.hpp"
#include "processes/greenlet.hpp"
#include "processes/guests.hpp"
#include "processes/loops.hpp"
#include "processes/run.hpp"
#include "processes/signals_held.hpp"
#include "processes/task_waiter.hpp"
#include "rounds/runs.hpp"

namespace weft::py {

namespace {

thread_local LinkObject* cached = nullptr;      // owned: the link that this thread used last
thread_local LinkObject* in_section = nullptr;  // the link of the section that this thread is in

PyObject* get_running = nullptr;  // asyncio's function, once asyncio has been imported
PyObject* cancelled_error = nullptr;
// the dictionary of current tasks, by loop; null if `current` must be called instead
PyObject* tasks = nullptr;
PyObject* current = nullptr;  // asyncio.current_task
std::size_t owing = 0;        // the number of tasks to which a cancellation is owed

LinkObject* lnk(PyObject* o) noexcept { return reinterpret_cast<LinkObject*>(o); }

struct {
  // The names are made when the module is imported. A static that is made at its first use would
  // take a lock, which must not be held when the gate opens.
  PyObject *asyncio, *done, *set_result, *create_future, *blocking, *time, *virtual_time;
} asyncio_names;

PyObject* module_attribute(const char* name) noexcept {
  const Owned m(PyImport_ImportModule("weft._backends.asyncio"));
  return m ? PyObject_GetAttrString(m.get(), name) : nullptr;
}
PyObject* module_function(const char* name, PyObject* argument) noexcept {
  const Owned f(module_attribute(name));
  return f ? argument ? PyObject_CallOneArg(f.get(), argument) : PyObject_CallNoArgs(f.get())
           : nullptr;
}

// Returns the running loop, a new reference; null if none runs or there is an error.
PyObject* running_loop() noexcept {
  if (!get_running) {
    const Owned m(PyImport_GetModule(asyncio_names.asyncio));
    if (m) get_running = PyObject_GetAttrString(m.get(), "_get_running_loop");
    if (!get_running) {
      PyErr_Clear();
      return nullptr;
    }
  }
  Owned loop(PyObject_CallNoArgs(get_running));
  if (!loop) PyErr_Clear();
  if (loop == Py_None) loop.reset();
  return loop.release();
}

bool refers_to(LinkObject* l, PyObject* loop) noexcept {
  const Owned its(loop_of(l));
  return its == loop;
}

// --- exceptions of signal handlers ---------------------------------------------------------------

PyObject* raised = nullptr;  // owned; the latest exception of a signal handler
int raise_it(void*) {
  if (!raised) return 0;
  restore_exception(std::exchange(raised, nullptr));
  return -1;
}

}  // namespace

void schedule_due(LinkObject* l, PyObject* loop) noexcept;  // defined in guest.cpp
void list_called(LinkObject* l) noexcept;                   // defined in guest.cpp

namespace {

// --- passing wake-ups on to tasks ----------------------------------------------------------------

void deliver(LinkObject* l) noexcept {
  const SavedException kept;
  const Owned loop(loop_of(l));
  while (TaskWaiter* p = l->told) {
    l->told = p->next_told;
    p->listed = false;
    if (p->kept && p->woken) {
      const Owned op(std::exchange(p->kept, nullptr));
      p->late(op.get(), *p);
      continue;
    }
    if (!p->future) continue;
    const Owned f(std::exchange(p->future, nullptr));  // the calls below can free the task waiter
    if (loop) set_future(f.get());
  }
  list_called(l);
  if (loop && l->due) schedule_due(l, loop.get());
}

void unlist(TaskWaiter* p) noexcept {
  if (!p->listed) return;
  TaskWaiter* before = nullptr;
  for (TaskWaiter* x = p->link->told; x != p; x = x->next_told) before = x;
  (before ? before->next_told : p->link->told) = p->next_told;
  if (p->link->told_last == p) p->link->told_last = before;
  p->listed = false;
}

void list(TaskWaiter* p) noexcept {
  if (p->listed) return;
  p->listed = true;
  p->next_told = nullptr;
  LinkObject* l = p->link;
  (l->told ? l->told_last->next_told : l->told) = p;
  l->told_last = p;
  ring(l);
}

TaskWaiter* task_waiter_of(core::Waker* w) noexcept {
  return static_cast<TaskWaiter*>(static_cast<ProcessBase*>(w));
}
void tell_task(core::Node* n) noexcept {
  const With lock;  // needed on the thread of a component
  list(task_waiter_of(n));
}
void wake_task(core::Node* n) noexcept {
  const With lock;
  task_waiter_of(n)->woken = true;
  list(task_waiter_of(n));
}
runtime::Executor* no_executor(ProcessBase&) noexcept { return nullptr; }

const runtime::ProcessOps task_waiter_ops{{&wake_task, nullptr, nullptr, 0, &tell_task},
                                          &no_executor};

// --- the type ------------------------------------------------------------------------------------

std::vector<LinkObject*> every_link;

PyObject* link_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"", "", nullptr};
  PyObject* loop;
  int virtual_time;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "Op:Link", const_cast<char**>(names), &loop,
                                   &virtual_time))
    return nullptr;
  Owned weak(PyWeakref_NewRef(loop, nullptr));
  if (!weak) return nullptr;
  Owned l(lnk(type->tp_alloc(type, 0)));
  if (!l) return nullptr;
  l->loop = weak.release();
  l->told = l->told_last = nullptr;
  l->due = l->guests = nullptr;
  l->waiters = nullptr;
  l->dirty = false;
  l->at_once = 0;
  l->counted = nullptr;
  l->virtual_time = virtual_time != 0;
  new (&l->rung) prim::atomic<bool>(false);
  l->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (l->bell < 0) {
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, "eventfd, which a loop of asyncio needs");
    return nullptr;
  }
  every_link.push_back(l.get());
  return reinterpret_cast<PyObject*>(l.release());
}
void link_dealloc(PyObject* o) {
  std::erase(every_link, lnk(o));
  if (lnk(o)->bell >= 0) close(lnk(o)->bell);
  Py_XDECREF(lnk(o)->loop);
  Py_TYPE(o)->tp_free(o);
}
PyObject* link_fileno(PyObject* o, PyObject*) { return PyLong_FromLong(lnk(o)->bell); }

// The callable that the loop calls when the link's eventfd becomes readable. Only the loop's reader
// refers to it.
struct BellObject {
  PyObject_HEAD LinkObject* link;  // owned
};
PyTypeObject BellType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* link_bell(PyObject* o, PyObject*) {
  PyObject* b = BellType.tp_alloc(&BellType, 0);
  if (b) reinterpret_cast<BellObject*>(b)->link = lnk(Py_NewRef(o));
  return b;
}
void bell_dealloc(PyObject* o) {
  LinkObject* l = reinterpret_cast<BellObject*>(o)->link;
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  abandon_orphans(l);
  // The objects are dropped after the loop below, because dropping them can remove entries from the
  // lists.
  std::vector<PyObject*> kept;
  let_go_of_tasks(l, kept);
  for (TaskWaiter* p = l->waiters; p; p = p->next)
    if (p->future) kept.push_back(std::exchange(p->future, nullptr));
  for (PyObject* f : kept) Py_DECREF(f);
  PyErr_Restore(t, v, tb);
  Py_DECREF(reinterpret_cast<PyObject*>(l));
  Py_TYPE(o)->tp_free(o);
}
PyObject* bell_call(PyObject* o, PyObject*, PyObject*) {
  LinkObject* l = reinterpret_cast<BellObject*>(o)->link;
  std::uint64_t n;
  while (read(l->bell, &n, sizeof n) < 0 && errno == EINTR) {
  }
  l->rung.store(false);
  const Section s(l);
  l->dirty = true;
  Py_RETURN_NONE;
}
PyMethodDef link_methods[] = {{"fileno", gated<link_fileno>, METH_NOARGS, nullptr},
                              {"bell", gated<link_bell>, METH_NOARGS, nullptr},
                              {}};

PyObject* f_names(PyObject*, PyObject* args) {
  PyObject *c, *by_loop, *ask;
  if (!PyArg_ParseTuple(args, "OOO", &c, &by_loop, &ask)) return nullptr;
  Py_XSETREF(cancelled_error, Py_NewRef(c));
  Py_XSETREF(tasks, PyDict_Check(by_loop) ? Py_NewRef(by_loop) : nullptr);
  Py_XSETREF(current, Py_NewRef(ask));
  Py_RETURN_NONE;
}
PyObject* f_owing(PyObject*, PyObject* n) {
  owing = PyLong_AsSize_t(n);
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}
// _watch_signals(): returns an object that holds signals back from the loop's methods as long as
// the object exists; returns None on any thread but the main one.
void end_watch(PyObject*) { unwatch_signals(); }
PyObject* f_watch(PyObject*, PyObject*) {
  if (!watch_signals()) Py_RETURN_NONE;
  static int nothing;
  PyObject* r = PyCapsule_New(&nothing, nullptr, gated<end_watch>);
  if (!r) unwatch_signals();
  return r;
}
// Writes to standard error where the processes of this thread's networks are.
PyObject* f_say_where(PyObject*, PyObject*) {
  for (PyRun* run : std::set<PyRun*>(every_run()))
    if (run->state == PyThreadState_Get()) say_where(*run);
  Py_RETURN_NONE;
}
PyMethodDef asyncio_functions[] = {{"_watch_signals", gated<f_watch>, METH_NOARGS, nullptr},
                                   {"_say_where", gated<f_say_where>, METH_NOARGS, nullptr},
                                   {"_asyncio_names", gated<f_names>, METH_VARARGS, nullptr},
                                   {"_asyncio_owing", gated<f_owing>, METH_O, nullptr},
                                   {}};

}  // namespace

PyTypeObject LinkType{PyVarObject_HEAD_INIT(nullptr, 0)};

void set_future(PyObject* future) noexcept {
  const Owned r(with_signals_held([&] {  // null means that the loop is closed, and nothing will run
    Owned already(PyObject_CallMethodNoArgs(future, asyncio_names.done));
    if (already != Py_False) return already.release();
    return PyObject_CallMethodOneArg(future, asyncio_names.set_result, Py_None);
  }));
}

PyObject* raised_by_signals() noexcept {
  return !PyErr_Occurred() && run_handlers() < 0 ? take_exception() : nullptr;
}
void raise_in_main(PyObject* e) noexcept {
  if (!e) return;
  Py_XSETREF(raised, e);
  // If the queue of calls is full, an earlier call of Weft's in the queue will raise the exception.
  Py_AddPendingCall(gated<raise_it>, nullptr);
}

PyObject* raised_meanwhile() noexcept {
  if (!on_main_thread()) return nullptr;
  PyObject* now = raised_by_signals();
  Owned before(std::exchange(raised, nullptr));
  if (!now) return before.release();
  return now;
}

PyObject* loop_of(LinkObject* l) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* loop = nullptr;
  if (PyWeakref_GetRef(l->loop, &loop) < 0) PyErr_Clear();
  return loop;
#else
  PyObject* loop = PyWeakref_GetObject(l->loop);
  return loop == Py_None ? nullptr : Py_XNewRef(loop);
#endif
}

bool in_asyncio() noexcept {
  const Owned loop(running_loop());
  return loop != nullptr;
}

bool in_task() noexcept {
  ProcessBase* const p = this_process();
  return !coroutine_of(p) && !greenlet_of(p) && in_asyncio();
}

LinkObject* link_here() noexcept {
  const Owned loop(running_loop());
  if (!loop) return nullptr;
  if (!cached || !refers_to(cached, loop.get())) {
    PyObject* l = module_function("_link_of", loop.get());
    if (!l) return nullptr;
    Owned(std::exchange(cached, lnk(l))).reset();
  }
  return cached;
}

// This function also works for a loop that has not used Weft yet and has no link.
bool is_virtual(PyObject* loop) noexcept {
  if (cached && refers_to(cached, loop)) return cached->virtual_time;
  const Owned is(PyObject_GetAttr(loop, asyncio_names.virtual_time));
  const bool yes = is && PyObject_IsTrue(is.get()) == 1;
  return yes;
}
std::optional<std::int64_t> loop_time() noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  const Owned loop(running_loop());
  const Owned seconds(loop && is_virtual(loop.get())
                          ? PyObject_CallMethodNoArgs(loop.get(), asyncio_names.time)
                          : nullptr);
  std::optional<std::int64_t> ns;
  if (seconds) ns = std::llround(PyFloat_AsDouble(seconds.get()) * 1e9);
  PyErr_Restore(t, v, tb);
  return ns;
}

void ring(LinkObject* l) noexcept {
  if (in_section == l) {
    l->dirty = true;
    return;
  }
  if (l->rung.exchange(true)) return;
  const std::uint64_t one = 1;
  while (write(l->bell, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void ring_loops() noexcept {
  for (LinkObject* l : every_link)
    if (l->guests || l->waiters) ring(l);
}

Section::Section(LinkObject* l) noexcept : link_(l), outer_(in_section) {
  if (!l) return;
  Py_INCREF(reinterpret_cast<PyObject*>(l));
  in_section = l;
}
Section::~Section() {
  if (!link_) return;
  run_deferred();
  if (outer_ != link_)
    while (std::exchange(link_->dirty, false)) deliver(link_);
  in_section = outer_;
  Py_DECREF(reinterpret_cast<PyObject*>(link_));
}

const void* current_task() noexcept {
  const Owned loop(running_loop());
  const void* task = nullptr;
  if (loop && tasks) {
    task = PyDict_GetItemWithError(tasks, loop.get());
  } else if (loop && current) {
    const Owned its(PyObject_CallOneArg(current, loop.get()));  // the task is running, so it stays
                                                                // alive
    if (its != Py_None) task = its.get();
  }
  PyErr_Clear();
  return task;
}
bool TaskWaiter::is_mine() const noexcept { return task == current_task(); }
bool count_at_once(LinkObject& l, const void* task, std::size_t n) noexcept {
  if (std::exchange(l.counted, task) != task) l.at_once = 0;
  const bool over = l.at_once + n > runtime::Standing::kAtOnce;
  l.at_once = over ? 0 : l.at_once + static_cast<std::uint32_t>(n);
  return over;
}
bool task_lives(TaskWaiter* p) noexcept {
  return p->task ? task_lives(p->link, p->task) : p->future != nullptr;
}
bool task_lives(LinkObject* l, const void* task) noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  const Owned loop(loop_of(l));
  const Owned f(loop ? module_attribute("_lives") : nullptr);
  const Owned r(f ? PyObject_CallFunction(f.get(), "ON", loop.get(),
                                          PyLong_FromVoidPtr(const_cast<void*>(task)))
                  : nullptr);
  PyErr_Restore(t, v, tb);
  return r == Py_True;
}
void let_waiting_task_go_on(TaskWaiter* p) noexcept {
  if (!p->future || p->is_mine() || !task_lives(p)) return;
  const SavedException kept;
  const Owned r(module_function("_go_on", p->future));
  if (!r) PyErr_WriteUnraisable(p->future);
}

TaskWaiter::TaskWaiter(LinkObject* l) noexcept
    : link(lnk(Py_NewRef(reinterpret_cast<PyObject*>(l)))), task(current_task()) {
  ops = &task_waiter_ops;
  if ((next = l->waiters)) next->before = this;
  l->waiters = this;
}
TaskWaiter::~TaskWaiter() {
  task_waiter_goes();
  unlist(this);
  (before ? before->next : link->waiters) = next;
  if (next) next->before = before;
  Py_XDECREF(future);
  Py_DECREF(reinterpret_cast<PyObject*>(link));
}

PySendResult TaskWaiter::await(PyObject** r) noexcept {
  *r = nullptr;
  Py_CLEAR(future);
  const Owned loop(loop_of(link));
  Owned f(loop ? PyObject_CallMethodNoArgs(loop.get(), asyncio_names.create_future) : nullptr);
  if (!f || PyObject_SetAttr(f.get(), asyncio_names.blocking, Py_True) < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the event loop is gone");
    return PYGEN_ERROR;
  }
  future = Py_NewRef(f.get());
  *r = f.release();
  return PYGEN_NEXT;
}

std::unique_ptr<TaskWaiter> begin_task_waiter(const char* verb) noexcept {
  LinkObject* l = link_here();
  if (!l) {
    if (!PyErr_Occurred())
      bad_use(
          "%s was awaited outside any coroutine process of Weft and any asyncio task: start the "
          "network by weft.coroutines.run(...)",
          verb);
    return nullptr;
  }
  if (owing > 0) [[unlikely]] {
    const Owned due(module_function("_owed", nullptr));
    if (due == Py_True) PyErr_SetNone(cancelled_error);
    if (PyErr_Occurred()) return nullptr;
  }
  task_waiter_comes();
  return std::make_unique<TaskWaiter>(l);
}

bool is_cancellation(PyObject* const* thrown, Py_ssize_t n) noexcept {
  return n > 0 && cancelled_error && PyErr_GivenExceptionMatches(thrown[0], cancelled_error);
}

void owe_cancellation() noexcept {
  const SavedException kept;
  const Owned r(module_function("_owe", nullptr));
  if (!r) PyErr_WriteUnraisable(Py_None);
}

bool ended_by_asyncio(ProcessObject* p) noexcept {
  return p->guest && cancelled_error && PyErr_ExceptionMatches(cancelled_error);
}
PyObject* new_cancellation(PyObject* message) noexcept {
  return message ? PyObject_CallOneArg(cancelled_error, message)
                 : PyObject_CallNoArgs(cancelled_error);
}
void raise_cancellation() noexcept {
  PyErr_Clear();
  PyErr_SetNone(cancelled_error);
}

int init_asyncio(PyObject* m) {
  if (!(asyncio_names.asyncio = PyUnicode_InternFromString("_asyncio")) ||
      !(asyncio_names.done = PyUnicode_InternFromString("done")) ||
      !(asyncio_names.set_result = PyUnicode_InternFromString("set_result")) ||
      !(asyncio_names.create_future = PyUnicode_InternFromString("create_future")) ||
      !(asyncio_names.blocking = PyUnicode_InternFromString("_asyncio_future_blocking")) ||
      !(asyncio_names.time = PyUnicode_InternFromString("time")) ||
      !(asyncio_names.virtual_time = PyUnicode_InternFromString("virtual_time")))
    return -1;
  BellType.tp_name = "weft._native.Bell";
  BellType.tp_basicsize = sizeof(BellObject);
  BellType.tp_flags = Py_TPFLAGS_DEFAULT;
  BellType.tp_dealloc = gated<bell_dealloc>;
  BellType.tp_call = gated<bell_call>;
  if (PyType_Ready(&BellType) < 0) return -1;
  LinkType.tp_name = "weft._native.Link";
  LinkType.tp_basicsize = sizeof(LinkObject);
  LinkType.tp_flags = Py_TPFLAGS_DEFAULT;
  LinkType.tp_new = gated<link_new>;
  LinkType.tp_dealloc = gated<link_dealloc>;
  LinkType.tp_methods = link_methods;
  if (PyType_Ready(&LinkType) < 0 || PyModule_AddFunctions(m, asyncio_functions) < 0) return -1;
  return add_type(m, "Link", &LinkType);
}

}  // namespace weft::py
