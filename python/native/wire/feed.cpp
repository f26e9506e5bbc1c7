// weft._Feed: the functions that the event loop calls (weft/_net/link.py).
#include "wire/feed.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "channels/fork.hpp"
#include "gate.hpp"
#include "interpreter/door.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/pending.hpp"
#include "rounds/runs.hpp"
#include "wire/pieces.hpp"
#include "wire/saying.hpp"
#include "wire/tls_in.hpp"

namespace weft::py {

using wire::Space;

std::atomic<std::uint32_t> Feed::rings_{0}, Feed::unheard_{0};

Feed::Feed(const std::shared_ptr<Space>& space) : LinkBase(space) {
  if (::pipe(bell_) != 0) weft::detail::bad_use("no descriptor is left for a link");
  for (const int fd : bell_) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  peer_->session.may_lend();
  begin();
}
Feed::~Feed() {
  bye("this program has closed the session");
  end();
  if (rung_.load()) unheard_.fetch_sub(1);
  for (const int fd : bell_) ::close(fd);
}

void Feed::ring() noexcept {
  rings_.fetch_add(1);
  if (!rung_.exchange(true)) unheard_.fetch_add(1);
  const char one = 1;
  if (::write(bell_[1], &one, 1) < 0)
    return;  // the pipe is full, so the loop has already been
             // woken
}
void Feed::hush() noexcept {
  if (!rung_.exchange(false)) return;
  unheard_.fetch_sub(1);
  char all[64];
  if (::read(bell_[0], all, sizeof all) < 0) return;  // another thread has already emptied the pipe
}
void Feed::flush() noexcept {
  // The end is also reported to a thread that waits until the connection accepts more bytes.
  const bool ends = over() && !std::exchange(said_over_, true);
  if (told_.load() && !ends) return;
  told_.store(true);
  if (feeder_.load() == std::this_thread::get_id()) return;
  if (!owed_ && !ends && direct && direct->may && says_and_waits && unheard_.load() == 0) {
    owed_ = this;
    return;
  }
  // If this thread still owes the bell of another link a ring, that bell rings now.
  if (owed_) std::exchange(owed_, nullptr)->ring();
  ring();
}

bool Feed::input(wire::Bytes in) {
  struct Feeding {
    Feed& f;
    ~Feeding() { f.feeder_.store({}); }
  };
  std::uint32_t before;
  {
    const Feeding feeding{*this};
    const Space::Step step(*peer_->space);  // when the step ends, frames are flushed
    before = rings_.load();
    feeder_.store(std::this_thread::get_id());
    peer_->session.input(in);
  }
  if (!told_.load()) return false;
  if (rings_.load() == before) return true;
  ring();
  return false;
}
void Feed::lost(const char* why) {
  const Space::Step step(*peer_->space);
  peer_->session.lost(why);
}
std::size_t Feed::next(std::size_t most) noexcept {
  hush();
  // The bytes to send begin with a frame, because only whole frames have been sent so far.
  const std::size_t n = peer_->session.frames(most);
  if (n == 0 && !over()) told_.store(false);
  return n;
}

PyObject* Feed::piece(std::size_t most) noexcept {
  const Space::Step step(*peer_->space);
  const std::size_t n = next(most);
  if (n == 0) return nullptr;
  PyObject* const made =
      PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(kPieceHead + n));
  if (!made) return nullptr;
  char* const at = PyBytes_AS_STRING(made);
  put_length(at, n);
  peer_->session.copy_to(reinterpret_cast<std::byte*>(at + kPieceHead), n);
  peer_->session.went(n);
  return made;
}

// --- threads that wait send their own frames -----------------------------------------------------

Feed::Direct::~Direct() {
  for (PyObject* const o : {acquire, release, encrypt, encrypted, rest}) Py_XDECREF(o);
}

bool Feed::send_owed() noexcept {
  Feed* const f = std::exchange(owed_, nullptr);
  const std::shared_ptr<Feed> kept = f->me.lock();  // TLS lets other threads run meanwhile
  const std::shared_ptr<Direct> by = f->direct;
  if (kept && by) return f->send_now(*by);
  f->ring();
  return false;
}

bool Feed::send_now(Direct& by) noexcept {
  constexpr std::size_t kMaxRecord = 16'000;  // bytes: the size of a TLS record
  const Owned mine(PyObject_CallOneArg(by.acquire, Py_False));
  if (mine != Py_True) {  // the loop uses TLS at the moment
    PyErr_Clear();
    ring();
    return false;
  }
  bool raised = false;
  const bool small = peer_->session.queued() <= kMaxRecord;
  if (const Owned said(small && by.may ? piece(kMaxRecord) : nullptr); said) {
    const Owned r(called(by.encrypt, said.get()));
    // A signal handler has raised, but the frames have been encrypted.
    raised = !r && !PyErr_ExceptionMatches(PyExc_OSError);
    if (raised) keep_interrupt_for(nullptr, take_exception());
    PyErr_Clear();
    if (const Owned data(PyObject_CallNoArgs(by.encrypted)); data) {
      const char* const bytes = PyBytes_AS_STRING(data.get());
      const Py_ssize_t size = PyBytes_GET_SIZE(data.get());
      const auto took = static_cast<Py_ssize_t>(
          ::send(by.fd, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL));
      if (took < size) {  // if the connection is broken, the loop's transport will report it
        by.may = false;
        by.rest = PyBytes_FromStringAndSize(bytes + std::max<Py_ssize_t>(took, 0),
                                            size - std::max<Py_ssize_t>(took, 0));
      }
    }
  }
  // Returns whether there are more bytes to send.
  bool more = by.rest != nullptr;
  {
    const Space::Step step(*peer_->space);
    more = next(1) > 0 || over() || more;
  }
  PyErr_Clear();
  const Owned released(PyObject_CallNoArgs(by.release));
  PyErr_Clear();
  if (more) ring();
  return raised;
}

