// Tests the channels of the core by themselves: rendezvous, buffers, ends, retire, poison, death,
// extended reads, computed outputs (rules 1 to 4, 5.8, 6, 12).
#include "task.hpp"

using namespace weft;
using namespace weft::test;

namespace {
struct Books {  // checks that no value leaks or is destroyed twice
  Books() { Item::alive = 0; }
  ~Books() { CHECK(Item::alive == 0); }
};
}  // namespace

TEST_CASE_TEMPLATE("rule 1.1: a write completes when its value has been taken, never before", P,
                   POLICIES) {
  Books books;
  Channel<P> c;
  Task w, r;
  CHECK(w.write(c, 1) == Status::pending);
  CHECK(w.wakes == 0);
  CHECK(r.read(c) == Status::ok);
  CHECK(r.value() == 1);
  CHECK(w.wakes == 1);
  CHECK(w.status == Status::ok);
  CHECK(r.wakes == 0);
  CHECK(c.transfers() == 1);
}

TEST_CASE_TEMPLATE("rule 1.1: a read waits for a writer", P, POLICIES) {
  Books books;
  Channel<P> c;
  Task w, r;
  CHECK(r.read(c) == Status::pending);
  CHECK(w.write(c, 2) == Status::ok);
  CHECK(r.wakes == 1);
  CHECK(r.status == Status::ok);
  CHECK(r.value() == 2);
  CHECK(empty(c));
}

TEST_CASE_TEMPLATE("rule 1.2: waiting readers and writers are served first come, first served", P,
                   POLICIES) {
  Books books;
  Channel<P> c;
  {
    Task a, b, w;
    a.read(c), b.read(c);
    w.write(c, 1);
    CHECK(a.wakes == 1);
    CHECK(b.wakes == 0);
    CHECK(a.value() == 1);
    w.write(c, 2);
    CHECK(b.value() == 2);
  }
  {
    Task a, b, r;
    a.write(c, 1), b.write(c, 2);
    r.read(c);
    CHECK(r.value() == 1);
    r.read(c);
    CHECK(r.value() == 2);
  }
}

TEST_CASE_TEMPLATE("rule 1.3: a buffer takes n values without a reader, in order", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{2};
  Task w, r;
  CHECK(w.write(f.c, 1) == Status::ok);
  CHECK(w.write(f.c, 2) == Status::ok);
  CHECK(w.write(f.c, 3) == Status::pending);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    CHECK(r.read(f.c) == Status::ok);
    CHECK(r.value() == i);
  }
  CHECK(w.wakes == 1);
}

TEST_CASE_TEMPLATE("rule 1.4: a full buffer drops the oldest", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{2, Overflow::drop_oldest};
  Task w, r;
  for (std::uint32_t i = 1; i <= 3; ++i) CHECK(w.write(f.c, i) == Status::ok);
  CHECK(f.ring.dropped == 1);
  r.read(f.c);
  CHECK(r.value() == 2);
  r.read(f.c);
  CHECK(r.value() == 3);
}

TEST_CASE_TEMPLATE("rule 1.4: a full buffer drops the newest", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{2, Overflow::drop_newest};
  Task w, r;
  for (std::uint32_t i = 1; i <= 3; ++i) CHECK(w.write(f.c, i) == Status::ok);
  CHECK(f.ring.dropped == 1);
  r.read(f.c);
  CHECK(r.value() == 1);
  r.read(f.c);
  CHECK(r.value() == 2);
}

TEST_CASE_TEMPLATE("rule 1.4: what entered a full buffer last is replaced", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{2, Overflow::drop_last};
  Task w, r;
  CHECK(w.write(f.c, 1) == Status::ok);
  r.read(f.c);
  CHECK(r.value() == 1);  // This read makes the ring wrap around.
  for (std::uint32_t i = 2; i <= 5; ++i) CHECK(w.write(f.c, i) == Status::ok);
  CHECK(f.ring.dropped == 2);
  r.read(f.c);
  CHECK(r.value() == 2);
  r.read(f.c);
  CHECK(r.value() == 5);
}

