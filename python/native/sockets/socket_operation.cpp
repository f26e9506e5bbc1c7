// The definitions of socket_operation.hpp.
#include "sockets/socket_operation.hpp"

#if defined(__linux__)
#include <new>
#include <string_view>
#include <system_error>

#include "choice/descriptors.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/returned.hpp"
#include "interpreter/unawaited.hpp"
#include "processes/asyncio.hpp"
#include "processes/awaited.hpp"
#include "processes/awaiting.hpp"
#include "processes/caller.hpp"
#include "processes/loops.hpp"
#include "processes/rare.hpp"
#include "processes/task_waiter.hpp"
#include "processes/ways.hpp"

namespace weft::py {

// Returns the message without C++ names, which are at its beginning or after the process's path.
static std::string plain(std::string what) {
  for (const std::string_view ours : {"weft::io: ", "weft::io::"})
    if (const std::size_t at = what.find(ours);
        at == 0 || (at >= 2 && at != what.npos && what.compare(at - 2, 2, ": ") == 0))
      return what.erase(at, ours.size());
  return what;
}

// Returns the class of errors of a look-up, socket.gaierror.
static PyObject* gaierror() noexcept {
  const Owned socket(PyImport_ImportModule("socket"));
  return socket ? PyObject_GetAttrString(socket.get(), "gaierror") : nullptr;
}

PyObject* raise_from_io() noexcept {
  try {
    throw;
  } catch (const std::system_error& e) {
    // OSError() makes an object of the class that belongs to the number: ConnectionResetError, …
    const Owned type(e.code().category() == io::look_up_category() ? gaierror()
                                                                   : Py_NewRef(PyExc_OSError));
    const Owned error(
        type ? PyObject_CallFunction(type.get(), "is", e.code().value(), plain(e.what()).c_str())
             : nullptr);
    if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const BadUse& e) {
    bad_use_of_cpp(plain(e.what()));
  } catch (const std::exception& e) {
    bad_use("%s", plain(e.what()).c_str());
  }
  return nullptr;
}

namespace {

struct SocketOpObject {
  PyObject_HEAD SocketWork* work;  // owned
  ProcessObject* process;          // the process, while a coroutine process waits
  TaskWaiter* task_waiter;         // null except while an attempt to await in a task is refused
  OpState state;
  bool awaited;

