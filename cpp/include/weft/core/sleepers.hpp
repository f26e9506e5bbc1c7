// Parties that sleep in a line and have to hear of it: standing alternatives, foreign readers, and all of them when the channel ends.
//
// A standing party is marked ready and committed only if its word is WAITING; a foreign one is told and takes for itself (rule 6.6); the
// rest are committed by rematch() in order.
//
// Invariants (channel's lock)
//  1 If no foreign waiter is deciding: no queued reader and queued writer (or buffered value) could commit with each other, save parties
//    of standing alternatives, which are marked ready, and of one same choice.
//  2 One foreign reader decides at a time (`deciding_`); other readers wait for it.
//  3 Once the channel has ended for a side, nobody who could be claimed waits there.
#pragma once
#include "buffered.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P, class Self>
class Sleepers : public Buffered<T, P, Self> {
 protected:
  friend Buffered<T, P, Self>;
  using B = ChannelBase<P>;
  using Effects = core::Effects<T>;
  using B::blocked, B::deciding_, B::died_, B::leave, B::node, B::release, B::rq_, B::special_, B::wq_;
  using Buffered<T, P, Self>::accepts, Buffered<T, P, Self>::drop_buffer, Buffered<T, P, Self>::from_buffer, Buffered<T, P, Self>::pull;
  using Buffered<T, P, Self>::ring, Buffered<T, P, Self>::to_buffer;

