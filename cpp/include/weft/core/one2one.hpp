// A one-to-one buffer: one reader end, one writer end, and a ring that both use without a lock
// (rule 1.8). This file is freestanding, except that it needs 64-bit atomics.
//
// Source of the ring: Lamport, "Proving the correctness of multiprocess programs" (1977), with each
// side's index on a cache line of its own and a remembered index of the other side (Giacomoni,
// Moseley, Vachharajani, "FastForward", 2008).
//
//   begin() ──room, or a value──► committed ──look_: the other side waits──► serve() commits it
//      └── neither ──begin_slow(): sets look_, looks again──► queued ──serve(), …──► woken
//                                                               └── withdraw()──► out
//
// Invariants
//  1 tail_ belongs to the writer, and head_ to the reader. A side that waits in its queue lends its
//    index to the holder of the lock.
//  2 head_ ≤ tail_ ≤ head_ + capacity_; the slots between them hold values.
//  3 A side is queued only if look_ has its bit. That side sets the bit, passes a fence and reads
//    the other side's index. The other side stores its index, passes a fence and reads look_. At
//    least one of them sees the other (Dekker), so no wake-up is lost. The active side passes its
//    fence with every item, the side that waits only with every sleep. While a side is *light* (its
//    bit in look_, set and cleared by the sleeper opposite, under the lock) its fence is light (it
//    only orders what the compiler does), and the sleeper's fence is heavy, a system call (see
//    biased.hpp). Otherwise both fences are sequentially consistent accesses. From the number of
//    values that have passed since it last slept, the sleeper chooses the cheaper fences. An
//    operation that read look_ before its side ceased to be light may still be running. So the
//    sleeper keeps using heavy fences until it sees the other side's index move after such a fence:
//    operations that begin after the fence read look_ anew.
//  4 Only the reader's side takes values out. So poison does not empty the ring; the reader's next
//    operation or the end of the reader's side does.
#pragma once
#include <bit>
#include <new>
#include <type_traits>
#include <utility>

#include "ready.hpp"
#include "waiting_queues.hpp"

namespace weft::inline WEFT_ABI::core {

struct StandingNode;

template <class P>
inline constexpr bool one_to_one = requires {
  requires P::one_to_one;
};

template <class T, class P>
class OneToOneEngine : public ChannelBase<P> {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "values are committed as they move: T's move constructor must be noexcept");
  static_assert(std::is_nothrow_destructible_v<T>);
  using B = ChannelBase<P>;
  using B::blocked, B::died_, B::lock_, B::node, B::poison_, B::reader_queue_, B::writer_queue_;
  using Index = std::uint64_t;

 public:
  using value_type = T;

  // The parties of this channel wait in queues.
  OneToOneEngine() noexcept { B::state_ = B::kBuffered; }
  OneToOneEngine(const OneToOneEngine&) = delete;
  OneToOneEngine& operator=(const OneToOneEngine&) = delete;
  ~OneToOneEngine() { clear(); }

  // Returns how many slots the `data` of set_storage() must have.
  static constexpr std::uint32_t slots_for(std::uint32_t capacity) noexcept {
    return std::bit_ceil(capacity);
  }
  void set_storage(T* data, std::uint32_t capacity) noexcept {
    data_ = data;
    capacity_ = capacity;
    mask_ = slots_for(capacity) - 1;
  }
  // Makes both sides begin with light fences. Called before the first use, on systems that have a
  // heavy fence.
  void begin_light() noexcept {
    look_.fetch_or(kReaderLight | kWriterLight, std::memory_order_relaxed);
  }
  static constexpr bool buffered() noexcept { return true; }
  T* storage() const noexcept { return data_; }
  // Points to a function that calls clear(), without the lock. If the pointer is null, the engine
  // calls clear() itself.
  void (*discard)(OneToOneEngine&) noexcept = nullptr;

  std::uint64_t transfers() const noexcept {
    return head_.load(std::memory_order_relaxed) - dropped();
  }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  std::uint64_t depth() const noexcept { return size(); }
  bool is_waiting(const Node& n) const noexcept { return n.is(NodeFlags::queued); }
  std::uint64_t capacity() const noexcept { return capacity_; }

  // --- plain operations --------------------------------------------------------------------------

