// A latch (rule 7.11): plain and choosing parties, before and after the latch is set, and choices
// that commit at another guard.
#pragma once

namespace weft::test {

using Latch = core::LatchEngine<Shared>;

SCENARIO("latch: set while one comes and one chooses: both go on (rule 7.11)", 3) {
  Latch l;
  Chan c;
  Process a, p;
  Process::Chosen x;
  spawn("A", [&] { REQUIRE_THAT(a.wait_for(l) == Status::ok); });
  spawn("P", [&] {
    p.in(c), p.latch(l);
    x = p.go();
  });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT(x.index == 1 && x.status == Status::ok && l.ready() && empty(c));
}

SCENARIO(
    "latch meets a channel: a choice commits to one of them, and the other keeps what it has "
    "(rules 5.1, 7.11)",
    3) {
  Balance b;
  Latch l;
  Chan c;
  Process p, w;
  Process::Chosen x;
  Status s{};
  spawn("P", [&] {
    p.latch(l), p.in(c);
    x = p.go();
    if (x.index == 0) w.cancel();
  });
  spawn("W", [&] { s = w.write(c, 7); });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT((x.index == 1) == (s == Status::ok) && (x.index == 0 || x.value == 7) && empty(c));
  b.check();
}

SCENARIO("latch meets two choices that can meet each other (rules 5.3, 7.11)", 2) {
  Balance b;
  Latch l;
  Chan c;
  Process p, q;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.latch(l);
    x = p.go();
  });
  spawn("Q", [&] {
    q.latch(l), q.out(c, 7);
    y = q.go();
  });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT((x.index == 0) == (y.index == 1) && (x.index == 1 || x.value == 7) && empty(c));
  b.check();
}

SCENARIO("latch: cancel meets the set, a plain party (rules 6.2, 6.3, 7.11)", 3) {
  Latch l;
  Process a;
  Status s{};
  spawn("A", [&] { s = a.wait_for(l); });
  spawn("X", [&] { a.cancel(); });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT(s == Status::ok || s == Status::cancelled);
  Process again;
  REQUIRE_THAT(again.wait_for(l) == Status::ok);
}

SCENARIO("latch: cancel meets the set, a choice that has it twice (rules 5.5, 6.2, 6.3, 7.11)", 2) {
  Latch l, never;
  Process p;
  Process::Chosen x;
  spawn("P", [&] {
    p.latch(l), p.latch(l), p.latch(never);
    x = p.go();
  });
  spawn("X", [&] { p.cancel(); });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT(x.index >= -1 && x.index <= 1);
  Process again;
  REQUIRE_THAT(again.wait_for(l) == Status::ok);
}

SCENARIO(
    "a standing alternative with a latch: nothing is lost, and the end stays ready (rules 5.9, "
    "7.11)",
    2) {
  Balance b;
  Latch l;
  Chan c;
  Process p, w;
  std::uint32_t got = 0;
  spawn("P", [&] {
    p.in(c), p.latch(l);
    p.stand();
    for (int n = 0; n < 2;) {
      const Process::Chosen x = p.next();
      if (x.index == 0) got += x.value;
      if (x.index == 1 && (got == 7 || ++n == 2)) break;
    }
    p.unstand();
    w.cancel();
  });
  spawn("W", [&] {
    if (w.write(c, 7) != Status::ok) got = 7;
  });
  spawn("S", [&] { l.set(); });
  run();
  REQUIRE_THAT(got == 7 && empty(c));
  b.check();
}

}  // namespace weft::test
