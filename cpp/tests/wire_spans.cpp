// Tests choices whose guards are at several homes (WIRE.md 5), with links that the test schedules.
#include <doctest/doctest.h>

#include <thread>

#include "weft/weft.hpp"
#include "wire_choice.hpp"

namespace wire_spans {
namespace {
using namespace weft;
using weft::test::Op;
using weft::test::Spanning;
using weft::test::Square;
namespace w = weft::wire;

TEST_CASE(
    "wire 5.2: an input choice over two homes takes from whoever comes, and leaves nothing behind "
    "(rules 5.1, 5.10)") {
  for (const int from : {0, 1}) {
    CAPTURE(from);
    Square s;
    Channel<int> c, d;
    const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
    const auto wc = s.b0.give(c.writer()), wd = s.b1.give(d.writer());
    s.settle();
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
    s.settle();
    CHECK_FALSE(x.is_over);
    Op write;
    write.write(from ? wd : wc, 7 + from).begin(from ? s.b1.at_party : s.b0.at_party);
    s.settle();
    REQUIRE((x.ok() && write.ok()));
    CHECK(x.outcome.guard == static_cast<std::uint32_t>(from));
    CHECK(x.value() == 7 + from);
    CHECK(x.times == 1);
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.2: an output choice over two homes gives to whoever comes; the other value is not "
    "sent") {
  Square s;
  Channel<int> c, d;
  const auto wc = s.a0.give(c.writer()), wd = s.a1.give(d.writer());
  s.settle();
  Spanning x;
  x.write(s.a0.at_party, wc, 1).write(s.a1.at_party, wd, 2).begin(*s.p[0]);
  s.settle();
  CHECK_FALSE(x.is_over);
  Reader<int> r = d.reader();  // The reader is a thread of the home's program.
  int got = 0;
  std::thread reads([&] { got = r(); });
  while (!x.finished()) s.settle();
  reads.join();
  s.settle();
  CHECK((x.ok() && x.outcome.guard == 1 && got == 2));
  CHECK(s.quiet());
}

TEST_CASE(
    "wire 5.4: two choices that span cross each other: exactly one guard on each side, whoever is "
    "last") {
  for (const int last : {0, 1}) {
    CAPTURE(last);
    Square s;
    Channel<int> c, d;
    const auto cw = s.a0.give(c.writer()), dr = s.a1.give(d.reader());
    const auto cr = s.b0.give(c.reader()), dw = s.b1.give(d.writer());
    s.settle();
    Spanning x, y;
    x.write(s.a0.at_party, cw, 1).read(s.a1.at_party, dr);
    y.write(s.b1.at_party, dw, 2).read(s.b0.at_party, cr);
    if (last == 1) x.begin(*s.p[0]), s.settle();
    y.begin(*s.p[1]);
    s.settle();
    if (last == 0) x.begin(*s.p[0]), s.settle();
    REQUIRE((x.ok() && y.ok()));
    CHECK(x.outcome.guard != y.outcome.guard);
    CHECK((x.outcome.guard == 0 ? y.value() == 1 : x.value() == 2));
    CHECK(s.quiet());
  }
}

TEST_CASE("wire 5.9: a select that polls asks each home once, takes what is there, or is over") {
  for (const bool there : {false, true}) {
    CAPTURE(there);
    Square s;
    Channel<int> c, d;
    const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
    const auto wc = s.b0.give(c.writer()), wd = s.b1.give(d.writer());
    s.settle();
    Op write;
    if (there) write.write(wd, 7).begin(s.b1.at_party), s.settle();
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).only_look().begin(*s.p[0]);
    CHECK_FALSE(x.is_over);  // The homes have not been asked yet.
    s.settle();
    REQUIRE((x.is_over && x.times == 1));
    CHECK(x.status() == (there ? Status::ok : Status::cancelled));
    if (there) CHECK((x.outcome.guard == 1 && x.value() == 7));
    Op later;  // No offer has been left behind at the homes.
    later.write(wc, 8).begin(s.b0.at_party);
    s.settle();
    CHECK(later.status() == Status::pending);
    CHECK(s.a0.at_party.far.open() + s.a1.at_party.far.open() == 0);
  }
}

TEST_CASE(
    "wire 5.9: a guard whose channel's retirement is an outcome; a choice that something else "
    "keeps open (rule 5.6)") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  { auto wc = c.writer(); }
  Writer<int> keeps = d.writer();
  s.settle();
  Spanning quiet, loud, lasting;
  quiet.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  loud.read(s.a0.at_party, rc).loud().read(s.a1.at_party, rd).begin(*s.p[0]);
  lasting.read(s.a0.at_party, rc).read(s.a1.at_party, rd).last().begin(*s.p[0]);
  s.settle();
  CHECK_FALSE(quiet.is_over);
  CHECK((loud.is_over && loud.status() == Status::retired && loud.outcome.guard == 0));
  CHECK_FALSE(lasting.is_over);
  keeps.retire();
  s.settle();
  CHECK((quiet.is_over && quiet.status() == Status::retired && quiet.outcome.guard == 0));
  CHECK_FALSE(lasting.is_over);
  lasting.withdraw();
  s.settle();
  CHECK((lasting.is_over && lasting.status() == Status::cancelled && lasting.times == 1));
  CHECK(s.quiet());
}

TEST_CASE(
    "wire 5.6: with everybody there, guards are asked in their order, or from another one on (rule "
    "5.4)") {
  for (const std::uint32_t first : {0u, 1u, 2u}) {
    CAPTURE(first);
    Square s;
    Channel<int> c{buffer(4)}, d{buffer(4)}, e{buffer(4)};
    // Guards 0 and 2 are at one home, and guard 1 is at the other home.
    const auto rc = s.a0.give(c.reader()), re = s.a0.give(e.reader()), rd = s.a1.give(d.reader());
    s.settle();
    c.writer()(10), d.writer()(11), e.writer()(12);
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).read(s.a0.at_party, re).begin(*s.p[0], first);
    s.settle();
    REQUIRE(x.ok());
    CHECK(x.outcome.guard == first);
    CHECK(x.value() == 10 + static_cast<int>(first));
  }
}

