// A link over a stream socket: a Unix socket pair, a Unix socket, TCP on loopback (WIRE-LINKS.md
// 12). The link is deliberately simple. This file needs POSIX.
//
//   auto space = wire::Space::make("main");
//   wire::StreamLink child(space, fd);
//   child.give(numbers.reader(), "numbers");
//   wire::FarWriter<int> w = child.writer<int>("squares");   // waits until the peer has handed it out
//
// One native thread, the link's thread, reads. A thread that has something to send sends it itself,
// and the link's thread sends what the socket did not take. The socket is closed when the session
// ends; the death of a peer shows as end of file.
//
// Invariants (the space's lock)
//  1 Only the link's thread reads; only a thread in a step sends.
//  2 After the session's end only bytes that were queued before it are sent: those that the socket
//    takes at once, or, if the socket leads to a network, within kLast. These bytes may be values
//    whose writers have been notified of their success (wire 6.2, 17.13).
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "descriptors.hpp"
#include "introduce.hpp"
#include "link_base.hpp"
#include "prompt.hpp"

namespace weft::inline WEFT_ABI::wire {

class StreamLink final : public LinkBase {
 public:
  // Takes ownership of the socket. Throws BadUse if it is not a stream socket. `passes` says
  // whether a Unix socket passes descriptors; it is false if the socket leads to a program that
  // copies the bytes elsewhere (WIRE-NETWORKS.md 17.5).
  StreamLink(const std::shared_ptr<Space>& space, int socket, bool passes = true)
      : StreamLink(std::make_shared<Peer>(detail::space_of(space)), socket, passes) {
    introducer_ = SocketIntroducer::of(*space, &make_introduced);
    thread_ = std::thread([this] { serve(); });
  }
  // Ends the session. The ends that the peer still holds through the session die.
  ~StreamLink() {
    leave("this program has closed the session");
    join();
    end();
    for (const int fd : {socket_, bell_[0], bell_[1]}) ::close(fd);
  }

  // The destructor in two parts, for a caller that owns something that the steps of other threads
  // need (such as a global lock). The caller calls leave() while it owns that lock, and join()
  // while it does not.
  void leave(const std::string& why) {
    bye(why);
    if (introducer_ && !std::exchange(left_, true)) last_ = introducer_->leave(*peer_->space);
  }
  void join() {
    if (!thread_.joinable()) return;
    thread_.join();
    if (last_) introducer_->wait();
  }

  // Makes a link for a session that another space has arranged. The link's thread owns the link.
  static std::weak_ptr<Peer> make_introduced(SocketIntroducer& by, Space& space, int socket,
                                             std::uint64_t incarnation, std::uint32_t largest) {
    auto peer = std::make_shared<Peer>(space);
    peer->session.expect(incarnation, largest);
    std::shared_ptr<StreamLink> link(new StreamLink(peer, socket, true));
    std::thread([link = std::move(link), counted = by.shared_from_this()]() mutable {
      link->serve();
      link.reset();
      counted->ended();
    }).detach();
    return peer;
  }

