// Exploration of barriers whose parties are in several spaces (wire 4.9 to 4.11;
// conformance/models/wire_barrier.pml): the code of the home and of the places, in every order of
// frames, withdrawals and deaths.
#include "engine.hpp"
#include "explore_events.hpp"
#include "wire_world.hpp"

namespace weft::test {
namespace {

using explorer::engine;
using Parties = w::FarGuard::Parties;

// A home with a barrier and a channel of its own, and three spaces, each of which holds a share of
// the barrier.
struct BarrierNet {
  runtime::FreshPool fresh;
  std::shared_ptr<w::Space> home = w::Space::make("home", 1);
  std::array<std::shared_ptr<w::Space>, 3> far{w::Space::make("a", 2), w::Space::make("b", 3),
                                               w::Space::make("c", 4)};
  Barrier bar;
  Channel<int> ch;
  Wire a{*home, *far[0]}, b{*home, *far[1]}, c{*home, *far[2]};
  std::uint32_t at_a = 0, at_b = 0, at_c = 0, in_b = 0, out_a = 0;

  explicit BarrierNet(std::uint32_t parties) : bar(parties) {
    at_a = give(bar, a.at_home), at_b = give(bar, b.at_home), at_c = give(bar, c.at_home);
    in_b = b.give(ch.reader()), out_a = a.give(ch.writer());
    for (Wire* l : {&a, &b, &c}) l->pump();
  }
  bool good() {
    return !a.at_home.session.is_over() && !b.at_home.session.is_over() &&
           !c.at_home.session.is_over();
  }
};

SCENARIO(
    "wire: an arrival is asked back: a phase is complete with all who are in theirs, and none else "
    "(wire 4.3, 4.9, rules 8.1, 8.3)",
    0) {
  BarrierNet n(2);
  Op first, other, again;
  first.arrive(n.at_a).begin(n.a.at_party);
  bool asked = false, begun = false, anew = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(!asked && !first.is_over, [&] { asked = true, first.withdraw(); });
    e.may(!begun, [&] { begun = true, other.arrive(n.at_b).begin(n.b.at_party); });
    e.may(first.is_over && !first.ok() && !anew,
          [&] { anew = true, again.arrive(n.at_a).begin(n.a.at_party); });
    // No party passes the barrier before the other party has arrived.
    REQUIRE_THAT(n.bar.phases() == 0 || (begun && (first.times == 0 || first.ok() || anew)));
  } while (e.one());
  REQUIRE_THAT(n.bar.phases() == 1 && other.ok() && first.ok() != again.ok() && n.good());
  REQUIRE_THAT(first.ok() || first.status() == Status::cancelled);
  REQUIRE_THAT(n.a.at_home.home.open() + n.b.at_home.home.open() == 0);
}

SCENARIO(
    "wire: a choice at a barrier and a channel is asked back, or takes one of the two: its arrival "
    "counts while it waits (wire 4.3, 4.10, rules 8.3, 8.4)",
    0) {
  BarrierNet n(2);
  Op choice, write, first, again;
  choice.read(n.in_b).arrive(n.at_b).begin(n.b.at_party);
  const bool asks = engine().choose(2) == 1;
  bool asked = !asks, written = asks, begun = false, anew = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.frames(n.c);
    e.may(!written, [&] { written = true, write.write(n.out_a, 7).begin(n.a.at_party); });
    e.may(!asked && !choice.is_over, [&] { asked = true, choice.withdraw(); });
    e.may(!begun, [&] { begun = true, first.arrive(n.at_c).begin(n.c.at_party); });
    const bool elsewhere = choice.is_over && !(choice.ok() && choice.outcome.guard == 1);
    e.may(elsewhere && !anew, [&] { anew = true, again.arrive(n.at_b).begin(n.b.at_party); });
    REQUIRE_THAT(n.bar.phases() == 0 || (begun && (!elsewhere || anew)));
  } while (e.one());
  REQUIRE_THAT(choice.times == 1 && first.ok() && n.bar.phases() == 1 && n.good());
  REQUIRE_THAT(again.ok() == !(choice.ok() && choice.outcome.guard == 1));
  if (!asks) REQUIRE_THAT(choice.ok() && write.ok() == (choice.outcome.guard == 0));
  if (write.ok()) REQUIRE_THAT(choice.value(0) == 7);
  REQUIRE_THAT(n.b.at_home.home.open() + n.c.at_home.home.open() == 0);
}

