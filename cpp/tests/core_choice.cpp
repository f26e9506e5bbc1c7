// Tests choice, standing alternatives, barriers and words (rules 5 and 8), without threads.
#include <set>
#include <vector>

#include "task.hpp"

using namespace weft;
using namespace weft::test;
using core::BarrierEngine;
using core::Choice;

TEST_CASE("a word goes only along its diagram") {
  Choice c;
  CHECK(c.word() == core::IDLE);
  CHECK_FALSE(c.claim_one(core::DONE));
  c.arm();
  CHECK(c.claim_one(core::DONE + 3));
  CHECK(c.done());
  CHECK(c.winner() == 3);
  CHECK_FALSE(c.claim_one(core::DONE));
  CHECK_FALSE(c.finish_as(core::CANCELLED));
  c.reset();
  c.arm();
  CHECK(c.finish_as(core::TIMED_OUT));
  CHECK(c.word() == core::TIMED_OUT);
  CHECK_FALSE(c.done());
}

TEST_CASE("two choices commit both or neither") {
  Choice pair[2];
  for (int low = 0; low < 2; ++low) {
    Choice& x = pair[low];
    Choice& y = pair[1 - low];
    x.arm(), y.arm();
    CHECK(Choice::claim_both(x, 1, y, 2) == Choice::Both::won);
    CHECK(x.winner() == 1);
    CHECK(y.winner() == 2);
    CHECK(Choice::claim_both(x, 1, y, 2) != Choice::Both::won);
    x.reset(), x.arm();
    CHECK(Choice::claim_both(x, 1, y, 2) == Choice::Both::other_gone);
    CHECK(x.word() == core::WAITING);
    CHECK(Choice::claim_both(y, 1, x, 2) == Choice::Both::self_gone);
    CHECK(x.word() == core::WAITING);
    x.reset(), y.reset();
  }
}

TEST_CASE_TEMPLATE("rule 5.1: a select commits to one guard and leaves the others", P, POLICIES) {
  Channel<P> c, d;
  Task w, v;
  Selecting s;
  s.in(c).in(d);
  SUBCASE("ready at once") {
    w.write(d, 5);
    CHECK(s.go() == 1);
    CHECK(s.status() == Status::ok);
    CHECK(s.value(1) == 5);
    CHECK(w.wakes == 1);
    CHECK(s.task.wakes == 0);
  }
  SUBCASE("committed by another while parked") {
    CHECK(s.go() == Select::parked);
    CHECK(w.write(c, 6) == Status::ok);
    CHECK(s.task.wakes == 1);
    CHECK(v.write(d, 7) == Status::pending);  // The writer to d is skipped (rule 1.2).
    CHECK(s.finish() == 0);
    CHECK(s.value(0) == 6);
    CHECK(d.template withdraw<Side::out>(v));
  }
  CHECK(empty(c));
  CHECK(empty(d));
}

TEST_CASE_TEMPLATE("rule 5.3: two selects meet, whichever comes first", P, POLICIES) {
  Channel<P> c, d;
  Selecting s, t;
  s.in(c).out(d, 1);
  t.out(c, 2).in(d);
  CHECK(s.go() == Select::parked);
  const int r = t.go();
  REQUIRE(r >= 0);
  CHECK(s.task.wakes == 1);
  CHECK(s.finish() == r);
  if (r == 0)
    CHECK(s.value(0) == 2);
  else
    CHECK(t.value(1) == 1);
  CHECK(empty(c));
  CHECK(empty(d));
}

TEST_CASE_TEMPLATE("rule 5.4: a fair select serves every guard that stays ready within N selects",
                   P, POLICIES) {
  Buffered<Channel<P>> a{4}, b{4}, c{4};
  Task w;
  std::uint32_t start = 0;
  for (int round = 0; round < 4; ++round) {
    std::set<int> served;
    for (int k = 0; k < 3; ++k) {
      for (auto* x : {&a, &b, &c})
        while (x->ring.size < 2) w.write(x->c, 1);
      Selecting s;
      s.in(a.c).in(b.c).in(c.c);
      const int r = s.go(Mode::fair, start);
      start = s.select->next_start();
      served.insert(r);
      s.value(r);
    }
    CHECK(served.size() == 3);
  }
}

