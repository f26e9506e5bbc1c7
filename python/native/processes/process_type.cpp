// The type of process objects: the part of a process that Python code sees, and lists of processes.
// process.cpp implements how a process runs.
//
// Invariants
//  1 A process that was never started closes its coroutine and releases its ends when it is
//    collected. A warning is given, unless `given_up` is set.
//  2 While a coroutine belongs only to its process (`within`), the garbage collector reaches the
//    coroutine's references through the process.
#include "processes/process_type.hpp"

#include "channels/arrays.hpp"
#include "channels/held.hpp"
#include "checking/points.hpp"
#include "choice/watch.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/misuse.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/function.hpp"
#include "processes/life.hpp"
#include "processes/no_result.hpp"
#include "processes/rare.hpp"
#include "wire/wiring.hpp"

namespace weft::py {

namespace {

int process_traverse(PyObject* o, visitproc visit, void* arg) {
  PyObject* const body = proc(o)->body;
  if (proc(o)->within && Py_REFCNT(body) == 1) {
    if (const int r = Py_TYPE(body)->tp_traverse(body, visit, arg)) return r;
  } else {
    Py_VISIT(body);
  }
  Py_VISIT(proc(o)->context);
  Py_VISIT(proc(o)->outcome);
  if (const Watch* w = proc(o)->watch())
    for (const auto& x : w->watchers) Py_VISIT(reinterpret_cast<PyObject*>(x.get()));
  for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i)
    Py_VISIT(reinterpret_cast<PyObject*>(proc(o)->held[i]));
  return 0;
}
int process_clear(PyObject* o) {
  ProcessObject* p = proc(o);
  Py_CLEAR(p->context);
  Py_CLEAR(p->outcome);
  forget_watchers(p);
  return 0;
}
void process_dealloc(PyObject* o) {
  ProcessObject* p = proc(o);
  PyObject_GC_UnTrack(o);
  leave_within(p);
  if (!p->started) {
    const SavedException kept;
    if (!p->given_up && PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                         "process %s was made and never started: give it to run, "
                                         "Parallel, Sequence, Spawn or a Group",
                                         p->base.function ? p->base.function : "?") < 0)
      PyErr_WriteUnraisable(Py_None);
    if (p->body && is_async(p->kind)) {
      const Owned r(PyObject_CallMethod(p->body, "close", nullptr));
      if (!r) PyErr_WriteUnraisable(p->body);
    }
  }
  let_go(p);
  Py_CLEAR(p->body);
  Py_CLEAR(p->context);
  Py_CLEAR(p->outcome);
  forget_watchers(p);
  delete p->rare;
  PyObject_GC_Del(o);
}

