// Exploration of a link's ring in shared memory and of its bell (WIRE-LINKS.md 12.4): knocks and
// polls, in every order. No frame may remain unnoticed while both threads that could poll sleep,
// and a writer that waits for room must be woken.
#include <array>
#include <functional>

#include "engine.hpp"
#include "weft/wire/ring.hpp"

namespace weft::test {
namespace {

using explorer::engine;
namespace w = weft::wire;

constexpr std::uint32_t kSize = 8;

struct Ring {
  w::Direction d;
  std::array<std::byte, kSize> bytes{};
  w::Outlet out;
  w::Inlet in;
  std::uint32_t got = 0;
  Ring() {
    out.open(d, bytes.data(), kSize);
    in.open(d, bytes.data(), kSize);
  }
  static void wake(const w::Knock& k) {
    if (k.wake) prim::unpark(*k.wake);
  }
  std::size_t publish(std::uint32_t n) {
    const std::array<std::byte, kSize> data{};
    const std::size_t done = out.put(w::Bytes(data).first(n));
    REQUIRE_THAT(done != w::kBroken);
    if (done) wake(w::knock(d.bell));
    return done;
  }
  // Takes the bytes in the ring. Returns true if the writer must be notified that there is room.
  bool take() {
    bool any_starved = false;
    while (in.any()) {
      std::array<std::byte, kSize> room;
      bool starved = false;
      const std::size_t n = in.take(room, starved);
      REQUIRE_THAT(n != w::kBroken && n != 0);
      got += static_cast<std::uint32_t>(n);
      any_starved |= starved;
    }
    return any_starved;
  }
};

SCENARIO(
    "ring: who waits parks and leaves, who stands by has the rest: nothing lies unseen (wire 12.4)",
    3) {
  Ring r;
  prim::atomic<bool> looks{false};  // stands for Attendant::looks_
  engine().spawn("far", [&] {
    r.publish(4);
    r.publish(4);
  });
  // Waits like Attendant::park() until the first frame has arrived, then leaves.
  engine().spawn("waits", [&] {
    while (r.got < 4) {
      if (looks.exchange(true)) {
        prim::pause(0);
        continue;
      }
      const std::uint32_t seen = r.d.bell.thread.load();
      if (r.got < 4 && r.in.may_park()) prim::park(r.d.bell.thread, seen, prim::forever);
      r.in.say(w::Bell::looking);
      r.take();
      r.in.say(w::Bell::standby);
      r.take();
      looks.store(false);
    }
    if (r.got < 8) return;
    r.d.bell.service.fetch_add(1);  // ends the test
    prim::unpark(r.d.bell.service);
  });
  // Serves like Attendant::serve().
  engine().spawn("bells", [&] {
    while (r.got < 8) {
      const std::uint32_t seen = r.d.bell.service.load();
      if (r.d.bell.who.load() != w::Bell::rung) {
        if (r.got < 8) prim::park(r.d.bell.service, seen, prim::forever);
        continue;
      }
      if (looks.exchange(true)) {
        prim::pause(0);
        continue;
      }
      r.in.say(w::Bell::looking);
      r.take();
      r.in.say(w::Bell::standby);
      r.take();
      looks.store(false);
    }
  });
  engine().run();
  REQUIRE_THAT(r.got == 8);
}

SCENARIO("ring: who has looked for another only sleeps by itself: neither is forgotten (wire 12.4)",
         2) {
  Ring r;
  prim::atomic<bool> looks{false};  // stands for Attendant::looks_
  // The words by which two threads wait, each for one frame.
  prim::atomic<std::uint32_t> first{0}, second{0};
  const auto take = [&] {
    const auto set = [](prim::atomic<std::uint32_t>& word) {
      if (word.exchange(1) == 0) prim::unpark(word);
    };
    r.take();
    if (r.got >= 4) set(first);
    if (r.got == 8) set(second);
  };
  const auto leave = [&] {
    r.in.say(w::Bell::standby);
    take();
    looks.store(false);
  };
  engine().spawn("far", [&] {
    r.publish(4);
    r.publish(4);
  });
  // Waits like Attendant::park(), with kInVain 1.
  const auto waits = [&](prim::atomic<std::uint32_t>& mine) {
    for (bool in_vain = false; mine.load() == 0;) {
      if (in_vain || looks.exchange(true)) {
        prim::park(mine, 0, prim::forever);
        continue;
      }
      const std::uint32_t seen = r.d.bell.thread.load(), before = r.got;
      if (mine.load() == 0 && r.in.may_park()) prim::park(r.d.bell.thread, seen, prim::forever);
      r.in.say(w::Bell::looking);
      take();
      in_vain = r.got != before && mine.load() == 0;
      leave();
    }
  };
  const auto end = [&] {
    if (first.load() == 0 || second.load() == 0) return;
    r.d.bell.service.fetch_add(1);
    prim::unpark(r.d.bell.service);
  };
  engine().spawn("first", [&] { waits(first), end(); });
  engine().spawn("second", [&] { waits(second), end(); });
  // Serves like Attendant::serve().
  engine().spawn("bells", [&] {
    while (r.got < 8) {
      const std::uint32_t seen = r.d.bell.service.load();
      if (r.d.bell.who.load() != w::Bell::rung) {
        if (r.got < 8) prim::park(r.d.bell.service, seen, prim::forever);
        continue;
      }
      if (looks.exchange(true)) {
        prim::pause(0);
        continue;
      }
      r.in.say(w::Bell::looking);
      take();
      leave();
    }
  });
  engine().run();
  REQUIRE_THAT(r.got == 8 && first.load() == 1 && second.load() == 1);
}

SCENARIO("ring: a writer that finds it full is woken when there is room (wire 12.4)", 3) {
  Ring r, back;  // Only the bell of the other direction is used.
  engine().spawn("far", [&] {
    for (std::uint32_t left = 12; left > 0;) {
      const auto n = static_cast<std::uint32_t>(r.publish(std::min(left, kSize)));
      left -= n;
      if (n != 0) continue;
      const std::uint32_t seen = back.d.bell.thread.load();
      back.in.say(w::Bell::parked);
      if (!r.out.has_room()) prim::park(back.d.bell.thread, seen, prim::forever);
      back.in.say(w::Bell::looking);
    }
  });
  engine().spawn("reads", [&] {
    while (r.got < 12) {
      const std::uint32_t seen = r.d.bell.thread.load();
      if (r.in.may_park()) prim::park(r.d.bell.thread, seen, prim::forever);
      r.in.say(w::Bell::looking);
      if (r.take()) Ring::wake(w::knock(back.d.bell));
    }
  });
  engine().run();
  REQUIRE_THAT(r.got == 12);
}
}  // namespace
}  // namespace weft::test
