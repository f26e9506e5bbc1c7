// Waiters, and how a choice commits. Each choice has one word; words are claimed in ascending order
// of address.
//
// A *waiter* is a node in a channel's waiting queue. It belongs to a *plain* operation or to a
// *choice*. The node of a plain operation can be claimed while it is queued, under the channel's
// lock; the node of a choice is claimed through the choice's word. A coroutine, an OS thread, a
// Python coroutine and a foreign task differ only in how their Waker wakes them.
//
//   IDLE ──arm()──► WAITING ──claim_one(DONE i)──────────────► DONE(i)
//                    │  ▲ │
//                    │  │ └─finish_as()──► TIMED_OUT (a timer), CANCELLED (a request)
//      claim_both()  ▼  │ claim_both(): the other choice has committed elsewhere
//                   LOCKED ──claim_both(): both claimed──► DONE(i)
//
// Invariants
//  1 A party takes one channel lock at a time. (The ready list of a standing alternative has a leaf
//    lock, under which no other lock is taken.)
//  2 A party that has a word LOCKED takes no channel lock.
//  3 Words are claimed in ascending order of address.
//  4 A node is queued only while its owner's frame exists. Its owner, or the party that commits it,
//    unlinks it under the channel's lock.
// Hence there is no deadlock (lock holders wait only for words, word holders only for higher
// words), no lost wake-up (of two complementary parties the later to take the channel's lock sees
// the earlier) and no lost value (a value moves after all words are claimed; cancellation and
// timers compete for the same word).
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../prim.hpp"
#include "list.hpp"
#include "status.hpp"

namespace weft::inline WEFT_ABI::core {

class Choice;
struct Node;
class RunQueue;

// The distance in bytes from the start of a coroutine's frame to its promise. A frame begins with
// two pointers, followed by the promise, whose alignment is no greater. Every known compiler lays
// frames out like this, but g++ 12 makes some frames that cannot run (WEFT_WRONG_FRAME).
inline constexpr std::ptrdiff_t kFrame = 2 * sizeof(void*);

struct WakerOps {
  // Called exactly once for each operation that was pending, when the operation has its outcome.
  // May be called from any thread, and is never called under a lock.
  void (*wake)(Node*) noexcept;
  // Called by the scheduler on whose run queue the waker was put.
  void (*run)(Node*);
  // The run queue that the waker's process joins when it is woken; null if it has none. A party on
  // the same scheduler pushes the process there itself, without a call of wake().
  RunQueue* home = nullptr;
  // If the waker is a coroutine (then marked `framed`), kFrame: its frame begins this many bytes
  // before the waker, and the scheduler resumes it without a call to run. Otherwise 0.
  std::ptrdiff_t frame = 0;
  // Notifies a foreign party, so that it tries again (rule 6.6). The function is null for any other
  // party. It may be called any number of times (Node::told counts the calls), from any thread, and
  // is never called under a lock. wake() is still called once if another party commits the
  // operation. The waker must not be freed until all these calls have returned, so its owner counts
  // them or keeps the waker alive by a reference count of its own.
  void (*tell)(Node*) noexcept = nullptr;
};

struct NodeFlags {
  // The node is linked in a channel's waiting queue (channel's lock).
  static constexpr std::uint16_t queued = 1;
  // The node is for a party that commits at another place. The node is woken once, and leaves the
  // queue, when that party might find a partner.
  static constexpr std::uint16_t watch = 2;
  // The node belongs to a choice; a node without this flag is its own waker.
  static constexpr std::uint16_t of_choice = 4;
  static constexpr std::uint16_t extended = 8;  // an extended read (rule 1.6)
  // An output whose owner makes the value after the commit (rule 5.8).
  static constexpr std::uint16_t compute = 16;
  // An input whose owner takes the value itself once it is awake (rule 6.6); such a node is always
  // part of a choice.
  static constexpr std::uint16_t foreign = 32;
  // A foreign party that has been notified (channel's lock).
  static constexpr std::uint16_t notified = 64;
  static constexpr std::uint16_t standing = 128;  // stays linked between selects (rule 5.9)
  // The guard's precondition is false (channel's lock).
  static constexpr std::uint16_t disabled = 256;
  // For a waker: ops->frame is kFrame. The flag is kept here because a scheduler tests it at each
  // step.
  static constexpr std::uint16_t framed = 512;
  // For a guard of a select (rule 5.6):
  static constexpr std::uint16_t quiet = 1024;  // the retirement of the channel is not an outcome
  static constexpr std::uint16_t keeps = 2048;  // quiet, and counted by KeptChoice
  // Quiet, and its channel has retired (channel's lock).
  static constexpr std::uint16_t silent = 4096;
  // The value of this extended read can be put back (WIRE.md 4.7). Until the read has ended, the
  // channel has not ended for readers.
  static constexpr std::uint16_t kept = 8192;
  // A plain reader in the queue whose value was, or might have been, sent (lending.hpp; channel's
  // lock).
  static constexpr std::uint16_t promised = 16384;
  // A process with this flag waits only for a limited time, so it must be able to leave a queue at
  // once.
  static constexpr std::uint16_t limited = 32768;
  // The parties that the fast path of a meeting cannot handle.
  static constexpr std::uint16_t special =
      of_choice | extended | compute | foreign | standing | disabled | promised;
};

// A node that belongs to no choice is also a waker: it is the one waiter of a process, which serves
// for all plain operations of that process and for its place in a run queue. (The node leaves every
// channel's queue before it is put into a run queue, so one link serves for both.)
struct Node : Link {
  void* slot = nullptr;  // output: the value; input: raw storage for one value
  // The channel or barrier at which the node waits. Withdrawals and reports use it.
  void* place = nullptr;
  union {
    const WakerOps* ops = nullptr;  // used if the node is a waker
    Choice* choice_;                // used if of_choice is set
  };
  std::uint32_t index = 0;  // the index of the guard
  std::uint16_t flags = 0;
  Status status = Status::pending;  // the outcome, once the party is woken
  // For a foreign node: how many calls of WakerOps::tell were made, modulo 256. For a promised
  // node: 1 if the reader is to be withdrawn. (channel's lock)
  std::uint8_t told = 0;
#if WEFT_CHECKED
  int checked = -1;  // the process's number in a check (runtime/points.hpp)
#endif

