// The part of a channel that does not depend on the type of its values: the two waiting queues,
// which sides have ended, the counts of ends.
//
// Most of the time most channels are alive, unbuffered and unwatched, with one plain party or none
// waiting. Then there are no waiting queues: the word of reader_queue_ alone says which party
// waits, so that a meeting tests one word and writes one. That word is called the meeting word. In
// all other cases the queues are used, between lock_queues() and unlock_queues().
//
//   meeting: 0 nobody │ writer + kWriter │ reader + kReader ──lock_queues()──► queues (kTag is set)
//      ▲──────unlock_queues(), if both queues are empty and state_ is 0───────┘
//
// Invariants (channel's lock)
//  1 A node is in a waiting queue if and only if it is marked `queued`. A node in the meeting word
//    is not marked `queued` until there are queues.
//  2 `state_` is zero for a living, unbuffered, unwatched channel; otherwise there are queues.
//  3 While there are no queues, writer_queue_ is empty.
//  4 A party that waits in the meeting word has the status ok already, so that its partner need not
//    write the status. So a status does not say whether a party waits.
#pragma once
#include "policy.hpp"
#include "waiter.hpp"

namespace weft::inline WEFT_ABI::core {

enum class Side : std::uint8_t { in, out };

// The argument of a function whose code is the same for both sides. On a hosted system the argument
// is a value, so that the function is compiled once; on a microcontroller it is a type, so that
// nothing is tested at run time.
template <Side S>
struct SideIs {
  constexpr operator Side() const noexcept { return S; }
};
#if __STDC_HOSTED__
template <Side S>
inline constexpr Side kSide = S;
#else
template <Side S>
inline constexpr SideIs<S> kSide{};
#endif

// A policy with `plain = true` promises that none of its parties is standing, foreign, extended or
// computed. The code that only such parties need is then left out.
template <class P>
inline constexpr bool plain_only = requires {
  requires P::plain;
};

// The agent of a channel whose other side is in another address space (far_engine.hpp). It is
// notified (WakerOps::tell) when a party has joined a queue, or the last end in this address space
// was closed. The notification may be sent from any thread, any number of times, and is never sent
// under a lock.
struct FarAgent : Waker {
  // Called when a party leaves whose request was sent to the home. The party's operation might have
  // ended already.
  void (*leaves)(FarAgent&, Node&) noexcept = nullptr;
  // Called when an end in this address space poisons the channel.
  void (*poisons)(FarAgent&, std::uint8_t) noexcept = nullptr;
};
template <class Engine>
class WithAgent : public Engine {
 protected:
  explicit WithAgent(FarAgent* a) noexcept : agent_(a) {}
  friend Engine;
  FarAgent* const agent_;
};

template <class P>
class ChannelBase : public SyncObject {
 public:
  typename P::Count references{0};  // counts what keeps the storage alive; the hosted layer uses it

  std::uint64_t transfers() const noexcept { return transfers_; }
  std::uint32_t reader_ends() const noexcept { return readers_.get(); }
  std::uint32_t writer_ends() const noexcept { return writers_.get(); }
  std::uint8_t poison_strength() const noexcept { return poison_; }
  void set_immunity(std::uint8_t s) noexcept { immunity_ = s; }

  // Counts one more end (rule 2.1), made from an end that is open.
  void another_reader() noexcept { readers_.up(); }
  void another_writer() noexcept { writers_.up(); }

