// The lock of a worker's queue (runtime/asymmetric.hpp): its owner, and threads that visit the
// queue. The owner's light stores may arrive late. After a visit, the owner's next prim::own_fences
// fences (here 2) are full fences, and the fences after them are light again.
#pragma once
#include "weft/runtime/asymmetric.hpp"

namespace weft::test {

struct Visited {
  runtime::OwnersLock lock;
  prim::atomic<std::uint32_t> inside{0};
  std::uint32_t sum = 0;
  Visited() { prim::late_stores.clear(); }
  void work() {
    REQUIRE_THAT(inside.fetch_add(1) == 0);
    ++sum;
    inside.fetch_sub(1);
  }
  void own(unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      lock.enter();
      work();
      lock.leave();
    }
  }
  void visit(unsigned n) {
    for (unsigned i = 0; i < n;) {
      if (!lock.try_visit()) {
        prim::pause(0);
        continue;
      }
      work();
      lock.depart();
      ++i;
    }
  }
  // Holds the lock as a thread that visits several queues does (Crew::hold_all).
  void hold() {
    while (!lock.try_book()) prim::pause(0);
    lock.announce();
    runtime::OwnersLock::fence();
    lock.await_owner();
    work();
    lock.depart();
  }
};

SCENARIO("owner's lock: a visitor who passed a fence comes again without one", 5) {
  Visited v;
  name(v, "lock");
  spawn("owner", [&] { v.own(1); });
  spawn("V", [&] { v.visit(2); });
  run();
  REQUIRE_THAT(v.sum == 3);
}

SCENARIO("owner's lock: the owner and a visitor are never inside together", 3) {
  Visited v;
  name(v, "lock");
  spawn("owner", [&] { v.own(2); });
  spawn("V", [&] { v.visit(2); });
  run();
  REQUIRE_THAT(v.sum == 4);
}

SCENARIO("owner's lock: it becomes light again after a visit, and is visited again", 2) {
  Visited v;
  name(v, "lock");
  spawn("owner", [&] { v.own(5); });
  spawn("V", [&] { v.visit(3); });
  run();
  REQUIRE_THAT(v.sum == 8);
}

SCENARIO("owner's lock: a visitor, and one who holds everybody", 2) {
  Visited v;
  name(v, "lock");
  spawn("owner", [&] { v.own(2); });
  spawn("V", [&] { v.visit(1); });
  spawn("H", [&] { v.hold(); });
  run();
  REQUIRE_THAT(v.sum == 4);
}

}  // namespace weft::test
