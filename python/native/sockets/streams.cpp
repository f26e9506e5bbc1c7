// Stream, Listener, connect and listen (rule 18.11): the objects of weft::io, for Python.
//
// Invariants
//  1 A Work holds the Stream or Listener on which it works, and the buffer that it writes, until
//    its operation is destroyed. So the bytes stay in place while the process waits.
//  2 close() drops the object's own handle, so that the system can close the descriptor as soon as
//    no operation uses it. A Stream or Listener without a handle is closed.
//  3 A read makes the object for its result first, so a lack of memory loses no byte.
#include <optional>
#include <string>

#include "choice/guard.hpp"
#include "declare.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "keywords.hpp"
#include "sockets/look_up.hpp"
#include "sockets/socket_operation.hpp"

namespace weft::py {

#if defined(__linux__)

namespace {

struct StreamObject {
  PyObject_HEAD io::Stream stream;
  std::size_t sent;  // how many bytes of the last write the system has accepted
};
struct ListenerObject {
  PyObject_HEAD std::optional<io::Listener> listener;  // empty if the Listener was closed
};

PyTypeObject StreamType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ListenerType{PyVarObject_HEAD_INIT(nullptr, 0)};
StreamObject* stream_of(PyObject* o) noexcept { return reinterpret_cast<StreamObject*>(o); }
ListenerObject* listener_of(PyObject* o) noexcept { return reinterpret_cast<ListenerObject*>(o); }

// Calls f and returns its result. If f throws, sets an exception of Python and returns null.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return raise_from_io();
  }
}

// __reduce_ex__(): refuses to copy and to pickle the object.
PyObject* stays_here(PyObject* o, PyObject*) {
  return bad_use(
      "%R: it can be neither copied nor pickled, since its descriptor belongs to this OS process: "
      "accept or connect in the process that uses the connection",
      o);
}

// Raises OSError for an operation after close().
PyObject* was_closed(const char* verb) {
  const Owned error(PyObject_CallFunction(
      PyExc_OSError, "iN", EBADF,
      PyUnicode_FromFormat("%s: a Stream or Listener, which was closed: open another", verb)));
  if (error) PyErr_SetObject(PyExc_OSError, error.get());
  return nullptr;
}

PyObject* new_stream(io::Stream s) {
  auto* const o = reinterpret_cast<StreamObject*>(StreamType.tp_alloc(&StreamType, 0));
  if (!o) return nullptr;
  new (&o->stream) io::Stream(std::move(s));
  return reinterpret_cast<PyObject*>(o);
}

// --- operations ----------------------------------------------------------------------------------

template <class Work>
class WorkOf : public SocketWork {
 public:
  WorkOf(const char* operation, PyObject* object, Work&& w)
      : SocketWork(operation, io::detail::kWaits<Work>, Work::side, Work::kByHint),
        work(std::move(w)),
        object_(Py_XNewRef(object)) {}
  io::detail::Watched& watched() override { return work.watched(); }
  Tried attempt() override { return work.attempt(); }
  std::int64_t pause_ns() const override { return work.pause_ns(); }
  Work work;

 private:
  const Owned<> object_;
};

class Reading final : public WorkOf<io::detail::ReadSome> {
 public:
  Reading(StreamObject* s, Py_ssize_t most)
      : WorkOf("read_some", reinterpret_cast<PyObject*>(s), {s->stream.watched(), {}, 0}),
        most_(most) {}
  Tried attempt() override {
    if (!read_) read_.reset(PyBytes_FromStringAndSize(nullptr, most_));
    if (!read_) throw std::bad_alloc();
    work.into = {PyBytes_AS_STRING(read_.get()), static_cast<std::size_t>(most_)};
    const Tried t = work.attempt();
    if (t != Tried::over) read_.reset();  // an idle connection needs no buffer
    return t;
  }
  PyObject* outcome() override {
    PyObject* r = nullptr;
    const auto n = static_cast<Py_ssize_t>(work.result());
    r = read_.release();
    if (n != most_) _PyBytes_Resize(&r, n);
    return r;
  }

 private:
  Owned<> read_;
  const Py_ssize_t most_;
};

