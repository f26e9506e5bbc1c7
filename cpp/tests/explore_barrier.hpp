// Barriers (rule 8): plain and choosing parties, resignation, cancellation.
#pragma once

namespace weft::test {

using Barrier = core::BarrierEngine<Shared>;

SCENARIO("barrier, three plain parties, two phases (rule 8.1)", 2) {
  Barrier bar{3};
  Process p[3];
  std::uint32_t phase[3] = {};
  const auto act = [&](int i) {
    for (std::uint32_t k = 1; k <= 2; ++k) {
      phase[i] = k;
      REQUIRE_THAT(p[i].sync(bar) == Status::ok);
      for (std::uint32_t q : phase) REQUIRE_THAT(q >= k);
    }
  };
  spawn("A", [&] { act(0); });
  spawn("B", [&] { act(1); });
  spawn("C", [&] { act(2); });
  run();
  REQUIRE_THAT(bar.phases() == 2);
}

SCENARIO("barrier with plain and choosing parties: all at once (rule 8.4)", 3) {
  Barrier bar{3};
  Chan c;
  Process a, p, q;
  Process::Chosen x, y;
  spawn("A", [&] { REQUIRE_THAT(a.sync(bar) == Status::ok); });
  spawn("P", [&] {
    p.barrier(bar), p.in(c);
    x = p.go();
  });
  spawn("Q", [&] {
    q.in(c), q.barrier(bar);
    y = q.go();
  });
  run();
  REQUIRE_THAT(x.index == 0 && y.index == 1 && bar.phases() == 1 && empty(c));
}

SCENARIO("barrier guards meet channel guards: all three, or the two by channel (rules 5.1, 8.4)",
         2) {
  Balance b;
  Barrier bar{3};
  Chan c;
  Process a, p, q;
  Process::Chosen x, y;
  Status s{};
  spawn("A", [&] { s = a.sync(bar); });
  spawn("P", [&] {
    p.barrier(bar), p.in(c);
    x = p.go();
    if (x.index == 1) a.cancel();
  });
  spawn("Q", [&] {
    q.out(c, 7), q.barrier(bar);
    y = q.go();
  });
  run();
  if (x.index == 0)
    REQUIRE_THAT(y.index == 1 && s == Status::ok && bar.phases() == 1);
  else
    REQUIRE_THAT(y.index == 0 && x.value == 7 && s == Status::cancelled && bar.phases() == 0);
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("cancel meets barrier: the phase needs another arrival (rule 8.3)", 3) {
  Barrier bar{2};
  Process a, p;
  Status first{}, s{};
  spawn("A", [&] {
    first = s = a.sync(bar);
    if (s == Status::cancelled) s = a.sync(bar);
  });
  spawn("P", [&] { REQUIRE_THAT(p.sync(bar) == Status::ok); });
  spawn("X", [&] { a.cancel(); });
  run();
  REQUIRE_THAT(s == Status::ok && bar.phases() == 1);
}

SCENARIO("cancel meets a barrier guard (rules 5.10, 8.3)", 2) {
  Barrier bar{2};
  Chan c;
  Process a, p;
  Process::Chosen x;
  Status s{};
  spawn("P", [&] {
    p.barrier(bar), p.in(c);
    x = p.go();
    if (x.index < 0) a.cancel();
  });
  spawn("A", [&] { s = a.sync(bar); });
  spawn("X", [&] { p.cancel(); });
  run();
  REQUIRE_THAT((x.index == 0) == (s == Status::ok) && bar.phases() == (x.index == 0 ? 1u : 0u) &&
               empty(c));
}

SCENARIO("resign meets select: the last one missing completes the phase (rules 8.2, 8.4)", 3) {
  Barrier bar{3};
  Chan c;
  Process a, p;
  Process::Chosen x;
  spawn("A", [&] { REQUIRE_THAT(a.sync(bar) == Status::ok); });
  spawn("P", [&] {
    p.barrier(bar), p.in(c);
    x = p.go();
  });
  spawn("X", [&] { REQUIRE_THAT(bar.resign()); });
  run();
  REQUIRE_THAT(x.index == 0 && bar.phases() == 1 && bar.enrolled() == 2 && empty(c));
}

SCENARIO("resign meets a select that commits elsewhere (rules 5.1, 8.2)", 2) {
  Balance b;
  Barrier bar{3};
  Chan c;
  Process a, p, w;
  Process::Chosen x;
  Status s{};
  spawn("A", [&] { s = a.sync(bar); });
  spawn("P", [&] {
    p.barrier(bar), p.in(c);
    x = p.go();
    if (x.index == 0) w.cancel();
    if (x.index == 1) REQUIRE_THAT(bar.resign());
  });
  spawn("W", [&] { w.write(c, 7); });
  spawn("X", [&] { REQUIRE_THAT(bar.resign()); });
  run();
  REQUIRE_THAT(s == Status::ok && bar.phases() == 1 && empty(c));
  b.check();
}

SAMPLED(
    "barrier: one choice commits elsewhere while the phase completes, the other stays winnable "
    "(rules 5.1, 8.4)",
    1) {
  Balance b;
  Barrier bar{3};
  Chan c, d;
  Process a, p, q, w, v;
  const auto act = [&](Process& me, Chan& from, Process& writer) {
    me.barrier(bar), me.in(from);
    const Process::Chosen x = me.go();
    REQUIRE_THAT(x.status == Status::ok);
    if (x.index == 0)
      writer.cancel();
    else
      REQUIRE_THAT(bar.resign());
  };
  spawn("P", [&] { act(p, c, w); });
  spawn("Q", [&] { act(q, d, v); });
  spawn("A", [&] { REQUIRE_THAT(a.sync(bar) == Status::ok); });
  spawn("W", [&] { w.write(c, 7); });
  spawn("V", [&] { v.write(d, 8); });
  run();
  REQUIRE_THAT(bar.phases() == 1 && empty(c) && empty(d));
  b.check();
}

SCENARIO("two barriers, guards in opposite order (rules 5.1, 8.4)", 2) {
  Barrier a{2}, z{2};
  Process p, q;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.barrier(a), p.barrier(z);
    x = p.go();
  });
  spawn("Q", [&] {
    q.barrier(z), q.barrier(a);
    y = q.go();
  });
  run();
  REQUIRE_THAT(x.index == 1 - y.index && a.phases() + z.phases() == 1);
}

