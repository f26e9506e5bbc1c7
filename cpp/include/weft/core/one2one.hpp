// A one-to-one buffer: one reader end, one writer end, a ring that both use without a lock (rule 1.8). Freestanding but for 64-bit atomics.
//
// Source of the ring: Lamport, "Proving the correctness of multiprocess programs" (1977), with each side's index on a line of its own and a
// remembered index of the other side (Giacomoni, Moseley, Vachharajani, "FastForward", 2008).
//
//   begin() ──room, or a value──► committed ──look_ says that the other waits──► serve() commits it
//      └── neither ──begin_slow(): in line, look_ says so, looked again──► queued ──serve(), poison(), drop_*()──► committed, ended (woken)
//                                                                            └── withdraw()──► out
//
// Invariants
//  1 tail_ is the writer's and head_ the reader's. A side that stands in line lends its index to whoever holds the lock.
//  2 head_ ≤ tail_ ≤ head_ + capacity_; the slots between them hold values.
//  3 A side is in line only if look_ has its bit. It sets the bit, then looks at the other's index; the other stores its index, then looks
//  at
//    look_: all four sequentially consistent, so at least one of them sees the other (as in ready.hpp). Hence no lost wake-up.
//  4 Only the reader's side takes values out. So poison does not empty the ring: the reader's next operation does, or the end of its side.
#pragma once
#include <bit>
#include <new>
#include <type_traits>
#include <utility>

#include "line.hpp"
#include "ready.hpp"

namespace weft::core {

template <class P>
inline constexpr bool one_to_one = requires {
  requires P::one_to_one;
};

template <class T, class P>
class OneToOneCore : public ChannelBase<P> {
  static_assert(std::is_nothrow_move_constructible_v<T>, "values are committed as they move: T's move constructor must be noexcept");
  static_assert(std::is_nothrow_destructible_v<T>);
  using B = ChannelBase<P>;
  using B::blocked, B::died_, B::lock_, B::node, B::poison_, B::rq_, B::wq_;
  using Index = std::uint64_t;

 public:
  using value_type = T;

  OneToOneCore() = default;
  OneToOneCore(const OneToOneCore&) = delete;
  OneToOneCore& operator=(const OneToOneCore&) = delete;
  ~OneToOneCore() { clear(); }

  // `data` has room for slots_for(capacity) values.
  static constexpr std::uint32_t slots_for(std::uint32_t capacity) noexcept { return std::bit_ceil(capacity); }
  void set_storage(T* data, std::uint32_t capacity) noexcept {
    data_ = data;
    capacity_ = capacity;
    mask_ = slots_for(capacity) - 1;
  }
  T* storage() const noexcept { return data_; }
  void (*discard)(OneToOneCore&) noexcept = nullptr;  // calls clear(), outside the lock; null: clear() does

