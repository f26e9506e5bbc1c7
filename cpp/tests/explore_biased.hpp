// The biased lock: its owner, threads that revoke the bias, and a channel under the lock.
#pragma once
#include "weft/core/biased.hpp"

namespace weft::test {

// Enters the lock n times and checks that no other thread is inside; the sum is plain data that the
// lock protects.
struct Guarded {
  core::BiasedLock lock;
  prim::atomic<std::uint32_t> inside{0};
  std::uint32_t sum = 0;
  Guarded() { prim::late_stores.clear(); }
  void enter(unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      lock.lock();
      REQUIRE_THAT(inside.fetch_add(1) == 0);
      ++sum;
      inside.fetch_sub(1);
      lock.unlock();
    }
  }
};

SCENARIO("biased lock: the owner and one who revokes it are never inside together", 3) {
  Guarded g;
  name(g, "lock");
  spawn("A", [&] { g.enter(3); });
  spawn("B", [&] { g.enter(2); });
  run();
  REQUIRE_THAT(g.sum == 5);
}

SCENARIO("biased lock: two revoke it at the same time", 2) {
  Guarded g;
  name(g, "lock");
  spawn("A", [&] { g.enter(2); });
  spawn("B", [&] { g.enter(2); });
  spawn("C", [&] { g.enter(1); });
  run();
  REQUIRE_THAT(g.sum == 5);
}

// Here bias_streak is 2.
SCENARIO("biased lock: the second bias, its owner, the first one and one who revokes it", 3) {
  Guarded g;
  name(g, "lock");
  spawn("A", [&] { g.enter(2); });
  spawn("B", [&] { g.enter(5); });
  run();
  REQUIRE_THAT(g.sum == 7);
}

SCENARIO("biased lock: a second bias is revoked for good", 2) {
  Guarded g;
  name(g, "lock");
  spawn("A", [&] { g.enter(3); });
  spawn("B", [&] { g.enter(3); });
  spawn("C", [&] { g.enter(1); });
  run();
  REQUIRE_THAT(g.sum == 7);
}

struct Biased : Shared {
  using Lock = core::BiasedLock;
};

SCENARIO("biased lock: a rendezvous under it, cancelled by a third (rules 1.1, 6.2)", 2) {
  prim::late_stores.clear();
  Balance b;
  Channel<Biased> c;
  Process w, r;
  name(c, "c"), name(w, "W"), name(r, "R");
  Status sent{};
  Got got;
  spawn("W", [&] {
    sent = w.write(c, 7);
    if (sent != Status::ok) REQUIRE_THAT(w.write(c, 8) == Status::ok);
  });
  spawn("R", [&] { got = r.read(c); });
  spawn("X", [&] { w.cancel(); });
  run();
  REQUIRE_THAT(got.ok() && got.value == (sent == Status::ok ? 7u : 8u) && empty(c) &&
               c.transfers() == 1);
  b.check();
}

}  // namespace weft::test
