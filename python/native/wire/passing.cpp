// weft._native._pass() (weft/_net/link.py).
//
// Carries a call's bytes between its caller and an OS process of an agent, on a separate thread
// instead of the event loop (WIRE-NETWORKS.md 17.10, 17.13). When the event loop carried the bytes,
// Python code took most of the time of a task's two messages.
//
//   the caller ══TCP══► TLS ──pieces taken apart──► the OS process
//              ◄═══════ TLS ◄──a length first──────
//
//   passes ──the OS process has sent all, which is announced to the caller──► receives the rest, for some seconds ──► ended
//     └──the caller has sent all │ TLS or its connection ends │ the bell──► ended
//
// Invariants
//  1 The socket, and TLS, belong to this thread from the call until it returns.
//  2 Bytes that one side does not accept are kept, and meanwhile no more bytes are read for that
//    side. So in each direction at most a piece, and the bytes of one read, wait.
//  3 Bytes for an OS process that has closed are still read: closing a connection with unread bytes
//    resets it, and the bytes sent last may be lost.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "interpreter/door.hpp"
#include "interpreter/lock.hpp"
#include "weft/prim.hpp"
#include "weft/wire/lookout.hpp"
#include "wire/pieces.hpp"
#include "wire/tls_in.hpp"

namespace weft::py {

namespace {

// Bytes that a socket did not accept.
class Kept {
 public:
  bool empty() const noexcept { return at_ == bytes_.size(); }
  std::size_t size() const noexcept { return bytes_.size() - at_; }
  const char* data() const noexcept { return bytes_.data() + at_; }
  void drop() noexcept { went(size()); }
  void add(const char* p, std::size_t n) { bytes_.insert(bytes_.end(), p, p + n); }
  // Sends the kept bytes and then the `n` bytes at `p`, as far as the socket accepts them. Returns
  // false if the socket will never accept any more.
  bool send(int fd, const char* p, std::size_t n) {
    if (!empty()) {
      add(p, n);
      return more(fd);
    }
    const ssize_t took = taken(fd, p, n);
    if (took < 0) return false;
    add(p + took, n - static_cast<std::size_t>(took));
    return true;
  }
  bool more(int fd) noexcept {
    const ssize_t took = taken(fd, data(), size());
    if (took > 0) went(static_cast<std::size_t>(took));
    return took >= 0;
  }

 private:
  static ssize_t taken(int fd, const char* p, std::size_t n) noexcept {
    if (n == 0) return 0;
    const ssize_t took = ::send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (took >= 0) return took;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
  }
  void went(std::size_t n) noexcept {
    at_ += n;
    if (empty()) {
      bytes_.clear();
      at_ = 0;
    }
  }

  std::vector<char> bytes_;
  std::size_t at_ = 0;
};

class Passing {
 public:
  int tcp = -1, link = -1, bell = -1;
  // How long, in ms, this side continues to receive after it has announced to the caller that it
  // has finished.
  int linger = 0;
  TlsIn in;
  // Two Python functions: write() gives TLS bytes to encrypt, read() takes encrypted bytes out of
  // TLS.
  PyObject *write = nullptr, *read = nullptr;

  // Runs until the passing has ended. `held` are bytes that arrived earlier; they are handled
  // first. Returns false if there is no memory.
  bool run(const char* held, std::size_t n);
  const Kept& rest() const noexcept { return to_tcp_; }

 private:
  static constexpr std::size_t kLargest = 1 << 18, kRoom = 1 << 16;

  void pass();
  bool wait();
  int milliseconds_left() const noexcept;
  void pass_on(bool tcp_takes, bool link_takes);
  void hear(ssize_t came);
  void say_what_came();
  void decrypt();
  void take_apart();
  void tell(const char* p, std::size_t n);
  void say(std::size_t n);
  void say_all();
  void send_said();
  void lost() noexcept;

