// Buffered channels: the four overflow policies, and buffers together with cancellation, ends,
// extended reads and computed outputs.
#pragma once

namespace weft::test {

using Buf = Buffered<Chan>;

SCENARIO("buffer, block: order kept, nothing lost (rules 1.3, 1.5)", 3) {
  Balance b;
  {
    Buf f{1};
    Process w, r;
    spawn("W", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(w.write(f.c, i) == Status::ok);
    });
    spawn("R", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(r.read(f.c).value == i);
    });
    run();
    REQUIRE_THAT(empty(f.c) && f.ring.size == 0);
  }
  b.check();
}

SCENARIO(
    "buffer, block: the freed slot is filled in the same step, its writer completes (rule 1.5)",
    3) {
  Balance b;
  {
    Buf f{1};
    Process w, r;
    spawn("W",
          [&] { REQUIRE_THAT(w.write(f.c, 1) == Status::ok && w.write(f.c, 2) == Status::ok); });
    spawn("R", [&] { REQUIRE_THAT(r.read(f.c).value == 1); });
    run();
    REQUIRE_THAT(empty(f.c) && f.ring.size == 1);
  }
  b.check();
}

SCENARIO("buffer, block, 2x2: every value arrives once (rules 1.3, 1.5)", 2) {
  Balance b;
  {
    Buf f{1};
    Process w1, w2, r1, r2;
    std::uint32_t sum = 0;
    spawn("W1",
          [&] { REQUIRE_THAT(w1.write(f.c, 1) == Status::ok && w1.write(f.c, 10) == Status::ok); });
    spawn("W2", [&] { REQUIRE_THAT(w2.write(f.c, 100) == Status::ok); });
    spawn("R1", [&] { sum += r1.read(f.c).value; });
    spawn("R2", [&] {
      sum += r2.read(f.c).value;
      sum += r2.read(f.c).value;
    });
    run();
    REQUIRE_THAT(sum == 111 && empty(f.c) && f.ring.size == 0);
  }
  b.check();
}

SCENARIO(
    "buffer, drop_oldest and drop_newest: a write never waits, every value is read or counted "
    "(rule 1.4)",
    2) {
  Balance b;
  {
    const bool oldest = choose(2) != 0;
    Buf f{1, oldest ? Overflow::drop_oldest : Overflow::drop_newest};
    f.c.first_writer();
    Process w, v, r;
    std::uint32_t got = 0, last = 0;
    int writers = 2;
    const auto leave = [&] {
      if (--writers == 0) f.c.drop_writer();
    };
    spawn("W", [&] {
      REQUIRE_THAT(w.write(f.c, 1) == Status::ok && w.write(f.c, 2) == Status::ok);
      leave();
    });
    spawn("V", [&] {
      REQUIRE_THAT(v.write(f.c, 10) == Status::ok);
      leave();
    });
    spawn("R", [&] {
      Got g;
      while ((g = r.read(f.c)).ok()) ++got, last = g.value;
      REQUIRE_THAT(g.status == Status::retired);
    });
    run();
    REQUIRE_THAT(got + f.ring.dropped == 3 && got >= 1 && last != 0);
    REQUIRE_THAT(empty(f.c));
  }
  b.check();
}

SCENARIO("buffer, unbounded: a write never waits, everything arrives in order (rule 1.4)", 2) {
  Balance b;
  {
    Buf f{1, Overflow::unbounded};
    f.ring.grow = [](core::Ring<Item>& r) noexcept {
      // The test's storage is large enough, so the ring never wraps.
      if (r.head + r.size > r.capacity) return false;
      r.capacity = 8;
      return true;
    };
    Process w, r;
    spawn("W", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(w.write(f.c, i) == Status::ok);
    });
    spawn("R", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(r.read(f.c).value == i);
    });
    run();
    REQUIRE_THAT(empty(f.c) && f.ring.size == 0 && f.ring.dropped == 0);
  }
  b.check();
}

SCENARIO("buffer meets choice at both ends (rules 1.5, 5.1)", 2) {
  Balance b;
  {
    Buf f{1}, g{1};
    Process p, q;
    std::uint32_t sent = 0, got = 0;
    spawn("P", [&] {
      for (std::uint32_t i = 1; i <= 3; ++i) {
        p.out(f.c, i), p.out(g.c, i);
        REQUIRE_THAT(p.go().status == Status::ok);
        sent += i;
      }
    });
    spawn("Q", [&] {
      for (int k = 0; k < 3; ++k) {
        q.in(f.c), q.in(g.c);
        const auto x = q.go();
        REQUIRE_THAT(x.status == Status::ok);
        got += x.value;
      }
    });
    run();
    REQUIRE_THAT(sent == 6 && got == 6 && empty(f.c) && empty(g.c) &&
                 f.ring.size + g.ring.size == 0);
  }
  b.check();
}

SCENARIO("buffer: cancel meets the writer that enters as a slot falls free (rules 1.5, 6.4)", 3) {
  Balance b;
  {
    Buf f{1};
    f.c.first_writer();
    Process w, r;
    Status second{};
    std::uint32_t got = 0;
    spawn("W", [&] {
      REQUIRE_THAT(w.write(f.c, 1) == Status::ok || w.cancel_pending() == false);
      second = w.write(f.c, 10);
      f.c.drop_writer();
    });
    spawn("R", [&] {
      Got g;
      while ((g = r.read(f.c)).ok()) got += g.value;
      REQUIRE_THAT(g.status == Status::retired);
    });
    spawn("X", [&] { w.cancel(); });
    run();
    REQUIRE_THAT(got % 10 <= 1 && (got >= 10) == (second == Status::ok));
    REQUIRE_THAT(empty(f.c) && f.ring.size == 0);
  }
  b.check();
}

