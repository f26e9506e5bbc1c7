// A session over a connection between machines (WIRE-NETWORKS.md 17.13). The bytes of the session
// are sent in pieces, through TLS.
//
//   Link(space, connection, host)  ──bye(), BYE, the connection ends──► ended: sends what is
//   queued, then an empty piece; reads until the peer has sent its own, for kLast ──► closed
//
// One native thread, the link's thread, reads. Any thread that has bytes to send sends them itself;
// the link's thread sends what the socket did not accept at once.
//
// Invariants (the space's lock)
//  1 Only a thread in a step uses the TLS object, until the session has ended and the link is not
//    flushed any more. From then on only the link's thread uses it.
//  2 `out_` is one piece, preceded by its length. The next piece is taken when that piece has been
//    sent. So at most one piece waits outside the session's own queue.
#pragma once
#include "../wire/link_base.hpp"
#include "tls.hpp"

namespace weft::inline WEFT_ABI::net::detail {

// The maximum size of one piece in bytes.
inline constexpr std::size_t kPiece = std::size_t{1} << 18;

// Separates received bytes into pieces; each piece is preceded by its length.
class Pieces {
 public:
  // Passes the contents of the pieces to `take`. Returns false when the peer has ended, or sends
  // invalid pieces; why() gives the reason.
  template <class F>
  bool input(wire::Bytes in, F&& take) {
    while (!in.empty()) {
      if (left_ == 0) {  // the bytes of the next piece's length
        head_ |= std::to_integer<std::uint32_t>(in[0]) << (8 * heads_);
        in = in.subspan(1);
        if (++heads_ < 4) continue;
        left_ = std::exchange(head_, 0);
        heads_ = 0;
        if (left_ == 0 || left_ > kPiece) {
          why_ = left_ ? "a piece of a message is longer than is allowed"
                       : "its connection was closed";
          return false;
        }
        continue;
      }
      const auto n = std::min<std::size_t>(left_, in.size());
      take(in.first(n));
      left_ -= static_cast<std::uint32_t>(n);
      in = in.subspan(n);
    }
    return true;
  }
  const char* why() const noexcept { return why_; }

 private:
  std::uint32_t left_ = 0, head_ = 0;
  unsigned heads_ = 0;
  const char* why_ = nullptr;
};

class Link final : public wire::LinkBase {
 public:
  Link(const std::shared_ptr<wire::Space>& space, Connection c, std::string who)
      : LinkBase(space), host(std::move(who)) {
    std::tie(socket_, ssl_) = c.release();
    if (::pipe2(bell_, O_NONBLOCK | O_CLOEXEC) != 0) {
      SSL_free(ssl_);
      ::close(socket_);
      bad("no descriptor is left for a session");
    }
    peer_->session.may_lend();
    begin();
    thread_ = std::thread([this] { serve(); });
  }
  // Ends the session. The ends that other programs still hold through the session die.
  ~Link() {
    bye("the other program has closed the session");
    thread_.join();
    end();
    SSL_free(ssl_);
    for (const int fd : {socket_, bell_[0], bell_[1]}) ::close(fd);
  }
  bool closed() const noexcept { return closed_.load(); }

  // Waits for an end that the peer gives under a name that begins with `name` and a space. Removes
  // that beginning, and returns the rest, by which the end is found from then on. Throws PeerDied
  // if the session ended first, and BadUse if it ended because the programs share no version of the
  // protocol.
  std::string given(const std::string& name) {
    for (;;) {
      const std::uint32_t seen = news();
      {
        const wire::Space::Step step(*peer_->space);
        for (auto& o : peer_->offered)
          if (o.name.compare(0, name.size() + 1, name + " ") == 0)
            return o.name.erase(0, name.size() + 1);
        if (peer_->session.is_over()) {
          const std::string& why = peer_->session.why();
          if (why.find("no common version") != std::string::npos)
            throw BadUse(host + " has another version of Weft (" + why +
                         "): install the same version on both machines");
          throw PeerDied("the session with " + host + " ended before it had given '" + name +
                             "' (" + why + ")",
                         -1);
        }
      }
      wait_for_news(seen);
    }
  }

  const std::string host;  // the name that the other program has given itself

 private:
  static constexpr std::chrono::seconds kLast{10}, kOther{5};

  void flush() noexcept override {
    if (closing_) return;
    if (!send() || peer_->session.is_over()) ring();
  }
  void ring() noexcept {
    const char one = 1;
    if (::write(bell_[1], &one, 1) < 0) return;  // A full pipe: the thread is already woken.
  }

