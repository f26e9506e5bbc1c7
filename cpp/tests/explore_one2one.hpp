// The one-to-one ring: its two sides without a lock, and everything that makes one side wait.
#pragma once
#include "weft/core/one2one.hpp"

namespace weft::test {

struct OneOne : Shared {
  static constexpr bool one_to_one = true;
};
struct Ring1 {
  core::OneToOneEngine<Item, OneOne> c;
  alignas(Item) unsigned char raw[sizeof(Item) * 4];
  explicit Ring1(std::uint32_t capacity, bool light = choose(2) != 0) {
    c.set_storage(reinterpret_cast<Item*>(raw), capacity);
    if (light) c.begin_light();
    c.first_reader();
    c.first_writer();
    name(c, "ring");
  }
};

SAMPLED("one-to-one: order kept, nothing lost, everybody goes on (rules 1.3, 1.8)", 2) {
  Balance b;
  {
    Ring1 f(1 + choose(2));
    Process w, r;
    spawn("W", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(w.write(f.c, i) == Status::ok);
    });
    spawn("R", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(r.read(f.c).value == i);
    });
    run();
    REQUIRE_THAT(empty(f.c) && f.c.transfers() == 3 && f.c.dropped() == 0);
  }
  b.check();
}

SAMPLED("one-to-one: cancel meets commit, nothing is lost or doubled (rules 1.8, 6.4)", 2) {
  Balance b;
  {
    Ring1 f(1);
    Process w, r;
    const bool reader = choose(2) != 0;
    std::uint32_t sum = 0, sent = 0;
    spawn("W", [&] {
      for (std::uint32_t v : {1u, 10u})
        if (w.write(f.c, v) == Status::ok) sent += v;
      f.c.drop_writer();
    });
    spawn("R", [&] {
      for (;;) {
        const Got g = r.read(f.c);
        if (g.ok()) sum += g.value;
        if (g.status == Status::retired) break;
      }
    });
    spawn("X", [&] { (reader ? r : w).cancel(); });
    run();
    REQUIRE_THAT(sum == sent && empty(f.c));
  }
  b.check();
}

// The reader's first sleep ends the writer's light writes. The reader's second sleep begins while
// the writer might not have noticed the first sleep yet (invariant 3 of core/one2one.hpp).
SCENARIO(
    "one-to-one: a reader sleeps, is cancelled and sleeps again while a light write is under way "
    "(rules 1.8, 6.4)",
    3) {
  Balance b;
  {
    Ring1 f(1, true);
    Process w, r;
    spawn("W", [&] { REQUIRE_THAT(w.write(f.c, 1) == Status::ok); });
    spawn("R", [&] {
      Got g;
      while (!(g = r.read(f.c)).ok()) REQUIRE_THAT(g.status == Status::cancelled);
      REQUIRE_THAT(g.value == 1);
    });
    spawn("X", [&] { r.cancel(); });
    run();
    REQUIRE_THAT(empty(f.c) && f.c.transfers() == 1);
  }
  b.check();
}

SCENARIO("one-to-one: retiring, from either side (rules 1.8, 3.1 to 3.3)", 3) {
  Balance b;
  {
    Ring1 f(1);
    Process w, r;
    const std::uint32_t reads = choose(3);
    std::uint32_t sum = 0, sent = 0;
    Status last{};
    spawn("W", [&] {
      for (std::uint32_t v : {1u, 10u})
        if (last = w.write(f.c, v); last == Status::ok) sent += v;
      f.c.drop_writer();
    });
    spawn("R", [&] {
      for (std::uint32_t i = 0; i < reads; ++i) sum += r.read(f.c).value;
      if (reads == 2) REQUIRE_THAT(r.read(f.c).status == Status::retired);
      f.c.drop_reader();
    });
    run();
    REQUIRE_THAT(last == Status::ok || last == Status::retired);
    REQUIRE_THAT(f.c.transfers() == reads && empty(f.c));
    f.c.clear();
    REQUIRE_THAT(sent == sum + (f.c.dropped() == 0 ? 0
                                : reads == 0       ? (f.c.dropped() == 2 ? 11 : 1)
                                                   : 10));
  }
  b.check();
}

SAMPLED(
    "one-to-one: poison wakes both sides; what is buffered is dropped when the reader looks (rules "
    "1.8, 4.2)",
    2) {
  Balance b;
  {
    Ring1 f(1);
    Process w, r;
    std::uint32_t written = 0, read = 0;
    spawn("W", [&] {
      while (w.write(f.c, 1) == Status::ok && written < 2) ++written;
    });
    spawn("R", [&] {
      Got g;
      while ((g = r.read(f.c)).ok() && read < 2) ++read;
      REQUIRE_THAT(g.ok() || g.status == Status::poisoned);
    });
    spawn("X", [&] { f.c.poison(1); });
    run();
    REQUIRE_THAT(empty(f.c) && f.c.poison_strength() == 1);
  }
  b.check();
}

SCENARIO("one-to-one: a choice of two rings (rules 1.8, 5.1)", 2) {
  Balance b;
  {
    Ring1 f(1, true), g(1, true);
    Process w1, w2, r;
    std::uint32_t sum = 0;
    spawn("W1", [&] { REQUIRE_THAT(w1.write(f.c, 1) == Status::ok); });
    spawn("W2", [&] { REQUIRE_THAT(w2.write(g.c, 10) == Status::ok); });
    spawn("R", [&] {
      for (int i = 0; i < 2; ++i) {
        r.in(f.c);
        r.in(g.c);
        const auto c = r.go();
        REQUIRE_THAT(c.status == Status::ok && c.value == (c.index == 0 ? 1u : 10u));
        sum += c.value;
      }
    });
    run();
    REQUIRE_THAT(sum == 11 && empty(f.c) && empty(g.c));
  }
  b.check();
}

SAMPLED("one-to-one: outputs of a choice meet readers (rules 1.8, 5.1)", 1) {
  Balance b;
  {
    Ring1 f(1, true), g(1, true);
    Process w, r1, r2;
    std::uint32_t sent = 0, sum = 0;
    spawn("W", [&] {
      for (std::uint32_t v = 1; v <= 3; ++v) {
        w.out(f.c, v);
        w.out(g.c, v);
        REQUIRE_THAT(w.go().status == Status::ok);
        sent += v;
      }
      f.c.drop_writer();
      g.c.drop_writer();
    });
    const auto drain = [&](Process& r, Ring1& x) {
      for (Got got; (got = r.read(x.c)).ok();) sum += got.value;
    };
    spawn("R1", [&] { drain(r1, f); });
    spawn("R2", [&] { drain(r2, g); });
    run();
    REQUIRE_THAT(sent == 6 && sum == 6 && empty(f.c) && empty(g.c));
  }
  b.check();
}

}  // namespace weft::test