SCENARIO(
    "wire: a party is enrolled for all once that has returned; one that resigns is not waited for "
    "(wire 4.9, rules 8.1, 8.2)",
    0) {
  BarrierNet n(1);
  Op enrol, first, second, resign;
  enrol.say(n.at_a, Parties::enrol).begin(n.a.at_party);
  bool one = false, two = false, leaves = false;
  bool counts = false;  // whether the second party is enrolled, as far as its place knows
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.frames(n.c);
    counts = counts || enrol.ok();
    // b learns from elsewhere that c is enrolled.
    e.may(enrol.ok() && !one, [&] { one = true, first.arrive(n.at_b).begin(n.b.at_party); });
    e.may(enrol.ok() && !two && !leaves,
          [&] { two = true, second.arrive(n.at_c).begin(n.c.at_party); });
    e.may(enrol.ok() && !two && !leaves,
          [&] { leaves = true, resign.say(n.at_c, Parties::resign).begin(n.c.at_party); });
    REQUIRE_THAT(n.bar.phases() == 0 || two || leaves);
    REQUIRE_THAT(!first.is_over || first.ok());
  } while (e.one());
  REQUIRE_THAT(counts && enrol.times == 1 && first.ok() && n.bar.phases() == 1 && n.good());
  REQUIRE_THAT(two ? second.ok() : resign.ok() && n.bar.parties() == 1);
}

SCENARIO(
    "wire: a space that has a barrier dies at any step: all who wait there and all who come later "
    "are told, and none before (wire 4.11, rule 8.7)",
    0) {
  BarrierNet n(3);
  const Writer<int> keep = n.ch.writer();
  Op killed, plain, choice, later;
  killed.arrive(n.at_a).begin(n.a.at_party);
  const bool chooses = engine().choose(2) == 1;
  if (chooses)
    choice.read(n.in_b).arrive(n.at_b).begin(n.b.at_party);
  else
    plain.arrive(n.at_b).begin(n.b.at_party);
  bool knows = false, begun = false, before = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.frames(n.c);
    e.may(!begun, [&] { begun = true, later.arrive(n.at_c).begin(n.c.at_party); });
    e.may(!n.a.cut, [&] { n.a.cut = true; });
    e.may(n.a.cut && !knows, [&] {
      before = n.bar.phases() == 1;
      knows = true;
      n.a.tell(n.a.at_home);
    });
    const Op& other = chooses ? choice : plain;
    REQUIRE_THAT(knows || (!other.died() && !later.died()));
    REQUIRE_THAT(!knows || n.bar.phases() == (before ? 1u : 0u));
  } while (e.one());
  const Op& other = chooses ? choice : plain;
  REQUIRE_THAT(other.times == 1 && later.times == 1);
  REQUIRE_THAT(before ? other.ok() && later.ok() : other.died() && later.died());
  if (chooses) REQUIRE_THAT(choice.outcome.guard == 1);
  REQUIRE_THAT(!n.b.at_home.session.is_over() && !n.c.at_home.session.is_over());
  Op last;  // The party leaves for good.
  last.arrive(n.at_c).begin(n.c.at_party);
  n.c.pump();
  REQUIRE_THAT(last.died());
}

SCENARIO(
    "wire: a share that was given back before its space dies is nobody's death (wire 4.11, rule "
    "8.7)",
    0) {
  BarrierNet n(2);
  n.a.retire(n.at_a);
  Op first, second;
  first.arrive(n.at_b).begin(n.b.at_party);
  bool begun = false, knows = false, arrived = false;
  Events e;
  do {
    e.may(n.a.can_up(), [&] { arrived = true, n.a.up(); });
    e.frames(n.b);
    e.frames(n.c);
    e.may(!begun, [&] { begun = true, second.arrive(n.at_c).begin(n.c.at_party); });
    e.may(!n.a.cut, [&] { n.a.cut = true; });
    e.may(n.a.cut && !knows, [&] { knows = true, n.a.tell(n.a.at_home); });
  } while (e.one());
  REQUIRE_THAT(first.times == 1 && second.times == 1);
  // A frame that has not arrived is lost with its sender. Then the barrier dies, unless all parties
  // had already met.
  if (arrived) REQUIRE_THAT(first.ok() && second.ok());
  REQUIRE_THAT(first.ok() ? second.ok() : first.died() && second.died());
  REQUIRE_THAT(n.bar.core()->has_died() == !arrived);
}

SCENARIO(
    "wire: one that dies is not waited for in the phase that its death begins, nor counted (wire "
    "4.11)",
    0) {
  BarrierNet n(2);
  Op killed, first;
  killed.arrive(n.at_a).begin(n.a.at_party);
  bool knows = false, begun = false, late = false;
  Events e;
  do {
    e.frames(n.a);
    e.frames(n.b);
    e.may(!n.a.cut, [&] { n.a.cut = true; });
    e.may(n.a.cut && !knows, [&] {
      knows = true;
      late = n.bar.phases() == 0;
      n.a.tell(n.a.at_home);
    });
    e.may(!begun, [&] { begun = true, first.arrive(n.at_b).begin(n.b.at_party); });
  } while (e.one());
  REQUIRE_THAT(first.times == 1 && n.bar.phases() == (late ? 0u : 1u));
  REQUIRE_THAT(late ? first.died() : first.ok());
}

}  // namespace
}  // namespace weft::test
