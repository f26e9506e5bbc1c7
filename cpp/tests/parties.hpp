// The basis of the tests of the core: a value whose loss or duplication is detected, and processes
// that wait by a Parker.
//
// The same code runs under the explorer, under the sanitizers with real threads, and alone. The
// code drives the core as the hosted layer does: begin, await, withdraw; scan, enrol, await,
// finish.
//
// A process is cancelled by cancel(), which makes a request and a nudge (rule 6.1). The operation
// of the process then withdraws; if that comes too late, the operation completes and the request
// stays for the next operation (rule 6.3).
#pragma once
#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "weft/core/parker.hpp"
#include "weft/core/select.hpp"
#include "weft/core/standing.hpp"

namespace weft::test {

using core::Guard;
using core::Kind;
using core::Node;
using core::NodeFlags;
using core::Parker;
using core::Select;
using core::Side;
using core::Standing;

// A move-only value; `alive` counts the living Items. An Item that has been moved from has the
// value 0.
struct Item {
  static inline std::atomic<long> alive{0};
  std::uint32_t v = 0;
  explicit Item(std::uint32_t n) noexcept : v(n) { ++alive; }
  Item(Item&& o) noexcept : v(std::exchange(o.v, 0)) { ++alive; }
  Item& operator=(Item&&) = delete;
  ~Item() { --alive; }
};

// Memory for one value that may or may not arrive.
struct Room {
  alignas(Item) unsigned char raw[sizeof(Item)];
  std::uint32_t take() noexcept {
    Item* i = std::launder(reinterpret_cast<Item*>(raw));
    const std::uint32_t v = i->v;
    i->~Item();
    return v;
  }
};

template <class P>
using Channel = core::ChannelEngine<Item, P>;
using Chan = Channel<Shared>;

// A buffered channel with its storage.
template <class C, std::uint32_t Max = 8>
struct Buffered {
  core::Ring<Item> ring;
  alignas(Item) unsigned char raw[sizeof(Item) * Max];
  C c;
  explicit Buffered(std::uint32_t capacity, Overflow o = Overflow::block) noexcept {
    ring.data = reinterpret_cast<Item*>(raw);
    ring.capacity = capacity;
    ring.overflow = o;
    ring.discard = [](core::Ring<Item>& r) noexcept { r.clear(); };
    c.set_ring(&ring);
  }
  Buffered(const Buffered&) = delete;
  Buffered& operator=(const Buffered&) = delete;
  ~Buffered() { ring.clear(); }
};

template <class C>
bool empty(C& c) {
  bool e = false;
  c.with_lock([&](core::Queue& r, core::Queue& w) { e = r.empty() && w.empty(); });
  return e;
}

struct Got {
  Status status = Status::pending;
  std::uint32_t value = 0;
  bool ok() const noexcept { return status == Status::ok; }
};

class Process {
 public:
  Parker parker;

  void cancel() noexcept {
    asked_.store(1);
    parker.nudge();
  }
  bool cancel_pending() noexcept { return asked_.load() != 0; }

  // --- plain operations ---
  template <class C>
  Got read(C& c) noexcept {
    Room room;
    const Status s = operate<Side::in>(c, room.raw, 0);
    return {s, s == Status::ok ? room.take() : 0};
  }
  // Writes, and returns the status. If the write fails, the value is destroyed when this function
  // returns.
  template <class C>
  Status write(C& c, std::uint32_t v) noexcept {
    Item i{v};
    return operate<Side::out>(c, &i, 0);
  }
  // Makes an extended read. The function is the block of the read, and receives the value.
  template <class C, class F>
  Status extended(C& c, F&& block) noexcept {
    Room room;
    const Status s = operate<Side::in>(c, room.raw, NodeFlags::extended);
    if (s != Status::ok) return s;
    block(room.take());
    c.end_extended(parker);
    return s;
  }
  // Makes a write whose value is made after the commit; the value 0 stands for a failure of the
  // computation.
  template <class C, class F>
  Status compute(C& c, F&& make) noexcept {
    const Status s = operate<Side::out>(c, nullptr, NodeFlags::compute);
    return s == Status::ok ? deliver(c, parker, make()) : s;
  }
  template <class B>
  Status sync(B& b) noexcept {
    if (asked_.exchange(0)) return Status::cancelled;
    prepare(nullptr, 0);
    if (const Status s = b.begin_sync(parker); s != Status::pending) return s;
    return await([&] { return b.withdraw(parker); });
  }

  template <class L>
  Status wait_for(L& l) noexcept {
    if (asked_.exchange(0)) return Status::cancelled;
    prepare(nullptr, 0);
    if (const Status s = l.begin_wait(parker); s != Status::pending) return s;
    return await([&] { return l.withdraw(parker); });
  }

  // Waits, without taking part, until a party could be met at the side S of c
  // (core::ChannelEngine::watch()).
  template <Side S, class C>
  Status watch(C& c) noexcept {
    Node& n = prepare(nullptr, 0);
    if (const Status s = c.template watch<S>(n); s != Status::pending) return s;
    return await([&] { return c.template withdraw<S>(n); });
  }

