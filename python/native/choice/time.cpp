// Barriers, timers and the clock (rule 8).
#include "choice/time.hpp"

#include <cmath>

#include "channels/operations.hpp"
#include "checking/points.hpp"
#include "choice/barrier.hpp"
#include "choice/guard.hpp"
#include "choice/select.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/misuse.hpp"
#include "interpreter/pending.hpp"
#include "interpreter/sites.hpp"
#include "keywords.hpp"
#include "processes/asyncio.hpp"
#include "processes/run.hpp"
#include "wire/far_barrier.hpp"

namespace weft::py {

namespace {

BarrierObject* bar(PyObject* o) noexcept { return reinterpret_cast<BarrierObject*>(o); }
TimerObject* tim(PyObject* o) noexcept { return reinterpret_cast<TimerObject*>(o); }

// --- Barrier -------------------------------------------------------------------------------------

PyObject* barrier_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"parties", nullptr};
  PyObject* given;
  Py_ssize_t parties;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O:Barrier", const_cast<char**>(names), &given) ||
      !whole_number(given, "Barrier: parties", "from 0 to 2**31 - 1", 0, 0x7fffffff, parties))
    return nullptr;
  Owned b(reinterpret_cast<BarrierObject*>(type->tp_alloc(type, 0)));
  if (!b) return nullptr;
  new (&b->core) BarrierEngine(static_cast<std::uint32_t>(parties));
  if (checking) [[unlikely]]
    checking->made(place_at(b->core), 0, false);
  b->generation = generation;
  if (PyFrameObject* f = PyEval_GetFrame()) {
    const Owned code(PyFrame_GetCode(f));
    b->name = Py_XNewRef(file_name(code->co_filename));
    b->core.line = static_cast<std::uint32_t>(PyFrame_GetLineNumber(f));
  } else {
    b->name = PyUnicode_FromString("barrier");
  }
  if (!b->name || !(b->core.name = PyUnicode_AsUTF8(b->name))) return nullptr;
  return reinterpret_cast<PyObject*>(b.release());
}
void barrier_dealloc(PyObject* o) {
  bar(o)->core.~BarrierEngine();
  Py_XDECREF(bar(o)->far);
  Py_XDECREF(bar(o)->name);
  Py_TYPE(o)->tp_free(o);
}
PyObject* barrier_sync(PyObject* o, PyObject*) { return operation_sync(bar(o)); }
PyObject* barrier_enrol(PyObject* o, PyObject*) {
  run_deferred();
  note_foreign_thread();
  if (check_barrier(bar(o), "enrol") < 0) return nullptr;
  if (bar(o)->far) return far_parties(bar(o), Parties::enrol);
  if (checking) [[unlikely]]
    checking->touches(place_at(bar(o)->core), Access::all);
  bar(o)->core.enrol_party();
  Py_RETURN_NONE;
}
PyObject* barrier_resign(PyObject* o, PyObject*) {
  run_deferred();
  note_foreign_thread();
  if (check_barrier(bar(o), "resign") < 0) return nullptr;
  if (bar(o)->far) return far_parties(bar(o), Parties::resign);
  if (checking) [[unlikely]]
    checking->touches(place_at(bar(o)->core), Access::all);
  if (!bar(o)->core.resign()) return bad_use("resign on a barrier with nobody enrolled");
  Py_RETURN_NONE;
}
PyObject* barrier_when(PyObject* o, PyObject* c) {
  const int on = PyObject_IsTrue(c);
  return on < 0 ? nullptr : guard_on(o, GuardKind::barrier, on != 0);
}
PyObject* barrier_parties(PyObject* o, void*) {
  if (check_barrier(bar(o), "parties") < 0) return nullptr;
  if (bar(o)->far) return far_parties(bar(o), Parties::ask);
  return PyLong_FromUnsignedLong(bar(o)->core.enrolled());
}
PyMethodDef barrier_methods[] = {
    {"sync", gated<barrier_sync>, METH_NOARGS,
     "Waits until all enrolled parties have arrived. Raises Cancelled (the phase then needs "
     "another arrival), PeerDied (an OS process that had the barrier has died), BadUse."},
    {"enrol", gated<barrier_enrol>, METH_NOARGS,
     "Adds a party to the barrier. If another OS process has made the barrier: raises PeerDied, "
     "and, where coroutines, greenlets or tasks share the thread, TimeoutError after 10 s without "
     "an answer."},
    {"resign", gated<barrier_resign>, METH_NOARGS,
     "Takes a party away from the barrier. If only that party was missing, the phase is complete. "
     "Raises BadUse if there is no party; PeerDied and TimeoutError as enrol() does."},
    {"when", method(gated<with_keyword<"when", "condition", barrier_when>>), kKeywords,
     "Returns this barrier as a guard with a precondition."},
    {"__reduce_ex__", gated<no_copy>, METH_O, nullptr},
    {}};
PyGetSetDef barrier_getset[] = {
    {"parties", gated<barrier_parties>, nullptr, "The number of parties.", nullptr}, {}};

// --- Timer ---------------------------------------------------------------------------------------

