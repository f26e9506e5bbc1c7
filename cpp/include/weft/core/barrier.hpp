// A barrier: all enrolled parties meet, then all continue (rule 8). A party may arrive by sync or
// as a guard of a choice.
//
// The arrival that completes a phase claims every choice among the parties at once: their words are
// LOCKED in ascending order (for this the queue of choices is kept sorted by address), then all
// become DONE. If one of the choices has committed elsewhere, those locked so far become WAITING
// again (invariants 2 and 3 of waiter.hpp; a barrier's lock counts as a channel's).
//
// A barrier may die (rule 8.7): then all parties that wait are woken with `died`, and all parties
// that arrive later receive `died` at once.
#pragma once
#include "policy.hpp"
#include "waiter.hpp"

namespace weft::inline WEFT_ABI::core {

template <class P>
class BarrierEngine : public SyncObject {
 public:
  typename P::Count references{0};

  constexpr explicit BarrierEngine(std::uint32_t parties = 0) noexcept : enrolled_(parties) {}

  std::uint32_t enrolled() noexcept { return locked(enrolled_); }
  std::uint64_t phases() noexcept { return locked(phases_); }
  template <class F>
  void with_lock(F&& f) noexcept {
    lock_.lock();
    f(plain_, choices_);
    lock_.unlock();
  }

  void enrol_party() noexcept {
    lock_.lock();
    ++enrolled_;
    lock_.unlock();
  }

  // Marks the barrier as permanently dead: one of its parties has died, and it is not known which
  // one.
  void die() noexcept {
    Wakes after;
    lock_.lock();
    died_ = true;
    for (Queue* q : {&choices_, &plain_})
      while (Link* l = q->front()) {
        Node& n = *node(l);
        remove(n);
        if (Free{}.with(&n) == Claim::won) after.finish(&n, Status::died);
      }
    lock_.unlock();
    after.run();
  }
  bool has_died() noexcept { return locked(died_); }
  bool waited() noexcept { return locked(plain_count_) + locked(choice_count_) > 0; }

  // Removes one party. Returns false if no party is enrolled (bad use).
  bool resign() noexcept {
    Wakes after;
    lock_.lock();
    const bool fine = enrolled_ > 0;
    if (fine && --enrolled_ > 0) complete_without_us(after);
    lock_.unlock();
    after.run();
    return fine;
  }

  // Returns `ok` if `me` was the last to arrive, `pending` if `me` must await the wake-up, and
  // `died` if the barrier is dead.
  Status begin_sync(Node& me) noexcept {
    Wakes after;
    lock_.lock();
    if (died_) {
      lock_.unlock();
      return me.status = Status::died;
    }
    const Attempt t = arrive(nullptr, 0, after);
    if (t == Attempt::not_ready) {
      me.status = Status::pending;
      me.set(NodeFlags::queued);
      me.place = static_cast<SyncObject*>(this);
      plain_.push_back(&me);
      ++plain_count_;
    }
    lock_.unlock();
    after.run();
    return t == Attempt::committed ? Status::ok : Status::pending;
  }

  // Returns true if `me` was still waiting; `me` then no longer counts as arrived (rule 8.3).
  bool withdraw(Node& me) noexcept {
    lock_.lock();
    const bool was = me.is(NodeFlags::queued);
    if (was) remove(me);
    lock_.unlock();
    return was;
  }

  Attempt scan(Node& n) noexcept {
    Wakes after;
    lock_.lock();
    const Attempt t = died_ ? Attempt::ended : arrive(nullptr, 0, after);
    if (died_) n.status = Status::died;
    lock_.unlock();
    after.run();
    return t;
  }

