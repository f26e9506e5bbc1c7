// The guards of a choice (rule 5.2), and what follows from a set of guards: whether the set is bad
// use (rule 5.5), and which guards decide whether a select ends (rule 5.6). This code is written
// once, for every engine and every language.
//
// The code that makes guards fills in kind, enabled, ends, ops, node.slot and where (for a timer:
// deadline). A guard that is off may have no `where` (its end is closed). That code calls
// find_fault() before the first select, and again after guards were switched on (for a single guard
// fault_with() is enough).
//
// Rule 5.6. A guard whose channel has retired falls *silent*, unless it has `ends`: then the
// retirement is an outcome like poison. A select is over once all guards that decide are silent;
// over() returns whether that holds at this moment. Keepers says which guards are counted while a
// one-shot select waits (waiter.hpp: KeptChoice). The guards of a standing alternative and of a
// foreign select are not counted: these selects are woken, and call over() themselves.
#pragma once
#include "barrier.hpp"
#include "channel.hpp"
#include "latch.hpp"

namespace weft::inline WEFT_ABI::core {

struct Guard;

// The state of a guard at the moment when it is examined.
enum class State : std::uint8_t {
  blocked,
  ready,
  ended,  // poisoned, or a partner has died: the guard is ready with this outcome
  retired,
};

// The operations that differ between the kinds of guards.
struct GuardOps {
  Attempt (*scan)(Guard&) noexcept;
  Attempt (*enrol)(Guard&) noexcept;
  void (*leave)(Guard&) noexcept;
  State (*state)(Guard&) noexcept;
  // for a foreign select; null if such a select cannot take this guard
  Attempt (*take)(Guard&) noexcept;
  bool (*link)(Guard&) noexcept;  // for a standing alternative
  void (*enable)(Guard&, bool) noexcept;
  // For a standing output: notifies the foreign reader that it can take the value.
  void (*invite)(Guard&) noexcept;
};

// Kinds before `timer` join a queue. Kinds that are neither input nor output have no channel that
// could retire, so they keep a select open.
enum class Kind : std::uint8_t {
  input,
  output,
  barrier,
  latch,
#if __STDC_HOSTED__  // a microcontroller has no descriptors, and each kind costs a Select two bytes
  descriptor,
#endif
  timer,
  skip
};

struct Guard {
  // The small members are in the node's padding: the cost of a select over many guards is mostly
  // that of its cache lines.
  [[no_unique_address]] StandingNode node;
  Kind kind = Kind::skip;
  bool enabled = true;  // the precondition; a guard that is not enabled is off
  bool ends = false;    // whether the retirement of the channel is an outcome (rule 5.6)
  bool flat = false;    // whether a standing alternative has enrolled the guard permanently
  // whether the owning select has found that the guard's channel has retired
  bool silent = false;
  // whether this select has put the guard into a queue, and must withdraw it
  bool enqueued = false;
  const GuardOps* ops = nullptr;
  SyncObject* where = nullptr;  // a ChannelEngine<T, P>, BarrierEngine<P> or LatchEngine<P>
  std::int64_t deadline = 0;    // for a timer: steady or virtual time in ns

  State state() noexcept { return ops->state(*this); }
  // Returns whether the guard is on, and its channel has ended for it, so that no partner will
  // arrive there. Reports about a select that waits use this function.
  bool has_ended() noexcept {
    return enabled && kind <= Kind::output && where && state() >= State::ended;
  }
};

template <class C, Side S>
inline constexpr GuardOps channel_ops{
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template scan<S>(g.node); },
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template enrol<S>(g.node); },
    [](Guard& g) noexcept { static_cast<C*>(g.where)->template withdraw<S>(g.node); },
    [](Guard& g) noexcept {
      bool ready = false;
      const Status end = static_cast<C*>(g.where)->template look<S>(ready);
      if (is_end(end)) return end == Status::retired ? State::retired : State::ended;
      return ready ? State::ready : State::blocked;
    },
    [](Guard& g) noexcept {
      if constexpr (S == Side::in)
        return static_cast<C*>(g.where)->take(g.node, EnrolledParty{g.node.choice_, g.node.index});
      else
        return static_cast<C*>(g.where)->template retry<S>(g.node);
    },
    [](Guard& g) noexcept { return static_cast<C*>(g.where)->template link_standing<S>(g.node); },
    [](Guard& g, bool on) noexcept {
      static_cast<C*>(g.where)->template set_enabled<S>(g.node, on);
    },
    [](Guard& g) noexcept { static_cast<C*>(g.where)->invite_foreign(); },
};

