// The part of a choice that other OS processes decide, or that waits for them (WIRE.md 4.5, 5): its
// guards at channels, if one of those is far.
//
//   begin() ──► over at once │ under way ──the homes' word──► over: the latch is set
//                                 └──withdraw()──► over, now or by the answer
//
// Guards of one home are one offer, which that home decides. Any others span: then the local ones
// are a part like the far ones, and the homes are asked in turn.
//
// Invariants (the GIL)
//  1 Values lie in `values`, which every room shares: so an operation of a home that cannot be
//    withdrawn any more has a place for its value.
//  2 One that is not over is in `abroads`, and is not destroyed: see LetGo.
#pragma once
#include <algorithm>

#include "channels/fork.hpp"
#include "weft/wire/span.hpp"
#include "wire/far.hpp"

namespace weft::py {

class Abroad final : public wire::FarOp {
 public:
  struct Seat {
    ChannelObject* channel;  // the choice keeps it
    std::uint32_t guard;     // of the choice
    bool writes, ends;
    PyObject* value;  // of an output; borrowed
    // its precondition is false: it takes no part, and holds the choice open perhaps (rule 5.6)
    bool off = false;
    bool later = false;  // an output whose value is made after the commit (rule 5.8)
  };

  static bool at_barrier(const Seat& s) noexcept;

  // In the order in which they are preferred; at least one is far. `alone`: nothing but these
  // guards and timers decides.
  Abroad(std::vector<Seat> seats, wire::Span::Kept kept, bool looks, bool alone);
  ~Abroad();

  void begin();
  void withdraw();
  void look_once();  // the same for a timer that has come (WIRE.md 5.9)
  bool is_over() const noexcept { return over_; }
  // Was it withdrawn before it was over? Then what was to be chosen otherwise is not (rule 6.1):
  // perhaps not every home has been asked.
  bool unwanted() const noexcept { return unwanted_; }
  bool trying() const noexcept {
    const Space::Step step(*space_);
    return span_ && span_->trying();
  }
  // How many of its guards have this end.
  long has(const wire::FarEnd& e) const noexcept {
    return std::count_if(ends_.begin(), ends_.end(),
                         [&](const auto& at) { return at.get() == &e; });
  }
  // The seat that has committed without its value, or -1. Its owner makes that, and says made() or
  // failed(); made() takes the value over. True: it is over; else `waiter` is woken once it is.
  int to_make() const noexcept { return over_ ? -1 : making_; }
  bool made(PyObject* value, core::Waker& waiter);
  void failed();
  const Seat& seat(std::uint32_t i) const noexcept { return seats_[i]; }
  PyObject* take(std::uint32_t i) noexcept { return values_[i].take(); }
  // A value for this channel that is not packed; null: none.
  Value* bare(const Engine& c) noexcept;

  // set when it is over, unless begin() says so; or when a value is to be made
  core::LatchEngine<Shared> latch;

 private:
  friend struct LetGo;
  void over() noexcept override;
  void committed(std::uint32_t seat) noexcept override;
  void decide(bool delegated, bool barrier, wire::Span::Guards all, wire::Span::Kept kept,
              bool looks);
  void bury() noexcept;

  const std::shared_ptr<Space> space_;
  std::vector<Seat> seats_;
  std::shared_ptr<Value[]> values_;
  std::vector<std::unique_ptr<wire::Room>> rooms_;
  std::vector<std::shared_ptr<wire::FarEnd>> ends_;  // so long they are not given back
  std::vector<wire::FarGuard> offer_;                // if one home decides
  std::optional<wire::Span> span_;
  const std::uint32_t generation_ = generation;
  bool over_ = false, nobodys_ = false, unwanted_ = false;
  bool asks_back_ = false;  // it only looks, at a barrier too (WIRE.md 4.10)
  int making_ = -1;
  core::Waker* waiter_ = nullptr;  // the value has been made
};

extern std::vector<Abroad*> abroads;

}  // namespace weft::py
