// Plain operations: rendezvous, cancellation, poison, retire, extended read, computed output.
#pragma once

namespace weft::test {

SCENARIO("rendezvous 1x1: the value arrives, both go on (rule 1.1)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  name(c, "c"), name(w, "W"), name(r, "R");
  Got got;
  Status sent{};
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("R", [&] { got = r.read(c); });
  run();
  REQUIRE_THAT(sent == Status::ok && got.ok() && got.value == 7);
  REQUIRE_THAT(empty(c) && c.transfers() == 1);
  b.check();
}

SCENARIO("rendezvous 2x1: both values arrive, each once (rule 1.1)", 3) {
  Balance b;
  Chan c;
  Process w1, w2, r;
  std::uint32_t sum = 0;
  spawn("W1", [&] { REQUIRE_THAT(w1.write(c, 1) == Status::ok); });
  spawn("W2", [&] { REQUIRE_THAT(w2.write(c, 10) == Status::ok); });
  spawn("R", [&] {
    sum += r.read(c).value;
    sum += r.read(c).value;
  });
  run();
  REQUIRE_THAT(sum == 11 && empty(c) && c.transfers() == 2);
  b.check();
}

SCENARIO("rendezvous 2x2: every value arrives once (rule 1.1)", 2) {
  Balance b;
  Chan c;
  Process w1, w2, r1, r2;
  Got g1, g2;
  spawn("W1", [&] { REQUIRE_THAT(w1.write(c, 1) == Status::ok); });
  spawn("W2", [&] { REQUIRE_THAT(w2.write(c, 10) == Status::ok); });
  spawn("R1", [&] { g1 = r1.read(c); });
  spawn("R2", [&] { g2 = r2.read(c); });
  run();
  REQUIRE_THAT(g1.ok() && g2.ok() && g1.value + g2.value == 11 && empty(c));
  b.check();
}

SCENARIO("a watch is told of a writer, whoever of the two was first (wire 5.2)", 2) {
  Balance b;
  Chan c;
  Process w, r;
  spawn("writes", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  spawn("watches", [&] {
    REQUIRE_THAT(r.watch<Side::in>(c) == Status::ok);
    REQUIRE_THAT(r.read(c).value == 7);
  });
  run();
  REQUIRE_THAT(empty(c) && c.transfers() == 1);
  b.check();
}

SCENARIO("values of one writer keep their order (rule 1.2)", 2) {
  Balance b;
  Chan c;
  Process w, r;
  spawn("W", [&] {
    for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(w.write(c, i) == Status::ok);
  });
  spawn("R", [&] {
    for (std::uint32_t i = 1; i <= 3; ++i) REQUIRE_THAT(r.read(c).value == i);
  });
  run();
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("cancel meets commit: a plain write is withdrawn whole or completes (rules 6.2-6.4)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  Status sent{};
  Got got;
  spawn("W", [&] {
    sent = w.write(c, 7);
    if (sent != Status::ok) REQUIRE_THAT(w.write(c, 8) == Status::ok);
  });
  spawn("R", [&] { got = r.read(c); });
  spawn("X", [&] { w.cancel(); });
  run();
  REQUIRE_THAT(got.ok());
  if (sent == Status::ok)
    REQUIRE_THAT(got.value == 7);
  else
    REQUIRE_THAT(sent == Status::cancelled && got.value == 8 && !w.cancel_pending());
  REQUIRE_THAT(empty(c) && c.transfers() == 1);
  b.check();
}

SCENARIO("cancel meets commit: a plain read is withdrawn whole or completes (rules 6.2-6.4)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  Got got;
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  spawn("R", [&] {
    got = r.read(c);
    if (!got.ok()) {
      REQUIRE_THAT(got.status == Status::cancelled);
      got = r.read(c);
    }
  });
  spawn("X", [&] { r.cancel(); });
  run();
  REQUIRE_THAT(got.ok() && got.value == 7 && empty(c) && c.transfers() == 1);
  b.check();
}

SCENARIO("poison meets plain operations: all end, the delivered value counts once (rules 4.1, 4.2)",
         3) {
  Balance b;
  Chan c;
  Process w, r;
  Status sent{};
  Got got;
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("R", [&] { got = r.read(c); });
  spawn("X", [&] { c.poison(1); });
  run();
  REQUIRE_THAT((sent == Status::ok) == got.ok());
  REQUIRE_THAT(sent == Status::ok || sent == Status::poisoned);
  REQUIRE_THAT(got.ok() ? got.value == 7 : got.status == Status::poisoned);
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("retiring writer meets iteration: everything arrives, then it ends (rules 3.1, 3.2, 3.4)",
         3) {
  Balance b;
  Chan c;
  c.first_writer();
  c.first_reader();
  Process w, r;
  std::uint32_t sum = 0;
  Status last{};
  spawn("W", [&] {
    for (std::uint32_t i = 1; i <= 2; ++i) REQUIRE_THAT(w.write(c, i) == Status::ok);
    c.drop_writer();
  });
  spawn("R", [&] {
    for (;;) {
      const Got g = r.read(c);
      if (!g.ok()) {
        last = g.status;
        break;
      }
      sum += g.value;
    }
    c.drop_reader();
  });
  run();
  REQUIRE_THAT(sum == 3 && last == Status::retired && empty(c));
  b.check();
}

SAMPLED(
    "two writers retire, two readers iterate: everything arrives once, all end (rules 2.5, 3.1)",
    1) {
  Balance b;
  Chan c;
  c.first_writer();
  c.another_writer();
  Process w1, w2, r1, r2;
  std::uint32_t sum = 0;
  const auto writer = [&](Process& w, std::uint32_t v) {
    REQUIRE_THAT(w.write(c, v) == Status::ok);
    c.drop_writer();
  };
  const auto reader = [&](Process& r) {
    Got g;
    while ((g = r.read(c)).ok()) sum += g.value;
    REQUIRE_THAT(g.status == Status::retired);
  };
  spawn("W1", [&] { writer(w1, 1); });
  spawn("W2", [&] { writer(w2, 10); });
  spawn("R1", [&] { reader(r1); });
  spawn("R2", [&] { reader(r2); });
  run();
  REQUIRE_THAT(sum == 11 && empty(c));
  b.check();
}

SCENARIO("a write that waits when its end is closed still delivers (rule 3.2)", 3) {
  Balance b;
  Chan c;
  c.first_writer();
  Process w, r;
  Status sent{};
  Got got;
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("X", [&] {
    bool waits = false;
    c.with_lock([&](core::Queue&, core::Queue& q) { waits = !q.empty(); });
    if (waits) c.drop_writer();
  });
  spawn("R", [&] { got = r.read(c); });
  run();
  REQUIRE_THAT(sent == Status::ok && got.ok() && empty(c));
  b.check();
}

SCENARIO("the last reader goes: waiting and later writes end with their value (rule 3.3)", 3) {
  Balance b;
  Chan c;
  c.first_reader();
  Process w1, w2, r;
  Status s1{}, s2{};
  Got got;
  spawn("W1", [&] { s1 = w1.write(c, 1); });
  spawn("W2", [&] { s2 = w2.write(c, 10); });
  spawn("R", [&] {
    got = r.read(c);
    c.drop_reader();
  });
  run();
  REQUIRE_THAT(got.ok());
  REQUIRE_THAT((s1 == Status::ok) + (s2 == Status::ok) == 1);
  REQUIRE_THAT(s1 == (got.value == 1 ? Status::ok : Status::retired));
  REQUIRE_THAT(s2 == (got.value == 10 ? Status::ok : Status::retired));
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("a killed reader: the writer gets PeerDied, not Retired (rule 4.5)", 3) {
  Balance b;
  Chan c;
  c.first_reader();
  c.another_reader();
  Process w;
  Status s{};
  spawn("W", [&] { s = w.write(c, 1); });
  spawn("K", [&] { c.drop_reader(true); });
  spawn("Q", [&] { c.drop_reader(false); });
  run();
  REQUIRE_THAT(s == Status::died && empty(c));
  b.check();
}

SCENARIO("extended read: the writer goes on after the block (rule 1.6)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  bool block_over = false;
  spawn("W", [&] {
    REQUIRE_THAT(w.write(c, 7) == Status::ok);
    REQUIRE_THAT(block_over);
  });
  spawn("R", [&] {
    REQUIRE_THAT(r.extended(c, [&](std::uint32_t v) {
      REQUIRE_THAT(v == 7);
      block_over = true;
    }) == Status::ok);
  });
  run();
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("extended read: a held writer cannot be cancelled, poisoned or retired (rules 1.6, 6.3)",
         2) {
  Balance b;
  Chan c;
  c.first_reader();
  Process w, r;
  Status sent{}, read{};
  const std::uint32_t how = choose(3);
  bool block_over = false;
  spawn("W", [&] {
    sent = w.write(c, 7);
    if (sent == Status::ok) REQUIRE_THAT(block_over);
  });
  spawn("R", [&] {
    read = r.extended(c, [&](std::uint32_t) {
      if (how == 2) c.drop_reader();
      block_over = true;
    });
  });
  spawn("X", [&] {
    if (how == 0) w.cancel(), r.cancel();
    if (how == 1) c.poison(1);
  });
  run();
  REQUIRE_THAT((sent == Status::ok) == (read == Status::ok));
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("computed output: made once after the commit, before the reader goes on (rule 5.8)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  int made = 0;
  Got got;
  spawn("W", [&] { REQUIRE_THAT(w.compute(c, [&] { return ++made, 7u; }) == Status::ok); });
  spawn("R", [&] {
    got = r.read(c);
    REQUIRE_THAT(made == 1);
  });
  run();
  REQUIRE_THAT(got.ok() && got.value == 7 && made == 1 && empty(c));
  b.check();
}

SCENARIO("computed output that fails: nothing is sent, the reader gets PeerDied (rule 5.8)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  Got got;
  spawn("W", [&] { REQUIRE_THAT(w.compute(c, [] { return 0u; }) == Status::died); });
  spawn("R", [&] { got = r.read(c); });
  run();
  REQUIRE_THAT(got.status == Status::died && empty(c));
  b.check();
}

SCENARIO("computed output meets extended read: made, held, released (rules 1.6, 5.8)", 3) {
  Balance b;
  Chan c;
  Process w, r;
  bool made = false, over = false;
  spawn("W", [&] {
    REQUIRE_THAT(w.compute(c, [&] { return made = true, 7u; }) == Status::ok);
    REQUIRE_THAT(over);
  });
  spawn("R", [&] {
    REQUIRE_THAT(r.extended(c, [&](std::uint32_t v) {
      REQUIRE_THAT(v == 7 && made);
      over = true;
    }) == Status::ok);
  });
  run();
  REQUIRE_THAT(empty(c));
  b.check();
}

}  // namespace weft::test
