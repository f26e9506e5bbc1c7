// Standing alternatives (rule 5.9): an alternative that reads each of its two words a second time,
// other readers beside it, standing parties at both sides of a channel, ends.
#pragma once

namespace weft::test {

SAMPLED("standing meets two writers: everything arrives once (rule 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, w, v;
  name(c, "c"), name(d, "d"), name(s, "S");
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    for (int k = 0; k < 2; ++k) {
      const auto x = s.next();
      REQUIRE_THAT(x.status == Status::ok);
      sum += x.value;
    }
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(d, 10) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c) && empty(d));
  b.check();
}

SCENARIO("standing meets one writer that writes often (rule 5.9)", 3) {
  Balance b;
  Chan c;
  Process s, w;
  spawn("S", [&] {
    s.in(c);
    s.stand();
    for (std::uint32_t k = 1; k <= 3; ++k) REQUIRE_THAT(s.next().value == k);
    s.unstand();
  });
  spawn("W", [&] {
    for (std::uint32_t k = 1; k <= 3; ++k) REQUIRE_THAT(w.write(c, k) == Status::ok);
  });
  run();
  REQUIRE_THAT(empty(c));
  b.check();
}

SAMPLED("standing and a plain reader compete for two writers (rules 1.2, 5.9)", 1) {
  Balance b;
  Chan c;
  Process s, r, w, v;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.in(c);
    s.stand();
    sum += s.next().value;
    s.unstand();
  });
  spawn("R", [&] { sum += r.read(c).value; });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(c, 10) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SAMPLED("standing output meets plain readers (rule 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, r, q;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.out(c, 1), s.out(d, 10);
    s.stand();
    for (int k = 0; k < 2; ++k) {
      const auto x = s.next();
      REQUIRE_THAT(x.status == Status::ok);
      s.standing().enable(static_cast<std::uint32_t>(x.index), false);
    }
    s.unstand();
  });
  spawn("R", [&] { sum += r.read(c).value; });
  spawn("Q", [&] { sum += q.read(d).value; });
  run();
  REQUIRE_THAT(sum == 11 && empty(c) && empty(d));
  b.check();
}

SCENARIO("standing meets a select with input and output guards (rules 5.3, 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, p;
  Process::Chosen x, y;
  spawn("S", [&] {
    s.in(c), s.out(d, 7);
    s.stand();
    x = s.next();
    s.unstand();
  });
  spawn("P", [&] {
    p.in(d), p.out(c, 8);
    y = p.go();
  });
  run();
  REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok && x.index != y.index);
  REQUIRE_THAT(x.value + y.value == (x.index == 0 ? 8u : 7u) && empty(c) && empty(d));
  b.check();
}

SCENARIO("standing meets standing: the second side enrols each time (rules 5.3, 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, p;
  std::uint32_t ok = 0, got = 0;
  const auto act = [&](Process& me, Chan& from, Chan& to, std::uint32_t v) {
    me.in(from), me.out(to, v);
    me.stand();
    for (int k = 0; k < 2; ++k) {
      const auto x = me.next();
      REQUIRE_THAT(x.status == Status::ok);
      ++ok;
      got += x.value;
      if (x.index == 1) me.refill(1, v);
    }
    me.unstand();
  };
  spawn("S", [&] { act(s, c, d, 1); });
  spawn("P", [&] { act(p, d, c, 1); });
  run();
  REQUIRE_THAT(ok == 4 && got == 2 && c.transfers() + d.transfers() == 2 && empty(c) && empty(d));
  b.check();
}

SCENARIO("standing meets standing and a plain writer (rule 5.9)", 2) {
  Balance b;
  Chan c;
  Process s, p, w;
  std::uint32_t got = 0;
  spawn("S", [&] {
    s.in(c);
    s.stand();
    got += s.next().value;
    got += s.next().value;
    s.unstand();
  });
  spawn("P", [&] {
    p.out(c, 1);
    p.stand();
    REQUIRE_THAT(p.next().status == Status::ok);
    p.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 10) == Status::ok); });
  run();
  REQUIRE_THAT(got == 11 && empty(c));
  b.check();
}

