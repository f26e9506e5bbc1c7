// Several reads or several writes in parallel, as one operation of one process:
//
//   auto [x, y] = co_await weft::par_read(r1, r2);            an array; of a vector (or span) of readers a vector
//   co_await weft::par_write(w1, 1, w2, 2);                       or of pairs: par_write(std::pair(w1, 1), std::pair(w2, 2), …)
//   co_await weft::par_write(writers, values);                vectors of the same length; par_write_all(writers, value): one value to all
//
// In a thread they are called: par_read(r1, r2)(). All are offered at once and each communicates once, in whatever order their partners are
// ready, as `par` of them would; but no process is made.
//
// When an end has ended, or the process is cancelled, those that have not communicated are withdrawn, and the exception leaves the
// operation (the first end's, by position). It carries a std::vector<std::optional<T>>: the values read, or the values not written.
// An extended reader (rule 1.6) holds the whole operation. The ends must live until it is over.
#pragma once
#include <array>
#include <span>

#include "alt.hpp"

namespace weft {
namespace detail {

// A count that several threads may change (shared), or only one (local: no atomic read-modify-write).
template <bool Shared>
class TogetherWord {
 public:
  std::uint32_t load(std::memory_order o) const noexcept { return word_.load(o); }
  void add(std::uint32_t n, std::memory_order o) noexcept {  // also to subtract, modulo 2^32
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
  // As compare_exchange_weak.
  bool change(std::uint32_t& from, std::uint32_t to) noexcept {
    if constexpr (Shared) return word_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
    set(to);
    return true;
  }

 private:
  std::uint32_t get() const noexcept { return word_.load(std::memory_order_relaxed); }
  void set(std::uint32_t w) noexcept { word_.store(w, std::memory_order_relaxed); }
  prim::atomic<std::uint32_t> word_{0};
};

// n plain operations of one process, each with a node of its own.
//
//   begin() ─all decided─► true          begin() ─else─► parked ──the last is decided: settle()──► woken, all decided
//
// word_: how many are undecided, and whether the process sleeps. Whoever decides the last one while it sleeps wakes it; from then on
// nobody else touches this object. An end that comes while others are undecided withdraws them, on the thread that brings it: it keeps
// its own count until it has done so, so that the object lives.
template <class Core, core::Side S, std::size_t N, bool Shared>
class Together {
 public:
  struct Offer : core::Waiter {
    Core* c = nullptr;
    Together* all = nullptr;
  };
  using Offers = std::conditional_t<N == 0, std::unique_ptr<Offer[]>, std::array<Offer, N == 0 ? 1 : N>>;

