// The guards that Python code sees: Input, Output, after, at, skip, readable, writable, and a Barrier
// or a Timer with a precondition. A choice reads the guards when it is made (Choice::fill). A guard
// never changes.
#include "choice/guard.hpp"

#include "choice/select.hpp"
#include "choice/time.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "processes/loops.hpp"
#include "processes/process.hpp"

namespace weft::py {

namespace {

GuardObject* new_guard(PyTypeObject* type, GuardKind kind) {
  GuardObject* g = PyObject_GC_New(GuardObject, type);
  if (!g) return nullptr;
  g->target = g->value = g->make = nullptr;
  g->ns = 0;
  g->kind = kind;
  g->enabled = true;
  g->loud = false;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(g));
  return g;
}
int guard_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(guard_of(o)->target);
  Py_VISIT(guard_of(o)->value);
  Py_VISIT(guard_of(o)->make);
  return 0;
}
int guard_clear(PyObject* o) {
  Py_CLEAR(guard_of(o)->value);
  Py_CLEAR(guard_of(o)->make);
  return 0;
}
void guard_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  guard_clear(o);
  Py_CLEAR(guard_of(o)->target);
  PyObject_GC_Del(o);
}
PyObject* input_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"reader", "ended", nullptr};
  PyObject *end, *ended = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$O:Input", const_cast<char**>(names), &end, &ended))
    return nullptr;
  if (!is_reader(end))
    return bad_use("Input(%R): an input guard needs a reader, channel.reader()", end);
  const int loud = loud_by(ended, "Input");
  GuardObject* g = loud < 0 ? nullptr : new_guard(type, GuardKind::input);
  if (!g) return nullptr;
  g->target = Py_NewRef(end);
  g->loud = loud != 0;
  return reinterpret_cast<PyObject*>(g);
}
PyObject* output_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"writer", "value", "make", "ended", nullptr};
  PyObject *end, *value = nullptr, *make = nullptr, *ended = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O$OO:Output", const_cast<char**>(names), &end,
                                   &value, &make, &ended))
    return nullptr;
  if (make == Py_None) make = nullptr;
  if (!is_writer(end))
    return bad_use("Output(%R, ...): an output guard needs a writer, channel.writer()", end);
  if ((value != nullptr) == (make != nullptr))
    return bad_use("Output: give either the value to write or make=, a function that makes it");
  if (make && !PyCallable_Check(make))
    return bad_use("Output: make must be callable, not %R", make);
  const int loud = loud_by(ended, "Output");
  GuardObject* g = loud < 0 ? nullptr : new_guard(type, GuardKind::output);
  if (!g) return nullptr;
  g->loud = loud != 0;
  g->target = Py_NewRef(end);
  g->value = Py_XNewRef(value);
  g->make = Py_XNewRef(make);
  return reinterpret_cast<PyObject*>(g);
}
PyObject* guard_when(PyObject* o, PyObject* condition) {
  const int on = PyObject_IsTrue(condition);
  if (on < 0) return nullptr;
  const GuardObject* from = guard_of(o);
  GuardObject* g = new_guard(Py_TYPE(o), from->kind);
  if (!g) return nullptr;
  g->target = Py_XNewRef(from->target);
  g->value = Py_XNewRef(from->value);
  g->make = Py_XNewRef(from->make);
  g->ns = from->ns;
  g->enabled = on != 0;
  g->loud = from->loud;
  return reinterpret_cast<PyObject*>(g);
}
PyMethodDef guard_methods[] = {
    {"when", method(gated<with_keyword<"when", "condition", guard_when>>), kKeywords,
     "Returns this guard with a precondition: it takes part in a select only if `condition` is "
     "true."},
    {}};