// --- the loop's thread receives ------------------------------------------------------------------

namespace {

constexpr std::size_t kTurn = 1 << 16;  // the maximum number of bytes that are read at a time
struct Rooms {
  std::array<char, kTurn> raw, plain;
};
Rooms& rooms() {
  static thread_local const std::unique_ptr<Rooms> here(new Rooms);
  return *here;
}

// Returns whether these bytes are whole pieces, of which none is the last.
bool are_whole(const char* p, std::size_t left) noexcept {
  while (left > kPieceHead) {
    const std::size_t n = length_at(p);
    if (n == 0 || n > left - kPieceHead) return false;
    p += kPieceHead + n;
    left -= kPieceHead + n;
  }
  return left == 0;
}

}  // namespace

PyObject* Feed::turn() {
  const std::shared_ptr<Direct> by = direct;
  if (!by) Py_RETURN_FALSE;
  Rooms& room = rooms();
  const ssize_t n = ::recv(by->fd, room.raw.data(), kTurn, MSG_DONTWAIT);
  if (n <= 0) Py_RETURN_FALSE;
  if (!by->in.put(room.raw.data(), static_cast<std::size_t>(n))) return PyErr_NoMemory();
  const Owned locked(called(by->acquire));
  if (!locked) return nullptr;
  std::size_t have = 0;
  bool all = false;  // whether everything that has arrived has been read
  while (!all && have < kTurn) {
    const Py_ssize_t got = by->in.take(room.plain.data() + have, kTurn - have);
    if (got <= 0) {
      all = got == TlsIn::kNone;
      break;
    }
    have += static_cast<std::size_t>(got);
    all = !by->in.has_more();
  }
  const Owned released(PyObject_CallNoArgs(by->release));
  PyErr_Clear();
  if (!all || !are_whole(room.plain.data(), have))
    return PyMemoryView_FromMemory(room.plain.data(), static_cast<Py_ssize_t>(have), PyBUF_READ);
  const char* p = room.plain.data();
  bool says = false;
  while (have > 0) {
    const std::size_t size = length_at(p);
    says = input({reinterpret_cast<const std::byte*>(p + kPieceHead), size});
    p += kPieceHead + size;
    have -= kPieceHead + size;
  }
  if (says && by->may && unheard_.load() == 0) {
    send_now(*by);
  } else if (says) {
    ring();
  }
  Py_RETURN_TRUE;
}

