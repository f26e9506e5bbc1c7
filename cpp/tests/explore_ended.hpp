// Ended channels in a choice (rule 5.6): a party that ends a channel decrements the choice's count,
// and the last such party claims the choice; standing and foreign choices check their channels
// themselves.
#pragma once
#include "foreigner.hpp"

namespace weft::test {

// Two sources, each with one writer, and a process that selects over them.
struct TwoSources {
  Balance b;
  Chan c, d;
  Process p;
  Process::Chosen x;
  TwoSources() noexcept { c.first_writer(), d.first_writer(); }
  // Makes the process that selects over both sources.
  void merge() noexcept {
    p.in(c), p.in(d);
    x = p.go();
  }
  void c_ends() {
    spawn("C", [this] { c.drop_writer(); });
  }
  void both_end() {
    c_ends();
    spawn("D", [this] { d.drop_writer(); });
  }
  // The writer of the second source writes a value, and leaves after it.
  void d_writes_and_ends(Process& w) {
    spawn("D", [this, &w] {
      REQUIRE_THAT(w.write(d, 7) == Status::ok);
      d.drop_writer();
    });
  }
  // Checks that no party is left in a waiting queue, and no value anywhere.
  void settled() {
    REQUIRE_THAT(empty(c) && empty(d));
    b.check();
  }
};

SCENARIO("two sources end while a select over them begins: it is told, once (rule 5.6)", 3) {
  TwoSources t;
  spawn("P", [&] { t.merge(); });
  t.both_end();
  run();
  REQUIRE_THAT(t.x.status == Status::retired && t.x.index >= 0);
  t.settled();
}

SCENARIO("a merge is not over while a source is open (rule 5.6)", 3) {
  TwoSources t;
  Process w;
  Process::Chosen first;
  spawn("P", [&] {
    t.merge();
    first = t.x;
    t.merge();
  });
  t.c_ends();
  t.d_writes_and_ends(w);
  run();
  REQUIRE_THAT(first.status == Status::ok && first.index == 1 && first.value == 7);
  REQUIRE_THAT(t.x.status == Status::retired);
  t.settled();
}

SCENARIO(
    "outputs decide: a value offered to two takers ends with the second, whatever may be read "
    "(rule 5.6)",
    2) {
  Balance b;
  Chan in, c, d;
  in.first_writer(), c.first_reader(), d.first_reader();
  Process p;
  Process::Chosen x;
  spawn("P", [&] {
    p.in(in), p.out(c, 1), p.out(d, 2);
    x = p.go();
  });
  spawn("C", [&] { c.drop_reader(); });
  spawn("D", [&] { d.drop_reader(); });
  run();
  REQUIRE_THAT(x.status == Status::retired && x.index >= 1);
  REQUIRE_THAT(empty(in) && empty(c) && empty(d));
  b.check();
}

SCENARIO("ends() meets the end of the last source: one of them is chosen (rule 5.6)", 2) {
  TwoSources t;
  spawn("P", [&] {
    t.p.in(t.c), t.p.in(t.d);
    t.p.guard(1).ends = true;
    t.x = t.p.go();
  });
  t.both_end();
  run();
  REQUIRE_THAT(t.x.status == Status::retired && t.x.index >= 0);
  t.settled();
}

SCENARIO("a cancellation meets the end of the last source (rules 5.6, 6.2, 6.4)", 2) {
  TwoSources t;
  spawn("P", [&] { t.merge(); });
  t.both_end();
  spawn("X", [&] { t.p.cancel(); });
  run();
  REQUIRE_THAT(t.x.status == Status::retired || t.x.status == Status::cancelled);
  t.settled();
}

SCENARIO("two selects meet while the other guards of both end (rules 5.1, 5.3, 5.6)", 2) {
  Balance b;
  Chan c, d, e;
  d.first_writer(), e.first_reader();
  Process p, q;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.in(d);
    x = p.go();
  });
  spawn("Q", [&] {
    q.out(c, 5), q.out(e, 6);
    y = q.go();
  });
  spawn("D", [&] { d.drop_writer(); });
  spawn("E", [&] { e.drop_reader(); });
  run();
  REQUIRE_THAT(x.status == Status::ok && x.index == 0 && x.value == 5);
  REQUIRE_THAT(y.status == Status::ok && y.index == 0);
  REQUIRE_THAT(empty(c) && empty(d) && empty(e));
  b.check();
}

SCENARIO("a standing merge ends with its last source, and is not over before (rules 5.6, 5.9)", 2) {
  TwoSources t;
  Process w;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    t.p.in(t.c), t.p.in(t.d);
    t.p.stand();
    for (;;) {
      const auto x = t.p.next();
      if (x.status != Status::ok) {
        REQUIRE_THAT(x.status == Status::retired);
        break;
      }
      sum += x.value;
    }
    REQUIRE_THAT(t.p.next().status == Status::retired);  // The select stays ended.
    t.p.unstand();
  });
  t.c_ends();
  t.d_writes_and_ends(w);
  run();
  REQUIRE_THAT(sum == 7);
  t.settled();
}

SCENARIO("a standing alternative: poison meets a guard that fell silent (rules 4.2, 5.6, 5.9)", 2) {
  TwoSources t;
  spawn("S", [&] {
    t.p.in(t.c), t.p.in(t.d);
    t.p.stand();
    t.x = t.p.next();
    t.p.unstand();
  });
  spawn("C", [&] {
    t.c.drop_writer();
    t.c.poison(1);
    t.d.drop_writer();
  });
  run();
  REQUIRE_THAT((t.x.status == Status::poisoned && t.x.index == 0) || t.x.status == Status::retired);
  t.settled();
}

SCENARIO("a foreign select is told, and decides itself (rules 5.6, 6.6)", 2) {
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_reader();
  Foreigner f;
  Process::Chosen x;
  spawn("F", [&] { x = f.select(c, d, 3); });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] { d.drop_reader(); });
  run();
  REQUIRE_THAT(x.status == Status::retired && x.index == 1);  // The outputs decide (rule 5.6).
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

}  // namespace weft::test
