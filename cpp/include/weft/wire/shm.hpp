// A link in shared memory, between programs of one machine (WIRE-LINKS.md 12.4). This file needs
// Linux 5.16.
//
//   auto space = wire::Space::make("main");
//   wire::ShmLink child(space, fd);                           // the rest is as with a StreamLink
//
// Each side makes a segment with the ring that it writes, and a page with its life word, and passes
// both over a Unix socket. After that the socket carries only descriptors, and reports the peer's
// end. A thread that waits serves the link (attendant.hpp).
//
//   made ──the peer's descriptors have arrived, and are good──► open
//     │                                    open ──either session is over, the peer is gone──► over
//     └──they are not good: the session is lost──► over
//
// Invariants (the space's lock)
//  1 The rings are written and read only in steps. This side's ring is written from the start: the
//    peer finds those bytes when its hand-shake is complete.
//  2 What the peer has published before its end is received before the end is handled.
#pragma once
#include "aside.hpp"
#include "attendant.hpp"
#include "introduce.hpp"
#include "link_base.hpp"
#include "stream.hpp"

namespace weft::inline WEFT_ABI::wire {

class ShmLink final : public LinkBase, private Attended {
 public:
  static constexpr std::uint32_t kRing = 1 << 16;  // in bytes, for each direction

  // Takes ownership of the socket, a Unix socket. Throws BadUse if `fd` is not a Unix socket, there
  // is no memory for the segment, or the system is too old.
  ShmLink(const std::shared_ptr<Space>& space, int fd) : ShmLink(space, fd, kLater) { enlist(); }
  // The constructor in two parts, for a caller that owns something that the steps of other threads
  // need (such as a global lock). The caller calls this part while it owns that lock, and enlist()
  // while it does not.
  enum Later { kLater };
  ShmLink(const std::shared_ptr<Space>& space, int fd, Later)
      : ShmLink(std::make_shared<Peer>(detail::space_of(space)), fd) {
    introducer_ = SocketIntroducer::of(*space, &StreamLink::make_introduced, &make_introduced);
  }
  // Starts to serve the link. Throws BadUse if that is not possible; the link cannot be used then.
  void enlist() {
    if (const char* wrong = try_to_enlist())
      weft::detail::bad_use(std::string("ShmLink: ") + wrong);
  }
  // Ends the session. The ends that the peer still holds through the session die.
  ~ShmLink() {
    leave("this program has closed the session");
    join();
  }

  // leave() and join() are the two halves of the destructor, as for StreamLink.
  void leave(const std::string& why) {
    if (!attendant_) return;
    bye(why);
    if (introducer_ && !std::exchange(left_, true)) last_ = introducer_->leave(*peer_->space);
  }
  void join() {
    if (!attendant_) return;
    if (last_) introducer_->wait();
    if (enlisted_) attendant_->leave(*this, life_);
    {
      const Served served;
      end();
    }
    attendant_.reset();
  }

 private:
  static constexpr std::size_t kPage = 4096, kSegment = kPage + kRing;
  static_assert(sizeof(Direction) <= kPage);
  struct Hello {
    std::uint64_t magic = 0x324D485354464557;  // reads "WEFTSHM2" in memory
    std::uint64_t ring = kRing;
  };

  ShmLink(std::shared_ptr<Peer> peer, int fd) : LinkBase(std::move(peer)), socket_(fd) {
    socket = fd;
    int domain = -1;
    socklen_t size = sizeof(domain);
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX)
      weft::detail::bad_use("ShmLink: the descriptor is not of a Unix socket");
    mine_ = Segment::make(kSegment, Segment::Peers::write, for_peer_[0]);
    life_.make(for_peer_[1]);
    Direction* const d = ::new (static_cast<void*>(mine_.data())) Direction;
    outlet.open(*d, mine_.data() + kPage, kRing);
    attendant_ = Attendant::get();
    begin();
  }
  // Sends the hand-shake; from now on the attendant serves the link. Must not be called in a step.
  // Returns null, or a text that says what is wrong.
  const char* try_to_enlist() noexcept {
    const char* const wrong = attendant_->enter(*this, life_);
    if (wrong) return wrong;
    enlisted_ = true;
    const Hello hello;
    const std::array<int, 2> fds{for_peer_[0].get(), for_peer_[1].get()};
    const bool sent = send_descriptors(socket, std::as_bytes(std::span(&hello, 1)), fds);
    // If the peer has ended already, its end is reported when the attendant finds the socket
    // closed.
    if (!sent && errno != EPIPE && errno != ECONNRESET)
      return "the descriptor is not of a Unix socket, or nothing can be sent there";
    for_peer_ = {};
    const Served served;
    const Space::Step step(*peer_->space);
    aside_.begin();
    return nullptr;
  }
  // Makes a link for a session that another space has arranged, in a step of this space. The
  // attendant owns the link, and enlists it when the step has ended.
  static std::weak_ptr<Peer> make_introduced(SocketIntroducer& by, Space& space, int socket,
                                             std::uint64_t incarnation, std::uint32_t largest) {
    auto peer = std::make_shared<Peer>(space);
    peer->session.expect(incarnation, largest);
    std::shared_ptr<ShmLink> link(new ShmLink(peer, socket));
    link->counted_ = by.shared_from_this();
    Attendant& a = *link->attendant_;
    Attended* const as = link.get();
    a.adopt(std::shared_ptr<Attended>(std::move(link), as));
    return peer;
  }
  // Called for an adopted link, on the attendant's thread.
  void adopted() noexcept override {
    if (const char* wrong = try_to_enlist()) refuse(wrong);
  }
  void let_go() noexcept override {
    join();
    counted_->ended();
  }

