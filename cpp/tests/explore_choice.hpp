// Choices: choice meets choice (input and output guards in every process), cancellation, time
// limits, ends, barriers.
#pragma once

namespace weft::test {

// Two selects in opposite directions over the same two channels: exactly one channel carries
// exactly one value.
SCENARIO("choice meets choice: 2 processes, 2 channels, input and output in each (rules 5.1, 5.3)",
         3) {
  Balance b;
  Chan c, d;
  Process p, q;
  name(c, "c"), name(d, "d"), name(p, "P"), name(q, "Q");
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.out(d, 7);
    x = p.go();
  });
  spawn("Q", [&] {
    q.in(d), q.out(c, 8);
    y = q.go();
  });
  run();
  REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok);
  if (x.index == 0)
    REQUIRE_THAT(y.index == 1 && x.value == 8);
  else
    REQUIRE_THAT(y.index == 0 && y.value == 7);
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() + d.transfers() == 1);
  b.check();
}

// Three processes could meet in a ring. Two of the processes meet; the third process is cancelled
// at the end or meets no party; a fourth process takes the remaining value.
SCENARIO("choice meets choice: 3 processes, 2 channels, input and output in each (rules 5.1, 5.3)",
         2) {
  Balance b;
  Chan c, d;
  Process p, q, r, last;
  name(c, "c"), name(d, "d"), name(p, "P"), name(q, "Q"), name(r, "R");
  std::uint32_t sent = 0, received = 0, done = 0;
  const auto act = [&](Process& me, Chan& from, Chan& to, std::uint32_t v) {
    me.in(from), me.out(to, v);
    const Process::Chosen x = me.go();
    REQUIRE_THAT(x.status == Status::ok || x.status == Status::cancelled);
    if (x.status == Status::ok && x.index == 1) sent += v;
    if (x.status == Status::ok && x.index == 0) received += x.value;
    // Two of the three processes can meet; the second of the two to finish cancels the third
    // process.
    if (++done == 2)
      for (Process* o : {&p, &q, &r})
        if (o != &me) o->cancel();
  };
  spawn("P", [&] { act(p, c, d, 1); });
  spawn("Q", [&] { act(q, d, c, 10); });
  spawn("R", [&] { act(r, c, d, 100); });
  run();
  REQUIRE_THAT(sent == received && sent != 0);
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() + d.transfers() == 1);
  b.check();
}

// P's word is LOCKED while P tries to claim Q, Q is cancelled, and R arrives: R must wait for P's
// word, and must not skip P. Only this scenario, with an input and an output guard in every
// process, detects a skip.
SCENARIO("a locked peer is waited for: 3 choices, one cancelled (rules 5.1, 5.3, 6.4)", 2) {
  Balance b;
  Chan c, d;
  Process p, q, r;
  name(c, "c"), name(d, "d"), name(p, "P"), name(q, "Q"), name(r, "R");
  Process::Chosen x, y, z;
  spawn("P", [&] {
    p.in(c), p.out(d, 1);
    x = p.go();
  });
  spawn("Q", [&] {
    q.in(d), q.out(c, 10);
    y = q.go();
    if (y.status == Status::ok) r.cancel();
  });
  spawn("R", [&] {
    r.in(d), r.out(c, 100);
    z = r.go();
    if (z.status == Status::ok) q.cancel();
  });
  spawn("X", [&] { q.cancel(); });
  run();
  REQUIRE_THAT(x.status == Status::ok);
  REQUIRE_THAT((y.status == Status::ok) != (z.status == Status::ok));
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() + d.transfers() == 1);
  b.check();
}

SCENARIO("a locked peer is waited for: four parties, three channels (rules 5.1, 5.3)", 2) {
  Balance b;
  Chan c, d, e;
  Process p, q, r, t;
  name(c, "c"), name(d, "d"), name(e, "e"), name(p, "P"), name(q, "Q");
  Process::Chosen x, y;
  Got g;
  Status s{};
  spawn("P", [&] {
    p.out(e, 1), p.in(c);
    x = p.go();
    if (x.index == 1) r.cancel(), t.cancel();
  });
  spawn("Q", [&] {
    q.out(c, 10), q.in(d);
    y = q.go();
  });
  spawn("R", [&] { g = r.read(e); });
  spawn("T", [&] { s = t.write(d, 100); });
  run();
  REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok);
  if (x.index == 1)
    REQUIRE_THAT(y.index == 0 && x.value == 10 && g.status == Status::cancelled &&
                 s == Status::cancelled);
  else
    REQUIRE_THAT(y.index == 1 && y.value == 100 && g.value == 1 && s == Status::ok);
  REQUIRE_THAT(empty(c) && empty(d) && empty(e));
  b.check();
}