// The operations of barriers and of latches.
template <class B>
inline constexpr GuardOps barrier_ops{
    [](Guard& g) noexcept { return static_cast<B*>(g.where)->scan(g.node); },
    [](Guard& g) noexcept { return static_cast<B*>(g.where)->enrol(g.node); },
    [](Guard& g) noexcept { static_cast<B*>(g.where)->withdraw(g.node); },
    [](Guard& g) noexcept {
      return static_cast<B*>(g.where)->ready() ? State::ready : State::blocked;
    },
    nullptr,
    [](Guard&) noexcept { return false; },
    [](Guard&, bool) noexcept {},
    [](Guard&) noexcept {},
};

// --- which guards decide (rule 5.6) --------------------------------------------------------------

// Which kinds of guards a set has: for each kind one bit if a guard of that kind is on, and one bit
// if a guard of that kind is off.
class Kinds {
 public:
  void add(const Guard& g) noexcept {
    bits_ |= 1u << (static_cast<unsigned>(g.kind) + (g.enabled ? 0u : kOff));
  }
  bool timed() const noexcept { return on(Kind::timer) || on(Kind::skip); }
  bool on(Kind k) const noexcept { return bits_ >> static_cast<unsigned>(k) & 1; }
  bool off(Kind k) const noexcept { return bits_ >> (static_cast<unsigned>(k) + kOff) & 1; }
  // Returns whether a guard is on that no retirement can end: a barrier, a latch or a descriptor.
  bool lasting() const noexcept {
    constexpr unsigned enrolled = (1u << static_cast<unsigned>(Kind::timer)) - 1,
                       channels = (1u << static_cast<unsigned>(Kind::barrier)) - 1;
    return bits_ & enrolled & ~channels;
  }
  // Returns whether any guard is off. Usually no guard is off.
  bool anything_off() const noexcept { return bits_ >> kOff; }

 private:
  static constexpr unsigned kOff = 16;
  std::uint32_t bits_ = 0;
};

// The kinds of guards that, while they are on, keep a select open. The select is over once all
// guards of these kinds have retired. If both members are false, nothing ends the select.
struct Keepers {
  bool inputs = false, outputs = false;
  bool any() const noexcept { return inputs || outputs; }
  bool has(const Guard& g) const noexcept {
    return g.enabled && (g.kind == Kind::input ? inputs : g.kind == Kind::output && outputs);
  }
  // Returns whether this guard decides if the select is over. If there are outputs, they decide,
  // and inputs only keep the select open.
  bool decides(const Guard& g) const noexcept {
    return g.enabled && g.kind == (outputs ? Kind::output : Kind::input);
  }
};

// Returns whether some guard of kind k is off although its channel is open. Such a guard keeps a
// select open.
inline bool open_though_off(Guard* g, std::uint32_t n, Kind k) noexcept {
  for (std::uint32_t i = 0; i < n; ++i)
    if (!g[i].enabled && g[i].kind == k && g[i].where && g[i].state() <= State::ready) return true;
  return false;
}

inline Keepers keepers(Kinds seen, Guard* g, std::uint32_t n) noexcept {
  const bool outputs = seen.on(Kind::output), inputs = seen.on(Kind::input);
  if (!outputs && (!inputs || seen.lasting())) return {};
  if (!seen.anything_off()) [[likely]]
    return {.inputs = !outputs, .outputs = outputs};
  // The program can switch guards on later: an input after a timer or a skip has been chosen, or an
  // output after an input has been chosen.
  if (seen.off(Kind::input) && seen.timed() && open_though_off(g, n, Kind::input)) return {};
  const bool held =
      outputs && inputs && seen.off(Kind::output) && open_though_off(g, n, Kind::output);
  return {.inputs = !outputs || held, .outputs = outputs};
}

