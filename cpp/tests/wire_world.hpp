// Spaces in one program, whose links a test schedules frame by frame, without threads or sockets.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "weft/channel.hpp"
#include "weft/wire/barrier.hpp"
#include "weft/wire/space.hpp"

namespace weft::test {

namespace w = weft::wire;

template <class Engine>
bool somebody_waits(Engine& c) {
  bool any = false;
  c.with_lock([&](core::Queue& readers, core::Queue& writers) {
    any = !readers.empty() || !writers.empty();
  });
  return any;
}

// Gives the peer a share of the barrier, and returns the number of the share at the peer.
inline std::uint32_t give(const Barrier& b, w::Peer& at_home) {
  const w::Space::Step step(*at_home.space);
  return at_home.home.give(std::make_shared<w::BarrierPortOf>(b), w::kBarrierType, "b", 0);
}

// One operation at far ends and at far barriers.
template <class T>
class OpOf final : public w::FarOp {
 public:
  bool is_over = false;
  int times = 0;

  OpOf() = default;
  // Ends the session of an operation that has not ended, so that the peer does not find the
  // operation when the test's links end.
  ~OpOf() {
    if (!peer_ || is_over) return;
    const w::Space::Step step(*peer_->space);
    peer_->session.lost("the test is over");
  }

  OpOf& read(std::uint32_t end) { return add(end, false, std::make_unique<w::RoomOf<T>>()); }
  // Adds an extended read; with `keeps`, its value may be given back.
  OpOf& hold(std::uint32_t end, bool keeps = false) {
    read(end);
    g_[0].holds = true;
    g_[0].keeps = keeps;
    return *this;
  }
  OpOf& arrive(std::uint32_t barrier) { return add(barrier, false, std::make_unique<w::NoRoom>()); }
  // Makes this operation a message about the barrier's parties.
  OpOf& say(std::uint32_t barrier, w::FarGuard::Parties what) {
    add(barrier, false, std::make_unique<w::PartiesRoom>());
    g_[0].parties = what;
    return *this;
  }
  // Returns the number of enrolled parties, from the answer to the message of say().
  std::uint32_t parties() const { return static_cast<w::PartiesRoom&>(*rooms_[0]).parties; }
  // Ends the block of the extended read. If `back`, the read gives its value back to the channel
  // (WIRE.md 4.7).
  void end_block(bool back = false) {
    const w::Space::Step step(*peer_->space);
    peer_->far.held_end(number(), back);
  }
  // Adds an output whose value is made after the commit.
  OpOf& later(std::uint32_t end) {
    add(end, true, std::make_unique<w::RoomOf<T>>());
    g_[n_ - 1].later = true;
    return *this;
  }
  bool has_committed = false;
  void make(T v) {
    room(making_).put(std::move(v));
    const w::Space::Step step(*peer_->space);
    if (peer_->far.made(*this)) is_over = true, ++times;
  }
  void fail() {
    const w::Space::Step step(*peer_->space);
    peer_->far.failed(*this);
    is_over = true;
  }
  OpOf& write(std::uint32_t end, T v) {
    return add(end, true, std::make_unique<w::RoomOf<T>>(std::move(v)));
  }
  OpOf& begin(w::Peer& p) {
    const w::Space::Step step(*p.space);
    peer_ = &p;
    guards = std::span(g_.data(), n_);
    if (p.far.begin(*this)) is_over = true, ++times;
    return *this;
  }
  void withdraw() {
    const w::Space::Step step(*peer_->space);
    if (!is_over) peer_->far.withdraw(*this);
  }
  Status status() const { return outcome.status; }
  bool ok() const { return is_over && outcome.status == Status::ok; }
  bool died() const { return is_over && outcome.status == Status::died; }
  bool bad_use() const { return is_over && outcome.status == Status::pending && refused; }
  // Returns the value that was read; for a write that has ended, the value that was written.
  T value(std::size_t guard) { return room(guard).take(); }
  T value() { return value(outcome.guard); }
  // Drops the rooms, as a process does when it continues after its write.
  void forget() { rooms_ = {}; }

 private:
  w::RoomOf<T>& room(std::size_t guard) { return static_cast<w::RoomOf<T>&>(*rooms_[guard]); }
  OpOf& add(std::uint32_t end, bool writes, std::unique_ptr<w::Room> room) {
    rooms_[n_] = std::move(room);
    g_[n_] = {end, writes, rooms_[n_].get()};
    ++n_;
    return *this;
  }
  void over() noexcept override { is_over = true, ++times; }
  void committed(std::uint32_t guard) noexcept override { has_committed = true, making_ = guard; }
  std::uint32_t making_ = 0;
  std::array<std::unique_ptr<w::Room>, 4> rooms_;
  std::array<w::FarGuard, 4> g_{};
  std::size_t n_ = 0;
  w::Peer* peer_ = nullptr;
};
using Op = OpOf<int>;

// Two peers and the frames between them.
class Wire {
 public:
  Wire(w::Space& home, w::Space& party, bool introduced = false)
      : home_(std::make_shared<w::Peer>(home)),
        party_(std::make_shared<w::Peer>(party)),
        at_home(*home_),
        at_party(*party_) {
    if (introduced) {
      at_home.session.expect(party.greeting().incarnation, w::kLargest);
      at_party.session.expect(home.greeting().incarnation, w::kLargest);
    }
    greet(at_home);
    greet(at_party);
  }
  const std::shared_ptr<w::Peer> home_, party_;
  w::Peer &at_home, &at_party;
  // Whether frames no longer arrive. Each side learns of the cut only by tell().
  bool cut = false;