PyObject* process_named(PyObject* o, PyObject* name) {
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "named: the name must be a str, not %.100s",
                        Py_TYPE(name)->tp_name);
  if (proc(o)->started)
    return bad_use("named(%R) on a process that has started: name it before", name);
  const char* s = intern(name);
  if (!s) return nullptr;
  proc(o)->base.function = s;
  return Py_NewRef(o);
}
// on(hosts): moves the call of this process to another place.
PyObject* process_on(PyObject* o, PyObject* where) {
  ProcessObject* const p = proc(o);
  if (p->started) return bad_use("on: %R has started: say where it runs before it starts", o);
  if (p->kind == Kind::pooled)
    return bad_use("on: %R is made for the pool: say where it runs when it is made, on=...", o);
  if (p->kind != Kind::thread || !p->body || !PyTuple_CheckExact(p->body) ||
      PyTuple_GET_SIZE(p->body) != 3)
    return bad_use(
        "on: %R is a coroutine or a greenlet: say where it runs before it is called, "
        "function.on(...)(...)",
        o);
  Owned<> away;
  {
    const OutsideGate beyond;
    const Owned m(PyImport_ImportModule("weft._hosts.processes"));
    PyObject* const function = PyTuple_GET_ITEM(p->body, 0);
    away.reset(m ? PyObject_CallMethod(m.get(), "away_to", "OO", function, where) : nullptr);
  }
  Owned body(
      away ? PyTuple_Pack(3, away.get(), PyTuple_GET_ITEM(p->body, 1), PyTuple_GET_ITEM(p->body, 2))
           : nullptr);
  if (!body) return nullptr;
  Ends held;
  for (Py_ssize_t i = 0; i < Py_SIZE(p); ++i) held.push_back(new_ref(p->held[i]));
  if (runs_away(away.get()) && wire_away(held) < 0) return nullptr;
  Py_SETREF(p->body, body.release());
  return Py_NewRef(o);
}
PyObject* process_cancel(PyObject* o, PyObject*) {
  run_deferred();
  note_foreign_thread();
  ProcessObject* p = proc(o);
  if (p->done) Py_RETURN_NONE;
  ProcessBase& b = base_of(p);
  if (checking) [[unlikely]]
    checking->cancels();
  if (b.group)
    b.group->cancel(b);
  else
    p->base.cancel().store(1);  // the process has not started, or is about to start
  Py_RETURN_NONE;
}
PyObject* process_result(PyObject* o, void*) {
  ProcessObject* p = proc(o);
  if (!p->done)
    return bad_use("result of process %s, which has not ended: wait for its group first",
                   p->base.function);
  if (!p->failed) return result_of(p);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(p->outcome)), p->outcome);
  return nullptr;
}
PyObject* process_done(PyObject* o, void*) { return PyBool_FromLong(proc(o)->done); }
PyObject* process_id(PyObject* o, void*) { return PyLong_FromUnsignedLong(proc(o)->base.id); }
PyObject* process_name(PyObject* o, void*) {
  return PyUnicode_FromString(proc(o)->base.function ? proc(o)->base.function : "?");
}
PyObject* process_path(PyObject* o, void*) {
  ProcessObject* p = proc(o);
  return to_str(runtime::path_of(base_of(p)));
}
PyObject* process_repr(PyObject* o) {
  const Owned path(process_path(o, nullptr));
  const ProcessObject* p = proc(o);
  return path ? PyUnicode_FromFormat("<Process %U, %s>", path.get(),
                                     p->done      ? (p->failed ? "failed" : "ended")
                                     : p->started ? "running"
                                                  : "not started")
              : nullptr;
}
PyObject* class_getitem(PyObject* type, PyObject*) { return Py_NewRef(type); }

PyObject* process_give_up(PyObject* o, PyObject*) {
  proc(o)->given_up = 1;
  Py_RETURN_NONE;
}
PyObject* process_never_run(PyObject* o, PyObject*) {
  const Owned one(PyList_New(1));
  if (!one) return nullptr;
  PyList_SET_ITEM(one.get(), 0, Py_NewRef(o));
  never_run(one.get());
  Py_RETURN_NONE;
}

PyObject* process_await(PyObject* o) {
  return bad_use(
      "a process cannot be awaited: `await Parallel(%s(...))` runs it; once it was started, `await "
      "p.ended()` waits for its end",
      proc(o)->base.function);
}

PyMethodDef process_methods[] = {
    {"named", method(gated<with_keyword<"named", "name", process_named>>), kKeywords,
     "Gives the process another name in its path, and returns the process."},
    {"on", method(gated<with_keyword<"on", "host", process_on>>), kKeywords,
     "Makes the process run in an OS process: `host` is Hosts of weft.processes, one of them, or "
     "another place for processes (docs/processes.md). Returns the process.\n\n"
     "Raises:\n"
     "    BadUse: the process has started, or is a coroutine or a greenlet."},
    {"cancel", gated<process_cancel>, METH_NOARGS,
     "Asks the process to end: its present or next operation raises Cancelled (rule 6)."},
    {"ended", gated<process_ended>, METH_NOARGS,
     "Returns a guard that is ready once the process has ended, and stays ready. Awaited, or by "
     "wait(), it gives Ended(how, result, error) (rule 7.11).\n\n"
     "Raises:\n"
     "    BadUse: the process calls this for itself."},
    {"_give_up", gated<process_give_up>, METH_NOARGS,
     "Marks the process as one that will not be started, on purpose: no warning is given."},
    {"_never_run", gated<process_never_run>, METH_NOARGS,
     "Ends the process without running it, and releases its ends."},
    {"__reduce_ex__", gated<no_copy>, METH_O, nullptr},
    {"__class_getitem__", class_getitem, METH_O | METH_CLASS, nullptr},
    {}};
