// The definitions of io/stream.hpp.
#include <weft/io/stream.hpp>

#if defined(__linux__)
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

namespace weft::inline WEFT_ABI::io {

namespace detail {

namespace {

[[noreturn]] void cannot(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Writes to a descriptor that is no socket. If nobody reads, SIGPIPE would end the program. So this
// thread blocks the signal during the write, and removes the signal if it was raised.
long write_quietly(int fd, const char* from, std::size_t n) noexcept {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  const bool was = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const long r = write(fd, from, n);
  const int error = errno;
  if (r < 0 && error == EPIPE && !was) {
    const timespec now{0, 0};
    while (sigtimedwait(&pipe, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return r;
}

void never_block(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) cannot("weft::io: set O_NONBLOCK");
}

bool is_tcp(int fd, bool socket) noexcept {
  int type = 0, protocol = 0;
  socklen_t n = sizeof type, m = sizeof protocol;
  return socket && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
         getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &m) == 0 && protocol == IPPROTO_TCP;
}

bool is_tcp(int family) noexcept { return family == AF_INET || family == AF_INET6; }

// Makes small writes leave at once, without waiting for more bytes to fill a packet.
void no_delay(int fd, int family) noexcept {
  const int yes = 1;
  if (is_tcp(family)) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

Address address_of(const Watched& w, int (*f)(int, sockaddr*, unsigned*)) {
  sockaddr_storage s{};
  socklen_t n = sizeof s;
  if (f(w.fd(), reinterpret_cast<sockaddr*>(&s), &n) != 0)
    failed("look for the address of", w, errno);
  return {reinterpret_cast<const sockaddr*>(&s), n};
}

bool blocks(long r) noexcept { return r == -EAGAIN || r == -EWOULDBLOCK; }

long try_read(Watched& w, char* into, std::size_t n) noexcept {
  if (w.closed()) return -EBADF;
  if (!w.taken()) return -EAGAIN;
  long r = 0;
  do r = w.is_socket() ? recv(w.fd(), into, n, 0) : read(w.fd(), into, n);
  while (r < 0 && errno == EINTR);
  if (r < 0) {
    if (blocks(-errno)) return -EAGAIN;
    const int error = errno;
    w.more();  // so that the next read sees what comes after the error
    return w.closed() ? -EBADF : -error;
  }
  // The end of the stream stays, and another process might wait for it too.
  if (static_cast<std::size_t>(r) == n || r == 0 || !w.is_tcp() || w.reads_short()) w.more();
  if (r == 0 && n != 0 && w.closed()) return -EBADF;
  return r;
}

long try_write(Watched& w, const char* from, std::size_t n) noexcept {
  if (w.closed()) return -EBADF;
  long r = 0;
  do r = w.is_socket() ? send(w.fd(), from, n, MSG_NOSIGNAL) : write_quietly(w.fd(), from, n);
  while (r < 0 && errno == EINTR);
  return r >= 0 ? r : w.closed() ? -EBADF : -errno;
}

const std::shared_ptr<Watched>& there(const std::shared_ptr<Watched>& w, const char* object) {
  if (!w) weft::detail::bad_use(std::string("weft::io: this ") + object + " was moved away");
  return w;
}

void failed(const char* verb, const Watched& w, long error) {
  throw std::system_error(
      static_cast<int>(error), std::generic_category(),
      std::string("weft::io: ") + verb + " " + w.name() + (w.closed() ? ", which was closed" : ""));
}

}  // namespace detail

const std::shared_ptr<detail::Watched>& Stream::watched() const {
  if (!w_)
    weft::detail::bad_use(
        "weft::io: this Stream has no descriptor: it was made by Stream(), or was moved away; take "
        "one from accept(), connect(), adopt(), pair() or pipe()");
  return w_;
}

detail::Operation<detail::ReadSome> Stream::read_some(std::span<char> into) const {
  if (into.empty())
    weft::detail::bad_use(
        "weft::io: read_some: the buffer is empty: give it at least one byte, since 0 bytes "
        "mean the end");
  return detail::Operation<detail::ReadSome>(detail::ReadSome{watched(), into});
}
detail::Operation<detail::Write<true>> Stream::write_all(std::string_view from,
                                                         std::size_t* sent) const {
  if (sent) *sent = 0;
  return detail::Operation<detail::Write<true>>(detail::Write<true>{watched(), from, sent});
}
detail::Operation<detail::Write<false>> Stream::write_some(std::string_view from) const {
  return detail::Operation<detail::Write<false>>(detail::Write<false>{watched(), from, nullptr});
}

Stream Stream::adopt(int fd) {
  struct stat s {};
  if (fstat(fd, &s) != 0) detail::cannot("weft::io: Stream::adopt");
  detail::never_block(fd);
  const bool socket = S_ISSOCK(s.st_mode);
  return Stream(detail::Watched::owned(fd, detail::is_tcp(fd, socket), socket));
}

std::pair<Stream, Stream> Stream::pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
    detail::cannot("weft::io: Stream::pair");
  Stream second;
  try {
    second = Stream(detail::Watched::owned(fds[1], false, true));
  } catch (...) {
    ::close(fds[0]);
    throw;
  }
  return {Stream(detail::Watched::owned(fds[0], false, true)), std::move(second)};
}

std::pair<Stream, Stream> Stream::pipe() {
  int fds[2];
  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) detail::cannot("weft::io: Stream::pipe");
  Stream second;
  try {
    second = Stream(detail::Watched::owned(fds[1], true, false));
  } catch (...) {
    ::close(fds[0]);
    throw;
  }
  return {Stream(detail::Watched::owned(fds[0], true, false)), std::move(second)};
}

void Stream::shutdown_write() const {
  if (shutdown(watched()->fd(), SHUT_WR) != 0) detail::failed("half-close", *w_, errno);
}
void Stream::close() const noexcept {
  if (w_) w_->close();
}
Address Stream::local() const { return detail::address_of(*watched(), &getsockname); }
Address Stream::peer() const { return detail::address_of(*watched(), &getpeername); }

Listener::Listener(const Address& at, int backlog) {
  const int fd = socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) detail::cannot("weft::io: a Listener's socket");
  const int yes = 1;
  if (at.family() != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, at.data(), at.size()) != 0 || listen(fd, backlog) != 0) {
    const int error = errno;
    ::close(fd);
    throw std::system_error(error, std::generic_category(), "weft::io: listen at " + at.text());
  }
  w_ = detail::Watched::owned(fd, false, true);
}
Address Listener::address() const { return detail::address_of(*watched(), &getsockname); }

detail::Tried detail::AcceptWork::attempt() {
  // in ns: the first and the longest pause of an operation that finds no free descriptor
  constexpr std::int64_t kFirst = 10'000'000, kLongest = 1'000'000'000;
  for (;;) {
    if (w->closed()) {
      error = EBADF;
      return Tried::over;
    }
    if (!w->taken()) return Tried::would_block;
    sockaddr_storage from{};
    socklen_t n = sizeof from;
    const int fd =
        accept4(w->fd(), reinterpret_cast<sockaddr*>(&from), &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      w->more();
      detail::no_delay(fd, from.ss_family);
      made = Stream(detail::Watched::owned(fd, detail::is_tcp(from.ss_family), true));
      return Tried::over;
    }
    const int e = errno;
    if (detail::blocks(-e)) return Tried::would_block;
    w->more();
    switch (e) {
      // These are errors of the new connection, not of the listener (accept(2)).
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
      case ENETDOWN:
      case ENOPROTOOPT:
      case EHOSTDOWN:
      case ENONET:
      case EHOSTUNREACH:
      case EOPNOTSUPP:
      case ENETUNREACH: continue;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        pause = pause == 0 ? kFirst : std::min(pause * 2, kLongest);
        return Tried::pauses;
      default: error = w->closed() ? EBADF : e; return Tried::over;
    }
  }
}

detail::ConnectWork detail::connecting(const Address& to) {
  const int fd = socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) cannot("weft::io: connect");
  no_delay(fd, to.family());
  ConnectWork work;
  work.w = Watched::owned(fd, is_tcp(to.family()), true);
  work.to = to;
  return work;
}

