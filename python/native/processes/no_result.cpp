// Why a process has no result (rule 7.1): the record of how it ended, and the weft.NoResult that
// explains it.
//
//   end_process() ──quiet──► a Why in p->outcome ──the result is asked for: result_of()──► a NoResult in p->outcome
//                 ──a failure that is its watchers'──► a Why in its Watch ──result_of()──► a NoResult there
//
// Many processes end without a result, and the reason is rarely needed. Therefore only references
// are taken when a process ends. The texts are made when a program asks for the result.
//
// Invariant: a Why refers only to strings and to the code of a function; it never refers to an
// exception, a traceback, a frame or an end.
#include "processes/no_result.hpp"

#include <cstring>

#include "gate.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "processes/rare.hpp"
#include "weft/runtime/function_info.hpp"

namespace weft::py {

namespace {

struct WhyObject {
  PyObject_HEAD PyObject* above;  // a str: the path of the process that started this one
  const char* function;           // the name of its function, kept forever
  // The code in which the exception that ended the process was raised; or the place itself, as a
  // str; or null if the place is not known.
  PyObject* code;
  // A str; null if the process has failed and result_of() has not made the text yet.
  PyObject* reason;
  std::uint32_t index;  // ProcessBase::index plus one; 0 if the path has no index
  // The number of the instruction in that code. A negative number is the line, negated.
  int instruction;
  Ending how;
};
WhyObject* why(PyObject* o) noexcept { return reinterpret_cast<WhyObject*>(o); }

PyTypeObject WhyType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyObject* package = nullptr;  // a str: the directory of this package, with a separator at its end
PyObject* at_name;            // the string "_at"

// --- where the process ended ---------------------------------------------------------------------

// Returns whether this code belongs to the package itself, in a directory that begins with `_`.
// (weft.toolkit, the plug-and-play modules and the like do not count: their processes are treated
// like those of a program.)
bool is_ours(PyCodeObject* code) noexcept {
  Py_ssize_t n, m;
  const char* const folder = PyUnicode_AsUTF8AndSize(package, &m);
  const char* const file = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
  if (!file) PyErr_Clear();
  if (!file || n <= m || std::memcmp(file, folder, static_cast<std::size_t>(m)) != 0) return false;
  return file[m] == '_';
}

// Finds where `e` was raised: in the innermost code that does not belong to this package. If all of
// the code belongs to this package, the place is the one that `e._at` names, or else the innermost
// code.
void take_place(WhyObject* w, PyObject* e) {
  const Owned trace(PyException_GetTraceback(e));
  const PyTracebackObject* found = nullptr;
  const PyTracebackObject* last = nullptr;
  for (auto* t = reinterpret_cast<PyTracebackObject*>(trace.get()); t; t = t->tb_next) {
    const Owned code(PyFrame_GetCode(t->tb_frame));
    if (!is_ours(code.get())) found = t;
    last = t;
  }
  if (!found) {
    Owned said(PyObject_GetAttr(e, at_name));
    if (!said) PyErr_Clear();
    if (said && PyUnicode_CheckExact(said.get())) w->code = said.release();
    found = last;
  }
  if (found && !w->code) {
    w->code = reinterpret_cast<PyObject*>(PyFrame_GetCode(found->tb_frame));
    w->instruction = found->tb_lineno > 0 ? -found->tb_lineno : found->tb_lasti;
  }
}

PyObject* file_and_line(const char* file, int line) {
  const char* const slash = std::strrchr(file, '/');
  return PyUnicode_FromFormat("%s:%d", slash ? slash + 1 : file, line);
}

PyObject* why_where(PyObject* o, void*) {
  const WhyObject* w = why(o);
  if (!w->code) return PyUnicode_FromString("?");
  if (PyUnicode_Check(w->code)) return Py_NewRef(w->code);
  auto* const code = reinterpret_cast<PyCodeObject*>(w->code);
  const char* const file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  return file_and_line(file ? file : "?", w->instruction < 0
                                              ? -w->instruction
                                              : PyCode_Addr2Line(code, w->instruction));
}

// --- which process it was ------------------------------------------------------------------------

// Returns the path of the process that waits for the group; null if there is none. The last text is
// kept, since many processes of one group often end one after the other.
PyObject* path_above(runtime::Group& g) {
  static struct {
    std::uint32_t id = 0;
    const char* function = nullptr;
    PyObject* path = nullptr;
  } last;
  std::string text;
  bool same = false;
  g.run.still([&] {
    const ProcessBase* const owner = g.owner();
    if (!owner) return;
    same = last.path && owner->id == last.id && owner->function == last.function;
    if (same) return;
    text = runtime::path_while_still(*owner);
    last.id = owner->id;
    last.function = owner->function;
  });
  if (same) return Py_NewRef(last.path);
  if (text.empty()) return nullptr;
  Py_XSETREF(last.path, to_str(text));
  return Py_XNewRef(last.path);
}

PyObject* why_process(PyObject* o, void*) {
  const WhyObject* w = why(o);
  const char* const name = w->function ? w->function : "process";
  if (!w->above) return PyUnicode_FromString(name);
  return w->index == 0 ? PyUnicode_FromFormat("%U/%s", w->above, name)
                       : PyUnicode_FromFormat("%U/%s[%u]", w->above, name, w->index - 1);
}

// --- how and why ---------------------------------------------------------------------------------

PyObject* why_how(PyObject* o, void*) { return PyUnicode_FromString(name_of(why(o)->how)); }

PyObject* why_reason(PyObject* o, void*) {
  const WhyObject* w = why(o);
  return w->reason ? Py_NewRef(w->reason) : PyUnicode_FromString(name_of(w->how));
}

// Returns the part of an exception's text after the process's path at its beginning; null if the
// text does not begin with that path. (Only the last part of the path is compared, because an index
// might have been added to the path since.)
const char* after_path(const WhyObject* w, const char* text) noexcept {
  const char* const end = std::strstr(text, ": ");
  if (!end || !w->function) return nullptr;
  const char* name_end = end;
  if (end > text && end[-1] == ']')
    while (name_end > text && *name_end != '[') --name_end;
  const std::size_t n = std::strlen(w->function);
  const auto before = static_cast<std::size_t>(name_end - text);
  const bool its = before > n && name_end[-1 - static_cast<std::ptrdiff_t>(n)] == '/' &&
                   std::memcmp(name_end - n, w->function, n) == 0;
  return its ? end + 2 : nullptr;
}

// Returns the text of an exception, read without calling user code; null if that is not possible.
// The last text is kept and shared, since many processes often end one after the other at one
// channel.
PyObject* plain_text(const WhyObject* w, PyObject* e) {
  static PyObject* last = nullptr;
  PyObject* const args = reinterpret_cast<PyBaseExceptionObject*>(e)->args;
  const bool one = args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 1;
  PyObject* const text = one ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (!text || !PyUnicode_CheckExact(text)) return nullptr;
  const char* const s = PyUnicode_AsUTF8(text);
  const char* const rest = s ? after_path(w, s) : nullptr;
  if (!rest) return Py_NewRef(text);
  if (!last || std::strcmp(PyUnicode_AsUTF8(last), rest) != 0) {
    PyObject* const its = PyUnicode_FromString(rest);
    if (!its) return nullptr;
    Py_XSETREF(last, its);
  }
  return Py_NewRef(last);
}

// Returns the text of a failure: "ValueError: text". If its __str__ raises, the text is left out.
PyObject* failure_text(PyObject* e) {
  Owned<> text;
  {
    const OutsideGate beyond;
    text.reset(PyObject_Str(e));
  }
  if (!text) PyErr_Clear();
  const char* const dot = std::strrchr(Py_TYPE(e)->tp_name, '.');
  const char* const type = dot ? dot + 1 : Py_TYPE(e)->tp_name;
  return text && PyUnicode_GET_LENGTH(text.get()) > 0
             ? PyUnicode_FromFormat("%s: %U", type, text.get())
             : PyUnicode_FromString(type);
}

// --- the type ------------------------------------------------------------------------------------

// Pickles a NoResult as four strings.
PyObject* why_reduce(PyObject* o, PyObject*) {
  const Owned errors_module(PyImport_ImportModule("weft.errors"));
  PyObject* const type =
      errors_module ? PyObject_GetAttrString(errors_module.get(), "_Why") : nullptr;
  return type ? Py_BuildValue("N(NNNN)", type, why_process(o, nullptr), why_how(o, nullptr),
                              why_where(o, nullptr), why_reason(o, nullptr))
              : nullptr;
}
void why_dealloc(PyObject* o) {
  WhyObject* w = why(o);
  Py_XDECREF(w->above);
  Py_XDECREF(w->code);
  Py_XDECREF(w->reason);
  PyObject_Free(o);
}
PyMethodDef why_methods[] = {{"__reduce__", why_reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef why_getset[] = {{"process", why_process, nullptr, nullptr, nullptr},
                            {"how", why_how, nullptr, nullptr, nullptr},
                            {"where", why_where, nullptr, nullptr, nullptr},
                            {"reason", why_reason, nullptr, nullptr, nullptr},
                            {}};

PyObject* no_result(PyObject* why) { return PyObject_CallOneArg(errors.NoResult, why); }

}  // namespace

const char* name_of(Ending how) noexcept {
  static const char* const names[] = {"returned", "retired", "poisoned", "cancelled", "failed"};
  return names[static_cast<int>(how)];
}

PyObject* why_no_result(ProcessObject* p, ProcessBase& b, PyObject* left) noexcept {
  if (p->how == Ending::failed && !(p->watch() && p->watch()->watched)) return nullptr;
  WhyObject* w = PyObject_New(WhyObject, &WhyType);
  if (!w) {
    PyErr_Clear();
    return nullptr;
  }
  w->above = w->code = w->reason = nullptr;
  w->function = b.function;
  w->index = 0;
  w->instruction = 0;
  w->how = p->how;
  if (b.group) {
    w->above = path_above(*b.group);
    if (b.group->started(b.function) > 1) w->index = b.index + 1;
  }
  if (!left)
    w->reason = PyUnicode_FromString("it was never run");
  else if (p->how != Ending::failed)
    w->reason = plain_text(w, left);
  PyErr_Clear();
  if (p->native_code && b.about && b.about->file)
    w->code = file_and_line(b.about->file, static_cast<int>(b.line));
  else if (left)
    take_place(w, left);
  PyErr_Clear();
  return reinterpret_cast<PyObject*>(w);
}

PyObject* result_of(ProcessObject* p) {
  Watch* const watch = p->failed ? p->watch() : nullptr;
  if (p->failed && !watch) Py_RETURN_NONE;
  const auto its = [&] { return watch ? watch->why.get() : p->outcome; };
  if (!its()) Py_RETURN_NONE;
  if (!Py_IS_TYPE(its(), &WhyType)) return Py_NewRef(its());
  const Owned w = new_ref(its());
  if (!why(w.get())->reason && p->failed) why(w.get())->reason = failure_text(p->outcome);
  Owned r(no_result(w.get()));
  if (!r) return nullptr;
  // User code has made the text, and might have asked for the result meanwhile. Then the NoResult
  // exists already.
  if (!Py_IS_TYPE(its(), &WhyType)) return Py_NewRef(its());
  if (watch)
    watch->why = new_ref(r.get());
  else
    Py_SETREF(p->outcome, Py_NewRef(r.get()));
  return r.release();
}

PyObject* results_of(PyObject* list) {
  const Py_ssize_t n = PyList_GET_SIZE(list);
  Owned r(PyList_New(n));
  for (Py_ssize_t i = 0; r && i < n; ++i) {
    PyObject* const one = result_of(proc(PyList_GET_ITEM(list, i)));
    if (one)
      PyList_SET_ITEM(r.get(), i, one);
    else
      r.reset();
  }
  return r.release();
}

int init_no_result(PyObject*) {
  WhyType.tp_name = "weft._Why";
  WhyType.tp_basicsize = sizeof(WhyObject);
  WhyType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  WhyType.tp_dealloc = why_dealloc;
  WhyType.tp_methods = why_methods;
  WhyType.tp_getset = why_getset;
  if (PyType_Ready(&WhyType) < 0) return -1;
  const Owned module(PyImport_ImportModule("weft.errors"));
  if (!module) return -1;
  package = PyObject_GetAttrString(module.get(), "_FOLDER");
  at_name = PyUnicode_InternFromString("_at");
  return package && at_name ? 0 : -1;
}

}  // namespace weft::py