  bool is(std::uint16_t f) const noexcept { return (flags & f) != 0; }
  void set(std::uint16_t f) noexcept { flags = static_cast<std::uint16_t>(flags | f); }
  void clear(std::uint16_t f) noexcept { flags = static_cast<std::uint16_t>(flags & ~f); }

  Choice* choice() const noexcept { return is(NodeFlags::of_choice) ? choice_ : nullptr; }
  void belongs_to(Choice* c) noexcept {
    choice_ = c;
    set(NodeFlags::of_choice);
  }

  // A committed node may hold its partner: the writer that an extended read keeps waiting, or the
  // reader that waits for a computed value. The partner is kept in `place`, which is then free: the
  // owner knows where its operation waits.
  Node* partner() const noexcept { return static_cast<Node*>(place); }
  void hold(Node* other) noexcept { place = other; }
};

using Waker = Node;  // a node that belongs to no choice
using Waiter = Node;

inline Waker* next_of(const Waker* w) noexcept { return static_cast<Waker*>(w->next); }

// The id of a process that is recorded at a channel. If several threads record an id at once, the
// last one counts. The id is written only if it changes, since the ids of both sides are on one
// cache line.
class Holder {
 public:
  operator std::uint32_t() const noexcept { return id_.load(std::memory_order_relaxed); }
  [[gnu::always_inline]] Holder& operator=(std::uint32_t id) noexcept {
    if (*this != id) id_.store(id, std::memory_order_relaxed);
    return *this;
  }