template <GuardKind K>
PyObject* f_timed(PyObject*, PyObject* seconds) {
  const auto ns = to_ns(seconds, K == GuardKind::after ? "after" : "at");
  if (!ns) return nullptr;
  GuardObject* g = new_guard(&GuardType, K);
  if (g) g->ns = *ns;
  return reinterpret_cast<PyObject*>(g);
}
PyObject* f_skip(PyObject*, PyObject*) {
  return reinterpret_cast<PyObject*>(new_guard(&GuardType, GuardKind::skip));
}
template <GuardKind K>
PyObject* f_ready(PyObject*, PyObject* file) {
  const int fd = PyObject_AsFileDescriptor(file);
  GuardObject* g = fd < 0 ? nullptr : new_guard(&ReadyType, K);
  if (!g) return nullptr;
  g->target =
      Py_NewRef(file);  // otherwise a file or a socket could be collected, and closed, meanwhile
  g->ns = fd;
  return reinterpret_cast<PyObject*>(g);
}

PyMethodDef guard_functions[] = {
    {"after", method(gated<with_keyword<"after", "seconds", f_timed<GuardKind::after>>>), kKeywords,
     "Returns a guard that is ready `seconds` after the beginning of the select. Raises BadUse for "
     "nan."},
    {"at", method(gated<with_keyword<"at", "time", f_timed<GuardKind::at>>>), kKeywords,
     "Returns a guard that is ready at `time`, in seconds of now(). Raises BadUse for nan."},
    {"skip", gated<f_skip>, METH_NOARGS, "Returns a guard that is always ready (rule 5.7)."},
    {"readable", gated<f_ready<GuardKind::readable>>, METH_O,
     "readable(file): returns a guard that is ready when a read of `file` (a descriptor's number, "
     "or an object with fileno(), which the guard keeps alive) would not block: there is something "
     "to read, the end of the stream or an error, or the descriptor is not open. The guard moves "
     "no byte. It is an operation too, which a coroutine awaits, and a thread or greenlet begins "
     "by wait() (rule 18.3; Linux).\n\n"
     "Raises TypeError, ValueError or OverflowError if `file` has no descriptor. The select raises "
     "BadUse where nothing says when the descriptor is ready (rule 18.7), and OSError if the "
     "system has no descriptor left to wait with."},
    {"writable", gated<f_ready<GuardKind::writable>>, METH_O,
     "writable(file): returns a guard that is ready when a write to `file` would not block: there "
     "is room for at least one byte, or no program reads any more. Otherwise the same as "
     "readable()."},
    {}};

}  // namespace

PyTypeObject GuardType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject EndType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject InputType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject OutputType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ReadyType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* end_guard(ProcessObject* p) {
  GuardObject* g = new_guard(&EndType, GuardKind::end);
  if (g) g->target = Py_NewRef(reinterpret_cast<PyObject*>(p));
  return reinterpret_cast<PyObject*>(g);
}

int loud_by(PyObject* ended, const char* verb) {
  if (!ended) return 0;
  const char* s = PyUnicode_Check(ended) ? PyUnicode_AsUTF8(ended) : "";
  const std::string_view word = s ? s : "";
  if (word == "raise") return 1;
  if (word == "silent") return 0;
  if (!PyErr_Occurred())
    bad_use(
        "%s: ended must be 'raise' (Retired is raised as soon as the channel has retired) or "
        "'silent' "
        "(the default), not %R",
        verb, ended);
  return -1;
}

PyObject* guard_on(PyObject* target, GuardKind kind, bool on) {
  GuardObject* g = new_guard(&GuardType, kind);
  if (!g) return nullptr;
  g->target = Py_NewRef(target);
  g->enabled = on;
  return reinterpret_cast<PyObject*>(g);
}

// --- a process's end -----------------------------------------------------------------------------

PyObject* end_wait(PyObject* o, PyObject*) {
  run_deferred();
  return end_operation(o);
}
// Raises BadUse outside coroutine processes and tasks: no other code could run during an `await`.
bool may_await(const char* what) {
  if (current_coroutine() || in_task()) return true;
  bad_use("await %s outside a process of weft.coroutines: call wait(), or await it in a process",
          what);
  return false;
}
PyObject* end_await(PyObject* o) { return may_await("ended()") ? end_wait(o, nullptr) : nullptr; }
PyMethodDef end_methods[] = {
    {"wait", gated<end_wait>, METH_NOARGS,
     "Waits until the process has ended, and returns Ended(how, result, error). Raises Cancelled, "
     "BadUse."},
    {}};
