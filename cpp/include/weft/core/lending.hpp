// What the channel does for parties in other spaces alone: slots of a buffer that are lent to one
// far writer, which are credits (WIRE.md 6.2, 6.3); and the value of an extended read that comes
// back (WIRE.md 4.7).
//
//   not lent ──lend()──► lending ──put(), lend(): more──► lending ──end_lending()──► not lent
//                           └──lend(): 0, the lender is in line──► woken: slots are free, somebody else would write, or it has ended
//
// Invariants (channel's lock)
//  1 While the channel lends nobody but put() brings a value into the buffer or to a reader. So
//    what was written on credit keeps its place before what others write after it (rule 1.3).
//  2 Lent slots are counted in Ring::reserved, which is marked kLending. How many are lent the
//    lender knows.
//  3 The lender stands in the line of writers as a watch; its index says how many free slots it
//    wants to hear of. It is no party there.
#pragma once
#include "notifier.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Lending : public Notifier<T, P, Self> {
  using B = ChannelBase<P>;
  using AfterUnlock = core::AfterUnlock<T>;

 protected:
  using Notifier<T, P, Self>::rematch, Notifier<T, P, Self>::tell_if_ended;
  using B::blocked, B::reader_line_, B::state_, B::writer_line_, B::writers_;

 public:
  using Notifier<T, P, Self>::ring;

  // Of who holds the one writer end. > 0: so many slots more are lent: all that are free, if they
  // are `wanted` or more. 0: the lender is in line, and is woken once it is to ask again. kNot:
  // nothing is lent, or it is to get back what is. Null, to begin: also with no slot.
  static constexpr int kNot = -1;
  int lend(Node* lender, std::uint32_t wanted) noexcept {
    static_assert(!plain_only<P>, "this policy has no far parties");
    this->lock_lines();
    int n = kNot;
    if (may_lend()) {
      wanted = wanted < ring->capacity - ring->capacity / 2 ? wanted
                                                            : ring->capacity - ring->capacity / 2;
      if (!lender || ring->free() >= wanted) {
        n = static_cast<int>(ring->free());
        ring->reserved = (ring->reserved + ring->free()) | Ring<T>::kLending;
        state_ |= B::kWatched | B::kSpanned;
      } else {
        n = 0;
        lender->flags = NodeFlags::watch | NodeFlags::disabled;
        lender->index = wanted;
        lender->status = Status::pending;
        this->template join<Side::out>(*lender);
      }
    }
    this->unlock_lines();
    return n;
  }
  // A value that was written on credit, in me.slot. It stays there if nobody will read it.
  void put(Node& me) noexcept {
    AfterUnlock after;
    this->lock_lines();
    --ring->reserved;
    if ((state_ & B::kPoisoned) || ((state_ & B::kReadersGone) && !blocked(reader_line_)))
      ++ring->dropped;
    else
      ring->push(std::move(*static_cast<T*>(me.slot)));
    rematch(after);
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
  }
  // The credits that are left, `n`, are no more.
  void end_lending(std::uint32_t n) noexcept {
    AfterUnlock after;
    this->lock_lines();
    ring->reserved = (ring->reserved & ~Ring<T>::kLending) - n;
    rematch(after);
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
  }

  // The value of the extended read `me` comes back, in its slot, and is the next to be read. `ok`:
  // it is in the buffer, somebody has it, or nobody will read it. `pending`: `again` stands first
  // in line with it, as a writer does; it is woken when the value has been read, or the channel has
  // ended. At a rendezvous the writer stays held: end_extended() is still to come.
  Status give_back(Node& me, Node& again) noexcept {
    AfterUnlock after;
    Status s = Status::ok;
    this->lock_lines();
    if (ring) {
      this->free_slot(me);
      if ((state_ & B::kPoisoned) || ((state_ & B::kReadersGone) && !blocked(reader_line_)))
        ++ring->dropped;
      else
        ring->push_front(std::move(*static_cast<T*>(me.slot)));
      rematch(after);
    } else {
      again.slot = me.slot;
      const Attempt t =
          static_cast<Self*>(this)->template attempt_decided<Side::out>(again, Free{}, after);
      if (t == Attempt::partner_holds) s = Status::pending;
      if (t == Attempt::not_ready) {
        s = again.status = Status::pending;
        again.place = static_cast<SyncObject*>(this);
        again.set(NodeFlags::queued);
        writer_line_.insert_before(writer_line_.front(), &again);
        rematch(after);
      }
    }
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
    return s;
  }

 private:
  bool may_lend() const noexcept {
    if (!ring || ring->overflow != Overflow::block || ring->capacity >= Ring<T>::kLending / 2)
      return false;
    // While an extended read holds a slot a writer without one may meet a reader (rule 1.5): it
    // must stand in line here.
    if (ring->held > 0) return false;
    if ((state_ & (B::kPoisoned | B::kWritersGone | B::kReadersGone)) || writers_.get() != 1)
      return false;
    for (Link* l = writer_line_.front(); l; l = l->next)
      if (!B::node(l)->is(NodeFlags::watch)) return false;
    return true;
  }
};

}  // namespace weft::inline WEFT_ABI::core