 private:
  prim::atomic<std::uint32_t> id_{0};
};

// The base of every channel and barrier. It holds what a deadlock report says about a place where
// processes wait (rule 10.2).
struct SyncObject {
  const char* name = nullptr;  // the object's name if line is 0, else the file where it was made
  std::uint32_t line = 0;
  // last_reader, last_writer: the processes that were the last to receive or to use an end of the
  // object; 0 if there is none yet.
  Holder last_reader;
  Holder last_writer;
#if WEFT_CHECKED
  mutable bool in_check = false;  // whether a function that is checked has made the object
#endif
};

enum Word : std::uint32_t {
  IDLE = 0,
  WAITING = 1,
  LOCKED = 2,
  CANCELLED = 3,
  TIMED_OUT = 4,
  DONE = 8
};

class Choice {
 public:
  Waker* waker = nullptr;

  std::uint32_t word() const noexcept { return word_.load(std::memory_order_seq_cst); }
  bool done() const noexcept { return word() >= DONE; }
  std::uint32_t winner() const noexcept { return word() - DONE; }

  void arm() noexcept { word_.store(WAITING, std::memory_order_seq_cst); }
  void reset() noexcept { word_.store(IDLE, std::memory_order_release); }

  bool cas(std::uint32_t from, std::uint32_t to) noexcept {
    return word_.compare_exchange_strong(from, to, std::memory_order_seq_cst);
  }

  // Ends the choice for a timer or a cancellation, which competes for the word as any party does.
  // Returns false if a party has already committed this choice and will wake it.
  bool finish_as(Word outcome) noexcept { return claim_one(outcome); }

  // Sets the next value of the word. Called by the party that has set this word to LOCKED
  // (claim_both, barriers).
  void unlock_as(std::uint32_t to) noexcept { word_.store(to, std::memory_order_seq_cst); }

  // Returns true if this choice was WAITING and the call has set it to `to`.
  WEFT_INLINE_HOSTED bool claim_one(std::uint32_t to) noexcept {
    for (unsigned round = 0;; ++round) {
      const std::uint32_t s = word();
      if (s == WAITING) {
        if (cas(WAITING, to)) return true;
      } else if (s == LOCKED) {
        prim::pause(round);
      } else {
        return false;
      }
    }
  }

  enum class Both : std::uint8_t { won, self_gone, other_gone };

  // Commits two choices with each other: guard xi of x with guard yi of y.
  static Both claim_both(Choice& x, std::uint32_t xi, Choice& y, std::uint32_t yi) noexcept {
    const bool x_low = &x < &y;
    Choice& lo = x_low ? x : y;
    Choice& hi = x_low ? y : x;
    const std::uint32_t lo_to = DONE + (x_low ? xi : yi);
    const std::uint32_t hi_to = DONE + (x_low ? yi : xi);
    if (!lo.claim_one(LOCKED)) return x_low ? Both::self_gone : Both::other_gone;
    if (!hi.claim_one(hi_to)) {
      lo.unlock_as(WAITING);
      return x_low ? Both::other_gone : Both::self_gone;
    }
    lo.unlock_as(lo_to);
    return Both::won;
  }

 private:
  prim::atomic<std::uint32_t> word_{IDLE};
};

// The choice of a select, which counts the guards that keep the select open (rule 5.6).
class KeptChoice : public Choice {
 public:
  // Sets the count to the number of guards that keep the select open, before the first of them is
  // enrolled. The count goes down when the channel of one of them is found retired, under the
  // channel's lock: the owner finds that while it enrols, or the party that ends the channel finds
  // it later. The party that brings the count to zero claims the word, as any partner does. (The
  // store is relaxed because arm() publishes the count.)
  void keep_open(std::uint32_t guards) noexcept {
    keepers_.store(guards, std::memory_order_relaxed);
  }
  bool last_gone() noexcept { return keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  prim::atomic<std::uint32_t> keepers_{0};
};

inline Waker* waker_of(Node* n) noexcept {
  //  a node that is of_choice has a choice: NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  return n->is(NodeFlags::of_choice) ? n->choice_->waker : n;
}

// The wakers to be woken once the lock is released (rule 12), in the order in which their
// operations received their outcomes.
class Wakes {
 public:
  void add(Waker* w) noexcept {
    w->next = nullptr;
    if (tail_)
      tail_->next = w;
    else
      head_ = w;
    tail_ = w;
  }
  void finish(Node* n, Status s) noexcept {
    n->status = s;
    add(waker_of(n));
  }
  // last() returns the last waker so far; null if there is none. finish_behind() inserts another
  // waker directly behind `before`, ahead of those that were added meanwhile.
  Waker* last() const noexcept { return tail_; }
  void finish_behind(Waker* before, Node* n, Status s) noexcept {
    n->status = s;
    Waker* const w = waker_of(n);
    Waker* const next = before ? next_of(before) : head_;
    if (!next) return add(w);
    w->next = next;
    if (before)
      before->next = w;
    else
      head_ = w;
  }
  void run() noexcept {
    for (Waker* w = head_; w;) {
      Waker* next = next_of(w);
      w->ops->wake(w);
      w = next;
    }
    head_ = tail_ = nullptr;
  }