PyAsyncMethods end_async{};

// --- a descriptor that is ready ------------------------------------------------------------------

PyObject* ready_wait(PyObject* o, PyObject*) {
  run_deferred();
  return ready_operation(o, guard_of(o)->kind == GuardKind::writable);
}
PyObject* ready_await(PyObject* o) {
  const bool writes = guard_of(o)->kind == GuardKind::writable;
  return may_await(writes ? "writable()" : "readable()") ? ready_wait(o, nullptr) : nullptr;
}
PyMethodDef ready_methods[] = {
    {"wait", gated<ready_wait>, METH_NOARGS,
     "Waits until the descriptor is ready. Raises Cancelled, OSError, BadUse."},
    {}};
PyAsyncMethods ready_async{};

int init_guard(PyObject* m) {
  for (PyTypeObject* t : {&GuardType, &EndType, &InputType, &OutputType, &ReadyType}) {
    t->tp_basicsize = sizeof(GuardObject);
    t->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
    t->tp_dealloc = gated<guard_dealloc>;
    t->tp_traverse = guard_traverse;
    t->tp_clear = gated<guard_clear>;
    if (t != &GuardType) t->tp_base = &GuardType;
  }
  GuardType.tp_name = "weft.Guard";
  GuardType.tp_doc =
      "A guard: something that a select may choose, such as an input, an output, a time, skip, a "
      "barrier, a timer, the end of a process or a descriptor (rule 5.2).";
  GuardType.tp_methods = guard_methods;
  GuardType.tp_flags |= Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  EndType.tp_name = "weft.ProcessEnd";
  EndType.tp_doc =
      "The end of a process, from process.ended(): a guard, and an operation, which a coroutine "
      "awaits, and a thread or greenlet begins by wait() (rule 7.11).";
  EndType.tp_flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
  EndType.tp_methods = end_methods;
  end_async.am_await = gated<end_await>;
  EndType.tp_as_async = &end_async;
  ReadyType.tp_name = "weft.Ready";
  ReadyType.tp_doc =
      "A descriptor that becomes ready, from readable(file) or writable(file): a guard, and an "
      "operation, which a coroutine awaits, and a thread or greenlet begins by wait() (rule 18.3).";
  ReadyType.tp_flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ReadyType.tp_methods = ready_methods;
  ready_async.am_await = gated<ready_await>;
  ReadyType.tp_as_async = &ready_async;
  InputType.tp_name = "weft.Input";
  InputType.tp_doc =
      "Input(reader, *, ended='silent'): an input guard. With ended='raise' the select raises "
      "Retired as soon as the channel of this guard has retired (rule 5.6).";
  InputType.tp_new = gated<input_new>;
  OutputType.tp_name = "weft.Output";
  OutputType.tp_doc =
      "Output(writer, value) or Output(writer, make=function), *, ended='silent': an output guard. "
      "`make` makes the value, once the guard is chosen (rule 5.8). `ended` is as for Input.";
  OutputType.tp_new = gated<output_new>;
  for (PyTypeObject* t : {&GuardType, &EndType, &InputType, &OutputType, &ReadyType})
    if (PyType_Ready(t) < 0) return -1;
  if (add_type(m, "Guard", &GuardType) < 0 || add_type(m, "ProcessEnd", &EndType) < 0 ||
      add_type(m, "Input", &InputType) < 0 || add_type(m, "Output", &OutputType) < 0 ||
      add_type(m, "Ready", &ReadyType) < 0)
    return -1;
  return PyModule_AddFunctions(m, guard_functions);
}

}  // namespace weft::py
