// Foreign readers (rule 6.6), which are woken, keep their place in the waiting queue, and take
// values themselves; and foreign selects.
#pragma once
#include "foreigner.hpp"

namespace weft::test {

SCENARIO("foreign reader takes from a plain writer (rule 6.6)", 3) {
  Balance b;
  Chan c;
  Foreigner f;
  Process w;
  Got g;
  spawn("F", [&] { g = f.read(c); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  run();
  REQUIRE_THAT(g.ok() && g.value == 7 && empty(c));
  b.check();
}

SAMPLED("foreign reader is cancelled: the value goes to the next in line (rule 6.6)", 2) {
  Balance b;
  Chan c;
  Foreigner f;
  Process w, r;
  Got g, h;
  spawn("F", [&] {
    g = f.read(c);
    if (g.ok()) r.cancel();
  });
  spawn("R", [&] { h = r.read(c); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  spawn("X", [&] { f.cancel(); });
  run();
  REQUIRE_THAT(g.ok() != h.ok() && g.value + h.value == 7 && empty(c));
  b.check();
}

SAMPLED("two foreign readers and a plain one share three writers (rule 6.6)", 0) {
  Balance b;
  Chan c;
  Foreigner f, g;
  Process w, v, r;
  std::uint32_t sum = 0;
  spawn("F", [&] { sum += f.read(c).value; });
  spawn("G", [&] { sum += g.read(c).value; });
  spawn("R", [&] { sum += r.read(c).value; });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok && w.write(c, 100) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(c, 10) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 111 && empty(c));
  b.check();
}

SCENARIO("foreign reader meets a choosing writer that is cancelled (rules 6.4, 6.6)", 2) {
  Balance b;
  Chan c, d;
  Foreigner f;
  Process p, w;
  Got g;
  Process::Chosen x;
  spawn("F", [&] { g = f.read(c); });
  spawn("P", [&] {
    p.out(c, 7), p.in(d);
    x = p.go();
    if (x.index < 0) REQUIRE_THAT(w.write(c, 8) == Status::ok);
  });
  spawn("X", [&] { p.cancel(); });
  run();
  REQUIRE_THAT(g.ok() && g.value == (x.index == 0 ? 7u : 8u) && empty(c) && empty(d));
  b.check();
}

SAMPLED("foreign reader meets poison (rules 4.2, 6.6)", 2) {
  Balance b;
  Chan c;
  Foreigner f, e;
  Process w;
  Got g, h;
  Status sent{};
  spawn("F", [&] { g = f.read(c); });
  spawn("E", [&] { h = e.read(c); });
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("X", [&] { c.poison(1); });
  run();
  REQUIRE_THAT((sent == Status::ok) == (g.ok() || h.ok()) && !(g.ok() && h.ok()));
  REQUIRE_THAT(g.ok() || g.status == Status::poisoned);
  REQUIRE_THAT(h.ok() || h.status == Status::poisoned);
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("foreign readers meet retirement: drained, then ended (rules 3.1, 6.6)", 2) {
  Balance b;
  Chan c;
  c.first_writer();
  Foreigner f, e;
  Process w;
  std::uint32_t sum = 0;
  const auto iterate = [&](Foreigner& x) {
    Got g;
    while ((g = x.read(c)).ok()) sum += g.value;
    REQUIRE_THAT(g.status == Status::retired);
  };
  spawn("F", [&] { iterate(f); });
  spawn("E", [&] { iterate(e); });
  spawn("W", [&] {
    REQUIRE_THAT(w.write(c, 1) == Status::ok && w.write(c, 10) == Status::ok);
    c.drop_writer();
  });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO(
    "foreign reader on a buffer of each policy: a write never waits for its decision (rules 1.4, "
    "6.6)",
    2) {
  Balance b;
  {
    const std::uint32_t policy = choose(3);
    Buffered<Chan> q{1, static_cast<Overflow>(policy)};
    q.c.first_writer();
    Foreigner f;
    Process w;
    std::uint32_t got = 0;
    spawn("F", [&] {
      while (f.read(q.c).ok()) ++got;
    });
    spawn("W", [&] {
      for (int k = 0; k < 3; ++k) REQUIRE_THAT(w.write(q.c, 1) == Status::ok);
      q.c.drop_writer();
    });
    run();
    REQUIRE_THAT(got + q.ring.dropped == 3 && got > 0 && empty(q.c));
    if (policy == 0) REQUIRE_THAT(got == 3);
  }
  b.check();
}

SCENARIO(
    "foreign reader that is slow to decide: a write that never waits does not (rules 1.4, 6.6)",
    2) {
  Balance b;
  {
    Buffered<Chan> q{1, Overflow::drop_oldest};
    q.c.first_writer();
    Chan written;
    Foreigner f;
    Process w, p;
    std::uint32_t got = 0;
    bool slow = true;
    f.before_deciding = [&] {
      if (std::exchange(slow, false)) REQUIRE_THAT(p.read(written).ok());
    };
    spawn("F", [&] {
      while (f.read(q.c).ok()) ++got;
    });
    spawn("W", [&] {
      bool waits = false;
      q.c.with_lock([&](core::Queue& r, core::Queue&) { waits = !r.empty(); });
      if (!waits) slow = false;
      REQUIRE_THAT(w.write(q.c, 1) == Status::ok && w.write(q.c, 10) == Status::ok);
      if (waits) REQUIRE_THAT(w.write(written, 5) == Status::ok);
      q.c.drop_writer();
    });
    run();
    REQUIRE_THAT(got + q.ring.dropped == 2 && got >= 1 && empty(q.c) && empty(written));
  }
  b.check();
}

SCENARIO("foreign reader that is slow to decide: a second value goes to who is behind (rule 6.6)",
         1) {
  Balance b;
  {
    const bool buffered = choose(2) != 0, foreign = choose(2) != 0;
    Buffered<Chan> q{2};
    Chan plain, taken;
    Chan& c = buffered ? q.c : plain;
    Foreigner f, e;
    Process r, p, w, v;
    bool slow = true;
    f.before_deciding = [&] {
      if (std::exchange(slow, false)) REQUIRE_THAT(p.read(taken).ok());
    };
    std::uint32_t sum = 0;
    spawn("F", [&] { sum += f.read(c).value; });
    spawn("R", [&] {
      sum += (foreign ? e.read(c) : r.read(c)).value;
      if (!std::exchange(slow, false)) REQUIRE_THAT(r.write(taken, 1) == Status::ok);
    });
    spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
    spawn("V", [&] { REQUIRE_THAT(v.write(c, 10) == Status::ok); });
    run();
    REQUIRE_THAT(sum == 11 && empty(c) && empty(taken));
  }
  b.check();
}

SCENARIO(
    "foreign reader that is cancelled as it is told comes again: it waits for no other that is "
    "undecided (rule 6.6)",
    2) {
  Balance b;
  Chan c, taken;
  Foreigner f, e;
  Process p, w;
  Got g, h;
  bool declined = false, over = false, waits = false;
  e.before_deciding = [&] {
    if (!declined || over) return;
    waits = true;
    REQUIRE_THAT(p.read(taken).ok());
  };
  spawn("E", [&] {
    h = e.read(c);
    over = true;
    f.cancel();
  });
  spawn("F", [&] {
    g = f.read(c);
    declined = !g.ok() && f.was_told;
    if (!g.ok() && !over) g = f.read(c);
    if (!g.ok()) return;
    over = true;
    if (waits) REQUIRE_THAT(w.write(taken, 1) == Status::ok);
    e.cancel();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  spawn("X", [&] { f.cancel(); });
  run();
  REQUIRE_THAT(g.value + h.value == 7 && empty(c) && empty(taken));
  b.check();
}

SCENARIO(
    "foreign reader whose end is closed withdraws: the waiting writer is told (rules 3.2, 3.3, "
    "6.6)",
    3) {
  Balance b;
  Chan c;
  c.first_reader();
  Foreigner f;
  Process w;
  Got g;
  Status s{};
  spawn("F", [&] { g = f.read(c); });
  spawn("W", [&] { s = w.write(c, 7); });
  spawn("X", [&] {
    bool waits = false;
    c.with_lock([&](core::Queue& r, core::Queue&) { waits = !r.empty(); });
    if (waits) c.drop_reader();
    f.cancel();
    if (!waits) w.cancel();
  });
  run();
  REQUIRE_THAT(g.ok() == (s == Status::ok) && empty(c));
  if (!g.ok()) REQUIRE_THAT(s == Status::retired || s == Status::cancelled);
  b.check();
}

SCENARIO("foreign reader beside an extended reader on a buffer (rules 1.6, 6.6)", 2) {
  Balance b;
  {
    Buffered<Chan> q{1};
    Foreigner f;
    Process w, r;
    std::uint32_t sum = 0;
    spawn("F", [&] { sum += f.read(q.c).value; });
    spawn("R",
          [&] { REQUIRE_THAT(r.extended(q.c, [&](std::uint32_t v) { sum += v; }) == Status::ok); });
    spawn("W",
          [&] { REQUIRE_THAT(w.write(q.c, 1) == Status::ok && w.write(q.c, 10) == Status::ok); });
    run();
    REQUIRE_THAT(sum == 11 && empty(q.c));
  }
  b.check();
}

SAMPLED("foreign reader and standing reader share two writers (rules 5.9, 6.6)", 1) {
  Balance b;
  Chan c;
  Foreigner f;
  Process s, w, v;
  std::uint32_t sum = 0;
  spawn("F", [&] { sum += f.read(c).value; });
  spawn("S", [&] {
    s.in(c);
    s.stand();
    sum += s.next().value;
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(c, 10) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO("foreign reader meets a standing output (rules 5.9, 6.6)", 2) {
  Balance b;
  Chan c;
  Foreigner f;
  Process s;
  Got g;
  spawn("F", [&] { g = f.read(c); });
  spawn("S", [&] {
    s.out(c, 7);
    s.stand();
    REQUIRE_THAT(s.next().status == Status::ok);
    s.unstand();
  });
  run();
  REQUIRE_THAT(g.ok() && g.value == 7 && empty(c));
  b.check();
}

SCENARIO("foreign select meets a plain writer and a plain reader (rules 5.1, 6.6)", 2) {
  Balance b;
  Chan c, d;
  Foreigner f;
  Process w, r;
  Process::Chosen x;
  Got g;
  Status s{};
  spawn("F", [&] {
    x = f.select(c, d, 9);
    x.index == 0 ? r.cancel() : w.cancel();
  });
  spawn("W", [&] { s = w.write(c, 7); });
  spawn("R", [&] { g = r.read(d); });
  run();
  REQUIRE_THAT(x.status == Status::ok && empty(c) && empty(d));
  if (x.index == 0)
    REQUIRE_THAT(x.value == 7 && s == Status::ok && g.status == Status::cancelled);
  else
    REQUIRE_THAT(g.value == 9 && s == Status::cancelled);
  b.check();
}

SCENARIO("foreign select meets a select, both with input and output; cancel (rules 5.3, 6.4, 6.6)",
         2) {
  Balance b;
  Chan c, d;
  Foreigner f;
  Process p;
  Process::Chosen x, y;
  spawn("F", [&] {
    x = f.select(c, d, 9);
    if (x.index < 0) p.cancel();
  });
  spawn("P", [&] {
    p.in(d), p.out(c, 7);
    y = p.go();
  });
  spawn("X", [&] { f.cancel(); });
  run();
  REQUIRE_THAT((x.status == Status::ok) == (y.status == Status::ok));
  if (x.status == Status::ok)
    REQUIRE_THAT(x.index != y.index && x.value + y.value == (x.index == 0 ? 7u : 9u));
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SAMPLED("foreign select told by two channels at once (rules 5.1, 6.6)", 1) {
  Balance b;
  Chan c, d;
  Foreigner f;
  Process w, v, x;
  std::uint32_t sum = 0;
  // Both writers at a select with two inputs notify the reader. The reader takes one value, and a
  // later reader receives the other value.
  spawn("F", [&] {
    const auto y = f.select(c, d, 9);
    REQUIRE_THAT(y.status == Status::ok);
    sum += y.index == 0 ? y.value : 0;
    if (y.index == 0)
      v.cancel();
    else
      w.cancel();
  });
  spawn("W", [&] { w.write(c, 7); });
  spawn("X", [&] { x.write(c, 7); });
  spawn("V", [&] {
    const Got g = v.read(d);
    if (g.ok()) REQUIRE_THAT(g.value == 9);
    x.cancel(), w.cancel();
  });
  run();
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() + d.transfers() == 1);
  b.check();
}

SCENARIO("foreign readers meet computed outputs (rules 5.8, 6.6)", 1) {
  Balance b;
  Chan c, d;
  Foreigner f, e;
  f.computed = e.computed = true;
  Process w, v;
  std::uint32_t sum = 0;
  spawn("F", [&] { sum += f.read(c).value; });
  spawn("E", [&] {
    const auto x = e.select(c, d, 9);
    REQUIRE_THAT(x.status == Status::ok && x.index == 0);
    sum += x.value;
  });
  spawn("W", [&] { REQUIRE_THAT(w.compute(c, [] { return 1u; }) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.compute(c, [] { return 10u; }) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c) && empty(d));
  b.check();
}

SCENARIO("foreign reader that waits for a computed value is cancelled too late (rules 5.8, 6.3)",
         2) {
  Balance b;
  Chan c, d;
  Foreigner f;
  f.computed = true;
  Process w;
  Got g;
  Status s{};
  const bool selecting = choose(2) != 0;
  spawn("F", [&] {
    if (selecting) {
      const auto x = f.select(c, d, 9);
      g = {x.status, x.value};
    } else {
      g = f.read(c);
    }
    if (!g.ok()) w.cancel();
  });
  spawn("W", [&] { s = w.compute(c, [] { return 7u; }); });
  spawn("X", [&] { f.cancel(); });
  run();
  REQUIRE_THAT(g.ok() == (s == Status::ok) && g.value == (g.ok() ? 7u : 0u) && empty(c) &&
               empty(d));
  b.check();
}

}  // namespace weft::test
