// Several plain operations of one process at once, in one direction: the engine of par_read and
// par_write (rule 7.10).
//
//   begin() ─all done─► true      begin() ─else─► parked ──the last is done: one_decided()──► woken
//
// word_ says how many operations are undecided (have no outcome yet), and whether the process
// sleeps.
//
// Invariants
//  1 The thread that decides the last operation while the process sleeps wakes the process, once;
//    from then on no other thread touches this object.
//  2 A thread that decides an operation owns that operation's count until one_decided(), so the
//    object exists until then. So if a channel ends while other operations are undecided, the
//    thread that ends it withdraws them before it settles its own operation.
#pragma once
#include <array>
#include <cstddef>

#include <memory>
#include "../core/channel.hpp"
#include "process.hpp"

namespace weft::inline WEFT_ABI::runtime {

// A count that several threads can change (Shared), or only one thread (then no change is an atomic
// read-modify-write).
template <bool Shared>
class TogetherWord {
 public:
  std::uint32_t load(std::memory_order o) const noexcept { return word_.load(o); }
  void add(std::uint32_t n, std::memory_order o) noexcept {  // modulo 2^32, so it can subtract too
    if constexpr (Shared)
      word_.fetch_add(n, o);
    else
      set(get() + n);
  }
  void raise(std::uint32_t bits) noexcept {
    if constexpr (Shared)
      word_.fetch_or(bits, std::memory_order_acq_rel);
    else
      set(get() | bits);
  }
  void lower(std::uint32_t bits) noexcept {
    if constexpr (Shared)
      word_.fetch_and(~bits, std::memory_order_acq_rel);
    else
      set(get() & ~bits);
  }
  // Changes the count like std::atomic's compare_exchange_weak().
  bool change(std::uint32_t& from, std::uint32_t to) noexcept {
    if constexpr (Shared)
      return word_.compare_exchange_weak(from, to, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
    set(to);
    return true;
  }

 private:
  std::uint32_t get() const noexcept { return word_.load(std::memory_order_relaxed); }
  void set(std::uint32_t w) noexcept { word_.store(w, std::memory_order_relaxed); }
  prim::atomic<std::uint32_t> word_{0};
};

// A set of n operations, each with a node of its own. N is their number, or 0 if the number is
// known only at run time.
template <class Engine, core::Side S, std::size_t N, bool Shared>
class Together {
 public:
  struct Offer : core::Waiter {
    Engine* c = nullptr;
    Together* all = nullptr;
  };
  using Offers =
      std::conditional_t<N == 0, std::unique_ptr<Offer[]>, std::array<Offer, N == 0 ? 1 : N>>;

  explicit Together(ProcessBase* p, std::size_t n) : p_(p), n_(n) {
    if constexpr (N == 0) offers_.reset(new Offer[n]);
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  void set(std::size_t i, Engine* c, void* slot) noexcept {
    Offer& o = offers_[i];
    o.ops = &kOps;
    o.c = c;
    o.slot = slot;
    o.all = this;
  }

  bool begin() {
    if (p_->cancel().load(std::memory_order_relaxed) != 0) {
      // Nothing has been offered yet. The caller throws the cancellation.
      for (std::size_t i = 0; i < n_; ++i) offers_[i].status = Status::cancelled;
      return true;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      word_.add(1, std::memory_order_relaxed);
      const Status s = offers_[i].c->template begin<S>(offers_[i]);
      if (s == Status::pending) continue;
      offers_[i].status = s;
      word_.add(-1u, std::memory_order_relaxed);
      if (s == Status::ok) continue;
      // The remaining operations have not begun.
      for (++i; i < n_; ++i) offers_[i].status = Status::cancelled;
      withdraw_rest();
    }
    p_->place = this;
    p_->op = &kind;
    for (std::uint32_t w = word_.load(std::memory_order_acquire);;) {
      if ((w & kUndecided) == 0) {
        p_->op = nullptr;
        return true;
      }
      // A channel ended before the process slept, when some operations had not begun and could not
      // be withdrawn.
      if (w & kEnded) {
        word_.lower(kEnded);
        withdraw_rest();
        w = word_.load(std::memory_order_acquire);
        continue;
      }
      if (word_.change(w, w | kAsleep)) return false;
    }
  }

  // The outcomes are valid once all operations are decided.
  const Offer& operator[](std::size_t i) const noexcept { return offers_[i]; }
  bool done(std::size_t i) const noexcept { return offers_[i].status == Status::ok; }
  std::size_t size() const noexcept { return n_; }
  ProcessBase& process() const noexcept { return *p_; }

  static bool cancel(ProcessBase& p) noexcept {
    auto& self = *static_cast<Together*>(p.place);
    // While this count is held, no other thread wakes the process.
    self.word_.add(1, std::memory_order_relaxed);
    self.withdraw_rest();
    return self.one_decided(false);
  }
  static void visit(ProcessBase& p, WaitVisitor& v) {
    auto& self = *static_cast<Together*>(p.place);
    for (std::size_t i = 0; i < self.n_; ++i)
      if (in_line(*self.offers_[i].c, self.offers_[i]))
        v.channel(*self.offers_[i].c, S == core::Side::out);
  }
  static constexpr OpKind kind{S == core::Side::in ? "read" : "write", &cancel, &visit, &visit};

 private:
  static constexpr std::uint32_t kAsleep = 1u << 31;
  static constexpr std::uint32_t kEnded = 1u << 30;
  static constexpr std::uint32_t kUndecided = kEnded - 1;

  // Withdraws all operations that can be withdrawn; the node of such an operation then belongs to
  // no other thread. The caller must own a count, or the process must be awake.
  void withdraw_rest() noexcept {
    for (std::size_t i = 0; i < n_; ++i) {
      Offer& o = offers_[i];
      if (!o.c->template withdraw<S>(o)) continue;
      o.status = Status::cancelled;
      word_.add(-1u, std::memory_order_release);
    }
  }
  // Counts one undecided operation fewer. Returns true if that operation was the last and the
  // process sleeps. Then the caller must wake the process, and must touch nothing of this object
  // afterwards.
  bool one_decided(bool ended) noexcept {
    if (ended) {
      word_.raise(kEnded);
      withdraw_rest();
    }
    for (std::uint32_t w = word_.load(std::memory_order_acquire);;) {
      const bool last = (w & kAsleep) != 0 && (w & kUndecided) == 1;
      if (word_.change(w, last ? 0 : w - 1)) return last;
    }
  }
  static void decided(core::Waker* w) noexcept {
    Offer& o = *static_cast<Offer*>(w);
    ProcessBase* const p = o.all->p_;
    if (o.all->one_decided(o.status != Status::ok)) p->ops->wake(p);
  }
  // A local channel puts each party that it wakes into the run queue.
  static void decided_in_queue(core::Waker* w) { decided(w); }
  static constexpr core::WakerOps kOps{&decided, &decided_in_queue, nullptr, 0, nullptr};

  ProcessBase* const p_;
  std::size_t const n_;
  TogetherWord<Shared> word_;
  Offers offers_;
};

}  // namespace weft::inline WEFT_ABI::runtime
