// Makes sessions between spaces that did not know each other, in a space that knows both (WIRE.md
// 7.5). That space makes a socket pair, and sends one socket to each of the two. This file needs
// POSIX.
//
//   A ──INTRODUCE + descriptor──► B        A sends B a value that contains an end whose home is C
//   └──INTRODUCE + descriptor──► C         B and C have a session now; A's part has ended
//
// No object of the program owns such a session. The session ends with its peer, or when the program
// destroys the last of the links that the program made itself.
//
// Invariants (the space's lock)
//  1 `running_` counts the links of these sessions. A link over a stream is owned by the link's
//    thread, a link in shared memory by the attendant.
//  2 After the last user has called leave(), no more sessions are accepted.
#pragma once
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>

#include "space.hpp"

namespace weft::inline WEFT_ABI::wire {

class SocketIntroducer final : public Introducer,
                               public std::enable_shared_from_this<SocketIntroducer> {
 public:
  // Makes a link of a socket to a space that is known already. The link exists until its session
  // has ended, and then calls ended(). Called in a step.
  using Make = std::weak_ptr<Peer> (*)(SocketIntroducer&, Space&, int socket,
                                       std::uint64_t incarnation, std::uint32_t largest);

  bool introduce(Peer& a, Peer& b) override {
    if (!a.link || !b.link || !a.link->passes() || !b.link->passes()) return false;
    const bool shared = a.link->shared() && b.link->shared();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
    const auto tell = [shared](Peer& to, const Peer& of, int socket) {
      ::fcntl(socket, F_SETFD, FD_CLOEXEC);
      to.link->pass(socket);
      to.session.send(Frame{Kind::introduce,
                            0,
                            shared ? 1u : 0u,
                            0,
                            of.session.theirs().incarnation,
                            of.session.theirs().largest,
                            {}});
    };
    tell(a, b, ends[0]);
    tell(b, a, ends[1]);
    return true;
  }
  const char* introduced(Peer& by, const Frame& f) override {
    const int socket = by.link ? by.link->passed() : -1;
    if (socket < 0) return "an INTRODUCE without its descriptor";
    const Make make = f.where <= 1 ? make_[f.where] : nullptr;
    const bool wrong = !make || f.op == 0 || f.op == by.space->greeting().incarnation ||
                       f.val < kSmallest || f.val > kLargest || f.val % 8 != 0;
    const Peer* const known = by.space->session_with(f.op);
    if (wrong || users_ == 0 || (known && known->session.state() == Session::State::open)) {
      ::close(socket);
      return wrong ? "an INTRODUCE that does not say to whom" : nullptr;
    }
    std::erase_if(peers_, [](const std::weak_ptr<Peer>& p) { return p.expired(); });
    ++running_;
    try {
      peers_.push_back(make(*this, *by.space, socket, f.op, static_cast<std::uint32_t>(f.val)));
      // No descriptor is left, so ends that are sent to that program will not find their home.
    } catch (const BadUse&) {
      ended();
    }
    return nullptr;
  }

  // Returns the introducer of the space, and counts one more link that the program has made.
  // Sessions over shared memory are possible once a link has passed `shared`.
  static std::shared_ptr<SocketIntroducer> of(Space& s, Make stream, Make shared = nullptr) {
    const Space::Step step(s);
    auto i = std::dynamic_pointer_cast<SocketIntroducer>(s.introducer.lock());
    if (!i) s.introducer = i = std::make_shared<SocketIntroducer>();
    i->make_[0] = stream;
    if (shared) i->make_[1] = shared;
    ++i->users_;
    return i;
  }
  // Called when a link is destroyed. Returns true if that link was the last one: then introduced
  // sessions end, and the caller must call wait().
  bool leave(Space& s) {
    const Space::Step step(s);
    if (--users_ > 0) return false;
    for (const auto& weak : std::exchange(peers_, {}))
      if (const auto p = weak.lock()) p->session.bye("this program has closed the session");
    return true;
  }
  // Waits until the introduced sessions have ended. Must not be called in a step.
  void wait() const noexcept {
    for (int n; (n = running_.load()) > 0;) running_.wait(n);
  }
  void ended() noexcept {
    --running_;
    running_.notify_all();
  }

 private:
  // The functions that make a link: over a stream, and over shared memory.
  Make make_[2] = {nullptr, nullptr};
  int users_ = 0;
  std::atomic<int> running_{0};
  std::vector<std::weak_ptr<Peer>> peers_;
};

}  // namespace weft::inline WEFT_ABI::wire