  std::unique_ptr<char[]> raw_{new char[kRoom]};
  std::unique_ptr<char[]> plain_{new char[kPieceHead + kLargest]};
  std::size_t have_ = 0;  // how many bytes of an unfinished piece are in plain_
  Kept to_tcp_, to_link_;
  wire::detail::Lookout lookout_;
  std::int64_t until_ = 0;  // when to stop receiving; 0 if no time is set yet
  // Whether TLS can contain decrypted bytes, which wait there while to_link_ is not empty.
  bool inside_ = true;
  bool said_all_ = false;  // whether this side has announced to the caller that it has finished
  bool heard_all_ = false;
  bool link_over_ = false;  // whether the OS process accepts no more bytes
};

bool Passing::run(const char* held, std::size_t n) {
  try {
    while (n > 0 && !heard_all_) {
      const std::size_t now = std::min(n, kPieceHead + kLargest - have_);
      std::memcpy(plain_.get() + have_, held, now);
      have_ += now;
      held += now;
      n -= now;
      take_apart();
    }
    pass();
    if (!said_all_) say_all();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Passing::pass() {
  for (;;) {
    if (inside_ && to_link_.empty() && !heard_all_) decrypt();
    if (heard_all_ && to_link_.empty()) return;
    if (!wait()) return;
  }
}

bool is_for_now(int error) noexcept { return error == EAGAIN || error == EINTR; }

pollfd polled(int fd, bool in, bool out) noexcept {
  const auto events = static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0));
  // With a valid descriptor, poll() would report the end again and again.
  return {events ? fd : -1, events, 0};
}

// Waits until bytes arrive or can be sent, and receives and sends them, where possible without the
// interpreter's lock. Returns false when the passing has ended: the bell has rung, or the time has
// run out.
bool Passing::wait() {
  const bool hears = !heard_all_ && to_link_.empty();
  const bool listens = !said_all_ && to_tcp_.empty();
  pollfd p[3] = {{bell, POLLIN, 0},
                 polled(tcp, hears, !to_tcp_.empty()),
                 polled(link, listens, !to_link_.empty())};
  PyThreadState* const mine = give_up_lock();
  const int found = lookout_.poll(p, 3, milliseconds_left());
  const bool disturbed = found < 0 && errno == EINTR;
  ssize_t came_now = -1;
  const bool heard = found > 0 && hears && p[1].revents != 0;
  const bool said = found > 0 && listens && p[2].revents != 0;
  if (heard) came_now = ::recv(tcp, raw_.get(), kRoom, MSG_DONTWAIT);
  const bool nothing = came_now < 0 && is_for_now(errno);
  take_lock(mine);
  if (found <= 0 || p[0].revents != 0) return disturbed;
  if (heard && !nothing) hear(came_now);
  pass_on(p[1].revents != 0, p[2].revents != 0);
  if (said) say_what_came();
  return true;
}

int Passing::milliseconds_left() const noexcept {
  if (until_ == 0) return -1;
  return static_cast<int>(std::max<std::int64_t>(until_ - prim::now(), 0) / 1'000'000);
}

// Sends the kept bytes to the sides that accept bytes now.
void Passing::pass_on(bool tcp_takes, bool link_takes) {
  if (link_takes && !to_link_.empty() && !to_link_.more(link)) {
    link_over_ = true;
    to_link_.drop();
  }
  if (tcp_takes && !to_tcp_.empty() && !to_tcp_.more(tcp)) lost();
}

// Handles `came` bytes from the connection; 0 or less means that the connection has ended.
void Passing::hear(ssize_t came) {
  if (came <= 0) {  // the encrypted bytes left in TLS are not a whole record
    heard_all_ = true;
    return;
  }
  if (!in.put(raw_.get(), static_cast<std::size_t>(came))) lost();
  inside_ = true;
  decrypt();
}

void Passing::say_what_came() {
  if (said_all_) return;
  const ssize_t came = ::recv(link, raw_.get() + kPieceHead, kRoom - kPieceHead, MSG_DONTWAIT);
  if (came > 0) {
    say(static_cast<std::size_t>(came));
  } else if (came == 0 || !is_for_now(errno)) {
    say_all();  // the OS process has closed, perhaps with unread bytes
    until_ = prim::now() + 1'000'000 * std::int64_t{linger};
  }
}

// Called when the connection accepts no more bytes.
void Passing::lost() noexcept {
  heard_all_ = said_all_ = true;
  to_tcp_.drop();
}

void Passing::decrypt() {
  while (to_link_.empty() && !heard_all_) {
    const Py_ssize_t n = in.take(plain_.get() + have_, kPieceHead + kLargest - have_);
    if (n <= 0) {
      inside_ = false;
      if (n != TlsIn::kNone) heard_all_ = true;
      break;
    }
    have_ += static_cast<std::size_t>(n);
    take_apart();
    if (!in.has_more()) {
      inside_ = false;
      break;
    }
  }
  send_said();  // sends the pending bytes of TLS: an answer, or an alert that says what was wrong
}

void Passing::take_apart() {
  const char* at = plain_.get();
  std::size_t left = have_;
  while (left >= kPieceHead && !heard_all_) {
    const std::size_t size = length_at(at);
    if (size == 0 || size > kLargest) {
      heard_all_ = true;
      break;
    }
    if (left < kPieceHead + size) break;
    tell(at + kPieceHead, size);
    at += kPieceHead + size;
    left -= kPieceHead + size;
  }
  if (left > 0 && at != plain_.get()) std::memmove(plain_.get(), at, left);
  have_ = left;
}

void Passing::tell(const char* p, std::size_t n) {
  if (link_over_ || to_link_.send(link, p, n)) return;
  link_over_ = true;
  to_link_.drop();
}

// Sends n bytes, which are stored after the space for their length.
void Passing::say(std::size_t n) {
  char* const head = raw_.get();
  put_length(head, n);
  const Owned data(
      PyMemoryView_FromMemory(head, static_cast<Py_ssize_t>(kPieceHead + n), PyBUF_READ));
  const Owned r(data ? called(write, data.get()) : nullptr);
  PyErr_Clear();
  if (!r) lost();
  send_said();
}

void Passing::say_all() {
  said_all_ = true;
  say(0);
}

void Passing::send_said() {
  const Owned data(PyObject_CallNoArgs(read));
  PyErr_Clear();
  if (!data) return;
  const bool takes = to_tcp_.send(tcp, PyBytes_AS_STRING(data.get()),
                                  static_cast<std::size_t>(PyBytes_GET_SIZE(data.get())));
  if (!takes) lost();
}

// _pass(tcp, link, bell, came, tls, write, read, wants, linger, held) -> the bytes that the
// connection did not accept. Blocks until the passing has ended, or the bell can be read. `held`
// contains bytes that TLS had already decrypted.
PyObject* f_pass(PyObject*, PyObject* args) {
  Py_buffer held;
  PyObject *came, *tls, *wants;
  std::unique_ptr<Passing> p;
  try {
    p = std::make_unique<Passing>();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  if (!PyArg_ParseTuple(args, "iiiOOOOOiy*", &p->tcp, &p->link, &p->bell, &came, &tls, &p->write,
                        &p->read, &wants, &p->linger, &held))
    return nullptr;
  const bool well = p->in.begin(came, tls, wants) &&
                    p->run(static_cast<const char*>(held.buf), static_cast<std::size_t>(held.len));
  PyBuffer_Release(&held);
  if (!well) return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  return PyBytes_FromStringAndSize(p->rest().data(), static_cast<Py_ssize_t>(p->rest().size()));
}

PyMethodDef passing_functions[] = {{"_pass", f_pass, METH_VARARGS, nullptr}, {}};

}  // namespace

int init_passing(PyObject* m) { return PyModule_AddFunctions(m, passing_functions); }

}  // namespace weft::py
