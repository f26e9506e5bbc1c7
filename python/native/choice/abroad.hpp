// The part of a choice that other OS processes decide, or that waits for them (WIRE.md 4.5, 5): the
// guards at channels, if at least one of these channels is far.
//
//   begin() ──► over at once │ under way ──the homes' answer──► over: the latch is set
//                                 └──withdraw()──► over, now or by the answer
//
// Guards of one home are one offer, which that home decides. Guards of several homes make a choice
// over several homes. In such a choice the local guards are one part, the guards of each far home
// are another part, and the homes are asked in turn.
//
// Invariants (all state is protected by the GIL)
//  1 Values are stored in `values`, which every wire::Room shares. So an operation that its home
//    can no longer withdraw has a place for its value.
//  2 An Abroad that has not ended is in `abroads`, and is not destroyed: see LetGo.
#pragma once
#include <algorithm>

#include "channels/fork.hpp"
#include "weft/wire/span.hpp"
#include "wire/far.hpp"

namespace weft::py {

class Abroad final : public wire::FarOp {
 public:
  struct Seat {
    ChannelObject* channel;  // borrowed: the choice keeps it alive
    std::uint32_t guard;     // the guard's index in the choice
    bool writes, ends;
    PyObject* value;  // the value of an output; borrowed
    // The guard's precondition is false: the guard takes no part, but can hold the choice open
    // (rule 5.6).
    bool off = false;
    bool later = false;  // an output whose value is made only after the commit (rule 5.8)
  };

  static bool at_barrier(const Seat& s) noexcept;

  // `seats` are in order of preference, and at least one is far. `alone` means that only these
  // guards and timers decide the choice.
  Abroad(std::vector<Seat> seats, wire::Span::Kept kept, bool looks, bool alone);
  ~Abroad();

  void begin();
  void withdraw();
  void look_once();  // withdraws because a timer has expired (WIRE.md 5.9)
  bool is_over() const noexcept { return over_; }
  // Returns whether the choice was withdrawn before it had ended. If so, the guard that would have
  // been chosen instead is not chosen (rule 6.1), since perhaps not every home was asked.
  bool unwanted() const noexcept { return unwanted_; }
  bool trying() const noexcept {
    const Space::Step step(*space_);
    return span_ && span_->trying();
  }
  // Returns how many of the choice's guards are at this end.
  long has(const wire::FarEnd& e) const noexcept {
    return std::count_if(ends_.begin(), ends_.end(),
                         [&](const auto& at) { return at.get() == &e; });
  }
  // Returns the seat that has committed without its value, or -1. The owner makes the value, and
  // calls made() or failed(). made() takes ownership of the value. It returns true if the choice
  // has ended; otherwise `waiter` is woken when the choice ends.
  int to_make() const noexcept { return over_ ? -1 : making_; }
  bool made(PyObject* value, core::Waker& waiter);
  void failed();
  const Seat& seat(std::uint32_t i) const noexcept { return seats_[i]; }
  PyObject* take(std::uint32_t i) noexcept { return values_[i].take(); }
  // Returns a value for this channel that is not packed yet; null if there is none.
  Value* bare(const Engine& c) noexcept;

  // The latch is set when the choice ends (unless begin() has reported that), or when a value is to
  // be made.
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
  // these references keep the ends from being returned to their homes
  std::vector<std::shared_ptr<wire::FarEnd>> ends_;
  std::vector<wire::FarGuard> offer_;  // the offer, if one home decides
  std::optional<wire::Span> span_;
  const std::uint32_t generation_ = generation;
  bool over_ = false, nobodys_ = false, unwanted_ = false;
  // whether the choice polls, even though it has a barrier (WIRE.md 4.10)
  bool asks_back_ = false;
  int making_ = -1;
  core::Waker* waiter_ = nullptr;  // woken when the value that was made has its outcome
};

extern std::vector<Abroad*> abroads;

}  // namespace weft::py
