// One home's part of a choice that spans, which has guards at other homes too (WIRE.md 5).
//
// The choice is decided at its *place*, the space of the process that makes it. So the home commits
// the choice only when the place asks it to try. The home watches the channels for the choice, and
// reports when a guard might be ready. When the home is asked to try, it begins an ordinary
// operation at these channels, and withdraws the operation if it finds no partner.
//
//   begin(), and it is asked at once ──► as attempt()
//      └──► watches ──attempt()──► met: over() │ no partner: not_ready(), watches again
//                  ▲                 └──► another choice that spans watches the other side, and is
//                  │                      after this one in the order: stays queued
//                  │                        ├──the other one comes──► over()
//                  └──withdraw(), or the other one is gone: not_ready()
//
// When two such choices could meet, one of them must stay queued until the other has arrived. The
// choice that is lower in a fixed order stays, so that choices cannot wait for each other in a
// circle.
//
// Invariants (the space's lock)
//  1 There is at most one attempt at a time. While there is none, every guard is watched, or the
//    place has been notified that the guard is ready or silent (its channel has retired). The first
//    attempt may be made before any watch.
//  2 The place is answered once for an attempt: over() or not_ready(). After over() and close() the
//    place receives no message.
//  3 A node that is queued, or whose wake-up is under way, keeps this object alive.
#pragma once
#include <compare>
#include <memory>
#include <optional>
#include <vector>

#include "home.hpp"
#include "inline_vector.hpp"

namespace weft::inline WEFT_ABI::wire {

class Spanned final : public std::enable_shared_from_this<Spanned> {
 public:
  // The part's connection to the choice's place, which is in another space or is a process of this
  // space. Its functions are called in a step.
  struct Seat {
    virtual void ready() = 0;  // reports that an attempt is worthwhile
    // Reports that the guard's channel has retired (rule 5.6).
    virtual void silent(std::uint32_t guard) = 0;
    virtual void not_ready() = 0;  // reports that the attempt found no partner
    // Called when an output has committed whose value is still to be made. The place must then call
    // made() or close().
    virtual void commit(std::uint32_t guard) = 0;
    // Called when the choice has ended: this guard has committed, or its channel has ended with
    // status s.
    virtual void over(std::uint32_t guard, Status s, Visitor::Seat& at) = 0;

   protected:
    ~Seat() = default;
  };
  // A choice's place in the fixed order of all choices that span: the incarnation of the space that
  // makes it, and a number that this space counts.
  struct Rank {
    std::uint64_t incarnation;
    std::uint32_t number;
    auto operator<=>(const Rank&) const = default;
  };

  // `looks` says that the choice polls: it asks each home once, and does not wait (WIRE.md 5.9).
  Spanned(Space& s, Seat& p, Rank r, std::vector<Visitor::Seat> at, bool looks);
  ~Spanned();

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(at_.size()); }
  bool trying() const noexcept { return attempt_.has_value(); }
  // Begins the part. `tries` says whether it begins with an attempt at all guards.
  void begin(bool tries);
  // Tries guards first to first + n - 1, in this order. Guards whose channels are known to have
  // retired take no part.
  void attempt(std::uint32_t first, std::uint32_t n);
  // Withdraws an attempt that is queued. Does nothing if that is too late, or there is no attempt.
  void withdraw();
  // Called when the choice's place has ended, or the choice has committed elsewhere. If an attempt
  // can no longer be withdrawn, the value of the attempt is lost.
  void close();
  // making() returns whether commit() has asked for a value; made() takes that value. made()
  // without arguments says that the value is in the guard's room. made(value) returns false if the
  // payload is not a value of the type; then nothing has happened.
  bool making() const noexcept { return attempt_ && attempt_->stage == Visitor::Stage::making; }
  bool made(const Payload& value, Carrier& by);
  void made();
  // Returns the room of a guard that takes part. It is used once the part is closed.
  std::unique_ptr<Room>& room(std::uint32_t guard) noexcept { return at_[guard].room; }
  // Called when the attempt has received its outcome while it was queued.
  void decided();
  // Called when another choice has ended: checks whether there is still a reason to stay queued.
  void reconsider();

 private:
  struct Watch;
  void watch(std::uint32_t guard);
  void happened(std::uint32_t guard, Status s);
  void finish();
  void taken();
  void leave();
  void take_back_rooms();
  bool must_wait() const;
  // Returns whether the attempt has committed. If so, it meets no other party, and no other choice
  // waits for it.
  bool has_committed() const {
    return attempt_ && (attempt_->stage != Visitor::Stage::offered || attempt_->has_met());
  }

  const std::shared_ptr<Space> space_;
  Seat* place_;  // null once the part is closed
  const Rank rank_;
  const bool looks_;
  std::vector<Visitor::Seat> at_;
  std::vector<std::unique_ptr<Watch>> watches_;  // one watch for each guard, or none
  mutable std::optional<Visitor> attempt_;
  InlineVector<std::uint32_t, 4> tried_;  // the guards of the attempt
  std::uint32_t met_ = 0;                 // the guard whose value is being made
};

}  // namespace weft::inline WEFT_ABI::wire
