// weft.Outside: while the token is open, something outside may act on a run (rule 10.3).
//
//   Outside() ──► open ──close(), the end of its block──► closed
//                  └────dropped──► pending (pending.cpp) ──► closed
//
// Invariant: a token that was made before a fork counts as closed in the child, where the registry
// of tokens has been emptied. The child does not free its copy of the C++ token.
#include "interpreter/outside.hpp"

#include <utility>

#include "channels/fork.hpp"
#include "checking/points.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "rounds/report.hpp"

namespace weft::py {

namespace {

struct OutsideObject {
  PyObject_HEAD;
  weft::Outside* token;  // owned; null once the token is closed
  std::uint32_t generation;
  bool due;
};
OutsideObject* self_of(PyObject* o) noexcept { return reinterpret_cast<OutsideObject*>(o); }
bool is_open(const OutsideObject* t) noexcept { return t->token && t->generation == generation; }

OpenTokens tokens{};

PyObject* outside_new(PyTypeObject* type, PyObject* args, PyObject* kw) {
  static const char* names[] = {"due", nullptr};
  int due = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|$p:Outside", const_cast<char**>(names), &due))
    return nullptr;
  if (checking)
    return bad_use(
        "weft.Outside stands for something outside that will wake the network, and in a check "
        "nothing is outside: leave it out, or put a process in the place of what it stands for");
  PyObject* const o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  OutsideObject* const t = self_of(o);
  t->generation = generation;
  t->due = due != 0;
  t->token = new weft::Outside(t->due);
  ++(t->due ? tokens.due : tokens.plain);
  return o;
}
void close(OutsideObject* t, void (*exit)(weft::Outside*) noexcept) noexcept {
  if (!is_open(t)) return;
  --(t->due ? tokens.due : tokens.plain);
  exit(std::exchange(t->token, nullptr));
}
void outside_dealloc(PyObject* o) {
  // The exit is deferred, because the collector might run under locks of the extension.
  close(self_of(o), &defer_exit);
  Py_TYPE(o)->tp_free(o);
}
PyObject* outside_close(PyObject* o, PyObject*) {
  run_deferred();
  close(self_of(o), &exit_now);
  Py_RETURN_NONE;
}
PyObject* outside_enter(PyObject* o, PyObject*) {
  if (!is_open(self_of(o)))
    return bad_use(
        "%R: it has been closed, or was made before a fork and this is the child: make another", o);
  return Py_NewRef(o);
}
PyObject* outside_exit(PyObject* o, PyObject*) { return outside_close(o, nullptr); }
PyObject* outside_repr(PyObject* o) {
  const OutsideObject* const t = self_of(o);
  return PyUnicode_FromFormat("<Outside%s%s>", t->due ? ", due" : "", is_open(t) ? "" : ", closed");
}
PyObject* outside_due(PyObject* o, void*) { return PyBool_FromLong(self_of(o)->due); }
PyObject* outside_closed(PyObject* o, void*) { return PyBool_FromLong(!is_open(self_of(o))); }
PyObject* outside_no_copy(PyObject* o, PyObject*) {
  return bad_use(
      "%R: it can be neither copied nor sent: make one with Outside() in the OS process in which "
      "something acts that Weft does not see",
      o);
}

PyMethodDef outside_methods[] = {
    {"close", gated<outside_close>, METH_NOARGS,
     "Closes the token: what it stands for can no longer act. A second call does nothing."},
    {"__enter__", gated<outside_enter>, METH_NOARGS,
     "Returns the token. Raises BadUse if the token is closed."},
    {"__exit__", gated<outside_exit>, METH_VARARGS, "Closes the token."},
    {"__reduce_ex__", gated<outside_no_copy>, METH_O, nullptr},
    {}};
PyGetSetDef outside_getset[] = {
    {"due", gated<outside_due>, nullptr,
     "Whether what the token stands for is meant to take its time.", nullptr},
    {"closed", gated<outside_closed>, nullptr, "Whether the token is closed.", nullptr},
    {}};
// _open_tokens(): returns the number of open tokens that are not due.
PyObject* f_open_tokens(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(tokens.plain); }
PyMethodDef outside_functions[] = {{"_open_tokens", gated<f_open_tokens>, METH_NOARGS, nullptr},
                                   {}};
PyTypeObject OutsideType{PyVarObject_HEAD_INIT(nullptr, 0)};

}  // namespace

const OpenTokens& open_tokens() noexcept { return tokens; }
void forget_outside() noexcept {
  tokens = {};
  forget_exits();
}
void exit_now(weft::Outside* owned) noexcept {
  delete owned;
  look_again_in_loops();
}

int init_outside(PyObject* m) {
  OutsideType.tp_name = "weft.Outside";
  OutsideType.tp_doc =
      "Outside(*, due=False): a token. As long as the token is open, something that Weft does not "
      "see may act: the thread of a C library that calls back, or a device. So no run concludes "
      "that it is deadlocked, and no virtual clock jumps. due=True: what acts is meant to take its "
      "time, so no standstill is reported. The token is closed by close(), at the end of its block "
      "(with Outside(): …), or when it is dropped.";
  OutsideType.tp_basicsize = sizeof(OutsideObject);
  OutsideType.tp_flags = Py_TPFLAGS_DEFAULT;
  OutsideType.tp_new = gated<outside_new>;
  OutsideType.tp_dealloc = gated<outside_dealloc>;
  OutsideType.tp_repr = gated<outside_repr>;
  OutsideType.tp_methods = outside_methods;
  OutsideType.tp_getset = outside_getset;
  if (PyType_Ready(&OutsideType) < 0 || add_type(m, "Outside", &OutsideType) < 0) return -1;
  return PyModule_AddFunctions(m, outside_functions);
}

}  // namespace weft::py