template <bool All>
class Writing final : public WorkOf<io::detail::Write<All>> {
 public:
  // Takes ownership of the buffer `bytes`, and releases it when the operation is destroyed.
  Writing(StreamObject* s, const Py_buffer& bytes)
      : WorkOf<io::detail::Write<All>>(
            All ? "write_all" : "write_some", reinterpret_cast<PyObject*>(s),
            {s->stream.watched(),
             {static_cast<const char*>(bytes.buf), static_cast<std::size_t>(bytes.len)},
             &s->sent}),
        bytes_(bytes) {
    s->sent = 0;
  }
  ~Writing() override { PyBuffer_Release(&bytes_); }
  PyObject* outcome() override {
    const std::size_t n = this->work.result();
    if constexpr (All) Py_RETURN_NONE;
    return PyLong_FromSize_t(n);
  }

 private:
  Py_buffer bytes_;
};

class Accepting final : public WorkOf<io::detail::AcceptWork> {
 public:
  explicit Accepting(ListenerObject* l)
      : WorkOf("accept", reinterpret_cast<PyObject*>(l), {l->listener->watched()}) {}
  PyObject* outcome() override { return new_stream(work.result()); }
};

class Connecting final : public WorkOf<io::detail::ConnectWork> {
 public:
  explicit Connecting(io::detail::ConnectWork to) : WorkOf("connect", nullptr, std::move(to)) {}
  PyObject* outcome() override { return new_stream(work.result()); }
};

// connect() to a name: the look-up, and then a ConnectWork to the addresses that it has found.
class ConnectingByName final : public SocketWork {
 public:
  ConnectingByName(std::string name, std::string port)
      : SocketWork("connect", io::detail::kWaits<io::detail::ConnectWork>, io::detail::Side::in,
                   io::detail::ConnectWork::kByHint),
        name_(std::move(name)),
        port_(std::move(port)) {}
  io::detail::Watched& watched() override {
    return connect_ ? connect_->watched() : look_up_->watched();
  }
  Tried attempt() override {
    if (!connect_) {
      if (!look_up_) look_up_.emplace(name_, port_);
      if (!look_up_->is_over()) return Tried::would_block;
      connect_.emplace(io::detail::connecting(look_up_->result()));
      side = io::detail::ConnectWork::side;
    }
    return connect_->attempt();
  }
  std::int64_t pause_ns() const override { return io::detail::ConnectWork::pause_ns(); }
  PyObject* outcome() override { return new_stream(connect_->result()); }

 private:
  const std::string name_, port_;
  std::optional<LookUp> look_up_;                   // set once the operation has begun
  std::optional<io::detail::ConnectWork> connect_;  // set once the look-up has ended
};

// --- addresses -----------------------------------------------------------------------------------

// Returns the text of an address that is given as a text ("127.0.0.1:80", "[::1]:80", "unix:/path")
// or as a tuple, as socket.getsockname() returns it. If the argument is neither, or is empty, sets
// an exception of Python and returns an empty text. May throw.
std::string address_text(PyObject* given, const char* verb) {
  if (PyUnicode_Check(given)) {
    Py_ssize_t n = 0;
    const char* const s = PyUnicode_AsUTF8AndSize(given, &n);
    if (!s) return {};
    if (n == 0) bad_use("%s: an address is missing: write \"127.0.0.1:8080\"", verb);
    return {s, static_cast<std::size_t>(n)};
  }
  const char* host = nullptr;
  int port = 0, flow = 0, scope = 0;
  if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "si|ii", &host, &port, &flow, &scope)) {
    PyErr_Clear();
    bad_use(
        "%s(%R): an address is a text, \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/path\", or "
        "a tuple of a host and a port, (\"127.0.0.1\", 8080)",
        verb, given);
    return {};
  }
  const std::string name(host);
  const bool six = name.find(':') != std::string::npos;
  return (six ? "[" + name + "]" : name) + ":" + std::to_string(port);
}

// --- Stream --------------------------------------------------------------------------------------

