// The time limit on a block in a process, a thread or ordinary code (rule 7.12).
// weft/_backends/limits.py contains the part that Python code sees. In an asyncio task the limit
// belongs to the loop (weft/_backends/asyncio.py).
//
//   made ──enter()──► open ──leave()──► left
#include "processes/limit.hpp"

#include "channels/fork.hpp"
#include "checking/points.hpp"
#include "choice/time.hpp"
#include "declare.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "processes/guests.hpp"
#include "processes/process.hpp"
#include "rounds/report.hpp"
#include "weft/runtime/limit.hpp"

namespace weft::py {

namespace {

enum class LimitState : std::uint8_t { made, open, left };

struct LimitObject {
  PyObject_HEAD runtime::Limit limit;
  LimitState state;
  bool mine;                 // whether the Cancelled of this limit has left the block
  std::uint32_t generation;  // the fork in which the limit was made, as for channels
};
LimitObject* lim(PyObject* o) noexcept { return reinterpret_cast<LimitObject*>(o); }
PyObject* name_by;  // the string "_by", made once so that looking it up needs no memory

// Closes the limits of a plain thread, which can end while a suspended generator still has a limit
// open.
struct PlainThread {
  ~PlainThread() {
    runtime::ThreadProcess& t = runtime::ThreadProcess::self();
    if (t.run) runtime::Limit::close_all(t, *t.run);
  }
};

// Returns the process, or the thread, to which a new limit belongs.
ProcessBase* owner() {
  if (ProcessBase* p = this_process()) return p;
  runtime::ThreadProcess& t = runtime::ThreadProcess::self();
  static thread_local PlainThread plain;
  (void)plain;
  return &t;
}

// Converts `when`, in seconds or None, to ns of the process's clock. `relative` means that the
// seconds count from the present time. Returns false, with an exception set, if `when` cannot be
// converted.
bool deadline_of(PyObject* when, bool relative, ProcessBase& p, std::int64_t& ns) {
  ns = prim::forever;
  if (when == Py_None) return true;
  const auto given = to_ns(when, relative ? "timeout" : "deadline");
  if (!given) return false;
  ns = *given;
  if (!relative) return true;
  const std::int64_t now = runtime::Limit::run_of(p).now();
  ns = *given <= 0 ? now : runtime::later(now, *given);
  return true;
}

PyObject* limit_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kw, ":Limit", const_cast<char**>(names))) return nullptr;
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  new (&lim(o)->limit) runtime::Limit;
  lim(o)->state = LimitState::made;
  lim(o)->mine = false;
  lim(o)->generation = generation;
  return o;
}
// Returns true in the child of a fork if the limit's process, and the run that has its timer,
// belong to the parent. A limit that ordinary code has entered outside any run continues in the
// child.
bool is_parents(const LimitObject* l) {
  return l->generation != generation && l->limit.is_open() && !l->limit.of(*owner());
}
void limit_dealloc(PyObject* o) {
  if (!is_parents(lim(o))) lim(o)->limit.~Limit();
  Py_TYPE(o)->tp_free(o);
}

PyObject* limit_enter(PyObject* o, PyObject* args) {
  PyObject* when;
  int relative, again;
  if (!PyArg_ParseTuple(args, "Opp", &when, &relative, &again)) return nullptr;
  run_deferred();
  ProcessBase& p = *owner();
  std::int64_t ns;
  if (!deadline_of(when, relative != 0, p, ns)) return nullptr;
  if (lim(o)->state != LimitState::made)
    return bad_use("a timeout can be entered only once: make another");
  if (is_over(this_process()))
    return bad_use(
        "a timeout cannot be entered in a process that has ended (a finaliser ran there): do it "
        "elsewhere");
  if (checking) [[unlikely]]
    checking->limits(process_object(this_process()), true);
  lim(o)->limit.open(p, ns, again != 0);
  lim(o)->state = LimitState::open;
  Py_RETURN_NONE;
}

// Checks that the caller is allowed to leave or move the limit. Returns -1 for bad use.
int check_mine(LimitObject* l, const char* what) {
  if (l->state != LimitState::open)
    bad_use("%s of a timeout whose block %s", what,
            l->state == LimitState::made ? "was not entered" : "was left already");
  else if (!l->limit.is_open())
    bad_use("%s of a timeout whose process has ended: leave it in the process that entered it",
            what);
  else if (!l->limit.of(*owner()))
    bad_use("%s of a timeout that another process has entered: do it in that process", what);
  else
    return 0;
  return -1;
}

