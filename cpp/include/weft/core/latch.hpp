// A latch: an event that happens once and for all, such as the end of a process (rule 7.11). When
// it happens, all parties that wait continue, and parties that arrive later need not wait. A party
// may wait by itself or as a guard of a choice; any number may wait.
//
//   not set ──set()──► set
//   a party: queued under the lock ──set()──► woken (a choice: if its word can still be claimed)
//
// A choice's word is claimed while the lock is held, as at a channel (invariants 1 to 3 of
// waiter.hpp). Each choice is claimed by itself, so the order does not matter.
#pragma once
#include "policy.hpp"
#include "waiter.hpp"

namespace weft::inline WEFT_ABI::core {

template <class P>
class LatchEngine : public SyncObject {
 public:
  // Sets the latch and wakes all parties that wait. Later calls do nothing.
  void set() noexcept {
    Wakes after;
    lock_.lock();
    set_ = true;
    while (Link* l = waiting_.front()) {
      Node& n = *static_cast<Node*>(l);
      remove(n);
      if (Free{}.with(&n) == Claim::won) after.finish(&n, Status::ok);
    }
    lock_.unlock();
    after.run();
  }
  bool ready() noexcept {
    lock_.lock();
    const bool r = set_;
    lock_.unlock();
    return r;
  }

  // Returns `ok` if the latch is set, `pending` if `me` must await the wake-up.
  Status begin_wait(Node& me) noexcept {
    lock_.lock();
    const bool r = set_;
    if (!r) enqueue(me);
    lock_.unlock();
    return r ? Status::ok : Status::pending;
  }
  // Withdraws `me`. Returns true if `me` was still waiting.
  bool withdraw(Node& me) noexcept {
    lock_.lock();
    const bool was = me.is(NodeFlags::queued);
    if (was) remove(me);
    lock_.unlock();
    return was;
  }

  Attempt scan(Node&) noexcept { return ready() ? Attempt::committed : Attempt::not_ready; }
  Attempt enrol(Node& n) noexcept {
    lock_.lock();
    Attempt t = Attempt::not_ready;
    if (set_)
      t = n.choice_->claim_one(DONE + n.index) ? Attempt::committed : Attempt::gone;
    else
      enqueue(n);
    lock_.unlock();
    return t;
  }

 private:
  void enqueue(Node& n) noexcept {
    n.status = Status::pending;
    n.set(NodeFlags::queued);
    n.place = static_cast<SyncObject*>(this);
    waiting_.push_back(&n);
  }
  void remove(Node& n) noexcept {
    n.clear(NodeFlags::queued);
    waiting_.erase(&n);
  }

  typename P::Lock lock_;
  bool set_ = false;
  Queue waiting_;
};

}  // namespace weft::inline WEFT_ABI::core
