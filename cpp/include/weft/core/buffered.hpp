// The buffer half of a channel: values enter a ring and leave it (rules 1.3 to 1.5). Self: the channel, which rematches its sleepers.
//
// Invariants (channel's lock)
//  1 A buffered value and a waiting plain reader do not coexist, save parties of standing alternatives, which are marked ready.
//  2 A writer waits at a blocking buffer only while it has no room, or while a value committed earlier is being computed.
#pragma once
#include "ready.hpp"
#include "rendezvous.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Buffered : public Rendezvous<T, P> {
 public:
  Ring<T>* ring = nullptr;  // null: rendezvous

  void set_ring(Ring<T>* r) noexcept {
    ring = r;
    if (!r) return;
    special_ |= B::kBuffered;
    B::form_lines();
  }

  bool buffered() const noexcept { return ring != nullptr; }

  std::uint64_t dropped() const noexcept { return ring ? ring->dropped : 0; }

 protected:
  using B = ChannelBase<P>;
  using Effects = core::Effects<T>;
  using B::blocked, B::node, B::release, B::rq_, B::special_, B::transfers_, B::wq_;

  // The buffer takes a value without waiting (rule 1.4).
  bool accepts() const noexcept { return ring && (ring->room() || ring->overflow != Overflow::block); }

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

  template <class Me>
  Try from_buffer(Node& n, Me me, Effects& fx) noexcept {
    if (ring->size == 0) return from_writer(n, me, fx);
    if (!me.self()) return Try::gone;
    ring->pop_into(n.slot);
    ++transfers_;
    if (n.is(NodeFlags::extended)) hold_slot(n);
    pull(fx);
    return Try::committed;
  }

  // The buffer is empty and a writer waits all the same: every slot is held or reserved. They meet as in a rendezvous (rule 1.5), but an
  // extended read needs a slot to occupy, and so does a value that is yet to be computed.
  template <class Me>
  Try from_writer(Node& n, Me me, Effects& fx) noexcept {
    if (n.is(NodeFlags::extended) && !ring->room()) return Try::not_ready;
    for (Link* l = wq_.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (y->is(NodeFlags::disabled)) continue;
      if (y->is(NodeFlags::compute) || ring->lending()) break;
      const Claim c = me.with(y);
      if (c == Claim::self_gone) return Try::gone;
      if (c == Claim::won) {
        release(wq_, y);
        ++transfers_;
        ::new (n.slot) T(std::move(*static_cast<T*>(y->slot)));
        if (n.is(NodeFlags::extended)) hold_slot(n);
        fx.finish(y, Status::ok);
        return Try::committed;
      }
      if (c == Claim::other_gone && !y->is(NodeFlags::standing)) release(wq_, y);
    }
    return Try::not_ready;
  }

  template <class Me>
  Try to_buffer(Node& n, Me me, Effects& fx) noexcept {
    if (special_ & (B::kReadersGone | B::kSpanned)) {
      if ((special_ & B::kReadersGone) && !blocked(rq_)) return Try::not_ready;
      if (ring->lending() && WEFT_MUTANT != 41) return Try::not_ready;
    }
    const bool compute = n.is(NodeFlags::compute);
    if (ring->size == 0 && !compute) {
      // Straight to the first reader (rule 1.5); a buffered write is not held by an extended read, its slot is.
      for (Link* l = rq_.front(); l;) {
        Node* y = node(l);
        l = l->next;
        if (y->is(NodeFlags::disabled)) continue;
        if (y->is(NodeFlags::foreign) || (y->is(NodeFlags::extended) && !ring->room())) break;
        const Claim c = me.with(y);
        if (c == Claim::self_gone) return Try::gone;
        if (c == Claim::won) {
          release(rq_, y);
          ++transfers_;
          ::new (y->slot) T(std::move(*static_cast<T*>(n.slot)));
          if (y->is(NodeFlags::extended)) hold_slot(*y);
          fx.finish(y, Status::ok);
          return Try::committed;
        }
        if (c == Claim::other_gone && !y->is(NodeFlags::standing)) release(rq_, y);
      }
    }
    if (!ring->room()) {
      if (ring->overflow == Overflow::block) return Try::not_ready;
      if (ring->overflow == Overflow::unbounded && (!ring->grow || !ring->grow(*ring))) return Try::not_ready;
      if (!me.self()) return Try::gone;
      const bool drops_one = ring->overflow == Overflow::drop_oldest || ring->overflow == Overflow::drop_last;
      if (ring->overflow == Overflow::drop_newest || (drops_one && ring->size == 0)) {
        if (compute)
          ++ring->reserved;  // dropped, or not, when it is there
        else
          ++ring->dropped;  // the value stays in the writer's slot and dies with it
        return Try::committed;
      }
      if (drops_one) {
        if (fx.has_victim) reinterpret_cast<T*>(fx.victim)->~T();
        ring->overflow == Overflow::drop_last ? ring->pop_last_into(fx.victim) : ring->pop_into(fx.victim);
        fx.has_victim = true;
        ++ring->dropped;
      }
    } else if (!me.self()) {
      return Try::gone;
    }
    if (compute) {
      ++ring->reserved;
      return Try::committed;
    }
    ring->push(std::move(*static_cast<T*>(n.slot)));
    if (special_ & B::kWatched) static_cast<Self*>(this)->rematch(fx);
    return Try::committed;
  }

  // Room in the buffer: waiting writers' values enter it, in order (rule 1.5).
  void pull(Effects& fx) noexcept {
    if (!ring) return;
    for (Link* l = wq_.front(); l && (ring->room() || (!plain_only<P> && ring->lending()));) {
      Node* y = node(l);
      l = l->next;
      if (!plain_only<P> && ring->lending()) {
        if (y->is(NodeFlags::watch) && lends(*y)) {
          release(wq_, y);
          fx.finish(y, Status::ok);
        }
        continue;
      }
      if (y->is(NodeFlags::disabled)) {
        if (!plain_only<P> && y->is(NodeFlags::watch) && y->index == 0) {
          release(wq_, y);
          fx.finish(y, Status::ok);
        }
        continue;
      }
      bool won = Free{}.with(y) == Claim::won;
      if (!won && y->is(NodeFlags::standing)) {
        mark_ready(y);
        won = Free{}.with(y) == Claim::won;
      }
      if (!won) {
        if (!y->is(NodeFlags::standing)) release(wq_, y);
        continue;
      }
      release(wq_, y);
      if (y->is(NodeFlags::compute))
        ++ring->reserved;
      else
        ring->push(std::move(*static_cast<T*>(y->slot)));
      fx.finish(y, Status::ok);
    }
  }

  // Is a lender (lending.hpp) to be told? So many slots are free as it wants, an extended read holds one, or somebody else waits to write.
  bool lends(const Node& lender) const noexcept {
    if (lender.index == 0 || !ring) return false;
    if (ring->free() >= lender.index || ring->held > 0) return true;
    for (Link* l = wq_.front(); l; l = l->next)
      if (!node(l)->is(NodeFlags::watch)) return true;
    return false;
  }

  void drop_buffer(Effects& fx) noexcept {
    if (!ring || ring->size == 0) return;
    ring->dropped += ring->size;
    fx.trash = ring->steal();
  }
};

}  // namespace weft::inline WEFT_ABI::core
