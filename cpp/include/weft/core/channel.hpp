// A channel: any-to-any, a rendezvous or buffered, with retire, poison and death. Freestanding: returns a status, allocates nothing,
// throws nothing. The hosted ends are in ../channel.hpp.
//
// State under the lock: the two lines of waiters, the buffer, what has ended. A party *attempts* to commit; if it cannot, it joins its
// line and is committed by a later arrival.
//
//   begin() ──attempt()─► committed │ held │ ended
//      └──── not_ready ─► queued ──another party's attempt(), rematch()──► committed (woken)
//                           └──── withdraw() ──► out, nothing happened
//
// In layers, each with its invariants: line.hpp (who waits), rendezvous.hpp (two meet), buffered.hpp (the ring), sleepers.hpp (who must
// hear of what happened), lending.hpp (credits); here is what parties and owners of ends call.
#pragma once
#include "lending.hpp"

namespace weft::inline WEFT_ABI::core {

template <class T, class P>
class ChannelCore : public Lending<T, P, ChannelCore<T, P>> {
  static_assert(std::is_nothrow_move_constructible_v<T>, "values move under the channel's lock: T's move constructor must be noexcept");
  static_assert(std::is_nothrow_destructible_v<T>);
  using B = ChannelBase<P>;
  using Half = Buffered<T, P, ChannelCore>;
  using Sleepy = Sleepers<T, P, ChannelCore>;
  using Effects = core::Effects<T>;
  friend Half;

 protected:
  using B::deciding_, B::died_, B::lock_, B::poison_, B::rq_, B::special_, B::transfers_, B::wq_, B::node;
  using Half::accepts, Half::drop_buffer, Half::from_buffer, Half::to_buffer;
  using Sleepy::decided, Sleepy::fail_all, Sleepy::foreign_first, Sleepy::invite, Sleepy::rematch, Sleepy::settle;

 public:
  using value_type = T;
  using Half::ring;

  // --- plain operations ---------------------------------------------------------------------------------------------------------

  // Begin a read into me.slot or a write from me.slot. `pending`: me.status and the waker will tell.
  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me) noexcept {
    if (!me.is(NodeFlags::special)) [[likely]]
      if (const Quick q = begin_quickly<S>(me, me.slot); q != Quick::neither) [[likely]]
        return q == Quick::met ? Status::ok : Status::pending;
    return begin_slowly<S>(me);
  }

  // The same for one who is not special, if it meets a lone party or finds nobody in a channel without lines. `neither`: nothing has
  // happened, begin_slowly() looks closer. The slot and the place are written only if it waits.
  enum class Quick : std::uint8_t { met, waits, neither };
  template <Side S>
  [[gnu::always_inline]] Quick begin_quickly(Node& me, void* slot) noexcept {
    const auto held = lock_.lock_cheaply();
    if (!held) [[unlikely]]
      return Quick::neither;
    const std::uintptr_t there = rq_.word();
    if (B::alone(there, kOther<S>)) [[likely]] {
      meet_alone<S>(there, slot, [&] { lock_.unlock_cheaply(held); });  // what was stored since lock_cheaply() is on one cache line
      return Quick::met;
    }
    if (there == 0) [[likely]]
      wait_alone<S>(me, slot);
    lock_.unlock_cheaply(held);
    return there == 0 ? Quick::waits : Quick::neither;
  }

  // Any party; its slot is me.slot.
  template <Side S>
  [[gnu::noinline]] Status begin_slowly(Node& me) noexcept {
    lock_.lock();
    me.place = static_cast<Place*>(this);
    if (!plain_only<P> && !me.is(NodeFlags::special)) {  // else it is the code that counts
      switch (meet_plain<S>(me.slot)) {
        case Plain::met: return Status::ok;
        case Plain::nobody:
          if (rq_.word() == 0) {
            wait_alone<S>(me, me.slot);
          } else {
            B::form_lines();
            this->template join<S>(me);
          }
          lock_.unlock();
          return Status::pending;
        case Plain::closer: break;
      }
      if (special_ == B::kBuffered && through_buffer<S>(me.slot)) {
        lock_.unlock();
        return Status::ok;
      }
    }
    B::form_lines();
    Effects fx;
    const Try t = attempt<S>(me, Free{}, fx);
    if (t == Try::not_ready) {
      me.status = Status::pending;
      this->template join<S>(me);
      if (special_ & B::kWatched) rematch(fx);
    } else if (t == Try::held) {
      me.place = static_cast<Place*>(this);  // it is pending, so it may be asked where it waits
    }
    unlock(fx);
    return outcome(t, me);
  }

