// A channel whose home is in another address space. The ends and parties of one side are here; the
// *home* decides who meets (WIRE.md 1.2).
//
// A party joins its waiting queue as in any channel. No partner meets it there; instead the *agent*
// is notified, and sends a request to the home on the party's behalf:
//
//   begin() ──► queued ──told: next()──► asked for ──finish()──► ok, cancelled, or an end
//                 └──withdraw()──► out      └──withdraw(): false, leaves() asks the home
//
// A guard of a choice stays in the queue: next() passes it over (the wire layer handles choices
// over far ends).
//
// Invariants (channel's lock)
//  1 The queue of the other side is empty. There is no buffer.
//  2 A party whose request was sent to the home is in no queue, and is finished once, by the agent.
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
    this->is_watched();
    state_ |= B::kFar;
    B::form_queues();
  }

  // Removes the first plain party of side S from its queue, and returns it; returns null if there
  // is none.
  template <Side S>
  Node* next() noexcept {
    this->lock_queues();
    Node* n = nullptr;
    for (Link* l = this->template own<S>().front(); l && !n; l = l->next)
      if (!B::node(l)->is(NodeFlags::of_choice)) n = B::node(l);
    if (n) this->template leave<S>(*n);
    this->unlock_queues();
    return n;
  }
  // Finishes a party that next() has returned: its value has moved, or the channel has ended for
  // it.
  static void finish(Node& n, Status s) noexcept {
    Wakes after;
    after.finish(&n, s);
    after.run();
  }
  // Called when the home reports that the channel has ended for side S, with status s. `strength`
  // is that of a poison. The parties that wait are notified, and so is any party that arrives
  // later.
  template <Side S>
  void has_ended(Status s, std::uint8_t strength) noexcept {
    AfterUnlock<T> after;
    this->lock_queues();
    if (s == Status::poisoned) {
      this->poison_here(strength, after);
    } else {
      if (s == Status::died) died_ |= S == Side::in ? B::kWriterDied : B::kReaderDied;
      state_ |= S == Side::in ? B::kWritersGone : B::kReadersGone;
      this->tell_if_ended(after);
    }
    this->unlock(after);
  }
  // Returns whether the last end of side S in this address space is closed.
  template <Side S>
  bool closed() noexcept {
    return (S == Side::in ? B::readers_.get() : B::writers_.get()) == 0;
  }
  // Returns whether an end of side S in this address space has died.
  template <Side S>
  bool died_here() noexcept {
    return (died_ & (S == Side::in ? B::kReaderDied : B::kWriterDied)) != 0;
  }
};

}  // namespace weft::inline WEFT_ABI::core
