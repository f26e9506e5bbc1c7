// Exploration of choices over several homes, in which each home is asked once (WIRE.md 5.3, 5.9,
// 5.11): two guards of one home with a guard of another home between them, a timer at the choice's
// own place, a choice that polls and does not wait, and guards that are off. The mutants are those
// of conformance/models/wire_looks.pml, and some of wire_spans.pml.
#include "engine.hpp"
#include "explore_events.hpp"
#include "wire_choice.hpp"

namespace weft::test {
namespace {

using explorer::engine;

// The exchange between the homes must end: a choice may cost only a few frames for each party that
// arrives.
struct Bounded {
  int steps = 0;
  bool one(Events& e) {
    REQUIRE_THAT(++steps < 500);
    return e.one();
  }
};

// A choice that reads two channels of one home, with a channel of the other home between them. One
// writer waits at one of the three channels before the choice begins, or no writer waits.
struct Between {
  Channel<int> c, d, e;
  Square s;
  std::uint32_t ends[3];  // the writers' ends
  std::uint32_t who;      // the index of the channel whose writer waits, or 3 if none waits
  Op there;
  Spanning x;
  Between() {
    const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader()), re = s.a0.give(e.reader());
    ends[0] = s.b0.give(c.writer()), ends[1] = s.b1.give(d.writer());
    ends[2] = s.b0.give(e.writer());
    s.settle();
    who = engine().choose(4);
    if (who < 3)
      there.write(ends[who], 10 + static_cast<int>(who)).begin((who == 1 ? s.b1 : s.b0).at_party);
    s.settle();
    x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).read(s.a0.at_party, re);
  }
};

// --- what is kept, and which home is told again (wire 5.2 to 5.4) --------------------------------

SCENARIO(
    "wire: a writer comes while another home is asked, and a guard between retires: the READY is "
    "kept (wire 5.3)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, e;
  Square s;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader()), re = s.a0.give(e.reader());
  const auto wc = s.b0.give(c.writer());
  Writer<int> wd = d.writer(), we = e.writer();
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).read(s.a0.at_party, re).begin(*s.p[0]);
  s.a0.pump();  // The first guard has been tried, and the second home is asked.
  Op write;
  bool came = false, gone = false;
  Events ev;
  Bounded b;
  do {
    frames(ev, s);
    ev.may(!came, [&] { came = true, write.write(wc, 7).begin(s.b0.at_party); });
    ev.may(!gone, [&] { gone = true, we.retire(); });
  } while (b.one(ev));
  REQUIRE_THAT(x.ok() && x.times == 1 && x.outcome.guard == 0 && x.value() == 7 && write.ok());
  REQUIRE_THAT(s.quiet());
}

SCENARIO(
    "wire: a writer comes, is met by another and one comes again, there or at the other home: the "
    "choice meets it (wire 5.2, 5.3)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto rc = s.a0.give(c.reader()), rd = s.a1.give(d.reader());
  const auto wc = s.b0.give(c.writer()), other = s.b0.give(c.reader()), wd = s.b1.give(d.writer());
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, rc).read(s.a1.at_party, rd).begin(*s.p[0]);
  s.settle();
  const bool elsewhere = engine().choose(2) == 1;
  Op first, second, reads;
  first.write(wc, 1).begin(s.b0.at_party);
  reads.read(other).begin(s.b0.at_party);
  bool again = false;
  Events e;
  Bounded b;
  do {
    frames(e, s);
    e.may(!again && (elsewhere || first.is_over), [&] {
      again = true;
      if (elsewhere)
        second.write(wd, 2).begin(s.b1.at_party);
      else
        second.write(wc, 2).begin(s.b0.at_party);
    });
  } while (b.one(e));
  REQUIRE_THAT(first.ok() && x.ok() && x.times == 1);
  const int got = x.value();
  // The choice has met the reader, and the two parties that remain cannot meet each other.
  if (elsewhere && got == 1) return;
  REQUIRE_THAT(second.ok() && reads.ok() && got + reads.value() == 3 && s.quiet());
}