TEST_CASE(
    "wire 5.6: a guard between two of another home is not passed over because its home is asked "
    "later (rule 5.4)") {
  Square s;
  Channel<int> never, d{buffer(8)}, e{buffer(8)};
  const auto rn = s.a0.give(never.reader()), re = s.a0.give(e.reader()), rd = s.a1.give(d.reader());
  s.settle();
  Writer<int> wd = d.writer(), we = e.writer(), alive = never.writer();
  for (int i = 0; i < 6; ++i) wd(i), we(i);
  int seen[3] = {0, 0, 0};
  std::uint32_t first = 0;
  for (int i = 0; i < 6; ++i) {
    Spanning x;
    x.read(s.a0.at_party, rn).read(s.a1.at_party, rd).read(s.a0.at_party, re).begin(*s.p[0], first);
    s.settle();
    REQUIRE(x.ok());
    ++seen[x.outcome.guard];
    first = (x.outcome.guard + 1) % 3;
  }
  CHECK((seen[0] == 0 && seen[1] == 3 && seen[2] == 3));
}

TEST_CASE(
    "wire 5.3: a home that says READY while another is asked is tried, also if another guard of "
    "its, "
    "which is off, has been asked meanwhile") {
  Square s;
  Channel<int> c, d, e;
  const auto rc = s.a0.give(c.reader()), re = s.a0.give(e.reader()), rd = s.a1.give(d.reader());
  const auto wc = s.b0.give(c.writer());
  s.settle();
  Writer<int> wd = d.writer(), we = e.writer();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).read(s.a0.at_party, re).off();
  x.begin(*s.p[0]);
  // The home of the first guard has been asked, and the second home has not answered. At that
  // moment a writer arrives.
  while (s.a0.up() || s.a0.down()) {
  }
  Op write;
  write.write(wc, 7).begin(s.b0.at_party);
  while (s.b0.up() || s.a0.down()) {
  }
  s.settle();
  REQUIRE((x.ok() && write.ok()));
  CHECK((x.outcome.guard == 0 && x.value() == 7));
  CHECK(s.quiet());
}