 private:
  StreamLink(std::shared_ptr<Peer> peer, int socket, bool passes)
      : LinkBase(std::move(peer)), socket_(socket), lingers_(!passes) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        option(SO_TYPE) != SOCK_STREAM || option(SO_ACCEPTCONN) != 0 || ::pipe(bell_) != 0) {
      ::close(socket_);
      weft::detail::bad_use(
          "StreamLink: the descriptor is not a connected stream socket, or no more descriptors are "
          "left");
    }
    passes_ = passes && address.ss_family == AF_UNIX;
    if (!passes_) peer_->session.may_lend();
    for (const int fd : bell_) {
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    begin();
  }
  int option(int which) const noexcept {
    int value = -1;
    socklen_t size = sizeof(value);
    return ::getsockopt(socket_, SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
  }
  bool passes() const noexcept override { return passes_; }
  void pass(int descriptor) noexcept override {
    descriptors_.attach(descriptor, peer_->session.queued());
  }
  int passed() noexcept override { return descriptors_.next(); }

  void flush() noexcept override {
    while (!peer_->session.output().empty()) {
      const ssize_t n = passes_ ? descriptors_.send(socket_, peer_->session.output()) : send();
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (n < 0) return ring();  // The link's thread will see why.
      peer_->session.went(static_cast<std::size_t>(n));
    }
    unsent_.store(!peer_->session.output().empty(), std::memory_order_relaxed);
    if ((unsent_.load(std::memory_order_relaxed) && served_by_ != std::this_thread::get_id()) ||
        peer_->session.is_over())
      ring();
  }
  // Sends as many bytes as the socket accepts, without copying them.
  ssize_t send() noexcept {
    std::array<Bytes, 64> parts;
    std::array<iovec, parts.size()> there;
    const std::size_t n = peer_->session.parts(parts);
    for (std::size_t i = 0; i < n; ++i)
      there[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    msghdr m{};
    m.msg_iov = there.data();
    m.msg_iovlen = n;
    return ::sendmsg(socket_, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void ring() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // The pipe is full: the thread has been woken.
  }

  void serve() {
    detail::be_prompt();
    // The buffer is as large as a socket's, because each round might have to wait for a language's
    // lock.
    Buffer room(std::size_t{1} << 18);
    for (;;) {
      {
        const Served served;
        const Space::Step step(*peer_->space);
        if (peer_->session.is_over()) break;
        served_by_ = std::this_thread::get_id();
      }
      // Whether this thread's own step left bytes that it could not send. Another thread that
      // leaves bytes later wakes this one.
      const bool sending = unsent_.load(std::memory_order_relaxed);
      pollfd fds[] = {{socket_, static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0},
                      {bell_[0], POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents)
        while (::read(bell_[0], room.data(), room.size()) > 0) {
        }
      if (!fds[0].revents) continue;
      // A frame begins at a multiple of 8 in the stream, and must also do so in the buffer.
      const std::size_t at = received_ % 8;
      const ssize_t n = descriptors_.receive(socket_, std::span(room).subspan(at));
      const bool nothing = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      const int error = errno;
      const Served served;
      const Space::Step step(*peer_->space);  // When the step ends, the queued frames are sent.
      if (n > 0) {
        received_ += static_cast<std::size_t>(n);
        peer_->session.input(Bytes(room).subspan(at, static_cast<std::size_t>(n)));
      } else if (n == 0)
        peer_->session.lost("its socket was closed");
      else if (!nothing)
        peer_->session.lost(std::string("its socket failed: ") + std::strerror(error));
    }
    if (lingers_) send_the_rest();
    ::shutdown(socket_, SHUT_RDWR);
    if (around_steps) around_steps->end();
  }
  void send_the_rest() {
    const auto until = std::chrono::steady_clock::now() + kLast;
    for (;;) {
      {
        const Served served;
        const Space::Step step(*peer_->space);
        flush();
        if (peer_->session.output().empty()) return;
      }
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd fd{socket_, POLLOUT, 0};
      if (left.count() <= 0 || ::poll(&fd, 1, static_cast<int>(left.count())) == 0 ||
          (fd.revents & (POLLERR | POLLHUP)) != 0)
        return;
    }
  }

  static constexpr std::chrono::seconds kLast{10};
  const int socket_;
  const bool lingers_;
  int bell_[2] = {-1, -1};
  bool passes_ = false;
  // Used under the space's lock to send, and by the link's thread to receive.
  detail::Descriptors descriptors_;
  bool left_ = false, last_ = false;
  std::shared_ptr<SocketIntroducer> introducer_;  // null if another space has arranged the session
  std::thread::id served_by_;                     // protected by the space's lock
  std::atomic<bool> unsent_{false};
  std::size_t received_ = 0;  // in bytes; used by the link's thread only
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::wire
