// The buffer layer of a channel: values enter a ring and leave it (rules 1.3 to 1.5). Self is the
// channel, which then matches its waiting parties again.
//
// Invariants (channel's lock)
//  1 While the buffer has a value, no plain reader waits. Parties of standing alternatives may stay
//    in the waiting queue: they are marked ready.
//  2 A writer waits at a blocking buffer only while the buffer has no room, or while a value
//    committed earlier is being computed.
#pragma once
#include "ready.hpp"
#include "rendezvous.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Buffered : public Rendezvous<T, P> {
 public:
  using Rendezvous<T, P>::ring;

  void set_ring(Ring<T>* r) noexcept {
    ring = r;
    if (!r) return;
    state_ |= B::kBuffered;
    B::form_queues();
  }

  bool buffered() const noexcept { return ring != nullptr; }

  std::uint64_t dropped() const noexcept { return ring ? ring->dropped : 0; }
  std::uint64_t depth() const noexcept { return ring ? ring->size : 0; }
  std::uint64_t capacity() const noexcept { return ring ? ring->capacity : 0; }

 protected:
  using B = ChannelBase<P>;
  using AfterUnlock = core::AfterUnlock<T>;
  using B::blocked, B::node, B::release, B::reader_queue_, B::state_, B::transfers_,
      B::writer_queue_;

  // Returns whether the buffer can accept a value now, so that the writer need not wait (rule 1.4).
  bool accepts() const noexcept {
    return ring && (ring->room() || ring->overflow != Overflow::block);
  }

  template <class Me>
  WEFT_OUTLINE_HOSTED Attempt from_buffer(Node& n, Me me, AfterUnlock& after) noexcept {
    if (ring->size == 0)
      return n.is(NodeFlags::extended) && !ring->room()
                 ? Attempt::not_ready
                 : this->template meet<Side::in>(n, me, after);
    if (!me.self()) return Attempt::gone;
    ring->pop_into(n.slot);
    ++transfers_;
    if (n.is(NodeFlags::extended)) this->hold_slot(n);
    pull(after);
    return Attempt::committed;
  }

  template <class Me>
  WEFT_OUTLINE_HOSTED Attempt to_buffer(Node& n, Me me, AfterUnlock& after) noexcept {
    if (state_ & (B::kReadersGone | B::kSpanned)) {
      if ((state_ & B::kReadersGone) && !blocked(reader_queue_)) return Attempt::not_ready;
      if (ring->lending()) return Attempt::not_ready;
    }
    const bool compute = n.is(NodeFlags::compute);
    if (ring->size == 0 && !compute)  // The value goes directly to the first reader (rule 1.5).
      if (const Attempt t = this->template meet<Side::out>(n, me, after); t != Attempt::not_ready)
        return t;
    if (!ring->room()) {
      if (ring->overflow == Overflow::block) return Attempt::not_ready;
      if (ring->overflow == Overflow::unbounded && (!ring->grow || !ring->grow(*ring)))
        return Attempt::not_ready;
      if (!me.self()) return Attempt::gone;
      const bool drops_one =
          ring->overflow == Overflow::drop_oldest || ring->overflow == Overflow::drop_last;
      if (ring->overflow == Overflow::drop_newest || (drops_one && ring->size == 0)) {
        if (compute)
          ++ring->reserved;  // Once the value is computed, deliver() decides whether it is dropped.
        else
          ++ring->dropped;  // The value stays in the writer's slot, and is destroyed there.
        return Attempt::committed;
      }
      if (drops_one) {
        // No writer ever waits at a buffer that drops, so one step brings in one value, and at most
        // one value is dropped; it is destroyed once the lock is free (rule 12.1).
        if constexpr (!std::is_trivially_destructible_v<T>)
          if (after.has_victim) prim::fatal("two values dropped in one step of a channel");
        ring->overflow == Overflow::drop_last ? ring->pop_last_into(after.victim)
                                              : ring->pop_into(after.victim);
        after.has_victim = true;
        ++ring->dropped;
      }
    } else if (!me.self()) {
      return Attempt::gone;
    }
    if (compute) {
      ++ring->reserved;
      return Attempt::committed;
    }
    ring->push(std::move(*static_cast<T*>(n.slot)));
    if (state_ & B::kWatched) static_cast<Self*>(this)->rematch(after);
    return Attempt::committed;
  }

  // Lets the values of waiting writers enter the buffer, in order (rule 1.5). Called when the
  // buffer has room.
  void pull(AfterUnlock& after) noexcept {
    if (!ring) return;
    Node* y = nullptr;
    for (Link* at = writer_queue_.front();
         at && (ring->room() || (!plain_only<P> && ring->lending()));) {
      if (B::claim_next(writer_queue_, at, y, Free{},
                        [&](Node& w) { return may_enter(w, after); }) != Attempt::committed)
        return;
      if (y->is(NodeFlags::compute))
        ++ring->reserved;
      else
        ring->push(std::move(*static_cast<T*>(y->slot)));
      after.finish(y, Status::ok);
    }
  }
  // Returns whether the value of the waiting writer w may enter the buffer. It may enter if there
  // is room, or if slots are lent. If w is a watch, it is woken because its party might now commit.
  // If w belongs to a standing alternative that does not wait, w is marked ready, so that the
  // alternative checks this guard.
  typename B::Step may_enter(Node& w, AfterUnlock& after) noexcept {
    if (w.is(NodeFlags::watch)) {
      if (ring->lending() ? lends(w) : w.index == 0) {
        release(writer_queue_, &w);
        after.finish(&w, Status::ok);
      }
      return B::Step::pass_over;
    }
    if (ring->lending() || w.is(NodeFlags::disabled)) return B::Step::pass_over;
    if (w.is(NodeFlags::standing)) mark_ready(&w);
    return B::Step::claim;
  }

  // Returns whether a lender (lending.hpp) must be woken. At a buffer, the lender must be woken if
  // as many slots are free as the lender wants, if an extended read holds a slot, or if another
  // party waits to write. At a rendezvous, it must be woken if a reader can be promised, or a
  // promise must be taken back.
  bool lends(const Node& lender) const noexcept {
    if (lender.index == 0) return false;
    if (!ring) return static_cast<const Self*>(this)->must_look();
    if (ring->free() >= lender.index || ring->held > 0) return true;
    for (Link* l = writer_queue_.front(); l; l = l->next)
      if (!node(l)->is(NodeFlags::watch)) return true;
    return false;
  }

  void drop_buffer(AfterUnlock& after) noexcept {
    if (!ring || ring->size == 0) return;
    ring->dropped += ring->size;
    after.trash = ring->steal();
  }
};

}  // namespace weft::inline WEFT_ABI::core