PyObject* timer_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"period", nullptr};
  PyObject* seconds;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O:Timer", const_cast<char**>(names), &seconds))
    return nullptr;
  const auto ns = to_ns(seconds, "Timer");
  if (!ns) return nullptr;
  if (*ns <= 0) return bad_use("Timer: the period must be longer than 0 s, not %R", seconds);
  auto* t = reinterpret_cast<TimerObject*>(type->tp_alloc(type, 0));
  if (!t) return nullptr;
  t->period = *ns;
  runtime::Run* run = current_run();
  t->next = run ? runtime::later(run->now(), *ns) : 0;
  return reinterpret_cast<PyObject*>(t);
}
PyObject* timer_tick(PyObject* o, PyObject*) {
  run_deferred();
  return timed_operation(GuardKind::timer, 0, tim(o));
}
PyObject* timer_when(PyObject* o, PyObject* c) {
  const int on = PyObject_IsTrue(c);
  return on < 0 ? nullptr : guard_on(o, GuardKind::timer, on != 0);
}
PyObject* timer_period(PyObject* o, void*) {
  return PyFloat_FromDouble(static_cast<double>(tim(o)->period) * 1e-9);
}
PyMethodDef timer_methods[] = {
    {"tick", gated<timer_tick>, METH_NOARGS,
     "Waits for the next tick. Returns how many periods have passed since the last tick: 1 unless "
     "ticks were missed."},
    {"when", method(gated<with_keyword<"when", "condition", timer_when>>), kKeywords,
     "Returns this timer as a guard with a precondition."},
    {}};
PyGetSetDef timer_getset[] = {
    {"period", gated<timer_period>, nullptr, "The period, in seconds.", nullptr}, {}};

// --- functions -----------------------------------------------------------------------------------

PyObject* f_sleep(PyObject*, PyObject* seconds) {
  run_deferred();
  const auto ns = to_ns(seconds, "sleep");
  if (!ns) return nullptr;
  return *ns <= 0 ? operation_yield() : timed_operation(GuardKind::after, *ns, nullptr);
}
PyObject* f_now(PyObject*, PyObject*) {
  if (checking) [[unlikely]]
    checking->reads_clock();
  return PyFloat_FromDouble(static_cast<double>(now_ns()) * 1e-9);
}

// _barrier_dies(barrier): makes a barrier die, because a party was killed before it could receive
// the barrier (rule 8.7).
PyObject* f_barrier_dies(PyObject*, PyObject* o) {
  if (!Py_IS_TYPE(o, &BarrierType)) return bad_use("_barrier_dies: expected a Barrier, got %R", o);
  run_deferred();
  if (bar(o)->far)
    far_dies(bar(o));
  else
    bar(o)->core.die();
  Py_RETURN_NONE;
}

PyMethodDef time_functions[] = {
    {"_barrier_dies", gated<f_barrier_dies>, METH_O, nullptr},
    {"sleep", method(gated<with_keyword<"sleep", "seconds", f_sleep>>), kKeywords,
     "Waits for this many seconds of the run's clock, never less. Raises Cancelled; BadUse for "
     "nan."},
    {"now", gated<f_now>, METH_NOARGS,
     "Returns the time of the run's clock, which may be virtual, in seconds; outside any run that "
     "of the steady clock."},
    {}};

}  // namespace

PyTypeObject BarrierType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject TimerType{PyVarObject_HEAD_INIT(nullptr, 0)};

int check_barrier(const BarrierObject* b, const char* verb) {
  if (b->generation == generation) [[likely]]
    return 0;
  bad_use(
      "%s on a barrier that was made before a fork, and this is the child: its parties are the "
      "parent's. Make another in the process that uses it",
      verb);
  return -1;
}

std::int64_t now_ns() noexcept {
  runtime::Run* run = current_run();
  return run ? run->now() : loop_time().value_or(prim::now());
}

std::optional<std::int64_t> to_ns(PyObject* seconds, const char* what) {
  double s = PyFloat_AsDouble(seconds);
  if (s == -1.0 && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError) &&
      PyLong_Check(seconds)) {
    PyErr_Clear();
    int beyond = 0;
    PyLong_AsLongLongAndOverflow(seconds, &beyond);
    s = beyond < 0 ? -HUGE_VAL : HUGE_VAL;
  }
  if (s == -1.0 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "%s: seconds must be a number, not %.100s", what,
                   Py_TYPE(seconds)->tp_name);
    return std::nullopt;
  }
  if (std::isnan(s)) {
    bad_use("%s: nan is not a time", what);
    return std::nullopt;
  }
  constexpr double limit = 9.2e9;  // seconds, about 290 years
  if (s >= limit) return prim::forever;
  if (s <= -limit) return -prim::forever;
  return static_cast<std::int64_t>(std::ceil(s * 1e9));  // rounded up, so that the time is never
                                                         // too early
}

int init_time(PyObject* m) {
  BarrierType.tp_name = "weft.Barrier";
  BarrierType.tp_doc =
      "Barrier(parties): a barrier, at which all parties meet before they go on. It is a guard "
      "too. Raises BadUse if the number of parties is out of range.";
  BarrierType.tp_basicsize = sizeof(BarrierObject);
  BarrierType.tp_flags = Py_TPFLAGS_DEFAULT;
  BarrierType.tp_new = gated<barrier_new>;
  BarrierType.tp_dealloc = gated<barrier_dealloc>;
  BarrierType.tp_methods = barrier_methods;
  BarrierType.tp_getset = barrier_getset;
  TimerType.tp_name = "weft.Timer";
  TimerType.tp_doc =
      "Timer(period): a timer that ticks every `period` seconds, without drift. It is a guard too. "
      "Raises BadUse if the period is not longer than 0.";
  TimerType.tp_basicsize = sizeof(TimerObject);
  TimerType.tp_flags = Py_TPFLAGS_DEFAULT;
  TimerType.tp_new = gated<timer_new>;
  TimerType.tp_methods = timer_methods;
  TimerType.tp_getset = timer_getset;
  if (PyType_Ready(&BarrierType) < 0 || PyType_Ready(&TimerType) < 0) return -1;
  if (add_type(m, "Barrier", &BarrierType) < 0 || add_type(m, "Timer", &TimerType) < 0) return -1;
  return PyModule_AddFunctions(m, time_functions);
}

}  // namespace weft::py
