// What a channel does only for parties in other address spaces. It lends slots of its buffer to a
// far writer, as credits (WIRE.md 6.2, 6.3), and it takes back the value of an extended read
// (WIRE.md 4.7).
//
//   not lent ──lend()──► lending ──put(), lend(): more──► lending ──end_lending()──► not lent
//                           └──lend(): 0, the lender is in line──► woken: slots are free, somebody else would write, or it has ended
//
// Invariants (channel's lock)
//  1 While the channel lends slots, only put() brings values into the buffer or to a reader. So
//    what was written on credit comes before what others write later (rule 1.3).
//  2 Lent slots are counted in Ring::reserved, which is marked kLending. Only the lender knows how
//    many of those are lent.
//  3 The lender stands in the line of writers as a watch, not as a party. Its index is the number
//    of free slots at which it wants to be told.
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

  // Called on behalf of the holder of the one writer end. > 0: so many more slots are lent: all
  // that are free, if there are at least `wanted`. 0: the lender is in line, and is woken when it
  // should ask again. kNot: the channel cannot lend; what is lent already is to be taken back. With
  // a null lender (to begin) the channel lends whatever is free, even nothing.
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
        this->is_watched();
        state_ |= B::kSpanned;
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
  // Takes the value in me.slot, which was written on credit. If nobody will read it, it stays
  // there.
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
  // Ends lending: takes back the `n` credits that were not used.
  void end_lending(std::uint32_t n) noexcept {
    AfterUnlock after;
    this->lock_lines();
    ring->reserved = (ring->reserved & ~Ring<T>::kLending) - n;
    rematch(after);
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
  }

  // The value of the extended read `me` comes back, in me.slot, and is the next to be read. `ok`:
  // it is in the buffer, a reader has it, or nobody will read it. `pending`: `again` stands first
  // in line with it, like a writer; it is woken when the value has been read, or the channel has
  // ended. At a rendezvous the writer stays held: end_extended() must still be called.
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
          static_cast<Self*>(this)->template attempt_decided<Side::out>(again, FreeParty{}, after);
      if (t == Attempt::partner_holds) s = Status::pending;
      if (t == Attempt::not_ready) {
        s = again.status = Status::pending;
        again.place = static_cast<SyncObject*>(this);
        again.set(NodeFlags::queued);
        writer_line_.insert_before(writer_line_.front(), &again);
        this->match_again(after);  // not by the table, for there is no buffer
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
    // While an extended read holds a slot, a writer without a slot may still meet a reader (rule
    // 1.5). For that it must stand in line here.
    if (ring->held > 0) return false;
    if ((state_ & (B::kPoisoned | B::kWritersGone | B::kReadersGone)) || writers_.get() != 1)
      return false;
    for (Link* l = writer_line_.front(); l; l = l->next)
      if (!B::node(l)->is(NodeFlags::watch)) return false;
    return true;
  }
};

}  // namespace weft::inline WEFT_ABI::core