  // Returns whether a party that waits at this local channel has a run queue other than the current
  // one. If so, that party or the caller is on the wrong scheduler (rule 11.2).
  bool waits_elsewhere() const noexcept {
    const std::uintptr_t w = reader_queue_.word();
    if (w != 0 && !(w & Queue::kTag)) return elsewhere(alone_as(w));
    for (const Queue* q : {&reader_queue_, &writer_queue_})
      if (w != 0 && q->front() && elsewhere(node(q->front()))) return true;
    return false;
  }
  // Returns whether any party waits at this channel. Called by the holder of the last reference,
  // without the lock.
  WEFT_OUTLINE_HOSTED bool waited() const noexcept {
    const std::uintptr_t w = reader_queue_.word();
    return (w & ~Queue::kTag) != 0 || !writer_queue_.empty();
  }
  // Returns whether this party waits at this channel, as far as that can be seen without the lock.
  // The party's process must not run meanwhile.
  bool is_waiting(const Node& n) const noexcept {
    const std::uintptr_t w = reader_queue_.word();
    return has_queues(w) ? n.is(NodeFlags::queued) : alone_as(w) == &n;
  }
  template <class F>
  void with_lock(F&& f) noexcept {
    lock_queues();
    f(reader_queue_, writer_queue_);
    unlock_queues();
  }

 protected:
  static constexpr std::uint8_t kBuffered = 1;
  static constexpr std::uint8_t kPoisoned = 2;
  static constexpr std::uint8_t kWritersGone = 4;
  static constexpr std::uint8_t kReadersGone = 8;
  static constexpr std::uint8_t kWatched = 16;   // a standing or foreign party has been here
  static constexpr std::uint8_t kDeciding = 32;  // a notified foreign reader is undecided
  // a watch has been here: see ChannelEngine::watch()
  static constexpr std::uint8_t kSpanned = 64;
  // The channel's other side is in another address space (far_engine.hpp).
  static constexpr std::uint8_t kFar = 128;
  static constexpr std::uint8_t kWriterDied = 1;
  static constexpr std::uint8_t kReaderDied = 2;

  // The tags of the meeting word. The tag of a queue is 4, or 3 if no third bit is free.
  static constexpr std::uintptr_t kWriter = 1, kReader = 2;
  static bool alone(std::uintptr_t word, std::uintptr_t whom) noexcept {
    if constexpr (Queue::kTag == 4)
      return (word & whom) != 0;
    else
      return (word & Queue::kTag) == whom;
  }

  static bool has_queues(std::uintptr_t word) noexcept {
    return (word & Queue::kTag) == Queue::kTag;
  }
  // Returns the party that waits in the meeting word, of either side; null if there is none.
  static Node* alone_as(std::uintptr_t word) noexcept {
    return reinterpret_cast<Node*>(word & ~(kWriter | kReader));
  }

  WEFT_OUTLINE_HOSTED void lock_queues() noexcept {
    lock_.lock();
    form_queues();
  }
  // Turns the meeting word into waiting queues. Called with the lock held.
  void form_queues() noexcept {
    const std::uintptr_t w = reader_queue_.word();
    if (has_queues(w)) return;
    reader_queue_.set_word(Queue::kTag);
    if (w == 0) return;
    Node* const n = alone_as(w);
    // The node's place was written earlier, since other threads can read it without this lock (a
    // withdrawal asks a process at which channel it waits).
    if (w & kWriter)
      join_queue(Side::out, *n);
    else
      join_queue(Side::in, *n);
  }
  void unlock_queues() noexcept {
    if (state_ == 0 && reader_queue_.empty() && writer_queue_.empty()) reader_queue_.set_word(0);
    lock_.unlock();
  }

  template <Side S>
  Queue& own() noexcept {
    return own(S);
  }
  template <Side S>
  Queue& opposite() noexcept {
    return S == Side::in ? writer_queue_ : reader_queue_;
  }
  Queue& own(Side s) noexcept { return s == Side::in ? reader_queue_ : writer_queue_; }
  static Node* node(Link* l) noexcept { return static_cast<Node*>(l); }
  template <Side S>
  void join(Node& n) noexcept {
    join(S, n);
  }
  void join(Side s, Node& n) noexcept {
    n.place = static_cast<SyncObject*>(this);
    join_queue(s, n);
  }
  void join_queue(Side s, Node& n) noexcept {
    n.set(NodeFlags::queued);
    own(s).push_back(&n);
  }
  template <Side S>
  void leave(Node& n) noexcept {
    n.clear(NodeFlags::queued);
    own<S>().erase(&n);
  }
  // Takes a claimed partner out of its queue. But the node of a standing alternative stays in the
  // queue, and moves to its tail.
  void release(Queue& q, Node* y) noexcept {
    q.erase(y);
    if (y->is(NodeFlags::standing))
      q.push_back(y);
    else
      y->clear(NodeFlags::queued);
  }