SCENARIO("choice meets choice both ways round, addresses swapped (rule 5.3)", 2) {
  Balance b;
  Chan c, d;
  Process p, q;
  Process::Chosen x, y;
  const std::uint32_t mine = choose(2), theirs = choose(2);
  spawn("P", [&] {
    if (mine)
      p.in(c), p.out(d, 7);
    else
      p.out(d, 7), p.in(c);
    x = p.go();
  });
  spawn("Q", [&] {
    if (theirs)
      q.in(d), q.out(c, 8);
    else
      q.out(c, 8), q.in(d);
    y = q.go();
  });
  run();
  REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok && x.value + y.value >= 7);
  REQUIRE_THAT(empty(c) && empty(d) && c.transfers() + d.transfers() == 1);
  b.check();
}

SCENARIO("choice meets plain reader and plain writer (rules 5.1, 5.10)", 2) {
  Balance b;
  Chan c, d;
  Process p, w, r;
  std::uint32_t in = 0, out = 0;
  spawn("P", [&] {
    for (int k = 0; k < 2; ++k) {
      // Each of the two guards is to be chosen once: when the input has been chosen, only the
      // output is left, and vice versa.
      if (!in) p.in(c);
      if (!out) p.out(d, 7);
      const bool had_in = !in;
      const Process::Chosen x = p.go();
      REQUIRE_THAT(x.status == Status::ok);
      if (had_in && x.index == 0)
        in = x.value;
      else
        out = 7;
    }
  });
  Got got;
  spawn("W", [&] { REQUIRE_THAT(w.write(c, 5) == Status::ok); });
  spawn("R", [&] { got = r.read(d); });
  run();
  REQUIRE_THAT(in == 5 && out == 7 && got.value == 7 && empty(c) && empty(d));
  b.check();
}

SCENARIO("cancel meets commit: a choice is withdrawn whole or completes (rules 5.10, 6.2-6.4)", 3) {
  Balance b;
  Chan c, d;
  Process p, q;
  Process::Chosen x;
  Status sent{};
  spawn("P", [&] {
    p.in(c), p.out(d, 9);
    x = p.go();
  });
  spawn("W", [&] { sent = q.write(c, 7); });
  spawn("X", [&] {
    p.cancel();
    q.cancel();
  });
  run();
  REQUIRE_THAT((sent == Status::ok) == (x.status == Status::ok));
  if (x.status == Status::ok)
    REQUIRE_THAT(x.index == 0 && x.value == 7);
  else
    REQUIRE_THAT(x.index == -1 && sent == Status::cancelled);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("cancel meets choice meets choice (rules 5.1, 6.4)", 2) {
  Balance b;
  Chan c, d;
  Process p, q;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.out(d, 7);
    x = p.go();
    if (x.index < 0) q.cancel();
  });
  spawn("Q", [&] {
    q.in(d), q.out(c, 8);
    y = q.go();
  });
  spawn("X", [&] { p.cancel(); });
  run();
  REQUIRE_THAT((x.status == Status::ok) == (y.status == Status::ok));
  REQUIRE_THAT(c.transfers() + d.transfers() == (x.status == Status::ok ? 1u : 0u));
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("a time limit meets commit (rules 5.1, 5.7)", 3) {
  Balance b;
  Chan c;
  Process p, q;
  Process::Chosen x;
  Status sent{};
  spawn("P", [&] {
    p.in(c), p.timer(1000);
    x = p.go();
    if (x.index == 1) q.cancel();
  });
  spawn("W", [&] { sent = q.write(c, 7); });
  run();
  if (x.index == 0)
    REQUIRE_THAT(sent == Status::ok && x.value == 7);
  else
    REQUIRE_THAT(x.index == 1 && x.status == Status::timed_out && sent == Status::cancelled);
  REQUIRE_THAT(empty(c));
  b.check();
}