  const char* verb() const noexcept { return work->verb; }
  template <class W>
  PySendResult begin(W& way);
  template <class W>
  PySendResult go_on(W& way);
  bool is_mine() const noexcept { return task_waiter->is_mine(); }
  // A wake-up commits nothing: after it, the process itself reads or writes.
  bool with_partner(ProcessBase&) const noexcept { return false; }
  void over(ProcessBase& p, Status) noexcept {
    if (state == OpState::waiting) work->end(p);
    state = OpState::done;
  }
  Late leave_to_partner() noexcept {
    return [](PyObject*, ProcessBase&) noexcept {};
  }
  SocketOpObject* heir(ProcessBase&) noexcept { return this; }
  bool only_yields() const noexcept { return false; }
};
SocketOpObject* op_of(PyObject* o) noexcept { return reinterpret_cast<SocketOpObject*>(o); }

template <class W>
PySendResult cancelled(W& way) {
  way.withdrawn(nullptr);
  return way.give(nullptr);
}

// Makes one attempt. Returns true if the operation has ended; then `*r` is its outcome. Otherwise
// `waits` reports whether the process has begun to wait; if it has not, it must try again.
bool tried(SocketWork& work, ProcessBase& p, bool& waits, PyObject** r) {
  try {
    switch (work.attempt()) {
      case SocketWork::Tried::over: *r = work.outcome(); return true;
      case SocketWork::Tried::pauses:
        work.pause(p, work.pause_ns());
        waits = true;
        return false;
      case SocketWork::Tried::would_block:
        waits = work.begin(p, work.watched(), work.side, work.by_hint, work.kind);
        return false;
    }
  } catch (...) {
    *r = raise_from_io();
  }
  return true;
}

template <class W>
PySendResult go(SocketWork& work, W& way, OpState& state) {
  ProcessBase& p = way.process();
  for (;;) {
    PyObject* r = nullptr;
    bool waits = false;
    if (tried(work, p, waits, &r)) return way.give(r);
    if (!waits) continue;
    state = OpState::waiting;
    if (!way.wait(*p.op)) return way.suspended();
    state = OpState::done;
    if (work.end(p)) return cancelled(way);
  }
}

template <class W>
PySendResult begin(SocketWork& work, W& way, OpState& state) {
  if (way.cancelled()) return cancelled(way);
  if (Descriptors::check(work.verb) < 0) return way.give(nullptr);
  return go(work, way, state);
}

}  // namespace

template <class W>
PySendResult SocketOpObject::begin(W& way) {
  return py::begin(*work, way, state);
}
template <class W>
PySendResult SocketOpObject::go_on(W& way) {
  state = OpState::done;
  if (work->end(way.process())) return cancelled(way);
  return go(*work, way, state);
}

namespace {

void op_dealloc(PyObject* self) {
  SocketOpObject* const o = op_of(self);
  leave_it(o);
  if (o->state == OpState::fresh) {
    const SavedException kept;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s was never awaited: write `await` before it",
                         o->verb()) < 0)
      PyErr_WriteUnraisable(Py_None);
  }
  delete o->work;
  PyObject_Free(o);
}
PyAsyncMethods op_async{};
PyObject* op_next(PyObject* self) { return iternext_by(op_async.am_send, self); }
PyObject* op_pysend(PyObject* self, PyObject*) { return send_by(op_async.am_send, self); }
PyMethodDef op_methods[] = {
    {"send", gated<op_pysend>, METH_O, nullptr},
    {"throw", method(gated<throw_in<SocketOpObject>>), METH_FASTCALL, nullptr},
    {"close", gated<close_it<SocketOpObject>>, METH_NOARGS, nullptr},
    {}};

}  // namespace

PyTypeObject SocketOpType{PyVarObject_HEAD_INIT(nullptr, 0)};

void drop_awaited_socket(PyObject* o) noexcept { drop_awaited_it<SocketOpObject>(o); }

PyObject* socket_operation(std::unique_ptr<SocketWork> work) {
  if (current_coroutine() || in_task()) {
    SocketOpObject* const o = PyObject_New(SocketOpObject, &SocketOpType);
    if (!o) return nullptr;
    o->work = work.release();
    o->process = nullptr;
    o->task_waiter = nullptr;
    o->state = OpState::fresh;
    o->awaited = false;
    return reinterpret_cast<PyObject*>(o);
  }
  Caller self(work->verb);
  if (!self) return nullptr;
  PyObject* r = nullptr;
  InCaller way(self, &r);
  OpState state = OpState::fresh;
  begin(*work, way, state);
  return r;
}

int init_socket_operation(PyObject*) {
  refuse_as_result<SocketOpObject>(SocketOpType, op_async,
                                   [](PyObject* o) noexcept { return op_of(o)->verb(); });
  op_async.am_send = gated<send<SocketOpObject>>;
  SocketOpType.tp_name = "weft.SocketOperation";
  SocketOpType.tp_basicsize = sizeof(SocketOpObject);
  SocketOpType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  SocketOpType.tp_dealloc = gated<op_dealloc>;
  SocketOpType.tp_iternext = gated<op_next>;
  SocketOpType.tp_methods = op_methods;
  SocketOpType.tp_as_async = &op_async;
  return PyType_Ready(&SocketOpType);
}

}  // namespace weft::py

#else

namespace weft::py {
PyTypeObject SocketOpType{PyVarObject_HEAD_INIT(nullptr, 0)};
void drop_awaited_socket(PyObject*) noexcept {}
int init_socket_operation(PyObject*) { return 0; }
}  // namespace weft::py

#endif
