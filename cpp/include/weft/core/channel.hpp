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
// Invariants (beside those of waiter.hpp)
//  1 If no foreign waiter is deciding: no queued reader and queued writer (or buffered value) could commit with each other, save parties
//    of standing alternatives, which are marked ready, and of one same choice.
//  2 A buffered value and a waiting plain reader do not coexist (same exceptions).
//  3 Values move by T's move constructor, which must not throw; nothing else of T runs under the lock (rule 12).
//  4 `special_` is zero for a living, unbuffered, unwatched channel: the fast path tests one byte.
#pragma once
#include <new>
#include <type_traits>
#include <utility>

#include "buffer.hpp"
#include "policy.hpp"
#include "ready.hpp"
#include "waiter.hpp"

namespace weft::core {

enum class Side : std::uint8_t { in, out };

// A policy with `plain = true` promises that none of its parties is standing, foreign, extended or computed: what only they need is left
// out of the code.
template <class P>
inline constexpr bool plain_only = requires {
  requires P::plain;
};

template <class P>
class ChannelBase : public Place {
 public:
  typename P::Count references{0};  // what keeps the storage alive (hosted layer)

  std::uint64_t transfers() const noexcept { return transfers_; }
  std::uint32_t reader_ends() const noexcept { return readers_.get(); }
  std::uint32_t writer_ends() const noexcept { return writers_.get(); }
  std::uint8_t poison_strength() const noexcept { return poison_; }
  void set_immunity(std::uint8_t s) noexcept { immunity_ = s; }

  // Counted ends (rule 2.1): from another end, copying.
  void another_reader() noexcept { readers_.up(); }
  void another_writer() noexcept { writers_.up(); }

  template <class F>
  void with_lock(F&& f) noexcept {
    lock_.lock();
    f(rq_, wq_);
    lock_.unlock();
  }

 protected:
  static constexpr std::uint8_t kBuffered = 1;
  static constexpr std::uint8_t kPoisoned = 2;
  static constexpr std::uint8_t kWritersGone = 4;
  static constexpr std::uint8_t kReadersGone = 8;
  static constexpr std::uint8_t kWatched = 16;   // a standing or foreign party was here
  static constexpr std::uint8_t kDeciding = 32;  // a foreign reader was told and has not decided
  static constexpr std::uint8_t kWriterDied = 1;
  static constexpr std::uint8_t kReaderDied = 2;

  Queue rq_, wq_;
  typename P::Lock lock_;
  std::uint8_t special_ = 0;
  std::uint8_t died_ = 0;
  std::uint8_t poison_ = 0;
  std::uint8_t immunity_ = 0;
  std::uint16_t deciding_ = 0;
  typename P::Count readers_{0}, writers_{0};
  Tally transfers_ = 0;
};

template <class T, class P>
class ChannelCore : public ChannelBase<P> {
  static_assert(std::is_nothrow_move_constructible_v<T>, "values move under the channel's lock: T's move constructor must be noexcept");
  static_assert(std::is_nothrow_destructible_v<T>);
  using B = ChannelBase<P>;
  using B::deciding_, B::died_, B::lock_, B::poison_, B::rq_, B::special_, B::transfers_, B::wq_;

  // What is left to do once the lock is released: wake, and destroy what was dropped.
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

 public:
  using value_type = T;
  Ring<T>* ring = nullptr;  // null: rendezvous

  void set_ring(Ring<T>* r) noexcept {
    ring = r;
    if (r) special_ |= B::kBuffered;
  }

  // --- plain operations ---------------------------------------------------------------------------------------------------------

  // Begin a read into me.slot or a write from me.slot. `pending`: me.status and the waker will tell.
  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me) noexcept {
    lock_.lock();
    if (special_ == 0 && !me.is(NodeFlags::special)) [[likely]] {
      Queue& q = opposite<S>();
      Node* y = node(q.front());
      if (!y) {
        me.status = Status::pending;
        me.flags = S == Side::out ? NodeFlags::queued | NodeFlags::out : NodeFlags::queued;
        me.place = static_cast<Place*>(this);
        own<S>().push_back(&me);
        lock_.unlock();
        return Status::pending;
      }
      if (!y->is(NodeFlags::special)) [[likely]] {
        q.pop_front();
        y->flags = 0;
        ++transfers_;
        Node& w = S == Side::in ? *y : me;
        Node& r = S == Side::in ? me : *y;
        ::new (r.slot) T(std::move(*static_cast<T*>(w.slot)));
        y->status = Status::ok;
        lock_.unlock();
        P::wake(y);
        return Status::ok;
      }
    }
    return begin_special<S>(me);
  }