  bool passes() const noexcept override { return true; }
  bool shared() const noexcept override { return true; }
  void pass(int descriptor) noexcept override {
    aside_.attach(descriptor, peer_->session.queued());
  }
  int passed() noexcept override { return aside_.next(socket); }

  void flush() noexcept override {
    Session& s = peer_->session;
    bool any = false;
    const bool hurries = s.hurries();
    if (hurries) outlet.hurry(s.output().size());
    while (!s.output().empty()) {
      const std::ptrdiff_t may = aside_.may_go(socket);
      if (may < 0) s.lost("a descriptor cannot be passed to the peer");
      if (may <= 0) break;
      const std::size_t n =
          outlet.put(s.output().first(std::min(s.output().size(), static_cast<std::size_t>(may))));
      if (n == kBroken) s.lost("the peer has written nonsense into the ring");
      if (n == kBroken || n == 0) break;
      s.went(n);
      aside_.published(n);
      any = true;
    }
    waits_for_room.store(!s.output().empty() && !s.is_over() && !aside_.waits(),
                         std::memory_order_relaxed);
    if (aside_.waits() != waits_for_socket.load(std::memory_order_relaxed)) {
      waits_for_socket.store(aside_.waits(), std::memory_order_seq_cst);
      attendant_->look_at_sockets();
    }
    if (any) attendant_->knock(*this, hurries);
    if (s.is_over() && !std::exchange(shut_, true)) ::shutdown(socket, SHUT_RDWR);
  }

  void take() noexcept override {
    thread_local Buffer room(kRing);
    const Served served;
    const Space::Step step(*peer_->space);  // When the step ends, the queued frames are sent.
    take_some(room);
  }
  void take_some(Buffer& room) noexcept {
    bool starved = false;
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
      if (!aside_.receive(socket)) return gone("its socket was closed");
      if (!waits_for_socket.load(std::memory_order_seq_cst)) return;
      const Served served;
      const Space::Step step(*peer_->space);
      flush();
      return;
    }
    std::vector<Descriptor> fds;
    Hello hello{0, 0};
    const ssize_t n =
        receive_descriptors(socket, std::as_writable_bytes(std::span(&hello, 1)), fds);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const char* wrong = n == 0  ? "its socket was closed"
                        : n < 0 ? "its socket failed"
                                : hand_shake(n, hello, fds);
    if (wrong)
      refuse(wrong);
    else
      attendant_->opened(*this);
  }
  const char* hand_shake(ssize_t n, const Hello& hello,
                         const std::vector<Descriptor>& fds) noexcept {
    if (n != sizeof(Hello) || hello.magic != Hello{}.magic)
      return "the peer does not speak over shared memory, or in another version";
    if (hello.ring != kRing) return "the peer's ring is of another size";
    if (fds.size() != 2) return "the peer has not passed its two descriptors";
    if (const char* wrong = Segment::map(fds[0], kSegment, Segment::Peers::write, theirs_))
      return wrong;
    if (const char* wrong = Segment::map(fds[1], Life::kSize, Segment::Peers::read, their_life_))
      return wrong;
    inlet.open(*reinterpret_cast<Direction*>(theirs_.data()), theirs_.data() + kPage, kRing);
    life.store(reinterpret_cast<prim::atomic<std::uint32_t>*>(their_life_.data()));
    return nullptr;
  }
  void refuse(const char* wrong) noexcept {
    watched = false;
    const Served served;
    const Space::Step step(*peer_->space);
    peer_->session.lost(wrong);
  }
  void gone(const char* how) noexcept override {
    watched = false;
    life.store(nullptr);
    Buffer room(kRing);
    const Served served;
    const Space::Step step(*peer_->space);
    take_some(room);  // `room` holds a whole ring: all that the peer has published.
    peer_->session.lost(how);
    if (counted_) attendant_->look_at_sockets();  // The watching thread can now release the link.
  }

  const Descriptor socket_;
  Segment mine_, theirs_, their_life_;
  Life life_;
  std::array<Descriptor, 2> for_peer_;  // kept until the hand-shake has been sent
  Aside aside_;
  bool shut_ = false, enlisted_ = false, left_ = false, last_ = false;
  // Exactly one of the two pointers is not null: counted_ if another space has arranged the
  // session.
  std::shared_ptr<SocketIntroducer> introducer_, counted_;
  std::shared_ptr<Attendant> attendant_;
};

}  // namespace weft::inline WEFT_ABI::wire
