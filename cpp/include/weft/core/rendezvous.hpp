// The rendezvous: two parties meet and the value moves from the one's slot to the other's (rule 1.1).
//
// Invariants
//  1 Both parties are won (waiter.hpp) before the value moves.
//  2 Values move by T's move constructor, which must not throw; nothing else of T runs under the lock (rule 12).
//  3 Who is woken, and what is dropped, is put down in Effects and done once the lock is released.
#pragma once
#include <new>
#include <type_traits>
#include <utility>

#include "buffer.hpp"
#include "line.hpp"

namespace weft::inline WEFT_ABI::core {

// What is left to do once the lock is released: wake, and destroy what was dropped.
template <class T>
struct Effects : Wakes {
  Ring<T> trash;
  alignas(T) unsigned char victim[sizeof(T)];
  bool has_victim = false;
  Waker* told = nullptr;  // a foreign party: not in the list, for two channels may tell one select at the same time
  void finish_all() noexcept {
    this->run();
    if (told) told->ops->tell(told);
    if (has_victim) reinterpret_cast<T*>(victim)->~T();
  }
};

template <class T, class P>
class Rendezvous : public ChannelBase<P> {
 protected:
  using B = ChannelBase<P>;
  using B::node, B::release, B::transfers_;

  // Meet the first party in the opposite line that can be claimed together with ourselves.
  template <Side S, class Me>
  Try meet(Node& n, Me me, Wakes& fx) noexcept {
    Queue& q = this->template opposite<S>();
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (y->flags & (NodeFlags::foreign | NodeFlags::disabled)) [[unlikely]] {
        if (y->is(NodeFlags::disabled)) continue;
        if (WEFT_MUTANT == 6) {
          release(q, y);
          ++transfers_;
          return pass(n, *y, fx, *y);
        }
        return Try::not_ready;  // it takes for itself, and those behind it wait (rule 6.6)
      }
      switch (me.with(y)) {
        case Claim::won:
          release(q, y);
          ++transfers_;
          return S == Side::in ? pass(*y, n, fx, *y) : pass(n, *y, fx, *y);
        case Claim::self_gone: return Try::gone;
        case Claim::itself: break;
        case Claim::other_gone:
          if (!y->is(NodeFlags::standing)) release(q, y);
          break;
      }
    }
    return Try::not_ready;
  }

  // Both are won: w's value moves to r. `peer` is the one of them that sleeps.
  static Try pass(Node& w, Node& r, Wakes& fx, Node& peer) noexcept {
    if (w.is(NodeFlags::compute)) [[unlikely]] {
      w.hold(&r);
      r.status = Status::pending;
      if (&peer == &r) return Try::committed;  // we are the owner and compute next
      fx.finish(&w, Status::ok);
      return Try::held;  // the owner computes; it wakes us
    }
    ::new (r.slot) T(std::move(*static_cast<T*>(w.slot)));
    if (r.is(NodeFlags::extended)) [[unlikely]] {
      w.status = Status::pending;
      r.hold(&w);
      if (&peer == &w) return Try::committed;
      fx.finish(&r, Status::ok);
      return Try::held;  // the reader's block ends before we go on
    }
    fx.finish(&peer, Status::ok);
    return Try::committed;
  }
};

}  // namespace weft::inline WEFT_ABI::core
