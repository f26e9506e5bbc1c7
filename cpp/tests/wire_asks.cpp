// Tests that a choice over several homes offers its guards to a home and asks that home to try them
// in one frame (WIRE.md 5.1).
#include <doctest/doctest.h>

#include "weft/weft.hpp"
#include "wire_choice.hpp"

namespace wire_asks {
namespace {
using namespace weft;
using weft::test::Spanning;
using weft::test::Square;

TEST_CASE(
    "wire 5.1: a choice that is over at the first home has cost a frame each way there, and no "
    "other home has heard of it") {
  for (const bool writes : {false, true}) {
    CAPTURE(writes);
    Square s;
    Channel<int> c{buffer(1)}, d;
    const auto at_c = writes ? s.a0.give(c.writer()) : s.a0.give(c.reader());
    const auto rd = s.a1.give(d.reader());
    Writer<int> w = c.writer(), keeps = d.writer();
    Reader<int> r = c.reader();
    if (!writes) w(7);
    s.settle();
    const auto there = s.a0.at_party.session.sent(), back = s.a0.at_home.session.sent(),
               other = s.a1.at_party.session.sent();
    Spanning x;
    if (writes)
      x.write(s.a0.at_party, at_c, 7);
    else
      x.read(s.a0.at_party, at_c);
    x.read(s.a1.at_party, rd).begin(*s.p[0]);
    s.settle();
    REQUIRE((x.ok() && x.outcome.guard == 0));
    CHECK((writes ? r() : x.value()) == 7);
    CHECK(s.a0.at_party.session.sent() == there + 1);
    CHECK(s.a0.at_home.session.sent() == back + 1);
    CHECK(s.a1.at_party.session.sent() == other);
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.1, 5.7: what has retired at the home that is asked first is said with the answer; the "
    "other guards there are tried (rule 5.6)") {
  for (const bool ready : {false, true}) {
    CAPTURE(ready);
    Square s;
    Channel<int> c, d{buffer(1)}, e;
    const auto rc = s.a0.give(c.reader()), rd = s.a0.give(d.reader()), re = s.a1.give(e.reader());
    { auto gone = c.writer(); }
    Writer<int> wd = d.writer(), we = e.writer();
    if (ready) wd(7);
    s.settle();
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a0.at_party, rd).read(s.a1.at_party, re).begin(*s.p[0]);
    s.settle();
    CHECK(x.is_over == ready);
    if (ready) {
      CHECK((x.ok() && x.outcome.guard == 1 && x.value() == 7));
      continue;
    }
    we.retire();
    s.settle();
    CHECK_FALSE(x.is_over);
    wd.retire();
    s.settle();
    CHECK((x.is_over && x.status() == Status::retired && x.outcome.guard == 0));
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.1, 8.3: of a home that is lost already the choice is told at once, also if another one "
    "would be asked first") {
  Square s;
  Channel<int> c{buffer(1)}, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  c.writer()(7);
  s.settle();
  s.a1.tell(s.a1.at_party);
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  CHECK((x.is_over && x.status() == Status::died && x.outcome.guard == 1 && !x.outcome.in_doubt));
  s.settle();
  CHECK(s.a0.at_party.far.open() == 0);
}

TEST_CASE(
    "wire 5.1, 5.8: a home that is lost before it has heard of the choice is told if the one that "
    "is asked finds nobody") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  Writer<int> wc = c.writer(), wd = d.writer();
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.a1.tell(s.a1.at_party);
  CHECK_FALSE(x.is_over);
  s.settle();
  REQUIRE((x.is_over && x.times == 1));
  CHECK((x.status() == Status::died && x.outcome.guard == 1 && !x.outcome.in_doubt));
  CHECK(s.a0.at_party.far.open() + s.a0.at_home.home.open() == 0);
}

}  // namespace
}  // namespace wire_asks
