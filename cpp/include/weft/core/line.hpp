// What every channel is before it knows its values: two lines of waiters, what has ended, counted ends. Nothing here depends on T.
//
// Invariants (channel's lock)
//  1 A node is in line if and only if it is marked `queued`.
//  2 `special_` is zero for a living, unbuffered, unwatched channel: the fast path tests one byte.
#pragma once
#include "policy.hpp"
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

  // Of a local channel: does somebody wait here who is at home on another run queue than the current one? Then one of us is on the wrong
  // scheduler (rule 11.2).
  bool waits_elsewhere() const noexcept {
    for (const Queue* q : {&rq_, &wq_})
      if (const Link* l = q->front()) {
        const Node* n = static_cast<const Node*>(l);
        const Waker* w = n->choice() ? n->choice()->waker : n;
        if (w && w->ops && w->ops->home && w->ops->home != current_run_queue) return true;
      }
    return false;
  }
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

  template <Side S>
  Queue& own() noexcept {
    return S == Side::in ? rq_ : wq_;
  }
  template <Side S>
  Queue& opposite() noexcept {
    return S == Side::in ? wq_ : rq_;
  }
  static Node* node(Link* l) noexcept { return static_cast<Node*>(l); }
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

  Queue rq_, wq_;
  typename P::Lock lock_;
  std::uint8_t special_ = 0;
  std::uint8_t died_ = 0;
  std::uint8_t poison_ = 0;
  std::uint8_t immunity_ = 0;

 public:
  std::uint8_t restricted = 0;  // which sides may have one end only (rule 1.8; the hosted layer's); here because there is a byte

 protected:
  std::uint16_t deciding_ = 0;
  typename P::Count readers_{0}, writers_{0};
  Tally transfers_ = 0;
};

}  // namespace weft::core