TEST_CASE_TEMPLATE("rule 1.4: an unbounded buffer grows; without a heap it waits and is served", P,
                   POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1, Overflow::unbounded};
  Task w, v, r;
  SUBCASE("grows") {
    f.ring.grow = [](core::Ring<Item>& x) noexcept { return x.capacity = 8, true; };
    for (std::uint32_t i = 1; i <= 4; ++i) CHECK(w.write(f.c, i) == Status::ok);
    for (std::uint32_t i = 1; i <= 4; ++i) {
      r.read(f.c);
      CHECK(r.value() == i);
    }
  }
  SUBCASE("cannot grow") {
    CHECK(w.write(f.c, 1) == Status::ok);
    CHECK(v.write(f.c, 2) == Status::pending);
    r.read(f.c);
    CHECK(r.value() == 1);
    CHECK(v.wakes == 1);
    r.read(f.c);
    CHECK(r.value() == 2);
  }
}

TEST_CASE_TEMPLATE(
    "rule 1.5: a value goes straight to a waiting reader; a freed slot is filled in the same step",
    P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1};
  Task w, v, r;
  CHECK(r.read(f.c) == Status::pending);
  CHECK(w.write(f.c, 1) == Status::ok);
  CHECK(f.ring.size == 0);
  CHECK(r.value() == 1);
  w.write(f.c, 2);
  CHECK(v.write(f.c, 3) == Status::pending);
  r.read(f.c);
  CHECK(r.value() == 2);
  CHECK(v.wakes == 1);
  CHECK(f.ring.size == 1);
}

TEST_CASE_TEMPLATE("rule 1.6: an extended read holds the writer until its block ends", P,
                   POLICIES) {
  Books books;
  Channel<P> c;
  Task w, r;
  SUBCASE("the writer waits first") {
    w.write(c, 1);
    CHECK(r.read(c, NodeFlags::extended) == Status::ok);
  }
  SUBCASE("the reader waits first") {
    CHECK(r.read(c, NodeFlags::extended) == Status::pending);
    CHECK(w.write(c, 1) == Status::pending);
    CHECK(r.wakes == 1);
  }
  CHECK(r.value() == 1);
  CHECK(w.wakes == 0);
  CHECK_FALSE(c.template withdraw<Side::out>(w));  // Rule 6.3: the write has committed.
  c.poison(1);
  CHECK(w.wakes == 0);
  c.end_extended(r);
  CHECK(w.wakes == 1);
  CHECK(w.status == Status::ok);
}

TEST_CASE_TEMPLATE("rule 1.6: on a buffer the slot stays occupied", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1};
  Task w, v, r, s;
  w.write(f.c, 1);
  CHECK(r.read(f.c, NodeFlags::extended) == Status::ok);
  CHECK(r.value() == 1);
  CHECK(v.write(f.c, 2) == Status::pending);
  SUBCASE("until the block ends") {
    f.c.end_extended(r);
    CHECK(v.wakes == 1);
    CHECK(f.ring.size == 1);
  }
  SUBCASE("a plain reader meets the waiting writer all the same") {
    CHECK(s.read(f.c) == Status::ok);
    CHECK(s.value() == 2);
    CHECK(v.wakes == 1);
    f.c.end_extended(r);
  }
  SUBCASE("a second extended read needs a slot of its own") {
    CHECK(s.read(f.c, NodeFlags::extended) == Status::pending);
    f.c.end_extended(r);
    CHECK(s.wakes == 1);
    CHECK(s.value() == 2);
    CHECK(f.ring.held == 1);
    f.c.end_extended(s);
  }
  SUBCASE("a second extended read that withdraws lets those behind it pass") {
    Task q;
    CHECK(s.read(f.c, NodeFlags::extended) == Status::pending);
    // The reader meets this writer; the writer in front cannot meet any party.
    CHECK(q.read(f.c) == Status::ok);
    CHECK(q.value() == 2);
    CHECK(f.c.template withdraw<Side::in>(s));
    f.c.end_extended(r);
  }
  CHECK(f.ring.held == 0);
}

TEST_CASE_TEMPLATE(
    "rule 2.5: an ended side gives no new end; a side that never had one is not ended", P,
    POLICIES) {
  Channel<P> c;
  Task r;
  CHECK(r.read(c) == Status::pending);
  CHECK(c.template withdraw<Side::in>(r));
  CHECK(c.first_writer());
  c.another_writer();
  CHECK(c.writer_ends() == 2);
  c.drop_writer();
  CHECK(c.first_writer());
  c.drop_writer(), c.drop_writer();
  CHECK_FALSE(c.first_writer());
  CHECK(r.read(c) == Status::retired);
}

