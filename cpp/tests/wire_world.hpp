// Spaces in one program, whose links a test schedules frame by frame. No thread, no socket.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "weft/channel.hpp"
#include "weft/wire/space.hpp"

namespace weft::test {

namespace w = weft::wire;

// One operation at ends of the peer's, of ints.
class Op final : public w::FarOp {
 public:
  bool is_over = false;
  int times = 0;

  Op() = default;
  // Its peer is not to find it later, when the test's links end.
  ~Op() {
    if (!peer_ || is_over) return;
    const w::Space::Step step(*peer_->space);
    peer_->session.lost("the test is over");
  }

  Op& read(std::uint32_t end) { return add(end, false, 0); }
  Op& write(std::uint32_t end, int v) { return add(end, true, v); }
  Op& begin(w::Peer& p) {
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
  int value() { return static_cast<w::RoomOf<int>*>(g_[outcome.guard].room)->take(); }

 private:
  Op& add(std::uint32_t end, bool writes, int v) {
    rooms_[n_] = writes ? std::make_unique<w::RoomOf<int>>(v) : std::make_unique<w::RoomOf<int>>();
    g_[n_] = {end, writes, rooms_[n_].get()};
    ++n_;
    return *this;
  }
  void over() noexcept override { is_over = true, ++times; }
  std::array<std::unique_ptr<w::RoomOf<int>>, 4> rooms_;
  std::array<w::FarGuard, 4> g_{};
  std::size_t n_ = 0;
  w::Peer* peer_ = nullptr;
};

// Two peers and what is between them.
class Wire {
 public:
  Wire(w::Space& home, w::Space& party) : at_home(home), at_party(party) {
    greet(at_home);
    greet(at_party);
  }
  w::Peer at_home, at_party;
  bool cut = false;  // neither side gets anything any more; each learns it when it is told

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
    return at_home.home.give(std::make_shared<w::PortOf<T, S>>(std::move(e)), w::Value<T>::type(), "end", 0);
  }
  static void greet(w::Peer& p) {
    const w::Space::Step step(*p.space);
    p.session.greet();
  }
  // One frame.
  bool deliver(w::Peer& from, w::Peer& to) {
    if (cut || from.session.output().empty()) return false;
    w::Buffer frame;
    {
      const w::Space::Step step(*from.space);
      const w::Bytes out = from.session.output();
      const std::size_t n = w::detail::get<std::uint16_t>(out.data());
      frame.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      from.session.went(n);
    }
    const w::Space::Step step(*to.space);
    to.session.input(frame);
    return true;
  }
};

}  // namespace weft::test