  // --- a select: add guards, then go ---
  template <class C>
  void in(C& c) noexcept {
    Guard& g = add(Kind::input, &c, &core::channel_ops<C, Side::in>);
    g.node.slot = room_[n_ - 1].raw;
  }
  template <class C>
  void out(C& c, std::uint32_t v) noexcept {
    Guard& g = add(Kind::output, &c, &core::channel_ops<C, Side::out>);
    item_[n_ - 1].emplace(v);
    g.node.slot = &*item_[n_ - 1];
  }
  // Adds an output whose value go() makes after the commit; the value 0 stands for a failure of the
  // computation.
  template <class C>
  void out_computed(C& c, std::uint32_t v) noexcept {
    Guard& g = add(Kind::output, &c, &core::channel_ops<C, Side::out>);
    g.node.flags = NodeFlags::compute;
    made_[n_ - 1] = v;
    finish_[n_ - 1] = [](Process& p, core::SyncObject* where, Node& n, std::uint32_t v) noexcept {
      return p.deliver(*static_cast<C*>(where), n, v);
    };
  }
  template <class B>
  void barrier(B& b) noexcept {
    add(Kind::barrier, &b, &core::barrier_ops<B>);
  }
  template <class L>
  void latch(L& l) noexcept {
    add(Kind::latch, &l, &core::barrier_ops<L>);
  }
  void timer(std::int64_t deadline) noexcept {
    add(Kind::timer, nullptr, nullptr).deadline = deadline;
  }
  void skip() noexcept { add(Kind::skip, nullptr, nullptr); }
  Guard& guard(int i) noexcept { return g_[i]; }

  struct Chosen {
    int index = -1;  // -1 if the select was cancelled
    Status status = Status::cancelled;
    std::uint32_t value = 0;
  };

  Chosen go(Mode mode = Mode::fair, std::uint32_t start = 0, std::uint64_t seed = 0) noexcept {
    if (asked_.exchange(0)) return end({});
    Select s(g_, n_, mode, &parker, start);
    if (seed) s.seed = seed;
    int r = s.begin(&parker, [] { return prim::now(); });
    if (r == Select::parked) r = wait(s);
    next_start = s.next_start();
    return end(outcome(r, s.status()));
  }
  std::uint32_t next_start = 0;

  // Makes a standing alternative over the guards added so far. A process has at most one standing
  // alternative.
  void stand() noexcept { standing_.emplace(g_, n_, &parker); }
  Chosen next() noexcept {
    if (asked_.exchange(0)) return {};
    Standing& s = *standing_;
    int r = s.begin(&parker, [] { return prim::now(); });
    while (r == Standing::parked) r = wait(s);
    return outcome(r, s.status());
  }
  Standing& standing() noexcept { return *standing_; }
  // Gives a new value to guard i, an output whose value has been sent.
  void refill(int i, std::uint32_t v) noexcept {
    item_[i].emplace(v);
    g_[i].node.slot = &*item_[i];
  }
  void unstand() noexcept {
    standing_.reset();
    clear();
  }

 private:
  Node& prepare(void* slot, std::uint16_t flags) noexcept {
    Node& n = parker;
    n.flags = flags;
    n.slot = slot;
    return n;
  }

  template <class C>
  Status deliver(C& c, Node& n, std::uint32_t v) noexcept {
    if (v == 0) {
      c.abandon(n);
      return Status::died;
    }
    Item i{v};
    n.slot = &i;
    if (c.deliver(n) == Status::pending) {
      while (!parker.await()) continue;
      return n.status;
    }
    return Status::ok;
  }

  template <Side S, class C>
  Status operate(C& c, void* slot, std::uint16_t flags) noexcept {
    if (asked_.exchange(0)) return Status::cancelled;
    Node& n = prepare(slot, flags);
    if (const Status s = c.template begin<S>(n); s != Status::pending) return s;
    return await([&] { return c.template withdraw<S>(n); });
  }

  template <class F>
  Status await(F&& withdraw) noexcept {
    while (!parker.await()) {
      if (!asked_.load()) continue;
      if (withdraw()) {
        asked_.store(0);
        return Status::cancelled;
      }
      // The operation has committed, and the wake-up is under way.
      while (!parker.await()) continue;
      break;
    }
    return parker.status;
  }

  template <class S>
  int wait(S& s) noexcept {
    const std::int64_t until = s.deadline();
    const auto go_on = [&s] { return s.woken([] { return prim::now(); }, false); };
    for (bool decided = false;;) {
      if (parker.await(decided ? prim::forever : until)) return go_on();
      if (decided) continue;
      if (asked_.load()) {
        if (s.withdraw()) {
          asked_.store(0);
          return go_on();
        }
        decided = true;
      } else if (until != prim::forever && prim::now() >= until) {
        if (s.choice.finish_as(core::TIMED_OUT)) return go_on();
        decided = true;
      }
    }
  }

  Chosen outcome(int r, Status s) noexcept {
    Chosen c;
    if (r < 0) return c;
    c.index = r;
    Guard& g = g_[r];
    if (g.kind == Kind::timer) {
      c.status = Status::timed_out;
      return c;
    }
    c.status = s;
    if (s == Status::ok && g.kind == Kind::input) c.value = room_[r].take();
    if (s == Status::ok && g.kind == Kind::output && g.node.is(NodeFlags::compute))
      c.status = finish_[r](*this, g.where, g.node, made_[r]);
    return c;
  }
  Chosen end(Chosen c) noexcept {
    clear();
    return c;
  }
  void clear() noexcept {
    for (std::uint32_t i = 0; i < n_; ++i) {
      item_[i].reset();
      g_[i].~Guard();
      ::new (&g_[i]) Guard;
    }
    n_ = 0;
  }

  Guard& add(Kind k, core::SyncObject* where, const core::GuardOps* ops) noexcept {
    Guard& g = g_[n_++];
    g.kind = k;
    g.where = where;
    g.ops = ops;
    return g;
  }

  static constexpr int kMax = 6;
  prim::atomic<std::uint32_t> asked_{0};
  Guard g_[kMax];
  Room room_[kMax];
  std::optional<Item> item_[kMax];
  std::uint32_t made_[kMax] = {};
  Status (*finish_[kMax])(Process&, core::SyncObject*, Node&, std::uint32_t) noexcept = {};
  std::uint32_t n_ = 0;
  std::optional<Standing> standing_;
};

}  // namespace weft::test