  // At a buffer, a plain operation that need not wait and meets nobody who does. False: nothing has happened.
  template <Side S>
  [[gnu::always_inline]] bool pass(void* slot) noexcept {
    lock_.lock();
    constexpr std::uint8_t past = S == Side::in ? B::kWritersGone : 0;  // what they left is there
    const bool open = (special_ & ~past) == B::kBuffered && through_buffer<S>(slot);
    lock_.unlock();
    return open;
  }

  // Withdraw a plain operation, or a guard's node after the select was decided. True: it was still in line.
  template <Side S>
  bool withdraw(Node& me) noexcept {
    lock_.lock();
    if (const std::uintptr_t there = rq_.word(); !B::lines(there)) {
      const bool was = B::alone_as(there) == &me;
      if (was) rq_.set_word(0);
      lock_.unlock();
      return was;
    }
    const bool was = me.is(NodeFlags::queued);
    if (was) this->template leave<S>(me);
    if (special_ == 0) [[likely]] {
      this->unlock_lines();
    } else if (!plain_only<P> && (special_ & B::kFar)) {
      this->unlock_lines();
      if (!was) agent()->leaves(*agent(), me);
    } else {
      Effects fx;
      if (S == Side::in && was && ring) rematch(fx);  // an extended read that lacked a slot held up those behind it
      decided(me, fx);
      settle(fx);
      unlock(fx);
    }
    return was;
  }

  // The end of an extended read's block: the writer goes on (rule 1.6).
  void end_extended(Node& me) noexcept {
    if (!ring) {
      Wakes fx;
      fx.finish(me.partner(), Status::ok);
      fx.run();
      return;
    }
    Effects fx;
    this->lock_lines();
    Half::free_slot(me);
    rematch(fx);
    settle(fx);
    unlock(fx);
  }

  // A computed output has its value in me.slot now (rule 5.8). `pending`: an extended reader holds us.
  Status deliver(Node& me) noexcept {
    if (!ring) {
      Node* r = me.partner();
      Wakes fx;
      const Try t = this->hand_over(me, *r, fx, *r);
      fx.run();
      return t == Try::held ? Status::pending : Status::ok;
    }
    Effects fx;
    this->lock_lines();
    --ring->reserved;
    Node probe;
    probe.slot = me.slot;
    const Try t = attempt_decided<Side::out>(probe, Free{}, fx);
    if (t == Try::ended) ++ring->dropped;
    if (t == Try::not_ready) prim::fatal("a computed value finds its reserved slot taken");
    rematch(fx);
    unlock(fx);
    return Status::ok;
  }

  // The function of a computed output raised: nothing is sent, the reader is told (rule 5.8).
  void abandon(Node& me) noexcept {
    if (!ring) {
      Wakes fx;
      fx.finish(me.partner(), Status::died);
      fx.run();
      return;
    }
    Effects fx;
    this->lock_lines();
    if (ring->reserved > 0) --ring->reserved;
    rematch(fx);
    settle(fx);
    unlock(fx);
  }

  // --- guards -------------------------------------------------------------------------------------------------------------------

  // Phase A of a select: it is enrolled nowhere, nobody can claim it.
  template <Side S>
  Try scan(Node& n) noexcept {
    lock_.lock();
    if (!n.is(NodeFlags::special & ~NodeFlags::of_choice)) [[likely]] {
      switch (meet_plain<S>(n.slot)) {
        case Plain::met: return Try::committed;
        case Plain::nobody: lock_.unlock(); return Try::not_ready;
        case Plain::closer: break;
      }
    } else {
      B::form_lines();
    }
    return scan_slowly<S>(n);
  }
  // With the lock held, and lines.
  template <Side S>
  [[gnu::noinline]] Try scan_slowly(Node& n) noexcept {
    Effects fx;
    const Try t = attempt<S>(n, Free{}, fx);
    if (n.is(NodeFlags::standing)) {
      if (t == Try::committed || t == Try::held) this->template remark<S>(n);
      if (t == Try::not_ready)
        static_cast<StandingNode&>(n).contested =
            (S == Side::out && foreign_first()) || ((special_ & B::kSpanned) && Sleepy::watched(this->template opposite<S>()));
      if (t == Try::ended && n.status == Status::retired && n.is(NodeFlags::quiet)) n.set(NodeFlags::silent);
    }
    unlock(fx);
    return t;
  }