SCENARIO(
    "wire: a choice that is held is let go when the other one chooses elsewhere: it meets who "
    "comes to its other guard (wire 5.4)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, f;
  Square s;
  const auto cw = s.a0.give(c.writer()), dw = s.a1.give(d.writer()), cr = s.b0.give(c.reader()),
             fr = s.b1.give(f.reader()), fw = s.b1.give(f.writer()), dr = s.b1.give(d.reader());
  s.settle();
  Op writes, reads;
  writes.write(fw, 9).begin(s.b1.at_party);
  s.settle();
  Spanning x, y;
  x.write(s.a0.at_party, cw, 1).write(s.a1.at_party, dw, 2).begin(*s.p[0]);
  y.read(s.b0.at_party, cr).read(s.b1.at_party, fr).begin(*s.p[1]);
  Events e(6);
  Bounded b;
  do frames(e, s);
  while (b.one(e));
  REQUIRE_THAT(y.ok() && writes.ok() == (y.outcome.guard == 1));
  REQUIRE_THAT(y.value() == (writes.ok() ? 9 : 1));
  if (!writes.ok()) return;  // The writer and the choice have met.
  reads.read(dr).begin(s.b1.at_party);
  s.settle();
  REQUIRE_THAT(x.ok() && x.times == 1 && reads.ok() && reads.value() == 2);
}

// --- a timer, and a choice that polls (wire 5.9) -------------------------------------------------

SCENARIO(
    "wire: a timer comes at any step: whoever was there when the choice began is chosen before it "
    "(wire 5.9, rule 5.7)",
    0) {
  runtime::FreshPool fresh;
  Between t;
  Square& s = t.s;
  Spanning& x = t.x;
  const std::uint32_t who = t.who;
  x.timed().begin(*s.p[0]);
  bool came = false;
  Events ev;
  Bounded b;
  do {
    frames(ev, s);
    ev.may(!came && !x.is_over, [&] { came = true, x.look_once(); });
  } while (b.one(ev));
  REQUIRE_THAT(x.is_over && x.times == 1 && x.ok() == (who < 3) && t.there.ok() == (who < 3));
  if (who < 3)
    REQUIRE_THAT(x.outcome.guard == who && x.value() == 10 + static_cast<int>(who));
  else
    REQUIRE_THAT(came && x.status() == Status::cancelled);
  REQUIRE_THAT(s.quiet());
}

SCENARIO(
    "wire: a timer comes, and the program of the choice that one is held for has stopped: it is "
    "over all the same (wire 5.4, 5.9)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cr = s.a0.give(c.reader()), dr = s.a1.give(d.reader()), cw = s.b0.give(c.writer()),
             dw = s.b1.give(d.writer());
  s.settle();
  Spanning x, y;
  x.read(s.a0.at_party, cr).read(s.a1.at_party, dr).timed().begin(*s.p[0]);
  y.write(s.b0.at_party, cw, 1).write(s.b1.at_party, dw, 2).begin(*s.p[1]);
  bool came = false, up0 = false, up1 = false;
  Events e;
  Bounded b;
  do {
    e.frames(s.a0);
    e.frames(s.a1);
    // The place sends its OFFERs, and sends no frame after the OFFERs.
    e.may(!up0, [&] { up0 = true, s.b0.up(); });
    e.may(!up1, [&] { up1 = true, s.b1.up(); });
    e.may(!came, [&] { came = true, x.look_once(); });
  } while (b.one(e));
  REQUIRE_THAT(x.is_over && x.times == 1 && x.status() == Status::cancelled);
}

SCENARIO("wire: a select that polls asks each home, and takes who is there (wire 5.9, rule 5.4)",
         0) {
  runtime::FreshPool fresh;
  Between t;
  Square& s = t.s;
  Spanning& x = t.x;
  const std::uint32_t who = t.who;
  Op comes;
  x.only_look().begin(*s.p[0]);
  bool came = false;
  Events ev;
  Bounded b;
  do {
    frames(ev, s);
    ev.may(!came, [&] { came = true, comes.write(t.ends[0], 2).begin(s.b0.at_party); });
  } while (b.one(ev));
  REQUIRE_THAT(x.is_over && x.times == 1);
  REQUIRE_THAT(x.ok() == (t.there.ok() || comes.ok()));
  REQUIRE_THAT(x.ok() || (who == 3 && x.status() == Status::cancelled));
  REQUIRE_THAT(!x.ok() || x.value() == (t.there.ok() ? 10 + static_cast<int>(who) : 2));
}

