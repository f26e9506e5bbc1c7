// Links for networks in several programs: over a serial line (WIRE-LINKS.md 12.6) that loses
// nothing; over a lossy line on which three packets in eight are lost, doubled, spoilt, or
// overtaken by the next (13); and over TCP on loopback.
//
// None of these links passes descriptors, so they introduce no two programs to each other (7.5).
// placed.hpp describes the consequences.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <thread>

#include <weft/wire/serial.hpp>

#include "../random.hpp"

namespace twin {

namespace w = weft::wire;

// There is no lease: when a peer has ended, the line closes, however busy the machine is.
inline constexpr w::LineOptions kLine{.window = 8, .most = 512, .again_ms = 10, .lease_ms = 0};

class OverLine {
 public:
  OverLine(const std::shared_ptr<w::Space>& space, int socket) : link_(space, socket, kLine) {}
  operator w::LinkBase&() { return link_; }

 private:
  w::SerialLink link_;
};

// Stands between the link's side and the line. The object cuts the link's output into packets at
// the zero bytes, and spoils a packet now and then. Input is passed on as it is, because the peer's
// object has already cut and spoilt the input.
class Accidents {
 public:
  // Takes ownership of `line`. inner() is the link's side, of which the link takes ownership.
  Accidents(int line, std::uint64_t seed) : line_(line), dice_(seed) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("no descriptor is left");
    inner_ = ends[0], mine_ = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  Accidents(const Accidents&) = delete;
  Accidents& operator=(const Accidents&) = delete;
  ~Accidents() {
    thread_.join();  // The link has closed its side.
    ::close(mine_), ::close(line_);
  }
  int inner() const noexcept { return inner_; }

 private:
  static constexpr int kPatience = 5;  // in ms: how long a packet waits for another to overtake it

  void serve() {
    w::Buffer room(4096);
    bool hears = true;
    for (;;) {
      pollfd fds[] = {{mine_, POLLIN, 0}, {hears ? line_ : -1, POLLIN, 0}};
      const int n = ::poll(fds, 2, behind_.empty() ? -1 : kPatience);
      if (n < 0) continue;
      if (n == 0) send(std::exchange(behind_, {}));
      if (fds[0].revents) {
        const ssize_t got = ::read(mine_, room.data(), room.size());
        if (got <= 0) break;
        said(w::Bytes(room).first(static_cast<std::size_t>(got)));
      }
      if (hears && fds[1].revents) {
        const ssize_t got = ::read(line_, room.data(), room.size());
        hears = got > 0;
        if (hears)
          pass(mine_, w::Bytes(room).first(static_cast<std::size_t>(got)));
        else
          ::shutdown(mine_, SHUT_WR);
      }
    }
    send(std::exchange(behind_, {}));
    ::shutdown(line_, SHUT_RDWR);
  }
  void said(w::Bytes bytes) {
    for (const std::byte b : bytes) {
      packet_.push_back(b);
      if (b == std::byte{0}) goes(std::exchange(packet_, {}));
    }
  }
  void goes(w::Buffer packet) {
    switch (dice_.below(16)) {
      case 0:
      case 1: return;  // The packet is dropped.
      case 2: send(packet); break;
      case 3: {
        const int at = dice_.below(static_cast<int>(packet.size()));
        packet[static_cast<std::size_t>(at)] ^= std::byte{4};
        break;
      }
      case 4:
      case 5: std::swap(packet, behind_); break;  // The next packet overtakes this one.
      default: break;
    }
    send(packet);
  }
  void send(const w::Buffer& packet) { pass(line_, packet); }
  static void pass(int to, w::Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // The line has closed, which the next read notices.
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  const int line_;
  weft::test::Random dice_;  // dice_ and the fields below are used by the thread only
  int inner_ = -1, mine_ = -1;
  w::Buffer packet_, behind_;
  std::thread thread_;
};

class OverLossyLine {
 public:
  static inline std::uint64_t seed = 0;  // the seed of the next line that this program makes
  OverLossyLine(const std::shared_ptr<w::Space>& space, int socket)
      : accidents_(socket, seed++), link_(space, accidents_.inner(), kLine) {}
  operator w::LinkBase&() { return link_; }

 private:
  Accidents accidents_;
  w::SerialLink link_;
};

// `socket` leads to the peer; over this socket the two programs agree on where to meet.
class OverTcp {
 public:
  static inline bool listens = false;  // whether the links of this program listen
  OverTcp(const std::shared_ptr<w::Space>& space, int socket) : link_(space, connection(socket)) {}
  operator w::LinkBase&() { return link_; }

 private:
  static int checked(int result) {
    if (result < 0) throw std::runtime_error("no connection over TCP on loopback");
    return result;
  }
  static int connection(int socket) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    int tcp = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listens) {
      checked(::bind(tcp, address, size));
      checked(::listen(tcp, 1));
      checked(::getsockname(tcp, address, &size));
      checked(static_cast<int>(::send(socket, &at.sin_port, sizeof(at.sin_port), MSG_NOSIGNAL)));
      const int one = checked(::accept4(tcp, nullptr, nullptr, SOCK_CLOEXEC));
      ::close(std::exchange(tcp, one));
    } else {
      if (::recv(socket, &at.sin_port, sizeof(at.sin_port), MSG_WAITALL) != sizeof(at.sin_port))
        checked(-1);
      checked(::connect(tcp, address, size));
    }
    ::close(socket);
    const int on = 1;  // without TCP_NODELAY a frame waits until the last frame is acknowledged
    checked(::setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
    return tcp;
  }
  w::StreamLink link_;
};

// Whether links of type L make sessions between two other programs.
template <class L>
inline constexpr bool kIntroduces = std::is_base_of_v<w::LinkBase, L>;

}  // namespace twin