  std::uint64_t transfers() const noexcept { return head_.load(std::memory_order_relaxed) - dropped(); }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  // --- plain operations ---------------------------------------------------------------------------------------------------------

  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me) noexcept {
    me.place = static_cast<Place*>(this);
    return begin<S>(me, me.slot);
  }
  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me, void* slot) noexcept {
    if (fast<S>(slot)) [[likely]]
      return Status::ok;
    me.slot = slot;
    return begin_slow<S>(me);
  }

  template <Side S>
  bool withdraw(Node& me) noexcept {
    Wakes fx;
    lock_.lock();
    const bool was = me.is(NodeFlags::queued);
    if (was) this->template leave<S>(me);
    settle(fx);
    lock_.unlock();
    fx.run();
    return was;
  }

  // --- guards -------------------------------------------------------------------------------------------------------------------

  template <Side S>
  Try scan(Node& n) noexcept {
    if (fast<S>(n.slot)) return Try::committed;
    return locked<S>(n, Free{}, false);
  }
  template <Side S>
  Try enrol(Node& n) noexcept {
    return locked<S>(n, Enrolled{n.choice_, n.index}, true);
  }
  template <Side S>
  bool ready() noexcept {
    const std::uint32_t l = look_.load(std::memory_order_acquire);
    if constexpr (S == Side::in)
      return size() > 0 || (l & (kPoisoned | kWritersGone));
    else
      return size() < capacity_ || (l & (kPoisoned | kReadersGone));
  }
  // What such a channel has not (rule 1.8): a standing alternative enrols here anew for each select, there are no foreign parties.
  template <Side S>
  bool link_standing(StandingNode&) noexcept {
    return false;
  }
  template <Side S>
  void set_enabled(StandingNode&, bool) noexcept {}
  void invite_foreign() noexcept {}
  template <Side S>
  Try retry(Node&) noexcept {
    return Try::not_ready;
  }
  template <class Me>
  Try take(Node&, Me) noexcept {
    return Try::not_ready;
  }
  Status deliver(Node&) noexcept { prim::fatal("a one-to-one channel has no computed outputs"); }
  void abandon(Node&) noexcept { prim::fatal("a one-to-one channel has no computed outputs"); }

  // --- ends -----------------------------------------------------------------------------------------------------------------------

  // The one end of its side. False: it was made already, or the channel has ended.
  bool first_reader() noexcept { return first<Side::in>(B::readers_, kReadersGone); }
  bool first_writer() noexcept { return first<Side::out>(B::writers_, kWritersGone); }

  void poison(std::uint8_t strength) noexcept {
    Wakes fx;
    lock_.lock();
    if (strength >= B::immunity_ && strength > poison_) {
      poison_ = strength;
      look_.fetch_or(kPoisoned, std::memory_order_seq_cst);
      settle(fx);
    }
    lock_.unlock();
    fx.run();
  }
  void drop_reader(bool died = false) noexcept {
    if (end(B::readers_, kReadersGone, died ? B::kReaderDied : 0)) drop_values();
  }
  void drop_writer(bool died = false) noexcept { end(B::writers_, kWritersGone, died ? B::kWriterDied : 0); }

  template <Side S>
  Status how_ended() noexcept {
    Node n;
    lock_.lock();
    const bool e = ended<S>(n);
    lock_.unlock();
    return e ? n.status : Status::ok;
  }

  // The reader's side: destroy what is left.
  void clear() noexcept {
    Index h = head_.load(std::memory_order_relaxed);
    for (const Index t = tail_.load(std::memory_order_acquire); h != t; ++h) {
      at(h).~T();
      dropped_.fetch_add(1, std::memory_order_relaxed);
      head_.store(h + 1, std::memory_order_seq_cst);
    }
  }

 private:
  static constexpr std::uint32_t kReaderWaits = 1, kWriterWaits = 2, kPoisoned = 4, kWritersGone = 8, kReadersGone = 16;

  T& at(Index i) noexcept { return data_[i & mask_]; }
  std::uint64_t size() const noexcept { return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire); }

  bool push(void* from) noexcept {
    const Index t = tail_.load(std::memory_order_relaxed);
    if (t - head_seen_ == capacity_ && t - (head_seen_ = head_.load(std::memory_order_seq_cst)) == capacity_) return false;
    ::new (static_cast<void*>(&at(t))) T(std::move(*static_cast<T*>(from)));
    tail_.store(t + 1, std::memory_order_seq_cst);
    return true;
  }
  bool pop(void* to) noexcept {
    const Index h = head_.load(std::memory_order_relaxed);
    if (h == tail_seen_ && h == (tail_seen_ = tail_.load(std::memory_order_seq_cst))) return false;
    T& v = at(h);
    ::new (to) T(std::move(v));
    v.~T();
    head_.store(h + 1, std::memory_order_seq_cst);
    return true;
  }

  template <Side S>
  [[gnu::always_inline]] bool fast(void* slot) noexcept {
    constexpr std::uint32_t over = S == Side::in ? kPoisoned : kPoisoned | kReadersGone;
    constexpr std::uint32_t other = S == Side::in ? kWriterWaits : kReaderWaits;
    if (look_.load(std::memory_order_relaxed) & over) [[unlikely]]
      return false;
    if (!(S == Side::in ? pop(slot) : push(slot))) [[unlikely]]
      return false;
    if (WEFT_MUTANT != 12 && (look_.load(std::memory_order_seq_cst) & other)) [[unlikely]]
      serve();
    return true;
  }

  [[gnu::noinline]] void serve() noexcept {
    Wakes fx;
    lock_.lock();
    settle(fx);
    lock_.unlock();
    fx.run();
  }

  template <Side S>
  [[gnu::noinline]] Status begin_slow(Node& me) noexcept {
    switch (locked<S>(me, Free{}, true)) {
      case Try::committed: return Status::ok;
      case Try::ended: return me.status;
      default: return Status::pending;
    }
  }

  template <Side S, class Me>
  Try locked(Node& n, Me me, bool wait) noexcept {
    constexpr std::uint32_t mine = S == Side::in ? kReaderWaits : kWriterWaits;
    Wakes fx;
    lock_.lock();
    Try t = attempt<S>(n, me);
    if (t == Try::not_ready && wait) {
      n.status = Status::pending;
      this->template join<S>(n);
      look_.fetch_or(mine, std::memory_order_seq_cst);
      if (WEFT_MUTANT == 13) {
        lock_.unlock();
        return t;
      }
      t = attempt<S>(n, me);
      if (t == Try::committed || t == Try::ended) this->template leave<S>(n);
    }
    settle(fx);
    const bool poisoned = poison_ != 0;
    lock_.unlock();
    fx.run();
    if (S == Side::in && t == Try::ended && poisoned) drop_values();
    return t;
  }

  template <Side S, class Me>
  Try attempt(Node& n, Me me) noexcept {
    if (!poison_) {
      if (S == Side::in ? size() > 0 : size() < capacity_ && (!gone(kReadersGone) || blocked(rq_))) {
        if (!me.self()) return Try::gone;
        if constexpr (S == Side::in)
          pop(n.slot);
        else
          push(n.slot);
        return Try::committed;
      }
    }
    if (!ended<S>(n)) return Try::not_ready;
    return me.self() ? Try::ended : Try::gone;
  }

  bool gone(std::uint32_t who) const noexcept { return (look_.load(std::memory_order_relaxed) & who) != 0; }

  template <Side S>
  bool ended(Node& n) noexcept {
    if (poison_) {
      n.status = Status::poisoned;
      return true;
    }
    if constexpr (S == Side::in) {
      if (!gone(kWritersGone) || size() > 0 || blocked(wq_)) return false;
      n.status = died_ & B::kWriterDied ? Status::died : Status::retired;
    } else {
      if (!gone(kReadersGone) || blocked(rq_)) return false;
      n.status = died_ & B::kReaderDied ? Status::died : Status::retired;
    }
    return true;
  }

  // Under the lock, after any change: commit those in line who can be, tell those for whom the channel has ended.
  void settle(Wakes& fx) noexcept {
    for (bool again = !poison_; again;) {
      again = false;
      while (!wq_.empty() && size() < capacity_) again |= commit<Side::out>(fx);
      while (!rq_.empty() && size() > 0) again |= commit<Side::in>(fx);
    }
    Node probe;
    if (!wq_.empty() && ended<Side::out>(probe)) fail(wq_, probe.status, fx);
    if (!rq_.empty() && ended<Side::in>(probe)) fail(rq_, probe.status, fx);
    if (rq_.empty() && gone(kReaderWaits)) look_.fetch_and(~kReaderWaits, std::memory_order_seq_cst);
    if (wq_.empty() && gone(kWriterWaits)) look_.fetch_and(~kWriterWaits, std::memory_order_seq_cst);
  }
  template <Side S>
  bool commit(Wakes& fx) noexcept {
    Queue& q = this->template own<S>();
    Node* y = node(q.front());
    const bool won = Free{}.with(y) == Claim::won;
    B::release(q, y);
    if (!won) return false;
    if constexpr (S == Side::in)
      pop(y->slot);
    else
      push(y->slot);
    fx.finish(y, Status::ok);
    return true;
  }
  void fail(Queue& q, Status s, Wakes& fx) noexcept {
    while (Link* l = q.front()) {
      const bool won = Free{}.with(node(l)) == Claim::won;
      B::release(q, node(l));
      if (won) fx.finish(node(l), s);
    }
  }

  template <Side S>
  bool first(typename P::Count& n, std::uint32_t side) noexcept {
    Node probe;
    lock_.lock();
    const bool open = n.get() == 0 && !gone(side | kPoisoned) && !ended<S>(probe);
    if (open) n.up();
    lock_.unlock();
    return open;
  }

  // True: that was the end of its side, and nobody of it is in line.
  bool end(typename P::Count& n, std::uint32_t side, std::uint8_t died) noexcept {
    Wakes fx;
    lock_.lock();
    died_ |= died;
    const bool last = n.down();
    if (last) look_.fetch_or(side, std::memory_order_seq_cst);
    settle(fx);
    const bool alone = last && rq_.empty();
    lock_.unlock();
    fx.run();
    return alone;
  }
  void drop_values() noexcept {
    if (size() == 0) return;
    if (discard)
      discard(*this);
    else
      clear();
  }

  T* data_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t capacity_ = 0;
  prim::atomic<std::uint32_t> look_{0};
  prim::atomic<std::uint64_t> dropped_{0};
  alignas(64) prim::atomic<Index> tail_{0};
  Index head_seen_ = 0;  // the writer's
  alignas(64) prim::atomic<Index> head_{0};
  Index tail_seen_ = 0;  // the reader's
};

}  // namespace weft::core