TEST_CASE("wire 5.9: two selects that poll do not meet, whoever is before the other (rule 5.7)") {
  for (const int first : {0, 1}) {
    CAPTURE(first);
    Square s;
    Channel<int> c, d;
    const auto ar = s.a0.give(c.reader()), ad = s.a1.give(d.reader());
    const auto bw = s.b0.give(c.writer()), bd = s.b1.give(d.reader());
    s.settle();
    Writer<int> wd = d.writer();
    Spanning x, y;
    x.read(s.a0.at_party, ar).read(s.a1.at_party, ad).only_look();
    y.write(s.b0.at_party, bw, 1).read(s.b1.at_party, bd).only_look();
    // Both homes know both choices before the first TRY arrives.
    x.begin(*s.p[0]);
    y.begin(*s.p[1]);
    s.a0.up(), s.a1.up(), s.b0.up(), s.b1.up();
    (first ? s.b0 : s.a0).up();
    s.settle();
    CHECK((x.is_over && x.status() == Status::cancelled));
    CHECK((y.is_over && y.status() == Status::cancelled));
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.9: a timer that comes before all homes were asked waits for each: one that is ready "
    "is chosen (rule 5.7)") {
  for (const bool ready : {true, false}) {
    CAPTURE(ready);
    Square s;
    Channel<int> c, d{buffer(1)}, e;
    const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
    s.settle();
    Writer<int> wc = c.writer(), wd = d.writer();
    if (ready) wd(7);
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
    x.look_once();
    CHECK_FALSE(x.is_over);
    s.settle();
    REQUIRE((x.is_over && x.times == 1));
    CHECK(x.status() == (ready ? Status::ok : Status::cancelled));
    if (ready) CHECK((x.outcome.guard == 1 && x.value() == 7));
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.9: a home that is asked after the timer came may decide at once, and then the choice "
    "is gone: nothing of it is looked at any more") {
  for (const bool here : {true, false}) {
    CAPTURE(here);
    Square s;
    Channel<int> c, d{buffer(1)};
    const auto rc = s.a0.give(c.reader());
    Reader<int> mine = d.reader();
    const auto rd = here ? 0 : s.a1.give(d.reader());
    s.settle();
    Writer<int> wc = c.writer(), wd = d.writer();
    wd(7);
    Spanning x;
    x.read(s.a0.at_party, rc);
    here ? x.read(std::move(mine)) : x.read(s.a1.at_party, rd);
    x.goes_at_once().begin(*s.p[0]);
    x.look_once();
    s.settle();
    REQUIRE((x.is_over && x.times == 1 && x.ok()));
    CHECK((x.outcome.guard == 1 && x.value() == 7));
  }
}

TEST_CASE(
    "wire 5.11: that the channel of a guard that is off has retired is no outcome, also if its "
    "retirement would be one (rules 5.2, 5.6)") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  s.settle();
  Writer<int> wc = c.writer();
  d.writer().retire();
  Spanning x;
  x.read(s.a1.at_party, rd).loud().off().read(s.a0.at_party, rc).begin(*s.p[0]);
  s.settle();
  CHECK_FALSE(x.is_over);
  x.withdraw();
  s.settle();
  CHECK((x.status() == Status::cancelled && s.quiet()));
}

TEST_CASE("wire 5.1: one of the homes may be the place itself: a local channel and a remote one") {
  for (const bool local : {true, false}) {
    CAPTURE(local);
    Square s;
    Channel<int> mine, far;
    const auto rf = s.a0.give(far.reader());
    s.settle();
    Spanning x;
    x.read(mine.reader()).read(s.a0.at_party, rf).begin(*s.p[0]);
    s.settle();
    CHECK_FALSE(x.is_over);
    std::thread writes([&, to = local ? mine.writer() : far.writer()] { to(5); });
    while (!x.finished()) s.settle();
    writes.join();
    s.settle();
    CHECK((x.ok() && x.outcome.guard == (local ? 0u : 1u) && x.value() == 5));
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.7: a retired channel is silent; the last that decides ends the choice (rule 5.6)") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  s.settle();
  Writer<int> wc = c.writer(), wd = d.writer();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.settle();
  wc.retire();
  s.settle();
  CHECK_FALSE(x.is_over);
  wd.retire();
  s.settle();
  CHECK((x.is_over && x.status() == Status::retired && x.times == 1));
  CHECK(s.quiet());
  // The choice finds the ready guard immediately.
  Spanning y;
  y.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.settle();
  CHECK((y.is_over && y.status() == Status::retired));
}

TEST_CASE(
    "wire 5.7: of a mixed choice the outputs decide; with a silent input it still writes (rule "
    "5.6)") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), wd = s.a1.give(d.writer());
  s.settle();
  Writer<int> wc = c.writer();
  Reader<int> rd = d.reader();
  Spanning x;
  x.read(s.a0.at_party, rc).write(s.a1.at_party, wd, 3).begin(*s.p[0]);
  s.settle();
  wc.retire();
  s.settle();
  CHECK_FALSE(x.is_over);
  rd.retire();
  s.settle();
  CHECK((x.is_over && x.status() == Status::retired && x.outcome.guard == 1));
}

