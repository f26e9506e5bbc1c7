// A channel: any-to-any, a rendezvous or buffered, with retire, poison and death. It is
// freestanding: it returns a status, allocates no memory and throws no exception. The hosted ends
// are in ../channel.hpp.
//
// State under the lock: the two waiting queues, the buffer, which sides have ended. A party
// *attempts* to commit; if it cannot, it joins its waiting queue and is committed by a party that
// arrives later.
//
//   begin() ──meet_alone(): with a party that waits alone, after the unlock─► committed
//      └─────attempt()─► committed │ held │ ended
//      └──── not_ready ─► queued ──another party's attempt(), rematch()──► committed (woken)
//                           └──── withdraw() ──► out, nothing happened
//
// The channel has layers, each with its invariants: waiting_queues.hpp (the parties that wait),
// rendezvous.hpp (two parties meet), buffered.hpp (the ring), notifier.hpp (the parties that must
// be notified of a change), lending.hpp (credits). This file contains the functions that parties
// and owners of ends call.
#pragma once
#include "lending.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P>
class ChannelEngine : public Lending<T, P, ChannelEngine<T, P>> {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "a value may move under the channel's lock: T's move constructor must be noexcept");
  static_assert(std::is_nothrow_destructible_v<T>);
  using B = ChannelBase<P>;
  using Buffering = Buffered<T, P, ChannelEngine>;
  using Notify = Notifier<T, P, ChannelEngine>;
  using AfterUnlock = core::AfterUnlock<T>;
  friend Buffering;

 protected:
  using B::deciding_, B::died_, B::lock_, B::poison_, B::reader_queue_, B::state_, B::transfers_,
      B::writer_queue_, B::node;
  using Buffering::accepts, Buffering::drop_buffer;
  using Notify::decided, Notify::declined, Notify::fail_all, Notify::foreign_first, Notify::invite,
      Notify::rematch, Notify::spoken_for, Notify::tell_if_ended;

 public:
  using value_type = T;
  using Buffering::ring;

  // --- plain operations --------------------------------------------------------------------------

  // Begins a read into me.slot or a write from me.slot. Returns `pending` if the party waits. Then
  // its waker will be called, and me.status is the outcome of the operation.
  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me) noexcept {
    if (!me.is(NodeFlags::special)) [[likely]]
      if (const FastResult q = begin_fast<S>(me, me.slot); q != FastResult::neither) [[likely]]
        return q == FastResult::waits ? Status::pending : Status::ok;
    return begin_slow<S>(me);
  }

  // The fast path of begin(), for a party that is not `special` in a channel without waiting
  // queues: the party meets the one party that waits, or waits itself. Returns `met_afar` if the
  // partner belongs to another scheduler, and `neither` if nothing has happened and begin_slow()
  // must be called. The slot and the place of `me` are written only if that party waits.
  enum class FastResult : std::uint8_t { met, met_afar, waits, neither };
  template <Side S>
  [[gnu::always_inline]] FastResult begin_fast(Node& me, void* slot) noexcept {
    const auto held = lock_.lock_cheaply();
    if (!held) [[unlikely]]
      return FastResult::neither;
    const std::uintptr_t there = reader_queue_.word();
    if (B::alone(there, kOther<S>)) [[likely]] {
      // Everything that was stored since lock_cheaply() is on one cache line.
      return meet_alone<S>(there, slot, [&] { lock_.unlock_cheaply(held); }) ? FastResult::met
                                                                             : FastResult::met_afar;
    }
    if (there == 0) [[likely]]
      wait_alone<S>(me, slot);
    lock_.unlock_cheaply(held);
    return there == 0 ? FastResult::waits : FastResult::neither;
  }

  // The path of begin() for any party. The party's slot is me.slot.
  template <Side S>
  [[gnu::noinline]] Status begin_slow(Node& me) noexcept {
    lock_.lock();
    me.place = static_cast<SyncObject*>(this);
    // A policy that is plain_only leaves this part out, to save code.
    if (!plain_only<P> && !me.is(NodeFlags::special)) {
      switch (meet_plain<S>(me.slot)) {
        case Plain::met: return Status::ok;
        case Plain::nobody:
          if (reader_queue_.word() == 0) {
            wait_alone<S>(me, me.slot);
          } else {
            B::form_queues();
            this->template join<S>(me);
          }
          lock_.unlock();
          return Status::pending;
        case Plain::closer: break;
      }
      if (state_ == B::kBuffered && through_buffer<S>(me.slot)) {
        lock_.unlock();
        return Status::ok;
      }
    }
    return begin_queued(kSide<S>, me);
  }
  // Called with the lock held, and releases it.
  template <class S>
  WEFT_ONE_HOSTED Status begin_queued(S side, Node& me) noexcept {
    B::form_queues();
    AfterUnlock after;
    const Attempt t = side == Side::in ? attempt<Side::in>(me, FreeParty{}, after)
                                       : attempt<Side::out>(me, FreeParty{}, after);
    if (t == Attempt::not_ready) {
      me.status = Status::pending;
      this->join(side, me);
      if (state_ & B::kWatched) rematch(after);
    } else if (t == Attempt::partner_holds) {
      // The operation is pending, so a report or a withdrawal can ask where its process waits.
      me.place = static_cast<SyncObject*>(this);
    }
    unlock(after);
    return outcome(t, me);
  }

  // Performs a plain operation at a buffer, if it need not wait and no other party waits. Returns
  // false if nothing has happened.
  template <Side S>
  [[gnu::always_inline]] bool pass(void* slot) noexcept {
    lock_.lock();
    // The values of closed writers stay in the buffer.
    constexpr std::uint8_t past = S == Side::in ? B::kWritersGone : 0;
    const bool open = (state_ & ~past) == B::kBuffered && through_buffer<S>(slot);
    lock_.unlock();
    return open;
  }

  // Withdraws a plain operation, or the node of a guard once its select has an outcome. Returns
  // true if the node was still in the waiting queue.
  template <Side S>
  bool withdraw(Node& me) noexcept {
    lock_.lock();
    if (const std::uintptr_t there = reader_queue_.word(); !B::has_queues(there)) {
      const bool was = B::alone_as(there) == &me;
      if (was) reader_queue_.set_word(0);
      lock_.unlock();
      return was;
    }
    if constexpr (!plain_only<P>)
      if (me.is(NodeFlags::promised)) [[unlikely]]
        return this->ask_back(me), false;
    const bool was = me.is(NodeFlags::queued);
    if (was) this->template leave<S>(me);
    if (state_ == 0) [[likely]]
      this->unlock_queues();
    else
      withdrawn(kSide<S>, me, was);
    return was;
  }
  // Ends a withdrawal. `was` says whether `me` was in its waiting queue, which it has already left.
  // Called with the lock held, and releases it.
  template <class S>
  WEFT_ONE_HOSTED void withdrawn(S side, Node& me, bool was) noexcept {
    if (!plain_only<P> && (state_ & B::kFar)) {
      this->unlock_queues();
      if (!was) agent()->leaves(*agent(), me);
    } else {
      AfterUnlock after;
      // `me` might be an extended read that lacked a slot, and other readers might wait behind it.
      if (side == Side::in && was && ring) rematch(after);
      if (side == Side::in) declined(me);
      decided(me, after);
      tell_if_ended(after);
      unlock(after);
    }
  }

  // Lets the writer continue (rule 1.6). Called when the block of an extended read has ended.
  void end_extended(Node& me) noexcept {
    if (!ring) {
      Wakes after;
      after.finish(me.partner(), Status::ok);
      after.run();
      return;
    }
    AfterUnlock after;
    this->lock_queues();
    Buffering::free_slot(me);
    rematch(after);
    tell_if_ended(after);
    unlock(after);
  }

  // Accepts the value of a computed output, which is now in me.slot (rule 5.8). Returns `pending`
  // if an extended reader holds the writer.
  Status deliver(Node& me) noexcept {
    if (!ring) {
      Node* r = me.partner();
      Wakes after;
      const Attempt t = this->hand_over(me, *r, after, *r);
      after.run();
      return t == Attempt::partner_holds ? Status::pending : Status::ok;
    }
    AfterUnlock after;
    this->lock_queues();
    --ring->reserved;
    Node probe;
    probe.slot = me.slot;
    const Attempt t = attempt_decided<Side::out>(probe, FreeParty{}, after);
    if (t == Attempt::ended) ++ring->dropped;
    if (t == Attempt::not_ready) prim::fatal("a computed value finds its reserved slot taken");
    rematch(after);
    unlock(after);
    return Status::ok;
  }

  // Called when the function of a computed output has thrown. Nothing is sent, and the reader is
  // notified (rule 5.8).
  void abandon(Node& me) noexcept {
    if (!ring) {
      Wakes after;
      after.finish(me.partner(), Status::died);
      after.run();
      return;
    }
    AfterUnlock after;
    this->lock_queues();
    if (ring->reserved > 0) --ring->reserved;
    rematch(after);
    tell_if_ended(after);
    unlock(after);
  }

  // --- guards ------------------------------------------------------------------------------------

  // Phase A of a select: the select is enrolled nowhere, so no party can claim it.
  template <Side S>
  Attempt scan(Node& n) noexcept {
    lock_.lock();
    if (!n.is(NodeFlags::special & ~NodeFlags::of_choice)) [[likely]] {
      switch (meet_plain<S>(n.slot)) {
        case Plain::met: return Attempt::committed;
        case Plain::nobody: lock_.unlock(); return Attempt::not_ready;
        case Plain::closer: break;
      }
    } else {
      B::form_queues();
    }
    return scan_slow<S>(n);
  }
  // Called with the lock held and the waiting queues formed; releases the lock.
  template <Side S>
  [[gnu::noinline]] Attempt scan_slow(Node& n) noexcept {
    AfterUnlock after;
    const Attempt t = attempt<S>(n, FreeParty{}, after);
    if (n.is(NodeFlags::standing)) {
      if (t == Attempt::committed || t == Attempt::partner_holds) this->template mark_if_more<S>(n);
      if (t == Attempt::not_ready)
        static_cast<StandingNode&>(n).contested =
            (S == Side::out && foreign_first()) ||
            ((state_ & B::kSpanned) && Notify::watched(this->template opposite<S>()));
      if (t == Attempt::ended && n.status == Status::retired && n.is(NodeFlags::quiet))
        n.set(NodeFlags::silent);
    }
    unlock(after);
    return t;
  }

  // Phase B of a select: commits together with the select's own word, or joins the waiting queue.
  // Under the lock, enrol() searches a second time (attempt()) for a partner, which might have
  // enrolled since phase A.
  template <Side S>
  Attempt enrol(Node& n) noexcept {
    this->lock_queues();
    if (state_ == 0 && !n.is(NodeFlags::queued | NodeFlags::foreign) &&
        this->template opposite<S>().empty()) [[likely]] {
      n.status = Status::pending;
      this->template join<S>(n);
      lock_.unlock();
      return Attempt::not_ready;
    }
    return enrol_slow<S>(n);
  }
  // Called with the lock held and the waiting queues formed; releases the lock.
  template <Side S>
  [[gnu::noinline]] Attempt enrol_slow(Node& n) noexcept {
    AfterUnlock after;
    Attempt t = attempt<S>(n, EnrolledParty{n.choice_, n.index}, after);
    if (t == Attempt::not_ready) {
      if (!n.is(NodeFlags::queued)) {
        n.status = Status::pending;
        this->template join<S>(n);
        if (n.is(NodeFlags::foreign)) this->is_watched();
      }
      if (state_ & B::kWatched) rematch(after);
    }
    unlock(after);
    return t;
  }

  // Tries an output guard of a foreign select again. The guard commits if it can, but does not join
  // the queue again. If the node is not in the queue, a partner has committed the guard here.
  template <Side S>
  Attempt retry(Node& n) noexcept {
    AfterUnlock after;
    this->lock_queues();
    Attempt t = n.is(NodeFlags::silent) ? Attempt::not_ready : Attempt::gone;
    if (n.is(NodeFlags::queued)) t = attempt<S>(n, EnrolledParty{n.choice_, n.index}, after);
    if (t == Attempt::silent) this->template leave<S>(n);
    unlock(after);
    return t;
  }

  // Returns how the channel has ended for a guard, or `ok`, and sets `ready` if the guard could
  // commit now. Nothing is committed. Used for random choice, reports, and rule 5.6.
  template <Side S>
  Status look(bool& ready) noexcept {
    Node probe;
    this->lock_queues();
    if constexpr (S == Side::in)
      ready = ring && ring->size > 0;
    else
      ready = accepts();
    if (!(ring && ring->lending()))
      ready = ready || this->template claimable<(S == Side::in ? Side::out : Side::in)>();
    const bool over = this->template ended<S>(probe);
    this->unlock_queues();
    return over ? probe.status : Status::ok;
  }

  // Returns whether an operation that begins now would probably have its outcome at once. The
  // answer is a hint, for a caller that may wait a little.
  template <Side S>
  bool ready() noexcept {
    bool now = false;
    return is_end(look<S>(now)) || now;
  }

  // Links the node of a standing alternative, which then stays linked. Returns false if the other
  // side already has a standing party at this channel. Neither of two such parties would ever
  // arrive, so the second one must enrol at this channel for each select.
  template <Side S>
  bool link_standing(StandingNode& n) noexcept {
    if constexpr (plain_only<P>) return false;  // The guard must enrol for each select.
    AfterUnlock after;
    this->lock_queues();
    bool flat = true;
    for (Link* l = this->template opposite<S>().front(); l; l = l->next)
      if (node(l)->is(NodeFlags::standing)) flat = false;
    if (flat) {
      this->is_watched();
      n.set(NodeFlags::standing);
      n.status = Status::pending;
      this->template join<S>(n);
      mark_ready(&n);
      rematch(after);
    }
    unlock(after);
    return flat;
  }
  // Notifies the foreign reader, the only party that could take a standing output, so that it tries
  // again. Called when that output has set its word to WAITING, so that the reader finds it. (If
  // notified earlier, the reader would check too soon, mark the alternative ready, and so keep it
  // from ever waiting.)
  void invite_foreign() noexcept {
    AfterUnlock after;
    this->lock_queues();
    invite(after);
    if constexpr (!plain_only<P>) this->hint(after);
    unlock(after);
  }
  template <Side S>
  void set_enabled(StandingNode& n, bool on) noexcept {
    this->lock_queues();
    if (on)
      n.clear(NodeFlags::disabled);
    else
      n.set(NodeFlags::disabled);
    if (on) mark_ready(&n);
    this->unlock_queues();
  }

  // Returns whether an operation that became pending has met its partner, even if the partner still
  // holds it.
  bool has_met(const Node& me) noexcept {
    this->lock_queues();
    const bool met = !me.is(NodeFlags::queued) && !is_end(me.status);
    this->unlock_queues();
    return met;
  }

  // Enrols `me` for a party that commits at another place and takes no value from this channel.
  // `me` waits in the queue until the party might find a partner; then it is woken once, with `ok`,
  // or with how the channel has ended. Any result other than `pending` is that status, and means
  // that `me` need not wait. withdraw() removes `me`.
  template <Side S>
  Status watch(Node& me) noexcept {
    static_assert(!plain_only<P>, "this policy has no such parties");
    this->lock_queues();
    Status s = Status::pending;
    if (this->template ended<S>(me))
      s = me.status;
    else if (me.is(NodeFlags::compute) && ring ? accepts() : this->template may_meet<S>())
      s = Status::ok;
    if (s == Status::pending) {
      this->is_watched();
      state_ |= B::kSpanned;
      me.flags = static_cast<std::uint16_t>((me.flags & NodeFlags::compute) | NodeFlags::watch |
                                            NodeFlags::disabled);
      me.status = s;
      this->template join<S>(me);
      Notify::mark_standing(this->template opposite<S>());
    }
    this->unlock_queues();
    return s;
  }

  // --- foreign readers (rule 6.6) ----------------------------------------------------------------

  // Enrols a party that takes the value itself, on its own thread. If the result is `pending`, the
  // waker is notified, any number of times, so that the party tries again until take() succeeds.
  // The waker is woken only if a partner that computes its value holds the party.
  Status begin_foreign(Node& me) noexcept {
    static_assert(!plain_only<P>, "this policy has no foreign parties");
    AfterUnlock after;
    this->lock_queues();
    me.set(NodeFlags::foreign);
    Attempt t = attempt<Side::in>(me, FreeParty{}, after);
    if (t == Attempt::not_ready) {
      this->is_watched();
      me.status = Status::pending;
      this->template join<Side::in>(me);
      rematch(after);  // A standing output must learn of this reader.
    } else if (t == Attempt::partner_holds && !me.is(NodeFlags::extended)) {
      // The operation is pending, so a report or a withdrawal can ask where its process waits.
      me.place = static_cast<SyncObject*>(this);
    }
    unlock(after);
    return outcome(t, me);
  }

  // Takes a value that is offered. Called by a foreign party that is awake, on its own thread.
  // Returns `not_ready` if the offer was withdrawn and the party stays in the queue, and
  // `partner_holds` if the party will be woken. A guard of a foreign select passes Enrolled, a
  // plain reader Free.
  template <class Me>
  Attempt take(Node& me, Me how) noexcept {
    AfterUnlock after;
    this->lock_queues();
    // The party leaves the queue while it tries, so that it is not notified again meanwhile.
    if (!me.is(NodeFlags::queued)) {
      // The party has already committed, and is held by a partner that computes a value; or the
      // guard fell silent.
      this->unlock_queues();
      return me.is(NodeFlags::silent) ? Attempt::not_ready : Attempt::partner_holds;
    }
    Link* const behind = me.next;
    this->template leave<Side::in>(me);
    const Attempt t = attempt_decided<Side::in>(me, how, after);
    if (t == Attempt::not_ready) {
      reader_queue_.insert_before(behind, &me);
      me.set(NodeFlags::queued);
    }
    if (t == Attempt::committed) me.status = Status::ok;
    decided(me, after);
    tell_if_ended(after);
    unlock(after);
    return t;
  }

  // --- ends --------------------------------------------------------------------------------------

  // Makes a new counted end from the channel. Returns false if the end's side has ended, or an
  // operation at the end would fail at once (rule 2.5).
  bool first_reader() noexcept { return first<Side::in>(B::readers_, B::kReadersGone); }
  bool first_writer() noexcept { return first<Side::out>(B::writers_, B::kWritersGone); }

  void poison(std::uint8_t strength) noexcept {
    AfterUnlock after;
    this->lock_queues();
    if (!plain_only<P> && (state_ & B::kFar)) {  // The channel's home decides.
      this->unlock_queues();
      agent()->poisons(*agent(), strength);
      return;
    }
    poison_here(strength, after);
    unlock(after);
  }

  void drop_reader(bool died = false) noexcept {
    drop_end(B::readers_, B::kReadersGone, died ? B::kReaderDied : 0);
  }
  void drop_writer(bool died = false) noexcept {
    drop_end(B::writers_, B::kWritersGone, died ? B::kWriterDied : 0);
  }

  // Returns how the channel has ended for a party of side S, or `ok` if it has not.
  template <Side S>
  Status how_ended() noexcept {
    return how_ended(kSide<S>);
  }
  template <class S>
  WEFT_ONE_HOSTED Status how_ended(S side) noexcept {
    this->lock_queues();
    Node n;
    const bool e = side == Side::in ? Notify::template ended<Side::in>(n)
                                    : Notify::template ended<Side::out>(n);
    this->unlock_queues();
    return e ? n.status : Status::ok;
  }

 protected:
  // Called with the lock held.
  void poison_here(std::uint8_t strength, AfterUnlock& after) noexcept {
    if (strength < B::immunity_ || strength <= poison_) return;
    const bool was = poison_ != 0;
    poison_ = strength;
    state_ |= B::kPoisoned;
    if (was) return;
    fail_all(reader_queue_, Status::poisoned, after);
    fail_all(writer_queue_, Status::poisoned, after);
    drop_buffer(after);
  }
  WEFT_OUTLINE_HOSTED void unlock(AfterUnlock& after) noexcept {
    this->unlock_queues();
    after.finish_all();
    if (after.trash.data && after.trash.discard) after.trash.discard(after.trash);
    if constexpr (!plain_only<P>)
      if (after.told) [[unlikely]]
        tell_parties(after);
  }
  [[gnu::noinline, gnu::cold]] void tell_parties(const AfterUnlock& first) noexcept {
    first.told->ops->tell(first.told);
    if (!first.more) return;
    AfterUnlock after;
    this->lock_queues();
    if (state_ & B::kPoisoned)
      fail_all(reader_queue_, Status::poisoned, after);
    else
      rematch(after);
    tell_if_ended(after);
    unlock(after);
  }
  // Returns the agent of a far channel.
  [[gnu::noinline, gnu::cold]] FarAgent* agent() noexcept {
    return static_cast<WithAgent<ChannelEngine>*>(this)->agent_;
  }
  friend Notify;
  friend Lending<T, P, ChannelEngine>;

 private:
  static Status outcome(Attempt t, const Node& n) noexcept {
    if (t == Attempt::committed) return Status::ok;
    return t == Attempt::ended ? n.status : Status::pending;
  }

  template <Side S>
  [[gnu::always_inline]] bool through_buffer(void* slot) noexcept {
    if constexpr (S == Side::in) {
      if (ring->size == 0 || !writer_queue_.empty()) return false;
      ring->pop_into(slot);
      ++transfers_;
    } else {
      if (!reader_queue_.empty() || !ring->room() || ring->reserved > 0) return false;
      ring->push(std::move(*static_cast<T*>(slot)));
    }
    return true;
  }
  template <Side S>
  static constexpr std::uintptr_t kOther = S == Side::in ? B::kWriter : B::kReader;

  // Meets the one party of the other side, which waits in the meeting word. Called if there are no
  // waiting queues. Once the word is 0 that party is claimed, so the lock is released before the
  // value moves. The party's status is ok already (invariant 4 of waiting_queues.hpp).
  template <Side S, class Unlock>
  [[gnu::always_inline]] bool meet_alone(std::uintptr_t there, void* slot, Unlock unlock) noexcept {
    ++transfers_;
    reader_queue_.set_word(0);
    Node* const y = reinterpret_cast<Node*>(there - kOther<S>);
    unlock();
    move_between<S>(y, slot);
    return P::wake(y);
  }
  template <Side S>
  [[gnu::always_inline]] static void move_between(Node* y, void* slot) noexcept {
    Buffering::move_value(S == Side::in ? y->slot : slot, S == Side::in ? slot : y->slot);
  }
  // The usual cases for a plain party, or for a guard without special flags in phase A. Called with
  // the lock held. `met`: the party has met a plain party, and the lock is released. `nobody`: no
  // party waits that the party could meet. `closer`: there are waiting queues, so attempt() must be
  // called.
  enum class Plain : std::uint8_t { met, nobody, closer };
  template <Side S>
  WEFT_INLINE_HOSTED Plain meet_plain(void* slot) noexcept {
    const std::uintptr_t there = reader_queue_.word();
    if (!B::has_queues(there)) {
      if (!B::alone(there, kOther<S>)) return Plain::nobody;
      meet_alone<S>(there, slot, [this] { lock_.unlock(); });
      return Plain::met;
    }
    if (state_ != 0) return Plain::closer;
    Queue& q = this->template opposite<S>();
    if (q.empty()) return Plain::nobody;
    Node* const y = node(q.front());
    if (y->is(NodeFlags::special)) return Plain::closer;
    q.pop_front();
    y->clear(NodeFlags::queued);
    y->status = Status::ok;
    ++transfers_;
    move_between<S>(y, slot);
    this->unlock_queues();
    P::wake(y);
    return Plain::met;
  }
  // Makes this party wait in the meeting word. Called if there are no waiting queues and no party
  // waits.
  template <Side S>
  [[gnu::always_inline]] void wait_alone(Node& me, void* slot) noexcept {
    if (me.status != Status::ok) [[unlikely]]
      me.status = Status::ok;
    me.slot = slot;
    me.place = static_cast<SyncObject*>(this);
    reader_queue_.set_word(reinterpret_cast<std::uintptr_t>(&me) +
                           (S == Side::in ? B::kReader : B::kWriter));
  }

  // --- every case --------------------------------------------------------------------------------

  template <Side S, class Me>
  Attempt attempt(Node& n, Me me, AfterUnlock& after) noexcept {
    if (state_ == 0) [[likely]]
      return this->template meet<S>(n, me, after);
    // A reader waits while all values are reserved for undecided foreign readers. Writers need no
    // such rule: they meet these readers first in the queue, or a buffer with room takes the value.
    if (S == Side::in && (state_ & (B::kDeciding | B::kPoisoned)) == B::kDeciding && spoken_for())
      return Attempt::not_ready;
    return attempt_decided<S>(n, me, after);
  }

  template <Side S, class Me>
  Attempt attempt_decided(Node& n, Me me, AfterUnlock& after) noexcept {
    return attempt_decided(kSide<S>, n, me, after);
  }
  template <class S, class Me>
  WEFT_ONE_HOSTED Attempt attempt_decided(S side, Node& n, Me me, AfterUnlock& after) noexcept {
    Attempt t = Attempt::not_ready;
    if (!(state_ & B::kPoisoned)) {
      t = side == Side::in ? meet_or_buffer<Side::in>(n, me, after)
                           : meet_or_buffer<Side::out>(n, me, after);
    }
    if (t != Attempt::not_ready) {
      tell_if_ended(after);
      return t;
    }
    const bool over = side == Side::in ? Notify::template ended<Side::in>(n)
                                       : Notify::template ended<Side::out>(n);
    if (!over) return Attempt::not_ready;
    return found_ended(n, me);
  }
  template <Side S, class Me>
  [[gnu::always_inline]] Attempt meet_or_buffer(Node& n, Me me, AfterUnlock& after) noexcept {
    return !ring ? this->template meet<S>(n, me, after)
                 : this->template attempt_at_buffer<S>(n, me, after);
  }

  template <Side S>
  bool first(typename P::Count& n, std::uint8_t gone) noexcept {
    return first(kSide<S>, n, gone);
  }
  template <class S>
  WEFT_ONE_HOSTED bool first(S side, typename P::Count& n, std::uint8_t gone) noexcept {
    Node probe;
    this->lock_queues();
    const bool open = (state_ & (gone | B::kPoisoned)) == 0 &&
                      !(side == Side::in ? Notify::template ended<Side::in>(probe)
                                         : Notify::template ended<Side::out>(probe));
    if (open) n.up();
    this->unlock_queues();
    return open;
  }

  // --- ends --------------------------------------------------------------------------------------

  WEFT_OUTLINE_HOSTED void drop_end(typename P::Count& n, std::uint8_t gone,
                                    std::uint8_t died) noexcept {
    if (died) {
      this->lock_queues();
      died_ |= died;
      this->unlock_queues();
    }
    if (!n.down()) return;
    AfterUnlock after;
    this->lock_queues();
    state_ |= gone;
    tell_if_ended(after);
    if (!plain_only<P> && (state_ & B::kFar)) after.told = agent();
    unlock(after);
  }
};

}  // namespace weft::inline WEFT_ABI::core
