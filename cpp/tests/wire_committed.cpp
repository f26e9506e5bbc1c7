// Tests choices over several homes that have committed but have not ended yet, because an extended
// read holds the choice, or the choice still makes its value. No other choice waits for such a
// choice (WIRE.md 5.4).
#include <doctest/doctest.h>

#include "weft/weft.hpp"
#include "wire_choice.hpp"

namespace wire_committed {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Spanning;
using weft::test::Square;

TEST_CASE(
    "wire 5.4: a choice that has committed, and is held by an extended read, is waited for by "
    "nobody (rules 1.6, 5.7)") {
  for (const bool several : {false, true})
    // 0: the extended read begins before x; 1: it begins after x; 2: y polls before x tries.
    for (const int when : {0, 1, 2}) {
      CAPTURE(several);
      CAPTURE(when);
      Square s;
      Channel<int> c, d, e;
      // y, at the first place, is before x, at the second place, in the order of choices.
      const auto w = s.b0.give(c.writer()), more = s.b0.give(d.writer()),
                 away = s.b1.give(e.writer());
      const auto r = s.a0.give(c.reader()), other = s.a0.give(d.reader());
      s.settle();
      Spanning x, y;
      Op held;
      held.hold(r);
      x.write(s.b0.at_party, w, 1);
      if (several) x.write(s.b0.at_party, more, 2);
      x.write(s.b1.at_party, away, 3);
      y.read(s.a0.at_party, r).read(s.a0.at_party, other).only_look();
      if (when == 0) held.begin(s.a0.at_party), s.settle();
      x.begin(*s.p[1]), s.settle();
      if (when == 1) held.begin(s.a0.at_party), s.settle();
      if (when == 2) {
        held.begin(s.a0.at_party), y.begin(*s.p[0]);
        while (s.a0.up()) {
        }
        CHECK_FALSE(y.is_over);
        s.settle();
      }
      REQUIRE(held.ok());
      CHECK(held.value() == 1);
      CHECK_FALSE(x.is_over);
      if (when != 2) y.begin(*s.p[0]), s.settle();
      REQUIRE(y.is_over);
      CHECK(y.status() == Status::cancelled);
      held.end_block(), s.settle();
      REQUIRE(x.ok());
      CHECK(x.outcome.guard == 0);
      CHECK(s.quiet());
    }
}

TEST_CASE(
    "wire 5.4: so it is with a choice that makes the value to which it has committed (rule 5.8)") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    Square s;
    Channel<int> c, e;
    const auto w = s.b0.give(c.writer()), away = s.b1.give(e.writer());
    const auto r = s.a0.give(c.reader());
    s.settle();
    Spanning x, y;
    Op reads;
    x.write(s.b0.at_party, w, 0).later().write(s.b1.at_party, away, 3);
    y.read(s.a0.at_party, r).only_look();
    x.begin(*s.p[1]), s.settle();
    reads.read(r).begin(s.a0.at_party);
    if (before) {
      y.begin(*s.p[0]);
      while (s.a0.up()) {
      }
      CHECK_FALSE(y.is_over);
    }
    s.settle();
    REQUIRE(x.has_committed);
    if (!before) y.begin(*s.p[0]), s.settle();
    REQUIRE(y.is_over);
    CHECK(y.status() == Status::cancelled);
    CHECK_FALSE(reads.is_over);
    x.make(1), s.settle();
    REQUIRE((x.ok() && reads.ok()));
    CHECK(reads.value() == 1);
    CHECK(s.quiet());
  }
}

}  // namespace
}  // namespace wire_committed