// leave(exception │ None): returns whether the exception is the limit's own Cancelled.
PyObject* limit_leave(PyObject* o, PyObject* e) {
  LimitObject* l = lim(o);
  if (l->state == LimitState::open && is_parents(l)) {  // rule 11.4
    l->state = LimitState::left;
    Py_RETURN_FALSE;
  }
  if (check_mine(l, "leaving") < 0) return nullptr;
  if (l->limit.lent() || !l->limit.innermost(*owner()))
    return bad_use(
        "leaving a timeout before the timeout, Group or run that was entered within it: leave the "
        "inner one first");
  const Owned by(PyErr_GivenExceptionMatches(e, errors.Cancelled) ? PyObject_GetAttr(e, name_by)
                                                                  : nullptr);
  if (!by) PyErr_Clear();
  l->mine = by == o;
  if (checking) [[unlikely]]
    checking->limits(process_object(this_process()), false);
  l->limit.close();
  l->state = LimitState::left;
  return PyBool_FromLong(l->mine);
}

// move(seconds │ None): moves the deadline; the seconds count from now.
PyObject* limit_move(PyObject* o, PyObject* when) {
  LimitObject* l = lim(o);
  if (check_mine(l, "reschedule") < 0) return nullptr;
  std::int64_t ns;
  if (!deadline_of(when, true, *owner(), ns)) return nullptr;
  if (checking) [[unlikely]] {  // the old deadline might have come first, but now never comes
    checking->limits(process_object(this_process()), false);
    checking->limits(process_object(this_process()), true);
  }
  if (!l->limit.move(ns))
    return bad_use("reschedule of a timeout that has expired and ended its block: make another");
  Py_RETURN_NONE;
}

PyObject* limit_expired(PyObject* o, void*) {
  return PyBool_FromLong(lim(o)->state == LimitState::left ? lim(o)->mine
                                                           : lim(o)->limit.expired());
}

PyMethodDef limit_methods[] = {{"enter", gated<limit_enter>, METH_VARARGS, nullptr},
                               {"leave", gated<limit_leave>, METH_O, nullptr},
                               {"move", gated<limit_move>, METH_O, nullptr},
                               {}};
PyGetSetDef limit_getset[] = {{"expired", gated<limit_expired>, nullptr, nullptr, nullptr}, {}};

// _close_limits(): disables the limits that ordinary code on the calling thread has entered.
PyObject* f_close_limits(PyObject*, PyObject*) {
  ProcessBase& p = *owner();
  runtime::Limit::close_all(p, runtime::Limit::run_of(p));
  Py_RETURN_NONE;
}
PyMethodDef limit_functions[] = {{"_close_limits", gated<f_close_limits>, METH_NOARGS, nullptr},
                                 {}};

PyTypeObject LimitType{PyVarObject_HEAD_INIT(nullptr, 0)};

}  // namespace

PyObject* limit_object(runtime::Limit* l) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  return l ? reinterpret_cast<PyObject*>(reinterpret_cast<char*>(l) - offsetof(LimitObject, limit))
           : nullptr;
#pragma GCC diagnostic pop
}

PyObject* raise_cancelled(ProcessBase& p, PyObject* value) {
  PyObject* instead = guest_cancellation(p);
  if (!instead) instead = block_interrupt(p);
  if (instead) {
    restore_exception(instead);
    return nullptr;
  }
  PyObject* const by = limit_object(runtime::Limit::take(p));
  const Owned e(
      PyObject_CallFunctionObjArgs(errors.Cancelled, value ? value : Py_None, by, nullptr));
  if (!e) return nullptr;
  PyErr_SetObject(errors.Cancelled, e.get());
  return nullptr;
}

int init_limit(PyObject* m) {
  LimitType.tp_name = "weft._native.Limit";
  LimitType.tp_basicsize = sizeof(LimitObject);
  LimitType.tp_flags = Py_TPFLAGS_DEFAULT;
  LimitType.tp_new = gated<limit_new>;
  LimitType.tp_dealloc = gated<limit_dealloc>;
  LimitType.tp_methods = limit_methods;
  LimitType.tp_getset = limit_getset;
  if (!(name_by = PyUnicode_InternFromString("_by"))) return -1;
  if (PyType_Ready(&LimitType) < 0 || PyModule_AddFunctions(m, limit_functions) < 0) return -1;
  return add_type(m, "Limit", &LimitType);
}

}  // namespace weft::py