  // After a change on a watched channel: let sleeping parties that can commit with each other do so, in order; tell the others.
  void rematch(Effects& fx) noexcept {
    pull(fx);
    if constexpr (plain_only<P>) return;
    if (special_ & B::kFar) {
      fx.told = static_cast<Self*>(this)->agent();
      return;
    }
    hint(fx);
    for (Link* l = rq_.front(); l;) {
      Node* r = node(l);
      l = l->next;
      if (r->is(NodeFlags::disabled)) continue;
      if (!(ring && ring->size > 0) && wq_.empty()) return;
      if (r->is(NodeFlags::foreign)) {
        if (offered()) tell(r, fx);
        break;
      }
      const bool standing = r->is(NodeFlags::standing);
      if (standing) {
        if (offered()) mark_ready(r);
        if (WEFT_MUTANT == 4) continue;
        if (r->choice_->word() != WAITING) continue;
      }
      Waker* const before = fx.last();
      const Try t = r->choice() ? match(*r, Enrolled{r->choice_, r->index}, fx) : match(*r, Free{}, fx);
      if (t == Try::not_ready) continue;
      if (!standing) this->template leave<Side::in>(*r);
      // The reader is woken before the writer: if both are of other spaces, it is to be told first (WIRE.md 4.2).
      if (t == Try::committed) WEFT_MUTANT == 40 ? fx.finish(r, Status::ok) : fx.finish_behind(before, r, Status::ok);
      l = rq_.front();
    }
    // Output alternatives that stand here learn of waiting readers and of room.
    for (Link* l = wq_.front(); l;) {
      Node* w = node(l);
      l = l->next;
      if (!w->is(NodeFlags::standing) || w->is(NodeFlags::disabled)) continue;
      if (!blocked(rq_) && !accepts()) continue;
      mark_ready(w);
      if (WEFT_MUTANT == 4) continue;
      if (w->choice_->word() != WAITING) continue;
      const Enrolled me{w->choice_, w->index};
      const Try t = ring ? to_buffer(*w, me, fx) : this->template meet<Side::out>(*w, me, fx);
      if (t == Try::committed) fx.finish(w, Status::ok);
      if (t != Try::not_ready)
        l = wq_.front();
      else
        invite(fx);
    }
  }
  // Tells the watches that their party might meet somebody now.
  void hint(Effects& fx) noexcept {
    if (!(special_ & B::kSpanned)) return;
    if (may_meet<Side::in>()) tell_watches(rq_, true, fx);
    tell_watches(wq_, may_meet<Side::out>(), fx);
  }
  // While a foreign reader decides, the others wait for it.
  template <Side S>
  bool may_meet() noexcept {
    if constexpr (S == Side::in)
      return !(special_ & B::kDeciding) && offered();
    else
      return could_write();
  }
  bool could_write() noexcept { return (this->template claimable<Side::in>() && !(ring && ring->lending())) || accepts(); }
  // `now`: a party of that side might meet somebody. Lenders hear of something else.
  void tell_watches(Queue& q, bool now, Effects& fx) noexcept {
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (!y->is(NodeFlags::watch) || !(y->index == 0 ? now : this->lends(*y))) continue;
      release(q, y);
      fx.finish(y, Status::ok);
    }
  }
  static bool watched(const Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::watch)) return true;
    return false;
  }
  // Alternatives that stand here and do not wait: once they do, they are to look for watches.
  static void mark_standing(Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::standing) && !node(l)->is(NodeFlags::disabled)) mark_ready(node(l));
  }

  template <class Me>
  Try match(Node& r, Me me, Effects& fx) noexcept {
    return ring ? from_buffer(r, me, fx) : this->template meet<Side::in>(r, me, fx);
  }
  bool offered() const noexcept {
    if (ring && ring->size > 0) return true;
    for (Link* l = wq_.front(); l; l = l->next) {
      const Node* y = node(l);
      if (y->is(NodeFlags::disabled)) continue;
      if (ring && (y->is(NodeFlags::compute) || ring->lending())) return false;  // it needs a slot first
      if (!y->is(NodeFlags::standing)) return true;
      const std::uint32_t w = y->choice_->word();
      if (w == WAITING || w == LOCKED) return true;
    }
    return false;
  }

  // One foreign reader decides at a time; so one operation tells at most one.
  void tell(Node* r, Effects& fx) noexcept {
    if (deciding_ != 0) return;
    r->set(NodeFlags::notified);
    ++r->told;
    ++deciding_;
    special_ |= B::kDeciding;
    fx.told = waker_of(r);
  }
  bool foreign_first() const noexcept {
    for (Link* l = rq_.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::foreign)) return true;
    return false;
  }
  // A standing output waits now: let a foreign reader find it.
  void invite(Effects& fx) noexcept {
    for (Link* l = rq_.front(); l; l = l->next)
      if (node(l)->is(NodeFlags::foreign)) return tell(node(l), fx);
  }
  // A foreign reader has decided (taken, withdrawn, or found nothing): the line moves on.
  void decided(Node& r, Effects& fx) noexcept {
    if (!r.is(NodeFlags::notified)) return;
    r.clear(NodeFlags::notified);
    deciding_ = 0;
    special_ &= static_cast<std::uint8_t>(~B::kDeciding);
    if (WEFT_MUTANT == 7) return;
    if (special_ & B::kPoisoned)
      fail_all(rq_, Status::poisoned, fx);
    else
      rematch(fx);
  }

  // A standing alternative just took something here: is there more?
  template <Side S>
  void remark(Node& n) noexcept {
    const bool more = S == Side::in ? offered() : could_write();
    if (more) mark_ready(&n);
  }

  // --- how it ends -------------------------------------------------------------------------------------------------------------------

  // Sets n.status if the channel has ended for a party of side S that found nobody.
  template <Side S>
  bool ended(Node& n) noexcept {
    if (special_ & B::kPoisoned) {
      n.status = Status::poisoned;
      return true;
    }
    if constexpr (S == Side::in) {
      if (!(special_ & B::kWritersGone) || (ring && (ring->size > 0 || ring->reserved > 0 || ring->kept > 0)) || blocked(wq_)) return false;
      n.status = died_ & B::kWriterDied ? Status::died : Status::retired;
    } else {
      if (!(special_ & B::kReadersGone) || blocked(rq_)) return false;
      n.status = died_ & B::kReaderDied ? Status::died : Status::retired;
    }
    return true;
  }

  // Tell those for whom the channel has ended by now (rules 3.1–3.3).
  WEFT_INLINE_HOSTED void settle(Effects& fx) noexcept {
    if (!(special_ & (B::kWritersGone | B::kReadersGone)) || (special_ & B::kPoisoned)) [[likely]]
      return;
    tell_ended(fx);
  }
  [[gnu::noinline, gnu::cold]] void tell_ended(Effects& fx) noexcept {
    Node probe;
    if ((special_ & B::kReadersGone) && ended<Side::out>(probe)) {
      fail_all(wq_, probe.status, fx);
      drop_buffer(fx);
    }
    if ((special_ & B::kWritersGone) && ended<Side::in>(probe)) fail_all(rq_, probe.status, fx);
  }

  void fail_all(Queue& q, Status s, Effects& fx) noexcept {
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (y->is(NodeFlags::foreign)) {
        tell(y, fx);
        continue;
      }
      if (!y->is(NodeFlags::standing)) {
        release(q, y);
        if (ends(y, s)) fx.finish(y, s);
        continue;
      }
      if (s == Status::retired && y->is(NodeFlags::silent)) continue;  // its alternative knows
      mark_ready(y);
      // It looks for itself. A silent one stays so for the select that waits.
      if (!(y->flags & (NodeFlags::disabled | NodeFlags::silent)) && Free{}.with(y) == Claim::won) fx.finish(y, s);
    }
  }
};

}  // namespace weft::inline WEFT_ABI::core