SCENARIO(
    "wire: two selects that poll cross: they do not meet, and neither waits (wire 5.9, rule 5.7)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d;
  Square s;
  const auto cr = s.a0.give(c.reader()), dw = s.a1.give(d.writer()), cw = s.b0.give(c.writer()),
             dr = s.b1.give(d.reader());
  s.settle();
  Spanning x, y;
  x.read(s.a0.at_party, cr).write(s.a1.at_party, dw, 1).only_look().begin(*s.p[0]);
  y.read(s.b1.at_party, dr).write(s.b0.at_party, cw, 2).only_look().begin(*s.p[1]);
  Events e(6);
  Bounded b;
  do frames(e, s);
  while (b.one(e));
  REQUIRE_THAT(x.is_over && x.times == 1 && x.status() == Status::cancelled);
  REQUIRE_THAT(y.is_over && y.times == 1 && y.status() == Status::cancelled);
  REQUIRE_THAT(s.quiet());
}

// --- guards that are off (wire 5.11) -------------------------------------------------------------

SCENARIO(
    "wire: an output that is off meets nobody, and its home's loss is not the choice's (wire 5.11, "
    "rule 5.6)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, f;
  Square s;
  const auto dw = s.a0.give(d.writer()), cr = s.a0.give(c.reader()), fw = s.a1.give(f.writer());
  const auto fr = s.b1.give(f.reader());
  s.settle();
  Writer<int> wc = c.writer();
  Reader<int> rd = d.reader();
  Op waits;
  waits.read(fr).begin(s.b1.at_party);
  s.settle();
  Spanning x;
  x.write(s.a0.at_party, dw, 1)
      .write(s.a1.at_party, fw, 2)
      .off()
      .read(s.a0.at_party, cr)
      .begin(*s.p[0]);
  bool gone = false, lost = false;
  Events e;
  Bounded b;
  do {
    frames(e, s);
    e.may(!gone, [&] { gone = true, rd.retire(); });
    e.may(!lost, [&] { lost = true, s.a1.cut = true, s.a1.tell(s.a1.at_party); });
    REQUIRE_THAT(!x.is_over || (gone && lost));
  } while (b.one(e));
  REQUIRE_THAT(x.is_over && x.times == 1 && x.status() == Status::retired);
  REQUIRE_THAT(x.outcome.guard == 0 && !waits.is_over);
}

SCENARIO(
    "wire: an input that is off, beside others at its home: who waits there is not met, also by "
    "one that tries them all (wire 5.11)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, f;
  Square s;
  const auto cr = s.a0.give(c.reader()), fr = s.a0.give(f.reader()), dr = s.a1.give(d.reader());
  const auto cw = s.b0.give(c.writer()), fw = s.b0.give(f.writer());
  s.settle();
  Writer<int> wd = d.writer();
  Op waits, comes;
  waits.write(fw, 5).begin(s.b0.at_party);
  s.settle();
  Spanning x;
  x.read(s.a0.at_party, fr).off().read(s.a0.at_party, cr).read(s.a1.at_party, dr).begin(*s.p[0]);
  bool came = false;
  Events e;
  Bounded b;
  do {
    for (Wire* l : {&s.b0, &s.a0, &s.a1, &s.b1}) e.frames(*l);
    e.may(!came, [&] { came = true, comes.write(cw, 6).begin(s.b0.at_party); });
    REQUIRE_THAT(!waits.is_over);
  } while (b.one(e));
  REQUIRE_THAT(x.ok() && x.times == 1 && x.outcome.guard == 1 && x.value() == 6 && comes.ok());
}

SCENARIO(
    "wire: a select that polls at an output that has retired is told so, once the home of what is "
    "off "
    "has said whether that is open (wire 5.11, rule 5.6)",
    0) {
  runtime::FreshPool fresh;
  Channel<int> c, d, f;
  Square s;
  const auto dw = s.a0.give(d.writer()), cr = s.a0.give(c.reader()), fw = s.a1.give(f.writer());
  s.settle();
  Writer<int> wc = c.writer();
  { const Reader<int> rd = d.reader(); }
  Reader<int> rf = f.reader();
  const bool open = engine().choose(2) == 1;
  if (!open) rf.retire();
  Spanning x;
  x.write(s.a0.at_party, dw, 1)
      .read(s.a0.at_party, cr)
      .write(s.a1.at_party, fw, 2)
      .off()
      .only_look()
      .begin(*s.p[0]);
  Events e;
  Bounded b;
  do frames(e, s);
  while (b.one(e));
  REQUIRE_THAT(x.is_over && x.times == 1);
  REQUIRE_THAT(x.status() == (open ? Status::cancelled : Status::retired));
  REQUIRE_THAT(s.quiet());
}

}  // namespace
}  // namespace weft::test
