// Tests credits at a rendezvous: the place of a waiting reader is lent to the far writer (WIRE.md
// 6.6), with links that the test schedules.
#include <doctest/doctest.h>

#include <deque>
#include <optional>
#include <random>

#include "wire_choice.hpp"
#include "wire_here.hpp"
#include "wire_world.hpp"

namespace wire_places {
namespace {
using namespace weft;
using weft::test::Here;
using weft::test::Op;
using weft::test::Spanning;
using weft::test::Square;
using weft::test::Wire;
namespace w = weft::wire;

// A rendezvous at its home, and its readers.
struct Lent : weft::test::Written {
  std::deque<Here> readers;

  // A promised reader stays in the waiting queue until its home has learned of the write.
  ~Lent() { a.tell(a.at_home); }
  Here& read() { return readers.emplace_back(*r.core()); }
  // Makes a write that is answered. From then on places are lent.
  void begin_lending() {
    Here& first = read();
    REQUIRE_FALSE(write(-1).is_over);
    pump();
    REQUIRE(ops.back().ok());
    REQUIRE(first.value() == -1);
  }
  bool lends() const { return a.at_party.far.lendings() == 1; }
  Here& promised() {
    begin_lending();
    Here& one = read();
    pump();
    REQUIRE(lends());
    return one;
  }
};

TEST_CASE("wire 6.6: a write whose reader waits is over at once, and its value is that reader's") {
  Lent t;
  t.begin_lending();
  for (int v = 0; v < 20; ++v) {
    Here& one = t.read();
    t.pump();
    CHECK(t.write(v).ok());
    CHECK_FALSE(one.over());  // The value has not arrived yet.
    t.pump();
    CHECK(one.value() == v);
    CHECK_FALSE(t.lends());
  }
  CHECK(t.r.core()->transfers() == 21);
}

TEST_CASE("wire 6.6: there and back without a frame in between: two frames a write") {
  Lent t;
  t.begin_lending();
  int frames = 0;
  for (int v = 0; v < 10; ++v) {
    t.read();
    while (t.a.down()) ++frames;
    t.write(v);
    while (t.a.up()) ++frames;
    while (t.a.down()) ++frames;
  }
  CHECK(frames == 20);
}

TEST_CASE("wire 6.6: one credit is one write; the next is offered, and waits as ever") {
  Lent t;
  Here& one = t.promised();
  CHECK(t.write(1).ok());
  Op& second = t.write(2);
  CHECK_FALSE(second.is_over);
  t.pump();
  CHECK(one.value() == 1);
  CHECK_FALSE(second.is_over);
  CHECK(t.a.at_home.home.open() == 1);
  CHECK(t.read().value() == 2);
  t.pump();
  CHECK(second.ok());
}

TEST_CASE("wire 6.6: nothing is lent before the first write, nor to who knows no such credits") {
  Lent t;
  Here& one = t.read();
  t.pump();
  CHECK_FALSE(t.lends());
  CHECK_FALSE(t.write(1).is_over);
  t.pump();
  CHECK(one.value() == 1);
  Lent other;
  // This home behaves like the home of a link that may lose frames.
  other.a.at_home.home.lends_places = false;
  other.begin_lending();
  other.read();
  other.pump();
  CHECK_FALSE(other.lends());
}

TEST_CASE("wire 6.6: a reader that may wait for a limited time only keeps its place") {
  Lent t;
  t.begin_lending();
  Here one(*t.r.core(), core::NodeFlags::limited);
  t.pump();
  CHECK_FALSE(t.lends());
  CHECK(one.withdraw());  // The read is withdrawn immediately, since its place is not lent.
  Here& two = t.read();
  t.pump();
  CHECK(t.lends());
  CHECK(t.write(3).ok());
  t.pump();
  CHECK(two.value() == 3);
}

TEST_CASE("wire 6.6: nor does an extended one, or one of another program") {
  Lent t;
  t.begin_lending();
  Here held(*t.r.core(), core::NodeFlags::extended);
  t.pump();
  CHECK_FALSE(t.lends());
  CHECK(held.withdraw());
  const auto reading = t.b.give(t.c.reader());
  t.pump();
  Op theirs;
  theirs.read(reading).begin(t.b.at_party);
  t.pump();
  CHECK_FALSE(t.lends());
  CHECK_FALSE(t.write(5).is_over);
  t.pump();
  CHECK(theirs.value() == 5);
}

// A choice over several homes reads by attempts, each of which can be withdrawn at any moment
// (WIRE.md 5.4).
TEST_CASE("wire 6.6: nor does an attempt of a choice that spans, of the home's own program") {
  Lent t;
  t.begin_lending();
  Spanning looks;  // The home keeps watching for this choice until it receives GONE.
  looks.write(t.a.at_party, t.end, 1).only_look().begin(*t.far);
  t.a.up();
  t.a.down();
  REQUIRE((looks.is_over && looks.status() == Status::cancelled));
  // `reading` is before `looks` in the order of choices, so it stays in the waiting queue for
  // `looks`.
  Spanning reading;
  reading.read(t.c.reader()).loud().begin(*t.home);
  CHECK_FALSE(reading.is_over);
  CHECK_FALSE(t.write(2).is_over);  // No place was lent.
  t.pump();
  REQUIRE((reading.ok() && reading.times == 1));
  CHECK(reading.value() == 2);
  CHECK(t.ops.back().ok());
  CHECK(t.sessions_are_good());
}

TEST_CASE("wire 6.6: nor does an attempt of a choice that spans, of another program") {
  for (const bool loud : {false, true}) {
    CAPTURE(loud);
    Square s;
    Channel<int> c;
    Reader<int> mine = c.reader();
    const auto read = s.a0.give(c.reader()), write = s.b0.give(c.writer());
    s.settle();
    Op first, second;
    first.write(write, 0).begin(s.b0.at_party);
    Here one(*mine.core());
    s.settle();
    REQUIRE((first.ok() && one.value() == 0));
    Channel<int> d;
    const auto other = s.a1.give(d.reader());
    const auto keeps = d.writer();
    s.settle();
    Spanning looks, reading;
    looks.write(s.b0.at_party, write, 1).only_look().begin(*s.p[1]);
    s.b0.up();
    s.b0.down();
    REQUIRE((looks.is_over && looks.status() == Status::cancelled));
    reading.read(s.a0.at_party, read);
    if (loud)
      reading.loud();
    else
      reading.read(s.a1.at_party, other);
    reading.begin(*s.p[0]);
    s.a0.up();
    second.write(write, 2).begin(s.b0.at_party);
    CHECK_FALSE(second.is_over);
    s.settle();
    REQUIRE((reading.ok() && reading.times == 1));
    CHECK(reading.value() == 2);
    CHECK(second.ok());
    CHECK(s.quiet());
  }
}

TEST_CASE("wire 6.6: a promised reader that leaves is asked back first") {
  Lent t;
  Here& one = t.promised();
  CHECK_FALSE(one.withdraw());
  CHECK_FALSE(one.over());
  CHECK_FALSE(one.withdraw());  // The home has already been asked for the place.
  t.pump();
  CHECK(one.over());
  CHECK(one.status == Status::cancelled);
  CHECK_FALSE(t.lends());
  Op& next = t.write(1);
  t.pump();
  CHECK_FALSE(next.is_over);
  CHECK(t.read().value() == 1);
  t.pump();
  CHECK(next.ok());
}

TEST_CASE("wire 6.6: a value that was put before is the reader's: it asked too late") {
  Lent t;
  Here& one = t.promised();
  CHECK(t.write(1).ok());
  CHECK_FALSE(one.withdraw());
  t.pump();
  CHECK(one.value() == 1);
  // The write and the request for the place have crossed, so the next write is not on credit.
  Here& two = t.read();
  CHECK_FALSE(t.write(2).is_over);
  t.pump();
  CHECK(two.value() == 2);
  CHECK(t.ops.back().ok());
  t.read();
  t.pump();
  CHECK(t.lends());
}

TEST_CASE("wire 6.6: an OFFER that did not know of the credit ends the lending") {
  Lent t;
  t.begin_lending();
  Here& one = t.read();  // The CREDIT has not arrived yet.
  Op& crossed = t.write(7);
  CHECK_FALSE(crossed.is_over);
  t.pump();
  CHECK(crossed.ok());
  CHECK(one.value() == 7);
  CHECK_FALSE(t.lends());
  // From now on credits are sent less often: two more writes are offered before the next credit.
  for (int v = 0; v < 2; ++v) {
    t.read();
    t.pump();
    CHECK_FALSE(t.lends());
    CHECK_FALSE(t.write(v).is_over);
    t.pump();
  }
  t.read();
  t.pump();
  CHECK(t.lends());
}

TEST_CASE("wire 6.6: another writer waits: the place is taken back, and those in line meet") {
  Lent t;
  Here& one = t.promised();
  const auto second = t.b.give(t.c.writer());
  t.pump();
  Op theirs;
  theirs.write(second, 9).begin(t.b.at_party);
  t.pump();
  CHECK(theirs.ok());
  CHECK(one.value() == 9);
  CHECK_FALSE(t.lends());
  Here& two = t.read();
  Op& mine = t.write(1);
  CHECK_FALSE(mine.is_over);
  t.pump();
  CHECK(two.value() == 1);
  t.read();
  t.pump();
  CHECK_FALSE(t.lends());  // Two spaces write, so no place is lent.
}

TEST_CASE("wire 6.6: a value that was put goes before the other writer's") {
  Lent t;
  Here& one = t.promised();
  CHECK(t.write(1).ok());
  const auto second = t.b.give(t.c.writer());
  t.b.pump();
  Op theirs;
  theirs.write(second, 2).begin(t.b.at_party);
  t.b.pump();
  CHECK_FALSE(theirs.is_over);
  Here& two = t.read();
  t.pump();
  CHECK(one.value() == 1);
  CHECK(two.value() == 2);
}

TEST_CASE("wire 6.6: poison waits for the answer: what was put is read, else the reader is told") {
  for (const bool put : {false, true}) {
    Lent t;
    Here& one = t.promised();
    if (put) CHECK(t.write(1).ok());
    t.r.core()->poison(5);
    CHECK_FALSE(one.over());
    t.pump();
    REQUIRE(one.over());
    if (put)
      CHECK(one.value() == 1);
    else
      CHECK(one.status == Status::poisoned);
    Op& next = t.write(2);
    t.pump();
    CHECK((next.is_over && next.status() == Status::poisoned));
  }
}

TEST_CASE("wire 6.6: the writer's end is closed, poisoned or dies: the reader is told") {
  for (const int how : {0, 1, 2}) {
    Lent t;
    Here& one = t.promised();
    if (how == 0) t.a.retire(t.end);
    if (how == 1) t.a.poison(t.end, 3);
    if (how == 2) t.a.tell(t.a.at_home);
    t.pump();
    REQUIRE(one.over());
    CHECK(one.status == (how == 0 ? Status::retired : how == 1 ? Status::poisoned : Status::died));
  }
}

TEST_CASE("wire 6.6: what was put before the end was closed is read (rule 3.2)") {
  Lent t;
  Here& one = t.promised();
  CHECK(t.write(4).ok());
  t.a.retire(t.end);
  t.pump();
  CHECK(one.value() == 4);
  Here& two = t.read();
  REQUIRE(two.over());
  CHECK(two.status == Status::retired);
}

TEST_CASE("wire 6.6: a choice gives the credit up, and meets the reader") {
  Lent t;
  Here& one = t.promised();
  Channel<int> d;
  const auto other = t.a.give(d.writer());
  t.pump();
  Op choice;
  choice.write(other, 1).write(t.end, 2).begin(t.a.at_party);
  CHECK_FALSE(t.lends());
  t.pump();
  REQUIRE(choice.ok());
  CHECK(choice.outcome.guard == 1);
  CHECK(one.value() == 2);
}

TEST_CASE("wire 6.6: a value of many pieces, and of the wrong type") {
  const auto home = w::Space::make("home", 1), far = w::Space::make("far", 2);
  Channel<std::string> c;
  auto r = c.reader();
  Wire a(*home, *far);
  const auto end = a.give(c.writer());
  a.pump();
  const std::string large(300'000, 'x');
  std::deque<weft::test::HereOf<std::string>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back(*r.core());
    a.pump();
    weft::test::OpOf<std::string> o;
    o.write(end, large).begin(a.at_party);
    CHECK(o.is_over == (i > 0));
    a.pump();
    CHECK(o.ok());
    CHECK(readers.back().value() == large);
  }
  weft::test::HereOf<std::string> last(*r.core());
  a.pump();
  CHECK(a.at_party.far.lendings() == 1);
  a.to_home({w::Kind::put, 0, end, 0, 0, 5, {}});  // The value is not a text.
  a.pump();
  CHECK(a.at_home.session.is_over());
  CHECK(last.over());
  CHECK(last.status == Status::died);
}

TEST_CASE("wire 6.6, 14.2: frames that do not fit") {
  {  // a PUT without a credit
    Lent t;
    t.begin_lending();
    t.a.to_home({w::Kind::put, 0, t.end, 0, 0, 5, {}});
    t.pump();
    CHECK(t.a.at_home.session.is_over());
  }
  {  // two PUTs for one credit
    Lent t;
    Here& one = t.promised();
    t.write(1);
    t.a.to_home({w::Kind::put, 0, t.end, 0, 0, 5, {}});
    t.pump();
    CHECK(one.value() == 1);
    CHECK(t.a.at_home.session.is_over());
  }
  for (const w::Frame& bad : {w::Frame{w::Kind::credit, 0, 0, 0, 1, 2, {}},
                              w::Frame{w::Kind::credit, 0, 0, 0, 999, 1, {}}}) {
    Lent t;
    t.begin_lending();
    {
      const w::Space::Step step(*t.home);
      t.a.at_home.session.send(bad);
    }
    t.pump();
    CHECK(t.a.at_party.session.is_over());
  }
}

// Reads, writes, withdrawals and frames happen in any order. The value of each write that has ended
// was read once, no value of a withdrawn write was read, and the values arrive in their order.
TEST_CASE("wire 6.6: random schedules") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    Lent t;
    std::vector<int> values;  // the values of `ops`, in the order in which the writes began
    std::optional<std::uint32_t> second;
    std::deque<Op> theirs;
    bool poisoned = false, closed = false;
    const auto one_event = [&] {
      switch (random() % 12) {
        case 0:
        case 1:
        case 2: t.a.up(); break;
        case 3:
        case 4:
        case 5: t.a.down(); break;
        case 6:
          if (t.readers.size() < 12 && (t.readers.empty() || t.readers.back().done())) t.read();
          break;
        case 7:
        case 8:
          if (!closed && t.ops.size() < 10 && (t.ops.empty() || t.ops.back().is_over))
            t.write(static_cast<int>(t.ops.size()));
          break;
        case 9:
          if (!t.readers.empty() && !t.readers.back().done() && random() % 4 == 0)
            t.readers.back().withdraw();
          break;
        case 10:
          if (!t.ops.empty() && !t.ops.back().is_over && random() % 4 == 0) t.ops.back().withdraw();
          break;
        case 11:
          if (random() % 60 == 0 && !poisoned) poisoned = true, t.r.core()->poison(1);
          if (random() % 60 == 0 && !second && !poisoned && !closed) {
            second = t.b.give(t.c.writer());
            t.b.pump();
            theirs.emplace_back().write(*second, 1000).begin(t.b.at_party);
          }
          if (random() % 60 == 0 && !closed && (t.ops.empty() || t.ops.back().is_over))
            closed = true, t.a.retire(t.end);
          t.b.pump();
          break;
      }
    };
    for (int i = 0; i < 120; ++i) one_event();
    t.pump();
    for (int i = 0; i < 30 && (t.readers.empty() || t.readers.back().done()); ++i) {
      if (!t.readers.empty() && t.readers.back().over() && is_end(t.readers.back().status)) break;
      t.read();
      t.pump();
    }
    std::vector<int> read;
    for (Here& h : t.readers) {
      const bool lent = t.lends() || t.b.at_party.far.lendings() == 1;
      if (!h.done()) CHECK(h.withdraw() == !lent);
      if (h.has_value()) read.push_back(h.value());
    }
    t.pump();
    for (Here& h : t.readers) REQUIRE(h.done());
    REQUIRE(t.sessions_are_good());
    std::vector<int> expected;
    for (std::size_t i = 0; i < t.ops.size(); ++i) {
      REQUIRE(t.ops[i].is_over);
      REQUIRE(t.ops[i].times == 1);
      if (t.ops[i].ok()) expected.push_back(static_cast<int>(i));
    }
    std::erase(read, 1000);
    REQUIRE(read == expected);
  }
}

}  // namespace
}  // namespace wire_places
