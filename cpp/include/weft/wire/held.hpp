// Extended reads at far ends (rule 1.6, WIRE.md 4.7), for threads and coroutines.
//
//   { auto x = co_await r.extended(); use(*x); }      // in a thread: auto x = r.extended()();
//   // if this program dies in this block the next reader receives the value
//   { auto x = co_await r.extended(wire::redeliver); use(*x); }
//
// The home holds the writer until x is destroyed, or this program has ended. x.give_back() returns
// the value to the channel: the next reader receives it before anything that was written later.
// Only a read with redeliver can give its value back. For such reads the home keeps the value as it
// was sent, and a large value is copied.
#pragma once
#include "ends.hpp"

namespace weft::inline WEFT_ABI::wire {

// An extended read that is under way. It contains the value, and notifies the home when the read
// has ended.
template <class T>
class FarExtended {
 public:
  FarExtended(FarExtended&& o) noexcept
      : peer_(std::move(o.peer_)),
        value_(std::move(o.value_)),
        number_(o.number_),
        keeps_(o.keeps_) {}
  FarExtended(const FarExtended&) = delete;
  FarExtended& operator=(const FarExtended&) = delete;
  ~FarExtended() { over(false); }

  T& operator*() noexcept { return value_; }
  T* operator->() noexcept { return &value_; }
  // Gives the unused value back to the channel, whose next reader receives it. give_back() can be
  // called once; this object keeps its copy of the value until it is destroyed. Throws BadUse if
  // the read was begun without redeliver.
  void give_back() {
    if (!keeps_)
      weft::detail::bad_use(
          "give_back(): the read was begun as extended(); begin it as extended(wire::redeliver)");
    if (!peer_) weft::detail::bad_use("give_back(): it has been given back already");
    over(true);
  }

 private:
  template <class>
  friend class FarExtendedAwaiter;
  FarExtended(std::shared_ptr<Peer> p, T v, std::uint64_t number, bool keeps) noexcept
      : peer_(std::move(p)), value_(std::move(v)), number_(number), keeps_(keeps) {}
  void over(bool back) noexcept {
    std::shared_ptr<Peer> p = std::move(peer_);
    if (!p) return;
    const std::shared_ptr<Space> space = p->space;
    const Space::Step step(*space);
    p->far.held_end(number_, back);
    space->bury(std::move(p));
  }

  // Refers to the peer, because the end can be closed meanwhile. The pointer is null once the home
  // has been notified that the read has ended.
  std::shared_ptr<Peer> peer_;
  T value_;
  std::uint64_t number_;
  bool keeps_;
};

template <class T>
class FarExtendedAwaiter final : public detail::FarWait {
 public:
  FarExtendedAwaiter(std::shared_ptr<FarEnd> e, bool keeps, runtime::ProcessBase* p)
      : FarWait(p, kKind), end_(std::move(e)), guard_{end_->number, false, &room_, true, keeps} {
    guards = std::span(&guard_, 1);
  }
  FarExtended<T> await_resume() {
    look(end_->place, "extended read", -1, [](FarWait&) { return Error::Carried{}; });
    return FarExtended<T>(end_->peer, room_.take(), number(), guard_.keeps);
  }
  FarExtended<T> wait(runtime::ThreadProcess& self) {
    block(self);
    return await_resume();
  }

 private:
  Peer* peer() const noexcept override { return end_->peer.get(); }
  static void visit(runtime::ProcessBase& p, runtime::WaitVisitor& v) {
    v.channel(static_cast<FarExtendedAwaiter&>(of(p)).end_->place, false);
  }
  static constexpr runtime::OpKind kKind{"extended read", &withdraw, &visit};

  const std::shared_ptr<FarEnd> end_;
  RoomOf<T> room_;
  FarGuard guard_;
};

template <class T>
struct FarExtendedOp {
  std::shared_ptr<FarEnd> end;
  bool keeps;
  FarExtendedAwaiter<T> bind(runtime::ProcessBase* p) && {
    return FarExtendedAwaiter<T>(detail::once(end, "extended read"), keeps, p);
  }
  // Reads in a thread, and blocks the thread meanwhile. Throws what the awaited read throws.
  FarExtended<T> operator()() && {
    runtime::ThreadProcess& self = weft::detail::blocking_caller("extended()()");
    return FarExtendedAwaiter<T>(detail::once(end, "extended read"), keeps, &self).wait(self);
  }
};

}  // namespace weft::inline WEFT_ABI::wire