TEST_CASE(
    "wire 5.11: an output that is off, and open, holds a choice open while an input is (rule 5.6); "
    "its home says whether it is") {
  for (const bool same_home : {false, true})
    for (const bool open : {false, true}) {
      Square s;
      Channel<int> c, d, e;
      weft::test::Wire& third = same_home ? s.a0 : s.a1;
      const auto rc = s.a0.give(c.reader()), wd = s.a0.give(d.writer()),
                 we = third.give(e.writer());
      s.settle();
      Writer<int> wc = c.writer();
      Reader<int> rd = d.reader(), re = e.reader();
      rd.retire();  // rd is the reader of the output that is on.
      if (!open) re.retire();
      Spanning x;
      x.read(s.a0.at_party, rc)
          .write(s.a0.at_party, wd, 3)
          .write(third.at_party, we, 4)
          .off()
          .begin(*s.p[0]);
      s.settle();
      CHECK(x.is_over == !open);
      if (!open) {
        CHECK((x.status() == Status::retired && x.outcome.guard == 1));
      } else {
        re.retire();  // Whether the guard is open is decided when the choice begins.
        s.settle();
        CHECK_FALSE(x.is_over);
        std::thread writes([&, token = Outside()] { wc(5); });
        while (!x.finished()) s.settle();
        writes.join();
        CHECK((x.ok() && x.outcome.guard == 0 && x.value() == 5));
      }
      s.settle();
      CHECK(s.quiet());
    }
}

TEST_CASE(
    "wire 5.11: an input that is off, and open, holds a choice open that has a timer (rule 5.6); "
    "one that polls ends at once") {
  for (const bool open : {false, true})
    for (const bool looks : {false, true}) {
      Square s;
      Channel<int> c, d;
      const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
      s.settle();
      c.writer().retire();
      Writer<int> wd = d.writer();
      if (!open) wd.retire();
      Spanning x;
      x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).off().timed();
      if (looks) x.only_look();
      x.begin(*s.p[0]);
      s.settle();
      CHECK(x.is_over == (looks || !open));
      if (x.is_over) CHECK(x.status() == (open ? Status::cancelled : Status::retired));
      if (!x.is_over) x.withdraw();
      s.settle();
      CHECK((x.is_over && x.times == 1 && s.quiet()));
    }
}

TEST_CASE(
    "wire 5.11: what is off meets nobody, and the loss of its home is not the choice's (rules 5.2, "
    "5.6)") {
  for (const bool before : {false, true}) {
    Square s;
    Channel<int> c, d, e;
    const auto rc = s.a0.give(c.reader()), wd = s.a0.give(d.writer()), we = s.a1.give(e.writer());
    const auto re = s.b1.give(e.reader());
    s.settle();
    Writer<int> wc = c.writer();
    d.reader().retire();
    weft::test::Op read;  // waits at the channel of the guard that is off
    read.read(re).begin(s.b1.at_party);
    s.settle();
    if (before) s.a1.tell(s.a1.at_party);
    Spanning x;
    x.read(s.a0.at_party, rc)
        .write(s.a0.at_party, wd, 3)
        .write(s.a1.at_party, we, 4)
        .off()
        .begin(*s.p[0]);
    s.settle();
    CHECK(x.is_over == before);
    CHECK_FALSE(read.is_over);
    if (!before) s.a1.tell(s.a1.at_party);
    CHECK((x.is_over && x.status() == Status::retired && x.outcome.guard == 1));
  }
}