TEST_CASE_TEMPLATE("rule 3.1: readers drain buffer and blocked writers, then it has retired", P,
                   POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1};
  f.c.first_writer();
  Task w, v, r;
  w.write(f.c, 1);
  v.write(f.c, 2);
  f.c.drop_writer();
  CHECK(v.wakes == 0);  // Rule 3.2: the write that waits still delivers.
  CHECK(f.c.template how_ended<Side::in>() == Status::ok);
  r.read(f.c);
  CHECK(r.value() == 1);
  r.read(f.c);
  CHECK(r.value() == 2);
  CHECK(r.read(f.c) == Status::retired);
  CHECK(f.c.template how_ended<Side::in>() == Status::retired);
}

TEST_CASE_TEMPLATE("rule 3.1: waiting readers are told", P, POLICIES) {
  Channel<P> c;
  c.first_writer();
  Task a, b;
  a.read(c), b.read(c);
  c.drop_writer();
  CHECK(a.wakes == 1);
  CHECK(b.wakes == 1);
  CHECK(a.status == Status::retired);
}

TEST_CASE_TEMPLATE("rule 3.2: a read that waits when its end is closed may still receive", P,
                   POLICIES) {
  Books books;
  Channel<P> c;
  c.first_reader();
  Task r, w;
  r.read(c);
  c.drop_reader();
  CHECK(w.write(c, 1) == Status::ok);
  CHECK(r.value() == 1);
  CHECK(w.write(c, 2) == Status::retired);
}

TEST_CASE_TEMPLATE("rule 3.2: the last blocked reader withdraws: waiting writers are told", P,
                   POLICIES) {
  Books books;
  Channel<P> c, d;
  c.first_reader();
  Selecting s;
  s.in(c).in(d);
  CHECK(s.go() == Select::parked);
  c.drop_reader();
  Task v, w;
  CHECK(v.write(d, 1) == Status::ok);  // s has committed at d and has not left c yet.
  // s's place in the waiting queue of c is stale, and is skipped.
  CHECK(w.write(c, 2) == Status::retired);
  CHECK(s.finish() == 1);
  CHECK(s.value(1) == 1);
}

TEST_CASE_TEMPLATE(
    "rule 3.3: the last reader goes: buffered values are dropped and counted, writers are told", P,
    POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1};
  f.c.first_reader();
  Task w, v;
  w.write(f.c, 1);
  CHECK(v.write(f.c, 2) == Status::pending);
  f.c.drop_reader();
  CHECK(v.wakes == 1);
  CHECK(v.status == Status::retired);
  CHECK(v.item->v == 2);  // The value is back with its writer.
  CHECK(f.ring.dropped == 1);
  CHECK(w.write(f.c, 3) == Status::retired);
  CHECK(w.item->v == 3);
}

TEST_CASE_TEMPLATE("rule 4.1: poison is idempotent and monotone", P, POLICIES) {
  Channel<P> c;
  c.poison(2);
  CHECK(c.poison_strength() == 2);
  c.poison(1);
  CHECK(c.poison_strength() == 2);
  c.poison(3);
  CHECK(c.poison_strength() == 3);
}

TEST_CASE_TEMPLATE("rule 4.2: poison ends all who wait, drops the buffer, outranks retirement", P,
                   POLICIES) {
  Books books;
  SUBCASE("readers") {
    Channel<P> c;
    Task r;
    r.read(c);
    c.poison(1);
    CHECK(r.wakes == 1);
    CHECK(r.status == Status::poisoned);
    CHECK(r.read(c) == Status::poisoned);
  }
  SUBCASE("writers and buffer") {
    Buffered<Channel<P>> f{1};
    Task w, v;
    w.write(f.c, 1), v.write(f.c, 2);
    f.c.poison(1);
    CHECK(v.status == Status::poisoned);
    CHECK(v.item->v == 2);
    CHECK(f.ring.dropped == 1);
    CHECK(v.write(f.c, 3) == Status::poisoned);
  }
  SUBCASE("retired before") {
    Channel<P> c;
    c.first_writer();
    c.drop_writer();
    c.poison(1);
    Task r;
    CHECK(r.read(c) == Status::poisoned);
  }
}

TEST_CASE_TEMPLATE("rule 4.4: an immune channel ignores weaker poison", P, POLICIES) {
  Channel<P> c;
  c.set_immunity(3);
  Task r;
  r.read(c);
  c.poison(2);
  CHECK(r.wakes == 0);
  c.poison(3);
  CHECK(r.status == Status::poisoned);
}