SCENARIO("poison meets choice: it ends with the guard named, nobody is left (rules 4.2, 5.6)", 3) {
  Balance b;
  Chan c, d;
  Process p, w;
  Process::Chosen x;
  Status sent{};
  spawn("P", [&] {
    p.in(c), p.out(d, 9);
    x = p.go();
  });
  spawn("W", [&] { sent = w.write(c, 7); });
  spawn("X", [&] { c.poison(1); });
  run();
  REQUIRE_THAT(x.index == 0);
  if (x.status == Status::ok)
    REQUIRE_THAT(x.value == 7 && sent == Status::ok);
  else
    REQUIRE_THAT(x.status == Status::poisoned && sent == Status::poisoned);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("poison meets choice meets choice (rules 4.2, 5.6)", 2) {
  Balance b;
  Chan c, d;
  Process p, q;
  Process::Chosen x, y;
  spawn("P", [&] {
    p.in(c), p.out(d, 7);
    x = p.go();
  });
  spawn("Q", [&] {
    q.in(d), q.out(c, 8);
    y = q.go();
  });
  spawn("X", [&] { c.poison(1); });
  run();
  if (x.status == Status::ok || y.status == Status::ok)
    REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok && x.index != y.index);
  else
    REQUIRE_THAT(x.status == Status::poisoned && x.index == 0 && y.status == Status::poisoned &&
                 y.index == 1);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("retire meets choice: input and output guards both end (rules 3.1, 3.3, 5.6)", 2) {
  Balance b;
  Chan c, d;
  c.first_writer();
  d.first_reader();
  Process p, w;
  std::uint32_t got = 0;
  int ends = 0;
  spawn("P", [&] {
    bool in = true, out = true;
    while (in || out) {
      const bool first_is_in = in;
      if (in) p.in(c);
      if (out) p.out(d, 9);
      const Process::Chosen x = p.go();
      const bool is_in = first_is_in && x.index == 0;
      if (x.status == Status::ok) {
        REQUIRE_THAT(is_in);
        got += x.value;
        continue;
      }
      REQUIRE_THAT(x.status == Status::retired);
      ++ends;
      (is_in ? in : out) = false;
    }
  });
  spawn("W", [&] {
    REQUIRE_THAT(w.write(c, 5) == Status::ok);
    c.drop_writer();
  });
  spawn("X", [&] { d.drop_reader(); });
  run();
  REQUIRE_THAT(got == 5 && ends == 2 && empty(c) && empty(d));
  b.check();
}

SCENARIO("retire: a choice that withdraws was the last blocked party (rules 3.2, 5.10)", 2) {
  // The reader is a select whose end is closed while it waits. When the select commits at another
  // channel, the writer must be notified.
  Balance b;
  Chan c, d;
  c.first_reader();
  Process p, w, v;
  Process::Chosen x;
  Status sent{};
  spawn("P", [&] {
    p.in(c), p.in(d);
    x = p.go();
  });
  spawn("X", [&] { c.drop_reader(); });
  spawn("V", [&] { v.write(d, 1); });
  spawn("W", [&] {
    sent = w.write(c, 7);
    if (sent == Status::ok) v.cancel();
  });
  run();
  REQUIRE_THAT(x.status == Status::ok || x.status == Status::retired);
  if (x.index == 0)
    REQUIRE_THAT(sent == Status::ok);
  else
    REQUIRE_THAT(sent == Status::retired);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO("computed output guard meets plain reader, select and failure (rule 5.8)", 2) {
  Balance b;
  Chan c, d;
  Process p, r;
  Process::Chosen x, y;
  const std::uint32_t v = choose(2) ? 7 : 0;
  spawn("P", [&] {
    p.out_computed(c, v), p.in(d);
    x = p.go();
  });
  spawn("R", [&] {
    r.in(c);
    r.in(d);
    y = r.go();
  });
  run();
  REQUIRE_THAT(x.index == 0 && y.index == 0);
  if (v)
    REQUIRE_THAT(x.status == Status::ok && y.status == Status::ok && y.value == 7);
  else
    REQUIRE_THAT(x.status == Status::died && y.status == Status::died);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

SCENARIO(
    "computed output in a choice is never called for a guard not chosen; cancel (rules 5.8, 6.4)",
    2) {
  Balance b;
  Chan c, d;
  Process p, r;
  Process::Chosen x;
  Got got;
  spawn("P", [&] {
    p.out_computed(c, 7), p.in(d);
    x = p.go();
    if (x.index < 0) r.cancel();
  });
  spawn("R", [&] { got = r.read(c); });
  spawn("X", [&] { p.cancel(); });
  run();
  if (x.index == 0)
    REQUIRE_THAT(x.status == Status::ok && got.ok() && got.value == 7);
  else
    REQUIRE_THAT(x.status == Status::cancelled && got.status == Status::cancelled);
  REQUIRE_THAT(empty(c) && empty(d));
  b.check();
}

}  // namespace weft::test