  // The claim loop: finds the first party in queue q, from `at` on, that can be claimed together
  // with `me` (waiter.hpp), and takes it out of the queue. Every meeting at a channel is made by
  // this function.
  //   committed  the partner is y
  //   not_ready  there is none
  //   gone       another party has claimed the choice of `me`
  // `look` says what to do with a party before it is claimed. `look` is not called for a policy
  // that is plain_only.
  enum class Step : std::uint8_t { claim, pass_over, stop };
  template <class Me, class Look>
  [[gnu::always_inline]] Attempt claim_next(Queue& q, Link*& at, Node*& y, Me me,
                                            Look look) noexcept {
    while (at) {
      y = node(at);
      at = at->next;
      if constexpr (!plain_only<P>) {
        const Step s = look(*y);
        if (s == Step::stop) return Attempt::not_ready;
        if (s == Step::pass_over) continue;
      }
      switch (me.with(y)) {
        case Claim::won: release(q, y); return Attempt::committed;
        case Claim::self_gone: return Attempt::gone;
        case Claim::itself: break;
        case Claim::other_gone:
          if (!y->is(NodeFlags::standing)) release(q, y);
          break;
      }
    }
    return Attempt::not_ready;
  }

  // Returns whether a party waits in q, apart from links of standing alternatives and watches (rule
  // 3.2).
  static bool blocked(const Queue& q) noexcept {
    for (Link* l = q.front(); l; l = l->next)
      if (!node(l)->is(NodeFlags::standing | NodeFlags::watch)) return true;
    return false;
  }
  // Returns whether a party of side S waits that could be claimed now. Parties with a flag of `but`
  // do not count.
  template <Side S>
  bool claimable(unsigned but = 0) noexcept {
    for (Link* l = own<S>().front(); l; l = l->next) {
      const Node* y = node(l);
      if (!(y->flags & (NodeFlags::foreign | NodeFlags::disabled | NodeFlags::promised | but)) &&
          waits(*y))
        return true;
    }
    return false;
  }
  // Returns whether y is plain, or a guard of a choice that has not committed elsewhere.
  static bool waits(const Node& y) noexcept {
    if (!y.choice()) return true;
    const std::uint32_t w = y.choice()->word();
    return w == WAITING || w == LOCKED;
  }

  static bool elsewhere(const Node* n) noexcept {
    // A standing alternative may be between two selects; then its process might no longer exist.
    if (n->choice() && n->choice()->word() != WAITING) return false;
    const Waker* w = n->choice() ? n->choice()->waker : n;
    return w && w->ops && w->ops->home && w->ops->home != current_run_queue;
  }

  Queue reader_queue_, writer_queue_;
  typename P::Lock lock_;
  std::uint8_t state_ = 0;
  std::uint8_t died_ = 0;
  std::uint8_t poison_ = 0;
  std::uint8_t immunity_ = 0;

 public:
  // Which sides may have only one end (rule 1.8). The hosted layer uses `restricted`, which is kept
  // here because a byte is free.
  std::uint8_t restricted = 0;

 protected:
  std::uint16_t deciding_ = 0;  // how many foreign readers have been notified and have not decided
  typename P::Count readers_{0}, writers_{0};
  // Holds the low bits of transfers_ at the time when an undecided reader last withdrew, plus one
  // (notifier.hpp).
  struct NoMark {
    explicit constexpr NoMark(std::uint32_t) noexcept {}
  };
  [[no_unique_address]] std::conditional_t<plain_only<P>, NoMark, std::uint32_t> declined_{0};
  Tally transfers_ = 0;
};

}  // namespace weft::inline WEFT_ABI::core
