// A barrier whose home is another program, for threads and coroutines (rule 8, WIRE.md 4.9).
//
//   wire::FarBarrier b = link.barrier("step");
//   co_await b.sync();      b.sync()();             // until all enrolled parties have arrived
//   co_await b.enrol();     b.enrol()();            // the barrier then has one party more
//   std::uint32_t n = b.parties()();
//
// A FarBarrier behaves as a Barrier does, but each of these operations is a round trip to the home.
// A cancelled sync ends when the home has answered. If the cancellation was too late, the parties
// have met (rule 8.3). PeerDied means that the barrier has died with a program that held a share of
// it (rule 8.7), or that the session with its home is lost. FarSelect::meet() makes the barrier a
// guard.
//
// Copies refer to one share of the barrier, which is given back when the last copy is destroyed.
// The barrier does not die when the share is given back, and keeps its number of parties: only
// resign() removes a party.
#pragma once
#include "barrier.hpp"
#include "ends.hpp"

namespace weft::inline WEFT_ABI::wire {

namespace detail {

// Throws if the barrier has died. FarWait::look() throws for all other outcomes.
inline void check_barrier(const Outcome& o, const char* verb, int guard) {
  if (o.status == Status::died && !o.lost)
    throw PeerDied(
        std::string(verb) + ": the barrier has died, with a program that had it or has made it",
        guard);
}

// The awaiter of an arrival, or of a message about the parties.
template <FarGuard::Parties W>
class FarBarrierAwaiter final : public FarWait {
  using Parties = FarGuard::Parties;

 public:
  FarBarrierAwaiter(std::shared_ptr<FarEnd> e, runtime::ProcessBase* p)
      : FarWait(p, kKind), end_(std::move(e)) {
    guard_ = {end_->number, false, &room_};
    guard_.parties = W;
    guards = std::span(&guard_, 1);
  }
  auto await_resume() {
    process().op = nullptr;
    check_barrier(outcome, kVerb, -1);
    look(end_->place, kVerb, -1, [](FarWait&) { return Error::Carried{}; });
    if constexpr (W == Parties::ask) return room_.parties;
  }
  // Waits in a thread.
  auto wait(runtime::ThreadProcess& self) {
    block(self);
    return await_resume();
  }

 private:
  static constexpr const char* kVerb = W == Parties::none    ? "sync"
                                       : W == Parties::ask   ? "parties"
                                       : W == Parties::enrol ? "enrol"
                                                             : "resign";
  Peer* peer() const noexcept override { return end_->peer.get(); }
  static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
    v.barrier(static_cast<FarBarrierAwaiter&>(of(p)).end_->place);
  }
  static constexpr runtime::OpKind kKind{kVerb, &withdraw, &visit};

  std::conditional_t<W == Parties::none, NoRoom, PartiesRoom> room_;
  const std::shared_ptr<FarEnd> end_;
  FarGuard guard_;
};

}  // namespace detail

class FarBarrier {
  using Parties = FarGuard::Parties;

 public:
  FarBarrier() = default;
  explicit FarBarrier(std::shared_ptr<FarEnd> e) noexcept : end_(std::move(e)) {}

  template <Parties W>
  struct Op {
    std::shared_ptr<FarEnd> end;
    auto bind(runtime::ProcessBase* p) && {
      return detail::FarBarrierAwaiter<W>(detail::once(end, "an operation at a barrier"), p);
    }
    auto operator()() const {
      runtime::ThreadProcess& self = weft::detail::blocking_caller("an operation at a barrier");
      return detail::FarBarrierAwaiter<W>(end, &self).wait(self);
    }
  };
  // Each operation below is awaited with co_await, or called in a thread. All throw PeerDied and
  // Cancelled; sync and resign also throw BadUse if no party is enrolled.
  [[nodiscard]] Op<Parties::none> sync() const { return {checked("sync")}; }
  [[nodiscard]] Op<Parties::enrol> enrol() const { return {checked("enrol")}; }
  [[nodiscard]] Op<Parties::resign> resign() const { return {checked("resign")}; }
  // Requests the number of enrolled parties.
  [[nodiscard]] Op<Parties::ask> parties() const { return {checked("parties")}; }
  explicit operator bool() const noexcept { return static_cast<bool>(end_); }

  const std::shared_ptr<FarEnd>& checked(const char* what) const {
    if (!end_) weft::detail::bad_use(std::string(what) + " at a barrier that was never taken");
    return end_;
  }

 private:
  std::shared_ptr<FarEnd> end_;
};

}  // namespace weft::inline WEFT_ABI::wire