  // Sends the queued bytes. Called in a step. Returns false if some are left, or the connection has
  // failed.
  bool send() noexcept {
    for (;;) {
      if (at_ == out_.size()) {
        if (peer_->session.queued() == 0) return true;
        next_piece();
      }
      if (!push()) return false;
    }
  }
  // Makes the next piece from the session's queue. Returns its length; 0 for an empty piece.
  std::size_t next_piece() {
    const std::size_t n = std::min(peer_->session.queued(), kPiece);
    out_.resize(4 + n);
    at_ = 0;
    for (unsigned i = 0; i < 4; ++i) out_[i] = std::byte(n >> (8 * i));
    peer_->session.copy_to(out_.data() + 4, n);
    peer_->session.went(n);
    return n;
  }
  // Sends as much of the piece as the socket accepts. Returns false if a part is left.
  bool push() noexcept {
    while (at_ < out_.size()) {
      ERR_clear_error();
      const int n = SSL_write(ssl_, out_.data() + at_, static_cast<int>(out_.size() - at_));
      if (n <= 0) {
        const int how = SSL_get_error(ssl_, n);
        broken_ = broken_ || (how != SSL_ERROR_WANT_WRITE && how != SSL_ERROR_WANT_READ);
        return false;
      }
      at_ += static_cast<std::size_t>(n);
    }
    return true;
  }

  // Receives what TLS has, at most kPiece. Returns false if the peer has sent its last piece, or
  // the connection has ended.
  template <class F>
  bool receive(F&& take) {
    for (std::size_t got = 0; got < kPiece;) {
      ERR_clear_error();
      const int n = SSL_read(ssl_, room_.data(), static_cast<int>(room_.size()));
      if (n <= 0) {
        const int how = SSL_get_error(ssl_, n);
        if (how == SSL_ERROR_WANT_READ || how == SSL_ERROR_WANT_WRITE) return true;
        why_ = "its connection ended";
        return false;
      }
      got += static_cast<std::size_t>(n);
      if (!pieces_.input(wire::Bytes(room_).first(static_cast<std::size_t>(n)), take)) {
        why_ = pieces_.why();
        return false;
      }
    }
    return true;
  }
  void serve() {
    bool more = false, heard = false;
    for (;;) {
      bool sending;
      {
        const wire::Served served;
        const wire::Space::Step step(*peer_->space);
        if (peer_->session.is_over()) break;
        sending = at_ < out_.size() || !peer_->session.output().empty();
        more = SSL_pending(ssl_) > 0;
      }
      pollfd fds[] = {{socket_, static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), 0},
                      {bell_[0], POLLIN, 0}};
      if (::poll(fds, 2, more ? 0 : -1) < 0) continue;
      if (fds[1].revents) {
        char rung[64];
        while (::read(bell_[0], rung, sizeof rung) > 0) {
        }
      }
      const wire::Served served;
      // When this step ends, the session's queued bytes are sent, but not the rest of an unfinished
      // piece.
      const wire::Space::Step step(*peer_->space);
      if (at_ < out_.size()) send();
      if (fds[0].revents || more)
        heard = !receive([this](wire::Bytes b) { peer_->session.input(b); });
      if (heard || broken_) peer_->session.lost(why_.empty() ? "its connection failed" : why_);
    }
    {
      const wire::Space::Step step(*peer_->space);
      closing_ = true;
    }
    send_rest_after_end(heard);
    ::shutdown(socket_, SHUT_RDWR);
    closed_ = true;
    if (wire::around_steps) wire::around_steps->end();
  }
  // Sends what is still queued when the session has ended, because the writers of these values have
  // been informed that the write succeeded (WIRE.md 6.2). Called only by the link's thread.
  void send_rest_after_end(bool heard) {
    auto until = Clock::now() + kLast;
    bool last = false;
    while (!broken_) {
      if (at_ == out_.size() && !last) {
        const wire::Space::Step step(*peer_->space);
        last = next_piece() == 0;
      }
      const bool all = push();
      if (all && !last) continue;
      if (all && heard) return;
      if (all) until = std::min(until, Clock::now() + kOther);
      if (!heard && SSL_pending(ssl_) > 0) {
        heard = !receive([](wire::Bytes) {});
        continue;
      }
      const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now());
      pollfd fd{socket_, static_cast<short>((all ? 0 : POLLOUT) | (heard ? 0 : POLLIN)), 0};
      if (left.count() <= 0 || ::poll(&fd, 1, static_cast<int>(left.count())) <= 0) return;
      if (!heard && (fd.revents & (POLLIN | POLLHUP | POLLERR)))
        heard = !receive([](wire::Bytes) {});
      else if (fd.revents & (POLLHUP | POLLERR))
        return;
    }
  }

  int socket_ = -1;
  SSL* ssl_ = nullptr;
  int bell_[2] = {-1, -1};
  wire::Buffer out_;
  std::size_t at_ = 0;
  bool broken_ = false, closing_ = false;
  // The link's thread alone uses the members below:
  wire::Buffer room_ = wire::Buffer(std::size_t{1} << 16);
  Pieces pieces_;
  std::string why_;
  std::atomic<bool> closed_{false};
  std::thread thread_;
};

}  // namespace weft::inline WEFT_ABI::net::detail
