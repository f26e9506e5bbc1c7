// Exploration of choices that span homes (WIRE.md 5): orders of the frames on up to four sessions,
// of withdrawals and of cuts. Where there are too many orders, all orders of the first events are
// run. The mutants are those of conformance/models/wire_spans.pml.
#include "engine.hpp"
#include "explore_events.hpp"
#include "wire_choice.hpp"

namespace weft::test {
namespace {

using explorer::engine;

SCENARIO(
    "wire: two choices that span cross: they meet once, and the one's guard is the other's (wire "
    "5.3, 5.4)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cw = s.a0.give(c.writer()), dr = s.a1.give(d.reader()), cr = s.b0.give(c.reader()),
             dw = s.b1.give(d.writer());
  s.settle();
  Spanning x, y;
  x.write(s.a0.at_party, cw, 1).read(s.a1.at_party, dr).begin(*s.p[0]);
  y.write(s.b1.at_party, dw, 2).read(s.b0.at_party, cr).begin(*s.p[1]);
  Events e(6);
  int steps = 0;
  do {
    frames(e, s);
    REQUIRE_THAT(++steps < 500);  // The choices must not try each other forever.
  } while (e.one());
  REQUIRE_THAT(x.ok() && y.ok() && x.times == 1 && y.times == 1);
  REQUIRE_THAT(x.outcome.guard != y.outcome.guard);
  REQUIRE_THAT(x.outcome.guard == 0 ? y.value() == 1 : x.value() == 2);
  REQUIRE_THAT(s.quiet());
}

SCENARIO(
    "wire: two choices that span, and a plain reader comes for one of them: nobody is left who "
    "could meet (wire 5.5)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cw = s.a0.give(c.writer()), dw = s.a1.give(d.writer()), cr = s.b0.give(c.reader()),
             dr = s.b1.give(d.reader());
  s.settle();
  Spanning x;
  x.write(s.a0.at_party, cw, 1).write(s.a1.at_party, dw, 2).begin(*s.p[0]);
  Spanning y;
  y.read(s.b0.at_party, cr).read(s.b1.at_party, dr).begin(*s.p[1]);
  Op third;
  bool came = false;
  Events e(6);
  do {
    frames(e, s);
    e.may(!came, [&] { came = true, third.read(dr).begin(s.b1.at_party); });
  } while (e.one());
  REQUIRE_THAT(x.ok() && x.times == 1);
  REQUIRE_THAT(y.ok() + third.ok() == 1);
  REQUIRE_THAT((y.ok() ? y.value() : third.value()) == static_cast<int>(x.outcome.guard) + 1);
}

SCENARIO(
    "wire: a choice that spans is withdrawn: it has happened or it has not (wire 5.5, rules "
    "6.2-6.4)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cw = s.a0.give(c.writer()), dw = s.a1.give(d.writer()), cr = s.b0.give(c.reader()),
             dr = s.b1.give(d.reader());
  s.settle();
  Spanning x;
  x.write(s.a0.at_party, cw, 1).write(s.a1.at_party, dw, 2).begin(*s.p[0]);
  Op second;
  second.read(dr).begin(s.b1.at_party);
  bool asked = false;
  Events e(6);
  do {
    frames(e, s);
    e.may(!asked && !x.is_over, [&] { asked = true, x.withdraw(); });
  } while (e.one());
  (void)cr;
  REQUIRE_THAT(x.times == 1);
  REQUIRE_THAT(x.ok() == second.ok());
  REQUIRE_THAT(x.ok() || (asked && x.status() == Status::cancelled));
}

SCENARIO(
    "wire: a home of a choice that spans is cut off: in doubt if it was trying, else certainly not "
    "taken (wire 8.1)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cw = s.a0.give(c.writer()), dw = s.a1.give(d.writer()), cr = s.b0.give(c.reader());
  s.settle();
  Spanning x;
  x.write(s.a0.at_party, cw, 1).write(s.a1.at_party, dw, 2).begin(*s.p[0]);
  Op read;
  read.read(cr).begin(s.b0.at_party);
  bool home_knows = false, party_knows = false;
  Events e(6);
  do {
    for (Wire* l : {&s.a0, &s.a1, &s.b0}) e.frames(*l);
    e.may(!s.a0.cut, [&] { s.a0.cut = true; });
    e.may(s.a0.cut && !home_knows, [&] { home_knows = true, s.a0.tell(s.a0.at_home); });
    e.may(s.a0.cut && !party_knows, [&] { party_knows = true, s.a0.tell(s.a0.at_party); });
  } while (e.one());
  REQUIRE_THAT(x.is_over && x.times == 1);
  REQUIRE_THAT(!x.ok() || read.ok());
  REQUIRE_THAT(!(read.ok() && !x.ok() && !x.outcome.in_doubt));
  REQUIRE_THAT(read.is_over);
}

SCENARIO(
    "wire: of two choices that span one loses its session: the other is not held for ever, and "
    "gets nothing from it (wire 2.5, 5.4)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cw = s.a0.give(c.writer()), dr = s.a1.give(d.reader()), cr = s.b0.give(c.reader()),
             dw = s.b1.give(d.writer());
  s.settle();
  Writer<int> others = d.writer();
  Spanning x, y;
  x.write(s.a0.at_party, cw, 1).read(s.a1.at_party, dr).begin(*s.p[0]);
  s.settle();
  s.a0.cut = true;  // The home learns of the cut now; the place of x learns of it later.
  s.a0.tell(s.a0.at_home);
  y.read(s.b0.at_party, cr).write(s.b1.at_party, dw, 2).begin(*s.p[1]);
  bool told = false;
  Events e;
  do {
    for (Wire* l : {&s.a1, &s.b0, &s.b1}) e.frames(*l);
    e.may(!told, [&] { told = true, s.a0.tell(s.a0.at_party); });
  } while (e.one());
  REQUIRE_THAT(x.is_over && y.is_over);
  REQUIRE_THAT(x.ok() ? y.ok() && x.value() == 2 : !(y.ok() && y.outcome.guard == 0));
}

SCENARIO(
    "wire: sources at two homes retire, in any order: over with the last one, and not before (wire "
    "5.7, rule 5.6)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cr = s.a0.give(c.reader()), dr = s.a1.give(d.reader());
  s.settle();
  Writer<int> wc = c.writer(), wd = d.writer();
  Spanning x;
  x.read(s.a0.at_party, cr).read(s.a1.at_party, dr).begin(*s.p[0]);
  bool gone[2] = {false, false};
  Events e(6);
  do {
    for (Wire* l : {&s.a0, &s.a1}) e.frames(*l);
    e.may(!gone[0], [&] { gone[0] = true, wc.retire(); });
    e.may(!gone[1], [&] { gone[1] = true, wd.retire(); });
    REQUIRE_THAT(!x.is_over || (gone[0] && gone[1]));
  } while (e.one());
  REQUIRE_THAT(x.is_over && x.status() == Status::retired && x.times == 1);
}

SCENARIO(
    "wire: an output that is off holds a choice open if it was open as its home heard of it (wire "
    "5.11, rule 5.6)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, f;
  Square s;
  const auto cr = s.a0.give(c.reader()), dw = s.a0.give(d.writer()), fw = s.a1.give(f.writer());
  s.settle();
  Writer<int> wc = c.writer();
  Reader<int> rd = d.reader(), rf = f.reader();
  Spanning x;
  x.read(s.a0.at_party, cr)
      .write(s.a0.at_party, dw, 1)
      .write(s.a1.at_party, fw, 2)
      .off()
      .begin(*s.p[0]);
  bool gone[2] = {false, false}, heard = false, open = true;
  Events e(6);
  do {
    e.frames(s.a0);
    e.may(s.a1.can_up(), [&] {
      if (!std::exchange(heard, true)) open = !gone[1];
      s.a1.up();
    });
    e.may(s.a1.can_down(), [&] { s.a1.down(); });
    e.may(!gone[0], [&] { gone[0] = true, rd.retire(); });
    e.may(!gone[1], [&] { gone[1] = true, rf.retire(); });
    REQUIRE_THAT(!x.is_over || (gone[0] && gone[1]));
  } while (e.one());
  REQUIRE_THAT(x.is_over == !open);
  if (x.is_over) {
    REQUIRE_THAT(x.status() == Status::retired && x.outcome.guard == 1 && x.times == 1);
    return;
  }
  x.withdraw();
  s.settle();
  REQUIRE_THAT(x.status() == Status::cancelled && s.quiet());
}

SCENARIO(
    "wire: both homes are ready before a choice that spans begins: the first guard is chosen (wire "
    "5.6, rule 5.4)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c{buffer(1)}, d{buffer(1)};
  Square s;
  const auto cr = s.a0.give(c.reader()), dr = s.a1.give(d.reader());
  Writer<int> wc = c.writer(), wd = d.writer();
  s.settle();
  Op a, b;
  const auto wa = s.b0.give(std::move(wc)), wb = s.b1.give(std::move(wd));
  s.settle();
  a.write(wa, 1).begin(s.b0.at_party);
  b.write(wb, 2).begin(s.b1.at_party);
  s.settle();
  const std::uint32_t first = engine().choose(2);
  Spanning x;
  x.read(s.a0.at_party, cr).read(s.a1.at_party, dr).begin(*s.p[0], first);
  Events e;
  do frames(e, s);
  while (e.one());
  REQUIRE_THAT(x.ok() && x.outcome.guard == first && x.value() == static_cast<int>(first) + 1);
}

}  // namespace
}  // namespace weft::test
