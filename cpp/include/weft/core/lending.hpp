// The part of a channel that serves only parties in other address spaces. The channel lends slots
// of its buffer to a far writer, as credits (WIRE.md 6.2, 6.3), or the slot of a reader that waits
// (6.6). The channel also takes back the value of an extended read (WIRE.md 4.7).
//
//   not lent ──lend()──► lending ──put(), lend(): more──► lending ──end_lending()──► not lent
//                           └──lend(): 0, the lender is queued──► woken: to ask again
//   a rendezvous:  a plain reader waits ──lend(): 1──► promised ──put()──► the reader has the value
//                      ▲                                  ├──withdraw(): false, poison, another writer──► the lender is woken
//                      └───────────── end_lending() ◄─────┴─── the reader waits again, or leaves
//
// Invariants (channel's lock)
//  1 While the channel lends slots, only put() brings values into the buffer or to a reader. So
//    values that were written on credit precede values that other parties write later (rule 1.3).
//  2 Lent slots are counted in Ring::reserved, which is marked kLending. Only the lender knows how
//    many of the reserved slots are lent.
//  3 The lender is in the queue of writers as a watch, not as a party. Its index is the number of
//    free slots at which it wants to be woken; at a rendezvous, 1.
//  4 A promised reader is the first in its queue, and stays there until put() or end_lending(): no
//    writer here meets it, it cannot be withdrawn, and it is not notified of the end of the
//    channel. There is at most one promised reader.
#pragma once
#include "notifier.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Lending : public Notifier<T, P, Self> {
  using B = ChannelBase<P>;
  using AfterUnlock = core::AfterUnlock<T>;

 protected:
  using Notifier<T, P, Self>::rematch, Notifier<T, P, Self>::tell_if_ended;
  using B::blocked, B::reader_queue_, B::state_, B::transfers_, B::writer_queue_, B::writers_;

 public:
  using Notifier<T, P, Self>::ring;

  // Called on behalf of the holder of the one writer end. Returns how many more slots are lent: all
  // free ones, if there are at least `wanted`. Returns 0 if the lender is queued; the lender is
  // woken when it should ask again. Returns kNot if the channel cannot lend; the caller then takes
  // back the slots that are already lent. With a null lender (to begin) the channel lends all free
  // slots, even if there are none.
  static constexpr int kNot = -1;
  int lend(Node* lender, std::uint32_t wanted) noexcept {
    static_assert(!plain_only<P>, "this policy has no far parties");
    this->lock_queues();
    int n = kNot;
    if (!ring) {
      n = promise(lender);
    } else if (may_lend()) {
      wanted = wanted < ring->capacity - ring->capacity / 2 ? wanted
                                                            : ring->capacity - ring->capacity / 2;
      if (!lender || ring->free() >= wanted) {
        n = static_cast<int>(ring->free());
        ring->reserved = (ring->reserved + ring->free()) | Ring<T>::kLending;
        this->is_watched();
        state_ |= B::kSpanned;
      } else {
        n = 0;
        stand(*lender, wanted);
      }
    }
    this->unlock_queues();
    return n;
  }
  // Accepts the value in me.slot, which was written on credit. If no party will read the value, it
  // stays in the slot.
  void put(Node& me) noexcept {
    AfterUnlock after;
    this->lock_queues();
    if (!ring) {
      Node& r = take_promised();
      ++transfers_;
      this->move_value(me.slot, r.slot);
      after.finish(&r, Status::ok);
      tell_if_ended(after);
      return static_cast<Self*>(this)->unlock(after);
    }
    --ring->reserved;
    if ((state_ & B::kPoisoned) || ((state_ & B::kReadersGone) && !blocked(reader_queue_)))
      ++ring->dropped;
    else
      ring->push(std::move(*static_cast<T*>(me.slot)));
    rematch(after);
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
  }
  // Ends lending, and takes back the `n` credits that were not used.
  void end_lending(std::uint32_t n) noexcept {
    AfterUnlock after;
    this->lock_queues();
    if (!ring) {
      if (n > 0) take_back(after);
      return static_cast<Self*>(this)->unlock(after);
    }
    ring->reserved = (ring->reserved & ~Ring<T>::kLending) - n;
    rematch(after);
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
  }

  // Takes back the value of the extended read `me`, which is in me.slot and will be the next to be
  // read. Returns `ok` if the value is in the buffer, a reader has it, or no party will read it.
  // Returns `pending` if `again` is the first in the queue with the value, like a writer; `again`
  // is woken when the value has been read, or the channel has ended. At a rendezvous the writer
  // stays held: end_extended() must still be called.
  Status give_back(Node& me, Node& again) noexcept {
    AfterUnlock after;
    Status s = Status::ok;
    this->lock_queues();
    if (ring) {
      this->free_slot(me);
      if ((state_ & B::kPoisoned) || ((state_ & B::kReadersGone) && !blocked(reader_queue_)))
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
        writer_queue_.insert_before(writer_queue_.front(), &again);
        rematch(after);
      }
    }
    tell_if_ended(after);
    static_cast<Self*>(this)->unlock(after);
    return s;
  }

 protected:
  friend Buffered<T, P, Self>;
  // Wakes the lender, so that it asks for the slot back. Called when a promised reader is to be
  // withdrawn. Called with the lock held, and releases it.
  [[gnu::noinline, gnu::cold]] void ask_back(Node& r) noexcept {
    AfterUnlock after;
    r.told = 1;
    this->hint(after);
    static_cast<Self*>(this)->unlock(after);
  }
  // For a rendezvous: returns whether a lender in the queue has something to do.
  bool must_look() const noexcept {
    const Node* const r = first_reader();
    if (r && r->is(NodeFlags::promised)) return r->told != 0 || !may_promise();
    return r && !r->is(NodeFlags::special | NodeFlags::watch | NodeFlags::limited) && may_promise();
  }

 private:
  Node* first_reader() const noexcept {
    return reader_queue_.front() ? B::node(reader_queue_.front()) : nullptr;
  }
  void stand(Node& lender, std::uint32_t wanted) noexcept {
    lender.flags = NodeFlags::watch | NodeFlags::disabled;
    lender.index = wanted;
    lender.status = Status::pending;
    this->template join<Side::out>(lender);
  }
  // Returns whether there is one writer end, for which the channel has not ended, and no party
  // waits at it.
  bool may_promise() const noexcept {
    return !(state_ & (B::kPoisoned | B::kWritersGone)) && writers_.get() == 1 && only_watches();
  }
  int promise(Node* lender) noexcept {
    if (!may_promise()) return kNot;
    this->is_watched();
    state_ |= B::kSpanned;
    if (!lender) return 0;
    Node* const r = first_reader();
    const bool was = r && r->is(NodeFlags::promised);
    if (was && r->told != 0) return kNot;
    const bool now = !was && must_look();
    if (now) {
      r->set(NodeFlags::promised);
      r->told = 0;
    }
    stand(*lender, 1);
    return now ? 1 : 0;
  }
  Node& promised() noexcept {
    Node* const first = first_reader();
    if (!first || !first->is(NodeFlags::promised))
      prim::fatal("a promised reader has left its waiting queue");
    return *first;
  }
  // Removes the promised reader from its queue.
  Node& take_promised() noexcept {
    Node& r = promised();
    r.clear(NodeFlags::promised);
    this->template leave<Side::in>(r);
    return r;
  }
  void take_back(AfterUnlock& after) noexcept {
    Node& r = promised();
    const bool leaves = r.told != 0;
    r.told = 0;
    if (leaves || (state_ & B::kPoisoned)) {
      take_promised();
      after.finish(&r, leaves ? Status::cancelled : Status::poisoned);
    } else {
      r.clear(NodeFlags::promised);
    }
    rematch(after);
    tell_if_ended(after);
  }

  bool may_lend() const noexcept {
    if (!ring || ring->overflow != Overflow::block || ring->capacity >= Ring<T>::kLending / 2)
      return false;
    // While an extended read holds a slot, a writer without a slot may still meet a reader (rule
    // 1.5). For such a meeting the writer must wait in this channel's queue.
    if (ring->held > 0) return false;
    if ((state_ & (B::kPoisoned | B::kWritersGone | B::kReadersGone)) || writers_.get() != 1)
      return false;
    return only_watches();
  }
  bool only_watches() const noexcept {
    for (Link* l = writer_queue_.front(); l; l = l->next)
      if (!B::node(l)->is(NodeFlags::watch)) return false;
    return true;
  }
};

}  // namespace weft::inline WEFT_ABI::core