SCENARIO("the same barrier twice in one select is one arrival (rules 5.5, 8.4)", 2) {
  Barrier bar{2};
  Process p, q;
  Process::Chosen x;
  spawn("P", [&] {
    p.barrier(bar), p.barrier(bar);
    x = p.go();
  });
  spawn("Q", [&] { REQUIRE_THAT(q.sync(bar) == Status::ok); });
  run();
  REQUIRE_THAT(x.index >= 0 && x.status == Status::ok && bar.phases() == 1);
}

SCENARIO("a standing alternative with a barrier guard (rules 5.9, 8.4)", 2) {
  Balance b;
  Barrier bar{2};
  Chan c;
  Process s, q, w;
  int at_bar = 0, at_c = 0;
  spawn("S", [&] {
    s.in(c), s.barrier(bar);
    s.stand();
    for (int k = 0; k < 2; ++k) {
      const auto x = s.next();
      REQUIRE_THAT(x.status == Status::ok);
      (x.index == 0 ? at_c : at_bar)++;
    }
    s.unstand();
  });
  spawn("Q", [&] { REQUIRE_THAT(q.sync(bar) == Status::ok); });
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 7) == Status::ok); });
  run();
  REQUIRE_THAT(at_bar == 1 && at_c == 1 && empty(c));
  b.check();
}

}  // namespace weft::test
