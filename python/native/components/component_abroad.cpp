// Operations of components at channels with ends in other OS processes (rule 16.7): those of a
// Python thread, around a conversion.
//
//   read │ select ─► the thread's own operation ─► an object ──to_native()──► the component
//   write ──from_native()──► an object ─► the thread's own operation, which packs it
//
// A round trip to another OS process costs more than the interpreter's lock and a pickle, so
// nothing is saved here by going around them.
//
// Invariant: all of it is done with the GIL, which the operations give up while they wait. What
// they raise becomes a status.
#include "components/component_calls.hpp"
#include "interpreter/aside.hpp"
#include "wire/packed.hpp"

namespace weft::py {

namespace {

using Call = NativeCall;
PyObject* object(EndObject* e) noexcept { return reinterpret_cast<PyObject*>(e); }

// The exception that is set, as a status; what is none of the model's is told as bad use.
weft_status failed(Call& c) {
  PyObject* const e = take_exception();
  if (!e) return refuse(c, "an operation failed and did not say why");
  weft_status s = WEFT_BAD_USE;
  const std::pair<PyObject*, weft_status> known[] = {{errors.Cancelled, WEFT_CANCELLED},
                                                     {errors.Retired, WEFT_RETIRED},
                                                     {errors.Poisoned, WEFT_POISONED},
                                                     {errors.PeerDied, WEFT_DIED}};
  for (const auto& [type, status] : known)
    if (PyErr_GivenExceptionMatches(e, type))
      s = status == WEFT_CANCELLED ? status : calls::met(c, status);
  if (s == WEFT_BAD_USE) {
    PyObject* const text =
        PyErr_GivenExceptionMatches(e, errors.BadUse) ? PyObject_Str(e) : PyObject_Repr(e);
    const char* const t = text ? PyUnicode_AsUTF8(text) : nullptr;
    refuse(c, t ? t : "an operation failed");
    PyErr_Clear();
    Py_XDECREF(text);
  }
  Py_DECREF(e);
  return s;
}

// Takes `o` over.
weft_status converted(Call& c, std::uint32_t end, PyObject* o, weft_value* to) {
  const int r = o ? value_native(c.ends[end]->channel, c.types[end], o, *to) : -1;
  Py_XDECREF(o);
  return r == 0 ? WEFT_OK : failed(c);
}

// --- select --------------------------------------------------------------------------------------

PyObject* builtin(const char* name) noexcept {  // of weft._native
  static PyObject* module = nullptr;
  if (!module) module = PyImport_ImportModule("weft._native");
  return module ? PyObject_GetAttrString(module, name) : nullptr;
}
PyObject* call(const char* name, PyObject* args, PyObject* keywords = nullptr) {  // takes both over
  PyObject* const f = args ? builtin(name) : nullptr;
  PyObject* const r = f ? PyObject_Call(f, args, keywords) : nullptr;
  Py_XDECREF(f);
  Py_XDECREF(args);
  Py_XDECREF(keywords);
  return r;
}

// `from`, whose arrays went into `o`, is the component's again.
void restore(const NativeType* t, PyObject* o, weft_value& from) noexcept {
  drop_native(from);
  from = {0, nullptr};
  if (o && to_native(t, o, from) < 0) PyErr_Clear();  // there is no memory: it is empty
}

// A guard of the component as Python's; null with an exception. `value` (owned): what an output
// writes, which has its arrays.
PyObject* guard_of(Call& c, weft_guard& from, PyObject*& value) {
  PyObject* g = nullptr;
  PyObject* const loud = from.ends ? Py_BuildValue("{ss}", "ended", "raise") : nullptr;
  if (from.kind == WEFT_INPUT) {
    g = call("Input", PyTuple_Pack(1, object(c.ends[from.end])), loud);
  } else if (from.kind == WEFT_OUTPUT) {
    value = to_python(c.types[from.end], from.value);
    g = call("Output", value ? Py_BuildValue("(OO)", object(c.ends[from.end]), value) : nullptr,
             loud);
  } else {
    Py_XDECREF(loud);
    if (from.kind == WEFT_SYNC) g = Py_NewRef(reinterpret_cast<PyObject*>(c.barriers[from.end]));
    if (from.kind == WEFT_SKIP) g = call("skip", PyTuple_New(0));
    // It is not before its time, whatever is lost of the nanoseconds.
    if (from.kind == WEFT_TIMER && from.deadline == prim::forever)
      g = call("at", Py_BuildValue("(d)", HUGE_VAL));
    if (from.kind == WEFT_TIMER && from.deadline != prim::forever)
      g = call("at", Py_BuildValue("(d)", std::nextafter(static_cast<double>(from.deadline) * 1e-9,
                                                         HUGE_VAL)));
  }
  if (!g || from.on) return g;
  PyObject* const off = PyObject_CallMethod(g, "when", "O", Py_False);
  Py_DECREF(g);
  return off;
}

}  // namespace

weft_status taken_abroad(Call& c, std::uint32_t end, PyObject* o, weft_value* to) {
  const With lock;
  return converted(c, end, unpack(c.ends[end]->channel, o), to);
}

void unsent_abroad(Call& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept {
  const With lock;
  PyObject* const value = unsent(o);
  *from = {0, nullptr};  // it was taken over
  restore(c.types[end], value, *from);
  Py_XDECREF(value);
}

weft_status read_abroad(Call& c, std::uint32_t end, weft_value* to) {
  const With lock;
  PyObject* const o = operation_read(object(c.ends[end]), false);
  return o ? converted(c, end, o, to) : failed(c);
}

weft_status write_abroad(Call& c, std::uint32_t end, weft_value* from) {
  const With lock;
  const NativeType* const t = c.types[end];
  PyObject* const o = to_python(t, *from);  // its arrays are the object's from now on
  PyObject* const done = o ? operation_write(object(c.ends[end]), o) : nullptr;
  const weft_status s = done ? WEFT_OK : failed(c);
  if (done)
    drop_native(*from);
  else if (o)
    restore(t, o, *from);
  Py_XDECREF(done);
  Py_XDECREF(o);
  release_lent();
  return s;
}

weft_status select_abroad(Call& c, weft_guard* guards, std::uint32_t n, bool fair,
                          std::uint32_t* chosen) {
  const With lock;
  *chosen = n;
  PyObject* all = PyTuple_New(n);
  std::vector<PyObject*> values(n);  // owned
  // a block: else it is in line, empty, or an array that another guard has
  std::vector<bool> had(n);
  for (std::uint32_t i = 0; all && i < n; ++i) {
    had[i] = guards[i].value.block != nullptr;
    PyObject* const g = guard_of(c, guards[i], values[i]);
    if (g)
      PyTuple_SET_ITEM(all, i, g);
    else
      Py_CLEAR(all);
  }
  const auto give_back = [&](std::uint32_t written) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (values[i] && i != written && had[i])
        restore(c.types[guards[i].end], values[i], guards[i].value);
      if (values[i] && i == written) drop_native(guards[i].value), guards[i].value = {0, nullptr};
      Py_XDECREF(values[i]);
    }
    release_lent();
  };
  PyObject* const got =
      all ? call("select", all, Py_BuildValue("{ss}", "mode", fair ? "fair" : "priority"))
          : nullptr;
  if (!got) {
    PyObject* const e = take_exception();
    PyObject* const guard = PyObject_GetAttrString(e, "guard");  // of a channel that has ended
    if (guard && PyLong_Check(guard))
      *chosen = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(guard));
    PyErr_Clear();
    Py_XDECREF(guard);
    give_back(n);
    restore_exception(e);
    return failed(c);
  }
  *chosen = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(got, 0)));
  weft_guard& g = guards[*chosen];
  weft_status s = WEFT_OK;
  if (g.kind == WEFT_INPUT) s = converted(c, g.end, Py_NewRef(PyTuple_GET_ITEM(got, 1)), &g.value);
  give_back(*chosen);
  Py_DECREF(got);
  return s;
}

}  // namespace weft::py
