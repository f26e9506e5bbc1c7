// A choice of ints over several homes, for tests that schedule the choice's frames (WIRE.md 5).
#pragma once
#include "weft/wire/span.hpp"
#include "wire_world.hpp"

namespace weft::test {

class Spanning final : public w::FarOp {
 public:
  bool is_over = false;
  int times = 0;

  Spanning& read(w::Peer& home, std::uint32_t end) { return add({&home, nullptr, end, false}, 0); }
  Spanning& write(w::Peer& home, std::uint32_t end, int v) {
    return add({&home, nullptr, end, true}, v);
  }
  Spanning& read(Reader<int> r) {
    return add({nullptr, std::make_shared<w::PortOf<int, core::Side::in>>(std::move(r)), 0, false},
               0);
  }
  Spanning& write(Writer<int> o, int v) {
    return add({nullptr, std::make_shared<w::PortOf<int, core::Side::out>>(std::move(o)), 0, true},
               v);
  }
  // Makes the retirement of the channel an outcome, for the guard that was added last.
  Spanning& loud() {
    guards_.back().ends = true;
    return *this;
  }
  // Makes the precondition of the guard that was added last false.
  Spanning& off() {
    guards_.back().off = true;
    return *this;
  }
  // Defers the value of the guard that was added last: make() sets the value after the commit.
  Spanning& later() {
    guards_.back().later = true;
    return *this;
  }
  bool has_committed = false;
  void make(int v) {
    static_cast<w::RoomOf<int>*>(rooms_[making_].get())->put(v);
    const w::Space::Step step(*space_);
    if (!is_over && span_->made()) is_over = true, ++times;
  }
  // Adds a timer, which runs at the place of the choice.
  Spanning& timed() {
    timed_ = true;
    return *this;
  }
  // Makes the choice ask each home once.
  Spanning& only_look() {
    looks_ = true;
    return *this;
  }
  // Keeps the choice open although its guards retire, as a lasting guard (a barrier) does.
  Spanning& last() {
    lasts_ = true;
    return *this;
  }
  // Makes the process of the choice resume as soon as it is notified; then the choice is destroyed.
  Spanning& goes_at_once() {
    goes_ = true;
    return *this;
  }
  // Begins the choice; `first` is the guard that is offered first.
  Spanning& begin(w::Space& s, std::uint32_t first = 0) {
    space_ = s.shared_from_this();
    const w::Space::Step step(s);
    for (std::size_t i = 0; i < guards_.size(); ++i) guards_[i].room = &rooms_[i];
    w::Span::Kept kept = lasts_ ? w::Span::Kept{} : w::Span::kept(guards_);
    kept.by_inputs_off = timed_;
    span_.emplace(s, *this, std::move(guards_), first, kept, looks_);
    if (span_->begin()) is_over = true, ++times;
    return *this;
  }
  void withdraw() {
    const w::Space::Step step(*space_);
    span_->withdraw();
  }
  // Does what a place does when the choice's timer expires.
  void look_once() {
    const w::Space::Step step(*space_);
    span_->look_once();
  }
  // Returns whether the choice has ended. May be called while another thread can commit the choice.
  bool finished() {
    const w::Space::Step step(*space_);
    return is_over;
  }
  Status status() const { return outcome.status; }
  bool ok() const { return is_over && outcome.status == Status::ok; }
  int value() { return static_cast<w::RoomOf<int>*>(rooms_[outcome.guard].get())->take(); }

 private:
  Spanning& add(w::Span::Guard g, int v) {
    rooms_.push_back(g.writes ? std::make_unique<w::RoomOf<int>>(v)
                              : std::make_unique<w::RoomOf<int>>());
    guards_.push_back(std::move(g));
    return *this;
  }
  void committed(std::uint32_t guard) noexcept override { has_committed = true, making_ = guard; }
  void over() noexcept override {
    is_over = true, ++times;
    if (goes_) span_.reset();
  }
  std::uint32_t making_ = 0;
  std::shared_ptr<w::Space> space_;
  w::Span::Guards guards_;
  std::vector<std::unique_ptr<w::Room>> rooms_;
  std::optional<w::Span> span_;
  bool looks_ = false, lasts_ = false, timed_ = false, goes_ = false;
};

// Two homes and two places. Each place has a session to each home, and the greetings have been
// exchanged.
struct Square {
  std::shared_ptr<w::Space> h[2] = {w::Space::make("h0", 1), w::Space::make("h1", 2)};
  std::shared_ptr<w::Space> p[2] = {w::Space::make("p0", 3), w::Space::make("p1", 4)};
  Wire a0{*h[0], *p[0]}, a1{*h[1], *p[0]}, b0{*h[0], *p[1]}, b1{*h[1], *p[1]};
  std::array<Wire*, 4> all{&a0, &a1, &b0, &b1};
  Square() { settle(); }
  void settle() {
    for (bool any = true; any;) {
      any = false;
      for (Wire* l : all) any |= l->up() || l->down();
    }
  }
  bool quiet() const {
    for (const Wire* l : all)
      if (l->at_home.home.open() || l->at_party.far.open()) return false;
    return true;
  }
};

}  // namespace weft::test