  // Phase B: commit jointly with our own word, or join the line. The second look (attempt) under the lock is what makes an enrolment
  // safe against the peer that enrolled since phase A.
  template <Side S>
  Try enrol(Node& n) noexcept {
    this->lock_lines();
    if (special_ == 0 && !n.is(NodeFlags::queued | NodeFlags::foreign) && this->template opposite<S>().empty()) [[likely]] {
      n.status = Status::pending;
      this->template join<S>(n);
      lock_.unlock();
      return Try::not_ready;
    }
    return enrol_slowly<S>(n);
  }
  // With the lock held, and lines.
  template <Side S>
  [[gnu::noinline]] Try enrol_slowly(Node& n) noexcept {
    Effects fx;
    Try t = WEFT_MUTANT == 3 ? Try::not_ready : attempt<S>(n, Enrolled{n.choice_, n.index}, fx);
    if (t == Try::not_ready) {
      if (!n.is(NodeFlags::queued)) {
        n.status = Status::pending;
        this->template join<S>(n);
        if (n.is(NodeFlags::foreign)) special_ |= B::kWatched;
      }
      if (special_ & B::kWatched) rematch(fx);
    }
    unlock(fx);
    return t;
  }

  // A foreign select looks again at an output: commit if it can, but do not join anew. Out of the line: somebody committed us here.
  template <Side S>
  Try retry(Node& n) noexcept {
    Effects fx;
    this->lock_lines();
    Try t = n.is(NodeFlags::silent) ? Try::not_ready : Try::gone;
    if (n.is(NodeFlags::queued)) t = attempt<S>(n, Enrolled{n.choice_, n.index}, fx);
    if (t == Try::silent) this->template leave<S>(n);
    unlock(fx);
    return t;
  }

  // How the channel has ended for a guard, or `ok`, and whether it could commit now. (For random choice, for reports and for rule 5.6;
  // nothing is decided.)
  template <Side S>
  Status look(bool& ready) noexcept {
    Node probe;
    this->lock_lines();
    if constexpr (S == Side::in)
      ready = ring && ring->size > 0;
    else
      ready = accepts();
    if (!(ring && ring->lending())) ready = ready || this->template claimable < S == Side::in ? Side::out : Side::in > ();
    const bool over = this->template ended<S>(probe);
    this->unlock_lines();
    return over ? probe.status : Status::ok;
  }

  // A hint for who might wait a little: an operation begun now would not wait.
  template <Side S>
  bool ready() noexcept {
    bool now = false;
    return is_end(look<S>(now)) || now;
  }

  // Standing alternatives link their nodes once. False: the opposite side stands here already; two that stand would never arrive, so
  // the second one enrols here anew for each select.
  template <Side S>
  bool link_standing(StandingNode& n) noexcept {
    if constexpr (plain_only<P>) return false;  // it enrols anew for each select
    Effects fx;
    this->lock_lines();
    bool flat = true;
    for (Link* l = this->template opposite<S>().front(); l; l = l->next)
      if (node(l)->is(NodeFlags::standing)) flat = false;
    if (flat) {
      special_ |= B::kWatched;
      n.set(NodeFlags::standing);
      n.status = Status::pending;
      this->template join<S>(n);
      mark_ready(&n);
      rematch(fx);
    }
    unlock(fx);
    return flat;
  }
  // A standing output that only a foreign reader could take has set its word to WAITING: now the reader can find it. (Not before: it would
  // look too early, mark the alternative ready and so keep it from ever waiting.)
  void invite_foreign() noexcept {
    Effects fx;
    this->lock_lines();
    invite(fx);
    if constexpr (!plain_only<P>) this->hint(fx);
    unlock(fx);
  }
  template <Side S>
  void set_enabled(StandingNode& n, bool on) noexcept {
    this->lock_lines();
    if (on)
      n.clear(NodeFlags::disabled);
    else
      n.set(NodeFlags::disabled);
    if (on) mark_ready(&n);
    this->unlock_lines();
  }

  // A party that decides in another place, and takes nothing here, is to hear once it might meet somebody: me is in line until then, and is
  // woken with `ok`, or with how the channel has ended. Another outcome than `pending`: so it is now. withdraw() takes it out.
  template <Side S>
  Status watch(Node& me) noexcept {
    static_assert(!plain_only<P>, "this policy has no such parties");
    this->lock_lines();
    Status s = Status::pending;
    if (this->template ended<S>(me))
      s = me.status;
    else if (this->template may_meet<S>() && WEFT_MUTANT != 75)
      s = Status::ok;
    if (s == Status::pending) {
      special_ |= B::kWatched | B::kSpanned;
      me.flags = NodeFlags::watch | NodeFlags::disabled;
      me.status = s;
      this->template join<S>(me);
      Sleepy::mark_standing(this->template opposite<S>());
    }
    this->unlock_lines();
    return s;
  }

  // --- foreign readers (rule 6.6) -----------------------------------------------------------------------------------------------

