// Ended channels in a choice (rule 5.6): who ends a channel counts down, the last one claims; a standing and a foreign one look themselves.
#pragma once
#include "foreigner.hpp"

namespace weft::test {

SCENARIO("two sources end while a select over them begins: it is told, once (rule 5.6)", 3) {
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process p;
  Process::Chosen x;
  spawn("P", [&] {
    p.in(c), p.in(d);
    x = p.go();
  });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] { d.drop_writer(); });
  run();
  REQUIRE_THAT(x.status == Status::retired && x.index >= 0);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("a merge is not over while a source is open (rule 5.6)", 3) {
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process p, w;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.in(d);
    x = p.go();
    p.in(c), p.in(d);
    y = p.go();
  });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] {
    REQUIRE_THAT(w.write(d, 7) == Status::ok);
    d.drop_writer();
  });
  run();
  REQUIRE_THAT(x.status == Status::ok && x.index == 1 && x.value == 7);
  REQUIRE_THAT(y.status == Status::retired);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("outputs decide: a value offered to two takers ends with the second, whatever may be read (rule 5.6)", 2) {
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
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process p;
  Process::Chosen x;
  spawn("P", [&] {
    p.in(c), p.in(d);
    p.guard(1).ends = true;
    x = p.go();
  });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] { d.drop_writer(); });
  run();
  REQUIRE_THAT(x.status == Status::retired && x.index >= 0);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("a cancellation meets the end of the last source (rules 5.6, 6.2, 6.4)", 2) {
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process p;
  Process::Chosen x;
  spawn("P", [&] {
    p.in(c), p.in(d);
    x = p.go();
  });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] { d.drop_writer(); });
  spawn("X", [&] { p.cancel(); });
  run();
  REQUIRE_THAT(x.status == Status::retired || x.status == Status::cancelled);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
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
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process s, w;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    for (;;) {
      const auto x = s.next();
      if (x.status != Status::ok) {
        REQUIRE_THAT(x.status == Status::retired);
        break;
      }
      sum += x.value;
    }
    REQUIRE_THAT(s.next().status == Status::retired);  // and it stays over
    s.unstand();
  });
  spawn("C", [&] { c.drop_writer(); });
  spawn("D", [&] {
    REQUIRE_THAT(w.write(d, 7) == Status::ok);
    d.drop_writer();
  });
  run();
  REQUIRE_THAT(sum == 7 && empty(c) && empty(d));
  b.check();
}

SCENARIO("a standing alternative: poison meets a guard that fell silent (rules 4.2, 5.6, 5.9)", 2) {
  Balance b;
  Chan c, d;
  c.first_writer(), d.first_writer();
  Process s;
  Process::Chosen x;
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    x = s.next();
    s.unstand();
  });
  spawn("C", [&] {
    c.drop_writer();
    c.poison(1);
    d.drop_writer();
  });
  run();
  REQUIRE_THAT((x.status == Status::poisoned && x.index == 0) || x.status == Status::retired);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
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
  REQUIRE_THAT(x.status == Status::retired && x.index == 1);  // outputs decide
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

}  // namespace weft::test