TEST_CASE_TEMPLATE("rule 5.4: priority takes the first ready", P, POLICIES) {
  Channel<P> a, b;
  Task w, v;
  w.write(a, 1), v.write(b, 2);
  Selecting s;
  s.in(a).in(b);
  CHECK(s.go(Mode::priority, 1) == 0);
  s.value(0);
  CHECK(b.template withdraw<Side::out>(v));
}

TEST_CASE_TEMPLATE("rule 5.4: random is uniform over the ready guards", P, POLICIES) {
  int chosen[3] = {};
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Channel<P> a, b, c;
    Task w, v;
    w.write(a, 1), v.write(c, 2);
    Selecting s;
    s.in(a).in(b).in(c);
    const int r = s.go(Mode::random, 0, seed * 0x9E3779B97F4A7C15ull);
    REQUIRE((r == 0 || r == 2));
    ++chosen[r];
    s.value(r);
    a.template withdraw<Side::out>(w), c.template withdraw<Side::out>(v);
  }
  CHECK(chosen[1] == 0);
  CHECK(chosen[0] > 1350);  // 1500 are expected; this bound is 5.5 standard deviations lower
  CHECK(chosen[2] > 1350);
}

TEST_CASE_TEMPLATE("rule 5.2: a guard whose precondition is false does not take part", P,
                   POLICIES) {
  Channel<P> a, b;
  Task w;
  w.write(a, 1);
  Selecting s;
  s.in(a).in(b);
  s.g[0].enabled = false;
  CHECK(s.go() == Select::parked);
  Task v;
  CHECK(v.write(b, 2) == Status::ok);
  CHECK(s.finish() == 1);
  CHECK(s.value(1) == 2);
  CHECK(a.template withdraw<Side::out>(w));
}

TEST_CASE_TEMPLATE("rule 5.5: the same end twice is two guards", P, POLICIES) {
  Channel<P> a;
  Selecting s;
  s.in(a).in(a);
  CHECK(s.go() == Select::parked);
  Task w;
  CHECK(w.write(a, 1) == Status::ok);
  const int r = s.finish();
  REQUIRE(r >= 0);
  CHECK(s.value(r) == 1);
  CHECK(empty(a));
}

TEST_CASE_TEMPLATE("rule 5.6: a guard whose channel is poisoned is ready with that end", P,
                   POLICIES) {
  Channel<P> a, b;
  SUBCASE("before") {
    b.poison(1);
    Selecting s;
    s.in(a).out(b, 1);
    CHECK(s.go() == 1);
    CHECK(s.status() == Status::poisoned);
  }
  SUBCASE("while parked") {
    a.first_writer();
    Selecting s;
    s.in(a).out(b, 1);
    CHECK(s.go() == Select::parked);
    a.poison(1);
    CHECK(s.finish() == 0);
    CHECK(s.status() == Status::poisoned);
  }
  CHECK(empty(a));
  CHECK(empty(b));
}

TEST_CASE_TEMPLATE("rule 5.7: a ready guard beats an expired timer; skip in its place", P,
                   POLICIES) {
  Channel<P> a;
  Task w;
  SUBCASE("ready beats expired") {
    w.write(a, 1);
    Selecting s;
    s.timer(5).in(a);
    s.clock = 10;
    CHECK(s.go() == 1);
    s.value(1);
  }
  SUBCASE("expired") {
    Selecting s;
    s.timer(9).in(a).timer(5);
    s.clock = 10;
    CHECK(s.go() == 2);  // Guard 2 is the earliest timer.
    CHECK(s.status() == Status::timed_out);
  }
  SUBCASE("not yet; then a timer competes for the word") {
    Selecting s;
    s.timer(9).in(a).timer(5);
    CHECK(s.go() == Select::parked);
    CHECK(s.select->earliest_timer() == 2);
    CHECK(s.select->choice.finish_as(core::TIMED_OUT));
    CHECK(s.finish() == Select::none);
    CHECK(w.write(a, 1) == Status::pending);
    CHECK(a.template withdraw<Side::out>(w));
  }
  SUBCASE("skip, fair: only when nothing else is ready") {
    w.write(a, 1);
    Selecting s;
    s.skip().in(a);
    CHECK(s.go(Mode::fair) == 1);
    s.value(1);
    Selecting t;
    t.skip().in(a);
    CHECK(t.go(Mode::fair) == 0);
    Selecting u;
    u.skip().in(a);
    CHECK(u.go(Mode::random) == 0);
  }
  SUBCASE("skip, priority: in its place") {
    w.write(a, 1);
    Selecting s;
    s.skip().in(a);
    CHECK(s.go(Mode::priority) == 0);
    Selecting t;
    t.in(a).skip();
    CHECK(t.go(Mode::priority) == 0);
    t.value(0);
  }
  CHECK(empty(a));
}