  bool up() { return deliver(at_party, at_home); }
  bool down() { return deliver(at_home, at_party); }
  bool can_up() const { return !cut && !at_party.session.output().empty(); }
  bool can_down() const { return !cut && !at_home.session.output().empty(); }
  void pump() {
    while (up() || down()) {
    }
  }
  void tell(w::Peer& p) {
    const w::Space::Step step(*p.space);
    p.session.lost("the link was cut");
  }
  template <class T>
  std::uint32_t give(Writer<T> e) {
    return give_port<T, core::Side::out>(std::move(e));
  }
  template <class T>
  std::uint32_t give(Reader<T> e) {
    return give_port<T, core::Side::in>(std::move(e));
  }
  void to_home(const w::Frame& f) {
    const w::Space::Step step(*at_party.space);
    at_party.session.send(f);
  }
  void retire(std::uint32_t end, bool died = false) {
    const w::Space::Step step(*at_party.space);
    at_party.retire(end, died);
  }
  void poison(std::uint32_t end, std::uint8_t s) {
    const w::Space::Step step(*at_party.space);
    at_party.poison(end, s);
  }

 private:
  template <class T, core::Side S, class E>
  std::uint32_t give_port(E e) {
    const w::Space::Step step(*at_home.space);
    return at_home.home.give(std::make_shared<w::PortOf<T, S>>(std::move(e)), w::Value<T>::type(),
                             "end", 0);
  }
  static void greet(w::Peer& p) {
    const w::Space::Step step(*p.space);
    p.session.greet();
  }
  // Delivers one frame. Returns false if there is no frame, or if the wire is cut.
  bool deliver(w::Peer& from, w::Peer& to) {
    if (cut) return false;
    w::Buffer frame;
    {
      const w::Space::Step step(*from.space);  // Another thread may add to the output.
      const w::Bytes out = from.session.output();
      if (out.empty()) return false;
      const std::size_t n = w::detail::get<std::uint16_t>(out.data());
      frame.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      from.session.went(n);
    }
    const w::Space::Step step(*to.space);
    to.session.input(frame);
    return true;
  }
};

// A channel at its home, a far space that holds a writer end, and a third space.
struct Written {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2),
                            third = w::Space::make("third", 3);
  Channel<int> c;
  Reader<int> r = c.reader();
  Wire a{*home, *far}, b{*home, *third};
  std::uint32_t end = 0;
  std::deque<Op> ops;

  explicit Written(const ChannelOptions& o = {}) : c(o) {
    end = a.give(c.writer());
    pump();
  }
  void pump() {
    for (bool any = true; any;) any = a.up() || a.down() || b.up() || b.down();
  }
  Op& write(int v) {
    Op& o = ops.emplace_back();
    o.write(end, v).begin(a.at_party);
    return o;
  }
  bool sessions_are_good() const {
    for (const w::Peer* p : {&a.at_home, &a.at_party, &b.at_home, &b.at_party})
      if (p->session.is_over()) return false;
    return true;
  }
};

// Spaces, some of which have a wire to each other from the start. Two spaces that are introduced to
// each other get a wire immediately.
class World final : public w::Introducer, public std::enable_shared_from_this<World> {
 public:
  std::vector<std::shared_ptr<w::Space>> spaces;
  std::deque<Wire> wires;
  bool refuses = false;

  static std::shared_ptr<World> of(std::size_t n) {
    auto w = std::make_shared<World>();
    for (std::size_t i = 0; i < n; ++i) {
      w->spaces.push_back(w::Space::make(std::string(1, static_cast<char>('a' + i)), i + 1));
      w->spaces[i]->introducer = w;
    }
    return w;
  }
  Wire& join(std::size_t home, std::size_t party) {
    Wire& l = wires.emplace_back(*spaces[home], *spaces[party]);
    l.pump();
    return l;
  }
  // Returns the wire between the two spaces; null if there is none.
  Wire* between(std::size_t a, std::size_t b) {
    for (Wire& l : wires) {
      const auto x = l.at_home.space->greeting().incarnation - 1,
                 y = l.at_party.space->greeting().incarnation - 1;
      if ((x == a && y == b) || (x == b && y == a)) return &l;
    }
    return nullptr;
  }
  void pump() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < wires.size(); ++i) any = wires[i].up() || wires[i].down() || any;
    }
  }
  bool introduce(w::Peer& a, w::Peer& b) override {
    if (refuses) return false;
    const auto x = a.session.theirs().incarnation, y = b.session.theirs().incarnation;
    // The two spaces stand for other programs. On a separate thread, their steps are not part of
    // the present step, and their locks are not taken within it.
    std::thread([&] { wires.emplace_back(*spaces[x - 1], *spaces[y - 1], true); }).join();
    return true;
  }
  const char* introduced(w::Peer&, const w::Frame&) override { return "not in a test"; }
};

}  // namespace weft::test