TEST_CASE_TEMPLATE("rule 4.5: death drains like retirement and is not quiet", P, POLICIES) {
  Books books;
  SUBCASE("a writer died") {
    Buffered<Channel<P>> f{1};
    f.c.first_writer();
    f.c.another_writer();
    Task w, r;
    w.write(f.c, 1);
    f.c.drop_writer(true);
    r.read(f.c);
    CHECK(r.value() == 1);
    CHECK(r.read(f.c) == Status::pending);  // One writer end is still open.
    f.c.drop_writer(false);
    CHECK(r.status == Status::died);
  }
  SUBCASE("a reader died") {
    Channel<P> c;
    c.first_reader();
    Task w;
    w.write(c, 1);
    c.drop_reader(true);
    CHECK(w.status == Status::died);
  }
}

TEST_CASE_TEMPLATE(
    "rule 5.8: a computed output is made after the commit, before the reader goes on", P,
    POLICIES) {
  for (const bool writer_first : {false, true})
    for (const bool raises : {false, true}) {
      Books books;
      Channel<P> c;
      Task w, r;
      if (writer_first) {
        CHECK(w.write(c, 0, NodeFlags::compute) == Status::pending);
        CHECK(r.read(c) == Status::pending);
        CHECK(w.wakes == 1);
      } else {
        CHECK(r.read(c) == Status::pending);
        CHECK(w.write(c, 0, NodeFlags::compute) == Status::ok);
      }
      CHECK(r.wakes == 0);
      CHECK_FALSE(c.template withdraw<Side::in>(r));  // Rule 6.3: the read has committed.
      if (raises) {
        c.abandon(w);
        CHECK(r.status == Status::died);
      } else {
        w.item.emplace(7u);
        w.slot = &*w.item;
        CHECK(c.deliver(w) == Status::ok);
        CHECK(r.status == Status::ok);
        CHECK(r.value() == 7);
      }
      CHECK(r.wakes == 1);
      CHECK(empty(c));
    }
}

TEST_CASE_TEMPLATE("rule 5.8: on a buffer a computed output reserves its slot", P, POLICIES) {
  Books books;
  Buffered<Channel<P>> f{1};
  Task w, v, r;
  CHECK(w.write(f.c, 0, NodeFlags::compute) == Status::ok);
  CHECK(f.ring.reserved == 1);
  CHECK(v.write(f.c, 2) == Status::pending);
  SUBCASE("it succeeds") {
    w.item.emplace(7u);
    w.slot = &*w.item;
    CHECK(f.c.deliver(w) == Status::ok);
    r.read(f.c);
    CHECK(r.value() == 7);
    r.read(f.c);
    CHECK(r.value() == 2);
  }
  SUBCASE("it raises: the slot is given back") {
    f.c.abandon(w);
    CHECK(v.wakes == 1);
    r.read(f.c);
    CHECK(r.value() == 2);
  }
  SUBCASE("it raises while a reader waits, writers gone: the reader is told") {
    CHECK(f.c.template withdraw<Side::out>(v));
    f.c.first_writer();
    CHECK(r.read(f.c) == Status::pending);
    f.c.drop_writer();
    CHECK(r.wakes == 0);
    f.c.abandon(w);
    CHECK(r.status == Status::retired);
  }
  SUBCASE("the channel is poisoned meanwhile: the value is dropped and counted") {
    f.c.poison(1);
    w.item.emplace(7u);
    w.slot = &*w.item;
    CHECK(f.c.deliver(w) == Status::ok);
    CHECK(f.ring.dropped == 1);
  }
  CHECK(f.ring.reserved == 0);
}

TEST_CASE_TEMPLATE("rule 6.2: before the commit a withdrawal leaves no trace", P, POLICIES) {
  Books books;
  Channel<P> c;
  Task w, r;
  w.write(c, 1);
  CHECK(c.template withdraw<Side::out>(w));
  CHECK(w.item->v == 1);
  CHECK(w.wakes == 0);
  CHECK(r.read(c) == Status::pending);
  CHECK(c.template withdraw<Side::in>(r));
  CHECK(empty(c));
  CHECK(c.transfers() == 0);
}

TEST_CASE_TEMPLATE("rule 6.3: after the commit a withdrawal comes too late", P, POLICIES) {
  Books books;
  Channel<P> c;
  Task w, r;
  w.write(c, 1);
  r.read(c);
  CHECK_FALSE(c.template withdraw<Side::out>(w));
  CHECK(w.status == Status::ok);
  CHECK(r.value() == 1);
}