detail::Operation<detail::ConnectWork> connect(const Address& to) {
  return detail::Operation<detail::ConnectWork>(detail::connecting(to));
}

detail::Operation<detail::ConnectWork> connect(std::vector<Address> to) {
  return detail::Operation<detail::ConnectWork>(detail::connecting(to));
}

detail::ConnectWork detail::connecting(const std::vector<Address>& to) {
  if (to.empty()) weft::detail::bad_use("weft::io: connect: there is no address");
  ConnectWork work = connecting(to.front());
  work.others.assign(to.rbegin(), to.rend() - 1);
  return work;
}

detail::Tried detail::ConnectWork::attempt() noexcept {
  for (;;) {
    const Tried tried = once();
    if (tried != Tried::over || error == 0 || !next()) return tried;
  }
}

bool detail::ConnectWork::next() noexcept {
  if (others.empty() || w->closed()) return false;
  try {
    std::vector<Address> rest = std::move(others);
    const Address then = rest.back();
    rest.pop_back();
    *this = connecting(then);
    others = std::move(rest);
    return true;
  } catch (...) {
    return false;  // no descriptor is left: the error of the last address is reported
  }
}

detail::Tried detail::ConnectWork::once() noexcept {
  if (!begun) {
    if (::connect(w->fd(), to.data(), to.size()) == 0) return Tried::over;
    // The listener, a Unix socket, has no room for the connection, and nothing reports when it has
    // room again.
    if (errno == EAGAIN) return Tried::pauses;
    begun = true;
    if (errno == EINPROGRESS || errno == EINTR) return Tried::would_block;
    error = errno;
    return Tried::over;
  }
  if (!is_ready(*w, Side::out)) return Tried::would_block;
  int e = 0;
  socklen_t n = sizeof e;
  if (getsockopt(w->fd(), SOL_SOCKET, SO_ERROR, &e, &n) != 0) e = errno;
  error = e;
  return Tried::over;
}

Stream detail::ConnectWork::result() {
  if (error != 0)
    throw std::system_error(static_cast<int>(error), std::generic_category(),
                            "weft::io: connect to " + to.text());
  return Stream(std::move(w));
}

const std::error_category& look_up_category() noexcept {
  struct Category final : std::error_category {
    const char* name() const noexcept override { return "getaddrinfo"; }
    std::string message(int code) const override { return gai_strerror(code); }
  };
  static const Category category;
  return category;
}

std::vector<Address> detail::looked_up(const char* name, const char* service) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name, service, &hints, &found);
  const std::string what = std::string("weft::io: look up ") + name + ", service " + service;
  if (error == EAI_SYSTEM) cannot(what.c_str());
  if (error != 0) throw std::system_error(error, look_up_category(), what);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> keep(found, &freeaddrinfo);
  std::vector<Address> made;
  for (const addrinfo* a = found; a; a = a->ai_next) made.emplace_back(a->ai_addr, a->ai_addrlen);
  return made;
}

}  // namespace weft::inline WEFT_ABI::io
#endif
