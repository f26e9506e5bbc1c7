// Operations of components at channels with ends in other OS processes (rule 16.7): the operations
// of a Python thread, with a conversion around them.
//
//   read │ select ─► the thread's own operation ─► an object ──to_native()──► the component
//   write ──from_native()──► an object ─► the thread's own operation, which packs it
//
// A round trip to another OS process costs more than the interpreter's lock and a pickle, so
// avoiding those two would save little.
//
// Invariant: all of this happens with the GIL, which the operations release while they wait. An
// exception that they raise becomes a status.
#include "channels/operations.hpp"
#include "components/component.hpp"
#include "components/component_calls.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "values/cells.hpp"
#include "values/native_types.hpp"
#include "wire/values.hpp"

namespace weft::py {

namespace {

using Call = NativeCall;
PyObject* object(EndObject* e) noexcept { return reinterpret_cast<PyObject*>(e); }

// Turns the exception that is set into a status. An exception that is not one of Weft's counts as
// bad use.
weft_status failed(Call& c) {
  const Owned e(take_exception());
  if (!e) return refuse(c, "an operation failed and did not say why");
  weft_status s = WEFT_BAD_USE;
  const std::pair<PyObject*, weft_status> known[] = {{errors.Cancelled, WEFT_CANCELLED},
                                                     {errors.Retired, WEFT_RETIRED},
                                                     {errors.Poisoned, WEFT_POISONED},
                                                     {errors.PeerDied, WEFT_DIED}};
  for (const auto& [type, status] : known)
    if (PyErr_GivenExceptionMatches(e.get(), type))
      s = status == WEFT_CANCELLED ? status : calls::met(c, status);
  if (s == WEFT_BAD_USE) {
    const Owned text(PyErr_GivenExceptionMatches(e.get(), errors.BadUse) ? PyObject_Str(e.get())
                                                                         : PyObject_Repr(e.get()));
    const char* const t = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    refuse(c, t ? t : "an operation failed");
    PyErr_Clear();
  }
  return s;
}

// Converts `o` for the component, and takes ownership of it.
weft_status converted(Call& c, std::uint32_t end, PyObject* o, weft_value* to) {
  const Owned taken(o);
  const int r = o ? value_native(c.ends[end]->channel, c.types[end], o, *to) : -1;
  return r == 0 ? WEFT_OK : failed(c);
}

// --- select --------------------------------------------------------------------------------------

PyObject* builtin(const char* name) noexcept {  // a function of weft._native
  static PyObject* module = nullptr;
  if (!module) module = PyImport_ImportModule("weft._native");
  return module ? PyObject_GetAttrString(module, name) : nullptr;
}
// Calls the function. Takes ownership of both arguments.
PyObject* call(const char* name, PyObject* args, PyObject* keywords = nullptr) {
  const Owned given(args), by_name(keywords);
  const Owned f(args ? builtin(name) : nullptr);
  return f ? PyObject_Call(f.get(), args, keywords) : nullptr;
}

// Gives `from` back to the component. Until now the arrays of `from` belong to `o`.
void restore(const NativeType* t, PyObject* o, weft_value& from) noexcept {
  drop_native(from);
  from = {0, nullptr};
  if (o && to_native(t, o, from) < 0) PyErr_Clear();  // memory has run out: the value is empty
}

// Makes a Python guard from a guard of the component; null with an exception. Sets `value` to the
// object that an output writes, which then owns the arrays.
PyObject* guard_of(Call& c, weft_guard& from, Owned<>& value) {
  Owned<> g;
  Owned loud(from.ends ? Py_BuildValue("{ss}", "ended", "raise") : nullptr);
  if (from.kind == WEFT_INPUT) {
    g.reset(call("Input", PyTuple_Pack(1, object(c.ends[from.end])), loud.release()));
  } else if (from.kind == WEFT_OUTPUT) {
    value.reset(to_python(c.types[from.end], from.value));
    g.reset(call("Output",
                 value ? Py_BuildValue("(OO)", object(c.ends[from.end]), value.get()) : nullptr,
                 loud.release()));
  } else {
    if (from.kind == WEFT_SYNC)
      g.reset(Py_NewRef(reinterpret_cast<PyObject*>(c.barriers[from.end])));
    if (from.kind == WEFT_SKIP) g.reset(call("skip", PyTuple_New(0)));
    // Fractions of a nanosecond can be lost, but the guard never comes early.
    if (from.kind == WEFT_TIMER && from.deadline == prim::forever)
      g.reset(call("at", Py_BuildValue("(d)", HUGE_VAL)));
    if (from.kind == WEFT_TIMER && from.deadline != prim::forever)
      g.reset(call(
          "at", Py_BuildValue(
                    "(d)", std::nextafter(static_cast<double>(from.deadline) * 1e-9, HUGE_VAL))));
  }
  if (!g || from.on) return g.release();
  return PyObject_CallMethod(g.get(), "when", "O", Py_False);
}

}  // namespace

weft_status taken_abroad(Call& c, std::uint32_t end, PyObject* o, weft_value* to) {
  const With lock;
  return converted(c, end, unpack(c.ends[end]->channel, o), to);
}

void unsent_abroad(Call& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept {
  const With lock;
  const Owned value(unsent(o));
  *from = {0, nullptr};  // the object owns the value now
  restore(c.types[end], value.get(), *from);
}

weft_status read_abroad(Call& c, std::uint32_t end, weft_value* to) {
  const With lock;
  PyObject* const o = operation_read(object(c.ends[end]), false);
  return o ? converted(c, end, o, to) : failed(c);
}

weft_status write_abroad(Call& c, std::uint32_t end, weft_value* from) {
  const With lock;
  const NativeType* const t = c.types[end];
  const Owned o(to_python(t, *from));  // from here on the object owns the arrays
  const Owned done(o ? operation_write(object(c.ends[end]), o.get()) : nullptr);
  const weft_status s = done ? WEFT_OK : failed(c);
  if (done)
    drop_native(*from);
  else if (o)
    restore(t, o.get(), *from);
  release_lent();
  return s;
}

// Returns the index of the guard whose channel has ended, which the exception contains; `none` if
// the exception contains no index.
static std::uint32_t guard_that_ended(PyObject* e, std::uint32_t none) {
  const Owned guard(PyObject_GetAttrString(e, "guard"));
  if (guard && PyLong_Check(guard.get()))
    none = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(guard.get()));
  PyErr_Clear();
  return none;
}

weft_status select_abroad(Call& c, weft_guard* guards, std::uint32_t n, bool fair,
                          std::uint32_t* chosen) {
  const With lock;
  *chosen = n;
  Owned all(PyTuple_New(n));
  std::vector<Owned<>> values(n);
  // Records which values had a block. The block of value i belonged to guard i. A value without a
  // block is empty or stored in line, or its array belongs to another guard.
  std::vector<bool> had(n);
  for (std::uint32_t i = 0; all && i < n; ++i) {
    had[i] = guards[i].value.block != nullptr;
    PyObject* const g = guard_of(c, guards[i], values[i]);
    if (g)
      PyTuple_SET_ITEM(all.get(), i, g);
    else
      all.reset();
  }
  const auto give_back = [&](std::uint32_t written) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (values[i] && i != written && had[i])
        restore(c.types[guards[i].end], values[i].get(), guards[i].value);
      if (values[i] && i == written) drop_native(guards[i].value), guards[i].value = {0, nullptr};
      values[i].reset();
    }
    release_lent();
  };
  const Owned got(
      all ? call("select", all.release(), Py_BuildValue("{ss}", "mode", fair ? "fair" : "priority"))
          : nullptr);
  if (!got) {
    PyObject* const e = take_exception();
    *chosen = guard_that_ended(e, n);
    give_back(n);
    restore_exception(e);
    return failed(c);
  }
  *chosen = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(got.get(), 0)));
  weft_guard& g = guards[*chosen];
  weft_status s = WEFT_OK;
  if (g.kind == WEFT_INPUT)
    s = converted(c, g.end, Py_NewRef(PyTuple_GET_ITEM(got.get(), 1)), &g.value);
  give_back(*chosen);
  return s;
}

}  // namespace weft::py
