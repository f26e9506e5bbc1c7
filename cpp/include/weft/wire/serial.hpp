// A link over a serial line: a UART, USB that behaves as a UART, a pseudo-terminal, TCP
// (WIRE-LINKS.md 12.6). The peer is usually a board of the small profile. This file needs POSIX.
//
//   auto space = wire::Space::make("main");
//   wire::SerialLink board(space, wire::open_line("/dev/ttyACM0", 115200));
//   board.give(leds.reader(), "leds");
//   board.give(button.writer(), "button");      // before or after the board is connected
//
// A link has one session. The session ends when the line ends, when the board restarts, or when
// nothing has arrived from the board for the time of the lease; after that a new link can be made
// over the line. One native thread reads, and does the work that is due at a certain time. A thread
// that has something to send writes to the line itself.
//
//   session ──frames──► compact.hpp ──► line.hpp: packets, sent again ──► the line
//
// Invariants (the space's lock)
//  1 Only the link's thread reads; only a thread in a step sends, and uses line_ and the members
//    around it.
//  2 Once the session has ended, the link's thread stays until everything that was queued is
//    acknowledged, but for at most three times the interval of repetitions, so that BYE arrives.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <thread>

#include "compact.hpp"
#include "line.hpp"
#include "link_base.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {
inline speed_t speed_of(unsigned baud) noexcept {
  static constexpr struct {
    unsigned baud;
    speed_t speed;
  } kSpeeds[] = {{9600, B9600},     {19200, B19200},   {38400, B38400},   {57600, B57600},
                 {115200, B115200}, {230400, B230400}, {460800, B460800}, {921600, B921600}};
  for (const auto& s : kSpeeds)
    if (s.baud == baud) return s.speed;
  return B0;
}
}  // namespace detail

// Sets a terminal to pass bytes unchanged: raw, 8 bits, no flow control. Does nothing if fd is not
// a terminal. `baud` is in bits per second; 0 leaves the speed unchanged. Throws BadUse for a speed
// that the terminal does not have.
inline void make_line(int fd, unsigned baud) {
  termios t{};
  if (::tcgetattr(fd, &t) != 0) return;
  ::cfmakeraw(&t);
  t.c_cflag |= CLOCAL | CREAD;
  t.c_cc[VMIN] = 1;
  t.c_cc[VTIME] = 0;
  if (baud != 0) {
    const speed_t s = detail::speed_of(baud);
    if (s == B0 || ::cfsetspeed(&t, s) != 0)
      weft::detail::bad_use("a serial line cannot have a speed of " + std::to_string(baud) +
                            " baud: 9600, 19200, 38400, 57600, 115200, 230400, 460800 or 921600");
  }
  if (::tcsetattr(fd, TCSANOW, &t) != 0)
    weft::detail::bad_use(std::string("the line cannot be set up: ") + std::strerror(errno));
}
// Opens a line at `baud` bits per second, and returns its descriptor. Throws BadUse if the line
// cannot be opened.
inline int open_line(const std::string& path, unsigned baud = 115200) {
  const int fd = ::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    weft::detail::bad_use("the line " + path + " cannot be opened: " + std::strerror(errno));
  try {
    make_line(fd, baud);
  } catch (...) {
    ::close(fd);
    throw;
  }
  return fd;
}

class SerialLink final : public LinkBase {
 public:
  // Takes ownership of the line, which make_line() or open_line() has set up. Throws BadUse if
  // `line` is not a line.
  SerialLink(const std::shared_ptr<Space>& space, int line, const LineOptions& o = {})
      : LinkBase(space),
        fd_(line),
        most_(o.most),
        linger_ms_(3 * std::int64_t{o.again_ms}),
        line_(gentle(o)) {
    if (::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK) != 0 || ::pipe(bell_) != 0) {
      ::close(fd_);
      weft::detail::bad_use(
          "SerialLink: the descriptor is not of a serial line, or no more descriptors are left");
    }
    for (const int fd : bell_) {
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    begin();
    thread_ = std::thread([this] { serve(); });
  }
  // Ends the session. The ends that the peer still holds through the session die.
  ~SerialLink() {
    leave("this program has closed the session");
    join();
    end();
    for (const int fd : {fd_, bell_[0], bell_[1]}) ::close(fd);
  }

