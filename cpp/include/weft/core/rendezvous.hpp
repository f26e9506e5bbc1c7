// The rendezvous: two parties meet and the value moves from the one's slot to the other's (rule
// 1.1).
//
// Invariants
//  1 Both parties are won (waiter.hpp) before the value moves.
//  2 Values move by T's move constructor; it, and the destructor of what was moved from, are all of
//    T that may run under the lock. Neither may throw (rule 12.1).
//  3 Who is woken, and what is dropped, is put down in AfterUnlock and done once the lock is
//    released.
#pragma once
#include <new>
#include <type_traits>
#include <utility>

#include "buffer.hpp"
#include "line.hpp"

namespace weft::inline WEFT_ABI::core {

// What is left to do once the lock is released: wake, and destroy what was dropped.
template <class T>
struct AfterUnlock : Wakes {
  Ring<T> trash;
  alignas(T) unsigned char victim[sizeof(T)];
  bool has_victim = false;
  // a foreign party: not in the list, for two channels may tell one select at the same time
  Waker* told = nullptr;
  void finish_all() noexcept {
    this->run();
    if (told) told->ops->tell(told);
    if (has_victim) reinterpret_cast<T*>(victim)->~T();
  }
};

template <class T, class P>
class Rendezvous : public ChannelBase<P> {
 public:
  Ring<T>* ring = nullptr;  // null: no buffer

 protected:
  using B = ChannelBase<P>;
  using Step = typename B::Step;
  using B::transfers_;

  // Meet whoever waits on the other side: the first that can be claimed together with ourselves. At
  // a buffer too, when a party waits there although values need not (rule 1.5): every slot is held
  // or reserved, or the buffer is empty.
  template <Side S, class Me>
  Attempt meet(Node& n, Me me, Wakes& after) noexcept {
    Queue& q = this->template opposite<S>();
    Link* at = q.front();
    Node* y = nullptr;
    const Attempt t =
        B::claim_next(q, at, y, me, [this](const Node& other) { return may_claim<S>(other); });
    if (t != Attempt::committed) return t;
    ++transfers_;
    return S == Side::in ? pass(*y, n, after, *y) : pass(n, *y, after, *y);
  }

  // Both are won: w's value moves to r. `peer` is the one of them that sleeps.
  Attempt pass(Node& w, Node& r, Wakes& after, Node& peer) noexcept {
    if (w.is(NodeFlags::compute)) [[unlikely]] {
      w.hold(&r);
      r.status = Status::pending;
      if (&peer == &r) return Attempt::committed;  // we are the owner and compute next
      after.finish(&w, Status::ok);
      return Attempt::partner_holds;  // the owner computes; it wakes us
    }
    return hand_over(w, r, after, peer);
  }
  // The value is there.
  Attempt hand_over(Node& w, Node& r, Wakes& after, Node& peer) noexcept {
    move_value(w.slot, r.slot);
    if (r.is(NodeFlags::extended)) [[unlikely]] {
      if (ring) {  // the read holds a slot, not its writer (rule 1.6)
        hold_slot(r);
      } else {
        w.status = Status::pending;
        r.hold(&w);
        if (&peer == &w) return Attempt::committed;
        after.finish(&r, Status::ok);
        return Attempt::partner_holds;  // the reader's block ends before we go on
      }
    }
    after.finish(&peer, Status::ok);
    return Attempt::committed;
  }
  // An extended read has taken a value: its slot stays occupied until the end.
  void hold_slot(Node& n) noexcept {
    ++ring->held;
    if (!n.is(NodeFlags::kept)) return;
    if (++ring->kept != 0) return;
    --ring->kept;  // there are no more than 65,535: this one keeps no reader waiting
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
  // A party of side S has come to y.
  template <Side S>
  [[gnu::always_inline]] Step may_claim(const Node& y) const noexcept {
    constexpr auto unusual = static_cast<std::uint16_t>(
        NodeFlags::disabled |
        (S == Side::in ? NodeFlags::compute : NodeFlags::foreign | NodeFlags::extended));
    if (!y.is(unusual) && !(S == Side::in && ring && ring->lending())) [[likely]]
      return Step::claim;
    if (y.is(NodeFlags::disabled)) return Step::pass_over;
    // A foreign reader takes for itself, and those behind it wait (rule 6.6).
    if (S == Side::out && y.is(NodeFlags::foreign)) return Step::stop;
    if (!ring) return Step::claim;
    // What is computed, lent or read extended needs a slot first.
    return S == Side::in || !ring->room() ? Step::stop : Step::claim;
  }
};

}  // namespace weft::inline WEFT_ABI::core
