// Exploration of extended reads at far ends (wire 4.6, 4.7; conformance/models/wire_held.pml): the
// code of the home and of the places, in every order of frames, ends of blocks and deaths.
#include "engine.hpp"
#include "explore_events.hpp"
#include "weft/wire/end.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

using explorer::engine;

// A channel; a writer at one space, and an extended reader at each of two others.
struct HeldNet {
  runtime::FreshPool fresh;
  std::shared_ptr<w::Space> home = w::Space::make("home", 1);
  std::array<std::shared_ptr<w::Space>, 3> far{w::Space::make("a", 2), w::Space::make("b", 3),
                                               w::Space::make("c", 4)};
  Channel<int> c;
  Wire a{*home, *far[0]}, b{*home, *far[1]}, d{*home, *far[2]};
  std::uint32_t w = 0, r = 0, s = 0;
  Op write, first, second;

  explicit HeldNet(std::uint32_t capacity)
      : c(capacity ? Channel<int>(buffer(capacity)) : Channel<int>()) {
    w = a.give(c.writer()), r = b.give(c.reader()), s = d.give(c.reader());
    for (Wire* l : {&a, &b, &d}) l->pump();
  }
};

SCENARIO(
    "wire: an extended read: its writer is told that it is done once the block is over, and not "
    "before (wire 4.6, rule 1.6)",
    0) {
  HeldNet n(0);
  n.write.write(n.w, 7).begin(n.a.at_party);
  n.first.hold(n.r).begin(n.b.at_party);
  bool ended = false, asked = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(n.first.ok() && !ended, [&] { ended = true, n.first.end_block(); });
    e.may(!asked && !n.write.is_over, [&] { asked = true, n.write.withdraw(); });
    REQUIRE_THAT(!n.write.ok() || ended);
  } while (e.one());
  REQUIRE_THAT(n.write.times == 1 && n.write.ok() == n.first.ok());
  REQUIRE_THAT(!n.a.at_home.session.is_over() && !n.b.at_home.session.is_over());
  REQUIRE_THAT(n.first.ok() ? n.b.at_home.home.open() == 0 : n.write.status() == Status::cancelled);
}

SCENARIO(
    "wire: an extended reader dies or gives back at any step: the next one has the value, and the "
    "writer is told once (wire 4.7)",
    0) {
  HeldNet n(engine().choose(2) == 0 ? 0 : 1);
  const bool keeps = engine().choose(2) == 0;
  const bool buffered = n.c.core()->buffered();
  n.write.write(n.w, 7).begin(n.a.at_party);
  n.first.hold(n.r, keeps).begin(n.b.at_party);
  n.second.hold(n.s, true).begin(n.d.at_party);
  bool over = false, second_over = false, back = false, knows = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.frames(n.d);
    e.may(n.first.ok() && !over && !n.b.cut, [&] { over = true, n.first.end_block(); });
    e.may(n.first.ok() && keeps && !over && !n.b.cut,
          [&] { over = back = true, n.first.end_block(true); });
    e.may(n.second.ok() && !second_over, [&] { second_over = true, n.second.end_block(); });
    e.may(!n.b.cut, [&] { n.b.cut = true; });
    e.may(n.b.cut && !knows, [&] { knows = true, n.b.tell(n.b.at_home); });
    const bool may_be_done = buffered || over || second_over || knows;
    REQUIRE_THAT(!n.write.ok() || may_be_done);
  } while (e.one());
  REQUIRE_THAT(n.write.ok() && n.write.times == 1);
  const bool taken = n.first.ok() || n.second.ok();
  // The first reader's session is cut in every run. So the channel gets the value back, even if it
  // had been sent to that reader, unless that reader has ended its block and used the value.
  if (keeps && !(over && !back)) REQUIRE_THAT(n.second.ok() && n.second.value() == 7);
  if (!n.second.ok()) REQUIRE_THAT(!n.second.is_over && (taken || !keeps));
  REQUIRE_THAT(!n.d.at_home.session.is_over() && n.a.at_home.home.open() == 0);
}

SCENARIO(
    "wire: what comes back is read before what was written later, whoever waits and whatever dies "
    "(wire 4.7, rule 1.3)",
    0) {
  HeldNet n(0);
  Op later;
  n.write.write(n.w, 1).begin(n.a.at_party);
  n.first.hold(n.r, true).begin(n.b.at_party);
  n.a.pump(), n.b.pump();
  REQUIRE_THAT(n.first.ok());
  later.write(n.w, 2).begin(n.a.at_party);
  bool back = false, knows = false, begun = false, came_back = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(n.d.can_up(), [&] { came_back = n.b.at_home.home.open() == 0, n.d.up(); });
    e.may(n.d.can_down(), [&] { n.d.down(); });
    e.may(!begun, [&] { begun = true, n.second.read(n.s).begin(n.d.at_party); });
    e.may(!back && !n.b.cut, [&] { back = true, n.first.end_block(true); });
    e.may(!n.b.cut, [&] { n.b.cut = true; });
    e.may(n.b.cut && !knows, [&] { knows = true, n.b.tell(n.b.at_home); });
  } while (e.one());
  REQUIRE_THAT(n.second.ok());
  const int got = n.second.value();
  Op last;
  last.read(n.s).begin(n.d.at_party);
  n.d.pump(), n.a.pump(), n.d.pump();
  REQUIRE_THAT(last.ok() && last.value() == 3 - got && n.write.ok() && later.ok());
  // If the channel did not get the value back, the first reader was still in its block when another
  // reader asked.
  if (came_back) REQUIRE_THAT(got == 1);
}

SCENARIO(
    "wire: a value made after the commit, and a cut, a withdrawal or a failure at any step: the "
    "reader has it once, or is told (wire 4.8)",
    0) {
  HeldNet n(engine().choose(2) == 0 ? 0 : 1);
  n.write.later(n.w).begin(n.a.at_party);
  n.first.read(n.r).begin(n.b.at_party);
  bool done = false, failed = false, asked = false, knows = false, told = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(n.write.has_committed && !done && !n.write.is_over,
          [&] { done = true, n.write.make(7); });
    e.may(n.write.has_committed && !done && !n.write.is_over,
          [&] { done = failed = true, n.write.fail(); });
    e.may(!asked && !n.write.is_over, [&] { asked = true, n.write.withdraw(); });
    e.may(!n.a.cut, [&] { n.a.cut = true; });
    e.may(n.a.cut && !knows, [&] { knows = true, n.a.tell(n.a.at_home); });
    e.may(n.a.cut && !told, [&] { told = true, n.a.tell(n.a.at_party); });
  } while (e.one());
  REQUIRE_THAT(n.write.is_over && n.first.is_over && n.a.at_home.home.open() == 0);
  REQUIRE_THAT(n.first.ok() ? done && !failed && n.first.value() == 7
                            : n.first.status() == Status::died);
  if (n.write.ok() && !failed) REQUIRE_THAT(n.first.ok());
  if (n.first.ok() && !n.write.ok()) REQUIRE_THAT(n.write.outcome.in_doubt);
}

}  // namespace
}  // namespace weft::test