TEST_CASE(
    "wire 5.11, 14.2: a guard that is off without a choice that spans, or with a value, is a "
    "fault") {
  Square s;
  Channel<int> c;
  s.a0.give(c.writer());
  s.b0.give(c.writer());
  s.settle();
  s.a0.to_home(w::Frame{w::Kind::offer, w::Flag::write | w::Flag::off, 0, 0, 1, 0, {}});
  s.b0.to_home(
      w::Frame{w::Kind::offer, w::Flag::write | w::Flag::off | w::Flag::spans, 0, 1, 1, 7, {}});
  s.settle();
  CHECK(s.a0.at_home.session.why().find("does not span") != std::string::npos);
  CHECK(s.b0.at_home.session.why().find("add up") != std::string::npos);
}

TEST_CASE(
    "wire 5.7: an output that has retired is in nobody's way: at its home the other guards are "
    "tried without it (rules 5.2, 5.6)") {
  for (const bool looks : {false, true})
    for (const bool before : {false, true}) {
      CAPTURE(looks);
      CAPTURE(before);
      if (looks && !before) continue;
      Square s;
      Channel<int> gone, c;
      const auto w = s.a0.give(gone.writer()), r = s.a0.give(c.reader()),
                 from = s.b0.give(c.writer());
      { auto reader = gone.reader(); }
      s.settle();
      Op write;
      if (before) write.write(from, 7).begin(s.b0.at_party), s.settle();
      Spanning x;
      x.write(s.a0.at_party, w, 1).read(s.a0.at_party, r).last();
      if (looks) x.only_look();
      x.begin(*s.p[0]);
      // The choice must end within this many rounds: it must not send requests forever.
      const auto settles = [&] {
        for (int i = 0; i < 100; ++i) {
          bool any = false;
          for (auto* l : s.all) any |= l->up() || l->down();
          if (!any) return true;
        }
        return false;
      };
      REQUIRE(settles());
      if (!before) write.write(from, 7).begin(s.b0.at_party);
      REQUIRE(settles());
      REQUIRE((x.ok() && x.times == 1));
      CHECK((x.outcome.guard == 1 && x.value() == 7));
      CHECK(write.ok());
      CHECK(s.quiet());
    }
}

TEST_CASE("wire 5.7: poison and death are ready, and compete (rules 4.1, 4.5, 5.6)") {
  for (const bool dies : {false, true}) {
    CAPTURE(dies);
    Square s;
    Channel<int> c, d;
    const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader()), wd = s.b1.give(d.writer());
    s.settle();
    Writer<int> alive = c.writer();
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
    s.settle();
    dies ? s.b1.retire(wd, true) : s.b1.poison(wd, 9);
    s.settle();
    REQUIRE(x.is_over);
    CHECK(x.status() == (dies ? Status::died : Status::poisoned));
    CHECK((x.outcome.guard == 1 && !x.outcome.lost && x.outcome.strength == (dies ? 0 : 9)));
    CHECK(s.quiet());
  }
}

TEST_CASE(
    "wire 5.5: a choice that waits is withdrawn at its place; one that is tried waits for the "
    "answer (rules 6.2, 6.3)") {
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.settle();
  x.withdraw();
  CHECK((x.is_over && x.status() == Status::cancelled));
  s.settle();
  CHECK(s.quiet());
  Spanning y;
  y.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  y.withdraw();
  CHECK_FALSE(y.is_over);
  s.settle();
  CHECK((y.is_over && y.status() == Status::cancelled && y.times == 1));
}

