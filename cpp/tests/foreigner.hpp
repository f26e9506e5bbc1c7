// A foreign party (rule 6.6) for the tests: a thread or fiber that takes the part of a task of
// another event loop.
//
// A foreign party is notified that it should try again, any number of times (Node::told counts
// these calls), and is woken once if another party commits its operation. If no other object keeps
// the party's waker alive, the party must have received all of these calls before it is destroyed.
// The foreign party below checks that it receives exactly these calls.
#pragma once
#include <functional>

#include "parties.hpp"

namespace weft::test {

class Foreigner : public core::Waiter {
 public:
  // Whether writers in this scenario compute their values. If they do not, no value can arrive
  // while the task sleeps.
  bool computed = false;
  bool was_told = false;  // whether the party was notified during its last read
  // Called when the party's task has been notified, before the task tries again.
  std::function<void()> before_deciding;

  Foreigner() { ops = &kOps; }

  template <class C>
  Got read(C& c) {
    if (asked_.exchange(0)) return {Status::cancelled, 0};
    Room room;
    Node& n = begin(room.raw);
    Status s = c.begin_foreign(n);
    while (s == Status::pending) {
      await();
      if (woken()) {
        s = n.status;
        if (s == Status::ok) handed();
      } else if (asked_.load() && c.template withdraw<Side::in>(n)) {
        asked_.store(0);
        s = Status::cancelled;
      } else {
        if (before_deciding) before_deciding();
        switch (c.take(n, core::Free{})) {
          case core::Attempt::committed: s = Status::ok; break;
          case core::Attempt::ended: s = n.status; break;
          case core::Attempt::partner_holds:
            while (!woken()) await();
            s = n.status;
            break;
          default: break;
        }
      }
    }
    was_told = n.told != 0;
    drain(n.told);
    return {s, s == Status::ok ? room.take() : 0};
  }

  // A foreign select of one input and one output.
  template <class C>
  Process::Chosen select(C& in, C& out, std::uint32_t v) {
    Process::Chosen c;
    if (asked_.exchange(0)) return c;
    Room room;
    Item item{v};
    Guard g[2];
    g[0].kind = Kind::input, g[0].where = &in, g[0].ops = &core::channel_ops<C, Side::in>,
    g[0].node.slot = room.raw;
    g[1].kind = Kind::output, g[1].where = &out, g[1].ops = &core::channel_ops<C, Side::out>,
    g[1].node.slot = &item;
    begin(nullptr);
    Select s{g, 2, Mode::fair, this};
    int r = s.scan([] { return std::int64_t{0}; });
    if (r == Select::none) r = s.enrol(true);
    while (r == Select::parked) {
      await();
      if (woken() || (asked_.load() && s.choice.finish_as(core::CANCELLED))) {
        r = s.finish();
        if (r == 0 && s.status() == Status::ok) handed();
        break;
      }
      r = s.look_again();
    }
    drain(g[0].node.told + g[1].node.told);
    if (r < 0) return c;
    c.index = r;
    c.status = s.status();
    if (c.status == Status::ok && r == 0) c.value = room.take();
    return c;
  }

  void cancel() {
    asked_.store(1);
    ring();
  }

 private:
  void handed() {
    if (!computed) prim::fatal("a foreign party was handed a value while it slept (rule 6.6)");
  }
  Node& begin(void* slot) {
    Node& n = *this;
    n.flags = 0;
    n.told = 0;
    n.slot = slot;
    told_.store(0);
    woken_.store(0);
    return n;
  }
  // Waits until the bell has been called again.
  void await() {
    for (std::uint32_t n; (n = bell_.load()) == heard_;) prim::park(bell_, n, prim::forever);
    heard_ = bell_.load();
  }
  bool woken() { return woken_.load() != 0; }
  void drain(std::uint32_t due) {
    for (;;) {
      const std::uint32_t bell = bell_.load(), n = told_.load();
      if (n > due) prim::fatal("a foreign party was told more often than Node::told says");
      if (n == due && woken_.load() <= 1) return;
      prim::park(bell_, bell, prim::forever);
    }
  }
  void ring() {
    bell_.fetch_add(1);
    prim::unpark(bell_);
  }
  static Foreigner& of(core::Waker* w) { return *static_cast<Foreigner*>(w); }
  static void wake(core::Waker* w) noexcept {
    of(w).woken_.fetch_add(1);
    of(w).ring();
  }
  static void tell(core::Waker* w) noexcept {
    of(w).told_.fetch_add(1);
    of(w).ring();
  }
  static const core::WakerOps kOps;

  prim::atomic<std::uint32_t> told_{0}, woken_{0}, bell_{0}, asked_{0};
  std::uint32_t heard_ = 0;
};
inline constexpr core::WakerOps Foreigner::kOps{
    .wake = &Foreigner::wake, .run = nullptr, .tell = &Foreigner::tell};

}  // namespace weft::test
