// Notifies parties that wait in a queue: standing alternatives and foreign readers when something
// has changed, and all parties when the channel has ended.
//
// A standing party is marked ready, and committed only if its word is WAITING. A foreign party is
// notified, and takes the value itself (rule 6.6). rematch() commits all other parties, in order.
//
//   a foreign reader in the queue:
//                                    ┌──take(): nothing is left for it────────┐
//                                    ▼                                        │
//     asleep ──tell(): a value is offered beyond those of the undecided──► undecided ──take()──► has it
//                                                                        └──declined()──► gone
//
// Invariants (channel's lock)
//  1 No queued reader could commit with a queued writer (or a buffered value). Exceptions are
//    readers that wait for undecided readers (invariant 2), parties of standing alternatives, which
//    are marked ready, and two parties of the same choice.
//  2 `deciding_` foreign readers are undecided: those that are `notified`. That many of the offered
//    values are reserved for them: a reader behind them takes only values beyond these. But if an
//    undecided reader has withdrawn since the last transfer, a reader that arrives takes any value.
//    Otherwise a few readers that are all cancelled in the step in which they are notified could
//    pass the value around forever.
//  3 Once the channel has ended for a side, no party that could be claimed waits there.
#pragma once
#include "buffered.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Notifier : public Buffered<T, P, Self> {
 protected:
  friend Buffered<T, P, Self>;
  using B = ChannelBase<P>;
  using AfterUnlock = core::AfterUnlock<T>;
  using B::blocked, B::deciding_, B::declined_, B::died_, B::leave, B::node, B::release,
      B::reader_queue_, B::state_, B::transfers_, B::writer_queue_;
  using Buffered<T, P, Self>::accepts, Buffered<T, P, Self>::drop_buffer,
      Buffered<T, P, Self>::from_buffer, Buffered<T, P, Self>::pull;
  using Buffered<T, P, Self>::ring, Buffered<T, P, Self>::to_buffer;

  void is_watched() noexcept { state_ |= B::kWatched; }
  // Makes the attempt of a party at a channel that has a buffer.
  template <Side S, class Me>
  [[gnu::always_inline]] Attempt attempt_at_buffer(Node& n, Me me, AfterUnlock& after) noexcept {
    if constexpr (S == Side::in)
      return from_buffer(n, me, after);
    else
      return to_buffer(n, me, after);
  }

  // Commits sleeping parties that can commit with each other, in order, and notifies the others.
  // Called after a change at a watched channel.
  WEFT_OUTLINE_HOSTED void rematch(AfterUnlock& after) noexcept {
    pull(after);
    if constexpr (plain_only<P>) return;
    if (state_ & B::kFar) {
      after.told = static_cast<Self*>(this)->agent();
      return;
    }
    hint(after);
    // Whether the loop has passed a foreign reader. If so, only values beyond those reserved for
    // the undecided readers are free.
    bool behind = false;
    bool looked = false, spare = false;
    const auto any_spare = [&]() noexcept {
      if (!std::exchange(looked, true)) spare = offered(deciding_);
      return spare;
    };
    for (Link* l = reader_queue_.front(); l;) {
      Node* r = node(l);
      l = l->next;
      if (r->is(NodeFlags::disabled)) continue;
      if (r->is(NodeFlags::promised)) break;
      if (!(ring && ring->size > 0) && writer_queue_.empty()) return;
      if (r->is(NodeFlags::foreign)) {
        if (!any_spare()) break;
        behind = true;
        if (r->is(NodeFlags::notified) || lacks_slot(*r)) continue;
        if (!tell(r, after)) break;
        looked = false;
        continue;
      }
      if (behind && !any_spare()) break;
      const bool standing = r->is(NodeFlags::standing);
      if (standing) {
        if (offered()) mark_ready(r);
        if (r->choice_->word() != WAITING) continue;
      }
      Waker* const before = after.last();
      const Attempt t = r->choice() ? match(*r, EnrolledParty{r->choice_, r->index}, after)
                                    : match(*r, FreeParty{}, after);
      if (t == Attempt::not_ready) continue;
      looked = behind = false;
      if (!standing) this->template leave<Side::in>(*r);
      // The reader is woken before the writer: if both are in other address spaces the reader must
      // be answered first (WIRE.md 4.2).
      if (t == Attempt::committed) after.finish_behind(before, r, Status::ok);
      l = reader_queue_.front();
    }
    // Alternatives with a standing output at this channel are notified of waiting readers and of
    // room.
    for (Link* l = writer_queue_.front(); l;) {
      Node* w = node(l);
      l = l->next;
      if (!w->is(NodeFlags::standing) || w->is(NodeFlags::disabled)) continue;
      if (!blocked(reader_queue_) && !accepts()) continue;
      mark_ready(w);
      if (w->choice_->word() != WAITING) continue;
      const EnrolledParty me{w->choice_, w->index};
      const Attempt t =
          ring ? to_buffer(*w, me, after) : this->template meet<Side::out>(*w, me, after);
      if (t == Attempt::committed) after.finish(w, Status::ok);
      if (t != Attempt::not_ready)
        l = writer_queue_.front();
      else
        invite(after);
    }
  }
  // Wakes the watches whose parties might find a partner now.
  void hint(AfterUnlock& after) noexcept {
    if (!(state_ & B::kSpanned)) return;
    if (may_meet<Side::in>()) tell_watches(reader_queue_, true, after);
    tell_watches(writer_queue_, may_meet<Side::out>(), after);
  }
  template <Side S>
  bool may_meet() noexcept {
    if constexpr (S == Side::in)
      return offered() && !spoken_for();
    else
      return could_write();
  }
  // An extended read waits if the buffer has no slot for its value (rule 1.5), so such a reader
  // does not count.
  bool could_write() noexcept {
    if (accepts()) return true;
    return this->template claimable<Side::in>(ring ? NodeFlags::extended : 0) &&
           !(ring && ring->lending());
  }
  // Wakes the watches in q whose parties might find a partner. `now` says whether any party on the
  // side of q might find one. For lenders, other conditions apply.
  void tell_watches(Queue& q, bool now, AfterUnlock& after) noexcept {
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (!y->is(NodeFlags::watch)) continue;
      // A value that is computed later needs a slot in the buffer.
      const bool meets = y->is(NodeFlags::compute) && ring ? accepts() : now;
      if (!(y->index == 0 ? meets : this->lends(*y))) continue;
      release(q, y);
      after.finish(y, Status::ok);
    }
  }
  static bool watched(const Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::watch)) return true;
    return false;
  }
  // Marks as ready each standing alternative in the queue that does not wait, so that it checks for
  // watches once it waits.
  static void mark_standing(Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::standing) && !node(l)->is(NodeFlags::disabled))
        mark_ready(node(l));
  }

  template <class Me>
  Attempt match(Node& r, Me me, AfterUnlock& after) noexcept {
    return ring ? from_buffer(r, me, after) : this->template meet<Side::in>(r, me, after);
  }
  // Counts the values that are offered, up to `most`. (A select that offers at two guards counts
  // twice.)
  std::uint32_t offers(std::uint32_t most) const noexcept {
    std::uint32_t found = ring ? ring->size : 0;
    for (Link* l = writer_queue_.front(); l && found < most; l = l->next) {
      const Node* y = node(l);
      if (y->is(NodeFlags::disabled)) continue;
      // Such a writer's value needs a slot first.
      if (ring && (y->is(NodeFlags::compute) || ring->lending())) return found;
      if (B::waits(*y)) ++found;
    }
    return found;
  }
  // Returns whether more than n values are offered.
  bool offered(std::uint32_t n = 0) const noexcept { return offers(n + 1) > n; }
  // Returns whether the reader is an extended read that must wait for a free slot (rule 1.5).
  bool lacks_slot(const Node& reader) const noexcept {
    return reader.is(NodeFlags::extended) && ring && ring->size == 0 && !ring->room();
  }
  // Returns whether all offered values are reserved for undecided readers, so that a reader that
  // arrives must wait (rule 6.6).
  [[gnu::noinline, gnu::cold]] bool spoken_for() const noexcept {
    if constexpr (!plain_only<P>) {
      if (!(state_ & B::kDeciding) || declined_ == mark_now()) return false;
      const std::uint32_t n = offers(deciding_ + 1u);
      return n > 0 && n <= deciding_;
    }
    return false;
  }
  std::uint32_t mark_now() const noexcept { return static_cast<std::uint32_t>(transfers_) + 1; }

  // Notifies a foreign reader that has not been notified yet. Returns false if another reader is
  // being notified; then r will be notified after the lock is released.
  bool tell(Node* r, AfterUnlock& after) noexcept {
    if (after.told) {
      after.more = true;
      return false;
    }
    r->set(NodeFlags::notified);
    ++r->told;
    ++deciding_;
    state_ |= B::kDeciding;
    after.told = waker_of(r);
    return true;
  }
  bool foreign_first() const noexcept {
    for (Link* l = reader_queue_.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::foreign)) return true;
    return false;
  }
  // Notifies a foreign reader, which can now find a standing output. Called when that output begins
  // to wait.
  void invite(AfterUnlock& after) noexcept {
    if (!offered(deciding_)) return;
    for (Link* l = reader_queue_.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::foreign) && !node(l)->is(NodeFlags::notified)) {
        tell(node(l), after);
        return;
      }
  }
  // Called when an undecided foreign reader withdraws. Does nothing for a guard whose select has
  // committed elsewhere.
  void declined(const Node& r) noexcept {
    if constexpr (!plain_only<P>)
      if (r.is(NodeFlags::notified) && !(r.choice() && r.choice()->done())) declined_ = mark_now();
  }
  // Serves the readers behind a foreign reader that has decided: it has taken a value, withdrawn,
  // or found none.
  void decided(Node& r, AfterUnlock& after) noexcept {
    if (!r.is(NodeFlags::notified)) return;
    r.clear(NodeFlags::notified);
    if (--deciding_ == 0) state_ &= static_cast<std::uint8_t>(~B::kDeciding);
    if (state_ & B::kPoisoned)
      fail_all(reader_queue_, Status::poisoned, after);
    else
      rematch(after);
  }

  // Called when a standing alternative has just taken a value at this channel. If the channel has
  // more values, the alternative's node is marked ready again.
  template <Side S>
  void mark_if_more(Node& n) noexcept {
    const bool more = S == Side::in ? offered() : could_write();
    if (more) mark_ready(&n);
  }

  // --- how a channel ends ------------------------------------------------------------------------

  // Returns true, and sets n.status, if the channel has ended for a party of side S that found no
  // partner.
  template <Side S>
  bool ended(Node& n) noexcept {
    return ended(kSide<S>, n);
  }
  template <class S>
  WEFT_ONE_HOSTED bool ended(S side, Node& n) noexcept {
    if (state_ & B::kPoisoned) {
      n.status = Status::poisoned;
      return true;
    }
    if (side == Side::in) {
      if (!(state_ & B::kWritersGone) ||
          (ring && (ring->size > 0 || ring->reserved > 0 || ring->kept > 0)) ||
          blocked(writer_queue_))
        return false;
      n.status = died_ & B::kWriterDied ? Status::died : Status::retired;
    } else {
      if (!(state_ & B::kReadersGone) || blocked(reader_queue_)) return false;
      n.status = died_ & B::kReaderDied ? Status::died : Status::retired;
    }
    return true;
  }

  // Notifies the parties for which the channel has ended (rules 3.1–3.3).
  WEFT_INLINE_HOSTED void tell_if_ended(AfterUnlock& after) noexcept {
    if (!(state_ & (B::kWritersGone | B::kReadersGone)) || (state_ & B::kPoisoned)) [[likely]]
      return;
    tell_ended(after);
  }
  [[gnu::noinline, gnu::cold]] void tell_ended(AfterUnlock& after) noexcept {
    Node probe;
    if ((state_ & B::kReadersGone) && ended<Side::out>(probe)) {
      fail_all(writer_queue_, probe.status, after);
      drop_buffer(after);
    }
    if ((state_ & B::kWritersGone) && ended<Side::in>(probe))
      fail_all(reader_queue_, probe.status, after);
  }

  void fail_all(Queue& q, Status s, AfterUnlock& after) noexcept {
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (y->is(NodeFlags::foreign)) {
        if (!y->is(NodeFlags::notified)) tell(y, after);
        continue;
      }
      // This party will be notified when the promise is kept or withdrawn.
      if (y->is(NodeFlags::promised)) continue;
      if (!y->is(NodeFlags::standing)) {
        release(q, y);
        if (ends(y, s)) after.finish(y, s);
        continue;
      }
      // The alternative of a silent guard already knows that the channel has retired.
      if (s == Status::retired && y->is(NodeFlags::silent)) continue;
      mark_ready(y);
      // The alternative checks the channel itself. A silent guard stays silent for the select that
      // waits.
      if (!(y->flags & (NodeFlags::disabled | NodeFlags::silent)) && Free{}.with(y) == Claim::won)
        after.finish(y, s);
    }
  }
};

}  // namespace weft::inline WEFT_ABI::core
