// One home's part of a choice that has guards at other homes too (WIRE.md 5).
//
// The word of such a choice is at its place. So the home never commits it unasked: it watches its
// channels for it, and says once one of them might be ready; asked to try, it runs an ordinary
// operation there, and takes it back if that finds nobody.
//
//   begin(), and it is asked at once ──► as attempt()
//      └──► watches ──attempt()──► met: over() │ nobody: not_ready(), watches again
//                  ▲                     └──► another choice that spans watches the other side, and is after us in the order: in line
//                  └──────withdraw(), or that other one is gone: not_ready()─────────────────────────────────┘──it comes: over()
//
// Two such choices that meet: one of them must stay in line until the other one has come. It is the
// lower in a fixed order that does: so they cannot wait for each other in a circle.
//
// Invariants (the space's lock)
//  1 At most one attempt at a time; while there is none, every guard is watched, or the place has
//    been told that it is ready or silent. An attempt that is the first may be made before any watch.
//  2 The place is answered once for an attempt: over() or not_ready(). After over() and close() it
//    hears nothing.
//  3 A node in line, or whose wake-up is under way, keeps this alive.
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
  // Who made the choice: another space, or a process of this one. In a step.
  struct Seat {
    virtual void ready() = 0;                      // worth a try
    virtual void silent(std::uint32_t guard) = 0;  // its channel has retired (rule 5.6)
    virtual void not_ready() = 0;                  // nobody was there
    // it has committed with an output whose value is to be made: made(), or close()
    virtual void commit(std::uint32_t guard) = 0;
    // It is over: this guard has happened, or its channel has ended so.
    virtual void over(std::uint32_t guard, Status s, Visitor::Seat& at) = 0;

   protected:
    ~Seat() = default;
  };
  // The fixed order of all choices: the incarnation of the place, and its count of them.
  struct Rank {
    std::uint64_t incarnation;
    std::uint32_t number;
    auto operator<=>(const Rank&) const = default;
  };

  // `looks`: it asks each home once, and does not wait (WIRE.md 5.9).
  Spanned(Space& s, Seat& p, Rank r, std::vector<Visitor::Seat> at, bool looks);
  ~Spanned();

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(at_.size()); }
  bool trying() const noexcept { return attempt_.has_value(); }
  // `tries`: with an attempt at all of it.
  void begin(bool tries);
  // Guards first to first + n - 1, in this order; those that are known to be silent take no part.
  void attempt(std::uint32_t first, std::uint32_t n);
  // An attempt that stays in line is taken back; too late, or there is none: nothing.
  void withdraw();
  // The place is gone, or has chosen elsewhere. With an attempt that can no longer be taken back
  // its value is lost.
  void close();
  // What commit() asked for: the value, whose room it is in then. False: that is none of its type,
  // and nothing has happened.
  bool making() const noexcept { return attempt_ && attempt_->stage == Visitor::Stage::making; }
  bool made(const Payload& value, Carrier& by);
  void made();
  // Its room, of a guard that is on; once it is closed.
  std::unique_ptr<Room>& room(std::uint32_t guard) noexcept { return at_[guard].room; }
  // The attempt was decided while it was in line.
  void decided();
  // Somebody has gone: is there still a reason to stay in line?
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
  // Then it meets nobody else, and nobody waits for it.
  bool has_committed() const {
    return attempt_ && (attempt_->stage != Visitor::Stage::offered || attempt_->has_met());
  }

  const std::shared_ptr<Space> space_;
  Seat* place_;  // null: closed
  const Rank rank_;
  const bool looks_;
  std::vector<Visitor::Seat> at_;
  std::vector<std::unique_ptr<Watch>> watches_;  // by guard, once there is one
  mutable std::optional<Visitor> attempt_;
  InlineVector<std::uint32_t, 4> tried_;  // the guards of the attempt
  std::uint32_t met_ = 0;                 // the guard that is making
};

}  // namespace weft::inline WEFT_ABI::wire