TEST_CASE(
    "wire 8.1: the home of a guard is lost: dead, and in doubt only if it was trying to write "
    "there") {
  for (const bool trying : {false, true}) {
    CAPTURE(trying);
    Square s;
    Channel<int> c, d;
    const auto wc = s.a0.give(c.writer()), wd = s.a1.give(d.writer());
    s.settle();
    Spanning x;
    x.write(s.a0.at_party, wc, 1).write(s.a1.at_party, wd, 2).begin(*s.p[0]);
    if (!trying) s.settle();
    s.a0.cut = true;
    s.a0.tell(s.a0.at_party);
    s.settle();
    REQUIRE(x.is_over);
    CHECK((x.status() == Status::died && x.outcome.lost && x.outcome.in_doubt == trying &&
           x.outcome.guard == 0));
    s.a0.tell(s.a0.at_home);
    CHECK(s.a1.at_home.home.open() == 0);
  }
}

TEST_CASE("wire 8.1: a home that is lost while another one is asked waits for that one's answer") {
  Square s;
  Channel<int> c, d{buffer(1)};
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  s.settle();
  d.writer()(4);
  Spanning x;
  x.read(s.a1.at_party, rd).read(s.a0.at_party, rc).begin(*s.p[0]);  // Home a1 is asked first.
  s.a0.cut = true;
  s.a0.tell(s.a0.at_party);
  CHECK_FALSE(x.is_over);
  s.settle();
  CHECK((x.ok() && x.value() == 4));
  s.a0.tell(s.a0.at_home);
}

TEST_CASE(
    "wire 5.3: a local standing alternative meets a choice that spans, whichever comes first (rule "
    "5.9)") {
  for (const bool alternative_first : {true, false}) {
    CAPTURE(alternative_first);
    Square s;
    Channel<int> c, d, other;
    const auto wc = s.a0.give(c.writer()), wd = s.a1.give(d.writer());
    s.settle();
    Reader<int> rc = c.reader(), ro = other.reader();
    Spanning x;
    x.write(s.a0.at_party, wc, 6).write(s.a1.at_party, wd, 7);
    if (!alternative_first) x.begin(*s.p[0]), s.settle();
    int got = 0;
    std::thread reads([&] {
      Alternative alt{Mode::priority, rc, ro};
      got = alt.select()().index == 0 ? 6 : 0;
    });
    if (alternative_first) x.begin(*s.p[0]);
    while (!x.finished()) s.settle();
    reads.join();
    s.settle();
    CHECK((x.ok() && x.outcome.guard == 0 && got == 6));
    CHECK(s.quiet());
  }
}

TEST_CASE("wire 14.2: what only a hostile peer says of a choice ends its session") {
  struct Case {
    w::Frame frame;
    const char* why;
  };
  for (const Case& k :
       {Case{{w::Kind::try_it, 0, 2, 0, 1, 1, {}}, "a TRY of guards that were not offered"},
        Case{{w::Kind::try_it, 0, 0, 0, 1, 0, {}}, "a TRY of guards that were not offered"},
        Case{{w::Kind::try_it, 0, 1, 0, 1, ~std::uint64_t{0}, {}},
             "a TRY of guards that were not offered"},
        Case{{w::Kind::offer, w::Flag::spans, 0, 0, 9, 0, {}},
             "an OFFER that spans without its place in the order"}}) {
    CAPTURE(k.why);
    Square s;
    Channel<int> c, d, e;
    const auto rc = s.a0.give(c.reader()), re = s.a0.give(e.reader()), rd = s.a1.give(d.reader());
    s.settle();
    Spanning x;
    x.read(s.a0.at_party, rc).read(s.a0.at_party, re).read(s.a1.at_party, rd).begin(*s.p[0]);
    s.settle();
    s.a0.to_home(k.frame);
    s.settle();
    CHECK(s.a0.at_home.session.why() == k.why);
    CHECK((x.is_over && x.status() == Status::died));
  }
  Square s;
  Channel<int> c, d;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.settle();
  {
    const w::Space::Step step(*s.h[0]);
    s.a0.at_home.session.send(w::Frame{w::Kind::done, 0, 0, 0, 1, 3, {}});
  }
  s.settle();
  CHECK(s.a0.at_party.session.why() == "a DONE of a choice that this home was not asked to try");
  CHECK((x.is_over && x.status() == Status::died && !x.outcome.in_doubt));
}

}  // namespace
}  // namespace wire_spans
