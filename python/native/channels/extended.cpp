// The block of an extended read (rule 1.6): the writer waits until the block is left.
//
//   made ──__aenter__ awaited, __enter__: an operation of type `extended`──► entering
//     │      └──the channel has ended, withdrawn──► made
//     │  entering ──conclude() (operation.cpp)──► inside ──leave_block()──► made
//     └──collected, never entered: RuntimeWarning
//
// Invariant: inside the block, `partner` is the writer that is held, or null if the value came from
// a buffer; at a far end, `number` is the number by which the home knows the read.
#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "channels/operation.hpp"
#include "channels/operations.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "processes/loops.hpp"
#include "watching/observe.hpp"
#include "wire/far.hpp"

namespace weft::py {

int check_free(ExtendedObject* x) {
  if (check_end(x->end, "extended read") < 0) return -1;
  if (!x->entering && !x->inside) return 0;
  bad_use("this extended read was already entered: make another, reader.extended()");
  return -1;
}

void enter_block(ExtendedObject* x, ProcessBase& p) noexcept {
  p.set(core::NodeFlags::extended | (x->keeps ? core::NodeFlags::kept : 0));
  x->entering = true;
}

void begin_block(ExtendedObject* x, ProcessBase& p) noexcept {
  if (is_far(x->end->channel))
    x->number = side_of(x->end->channel).happened(p);
  else
    x->partner = p.partner();
  x->inside = true;
}

namespace {

void end_block(ExtendedObject* x, bool back) noexcept {
  if (!x->inside) return;
  x->inside = false;
  ChannelObject* const c = x->end->channel;
  if (!of_this_fork(c)) return;  // the block belongs to the parent of the fork
  if (is_far(c)) return side_of(c).held_end(x->number, back);
  core::Node n;
  n.hold(x->partner);
  c->core.end_extended(n);
}

}  // namespace

void leave_block(ExtendedObject* x, bool back) noexcept { end_block(x, back && x->keeps); }

namespace {

// Returns whether a MemoryError ends this OS process (rule 7.17). If so, the value of the block
// returns to the channel, as after any other death.
bool limited(const ExtendedObject* x) noexcept {
  const ChannelObject* const c = x->end->channel;
  return is_far(c) && (side_of(c).loops & 4) != 0;
}

void extended_dealloc(PyObject* o) {
  if (!ext(o)->entered) [[unlikely]] {
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "extended read on channel %s was never entered: write `async with` before "
                         "it (`with` where operations block)",
                         channel_name(ext(o)->end->channel).c_str()) < 0)
      PyErr_WriteUnraisable(Py_None);
  }
  // A loop of a supervised process drops its block when the loop is left. If an exception is set at
  // that moment, that exception has left the loop.
  const bool died =
      PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError) && limited(ext(o));
  end_block(ext(o), ext(o)->keeps || died);
  Py_DECREF(reinterpret_cast<PyObject*>(ext(o)->end));
  PyObject_Free(o);
}
PyObject* extended_await(PyObject* o) {
  ext(o)->entered = true;  // the error below reports the misuse, so no warning must follow
  return bad_use("an extended read is a block: write `async with reader.extended() as value:`");
}
PyObject* extended_aenter(PyObject* o, PyObject*) {
  ext(o)->entered = true;
  if (!current_coroutine() && !in_task())
    return bad_use("async with over an extended read is for coroutine processes: use with");
  return new_operation(OpType_::extended, o);
}
// Returns whether the value returns to the channel, from the arguments of __exit__. With
// redeliver=True it does so if any exception has left the block; otherwise only if a MemoryError
// that ends this OS process has left the block.
bool goes_back(const ExtendedObject* x, PyObject* args) noexcept {
  PyObject* const raised = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
  if (raised == Py_None) return false;
  return x->keeps || (limited(x) && PyErr_GivenExceptionMatches(raised, PyExc_MemoryError) != 0);
}

PyObject* extended_aexit(PyObject* o, PyObject* args) {
  end_block(ext(o), goes_back(ext(o), args));
  return operation_ready(Py_NewRef(Py_None));
}
PyObject* enter_extended(PyObject* o) {
  ext(o)->entered = true;
  if (current_coroutine())
    return bad_use("with over an extended read blocks: in a coroutine process use `async with`");
  run_deferred();
  if (check_free(ext(o)) < 0) return nullptr;
  return block_in(OpType_::extended, o, nullptr);
}
PyObject* extended_enter(PyObject* o, PyObject*) {
  return observed("extended read", reinterpret_cast<PyObject*>(ext(o)->end), nullptr,
                  [&] { return enter_extended(o); });
}
PyObject* extended_exit(PyObject* o, PyObject* args) {
  end_block(ext(o), goes_back(ext(o), args));
  run_deferred();
  Py_RETURN_NONE;
}
PyMethodDef extended_methods[] = {{"__aenter__", gated<extended_aenter>, METH_NOARGS, nullptr},
                                  {"__aexit__", gated<extended_aexit>, METH_VARARGS, nullptr},
                                  {"__enter__", gated<extended_enter>, METH_NOARGS, nullptr},
                                  {"__exit__", gated<extended_exit>, METH_VARARGS, nullptr},
                                  {}};

}  // namespace

PyTypeObject ExtendedType{PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* extended_new(PyObject* end, bool keeps) {
  run_deferred();
  auto* const e = reinterpret_cast<EndObject*>(end);
  if (check_end(e, "extended read") < 0) return nullptr;
  if (keeps && !is_far(e->channel))
    return bad_use(
        "extended read on channel %s: redeliver=True is for a reader end in another OS process, "
        "which may die alone; leave it out here",
        channel_name(e->channel).c_str());
  ExtendedObject* x = PyObject_New(ExtendedObject, &ExtendedType);
  if (!x) return nullptr;
  x->end = reinterpret_cast<EndObject*>(Py_NewRef(end));
  x->number = 0;
  x->partner = nullptr;
  x->entering = x->inside = x->entered = false;
  x->keeps = keeps;
  return reinterpret_cast<PyObject*>(x);
}

// Implements iter(reader) and aiter(reader). The function is not gated, since in a supervised
// process the loop is Python code.
PyObject* reader_iter(PyObject* o) {
  const ChannelObject* const c = reinterpret_cast<EndObject*>(o)->channel;
  const int loops = is_far(c) ? side_of(c).loops : 0;
  if (loops == 0) [[likely]]
    return Py_NewRef(o);
  const Owned module(PyImport_ImportModule("weft._hosts.loops"));
  return module ? PyObject_CallMethod(module.get(), "over", "Oi", o, loops) : nullptr;
}

int init_extended(PyObject*) {
  ExtendedType.tp_name = "weft.Extended";
  ExtendedType.tp_basicsize = sizeof(ExtendedObject);
  ExtendedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ExtendedType.tp_dealloc = gated<extended_dealloc>;
  ExtendedType.tp_methods = extended_methods;
  static PyAsyncMethods async{};
  async.am_await = gated<extended_await>;
  ExtendedType.tp_as_async = &async;
  return PyType_Ready(&ExtendedType);
}

}  // namespace weft::py