TEST_CASE_TEMPLATE("rule 5.10: a select that is cancelled leaves no trace", P, POLICIES) {
  Channel<P> a, b;
  Selecting s;
  s.in(a).out(b, 1);
  CHECK(s.go() == Select::parked);
  CHECK(s.select->choice.finish_as(core::CANCELLED));
  CHECK(s.finish() == Select::none);
  CHECK(s.task.wakes == 0);
  CHECK(s.items[1]->v == 1);
  CHECK(empty(a));
  CHECK(empty(b));
}

TEST_CASE_TEMPLATE(
    "rule 5.9: a standing alternative serves first come, first served over those that become ready",
    P, POLICIES) {
  Channel<P> a, b;
  Task s, w, v;
  Guard g[2];
  Room rooms[2];
  for (int i = 0; i < 2; ++i) {
    g[i].kind = Kind::input, g[i].ops = &core::channel_ops<Channel<P>, Side::in>,
    g[i].node.slot = rooms[i].raw;
  }
  g[0].where = &a, g[1].where = &b;
  const auto now = [] { return std::int64_t{0}; };
  {
    Standing alt{g, 2, &s};
    CHECK(alt.start(now) == Standing::parked);
    CHECK(w.write(b, 1) == Status::ok);
    CHECK(s.wakes == 1);
    CHECK(v.write(a, 2) == Status::pending);  // No party commits this write between two selects.
    CHECK(alt.finish() == 1);
    CHECK(rooms[1].take() == 1);
    Task x;
    CHECK(x.write(b, 3) == Status::pending);
    CHECK(alt.start(now) == 0);
    CHECK(rooms[0].take() == 2);
    CHECK(alt.start(now) == 1);
    CHECK(rooms[1].take() == 3);
    SUBCASE("a disabled guard is passed over until it is enabled") {
      alt.enable(0, false);
      CHECK(w.write(a, 4) == Status::pending);
      CHECK(alt.start(now) == Standing::parked);
      CHECK(alt.choice.finish_as(core::CANCELLED));
      CHECK(alt.finish() == Standing::none);
      alt.enable(0, true);
      CHECK(alt.start(now) == 0);
      CHECK(rooms[0].take() == 4);
    }
    SUBCASE("an ended guard stays ready with its end") {
      b.poison(1);
      for (int k = 0; k < 3; ++k) {
        CHECK(alt.start(now) == 1);
        CHECK(alt.status() == Status::poisoned);
      }
    }
  }
  CHECK(empty(a));
  CHECK(empty(b));
}

TEST_CASE_TEMPLATE("rule 5.9: where the other side stands too, the second enrols anew", P,
                   POLICIES) {
  Channel<P> c;
  Task s, t;
  Guard in, out;
  Room room;
  Item item{7};
  in.kind = Kind::input, in.ops = &core::channel_ops<Channel<P>, Side::in>, in.where = &c,
  in.node.slot = room.raw;
  out.kind = Kind::output, out.ops = &core::channel_ops<Channel<P>, Side::out>, out.where = &c,
  out.node.slot = &item;
  const auto now = [] { return std::int64_t{0}; };
  {
    Standing a{&in, 1, &s}, b{&out, 1, &t};
    CHECK(in.flat);
    CHECK_FALSE(out.flat);
    CHECK(b.start(now) == Standing::parked);
    CHECK(a.start(now) == 0);
    CHECK(room.take() == 7);
    CHECK(t.wakes == 1);
    CHECK(b.finish() == 0);
  }
  CHECK(empty(c));
}