  // Join the line as one who takes for itself. `pending`: the waker is told to look again, any number of times, until take() decides; it
  // is woken only if a partner that computes its value holds us.
  Status begin_foreign(Node& me) noexcept {
    static_assert(!plain_only<P>, "this policy has no foreign parties");
    Effects fx;
    this->lock_lines();
    me.set(NodeFlags::foreign);
    Try t = attempt<Side::in>(me, Free{}, fx);
    if (t == Try::not_ready) {
      special_ |= B::kWatched;
      me.status = Status::pending;
      this->template join<Side::in>(me);
      rematch(fx);  // a standing output must learn of us
    } else if (t == Try::held && !me.is(NodeFlags::extended)) {
      me.place = static_cast<Place*>(this);  // it is pending, so it may be asked where it waits
    }
    unlock(fx);
    return outcome(t, me);
  }

  // Awake and at home: take what the line offers. `not_ready`: it was withdrawn; stay in line. `held`: the wake-up will tell. A guard of a
  // foreign select passes Enrolled, a plain reader Free.
  template <class Me>
  Try take(Node& me, Me how) noexcept {
    Effects fx;
    this->lock_lines();
    // Out of the line while we try: who settles accounts on the way must not tell us once more.
    if (!me.is(NodeFlags::queued)) {  // committed already, and a partner that computes its value holds us; or it fell silent
      this->unlock_lines();
      return me.is(NodeFlags::silent) ? Try::not_ready : Try::held;
    }
    Link* const behind = me.next;
    this->template leave<Side::in>(me);
    const Try t = attempt_decided<Side::in>(me, how, fx);
    if (t == Try::not_ready) {
      rq_.insert_before(behind, &me);
      me.set(NodeFlags::queued);
    }
    if (t == Try::committed) me.status = Status::ok;
    decided(me, fx);
    settle(fx);
    unlock(fx);
    return t;
  }

  // --- ends -----------------------------------------------------------------------------------------------------------------------

  // A new counted end, from the channel. False: its side is gone, or an operation there would raise at once (rule 2.5).
  bool first_reader() noexcept { return first<Side::in>(B::readers_, B::kReadersGone); }
  bool first_writer() noexcept { return first<Side::out>(B::writers_, B::kWritersGone); }

  void poison(std::uint8_t strength) noexcept {
    Effects fx;
    this->lock_lines();
    if (!plain_only<P> && (special_ & B::kFar)) {  // its home decides
      this->unlock_lines();
      agent()->poisons(*agent(), strength);
      return;
    }
    poison_here(strength, fx);
    unlock(fx);
  }

  void drop_reader(bool died = false) noexcept { drop_end(B::readers_, B::kReadersGone, died ? B::kReaderDied : 0); }
  void drop_writer(bool died = false) noexcept { drop_end(B::writers_, B::kWritersGone, died ? B::kWriterDied : 0); }

  // How the channel has ended for a party of that side; `ok`: it has not.
  template <Side S>
  Status how_ended() noexcept {
    this->lock_lines();
    Node n;
    const bool e = this->template ended<S>(n);
    this->unlock_lines();
    return e ? n.status : Status::ok;
  }

 protected:
  // With the lock held.
  void poison_here(std::uint8_t strength, Effects& fx) noexcept {
    if (strength < B::immunity_ || strength <= poison_) return;
    const bool was = poison_ != 0;
    poison_ = strength;
    special_ |= B::kPoisoned;
    if (was) return;
    fail_all(rq_, Status::poisoned, fx);
    fail_all(wq_, Status::poisoned, fx);
    drop_buffer(fx);
  }
  void unlock(Effects& fx) noexcept {
    this->unlock_lines();
    fx.finish_all();
    if (fx.trash.data && fx.trash.discard) fx.trash.discard(fx.trash);
  }
  // Of a far one.
  [[gnu::noinline, gnu::cold]] FarAgent* agent() noexcept { return static_cast<WithAgent<ChannelCore>*>(this)->agent_; }
  friend Sleepy;
  friend Lending<T, P, ChannelCore>;

 private:
  static Status outcome(Try t, const Node& n) noexcept {
    if (t == Try::committed) return Status::ok;
    return t == Try::ended ? n.status : Status::pending;
  }

  template <Side S>
  [[gnu::always_inline]] bool through_buffer(void* slot) noexcept {
    if constexpr (S == Side::in) {
      if (ring->size == 0 || !wq_.empty()) return false;
      ring->pop_into(slot);
      ++transfers_;
    } else {
      if (!rq_.empty() || !ring->room() || ring->reserved > 0) return false;
      ring->push(std::move(*static_cast<T*>(slot)));
    }
    return true;
  }
  template <Side S>
  static constexpr std::uintptr_t kOther = S == Side::in ? B::kWriter : B::kReader;