SAMPLED("two standing readers and two writers (rules 1.2, 5.9)", 1) {
  Balance b;
  Chan c;
  Process s, t, w, v;
  std::uint32_t sum = 0;
  const auto read_one = [&](Process& p) {
    p.in(c);
    p.stand();
    sum += p.next().value;
    p.unstand();
  };
  spawn("S", [&] { read_one(s); });
  spawn("T", [&] { read_one(t); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(c, 10) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO("standing over a buffer, beside an extended reader (rules 1.6, 5.9)", 2) {
  Balance b;
  {
    Buffered<Chan> f{1};
    Process s, r, w;
    std::uint32_t sum = 0;
    spawn("S", [&] {
      s.in(f.c);
      s.stand();
      sum += s.next().value;
      s.unstand();
    });
    spawn("R",
          [&] { REQUIRE_THAT(r.extended(f.c, [&](std::uint32_t v) { sum += v; }) == Status::ok); });
    spawn("W",
          [&] { REQUIRE_THAT(w.write(f.c, 1) == Status::ok && w.write(f.c, 10) == Status::ok); });
    run();
    REQUIRE_THAT(sum == 11 && empty(f.c));
  }
  b.check();
}

SCENARIO("standing output over buffers of each policy (rules 1.4, 5.9)", 2) {
  Balance b;
  {
    const std::uint32_t policy = choose(3);
    Buffered<Chan> f{1, static_cast<Overflow>(policy)};
    f.c.first_writer();
    Process s, r;
    std::uint32_t got = 0;
    spawn("S", [&] {
      s.out(f.c, 1);
      s.stand();
      for (std::uint32_t k = 0; k < 3; ++k) {
        REQUIRE_THAT(s.next().status == Status::ok);
        s.refill(0, 1);
      }
      s.unstand();
      f.c.drop_writer();
    });
    spawn("R", [&] {
      while (r.read(f.c).ok()) ++got;
    });
    run();
    REQUIRE_THAT(got + f.ring.dropped == 3 && empty(f.c));
    if (policy == 0) REQUIRE_THAT(got == 3);
  }
  b.check();
}

SCENARIO("standing meets computed outputs: the second writer is not forgotten (rules 5.8, 5.9)",
         2) {
  Balance b;
  Chan c;
  Process s, w, v;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.in(c);
    s.stand();
    sum += s.next().value;
    sum += s.next().value;
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.compute(c, [] { return 1u; }) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.compute(c, [] { return 10u; }) == Status::ok); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO("cancel meets standing meets writer (rules 5.9, 6.4)", 2) {
  Balance b;
  Chan c, d;
  Process s, w;
  std::uint32_t got = 0;
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    auto x = s.next();
    if (x.index < 0) x = s.next();
    got = x.value;
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  spawn("X", [&] { s.cancel(); });
  run();
  REQUIRE_THAT(got == 7 && empty(c) && empty(d));
  b.check();
}

SCENARIO("poison meets standing: it ends at once and every time (rules 4.2, 5.6, 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, w;
  Status sent{};
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    auto x = s.next();
    if (x.status == Status::ok) {
      REQUIRE_THAT(x.index == 0 && x.value == 7);
      x = s.next();
    }
    REQUIRE_THAT(x.status == Status::poisoned && x.index == 1);
    x = s.next();
    if (x.status == Status::ok) x = s.next();
    REQUIRE_THAT(x.status == Status::poisoned && x.index == 1);
    s.unstand();
    w.cancel();
  });
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("X", [&] { d.poison(1); });
  run();
  REQUIRE_THAT((sent == Status::ok) == (c.transfers() == 1) && empty(c) && empty(d));
  b.check();
}

SCENARIO("retire meets standing: what blocked writers hold is read first (rules 3.1, 3.2, 5.9)",
         2) {
  Balance b;
  Chan c;
  c.first_writer();
  c.another_writer();
  Process s, w, v;
  std::uint32_t sum = 0;
  spawn("S", [&] {
    s.in(c);
    s.stand();
    for (;;) {
      const auto x = s.next();
      if (x.status != Status::ok) {
        REQUIRE_THAT(x.status == Status::retired);
        break;
      }
      sum += x.value;
    }
    s.unstand();
  });
  spawn("W", [&] {
    REQUIRE_THAT(w.write(c, 1) == Status::ok);
    c.drop_writer();
  });
  spawn("V", [&] {
    REQUIRE_THAT(v.write(c, 10) == Status::ok);
    c.drop_writer();
  });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO("standing with a time limit meets a writer (rules 5.7, 5.9)", 2) {
  Balance b;
  Chan c;
  Process s, w;
  std::uint32_t got = 0;
  spawn("S", [&] {
    s.in(c), s.timer(1000);
    s.stand();
    auto x = s.next();
    if (x.index == 1) {
      REQUIRE_THAT(x.status == Status::timed_out);
      s.standing().enable(1, false);
      x = s.next();
    }
    got = x.value;
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  run();
  REQUIRE_THAT(got == 7 && empty(c));
  b.check();
}

SCENARIO("standing: a disabled guard is passed over, enabling makes it ready (rules 5.2, 5.9)", 2) {
  Balance b;
  Chan c, d;
  Process s, w, v;
  spawn("S", [&] {
    s.in(c), s.in(d);
    s.stand();
    s.standing().enable(0, false);
    auto x = s.next();
    REQUIRE_THAT(x.index == 1 && x.value == 10);
    s.standing().enable(0, true);
    x = s.next();
    REQUIRE_THAT(x.index == 0 && x.value == 1);
    s.unstand();
  });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 1) == Status::ok); });
  spawn("V", [&] { REQUIRE_THAT(v.write(d, 10) == Status::ok); });
  run();
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

}  // namespace weft::test
