// The rendezvous: two parties meet, and the value moves from the slot of one to that of the other
// (rule 1.1).
//
// Invariants
//  1 Both parties are claimed (waiter.hpp) before the value moves.
//  2 Values move by T's move constructor. This constructor, and the destructor of the object that
//    was moved from, are the only code of T that may run under the lock. Neither may throw (rule
//    12.1).
//  3 Wake-ups and dropped values are recorded in AfterUnlock and dealt with once the lock is
//    released. Two parties that meet while no other party waits (meet_alone() of channel.hpp) have
//    nothing to record: in that case the value moves, and the partner is woken, after the unlock.
#pragma once
#include <new>
#include <type_traits>
#include <utility>

#include "buffer.hpp"
#include "waiting_queues.hpp"

namespace weft::inline WEFT_ABI::core {

// The work that remains once the lock is released: waking parties, and destroying dropped values.
template <class T>
struct AfterUnlock : Wakes {
  Ring<T> trash;
  alignas(T) unsigned char victim[sizeof(T)];
  bool has_victim = false;
  bool more = false;  // whether further foreign parties must be notified after `told`
  // A foreign party that must be notified. It is not in the list of wakers, since two channels can
  // notify one select at the same time.
  Waker* told = nullptr;
  void finish_all() noexcept {
    this->run();
    if (has_victim) reinterpret_cast<T*>(victim)->~T();
  }
};

template <class T, class P>
class Rendezvous : public ChannelBase<P> {
 public:
  Ring<T>* ring = nullptr;  // null if the channel has no buffer

 protected:
  using B = ChannelBase<P>;
  using Step = typename B::Step;
  using B::transfers_;

  // Meets a party that waits on the other side: the first that can be claimed together with `me`.
  // Parties can meet at a buffer too (rule 1.5): when every slot is held or reserved, or when the
  // buffer is empty.
  template <Side S, class Me>
  Attempt meet(Node& n, Me me, Wakes& after) noexcept {
    return meet(kSide<S>, n, me, after);
  }
  template <class S, class Me>
  WEFT_ONE_HOSTED Attempt meet(S side, Node& n, Me me, Wakes& after) noexcept {
    Queue& q = this->own(side == Side::in ? Side::out : Side::in);
    Link* at = q.front();
    Node* y = nullptr;
    const Attempt t = B::claim_next(
        q, at, y, me, [this, side](const Node& other) { return may_claim(side, other); });
    if (t != Attempt::committed) return t;
    ++transfers_;
    return pass(side == Side::in ? *y : n, side == Side::in ? n : *y, after, *y);
  }

  // Moves w's value to r, or lets w compute it first. Called when both parties are claimed; `peer`
  // is the party that sleeps.
  Attempt pass(Node& w, Node& r, Wakes& after, Node& peer) noexcept {
    if (w.is(NodeFlags::compute)) [[unlikely]] {
      w.hold(&r);
      r.status = Status::pending;
      if (&peer == &r) return Attempt::committed;  // The writer computes its value next.
      after.finish(&w, Status::ok);
      return Attempt::partner_holds;  // The writer computes the value, and then wakes the reader.
    }
    return hand_over(w, r, after, peer);
  }
  // Moves the writer's value to the reader. Called when the value exists.
  Attempt hand_over(Node& w, Node& r, Wakes& after, Node& peer) noexcept {
    move_value(w.slot, r.slot);
    if (r.is(NodeFlags::extended)) [[unlikely]] {
      if (ring) {  // The read holds a slot, and does not hold its writer (rule 1.6).
        hold_slot(r);
      } else {
        w.status = Status::pending;
        r.hold(&w);
        if (&peer == &w) return Attempt::committed;
        after.finish(&r, Status::ok);
        return Attempt::partner_holds;  // The reader's block ends before the writer continues.
      }
    }
    after.finish(&peer, Status::ok);
    return Attempt::committed;
  }
  // Keeps a slot occupied until the extended read that has taken the slot's value ends.
  void hold_slot(Node& n) noexcept {
    ++ring->held;
    if (!n.is(NodeFlags::kept)) return;
    if (++ring->kept != 0) return;
    --ring->kept;  // `kept` counts only to 65,535; a value beyond that cannot be put back.
    n.clear(NodeFlags::kept);
  }
  void free_slot(Node& n) noexcept {
    if (ring->held > 0) --ring->held;
    if (n.is(NodeFlags::kept)) --ring->kept;
  }

  [[gnu::always_inline]] static void move_value(void* from, void* to) noexcept {
    ::new (to) T(std::move(*static_cast<T*>(from)));
  }

 private:
  // Returns whether a party of side S that has just arrived may claim y, which waits.
  template <class S>
  [[gnu::always_inline]] Step may_claim(S side, const Node& y) const noexcept {
    const auto unusual = static_cast<std::uint16_t>(
        NodeFlags::disabled |
        (side == Side::in ? NodeFlags::compute
                          : NodeFlags::foreign | NodeFlags::extended | NodeFlags::promised));
    if (!y.is(unusual) && !(side == Side::in && ring && ring->lending())) [[likely]]
      return Step::claim;
    if (y.is(NodeFlags::disabled)) return Step::pass_over;
    // A foreign reader takes its value itself, and the readers behind it wait (rule 6.6). The value
    // of a promised reader might already have been sent.
    if (side == Side::out && y.is(NodeFlags::foreign | NodeFlags::promised)) return Step::stop;
    if (!ring) return Step::claim;
    // A computed or lent value, or an extended read, needs a slot first.
    return side == Side::in || !ring->room() ? Step::stop : Step::claim;
  }
};

}  // namespace weft::inline WEFT_ABI::core