 private:
  Waker* head_ = nullptr;
  Waker* tail_ = nullptr;
};

// --- how a party claims itself and its partner ---------------------------------------------------

enum class Claim : std::uint8_t { won, self_gone, other_gone, itself };

// How a party claims if no other party can claim it: a plain operation as it begins, or a select
// that is in no queue.
struct Free {
  bool self() const noexcept { return true; }
  WEFT_INLINE_HOSTED Claim with(Node* y) const noexcept {
    Choice* c = y->choice();
    return !c || c->claim_one(DONE + y->index) ? Claim::won : Claim::other_gone;
  }
};

// Called when the channel has ended with status s for n, which has left the waiting queue. Returns
// true if s is the outcome of n's operation, and the caller has claimed it.
inline bool ends(Node* n, Status s) noexcept {
  if (s == Status::retired && n->is(NodeFlags::quiet)) {
    n->set(NodeFlags::silent);
    if (!n->is(NodeFlags::keeps) || !static_cast<KeptChoice*>(n->choice_)->last_gone())
      return false;
  }
  return Free{}.with(n) == Claim::won;
}

// How a party claims if other parties can claim its choice at the same moment. A third party that
// commits two sleepers uses Enrolled too.
struct Enrolled {
  Choice* x;
  std::uint32_t index;
  bool self() const noexcept { return x->claim_one(DONE + index); }
  Claim with(Node* y) const noexcept {
    Choice* c = y->choice();
    if (!c) return self() ? Claim::won : Claim::self_gone;
    if (c == x) return Claim::itself;
    switch (Choice::claim_both(*x, index, *c, y->index)) {
      case Choice::Both::won: return Claim::won;
      case Choice::Both::self_gone: return Claim::self_gone;
      default: return Claim::other_gone;
    }
  }
};

// Acts as Free or as Enrolled, which is decided at run time, so that the code for both is compiled
// once.
struct Either {
  Choice* x = nullptr;  // null: acts as Free
  std::uint32_t index = 0;
  bool self() const noexcept { return !x || x->claim_one(DONE + index); }
  Claim with(Node* y) const noexcept {
    if (!x) [[likely]]
      return Free{}.with(y);
    return jointly(y);
  }

 private:
  [[gnu::noinline]] Claim jointly(Node* y) const noexcept { return Enrolled{x, index}.with(y); }
};
// On a microcontroller it is known which of Free and Enrolled occur, so each keeps a type of its
// own.
#if __STDC_HOSTED__
using FreeParty = Either;
using EnrolledParty = Either;
#else
using FreeParty = Free;
using EnrolledParty = Enrolled;
#endif

// Called by a party that finds that the channel of its own node n has ended; n.status says how.
// Returns `silent` for a quiet guard of a choice whose channel has retired (rule 5.6), `ended` if
// the party claims itself, `gone` if another party has claimed its choice.
template <class Me>
Attempt found_ended(Node& n, Me me) noexcept {
  bool of_choice = std::is_same_v<Me, Enrolled>;
  if constexpr (std::is_same_v<Me, Either>) of_choice = me.x != nullptr;
  if (of_choice) {
    if (n.status == Status::retired && n.is(NodeFlags::quiet)) {
      n.set(NodeFlags::silent);
      return Attempt::silent;
    }
  }
  return me.self() ? Attempt::ended : Attempt::gone;
}

}  // namespace weft::inline WEFT_ABI::core