  template <Side S>
  [[gnu::always_inline]] Status begin(Node& me) noexcept {
    if (fast<S>(me.slot)) [[likely]]
      return Status::ok;
    me.place = static_cast<SyncObject*>(this);
    return begin_slow<S>(me);
  }
  enum class FastResult : std::uint8_t { met, met_afar, waits, neither };
  template <Side S>
  [[gnu::always_inline]] FastResult begin_fast(Node&, void* slot) noexcept {
    if (!fast<S>(slot)) [[unlikely]]
      return FastResult::neither;
    const Index own = (S == Side::in ? head_ : tail_).load(std::memory_order_relaxed);
    return own % kTurn != 0 ? FastResult::met : FastResult::met_afar;
  }

  template <Side S>
  [[gnu::noinline]] Status begin_slow(Node& me) noexcept {
    switch (locked<S>(me, Free{}, true)) {
      case Attempt::committed: return Status::ok;
      case Attempt::ended: return me.status;
      default: return Status::pending;
    }
  }

  // The fast path of begin(): performs the operation if the operation is a usual case and need not
  // wait. Returns false if nothing has happened.
  template <Side S>
  [[gnu::always_inline]] bool pass(void* slot) noexcept {
    return fast<S>(slot);
  }

  template <Side S>
  bool withdraw(Node& me) noexcept {
    Wakes after;
    lock_.lock();
    const bool was = me.is(NodeFlags::queued);
    if (was) this->template leave<S>(me);
    serve_queues(after);
    lock_.unlock();
    after.run();
    return was;
  }

  // --- guards ------------------------------------------------------------------------------------

