// A link over a stream socket: a Unix socket pair, a Unix socket, TCP on loopback (WIRE.md 12). Deliberately simple. POSIX.
//
//   auto space = wire::Space::make("main");
//   wire::StreamLink child(space, fd);
//   child.give(numbers.reader(), "numbers");
//   wire::FarWriter<int> w = child.writer<int>("squares");   // waits until the peer has handed it out
//
// One native thread reads; who has something to say sends it himself, and the thread sends what the socket did not take. A session's end
// closes the socket; a peer that is killed is noticed by end-of-file.
//
// Invariants (the space's lock)
//  1 Only the thread reads; only one who is in a step sends.
//  2 From the session's end on nothing is sent but what was queued before it, as far as the socket takes it at once.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <thread>

#include "../runtime/outside.hpp"
#include "ends.hpp"

namespace weft::inline WEFT_ABI::wire {

class StreamLink final : private Link {
 public:
  // Takes over the socket. Throws BadUse if it is none.
  StreamLink(const std::shared_ptr<Space>& space, int socket) : peer_(std::make_shared<Peer>(*space)), socket_(socket) {
    if (::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK) != 0 || ::pipe(bell_) != 0) {
      ::close(socket_);
      weft::detail::bad_use("StreamLink: that is no socket, or no descriptor is left");
    }
    for (const int fd : bell_) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    {
      const Space::Step step(*peer_->space);
      peer_->link = this;
      peer_->listener = this;
      peer_->news = [](Peer& p) noexcept {
        auto& me = *static_cast<StreamLink*>(p.listener);
        me.news_.fetch_add(1);
        me.news_.notify_all();
      };
      peer_->session.greet();
    }
    thread_ = std::thread([this] { serve(); });
  }
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;
  // Ends the session: ends that are still held died.
  ~StreamLink() {
    bye("the space has let go of the session");
    thread_.join();
    {
      const Space::Step step(*peer_->space);
      peer_->link = nullptr;
      peer_->news = nullptr;
    }
    for (const int fd : {socket_, bell_[0], bell_[1]}) ::close(fd);
  }

  // Hands an end of a channel that was made here to the peer, by this name. Throws BadUse if it is closed, or its type is too big.
  template <class T>
  void give(Reader<T> e, const std::string& name, std::uint64_t capacity = 0) {
    give_port<T, core::Side::in>(std::move(e), name, capacity);
  }
  template <class T>
  void give(Writer<T> e, const std::string& name, std::uint64_t capacity = 0) {
    give_port<T, core::Side::out>(std::move(e), name, capacity);
  }

  // The end that the peer has handed to us, or will, by this name. Waits for it. Throws BadUse if it is of another type or side, or taken;
  // PeerDied if the session ends first.
  template <class T>
  FarReader<T> reader(const std::string& name) {
    return FarReader<T>(end_named(name, false, Value<T>::type()));
  }
  template <class T>
  FarWriter<T> writer(const std::string& name) {
    return FarWriter<T>(end_named(name, true, Value<T>::type()));
  }

  // Waits until the session is over: why it is.
  std::string wait() {
    std::string why;
    until([&] {
      const Space::Step step(*peer_->space);
      why = peer_->session.why();
      return peer_->session.is_over();
    });
    return why;
  }
  void bye(const std::string& why) {
    const Space::Step step(*peer_->space);
    peer_->session.bye(why);
  }

 private:
  template <class T, core::Side S, class E>
  void give_port(E e, const std::string& name, std::uint64_t capacity) {
    if constexpr (kFixed<T>) static_assert(kHeader + padded(sizeof(T)) <= kLargest, "a value of this type fits into no frame");
    if (name.size() > 150 || name.find('\0') != std::string::npos)
      weft::detail::bad_use("give: a name of at most 150 bytes, none of them zero");
    auto port = std::make_shared<PortOf<T, S>>(std::move(e));
    const Space::Step step(*peer_->space);
    peer_->home.give(std::move(port), Value<T>::type(), name, capacity);
  }

  std::shared_ptr<FarEnd> end_named(const std::string& name, bool writes, const std::string& type) {
    std::shared_ptr<FarEnd> end;
    std::string wrong, over;
    const auto look = [&] {
      const Space::Step step(*peer_->space);
      for (Peer::Offered& o : peer_->offered) {
        if (o.name != name) continue;
        if (o.taken)
          wrong = "is taken already";
        else if (o.writes != writes)
          wrong = o.writes ? "is a writer end" : "is a reader end";
        else if (o.type != type)
          wrong = "is of type " + o.type + ", and " + type + " was asked for";
        else
          o.taken = true, end = std::make_shared<FarEnd>(peer_, o);
        return true;
      }
      over = peer_->session.why();
      return peer_->session.is_over();
    };
    until(look);
    if (!wrong.empty()) weft::detail::bad_use("the end '" + name + "' that the peer has handed to us " + wrong);
    if (!end) throw PeerDied("the session ended before the peer had handed out '" + name + "' (" + over + ")", -1);
    return end;
  }

  void flush() noexcept override {
    while (!peer_->session.output().empty()) {
      const Bytes out = peer_->session.output();
      const ssize_t n = ::send(socket_, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (n < 0) return ring();  // the thread will see why
      peer_->session.went(static_cast<std::size_t>(n));
    }
    if (!peer_->session.output().empty() || peer_->session.is_over()) ring();
  }
  void ring() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // it is full: the thread is rung already
  }

  void serve() {
    Buffer room(std::size_t{1} << 16);
    for (;;) {
      bool sending;
      {
        const Space::Step step(*peer_->space);
        if (peer_->session.is_over()) break;
        sending = !peer_->session.output().empty();
      }
      pollfd fds[] = {{socket_, static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0}, {bell_[0], POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents)
        while (::read(bell_[0], room.data(), room.size()) > 0) {
        }
      if (!fds[0].revents) continue;
      const ssize_t n = ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
      const bool nothing = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      const int error = errno;
      const Space::Step step(*peer_->space);  // at its end what waits is sent
      if (n > 0)
        peer_->session.input(Bytes(room).first(static_cast<std::size_t>(n)));
      else if (n == 0)
        peer_->session.lost("its socket was closed");
      else if (!nothing)
        peer_->session.lost(std::string("its socket failed: ") + std::strerror(error));
    }
    ::shutdown(socket_, SHUT_RDWR);
  }
  // Until it is so: looked at again with each news.
  template <class F>
  void until(F&& so) {
    for (;;) {
      const std::uint32_t seen = news_.load();
      if (so()) return;
      news_.wait(seen);
    }
  }

  const std::shared_ptr<Peer> peer_;
  const int socket_;
  int bell_[2] = {-1, -1};
  const Outside outside_{Outside::due};  // who waits for an answer waits for something outside (rule 10.3)
  std::atomic<std::uint32_t> news_{0};   // counts: an end was handed to us, the session is over
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::wire