namespace {

struct FeedObject {
  PyObject_HEAD std::shared_ptr<Feed>* feed;
  std::uint32_t generation;
};
PyTypeObject FeedType{PyVarObject_HEAD_INIT(nullptr, 0)};

Feed* feed_of(PyObject* o) noexcept {
  auto* const f = reinterpret_cast<FeedObject*>(o);
  if (f->generation == generation) return f->feed->get();
  bad_use("this link was made before a fork, and this is the child");
  return nullptr;
}
void feed_dealloc(PyObject* o) {
  auto* const f = reinterpret_cast<FeedObject*>(o);
  // In any other case the feed is kept, for the same reasons as in close_link().
  if (f->generation == generation && !door_is_closed()) delete f->feed;
  run_deferred();
  Py_TYPE(o)->tp_free(o);
}

// fileno(): returns the descriptor of the bell, which is readable if there might be bytes to send.
PyObject* feed_fileno(PyObject* o, PyObject*) {
  Feed* const f = feed_of(o);
  return f ? PyLong_FromLong(f->bell()) : nullptr;
}
// input(bytes): passes received bytes to the session. Returns True if output() must be called now.
PyObject* feed_input(PyObject* o, PyObject* data) {
  Feed* const f = feed_of(o);
  Py_buffer b;
  if (!f || PyObject_GetBuffer(data, &b, PyBUF_SIMPLE) < 0) return nullptr;
  PyObject* r;
  try {
    r = PyBool_FromLong(
        f->input({static_cast<const std::byte*>(b.buf), static_cast<std::size_t>(b.len)}));
  } catch (const std::bad_alloc&) {
    r = PyErr_NoMemory();
  }
  PyBuffer_Release(&b);
  run_deferred();
  return r;
}
// output(most): returns the next piece to send (WIRE-NETWORKS.md 17.13): its length, and whole
// frames. The piece has at most `most` bytes, unless one frame is longer. b"" means that there is
// nothing to send now, and that the bell will ring when there is. None means that nothing more will
// come, since the session is over.
PyObject* feed_output(PyObject* o, PyObject* number) {
  Feed* const f = feed_of(o);
  const std::size_t most = PyLong_AsSize_t(number);
  if (!f || (most == static_cast<std::size_t>(-1) && PyErr_Occurred())) return nullptr;
  PyObject* const piece = f->piece(most);
  if (piece || PyErr_Occurred()) return piece;
  if (f->over()) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(nullptr, 0);
}
// direct(fd, acquire, release, encrypt, encrypted, came, tls, wants): from now on a waiting thread
// sends its own frames (Direct). direct() without arguments ends direct sending. Both calls need
// the lock for TLS.
PyObject* feed_direct(PyObject* o, PyObject* args) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  if (PyTuple_GET_SIZE(args) == 0) {
    f->direct = nullptr;
    Py_RETURN_NONE;
  }
  auto d = std::make_shared<Feed::Direct>();
  PyObject *acquire, *release, *encrypt, *encrypted, *came, *tls, *wants;
  if (!PyArg_ParseTuple(args, "iOOOOOOO", &d->fd, &acquire, &release, &encrypt, &encrypted, &came,
                        &tls, &wants))
    return nullptr;
  if (!d->in.begin(came, tls, wants)) return nullptr;
  d->acquire = Py_NewRef(acquire);
  d->release = Py_NewRef(release);
  d->encrypt = Py_NewRef(encrypt);
  d->encrypted = Py_NewRef(encrypted);
  f->direct = std::move(d);
  Py_RETURN_NONE;
}
// may(whether): records whether the loop's transport has sent everything. Needs the lock for TLS.
PyObject* feed_may(PyObject* o, PyObject* whether) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  if (f->direct) f->direct->may = whether == Py_True && !f->direct->rest;
  Py_RETURN_NONE;
}
// rest(): returns the bytes of a direct send that the socket did not accept, or None. The caller
// must hold the lock for TLS.
PyObject* feed_rest(PyObject* o, PyObject*) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  PyObject* const rest = f->direct ? std::exchange(f->direct->rest, nullptr) : nullptr;
  if (rest) return rest;
  Py_RETURN_NONE;
}
// hush(): records that the bell was heard, although no bytes can be sent now.
PyObject* feed_hush(PyObject* o, PyObject*) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  f->hush();
  Py_RETURN_NONE;
}
// lost(why): reports that the connection has ended.
PyObject* feed_lost(PyObject* o, PyObject* text) {
  Feed* const f = feed_of(o);
  const char* const why = f ? PyUnicode_AsUTF8(text) : nullptr;
  if (!why) return nullptr;
  f->lost(why);
  run_deferred();
  Py_RETURN_NONE;
}
PyObject* feed_over(PyObject* o, void*) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  const Space::Step step(*f->peer()->space);
  return PyBool_FromLong(f->over());
}
// turn(): see feed.hpp.
PyObject* feed_turn(PyObject* o, PyObject*) {
  Feed* const f = feed_of(o);
  if (!f) return nullptr;
  PyObject* r;
  try {
    r = f->turn();
  } catch (const std::bad_alloc&) {
    r = PyErr_NoMemory();
  }
  run_deferred();
  return r;
}
PyMethodDef feed_methods[] = {{"fileno", gated<feed_fileno>, METH_NOARGS, nullptr},
                              {"input", gated<feed_input>, METH_O, nullptr},
                              {"output", gated<feed_output>, METH_O, nullptr},
                              {"hush", gated<feed_hush>, METH_NOARGS, nullptr},
                              {"turn", gated<feed_turn>, METH_NOARGS, nullptr},
                              {"direct", gated<feed_direct>, METH_VARARGS, nullptr},
                              {"may", gated<feed_may>, METH_O, nullptr},
                              {"rest", gated<feed_rest>, METH_NOARGS, nullptr},
                              {"lost", gated<feed_lost>, METH_O, nullptr},
                              {}};
PyGetSetDef feed_getset[] = {{"over", gated<feed_over>, nullptr, nullptr, nullptr}, {}};

}  // namespace

PyObject* new_feed(std::shared_ptr<Feed> feed) noexcept {
  auto* const f = reinterpret_cast<FeedObject*>(FeedType.tp_alloc(&FeedType, 0));
  if (!f) return nullptr;
  feed->me = feed;
  f->feed = new auto(std::move(feed));
  f->generation = generation;
  return reinterpret_cast<PyObject*>(f);
}

int init_feed(PyObject*) {
  FeedType.tp_name = "weft._Feed";
  FeedType.tp_basicsize = sizeof(FeedObject);
  FeedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  FeedType.tp_dealloc = gated<feed_dealloc>;
  FeedType.tp_methods = feed_methods;
  FeedType.tp_getset = feed_getset;
  return PyType_Ready(&FeedType);
}

}  // namespace weft::py