TEST_CASE_TEMPLATE("rule 6.6: a foreign reader is told, keeps its place and takes for itself", P,
                   POLICIES) {
  Books books;
  Channel<P> c;
  Task f, r, w;
  CHECK(f.foreign(c) == Status::pending);
  CHECK(r.read(c) == Status::pending);
  CHECK(w.write(c, 1) == Status::pending);  // No value has been handed over.
  CHECK(f.tells == 1);
  CHECK(f.told == 1);
  CHECK(r.wakes == 0);  // The reader waits for the decision.
  SUBCASE("it takes") {
    CHECK(c.take(f, core::Free{}) == core::Attempt::committed);
    CHECK(f.value() == 1);
    CHECK(w.wakes == 1);
    CHECK(c.template withdraw<Side::in>(r));
  }
  SUBCASE("it withdraws: the line moves on") {
    CHECK(c.template withdraw<Side::in>(f));
    CHECK(r.wakes == 1);
    CHECK(r.value() == 1);
    CHECK(w.wakes == 1);
  }
  SUBCASE("the writer withdraws: it finds nothing and stays in line") {
    CHECK(c.template withdraw<Side::out>(w));
    CHECK(c.take(f, core::Free{}) == core::Attempt::not_ready);
    CHECK(w.write(c, 2) == Status::pending);
    CHECK(f.tells == 2);
    CHECK(c.take(f, core::Free{}) == core::Attempt::committed);
    CHECK(f.value() == 2);
    CHECK(c.template withdraw<Side::in>(r));
  }
  SUBCASE("poison: it is told, and decides") {
    c.poison(1);
    CHECK(f.tells == 1);  // The undecided choice has not committed yet.
    CHECK(r.status == Status::poisoned);
    CHECK(c.take(f, core::Free{}) == core::Attempt::ended);
    CHECK(f.status == Status::poisoned);
  }
  CHECK(f.wakes == 0);
  CHECK(empty(c));
}

TEST_CASE_TEMPLATE("rules 1.4, 6.6: a buffer with room is open while a foreign reader decides", P,
                   POLICIES) {
  Books books;
  Buffered<Channel<P>> q{2};
  Task f, w, r;
  f.foreign(q.c);
  CHECK(w.write(q.c, 1) == Status::ok);
  CHECK(f.tells == 1);
  // The reader waits behind the undecided reader, for which this value is reserved.
  CHECK(r.read(q.c) == Status::pending);
  CHECK(w.write(q.c, 2) == Status::ok);
  CHECK(r.wakes == 1);  // There is one more value than the undecided reader needs.
  CHECK(r.value() == 1);
  CHECK(q.c.take(f, core::Free{}) == core::Attempt::committed);
  CHECK(f.value() == 2);
}

TEST_CASE_TEMPLATE("rule 6.6: those behind wait while the undecided ones are as many as the values",
                   P, POLICIES) {
  Books books;
  Channel<P> c;
  Task f, g, h, r, s, v, w, x, y;
  CHECK(f.foreign(c) == Status::pending);
  CHECK(g.foreign(c) == Status::pending);
  CHECK(r.read(c) == Status::pending);
  CHECK(v.write(c, 1) == Status::pending);
  CHECK(f.tells + g.tells == 1);
  CHECK(w.write(c, 2) == Status::pending);
  CHECK(f.tells == 1);
  CHECK(g.tells == 1);
  CHECK(r.wakes == 0);
  CHECK(s.read(c) == Status::pending);
  // The write waits behind the two writers that are reserved for the undecided readers.
  CHECK(x.write(c, 3) == Status::pending);
  CHECK(r.wakes == 1);
  CHECK(r.value() == 1);
  SUBCASE("a reader that comes to one more takes it") {
    CHECK(c.template withdraw<Side::in>(s));
    CHECK(y.write(c, 4) == Status::pending);
    CHECK(s.read(c) == Status::ok);
    CHECK(s.value() == 2);
    CHECK(h.foreign(c) == Status::pending);
    CHECK(c.take(f, core::Free{}) == core::Attempt::committed);
    CHECK(f.value() == 3);
    CHECK(h.tells == 0);
    CHECK(c.take(g, core::Free{}) == core::Attempt::committed);
    CHECK(g.value() == 4);
    CHECK(c.template withdraw<Side::in>(h));
  }
  SUBCASE("a writer withdraws: one of the undecided finds nothing, and is told again") {
    CHECK(c.template withdraw<Side::out>(w));
    CHECK(c.take(g, core::Free{}) == core::Attempt::committed);
    CHECK(g.value() == 3);
    CHECK(c.take(f, core::Free{}) == core::Attempt::not_ready);
    CHECK(y.write(c, 5) == Status::pending);
    CHECK(f.tells == 2);
    CHECK(s.wakes == 0);
    CHECK(c.take(f, core::Free{}) == core::Attempt::committed);
    CHECK(f.value() == 5);
    CHECK(c.template withdraw<Side::in>(s));
  }
  SUBCASE("poison: each is told") {
    c.poison(1);
    CHECK(c.take(g, core::Free{}) == core::Attempt::ended);
    CHECK(c.take(f, core::Free{}) == core::Attempt::ended);
    CHECK(s.status == Status::poisoned);
  }
  CHECK(empty(c));
}