// If the select is over, returns the first guard that decides, from `first` on; otherwise -1.
inline int over(Guard* g, std::uint32_t n, std::uint32_t first = 0) noexcept {
  Kinds seen;
  for (std::uint32_t i = 0; i < n; ++i) seen.add(g[i]);
  const Keepers keep = keepers(seen, g, n);
  int at = -1;
  for (std::uint32_t k = 0, i = first; k < n; ++k, i = i + 1 == n ? 0 : i + 1) {
    if (!keep.has(g[i])) continue;
    if (g[i].state() != State::retired) return -1;
    if (at < 0 && keep.decides(g[i])) at = static_cast<int>(i);
  }
  return at;
}

// --- bad use (rule 5.5) --------------------------------------------------------------------------

struct Fault {
  enum What : std::uint8_t { none, no_guard, none_on, both_ends, barrier_twice } what = none;
  std::uint32_t a = 0, b = 0;  // the two guards of both_ends or barrier_twice, a < b
};

inline Fault::What between(const Guard& a, const Guard& b) noexcept {
  if (a.where != b.where || !a.where || a.kind > Kind::barrier || b.kind > Kind::barrier)
    return Fault::none;
  if (a.kind != b.kind) return Fault::both_ends;
  return a.kind == Kind::barrier ? Fault::barrier_twice : Fault::none;
}

// Returns the fault of guard i together with any other guard that is on.
inline Fault fault_with(const Guard* g, std::uint32_t n, std::uint32_t i) noexcept {
  for (std::uint32_t j = 0; j < n; ++j)
    if (j != i && g[j].enabled)
      if (const Fault::What w = between(g[i], g[j]); w != Fault::none)
        return {w, i < j ? i : j, i < j ? j : i};
  return {};
}

// Returns the fault of a set of guards that are in no queue yet. The time is proportional to their
// number. With `off_too` all guards count as on.
inline Fault find_fault(Guard* g, std::uint32_t n, bool off_too = false) noexcept {
  if (n == 0) return {Fault::no_guard};
  std::uint32_t ins = 0, outs = 0, barriers = 0;
  bool any = off_too;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!g[i].enabled && !off_too) continue;
    any = true;
    ins += g[i].kind == Kind::input;
    outs += g[i].kind == Kind::output;
    barriers += g[i].kind == Kind::barrier;
  }
  if (!any) return {Fault::none_on};
  if ((ins == 0 || outs == 0) && barriers < 2) return {};
  // A hash table of chains. Its heads and links are in the guards themselves, in the links that the
  // ready list of a standing alternative uses later.
  const auto link = [](Guard& x) noexcept -> ReadyLink& { return x.node; };
  const auto head = [g, n, &link](const Guard& x) noexcept -> Link*& {
    // Fibonacci hashing (Knuth)
    const auto h = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(x.where)) *
                   0x9E3779B97F4A7C15ull;
    return link(g[(h >> 32) % n]).next;
  };
  for (std::uint32_t i = 0; i < n; ++i) link(g[i]).next = link(g[i]).prev = nullptr;
  Fault found;
  for (std::uint32_t i = 0; i < n && found.what == Fault::none; ++i) {
    Guard& x = g[i];
    if ((!x.enabled && !off_too) || x.kind > Kind::barrier || !x.where) continue;
    x.node.index = i;
    bool same = false;
    for (Link* l = head(x); l && !same; l = l->prev) {
      const Guard& y = g[static_cast<StandingNode*>(static_cast<ReadyLink*>(l))->index];
      same = x.where == y.where;
      if (!same) continue;
      if (const Fault::What w = between(x, y); w != Fault::none) found = {w, y.node.index, i};
    }
    if (same) continue;  // The table needs only one guard for each place.
    link(x).prev = head(x);
    head(x) = &link(x);
  }
  for (std::uint32_t i = 0; i < n; ++i) link(g[i]).next = link(g[i]).prev = nullptr;
  return found;
}

}  // namespace weft::inline WEFT_ABI::core