TEST_CASE_TEMPLATE("rule 8.1: all enrolled parties meet, then all go on", P, POLICIES) {
  BarrierEngine<P> b{3};
  Task x, y, z;
  for (std::uint64_t phase = 1; phase <= 2; ++phase) {
    x.flags = y.flags = z.flags = 0;
    CHECK(b.begin_sync(x) == Status::pending);
    CHECK(b.begin_sync(y) == Status::pending);
    CHECK(x.wakes == static_cast<int>(phase) - 1);
    CHECK(b.begin_sync(z) == Status::ok);
    CHECK(x.wakes == static_cast<int>(phase));
    CHECK(y.wakes == static_cast<int>(phase));
    CHECK(b.phases() == phase);
  }
}

TEST_CASE_TEMPLATE("rule 8.2: enrol adds, resign completes the phase; below zero is refused", P,
                   POLICIES) {
  BarrierEngine<P> b{1};
  b.enrol_party();
  Task x;
  CHECK(b.begin_sync(x) == Status::pending);
  CHECK(b.resign());
  CHECK(x.wakes == 1);
  CHECK(b.resign());
  CHECK_FALSE(b.resign());
  CHECK(b.enrolled() == 0);
}

TEST_CASE_TEMPLATE("rule 8.3: a cancelled sync is withdrawn", P, POLICIES) {
  BarrierEngine<P> b{2};
  Task x, y;
  b.begin_sync(x);
  CHECK(b.withdraw(x));
  CHECK_FALSE(b.withdraw(x));
  CHECK(b.begin_sync(y) == Status::pending);
  x.flags = 0;
  CHECK(b.begin_sync(x) == Status::ok);
  CHECK(y.wakes == 1);
}

TEST_CASE_TEMPLATE("rule 8.4: a barrier as a guard commits for all at once", P, POLICIES) {
  BarrierEngine<P> b{3};
  Channel<P> c;
  Task x;
  Selecting s, t;
  s.barrier(b).in(c);
  t.in(c).barrier(b);
  CHECK(s.go() == Select::parked);
  CHECK(b.begin_sync(x) == Status::pending);
  SUBCASE("the last is a select") { CHECK(t.go() == 1); }
  SUBCASE("the last is a sync") {
    CHECK(b.withdraw(x));
    CHECK(t.go() == Select::parked);
    x.flags = 0;
    CHECK(b.begin_sync(x) == Status::ok);
    CHECK(t.finish() == 1);
  }
  SUBCASE("one has committed elsewhere: the phase needs it still") {
    Task w;
    CHECK(w.write(c, 5) == Status::ok);
    CHECK(t.go() == Select::parked);
    CHECK(b.phases() == 0);
    CHECK(s.finish() == 1);
    CHECK(s.value(1) == 5);
    Selecting u;
    u.barrier(b);
    CHECK(u.go() == 0);
    CHECK(t.finish() == 1);
    CHECK(b.phases() == 1);
    CHECK(empty(c));
    return;
  }
  CHECK(s.finish() == 0);
  CHECK(b.phases() == 1);
  CHECK(empty(c));
}

TEST_CASE("the order of wake-ups is the order of the line") {
  Chan c;
  c.first_writer();
  static std::vector<int>* order = nullptr;
  std::vector<int> seen;
  order = &seen;
  struct Numbered : core::Waiter {
    int n = 0;
    Room room;
  };
  static constexpr core::WakerOps ops{
      [](core::Waker* w) noexcept { order->push_back(static_cast<Numbered*>(w)->n); }, nullptr};
  Numbered a[4];
  for (int i = 0; i < 4; ++i) {
    a[i].ops = &ops, a[i].n = i, a[i].slot = a[i].room.raw;
    c.begin<Side::in>(a[i]);
  }
  c.drop_writer();
  CHECK(seen == std::vector<int>{0, 1, 2, 3});
}