  // No lines, and a party of the other side waits alone, in the meeting word. It is ours once the word is 0: the lock is let go of before
  // the value moves. Its status is ok already (invariant 4 of line.hpp).
  template <Side S, class Unlock>
  [[gnu::always_inline]] void meet_alone(std::uintptr_t there, void* slot, Unlock unlock) noexcept {
    ++transfers_;
    rq_.set_word(0);
    Node* const y = reinterpret_cast<Node*>(there - kOther<S>);
    unlock();
    move_between<S>(y, slot);
    P::wake(y);
  }
  template <Side S>
  [[gnu::always_inline]] static void move_between(Node* y, void* slot) noexcept {
    Half::move_value(S == Side::in ? y->slot : slot, S == Side::in ? slot : y->slot);
  }
  // With the lock held, the usual cases of a party that is plain, or a plain one's guard in phase A. `met`: it has met a plain party; the
  // lock is free. `nobody`: nobody waits there who could be met. `closer`: there are lines, attempt() looks closer.
  enum class Plain : std::uint8_t { met, nobody, closer };
  template <Side S>
  WEFT_INLINE_HOSTED Plain meet_plain(void* slot) noexcept {
    const std::uintptr_t there = rq_.word();
    if (!B::lines(there)) {
      if (!B::alone(there, kOther<S>)) return Plain::nobody;
      meet_alone<S>(there, slot, [this] { lock_.unlock(); });
      return Plain::met;
    }
    if (special_ != 0) return Plain::closer;
    Queue& q = this->template opposite<S>();
    if (q.empty()) return Plain::nobody;
    Node* const y = node(q.front());
    if (y->is(NodeFlags::special)) return Plain::closer;
    q.pop_front();
    y->clear(NodeFlags::queued);
    y->status = Status::ok;
    ++transfers_;
    move_between<S>(y, slot);
    this->unlock_lines();
    P::wake(y);
    return Plain::met;
  }
  // No lines, and nobody waits.
  template <Side S>
  [[gnu::always_inline]] void wait_alone(Node& me, void* slot) noexcept {
    if (me.status != Status::ok) [[unlikely]]
      me.status = Status::ok;
    me.slot = slot;
    me.place = static_cast<Place*>(this);
    rq_.set_word(reinterpret_cast<std::uintptr_t>(&me) + (S == Side::in ? B::kReader : B::kWriter));
  }

  // --- everything ---------------------------------------------------------------------------------------------------------------

  template <Side S, class Me>
  Try attempt(Node& n, Me me, Effects& fx) noexcept {
    if (special_ == 0) [[likely]]
      return this->template meet<S>(n, me, fx);
    // Readers wait for a foreign one's decision. Writers need not be told: in the line they meet it first, and a buffer with room is open.
    if (S == Side::in && (special_ & (B::kDeciding | B::kPoisoned)) == B::kDeciding) return Try::not_ready;
    return attempt_decided<S>(n, me, fx);
  }

  template <Side S, class Me>
  Try attempt_decided(Node& n, Me me, Effects& fx) noexcept {
    Try t = Try::not_ready;
    if (!(special_ & B::kPoisoned)) {
      if (!ring)
        t = this->template meet<S>(n, me, fx);
      else if constexpr (S == Side::in)
        t = from_buffer(n, me, fx);
      else
        t = to_buffer(n, me, fx);
    }
    if (t != Try::not_ready) {
      settle(fx);
      return t;
    }
    if (!this->template ended<S>(n)) return Try::not_ready;
    return found_ended(n, me);
  }

  template <Side S>
  bool first(typename P::Count& n, std::uint8_t gone) noexcept {
    Node probe;
    this->lock_lines();
    const bool open = (special_ & (gone | B::kPoisoned)) == 0 && !this->template ended<S>(probe);
    if (open) n.up();
    this->unlock_lines();
    return open;
  }

  // --- ends -----------------------------------------------------------------------------------------------------------------------

  void drop_end(typename P::Count& n, std::uint8_t gone, std::uint8_t died) noexcept {
    if (died) {
      this->lock_lines();
      died_ |= died;
      this->unlock_lines();
    }
    if (!n.down()) return;
    Effects fx;
    this->lock_lines();
    special_ |= gone;
    settle(fx);
    if (!plain_only<P> && (special_ & B::kFar)) fx.told = agent();
    unlock(fx);
  }
};

}  // namespace weft::inline WEFT_ABI::core
