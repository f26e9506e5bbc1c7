// A channel whose other side is in another address space: here is one side's ends and parties, and
// its *home* decides (WIRE.md 1.2).
//
// A party joins its line as in any channel. Nobody meets it there; its *agent* is told, and asks
// for it at the home:
//
//   begin() ──► in line ──told: next()──► asked for ──finish()──► ok │ retired │ poisoned │ died │ cancelled
//                 └──withdraw()──► out       └──withdraw(): false, Agent::leaves() asks for that too
//
// A guard of a choice stays in line: next() passes it over (choices over far ends are decided
// elsewhere).
//
// Invariants (channel's lock)
//  1 The line of the other side is empty. There is no buffer.
//  2 Who is asked for is in no line, and is finished once, by the agent.
#pragma once
#include "channel.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P>
class FarEngine : public WithAgent<ChannelEngine<T, P>> {
  using B = ChannelBase<P>;
  using Base = ChannelEngine<T, P>;
  using Base::state_, Base::died_;

 public:
  explicit FarEngine(FarAgent* a) noexcept : WithAgent<Base>(a) {
    state_ |= B::kFar | B::kWatched;
    B::form_lines();
  }

  // The first plain party of side S that is in line, taken out of it; null: none.
  template <Side S>
  Node* next() noexcept {
    this->lock_lines();
    Node* n = nullptr;
    for (Link* l = this->template own<S>().front(); l && !n; l = l->next)
      if (!B::node(l)->is(NodeFlags::of_choice)) n = B::node(l);
    if (n) this->template leave<S>(*n);
    this->unlock_lines();
    return n;
  }
  // One that was taken out: its value has moved, or the channel has ended for it.
  static void finish(Node& n, Status s) noexcept {
    Wakes after;
    after.finish(&n, s);
    after.run();
  }
  // How the home says it has ended for side S; `strength` of a poison. Those in line are told, and
  // whoever comes later.
  template <Side S>
  void has_ended(Status s, std::uint8_t strength) noexcept {
    AfterUnlock<T> after;
    this->lock_lines();
    if (s == Status::poisoned) {
      this->poison_here(strength, after);
    } else {
      if (s == Status::died) died_ |= S == Side::in ? B::kWriterDied : B::kReaderDied;
      state_ |= S == Side::in ? B::kWritersGone : B::kReadersGone;
      this->tell_if_ended(after);
    }
    this->unlock(after);
  }
  // Its last end here is closed.
  template <Side S>
  bool closed() noexcept {
    return (S == Side::in ? B::readers_.get() : B::writers_.get()) == 0;
  }
  // Whether one of the ends of side S, which are here, has died.
  template <Side S>
  bool died_here() noexcept {
    return (died_ & (S == Side::in ? B::kReaderDied : B::kWriterDied)) != 0;
  }
};

}  // namespace weft::inline WEFT_ABI::core