  Attempt enrol(Node& n) noexcept {
    Wakes after;
    lock_.lock();
    Attempt t = Attempt::not_ready;
    Link* same = choices_.front();
    while (same && static_cast<Node*>(same)->choice_ != n.choice_) same = same->next;
    if (died_) {
      n.status = Status::died;
      t = n.choice_->claim_one(DONE + n.index) ? Attempt::ended : Attempt::gone;
    } else if (!same) {
      t = arrive(n.choice_, n.index, after);  // Two guards of one select count as one arrival.
    }
    if (t == Attempt::not_ready && !same) {
      n.status = Status::pending;
      n.set(NodeFlags::queued);
      n.place = static_cast<SyncObject*>(this);
      Link* at = choices_.front();
      while (at && static_cast<Node*>(at)->choice_ < n.choice_) at = at->next;
      choices_.insert_before(at, &n);
      ++choice_count_;
    }
    lock_.unlock();
    after.run();
    return t;
  }

  bool ready() noexcept {
    lock_.lock();
    const bool r = died_ || (enrolled_ > 0 && plain_count_ + choice_count_ + 1 >= enrolled_);
    lock_.unlock();
    return r;
  }

 private:
  template <class N>
  N locked(const N& n) noexcept {
    lock_.lock();
    const N copy = n;
    lock_.unlock();
    return copy;
  }
  static Node* node(Link* l) noexcept { return static_cast<Node*>(l); }

  void remove(Node& n) noexcept {
    n.clear(NodeFlags::queued);
    if (n.choice()) {
      choices_.erase(&n);
      --choice_count_;
    } else {
      plain_.erase(&n);
      --plain_count_;
    }
  }

  // Handles the arrival of one more party. x is the party's choice; null if the party has arrived
  // by begin_sync(), or by scan(), where no other party can claim its choice.
  Attempt arrive(Choice* x, std::uint32_t xi, Wakes& after) noexcept {
    for (;;) {
      if (enrolled_ == 0 || plain_count_ + choice_count_ + 1 < enrolled_) return Attempt::not_ready;
      Node* gone = nullptr;
      switch (claim_all(x, gone)) {
        case Claim::won:
          if (x) x->unlock_as(DONE + xi);
          finish_phase(after);
          return Attempt::committed;
        case Claim::self_gone: return Attempt::gone;
        default: remove(*gone); break;
      }
    }
  }

  void complete_without_us(Wakes& after) noexcept {
    while (plain_count_ + choice_count_ >= enrolled_) {
      Node* gone = nullptr;
      if (claim_all(nullptr, gone) == Claim::won) return finish_phase(after);
      remove(*gone);
    }
  }

  // Claims every choice in the queue, and x, as LOCKED in ascending order: either all of them or
  // none.
  Claim claim_all(Choice* x, Node*& gone) noexcept {
    bool mine = x == nullptr;
    Link* l = choices_.front();
    for (; l || !mine;) {
      if (!mine && (!l || x < node(l)->choice_)) {
        if (!x->claim_one(LOCKED)) {
          release_until(l);
          return Claim::self_gone;
        }
        mine = true;
        continue;
      }
      if (!node(l)->choice_->claim_one(LOCKED)) {
        gone = node(l);
        release_until(l);
        if (x && x < gone->choice_) x->unlock_as(WAITING);
        return Claim::other_gone;
      }
      l = l->next;
    }
    return Claim::won;
  }
  void release_until(Link* end) noexcept {
    for (Link* l = choices_.front(); l != end; l = l->next) node(l)->choice_->unlock_as(WAITING);
  }

  void finish_phase(Wakes& after) noexcept {
    ++phases_;
    while (Link* l = choices_.front()) {
      Node* n = node(l);
      remove(*n);
      n->choice_->unlock_as(DONE + n->index);
      after.finish(n, Status::ok);
    }
    while (Link* l = plain_.front()) {
      remove(*node(l));
      after.finish(node(l), Status::ok);
    }
  }

  typename P::Lock lock_;
  std::uint32_t enrolled_;
  std::uint32_t plain_count_ = 0;
  std::uint32_t choice_count_ = 0;
  std::uint64_t phases_ = 0;
  bool died_ = false;
  Queue plain_;
  Queue choices_;  // sorted by the address of the choice
};

}  // namespace weft::inline WEFT_ABI::core