  // leave() and join() are the two halves of the destructor, as for StreamLink.
  void leave(const std::string& why) { bye(why); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static std::uint32_t token() {
    const std::uint64_t n = Space::random();
    const auto low = static_cast<std::uint32_t>(n ^ n >> 32);
    return low == 0 ? 1 : low;
  }
  // Rounds a time up so that the first bytes on the line stop no board (WIRE-LINKS.md 12.6). COBS
  // writes a 3 before two bytes between zeros, so no time may have two such bytes.
  static std::uint32_t gentle(std::uint32_t ms) noexcept {
    if (ms > 0xFFFF) return ms | 1;
    const std::uint32_t up = (ms + 255) & ~255u;
    return ms < 256 ? ms : up == 0x300 ? 0x400 : up;
  }
  static detail::Line gentle(LineOptions o) {
    o.lease_ms = gentle(o.lease_ms);
    o.again_ms = gentle(o.again_ms);
    for (int tries = 0;; ++tries) {
      detail::Line line(o, token());
      if (tries == 100 || line.is_gentle()) return line;
    }
  }
  static std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void flush() noexcept override {
    pump();
    // ring() wakes the link's thread, which must now wait for something else.
    if (std::this_thread::get_id() != thread_id_) ring();
  }
  void ring() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // The pipe is full: the thread has been woken.
  }

  // Puts frames into packets, and sends as many packets as the line accepts.
  void pump() noexcept {
    Session& s = peer_->session;
    for (;;) {
      while (line_.linked() && compact_.size() < most_ && !s.output().empty()) {
        const std::size_t n = detail::get<std::uint16_t>(s.output().data());
        detail::narrow(s.output().first(n), compact_);
        s.went(n);
      }
      const std::size_t took = line_.queue(compact_);
      compact_.erase(compact_.begin(), compact_.begin() + static_cast<std::ptrdiff_t>(took));
      if (took == 0) break;
    }
    if (out_.empty()) line_.output(now(), out_);
    while (!out_.empty()) {
      // A line can be a socket. The flag makes send() raise no signal if that socket is closed.
      ssize_t n = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == ENOTSOCK) n = ::write(fd_, out_.data(), out_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;  // The line is full or broken: the reading thread will see why.
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }

  void serve() {
    thread_id_ = std::this_thread::get_id();
    Buffer room(4096), session, frames;
    std::int64_t until = detail::Line::kNever;
    for (;;) {
      bool writing;
      std::int64_t due;
      {
        const Served served;
        const Space::Step step(*peer_->space);
        pump();
        if (peer_->session.is_over()) {
          if (until == detail::Line::kNever) until = now() + linger_ms_;
          const bool sent = peer_->session.output().empty() && compact_.empty() &&
                            line_.settled() && out_.empty();
          if (sent || !line_.linked() || broken_ || now() >= until) break;
        }
        writing = !out_.empty();
        due = std::min(line_.due(), until);
      }
      const std::int64_t wait =
          due == detail::Line::kNever ? -1 : std::clamp<std::int64_t>(due - now(), 0, 3'600'000);
      // While the line accepts nothing, work that is due waits for the line, except for the end of
      // the lease.
      pollfd fds[] = {{fd_, static_cast<short>(POLLIN | (writing ? POLLOUT : 0)), 0},
                      {bell_[0], POLLIN, 0}};
      if (::poll(fds, 2,
                 static_cast<int>(writing && wait >= 0 ? std::max<std::int64_t>(wait, 10) : wait)) <
          0)
        continue;
      if (fds[1].revents)
        while (::read(bell_[0], room.data(), room.size()) > 0) {
        }
      const ssize_t n = fds[0].revents & ~POLLOUT ? ::read(fd_, room.data(), room.size()) : -2;
      // The line might be a socket, and its peer might have closed it without reading everything.
      // Then the first read() fails with ECONNRESET, and only later calls return what the peer sent
      // last.
      const bool nothing =
          n == -2 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
                                (errno == ECONNRESET && !std::exchange(reset_, true))));
      const int error = errno;
      const Served served;
      const Space::Step step(*peer_->space);  // When the step ends, the queued frames are sent.
      if (n > 0) {
        session.clear();
        frames.clear();
        line_.input(Bytes(room).first(static_cast<std::size_t>(n)), now(), session);
        const char* const wrong = widener_.input(session, frames);
        peer_->session.input(frames);
        if (wrong) peer_->session.bye(wrong);
      } else if (!nothing) {
        broken_ = true;
        peer_->session.lost(n == 0 ? "its line was closed"
                                   : std::string("its line failed: ") + std::strerror(error));
      }
      line_.passed(now());
      if (line_.lost()) peer_->session.lost(line_.lost());
    }
    if (around_steps) around_steps->end();
  }

  const int fd_;
  const std::size_t most_;
  const std::int64_t linger_ms_;
  int bell_[2] = {-1, -1};
  detail::Line line_;
  detail::Widener widener_;
  // Compact frames that are not queued yet; bytes that are not on the line yet.
  Buffer compact_, out_;
  bool broken_ = false, reset_ = false;
  std::atomic<std::thread::id> thread_id_{};
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::wire