PyObject* stream_new(PyTypeObject*, PyObject* args, PyObject* kw) {
  static const char* names[] = {"descriptor", nullptr};
  PyObject* given;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O:Stream", const_cast<char**>(names), &given))
    return nullptr;
  const int fd = PyLong_Check(given) ? PyObject_AsFileDescriptor(given) : -1;
  if (PyErr_Occurred()) return nullptr;
  if (fd < 0)
    return bad_use(
        "Stream(%R): give it the number of a descriptor, which the Stream then owns: "
        "Stream(s.detach()) for a socket s, or use connect()",
        given);
  return guarded([fd] { return new_stream(io::Stream::adopt(fd)); });
}
void stream_dealloc(PyObject* o) {
  stream_of(o)->stream.~Stream();
  Py_TYPE(o)->tp_free(o);
}
PyObject* read_at_most(PyObject* o, Py_ssize_t most) {
  run_deferred();
  if (!stream_of(o)->stream) return was_closed("read_some");
  return guarded([&] { return socket_operation(std::make_unique<Reading>(stream_of(o), most)); });
}
PyObject* read_number(PyObject* o, PyObject* number) {
  const Py_ssize_t most = PyNumber_AsSsize_t(number, PyExc_OverflowError);
  if (most == -1 && PyErr_Occurred()) return nullptr;
  if (most <= 0)
    return bad_use("read_some(%R): read at least one byte, since b\"\" means the end", number);
  return read_at_most(o, most);
}
PyObject* stream_read_some(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  constexpr Py_ssize_t usual = 65536;
  if (n == 0 && !keywords) return read_at_most(o, usual);
  return with_keyword<"read_some", "most", read_number>(o, args, n, keywords);
}
template <bool All>
PyObject* stream_write(PyObject* o, PyObject* data) {
  run_deferred();
  if (!stream_of(o)->stream) return was_closed(All ? "write_all" : "write_some");
  Py_buffer bytes;
  if (PyObject_GetBuffer(data, &bytes, PyBUF_SIMPLE) < 0) return nullptr;
  std::unique_ptr<SocketWork> work;
  try {
    work = std::make_unique<Writing<All>>(stream_of(o), bytes);
  } catch (...) {
    PyBuffer_Release(&bytes);
    return raise_from_io();
  }
  return guarded([&] { return socket_operation(std::move(work)); });
}
PyObject* stream_shutdown_write(PyObject* o, PyObject*) {
  if (!stream_of(o)->stream) return was_closed("shutdown_write");
  return guarded([o] {
    stream_of(o)->stream.shutdown_write();
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_close(PyObject* o, PyObject*) {
  const io::Stream last = std::exchange(stream_of(o)->stream, {});
  last.close();
  Py_RETURN_NONE;
}
PyObject* stream_fileno(PyObject* o, PyObject*) {
  return PyLong_FromLong(stream_of(o)->stream.fd());  // -1 after close()
}
PyObject* stream_exit(PyObject* o, PyObject*) { return stream_close(o, nullptr); }
PyObject* itself(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyObject* stream_pair(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    auto [a, b] = io::Stream::pair();
    const Owned first(new_stream(std::move(a)));
    const Owned second(first ? new_stream(std::move(b)) : nullptr);
    return second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
  });
}
template <io::Address (io::Stream::*Of)() const>
PyObject* stream_address(PyObject* o, void*) {
  if (!stream_of(o)->stream) return was_closed("the address of a Stream");
  return guarded([o] {
    const std::string text = (stream_of(o)->stream.*Of)().text();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
PyObject* stream_sent(PyObject* o, void*) { return PyLong_FromSize_t(stream_of(o)->sent); }
PyObject* stream_repr(PyObject* o) {
  const io::Stream& s = stream_of(o)->stream;
  return s ? PyUnicode_FromFormat("<Stream of descriptor %d>", s.fd())
           : PyUnicode_FromString("<Stream, closed>");
}

PyMethodDef stream_methods[] = {
    {"read_some", method(gated<stream_read_some>), kKeywords,
     "read_some(most=65536): reads at least one byte and at most `most`. Returns them as bytes; "
     "b\"\" at the end of the stream. Raises OSError (ConnectionResetError; EBADF: the stream was "
     "closed), Cancelled, TimeoutError of a limit, BadUse. If it raises, nothing was read (rule "
     "18.1)."},
    {"write_all", method(gated<with_keyword<"write_all", "data", stream_write<true>>>), kKeywords,
     "write_all(data): writes all of `data`, an object with the buffer protocol. Raises OSError "
     "(BrokenPipeError, ConnectionResetError: nobody reads any more), Cancelled, TimeoutError of a "
     "limit, BadUse; then `sent` is the number of bytes that the system has taken."},
    {"write_some", method(gated<with_keyword<"write_some", "data", stream_write<false>>>),
     kKeywords,
     "write_some(data): writes at least one byte of `data`, or none if it is empty. Returns how "
     "many. Raises what write_all() raises. If it raises, nothing was written."},
    {"shutdown_write", gated<stream_shutdown_write>, METH_NOARGS,
     "Half-close: the peer reads the end of the stream, and this side can still read. Raises "
     "OSError if the stream is no connection."},
    {"close", gated<stream_close>, METH_NOARGS,
     "Closes the stream, also for processes that wait for it: their operations raise OSError, "
     "EBADF."},
    {"fileno", gated<stream_fileno>, METH_NOARGS,
     "Returns the number of the descriptor, for readable() and writable(); -1 if the stream was "
     "closed."},
    {"pair", gated<stream_pair>, METH_NOARGS | METH_STATIC,
     "Returns two streams that are connected with each other (Unix sockets)."},
    {"__enter__", gated<itself>, METH_NOARGS, nullptr},
    {"__exit__", gated<stream_exit>, METH_VARARGS, nullptr},
    {"__reduce_ex__", gated<stays_here>, METH_O, nullptr},
    {}};
PyGetSetDef stream_getset[] = {
    {"local", gated<stream_address<&io::Stream::local>>, nullptr,
     "The address of this end of the connection, a text. Raises OSError.", nullptr},
    {"peer", gated<stream_address<&io::Stream::peer>>, nullptr,
     "The address of the peer, a text. Raises OSError.", nullptr},
    {"sent", gated<stream_sent>, nullptr, "How many bytes of the last write the system has taken.",
     nullptr},
    {}};

// --- Listener, listen, connect -------------------------------------------------------------------

void listener_dealloc(PyObject* o) {
  std::destroy_at(&listener_of(o)->listener);
  Py_TYPE(o)->tp_free(o);
}
PyObject* listener_accept(PyObject* o, PyObject*) {
  run_deferred();
  if (!listener_of(o)->listener) return was_closed("accept");
  return guarded([o] { return socket_operation(std::make_unique<Accepting>(listener_of(o))); });
}
PyObject* listener_close(PyObject* o, PyObject*) {
  if (const auto last = std::exchange(listener_of(o)->listener, {})) last->close();
  Py_RETURN_NONE;
}
PyObject* listener_exit(PyObject* o, PyObject*) { return listener_close(o, nullptr); }
PyObject* listener_fileno(PyObject* o, PyObject*) {
  const auto& l = listener_of(o)->listener;
  return PyLong_FromLong(l ? l->fd() : -1);
}
PyObject* listener_address(PyObject* o, void*) {
  if (!listener_of(o)->listener) return was_closed("the address of a Listener");
  return guarded([o] {
    const std::string text = listener_of(o)->listener->address().text();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
PyMethodDef listener_methods[] = {
    {"accept", gated<listener_accept>, METH_NOARGS,
     "Accepts the next connection, and returns its Stream. While no descriptor is left, it tries "
     "again (rule 18.6). Raises OSError (EBADF: the listener was closed), Cancelled, TimeoutError "
     "of a limit, BadUse."},
    {"close", gated<listener_close>, METH_NOARGS,
     "Closes the listener, also for processes that wait for it: their accept() raises OSError, "
     "EBADF."},
    {"fileno", gated<listener_fileno>, METH_NOARGS,
     "Returns the number of the descriptor, for readable(); -1 if the listener was closed."},
    {"__enter__", gated<itself>, METH_NOARGS, nullptr},
    {"__exit__", gated<listener_exit>, METH_VARARGS, nullptr},
    {"__reduce_ex__", gated<stays_here>, METH_O, nullptr},
    {}};
PyGetSetDef listener_getset[] = {
    {"address", gated<listener_address>, nullptr,
     "The address at which the listener listens, a text, with the port that the system has chosen. "
     "Raises OSError.",
     nullptr},
    {}};

PyObject* f_listen(PyObject*, PyObject* address) {
  return guarded([address]() -> PyObject* {
    const std::string text = address_text(address, "listen");
    if (text.empty()) return nullptr;
    io::Listener l((io::Address(text)));
    auto* const o = reinterpret_cast<ListenerObject*>(ListenerType.tp_alloc(&ListenerType, 0));
    if (o) new (&o->listener) std::optional<io::Listener>(std::move(l));
    return reinterpret_cast<PyObject*>(o);
  });
}
PyObject* f_connect(PyObject*, PyObject* address) {
  run_deferred();
  return guarded([address]() -> PyObject* {
    const std::string text = address_text(address, "connect");
    if (text.empty()) return nullptr;
    if (auto [name, port] = name_and_port(text); !name.empty())
      return socket_operation(std::make_unique<ConnectingByName>(std::move(name), std::move(port)));
    return socket_operation(
        std::make_unique<Connecting>(io::detail::connecting(io::Address(text))));
  });
}

PyMethodDef stream_functions[] = {
    {"listen", method(gated<with_keyword<"listen", "address", f_listen>>), kKeywords,
     "listen(address): returns a Listener at `address`: \"127.0.0.1:8080\", \"[::1]:8080\", "
     "\"unix:/path\" (the file must not exist yet), or a tuple (host, port). With port 0 the "
     "system chooses a port. Raises OSError; BadUse if `address` is not in numbers."},
    {"connect", method(gated<with_keyword<"connect", "address", f_connect>>), kKeywords,
     "connect(address): connects, and returns a Stream. `address` is as for listen(), but the host "
     "may also be a name (\"example.org:80\"): its addresses are tried one after another. Raises "
     "OSError (ConnectionRefusedError, …; socket.gaierror if nobody knows the name), Cancelled, "
     "TimeoutError of a limit, BadUse. If it raises, the socket is closed."},
    {}};

int ready_stream_type(PyObject* m) {
  StreamType.tp_name = "weft.Stream";
  StreamType.tp_doc =
      "Stream(descriptor): a connection, or another stream of bytes; from connect(), accept() or "
      "pair(). Stream(s.detach()) takes over the descriptor of a socket s, which then no longer "
      "blocks. In a `with` statement it is closed at the end. readable(stream) and "
      "writable(stream) are guards (rule 18.11; Linux).";
  StreamType.tp_basicsize = sizeof(StreamObject);
  StreamType.tp_flags = Py_TPFLAGS_DEFAULT;
  StreamType.tp_new = gated<stream_new>;
  StreamType.tp_dealloc = gated<stream_dealloc>;
  StreamType.tp_repr = gated<stream_repr>;
  StreamType.tp_methods = stream_methods;
  StreamType.tp_getset = stream_getset;
  return PyType_Ready(&StreamType) < 0 ? -1 : add_type(m, "Stream", &StreamType);
}

}  // namespace

int init_streams(PyObject* m) {
  ListenerType.tp_name = "weft.Listener";
  ListenerType.tp_doc =
      "A Listener, from listen(address): accepts connections. In a `with` statement it is closed "
      "at the end. readable(listener) is a guard (rule 18.11; Linux).";
  ListenerType.tp_basicsize = sizeof(ListenerObject);
  ListenerType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ListenerType.tp_dealloc = gated<listener_dealloc>;
  ListenerType.tp_methods = listener_methods;
  ListenerType.tp_getset = listener_getset;
  if (ready_stream_type(m) < 0 || PyType_Ready(&ListenerType) < 0 ||
      add_type(m, "Listener", &ListenerType) < 0)
    return -1;
  return PyModule_AddFunctions(m, stream_functions);
}

#else

namespace {

PyObject* only_on_linux(PyObject*, PyObject*) {
  return bad_use("Stream, Listener, connect() and listen() work only on Linux");
}
PyObject* not_made(PyTypeObject*, PyObject*, PyObject*) { return only_on_linux(nullptr, nullptr); }
PyTypeObject StreamType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject ListenerType{PyVarObject_HEAD_INIT(nullptr, 0)};
PyMethodDef stream_functions[] = {
    {"listen", only_on_linux, METH_O, nullptr}, {"connect", only_on_linux, METH_O, nullptr}, {}};

}  // namespace

int init_streams(PyObject* m) {
  StreamType.tp_name = "weft.Stream";
  ListenerType.tp_name = "weft.Listener";
  for (PyTypeObject* t : {&StreamType, &ListenerType}) {
    t->tp_flags = Py_TPFLAGS_DEFAULT;
    t->tp_new = not_made;
    if (PyType_Ready(t) < 0) return -1;
  }
  if (add_type(m, "Stream", &StreamType) < 0 || add_type(m, "Listener", &ListenerType) < 0)
    return -1;
  return PyModule_AddFunctions(m, stream_functions);
}

#endif

}  // namespace weft::py