  explicit Together(runtime::ProcessBase* p, std::size_t n) : p_(p), n_(n) {
    if constexpr (N == 0) offers_.reset(new Offer[n]);
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  void set(std::size_t i, Core* c, void* slot) noexcept {
    Offer& o = offers_[i];
    o.ops = &kOps;
    o.c = c;
    o.slot = slot;
    o.all = this;
  }

  bool begin() {
    if (p_->cancel.load(std::memory_order_relaxed) != 0) {  // before anything is offered: finish() raises it
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
      for (++i; i < n_; ++i) offers_[i].status = Status::cancelled;  // those that are not begun
      withdraw_rest();
    }
    p_->place = this;
    p_->op = &kind;
    for (std::uint32_t w = word_.load(std::memory_order_acquire);;) {
      if ((w & kUndecided) == 0) {
        p_->op = nullptr;
        return true;
      }
      if (w & kEnded) {  // before we slept: not all of them were there to be withdrawn
        word_.lower(kEnded);
        withdraw_rest();
        w = word_.load(std::memory_order_acquire);
        continue;
      }
      if (word_.change(w, w | kAsleep)) return false;
    }
  }

  // All are decided. Throws what ended the first that has ended, or Cancelled; `partial` makes what it carries.
  template <class Partial>
  void finish(const char* verb, Partial&& partial) {
    p_->op = nullptr;
    bool withdrawn = false;
    for (std::size_t i = 0; i < n_; ++i) {
      Offer& o = offers_[i];
      if (is_end(o.status)) throw_end_with(o.c, o.status, verb, partial());
      withdrawn = withdrawn || o.status == Status::cancelled;
      (S == core::Side::in ? o.c->last_reader : o.c->last_writer) = p_->id;
    }
    if (!withdrawn) return;
    p_->take_cancel();
    Cancelled e;
    e.carry(partial());
    throw e;
  }
  bool done(std::size_t i) const noexcept { return offers_[i].status == Status::ok; }
  std::size_t size() const noexcept { return n_; }

  static bool cancel(runtime::ProcessBase& p) noexcept {
    auto& self = *static_cast<Together*>(p.place);
    self.word_.add(1, std::memory_order_relaxed);  // nobody else wakes us meanwhile
    self.withdraw_rest();
    return self.settle(false);
  }
  static void visit(runtime::ProcessBase& p, runtime::Places& v) {
    auto& self = *static_cast<Together*>(p.place);
    for (std::size_t i = 0; i < self.n_; ++i)
      if (self.offers_[i].status == Status::pending) v.channel(*self.offers_[i].c, S == core::Side::out);
  }
  static void undecided(runtime::ProcessBase& p, runtime::Places& v) {
    auto& self = *static_cast<Together*>(p.place);
    for (std::size_t i = 0; i < self.n_; ++i)
      if (in_line(*self.offers_[i].c, self.offers_[i])) v.channel(*self.offers_[i].c, S == core::Side::out);
  }
  static constexpr runtime::OpKind kind{S == core::Side::in ? "read" : "write", &cancel, &visit, &undecided};

 private:
  static constexpr std::uint32_t kAsleep = 1u << 31;
  static constexpr std::uint32_t kEnded = 1u << 30;
  static constexpr std::uint32_t kUndecided = kEnded - 1;

  // A withdrawn node is nobody's. The caller has a count of its own, or the process is awake.
  void withdraw_rest() noexcept {
    for (std::size_t i = 0; i < n_; ++i) {
      Offer& o = offers_[i];
      if (!o.c->template withdraw<S>(o)) continue;
      o.status = Status::cancelled;
      word_.add(-1u, std::memory_order_release);
    }
  }
  // One fewer is undecided. True: it was the last and the process sleeps: the caller must wake it, and touch nothing here.
  bool settle(bool ended) noexcept {
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
    runtime::ProcessBase* const p = o.all->p_;
    if (o.all->settle(o.status != Status::ok)) p->ops->wake(p);
  }
  static void decided_in_queue(core::Waker* w) { decided(w); }  // a local channel puts whoever it wakes into the run queue
  static constexpr core::WakerOps kOps{&decided, &decided_in_queue, nullptr, 0, nullptr};

  runtime::ProcessBase* const p_;
  std::size_t const n_;
  TogetherWord<Shared> word_;
  Offers offers_;
};

// What of both is the same for a coroutine and a thread. Work: set(together), and result() / what is left in partial().
template <class Work>
struct TogetherOp {
  Work work;

  struct Awaiter {
    Work work;
    typename Work::All all;
    Awaiter(Work&& w, runtime::ProcessBase* p) : work(std::move(w)), all(p, work.size()) {}
    bool await_ready() {
      work.set(all);
      return all.begin();
    }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    auto await_resume() { return work.finish(all); }
  };
  Awaiter bind(runtime::ProcessBase* p) && { return Awaiter(std::move(work), p); }
  auto operator()() && {
    static_assert(Work::shared, "a channel that threads use must be weft::Shared");
    runtime::ThreadProcess& self = blocking_caller(Work::name);
    Awaiter a(std::move(work), &self);
    if (!a.await_ready()) self.block(Work::All::kind);
    return a.await_resume();
  }
};

template <class T, class P, std::size_t N>
struct ReadingAll {
  using Core = CoreOf<T, P>;
  using All = Together<Core, core::Side::in, N, P::shared>;
  static constexpr bool shared = P::shared;
  static constexpr const char* name = "par_read(…)()";
  std::conditional_t<N == 0, std::vector<Core*>, std::array<Core*, N>> cores;
  std::conditional_t<N == 0, std::unique_ptr<Slot<T>[]>, std::array<Slot<T>, N>> slots;

  explicit ReadingAll(std::span<const Reader<T, P>> rs) requires(N == 0) : slots(new Slot<T>[rs.size()]) {
    for (const auto& r : rs) cores.push_back(r.checked("par_read"));
  }
  template <class... Rs>
    requires(N != 0)
  explicit ReadingAll(const Rs&... rs) : cores{rs.checked("par_read")...}, slots{} {}
  ReadingAll(ReadingAll&& o) noexcept : cores(std::move(o.cores)), slots(moved(o)) {}  // before it has begun

  std::size_t size() const noexcept { return cores.size(); }
  void set(All& all) noexcept {
    for (std::size_t i = 0; i < size(); ++i) all.set(i, cores[i], &slots[i]);
  }
  auto finish(All& all) {
    all.finish("par_read", [&] {
      std::vector<std::optional<T>> r(size());
      for (std::size_t i = 0; i < size(); ++i)
        if (all.done(i)) r[i].emplace(slots[i].take());
      return r;
    });
    if constexpr (N == 0) {
      std::vector<T> r;
      r.reserve(size());
      for (std::size_t i = 0; i < size(); ++i) r.push_back(slots[i].take());
      return r;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<T, N>{slots[I].take()...}; }
      (std::make_index_sequence<N>());
    }
  }