SCENARIO("buffer: poison drops what is in it, nobody is left (rule 4.2)", 3) {
  Balance b;
  {
    Buf f{1};
    Process w, r;
    std::uint32_t sent = 0, got = 0;
    spawn("W", [&] {
      while (sent < 3 && w.write(f.c, 1) == Status::ok) ++sent;
    });
    spawn("R", [&] {
      while (got < 3 && r.read(f.c).ok()) ++got;
    });
    spawn("X", [&] { f.c.poison(1); });
    run();
    REQUIRE_THAT(sent == got + f.ring.dropped && empty(f.c) && f.ring.size == 0);
  }
  b.check();
}

SCENARIO("buffer: the last reader goes, what is buffered is dropped and counted (rule 3.3)", 3) {
  Balance b;
  {
    Buf f{1};
    f.c.first_reader();
    Process w, r;
    std::uint32_t sent = 0;
    Status last{};
    spawn("W", [&] {
      while ((last = w.write(f.c, 1)) == Status::ok) ++sent;
    });
    spawn("R", [&] {
      REQUIRE_THAT(r.read(f.c).ok());
      f.c.drop_reader();
    });
    run();
    REQUIRE_THAT(last == Status::retired && sent == 1 + f.ring.dropped && empty(f.c) &&
                 f.ring.size == 0);
  }
  b.check();
}

SCENARIO("buffer: an extended read occupies the slot until its block ends (rule 1.6)", 2) {
  Balance b;
  {
    Buf f{1};
    Process w, r, s;
    bool in_block = false;
    std::uint32_t sum = 0;
    spawn("W", [&] {
      for (std::uint32_t i = 1; i <= 100; i *= 10) REQUIRE_THAT(w.write(f.c, i) == Status::ok);
    });
    spawn("R", [&] {
      REQUIRE_THAT(r.extended(f.c, [&](std::uint32_t v) {
        in_block = true;
        REQUIRE_THAT(f.ring.held == 1 && f.ring.size == 0);
        sum += v;
        in_block = false;
      }) == Status::ok);
    });
    spawn("S", [&] {
      sum += s.read(f.c).value;
      sum += s.read(f.c).value;
    });
    run();
    REQUIRE_THAT(sum == 111 && empty(f.c) && f.ring.held == 0 && f.ring.size == 0);
  }
  b.check();
}

SCENARIO("buffer: two extended readers and a computed output: nothing is lost (rules 1.6, 5.8)",
         2) {
  Balance b;
  {
    Buf f{1};
    Process w, v, r, s;
    std::uint32_t sum = 0;
    const auto block = [&](std::uint32_t x) {
      REQUIRE_THAT(f.ring.size + f.ring.held + f.ring.reserved <= f.ring.capacity);
      sum += x;
    };
    spawn("W", [&] { REQUIRE_THAT(w.compute(f.c, [] { return 1u; }) == Status::ok); });
    spawn("V", [&] { REQUIRE_THAT(v.write(f.c, 10) == Status::ok); });
    spawn("R", [&] { REQUIRE_THAT(r.extended(f.c, block) == Status::ok); });
    spawn("S", [&] { REQUIRE_THAT(s.extended(f.c, block) == Status::ok); });
    run();
    REQUIRE_THAT(sum == 11 && empty(f.c) && f.ring.held == 0 && f.ring.reserved == 0 &&
                 f.ring.dropped == 0);
  }
  b.check();
}

SCENARIO("buffer: reader and writer meet while the only slot is held (rules 1.5, 1.6)", 2) {
  Balance b;
  {
    Buf f{1};
    Process w, r, s;
    std::uint32_t got = 0;
    Process inner;
    // R holds the slot and, inside its block, waits until S has received. Even so, W's second value
    // must reach S.
    Chan done;
    spawn("W",
          [&] { REQUIRE_THAT(w.write(f.c, 1) == Status::ok && w.write(f.c, 1) == Status::ok); });
    spawn("R", [&] {
      REQUIRE_THAT(r.extended(f.c, [&](std::uint32_t v) {
        got += v;
        REQUIRE_THAT(inner.read(done).ok());
      }) == Status::ok);
    });
    spawn("S", [&] {
      got += s.read(f.c).value;
      REQUIRE_THAT(s.write(done, 5) == Status::ok);
    });
    run();
    REQUIRE_THAT(got == 2 && empty(f.c) && empty(done));
  }
  b.check();
}

SCENARIO("buffer: a computed output reserves its slot; failing gives it back (rule 5.8)", 2) {
  Balance b;
  {
    Buf f{1};
    f.c.first_writer();
    Process w, v, r;
    const std::uint32_t value = choose(2);
    std::uint32_t sum = 0;
    int writers = 2;
    const auto leave = [&] {
      if (--writers == 0) f.c.drop_writer();
    };
    spawn("W", [&] {
      w.compute(f.c, [&] { return value; });
      leave();
    });
    spawn("V", [&] {
      REQUIRE_THAT(v.write(f.c, 10) == Status::ok);
      leave();
    });
    spawn("R", [&] {
      Got g;
      while ((g = r.read(f.c)).ok()) sum += g.value;
      REQUIRE_THAT(g.status == Status::retired);
    });
    run();
    REQUIRE_THAT(sum == 10 + value && empty(f.c) && f.ring.reserved == 0);
  }
  b.check();
}

}  // namespace weft::test