  // Withdraw a plain operation, or a guard's node after the select was decided. True: it was still in line.
  template <Side S>
  bool withdraw(Node& me) noexcept {
    lock_.lock();
    const bool was = me.is(NodeFlags::queued);
    if (was) leave<S>(me);
    if (special_ == 0) [[likely]] {
      lock_.unlock();
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
    lock_.lock();
    if (ring->held > 0) --ring->held;
    rematch(fx);
    settle(fx);
    unlock(fx);
  }

  // A computed output has its value in me.slot now (rule 5.8). `pending`: an extended reader holds us.
  Status deliver(Node& me) noexcept {
    if (!ring) {
      Node* r = me.partner();
      ::new (r->slot) T(std::move(*static_cast<T*>(me.slot)));
      Wakes fx;
      const bool hold = r->is(NodeFlags::extended);
      if (hold) {
        me.status = Status::pending;
        r->hold(&me);
      }
      fx.finish(r, Status::ok);
      fx.run();
      return hold ? Status::pending : Status::ok;
    }
    Effects fx;
    lock_.lock();
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
    lock_.lock();
    if (ring->reserved > 0) --ring->reserved;
    rematch(fx);
    settle(fx);
    unlock(fx);
  }

  // --- guards -------------------------------------------------------------------------------------------------------------------

  // Phase A of a select: it is enrolled nowhere, nobody can claim it.
  template <Side S>
  Try scan(Node& n) noexcept {
    Effects fx;
    lock_.lock();
    const Try t = attempt<S>(n, Free{}, fx);
    if (n.is(NodeFlags::standing)) {
      if (t == Try::committed || t == Try::held) remark<S>(n);
      if (S == Side::out && t == Try::not_ready) static_cast<StandingNode&>(n).contested = foreign_first();
    }
    unlock(fx);
    return t;
  }

  // Phase B: commit jointly with our own word, or join the line. The second look (attempt) under the lock is what makes an enrolment
  // safe against the peer that enrolled since phase A.
  template <Side S>
  Try enrol(Node& n) noexcept {
    Effects fx;
    lock_.lock();
#if WEFT_MUTANT == 3
    Try t = Try::not_ready;
#else
    Try t = attempt<S>(n, Enrolled{n.choice_, n.index}, fx);
#endif
    if (t == Try::not_ready) {
      if (!n.is(NodeFlags::queued)) {
        n.status = Status::pending;
        join<S>(n);
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
    lock_.lock();
    const Try t = n.is(NodeFlags::queued) ? attempt<S>(n, Enrolled{n.choice_, n.index}, fx) : Try::gone;
    unlock(fx);
    return t;
  }

  // Could this guard commit now? (A hint for random choice and for reports; nothing is decided.)
  template <Side S>
  bool ready() noexcept {
    lock_.lock();
    bool r = (special_ & (B::kPoisoned | (S == Side::in ? B::kWritersGone : B::kReadersGone))) != 0;
    if constexpr (S == Side::in)
      r = r || (ring && ring->size > 0);
    else
      r = r || accepts();
    r = r || claimable < S == Side::in ? Side::out : Side::in > ();
    lock_.unlock();
    return r;
  }

  // Standing alternatives link their nodes once. False: the opposite side stands here already; two that stand would never arrive, so
  // the second one enrols here anew for each select.
  template <Side S>
  bool link_standing(StandingNode& n) noexcept {
    if constexpr (plain_only<P>) return false;  // it enrols anew for each select
    Effects fx;
    lock_.lock();
    bool flat = true;
    for (Link* l = opposite<S>().front(); l; l = l->next)
      if (node(l)->is(NodeFlags::standing)) flat = false;
    if (flat) {
      special_ |= B::kWatched;
      n.set(NodeFlags::standing);
      n.status = Status::pending;
      join<S>(n);
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
    lock_.lock();
    invite(fx);
    unlock(fx);
  }
  template <Side S>
  void set_enabled(StandingNode& n, bool on) noexcept {
    lock_.lock();
    if (on)
      n.clear(NodeFlags::disabled);
    else
      n.set(NodeFlags::disabled);
    if (on) mark_ready(&n);
    lock_.unlock();
  }

  // --- foreign readers (rule 6.6) -----------------------------------------------------------------------------------------------

  // Join the line as one who takes for itself. `pending`: the waker is told to look again, any number of times, until take() decides; it
  // is woken only if a partner that computes its value holds us.
  Status begin_foreign(Node& me) noexcept {
    static_assert(!plain_only<P>, "this policy has no foreign parties");
    Effects fx;
    lock_.lock();
    me.set(NodeFlags::foreign);
    Try t = attempt<Side::in>(me, Free{}, fx);
    if (t == Try::not_ready) {
      special_ |= B::kWatched;
      me.status = Status::pending;
      join<Side::in>(me);
      rematch(fx);  // a standing output must learn of us
    }
    unlock(fx);
    return outcome(t, me);
  }

  // Awake and at home: take what the line offers. `not_ready`: it was withdrawn; stay in line. `held`: the wake-up will tell. A guard of a
  // foreign select passes Enrolled, a plain reader Free.
  template <class Me>
  Try take(Node& me, Me how) noexcept {
    Effects fx;
    lock_.lock();
    // Out of the line while we try: who settles accounts on the way must not tell us once more.
    if (!me.is(NodeFlags::queued)) {  // committed already, and a partner that computes its value holds us
      lock_.unlock();
      return Try::held;
    }
    Link* const behind = me.next;
    leave<Side::in>(me);
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
    lock_.lock();
    if (strength >= B::immunity_ && strength > poison_) {
      const bool was = poison_ != 0;
      poison_ = strength;
      special_ |= B::kPoisoned;
      if (!was) {
        fail_all(rq_, Status::poisoned, fx);
        fail_all(wq_, Status::poisoned, fx);
        drop_buffer(fx);
      }
    }
    unlock(fx);
  }

  void drop_reader(bool died = false) noexcept { drop_end(B::readers_, B::kReadersGone, died ? B::kReaderDied : 0); }
  void drop_writer(bool died = false) noexcept { drop_end(B::writers_, B::kWritersGone, died ? B::kWriterDied : 0); }

  // How the channel has ended for a party of that side; `ok`: it has not.
  template <Side S>
  Status how_ended() noexcept {
    lock_.lock();
    Node n;
    const bool e = ended<S>(n);
    lock_.unlock();
    return e ? n.status : Status::ok;
  }

 private:
  template <Side S>
  Queue& own() noexcept {
    return S == Side::in ? rq_ : wq_;
  }
  template <Side S>
  Queue& opposite() noexcept {
    return S == Side::in ? wq_ : rq_;
  }
  static Node* node(Link* l) noexcept { return static_cast<Node*>(l); }
  static Status outcome(Try t, const Node& n) noexcept {
    if (t == Try::committed) return Status::ok;
    return t == Try::ended ? n.status : Status::pending;
  }

  template <Side S>
  void join(Node& n) noexcept {
    if constexpr (S == Side::out) n.set(NodeFlags::out);
    n.set(NodeFlags::queued);
    n.place = static_cast<Place*>(this);
    own<S>().push_back(&n);
  }
  template <Side S>
  void leave(Node& n) noexcept {
    n.clear(NodeFlags::queued);
    own<S>().erase(&n);
  }
  // A claimed peer leaves the line; a standing one goes to its tail and stays.
  void release(Queue& q, Node* y) noexcept {
    q.erase(y);
    if (y->is(NodeFlags::standing))
      q.push_back(y);
    else
      y->clear(NodeFlags::queued);
  }

  void unlock(Effects& fx) noexcept {
    lock_.unlock();
    fx.finish_all();
    if (fx.trash.data && fx.trash.discard) fx.trash.discard(fx.trash);
  }

  template <Side S>
  [[gnu::noinline]] Status begin_special(Node& me) noexcept {
    Effects fx;
    const Try t = attempt<S>(me, Free{}, fx);
    if (t == Try::not_ready) {
      me.status = Status::pending;
      join<S>(me);
      if (special_ & B::kWatched) rematch(fx);
    } else if (t == Try::held) {
      me.place = static_cast<Place*>(this);  // it is pending, so it may be asked where it waits
    }
    unlock(fx);
    return outcome(t, me);
  }

  // --- the rendezvous -----------------------------------------------------------------------------------------------------------

  // Meet the first party in the opposite line that can be claimed together with ourselves.
  template <Side S, class Me>
  Try meet(Node& n, Me me, Wakes& fx) noexcept {
    Queue& q = opposite<S>();
    for (Link* l = q.front(); l;) {
      Node* y = node(l);
      l = l->next;
      if (y->flags & (NodeFlags::foreign | NodeFlags::disabled)) [[unlikely]] {
        if (y->is(NodeFlags::disabled)) continue;
#if WEFT_MUTANT == 6
        release(q, y);
        ++transfers_;
        return pass(n, *y, fx, *y);
#endif
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

  // --- everything ---------------------------------------------------------------------------------------------------------------

  template <Side S, class Me>
  Try attempt(Node& n, Me me, Effects& fx) noexcept {
    if (special_ == 0) [[likely]]
      return meet<S>(n, me, fx);
    // Readers wait for a foreign one's decision. Writers need not be told: in the line they meet it first, and a buffer with room is open.
    if (S == Side::in && (special_ & (B::kDeciding | B::kPoisoned)) == B::kDeciding) return Try::not_ready;
    return attempt_decided<S>(n, me, fx);
  }

  template <Side S, class Me>
  Try attempt_decided(Node& n, Me me, Effects& fx) noexcept {
    Try t = Try::not_ready;
    if (!(special_ & B::kPoisoned)) {
      if (!ring)
        t = meet<S>(n, me, fx);
      else if constexpr (S == Side::in)
        t = from_buffer(n, me, fx);
      else
        t = to_buffer(n, me, fx);
    }
    if (t != Try::not_ready) {
      settle(fx);
      return t;
    }
    if (!ended<S>(n)) return Try::not_ready;
    return me.self() ? Try::ended : Try::gone;
  }

  template <Side S>
  bool first(typename P::Count& n, std::uint8_t gone) noexcept {
    Node probe;
    lock_.lock();
    const bool open = (special_ & (gone | B::kPoisoned)) == 0 && !ended<S>(probe);
    if (open) n.up();
    lock_.unlock();
    return open;
  }

  // Sets n.status if the channel has ended for a party of side S that found nobody.
  template <Side S>
  bool ended(Node& n) noexcept {
    if (special_ & B::kPoisoned) {
      n.status = Status::poisoned;
      return true;
    }
    if constexpr (S == Side::in) {
      if (!(special_ & B::kWritersGone) || (ring && (ring->size > 0 || ring->reserved > 0)) || blocked(wq_)) return false;
      n.status = died_ & B::kWriterDied ? Status::died : Status::retired;
    } else {
      if (!(special_ & B::kReadersGone) || blocked(rq_)) return false;
      n.status = died_ & B::kReaderDied ? Status::died : Status::retired;
    }
    return true;
  }

  // Somebody who waits and is not merely a standing alternative's link (rule 3.2).
  static bool blocked(const Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (!node(l)->is(NodeFlags::standing)) return true;
    return false;
  }
  template <Side S>
  bool claimable() noexcept {
    for (Link* l = own<S>().front(); l; l = l->next) {
      const Node* y = node(l);
      if (!(y->flags & (NodeFlags::foreign | NodeFlags::disabled)) &&
          (!y->choice() || y->choice()->word() == WAITING || y->choice()->word() == LOCKED))
        return true;
    }
    return false;
  }

  // The buffer takes a value without waiting (rule 1.4).
  bool accepts() const noexcept { return ring && (ring->room() || ring->overflow != Overflow::block); }

  template <class Me>
  Try from_buffer(Node& n, Me me, Effects& fx) noexcept {
    if (ring->size == 0) return from_writer(n, me, fx);
    if (!me.self()) return Try::gone;
    ring->pop_into(n.slot);
    ++transfers_;
    if (n.is(NodeFlags::extended)) ++ring->held;
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
      if (y->is(NodeFlags::compute)) break;
      const Claim c = me.with(y);
      if (c == Claim::self_gone) return Try::gone;
      if (c == Claim::won) {
        release(wq_, y);
        ++transfers_;
        ::new (n.slot) T(std::move(*static_cast<T*>(y->slot)));
        if (n.is(NodeFlags::extended)) ++ring->held;
        fx.finish(y, Status::ok);
        return Try::committed;
      }
      if (c == Claim::other_gone && !y->is(NodeFlags::standing)) release(wq_, y);
    }
    return Try::not_ready;
  }

  template <class Me>
  Try to_buffer(Node& n, Me me, Effects& fx) noexcept {
    if (special_ & B::kReadersGone && !blocked(rq_)) return Try::not_ready;
    const bool compute = n.is(NodeFlags::compute);
    // What is being computed was committed before us (rule 1.3).
    if (ring->reserved > 0 && ring->overflow == Overflow::block) return Try::not_ready;
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
          if (y->is(NodeFlags::extended)) ++ring->held;
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
      if (ring->overflow == Overflow::drop_newest || (ring->overflow == Overflow::drop_oldest && ring->size == 0)) {
        if (compute)
          ++ring->reserved;  // dropped, or not, when it is there
        else
          ++ring->dropped;  // the value stays in the writer's slot and dies with it
        return Try::committed;
      }
      if (ring->overflow == Overflow::drop_oldest) {
        if (fx.has_victim) reinterpret_cast<T*>(fx.victim)->~T();
        ring->pop_into(fx.victim);
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
    if (special_ & B::kWatched) rematch(fx);
    return Try::committed;
  }

  // Room in the buffer: waiting writers' values enter it, in order (rule 1.5).
  void pull(Effects& fx) noexcept {
    if (!ring) return;
    for (Link* l = wq_.front(); l && ring->room() && ring->reserved == 0;) {
      Node* y = node(l);
      l = l->next;
      if (y->is(NodeFlags::disabled)) continue;
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

  // After a change on a watched channel: let sleeping parties that can commit with each other do so, in order; tell the others.
  void rematch(Effects& fx) noexcept {
    pull(fx);
    if constexpr (plain_only<P>) return;
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
#if WEFT_MUTANT == 4
        continue;
#endif
        if (r->choice_->word() != WAITING) continue;
      }
      const Try t = r->choice() ? match(*r, Enrolled{r->choice_, r->index}, fx) : match(*r, Free{}, fx);
      if (t == Try::not_ready) continue;
      if (!standing) leave<Side::in>(*r);
      if (t == Try::committed) fx.finish(r, Status::ok);
      l = rq_.front();
    }
    // Output alternatives that stand here learn of waiting readers and of room.
    for (Link* l = wq_.front(); l;) {
      Node* w = node(l);
      l = l->next;
      if (!w->is(NodeFlags::standing) || w->is(NodeFlags::disabled)) continue;
      if (!blocked(rq_) && !accepts()) continue;
      mark_ready(w);
#if WEFT_MUTANT == 4
      continue;
#endif
      if (w->choice_->word() != WAITING) continue;
      const Enrolled me{w->choice_, w->index};
      const Try t = ring ? to_buffer(*w, me, fx) : meet<Side::out>(*w, me, fx);
      if (t == Try::committed) fx.finish(w, Status::ok);
      if (t != Try::not_ready)
        l = wq_.front();
      else
        invite(fx);
    }
  }
  template <class Me>
  Try match(Node& r, Me me, Effects& fx) noexcept {
    return ring ? from_buffer(r, me, fx) : meet<Side::in>(r, me, fx);
  }
  bool offered() const noexcept {
    if (ring && ring->size > 0) return true;
    for (Link* l = wq_.front(); l; l = l->next) {
      const Node* y = node(l);
      if (y->is(NodeFlags::disabled)) continue;
      if (ring && y->is(NodeFlags::compute)) return false;  // it needs a slot first
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
#if WEFT_MUTANT != 7
    if (special_ & B::kPoisoned)
      fail_all(rq_, Status::poisoned, fx);
    else
      rematch(fx);
#endif
  }

  // A standing alternative just took something here: is there more?
  template <Side S>
  void remark(Node& n) noexcept {
    const bool more = S == Side::in ? offered() : (claimable<Side::in>() || accepts());
    if (more) mark_ready(&n);
  }

  // --- ends -----------------------------------------------------------------------------------------------------------------------

  void drop_end(typename P::Count& n, std::uint8_t gone, std::uint8_t died) noexcept {
    if (died) {
      lock_.lock();
      died_ |= died;
      lock_.unlock();
    }
    if (!n.down()) return;
    Effects fx;
    lock_.lock();
    special_ |= gone;
    settle(fx);
    unlock(fx);
  }

  // Tell those for whom the channel has ended by now (rules 3.1–3.3).
  void settle(Effects& fx) noexcept {
    if (!(special_ & (B::kWritersGone | B::kReadersGone)) || (special_ & B::kPoisoned)) return;
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
      if (y->is(NodeFlags::standing)) mark_ready(y);
      if (y->is(NodeFlags::disabled)) continue;
      const bool won = Free{}.with(y) == Claim::won;
      if (!y->is(NodeFlags::standing)) release(q, y);
      if (won) fx.finish(y, s);
    }
  }

  void drop_buffer(Effects& fx) noexcept {
    if (!ring || ring->size == 0) return;
    ring->dropped += ring->size;
    fx.trash = ring->steal();
  }
};

}  // namespace weft::core