 private:
  static auto moved(ReadingAll& o) noexcept {
    if constexpr (N == 0)
      return std::move(o.slots);
    else
      return std::array<Slot<T>, N>{};
  }
};

template <class T, class P, std::size_t N>
struct WritingAll {
  using Core = CoreOf<T, P>;
  using All = Together<Core, core::Side::out, N, P::shared>;
  static constexpr bool shared = P::shared;
  static constexpr const char* name = "par_write(…)()";
  std::conditional_t<N == 0, std::vector<Core*>, std::array<Core*, N>> cores;
  std::conditional_t<N == 0, std::vector<T>, std::array<T, N>> values;

  std::size_t size() const noexcept { return cores.size(); }
  void set(All& all) noexcept {
    for (std::size_t i = 0; i < size(); ++i) all.set(i, cores[i], &values[i]);
  }
  void finish(All& all) {
    all.finish("par_write", [&] {
      std::vector<std::optional<T>> r(size());
      for (std::size_t i = 0; i < size(); ++i)
        if (!all.done(i)) r[i].emplace(std::move(values[i]));
      return r;
    });
  }
};

template <class T, class P>
std::vector<CoreOf<T, P>*> cores_of(std::span<const Writer<T, P>> ws) {
  std::vector<CoreOf<T, P>*> r;
  r.reserve(ws.size());
  for (const auto& w : ws) r.push_back(w.checked("par_write"));
  return r;
}

}  // namespace detail

// A value from each.
template <class T, class P, class... More>
[[nodiscard]] auto par_read(const Reader<T, P>& r, const More&... more) {
  static_assert((std::is_same_v<More, Reader<T, P>> && ...),
                "weft: par_read reads one type from ends of one kind; for several types put reads into weft::par");
  using Work = detail::ReadingAll<T, P, 1 + sizeof...(More)>;
  return detail::TogetherOp<Work>{Work(r, more...)};
}
template <class T, class P>
[[nodiscard]] auto par_read(std::span<const Reader<T, P>> rs) {
  using Work = detail::ReadingAll<T, P, 0>;
  return detail::TogetherOp<Work>{Work(rs)};
}
template <class T, class P>
[[nodiscard]] auto par_read(const std::vector<Reader<T, P>>& rs) {
  return par_read(std::span<const Reader<T, P>>(rs));
}

// To each its value. The vectors must have the same length, or it is BadUse.
template <class T, class P>
[[nodiscard]] auto par_write(std::span<const Writer<T, P>> ws, std::type_identity_t<std::vector<T>> values) {
  if (ws.size() != values.size())
    detail::bad_use("par_write: " + std::to_string(ws.size()) + " writers and " + std::to_string(values.size()) + " values");
  using Work = detail::WritingAll<T, P, 0>;
  return detail::TogetherOp<Work>{Work{detail::cores_of<T, P>(ws), std::move(values)}};
}
template <class T, class P>
[[nodiscard]] auto par_write(const std::vector<Writer<T, P>>& ws, std::type_identity_t<std::vector<T>> values) {
  return par_write(std::span<const Writer<T, P>>(ws), std::move(values));
}
template <class T, class P, class V, class... More>
[[nodiscard]] auto par_write(const std::pair<Writer<T, P>, V>& first, const More&... more) {
  using Work = detail::WritingAll<T, P, 1 + sizeof...(More)>;
  return detail::TogetherOp<Work>{
      Work{{first.first.checked("par_write"), more.first.checked("par_write")...}, {T(first.second), T(more.second)...}}};
}
// To two, without copying their ends: x to a, y to b.
template <class T, class P>
[[nodiscard]] auto par_write(const Writer<T, P>& a, std::type_identity_t<T> x, const Writer<T, P>& b, std::type_identity_t<T> y) {
  using Work = detail::WritingAll<T, P, 2>;
  return detail::TogetherOp<Work>{Work{{a.checked("par_write"), b.checked("par_write")}, {std::move(x), std::move(y)}}};
}
// The same value to each.
template <class T, class P>
[[nodiscard]] auto par_write_all(const std::vector<Writer<T, P>>& ws, const std::type_identity_t<T>& value) {
  return par_write(ws, std::vector<T>(ws.size(), value));
}

}  // namespace weft
