// A link in shared memory, between programs of one machine (WIRE.md 12.4). Linux 5.16.
//
//   auto space = wire::Space::make("main");
//   wire::ShmLink child(space, fd);                           // the rest as with a StreamLink
//
// Each side makes a segment with the ring that it writes, and a page with its life word, and passes both over the socket, a Unix socket,
// which after that only tells of the end. Whoever waits serves (attendant.hpp).
//
//   made ──the peer's descriptors have come, and are good──► open ──either session is over, the peer is gone──► over
//     └──────they are not: the session is lost────────────────────────────────────────────────────────────────►┘
//
// Invariants (the space's lock)
//  1 The rings are written and read in steps only. Ours is written from the start: the peer finds it when its hand-shake is over.
//  2 What the peer has published before its end is taken in before the end.
#pragma once
#include "attendant.hpp"
#include "joint.hpp"

namespace weft::inline WEFT_ABI::wire {

class ShmLink final : public Joint, private Attended {
 public:
  static constexpr std::uint32_t kRing = 1 << 16;  // bytes each way

  // Takes over the socket, a Unix one. Throws BadUse if it is none, there is no memory for the segment, or the system is too old.
  ShmLink(const std::shared_ptr<Space>& space, int fd) : Joint(std::make_shared<Peer>(*space)), socket_(fd) {
    socket = fd;
    int domain = -1;
    socklen_t size = sizeof(domain);
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX)
      weft::detail::bad_use("ShmLink: that is no Unix socket");
    std::array<Descriptor, 2> passed;
    mine_ = Segment::make(kSegment, Segment::Peers::write, passed[0]);
    life_.make(passed[1]);
    Direction* const d = ::new (static_cast<void*>(mine_.data())) Direction;
    outlet.open(*d, mine_.data() + kPage, kRing);
    attendant_ = Attendant::get();
    attendant_->begin(life_);
    const Hello hello;
    const std::array<int, 2> fds{passed[0].get(), passed[1].get()};
    if (!send_descriptors(fd, std::as_bytes(std::span(&hello, 1)), fds)) {
      if (errno == EPIPE || errno == ECONNRESET) {  // it is gone already: that is told as any other end
      } else {
        attendant_->leave(*this, life_);
        weft::detail::bad_use("ShmLink: that is no Unix socket, or it takes nothing");
      }
    }
    begin();
    attendant_->enter(*this);
  }
  // Ends the session: ends that are still held died.
  ~ShmLink() {
    bye("the space has let go of the session");
    end();
    attendant_->leave(*this, life_);
  }

 private:
  static constexpr std::size_t kPage = 4096, kSegment = kPage + kRing;
  static_assert(sizeof(Direction) <= kPage);
  struct Hello {
    std::uint64_t magic = 0x314D485354464557;  // "WEFTSHM1"
    std::uint64_t ring = kRing;
  };

  void flush() noexcept override {
    Session& s = peer_->session;
    bool any = false;
    while (!s.output().empty()) {
      const std::size_t n = outlet.put(s.output());
      if (n == kBroken) s.lost("the peer has written nonsense into the ring");
      if (n == kBroken || n == 0) break;
      s.went(n);
      any = true;
    }
    waits_for_room.store(!s.output().empty() && !s.is_over(), std::memory_order_relaxed);
    const bool hurries = s.hurries();
    if (any) attendant_->knock(*this, hurries);
    if (s.is_over() && !std::exchange(shut_, true)) ::shutdown(socket, SHUT_RDWR);
  }

  void take() noexcept override {
    thread_local Buffer room(kRing);
    const Space::Step step(*peer_->space);  // at its end what waits is sent
    take_some(room);
  }
  void take_some(Buffer& room) noexcept {
    bool starved = false;
    if (inlet.direction().urgent.load(std::memory_order_relaxed) != 0) inlet.direction().urgent.store(0, std::memory_order_seq_cst);
    const std::size_t n = inlet.take(room, starved);
    if (n == kBroken) {
      peer_->session.bye("the peer has written nonsense into the ring");
      inlet.skip();
      return;
    }
    peer_->session.input(Bytes(room).first(n));
    if (starved) attendant_->knock(*this, true);
  }

  void readable() noexcept override {
    if (open) {
      std::byte none[64];
      const ssize_t n = ::recv(socket, none, sizeof(none), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) gone("its socket was closed");
      return;
    }
    std::vector<Descriptor> fds;
    Hello hello{0, 0};
    const ssize_t n = receive_descriptors(socket, std::as_writable_bytes(std::span(&hello, 1)), fds);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const char* wrong = n == 0 ? "its socket was closed" : n < 0 ? "its socket failed" : hand_shake(n, hello, fds);
    if (wrong)
      refuse(wrong);
    else
      attendant_->opened(*this);
  }
  const char* hand_shake(ssize_t n, const Hello& hello, const std::vector<Descriptor>& fds) noexcept {
    if (n != sizeof(Hello) || hello.magic != Hello{}.magic) return "the peer does not speak over shared memory, or in another version";
    if (hello.ring != kRing) return "the peer's ring is of another size";
    if (fds.size() != 2) return "the peer has not passed its two descriptors";
    if (const char* wrong = Segment::map(fds[0], kSegment, Segment::Peers::write, theirs_)) return wrong;
    if (const char* wrong = Segment::map(fds[1], Life::kSize, Segment::Peers::read, their_life_)) return wrong;
    inlet.open(*reinterpret_cast<Direction*>(theirs_.data()), theirs_.data() + kPage, kRing);
    life.store(reinterpret_cast<prim::atomic<std::uint32_t>*>(their_life_.data()));
    return nullptr;
  }
  void refuse(const char* wrong) noexcept {
    watched = false;
    const Space::Step step(*peer_->space);
    peer_->session.lost(wrong);
  }
  void gone(const char* how) noexcept override {
    watched = false;
    life.store(nullptr);
    Buffer room(kRing);
    const Space::Step step(*peer_->space);
    take_some(room);  // a whole ring: all that it has published
    peer_->session.lost(how);
  }

  const Descriptor socket_;
  Segment mine_, theirs_, their_life_;
  Life life_;
  bool shut_ = false;
  std::shared_ptr<Attendant> attendant_;
};

}  // namespace weft::inline WEFT_ABI::wire