TEST_CASE_TEMPLATE(
    "rule 6.6: once an undecided reader has withdrawn, who comes waits for none of the others", P,
    POLICIES) {
  Books books;
  Task f, g, r, w;
  Channel<P> c;
  CHECK(f.foreign(c) == Status::pending);
  CHECK(g.foreign(c) == Status::pending);
  CHECK(w.write(c, 1) == Status::pending);
  CHECK(f.tells == 1);
  SUBCASE("it comes again itself") {
    CHECK(c.template withdraw<Side::in>(f));
    CHECK(g.tells == 1);  // The waiting queue has moved on.
    CHECK(f.foreign(c) == Status::ok);
    CHECK(f.value() == 1);
    CHECK(c.take(g, core::Free{}) == core::Attempt::not_ready);
    CHECK(c.template withdraw<Side::in>(g));
  }
  SUBCASE("another, and a writer tries in between") {
    CHECK(c.template withdraw<Side::in>(f));
    CHECK(r.write(c, 2) == Status::pending);
    CHECK(c.template withdraw<Side::out>(r));
    CHECK(r.read(c) == Status::ok);
    CHECK(r.value() == 1);
    CHECK(c.take(g, core::Free{}) == core::Attempt::not_ready);
    CHECK(c.template withdraw<Side::in>(g));
  }
  SUBCASE("until a value has been taken: then they wait as before") {
    CHECK(c.template withdraw<Side::in>(f));
    CHECK(c.take(g, core::Free{}) == core::Attempt::committed);
    CHECK(g.value() == 1);
    CHECK(g.foreign(c) == Status::pending);
    CHECK(w.write(c, 2) == Status::pending);
    CHECK(r.read(c) == Status::pending);
    CHECK(c.take(g, core::Free{}) == core::Attempt::committed);
    CHECK(g.value() == 2);
    CHECK(c.template withdraw<Side::in>(r));
  }
  SUBCASE("a select that has chosen otherwise has not withdrawn") {
    CHECK(c.take(f, core::Free{}) == core::Attempt::committed);
    CHECK(f.value() == 1);
    CHECK(c.template withdraw<Side::in>(g));
    Channel<P> d;
    Selecting s;
    Task v;
    CHECK(s.in(d).in(c).go(Mode::fair, 0, 0, true) == Select::parked);
    CHECK(g.foreign(c) == Status::pending);
    CHECK(v.write(d, 3) == Status::pending);
    CHECK(w.write(c, 2) == Status::pending);
    CHECK(s.task.tells == 2);
    CHECK(s.select->look_again() == 0);
    CHECK(s.value(0) == 3);
    CHECK(g.tells == 1);
    CHECK(r.read(c) == Status::pending);
    CHECK(c.take(g, core::Free{}) == core::Attempt::committed);
    CHECK(g.value() == 2);
    CHECK(c.template withdraw<Side::in>(r));
  }
  CHECK(empty(c));
}

TEST_CASE_TEMPLATE(
    "rules 1.5, 6.6: a foreign extended read that lacks a slot is not told for nothing", P,
    POLICIES) {
  Books books;
  Buffered<Channel<P>> q{1};
  Task f, r, v, w;
  CHECK(w.write(q.c, 1) == Status::ok);
  CHECK(r.read(q.c, NodeFlags::extended) == Status::ok);
  CHECK(r.value() == 1);
  CHECK(f.foreign(q.c, NodeFlags::extended) == Status::pending);
  CHECK(v.write(q.c, 2) == Status::pending);  // The extended read holds the only slot.
  CHECK(f.tells == 0);
  q.c.end_extended(r);
  CHECK(f.tells == 1);
  CHECK(q.c.take(f, core::Free{}) == core::Attempt::committed);
  CHECK(f.value() == 2);
  CHECK(v.wakes == 1);
  q.c.end_extended(f);
  CHECK(empty(q.c));
}
