// A lossy link whose input and output is done in Python (wire 13, 17.19): the Line of
// wire/line.hpp, called by one thread.
//
//   line = _Line(token, window, most, again_ms, lease_ms, again_most_ms)
//   line.queue(bytes) ──► output(now) gives the packets for the link ──► input(now, bytes) of the other side
//
// Invariant: times are milliseconds of one clock; a Line has no clock of its own.
#include "weft/wire/line.hpp"

#include "declare.hpp"
#include "interpreter/errors.hpp"

namespace weft::py {

namespace {
using wire::detail::Line;

struct LineObject {
  PyObject_HEAD Line* line;
};
Line& line_of(PyObject* o) noexcept { return *reinterpret_cast<LineObject*>(o)->line; }

wire::Bytes bytes_of(const Py_buffer& b) noexcept {
  return {static_cast<const std::byte*>(b.buf), static_cast<std::size_t>(b.len)};
}
PyObject* to_bytes(const wire::Buffer& b) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(b.data()),
                                   static_cast<Py_ssize_t>(b.size()));
}
// Calls f, which allocates. Returns null with an exception if there is no memory.
template <class F>
PyObject* tried(F&& f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* line_new(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned token, again_most_ms;
  wire::LineOptions o;
  if (!PyArg_ParseTuple(args, "IIIIII", &token, &o.window, &o.most, &o.again_ms, &o.lease_ms,
                        &again_most_ms))
    return nullptr;
  if (token == 0 || o.window == 0 || o.window > 0x10000 || o.most == 0 || o.most > Line::kLargest ||
      o.again_ms == 0 || again_most_ms == 0)
    return bad_use(
        "_Line: the token, the window, the bytes of a packet and the times must not be 0");
  Owned made(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  return tried([&]() -> PyObject* {
    reinterpret_cast<LineObject*>(made.get())->line = new Line(o, token, again_most_ms);
    return made.release();
  });
}
void line_dealloc(PyObject* o) {
  delete reinterpret_cast<LineObject*>(o)->line;
  Py_TYPE(o)->tp_free(o);
}

// queue(bytes): queues bytes to be sent. Returns the number of bytes that the link has accepted.
PyObject* line_queue(PyObject* o, PyObject* data) {
  Py_buffer b;
  if (PyObject_GetBuffer(data, &b, PyBUF_SIMPLE) < 0) return nullptr;
  PyObject* const took = tried([&] { return PyLong_FromSize_t(line_of(o).queue(bytes_of(b))); });
  PyBuffer_Release(&b);
  return took;
}
// input(now, bytes): returns the bytes that are now due for the session.
PyObject* line_input(PyObject* o, PyObject* args) {
  long long now;
  Py_buffer b;
  if (!PyArg_ParseTuple(args, "Ly*", &now, &b)) return nullptr;
  PyObject* const got = tried([&] {
    wire::Buffer session;
    line_of(o).input(bytes_of(b), now, session);
    return to_bytes(session);
  });
  PyBuffer_Release(&b);
  return got;
}
// output(now, patient): returns the bytes that are to be sent over the link now.
PyObject* line_output(PyObject* o, PyObject* args) {
  long long now;
  int patient;
  if (!PyArg_ParseTuple(args, "Lp", &now, &patient)) return nullptr;
  return tried([&] {
    wire::Buffer out;
    line_of(o).output(now, out, patient != 0);
    return to_bytes(out);
  });
}
// due(): returns the time at which passed() or output() will next have work to do, or None for
// never.
PyObject* line_due(PyObject* o, PyObject*) {
  const std::int64_t at = line_of(o).due();
  if (at == Line::kNever) Py_RETURN_NONE;
  return PyLong_FromLongLong(at);
}
template <void (Line::*F)(std::int64_t)>
PyObject* line_at(PyObject* o, PyObject* now) {
  const long long ms = PyLong_AsLongLong(now);
  if (ms == -1 && PyErr_Occurred()) return nullptr;
  (line_of(o).*F)(ms);
  Py_RETURN_NONE;
}
PyObject* line_hold(PyObject* o, PyObject* on) {
  const int is = PyObject_IsTrue(on);
  if (is < 0) return nullptr;
  line_of(o).hold(is != 0);
  Py_RETURN_NONE;
}
template <bool (Line::*F)() const noexcept>
PyObject* line_is(PyObject* o, void*) {
  return PyBool_FromLong((line_of(o).*F)());
}
PyObject* line_lost(PyObject* o, void*) {
  const char* const why = line_of(o).lost();
  if (!why) Py_RETURN_NONE;
  return PyUnicode_FromString(why);
}

PyMethodDef line_methods[] = {{"queue", gated<line_queue>, METH_O, nullptr},
                              {"input", gated<line_input>, METH_VARARGS, nullptr},
                              {"output", gated<line_output>, METH_VARARGS, nullptr},
                              {"due", gated<line_due>, METH_NOARGS, nullptr},
                              {"passed", gated<line_at<&Line::passed>>, METH_O, nullptr},
                              {"hurry", gated<line_at<&Line::hurry>>, METH_O, nullptr},
                              {"hold", gated<line_hold>, METH_O, nullptr},
                              {}};
PyGetSetDef line_getset[] = {{"linked", gated<line_is<&Line::linked>>, nullptr, nullptr, nullptr},
                             {"settled", gated<line_is<&Line::settled>>, nullptr, nullptr, nullptr},
                             {"owes", gated<line_is<&Line::owes>>, nullptr, nullptr, nullptr},
                             {"lost", gated<line_lost>, nullptr, nullptr, nullptr},
                             {}};

PyTypeObject LineType{PyVarObject_HEAD_INIT(nullptr, 0)};

}  // namespace

int init_line(PyObject* m) {
  LineType.tp_name = "weft._Line";
  LineType.tp_basicsize = sizeof(LineObject);
  LineType.tp_flags = Py_TPFLAGS_DEFAULT;
  LineType.tp_new = gated<line_new>;
  LineType.tp_dealloc = gated<line_dealloc>;
  LineType.tp_methods = line_methods;
  LineType.tp_getset = line_getset;
  return PyType_Ready(&LineType) < 0 ? -1 : add_type(m, "_Line", &LineType);
}

}  // namespace weft::py
