// The observer of operations and processes, and the steps that schedulers are running. observe.hpp
// has the invariants.
#include "watching/observe.hpp"

#include <map>
#include <set>

#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "processes/run.hpp"
#include "rounds/runs.hpp"
#include "sequences.hpp"
#include "watching/flight.hpp"
#include "watching/steps.hpp"

namespace weft::py {

prim::atomic<bool> observer_is_set{false};
prim::atomic<bool> steps_are_watched{false};

namespace {

PyObject* observer = nullptr;
thread_local bool inside = false;

void call(const char* what, PyObject* process, const char* op, PyObject* target,
          PyObject* detail) noexcept {
  if (!observer || inside) return;
  inside = true;
  {
    const Owned f = new_ref(observer);
    Owned<> r;
    {
      const OutsideGate beyond;
      r.reset(PyObject_CallFunction(f.get(), "sOzOO", what, process ? process : Py_None, op,
                                    target ? target : Py_None, detail ? detail : Py_None));
    }
    if (!r && PyErr_ExceptionMatches(PyExc_Exception))
      PyErr_WriteUnraisable(f.get());
    else if (!r)
      keep_interrupt_for(nullptr, take_exception());
  }
  inside = false;
}

PyObject* running() noexcept { return reinterpret_cast<PyObject*>(process_object(this_process())); }

PyObject* f_set_observer(PyObject*, PyObject* f) {
  const bool on = f != Py_None;
  if (on && !PyCallable_Check(f))
    return PyErr_Format(PyExc_TypeError, "an observer must be callable, not %R", f);
  Py_XSETREF(observer, on ? Py_NewRef(f) : nullptr);
  observe_more();
  Py_RETURN_NONE;
}

// --- steps ---------------------------------------------------------------------------------------

struct Step {
  ProcessObject* process = nullptr;  // alive while the step runs
  std::int64_t since = 0;
  std::uint64_t number = 0;
};
std::map<unsigned long, Step> steps;  // the key is the thread
prim::atomic<std::uint64_t> last_step{0};

PyObject* f_watch_steps(PyObject*, PyObject* on) {
  const bool watched = PyObject_IsTrue(on) == 1;
  steps_are_watched.store(watched, std::memory_order_relaxed);
  if (!watched) steps.clear();
  Py_RETURN_NONE;
}
// _running_steps(): returns the steps that schedulers run: for each (process, start in ns of the
// steady clock, number of the step, identifier of the thread).
PyObject* f_running_steps(PyObject*, PyObject*) {
  Owned list(PyList_New(0));
  std::map<unsigned long, Step> now = steps;
  for (PyRun* run : every_run())
    each_pooled_step(
        *run,
        [](const WatchedStep& w, void* to) {
          Step s;
          s.process = w.process.load(std::memory_order_seq_cst);
          s.number = w.number.load(std::memory_order_seq_cst);
          s.since = w.since.load(std::memory_order_seq_cst);
          (*static_cast<std::map<unsigned long, Step>*>(to))[w.thread] = s;
        },
        &now);
  for (auto& [thread, s] : now) Py_XINCREF(reinterpret_cast<PyObject*>(s.process));
  for (auto& [thread, s] : now) {
    if (!s.process) continue;
    PyObject* const one = Py_BuildValue("NLKk", reinterpret_cast<PyObject*>(s.process),
                                        static_cast<long long>(s.since),
                                        static_cast<unsigned long long>(s.number), thread);
    append(list, one);
  }
  return list.release();
}
PyObject* f_steady_ns(PyObject*, PyObject*) { return PyLong_FromLongLong(prim::now()); }

PyMethodDef observe_functions[] = {{"_set_observer", gated<f_set_observer>, METH_O, nullptr},
                                   {"_watch_steps", gated<f_watch_steps>, METH_O, nullptr},
                                   {"_running_steps", gated<f_running_steps>, METH_NOARGS, nullptr},
                                   {"_steady_ns", gated<f_steady_ns>, METH_NOARGS, nullptr},
                                   {}};

}  // namespace

void observe_more() noexcept {
  const bool on = observer || flying();
  observer_is_set.store(on, std::memory_order_relaxed);
  flight_is_alone = flying() && !observer;
  observe_operations(on);
  observe_selects(on);
  observe_groups(on);
}

void observe(const char* what, const char* op, PyObject* target, PyObject* detail) noexcept {
  if (flying()) {
    if (*what == 'c') flight_over(op, target, detail, nullptr);
    if (*what == 'p') flight_parks();
  }
  if (!observer) [[likely]]
    return;
  const SavedException kept;
  call(what, running(), op, target, detail);
}

namespace {
void raised(const char* op, PyObject* target) noexcept {
  PyObject *t, *v, *tb;
  PyErr_Fetch(&t, &v, &tb);
  if (t) PyErr_NormalizeException(&t, &v, &tb);
  if (flying()) flight_over(op, target, nullptr, v);
  call("raise", running(), op, target, v);
  PyErr_Restore(t, v, tb);
}
}  // namespace

void observe_sent(PySendResult s, const char* op, PyObject* target, PyObject* result) noexcept {
  if (s == PYGEN_ERROR) return raised(op, target);
  if (s == PYGEN_RETURN) return observe("commit", op, target, result);
  observe("park", op, target, nullptr);
}
void observe_returned(const char* op, PyObject* target, PyObject* result) noexcept {
  if (!result) return raised(op, target);
  observe("commit", op, target, result);
}
void observe_park(ProcessBase& p, const runtime::OpKind& kind) noexcept {
  // prevents a finaliser that runs in the observer from beginning another operation
  p.waits_in(&kind);
  observe("park", kind.verb, nullptr, nullptr);
}
void observe_start(ProcessObject* p) noexcept {
  if (flying()) flight_starts(p);
  const SavedException kept;
  call("start", reinterpret_cast<PyObject*>(p), nullptr, nullptr, nullptr);
}
void observe_end(ProcessObject* p, PyObject* result) noexcept {
  PyObject *t = nullptr, *v = nullptr, *tb = nullptr;
  if (!result) {
    PyErr_Fetch(&t, &v, &tb);
    PyErr_NormalizeException(&t, &v, &tb);
    if (tb) PyException_SetTraceback(v, tb);
  }
  if (flying()) flight_ends(p, v);
  call(result ? "end" : "left", reinterpret_cast<PyObject*>(p), nullptr, nullptr,
       result ? result : v);
  if (!result) PyErr_Restore(t, v, tb);
}

void WatchedStep::begin(ProcessObject* p) noexcept {
  since.store(prim::now(), std::memory_order_seq_cst);
  number.store(last_step.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  process.store(p, std::memory_order_seq_cst);
}
void step_begins(ProcessObject* p) noexcept {
  Step& s = steps[PyThread_get_thread_ident()];
  s.process = p;
  s.since = prim::now();
  s.number = last_step.fetch_add(1, std::memory_order_relaxed) + 1;
}
void step_ends() noexcept { steps[PyThread_get_thread_ident()].process = nullptr; }
void forget_steps() noexcept { steps.clear(); }

int init_observe(PyObject* m) { return PyModule_AddFunctions(m, observe_functions); }

}  // namespace weft::py