PyGetSetDef process_getset[] = {
    {"result", gated<process_result>, nullptr,
     "The value that the process has returned; a NoResult if it ended quietly (rule 7.1). Raises "
     "the failure of a process that has failed, and BadUse if the process has not ended.",
     nullptr},
    {"id", gated<process_id>, nullptr,
     "A number that no other process has, from the start of the process on; 0 before.", nullptr},
    {"done", gated<process_done>, nullptr, "Whether the process has ended.", nullptr},
    {"name", gated<process_name>, nullptr,
     "The name of the process: that of its function, or the one that named() has given.", nullptr},
    {"path", gated<process_path>, nullptr,
     "The place of the process in the network, such as main/worker[3] (rule 7.8).", nullptr},
    {}};

}  // namespace

PyTypeObject ProcessType{PyVarObject_HEAD_INIT(nullptr, 0)};

// Returns whether this is an object that a process awaits, such as a write, a select or a nested
// Parallel.
static bool is_operation(PyObject* o) noexcept {
  const PyAsyncMethods* const async = Py_TYPE(o)->tp_as_async;
  return async && async->am_await && !Py_IS_TYPE(o, &ProcessType);
}

PyObject* no_process(PyObject* o, const char* where) {
  if (Py_IS_TYPE(o, &ProcessFunctionType)) {
    const Owned name(PyObject_GetAttrString(o, "__name__"));
    if (!name) PyErr_Clear();
    bad_use("%R%s is not a process yet: call it, %S(...)", o, where, name ? name.get() : o);
    return nullptr;
  }
  if (PyCoro_CheckExact(o))
    return bad_use("%R%s is not a process: decorate its function with @process", o, where);
  if (is_operation(o))
    return bad_use(
        "%R%s is an operation, not a process: await it in an async function that is decorated with "
        "@process, and start a process of that function for each operation",
        o, where);
  return bad_use("%R%s is not a process: call a function that is decorated with @process", o,
                 where);
}

static PyObject* iterator_of(PyObject* o) {
  const OutsideGate beyond;
  return PyObject_GetIter(o);
}
static PyObject* next_of(PyObject* iterator) {
  const OutsideGate beyond;
  return PyIter_Next(iterator);
}

PyObject* process_list(PyObject* const* args, Py_ssize_t n) {
  Owned list(PyList_New(0));
  for (Py_ssize_t i = 0; list && i < n; ++i) {
    if (Py_IS_TYPE(args[i], &ProcessType)) {
      if (PyList_Append(list.get(), args[i]) < 0) list.reset();
      continue;
    }
    const Owned it(is_operation(args[i]) ? no_process(args[i], "") : iterator_of(args[i]));
    if (!it) {
      if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        no_process(args[i], "");
      }
      list.reset();
      break;
    }
    while (const Owned p{next_of(it.get())}) {
      const bool fine = Py_IS_TYPE(p.get(), &ProcessType);
      if (!fine) no_process(p.get(), " in an iterable of processes");
      if (!fine || PyList_Append(list.get(), p.get()) < 0) break;
    }
    if (PyErr_Occurred()) list.reset();
  }
  return list.release();
}

int init_process(PyObject* m) {
  static PyNumberMethods number{};
  number.nb_multiply = gated<process_times>;
  ProcessType.tp_as_number = &number;
  static PyAsyncMethods async{};
  async.am_await = gated<process_await>;
  ProcessType.tp_as_async = &async;
  ProcessType.tp_name = "weft.Process";
  ProcessType.tp_doc =
      "A process. The call of a function that is decorated with @process makes one; run, Parallel, "
      "Sequence, Spawn or a Group starts it.";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  ProcessType.tp_basicsize = offsetof(ProcessObject, held);
#pragma GCC diagnostic pop
  ProcessType.tp_itemsize = sizeof(EndObject*);
  ProcessType.tp_flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ProcessType.tp_dealloc = gated<process_dealloc>;
  ProcessType.tp_traverse = process_traverse;
  ProcessType.tp_clear = gated<process_clear>;
  ProcessType.tp_repr = gated<process_repr>;
  ProcessType.tp_methods = process_methods;
  ProcessType.tp_getset = process_getset;
  if (PyType_Ready(&ProcessType) < 0) return -1;
  return add_type(m, "Process", &ProcessType);
}

}  // namespace weft::py