  template <Side S>
  Attempt scan(Node& n) noexcept {
    if (fast<S>(n.slot)) return Attempt::committed;
    return locked<S>(n, Free{}, false);
  }
  template <Side S>
  Attempt enrol(Node& n) noexcept {
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
  template <Side S>
  Status look(bool& now) noexcept {
    now = S == Side::in ? size() > 0 : size() < capacity_;
    return how_ended<S>();
  }
  // Substitutes for functions that a one-to-one channel lacks (rule 1.8): a standing alternative
  // enrols here for each select, and there are no foreign parties.
  template <Side S>
  bool link_standing(StandingNode&) noexcept {
    return false;
  }
  template <Side S>
  void set_enabled(StandingNode&, bool) noexcept {}
  void invite_foreign() noexcept {}
  template <Side S>
  Attempt retry(Node&) noexcept {
    return Attempt::not_ready;
  }
  template <class Me>
  Attempt take(Node&, Me) noexcept {
    return Attempt::not_ready;
  }
  Status deliver(Node&) noexcept { prim::fatal("a one-to-one channel has no computed outputs"); }
  void abandon(Node&) noexcept { prim::fatal("a one-to-one channel has no computed outputs"); }

  // --- ends --------------------------------------------------------------------------------------

  // Makes the one end of a side. Returns false if that end has been made before, or the channel has
  // ended.
  bool first_reader() noexcept { return first<Side::in>(B::readers_, kReadersGone); }
  bool first_writer() noexcept { return first<Side::out>(B::writers_, kWritersGone); }

  void poison(std::uint8_t strength) noexcept {
    Wakes after;
    lock_.lock();
    if (strength >= B::immunity_ && strength > poison_) {
      poison_ = strength;
      look_.fetch_or(kPoisoned, std::memory_order_seq_cst);
      serve_queues(after);
    }
    lock_.unlock();
    after.run();
  }
  void drop_reader(bool died = false) noexcept {
    if (end(B::readers_, kReadersGone, died ? B::kReaderDied : 0)) drop_values();
  }
  void drop_writer(bool died = false) noexcept {
    end(B::writers_, kWritersGone, died ? B::kWriterDied : 0);
  }

  template <Side S>
  Status how_ended() noexcept {
    Node n;
    lock_.lock();
    const bool e = ended<S>(n);
    lock_.unlock();
    return e ? n.status : Status::ok;
  }

  // Destroys the values that are left. Called by the reader's side only.
  void clear() noexcept {
    Index h = head_.load(std::memory_order_relaxed);
    for (const Index t = tail_.load(std::memory_order_acquire); h != t; ++h) {
      at(h).~T();
      dropped_.fetch_add(1, std::memory_order_relaxed);
      head_.store(h + 1, std::memory_order_seq_cst);
    }
  }

 private:
  static constexpr std::uint32_t kReaderWaits = 1, kWriterWaits = 2, kPoisoned = 4,
                                 kWritersGone = 8, kReadersGone = 16, kReaderLight = 32,
                                 kWriterLight = 64;
  // The number of values that must pass between two sleeps for a side to change its type of fence.
  // A heavy fence costs about as much as 500 sequentially consistent stores.
  static constexpr Index kFew = 256, kMany = 1024;
  // After this many values through an end, its process lets the others of its scheduler run (rule
  // 7.7). Testing the index costs less than a count in the process.
  static constexpr Index kTurn = 512;

  T& at(Index i) noexcept { return data_[i & mask_]; }
  std::uint64_t size() const noexcept {
    return tail_.load(std::memory_order_seq_cst) - head_.load(std::memory_order_seq_cst);
  }

  static void publish(prim::atomic<Index>& index, Index i, bool light) noexcept {
    if (light)
      prim::light_release(index, i);
    else
      index.store(i, std::memory_order_seq_cst);
  }
  [[gnu::always_inline]] bool push(void* from, bool light = false) noexcept {
    const Index t = tail_.load(std::memory_order_relaxed);
    if (t - head_seen_ == capacity_ &&
        t - (head_seen_ = head_.load(std::memory_order_acquire)) == capacity_)
      return false;
    ::new (static_cast<void*>(&at(t))) T(std::move(*static_cast<T*>(from)));
    publish(tail_, t + 1, light);
    return true;
  }
  [[gnu::always_inline]] bool pop(void* to, bool light = false) noexcept {
    const Index h = head_.load(std::memory_order_relaxed);
    if (h == tail_seen_ && h == (tail_seen_ = tail_.load(std::memory_order_acquire))) return false;
    T& v = at(h);
    ::new (to) T(std::move(v));
    v.~T();
    publish(head_, h + 1, light);
    return true;
  }

  template <Side S>
  [[gnu::always_inline]] bool fast(void* slot) noexcept {
    constexpr std::uint32_t over = S == Side::in ? kPoisoned : kPoisoned | kReadersGone;
    [[maybe_unused]] constexpr std::uint32_t other = S == Side::in ? kWriterWaits : kReaderWaits;
    const std::uint32_t l = look_.load(std::memory_order_relaxed);
    if (l & over) [[unlikely]]
      return false;
    const bool light = l & (S == Side::in ? kReaderLight : kWriterLight);
    if (!(S == Side::in ? pop(slot, light) : push(slot, light))) [[unlikely]]
      return false;
    if (look_.load(std::memory_order_seq_cst) & other) [[unlikely]]
      serve();
    return true;
  }

  [[gnu::noinline]] void serve() noexcept {
    Wakes after;
    lock_.lock();
    serve_queues(after);
    lock_.unlock();
    after.run();
  }

  template <Side S, class Me>
  Attempt locked(Node& n, Me me, bool wait) noexcept {
    Wakes after;
    lock_.lock();
    Attempt t = attempt<S>(n, me);
    if (t == Attempt::not_ready && wait) {
      announce<S>();
      t = attempt<S>(n, me);
      if (t == Attempt::not_ready) {
        n.status = Status::pending;
        this->template join<S>(n);
      }
      announced_ &= ~bit_of<S>();
    }
    serve_queues(after);
    const bool poisoned = poison_ != 0;
    lock_.unlock();
    after.run();
    if (S == Side::in && t == Attempt::ended && poisoned) drop_values();
    return t;
  }

  // Sets the side's bit in look_; the bit then stays set. After this call the side sees everything
  // that the other side did without having seen the bit. Called with the lock held, and releases
  // the lock during a heavy fence.
  template <Side S>
  void announce() noexcept {
    constexpr std::uint32_t light = S == Side::in ? kWriterLight : kReaderLight;
    Sleeper& me = S == Side::in ? reader_ : writer_;
    const prim::atomic<Index>& other = S == Side::in ? tail_ : head_;
    const Index now = (S == Side::in ? head_ : tail_).load(std::memory_order_relaxed);
    const Index passed = now - std::exchange(me.slept_at, now);
    announced_ |= bit_of<S>();
    const std::uint32_t l = look_.fetch_or(bit_of<S>(), std::memory_order_seq_cst);
    const bool was = l & light;
    if (!was && passed > kMany && prim::asymmetric()) {
      look_.fetch_or(light, std::memory_order_seq_cst);
    } else if (was && passed < kFew) {
      look_.fetch_and(~light, std::memory_order_seq_cst);
      me.unsettled = true;
    } else if (!was && !(me.unsettled &= other.load(std::memory_order_seq_cst) == me.fenced_at)) {
      return;
    }
    lock_.unlock();
    prim::heavy_fence();
    lock_.lock();
    me.fenced_at = other.load(std::memory_order_seq_cst);
  }
  template <Side S>
  static constexpr std::uint32_t bit_of() noexcept {
    return S == Side::in ? kReaderWaits : kWriterWaits;
  }

  template <Side S, class Me>
  Attempt attempt(Node& n, Me me) noexcept {
    if (!poison_) {
      if (S == Side::in ? size() > 0
                        : size() < capacity_ && (!gone(kReadersGone) || blocked(reader_queue_))) {
        if (!me.self()) return Attempt::gone;
        if constexpr (S == Side::in)
          pop(n.slot);
        else
          push(n.slot);
        return Attempt::committed;
      }
    }
    if (!ended<S>(n)) return Attempt::not_ready;
    return found_ended(n, me);
  }

  bool gone(std::uint32_t who) const noexcept {
    return (look_.load(std::memory_order_relaxed) & who) != 0;
  }

  template <Side S>
  bool ended(Node& n) noexcept {
    if (poison_) {
      n.status = Status::poisoned;
      return true;
    }
    if constexpr (S == Side::in) {
      if (!gone(kWritersGone) || size() > 0 || blocked(writer_queue_)) return false;
      n.status = died_ & B::kWriterDied ? Status::died : Status::retired;
    } else {
      if (!gone(kReadersGone) || blocked(reader_queue_)) return false;
      n.status = died_ & B::kReaderDied ? Status::died : Status::retired;
    }
    return true;
  }

  // Commits the queued parties that can commit, and notifies the parties for which the channel has
  // ended. Called with the lock held, after any change.
  void serve_queues(Wakes& after) noexcept {
    for (bool again = !poison_; again;) {
      again = false;
      while (!writer_queue_.empty() && size() < capacity_) again |= commit<Side::out>(after);
      while (!reader_queue_.empty() && size() > 0) again |= commit<Side::in>(after);
    }
    Node probe;
    if (!writer_queue_.empty() && ended<Side::out>(probe)) fail(writer_queue_, probe.status, after);
    if (!reader_queue_.empty() && ended<Side::in>(probe)) fail(reader_queue_, probe.status, after);
    if (reader_queue_.empty() &&
        (look_.load(std::memory_order_relaxed) & ~announced_ & kReaderWaits))
      look_.fetch_and(~kReaderWaits, std::memory_order_seq_cst);
    if (writer_queue_.empty() &&
        (look_.load(std::memory_order_relaxed) & ~announced_ & kWriterWaits))
      look_.fetch_and(~kWriterWaits, std::memory_order_seq_cst);
  }
  template <Side S>
  bool commit(Wakes& after) noexcept {
    Queue& q = this->template own<S>();
    Link* at = q.front();
    Node* y = nullptr;
    if (B::claim_next(q, at, y, Free{}, [](const Node&) { return B::Step::claim; }) !=
        Attempt::committed)
      return false;
    if constexpr (S == Side::in)
      pop(y->slot);
    else
      push(y->slot);
    after.finish(y, Status::ok);
    return true;
  }
  void fail(Queue& q, Status s, Wakes& after) noexcept {
    while (Link* l = q.front()) {
      B::release(q, node(l));
      if (ends(node(l), s)) after.finish(node(l), s);
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

  // Drops an end. Returns true if it was the last end of its side, and no reader is queued.
  bool end(typename P::Count& n, std::uint32_t side, std::uint8_t died) noexcept {
    Wakes after;
    lock_.lock();
    died_ |= died;
    const bool last = n.down();
    if (last) look_.fetch_or(side, std::memory_order_seq_cst);
    serve_queues(after);
    const bool alone = last && reader_queue_.empty();
    lock_.unlock();
    after.run();
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
  // The state of a side that sleeps (protected by the lock).
  struct Sleeper {
    Index slept_at = 0;      // the side's index when it last went to sleep
    Index fenced_at = 0;     // the other side's index after the last heavy fence
    bool unsettled = false;  // the other side uses full fences now, but might not know this yet
  };
  Sleeper reader_, writer_;
  std::uint32_t announced_ = 0;  // the sides about to join their queue; their bits then stay set
  alignas(64) prim::atomic<Index> tail_{0};
  Index head_seen_ = 0;  // the last value of head_ that the writer has seen
  alignas(64) prim::atomic<Index> head_{0};
  Index tail_seen_ = 0;  // the last value of tail_ that the reader has seen
};

}  // namespace weft::inline WEFT_ABI::core
