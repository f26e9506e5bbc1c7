// Tests barriers with parties in several spaces (WIRE.md 4.9 to 4.11, rules 8.1 to 8.4, 8.7).
#include <doctest/doctest.h>

#include <deque>

#include "weft/weft.hpp"
#include "weft/wire/barrier.hpp"
#include "wire_lossy.hpp"

namespace wire_barrier {
namespace {
using namespace weft;
using weft::test::give;
using weft::test::Op;
using weft::test::Wire;
namespace w = weft::wire;
using Parties = w::FarGuard::Parties;

// A party in the home's own program.
struct LocalParty : core::Waker {
  bool done = false;
  LocalParty() { ops = &kOps; }
  void sync(Barrier& b) {
    status = Status::ok;
    done = b.core()->begin_sync(*this) != Status::pending;
  }
  static void wake(core::Waker* n) noexcept { static_cast<LocalParty*>(n)->done = true; }
  static constexpr core::WakerOps kOps{&wake, nullptr, nullptr, 0, nullptr};
};

// A home, and two spaces that have its barrier.
struct World {
  std::shared_ptr<w::Space> home = w::Space::make("home", 1), far = w::Space::make("far", 2),
                            third = w::Space::make("third", 3);
  Wire a{*home, *far}, b{*home, *third};
  Barrier bar;
  std::uint32_t at_a, at_b;
  explicit World(std::uint32_t parties) : bar(parties) {
    at_a = give(bar, a.at_home);
    at_b = give(bar, b.at_home);
    pump();
  }
  void pump() {
    for (bool any = true; any;) any = a.up() || a.down() || b.up() || b.down();
  }
  bool good() { return !a.at_home.session.is_over() && !b.at_home.session.is_over(); }
};

TEST_CASE("wire 4.9: parties of three spaces meet, phase by phase (rule 8.1)") {
  World t(3);
  for (int phase = 1; phase <= 3; ++phase) {
    Op x, y;
    LocalParty own;
    x.arrive(t.at_a).begin(t.a.at_party);
    t.pump();
    own.sync(t.bar);
    CHECK((!x.is_over && !own.done));
    y.arrive(t.at_b).begin(t.b.at_party);
    t.pump();
    CHECK((x.ok() && y.ok() && own.done && own.status == Status::ok));
    CHECK((x.times == 1 && y.times == 1));
    CHECK(t.bar.phases() == static_cast<std::uint64_t>(phase));
  }
  CHECK((t.a.at_home.home.open() == 0 && t.b.at_home.home.open() == 0 && t.good()));
}

TEST_CASE("wire 4.9: an arrival that was withdrawn is missing (rule 8.3)") {
  World t(2);
  Op x, y, again;
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  x.withdraw();
  t.pump();
  CHECK((x.is_over && x.outcome.status == Status::cancelled));
  y.arrive(t.at_b).begin(t.b.at_party);
  t.pump();
  CHECK_FALSE(y.is_over);
  again.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((again.ok() && y.ok()));
}

TEST_CASE("wire 4.3, 4.9: a withdrawal that crosses the word that all have arrived") {
  World t(2);
  Op x, y;
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  y.arrive(t.at_b).begin(t.b.at_party);
  t.b.pump();
  x.withdraw();
  t.pump();
  CHECK((x.ok() && x.times == 1 && y.ok() && t.good()));
}

TEST_CASE("wire 4.9: parties are enrolled and taken away from elsewhere (rule 8.2)") {
  World t(1);
  Op enrol, ask, x, y, resign;
  enrol.say(t.at_a, Parties::enrol).begin(t.a.at_party);
  t.pump();
  CHECK((enrol.ok() && enrol.parties() == 2 && t.bar.parties() == 2));
  ask.say(t.at_b, Parties::ask).begin(t.b.at_party);
  x.arrive(t.at_b).begin(t.b.at_party);
  t.pump();
  CHECK((ask.ok() && ask.parties() == 2 && !x.is_over));
  resign.say(t.at_a, Parties::resign).begin(t.a.at_party);
  t.pump();  // The arrived party was the last one missing.
  CHECK((resign.ok() && resign.parties() == 1 && x.ok() && t.bar.phases() == 1));
}

TEST_CASE("wire 4.9: with nobody enrolled an arrival and a resignation are bad use (rule 8.2)") {
  World t(0);
  Op x, y;
  x.arrive(t.at_a).begin(t.a.at_party);
  y.say(t.at_a, Parties::resign).begin(t.a.at_party);
  t.pump();
  CHECK((x.bad_use() && y.bad_use() && t.good()));
  CHECK(std::string(x.refused).find("enrol() first") != std::string::npos);
}

TEST_CASE("wire 4.10: a barrier beside a channel of its home: either is chosen (rule 8.4)") {
  World t(2);
  Channel<int> c;
  Op x, y;
  std::uint32_t in;
  {
    const w::Space::Step step(*t.home);
    in = t.a.at_home.home.give(std::make_shared<w::PortOf<int, core::Side::in>>(c.reader()), "i4",
                               "c", 0);
  }
  const auto out = t.b.give(c.writer());
  t.pump();
  x.read(in).arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  SUBCASE("the barrier") {
    y.arrive(t.at_b).begin(t.b.at_party);
    t.pump();
    CHECK((x.ok() && x.outcome.guard == 1 && y.ok()));
  }
  SUBCASE("the channel: then the phase needs another arrival") {
    Op write;
    write.write(out, 5).begin(t.b.at_party);
    t.pump();
    CHECK((x.ok() && x.outcome.guard == 0 && write.ok()));
    y.arrive(t.at_b).begin(t.b.at_party);
    t.pump();
    CHECK_FALSE(y.is_over);
  }
}

TEST_CASE("wire 4.10: two choices of two spaces meet at the barrier at once (rule 8.4)") {
  World t(2);
  Barrier other(2);
  const auto a2 = give(other, t.a.at_home), b2 = give(other, t.b.at_home);
  t.pump();
  Op x, y;
  x.arrive(t.at_a).arrive(a2).begin(t.a.at_party);
  y.arrive(b2).arrive(t.at_b).begin(t.b.at_party);
  t.pump();
  CHECK((x.ok() && y.ok() && x.outcome.guard != y.outcome.guard));
  CHECK(t.bar.phases() + other.phases() == 1);
}

TEST_CASE("wire 14.2: one barrier twice in an offer is bad use (rule 5.5)") {
  World t(2);
  Op x;
  x.arrive(t.at_a).arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((x.bad_use() && t.good()));
}

TEST_CASE("wire 4.11: a space that has a barrier and dies is its death, for all (rule 8.7)") {
  World t(3);
  Op x, choice, later, enrol;
  LocalParty own;
  own.sync(t.bar);
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  t.b.tell(t.b.at_home);
  t.pump();
  CHECK((x.died() && !x.outcome.lost && own.done && own.status == Status::died));
  later.arrive(t.at_a).begin(t.a.at_party);
  enrol.say(t.at_a, Parties::enrol).begin(t.a.at_party);
  Channel<int> c;
  const auto in = t.a.give(c.reader());
  t.pump();
  const Writer<int> keep = c.writer();
  choice.read(in).arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((later.died() && enrol.died() && choice.died() && choice.outcome.guard == 1));
  CHECK_FALSE(t.a.at_home.session.is_over());
}

TEST_CASE("wire 4.11: the arrival of one who is killed counts until its death is noticed") {
  World t(2);
  Op killed, x, later;
  killed.arrive(t.at_b).begin(t.b.at_party);
  t.pump();
  t.b.cut = true;
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((x.ok() && !killed.is_over && t.bar.phases() == 1));
  t.b.tell(t.b.at_home);
  later.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((later.died() && t.bar.phases() == 1));
}

TEST_CASE("wire 4.11: the arrival of one whose death is noticed counts no more") {
  World t(2);
  Op killed, x;
  killed.arrive(t.at_b).begin(t.b.at_party);
  t.pump();
  t.b.cut = true;
  t.b.tell(t.b.at_home);
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK((x.died() && !killed.is_over && t.bar.phases() == 0));
}

TEST_CASE("wire 4.11: a choice that waits hears of the death") {
  World t(2);
  Channel<int> c;
  const auto in = t.a.give(c.reader());
  const Writer<int> keep = c.writer();
  t.pump();
  Op choice;
  choice.read(in).arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  CHECK_FALSE(choice.is_over);
  t.b.tell(t.b.at_home);
  t.pump();
  CHECK((choice.died() && choice.outcome.guard == 1 && choice.times == 1));
}

TEST_CASE("wire 4.11: what a process of the home is told at a barrier that has died (rule 8.7)") {
  World t(2);
  t.b.tell(t.b.at_home);
  t.pump();
  CHECK_THROWS_AS(t.bar.sync()(), PeerDied);
  Channel<int> c;
  const Writer<int> keep = c.writer();
  CHECK_THROWS_AS(weft::select(c.reader(), t.bar)(), PeerDied);
}

TEST_CASE("wire 4.11: a share that was given back is nobody's death") {
  World t(2);
  t.b.retire(t.at_b);
  t.pump();
  t.b.tell(t.b.at_home);
  t.pump();
  Op x;
  LocalParty own;
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  own.sync(t.bar);
  t.pump();
  CHECK((x.ok() && own.status == Status::ok));
}

TEST_CASE("wire 4.4, 4.11: a home that is lost is PeerDied at its barriers") {
  World t(2);
  Op x, y;
  x.arrive(t.at_a).begin(t.a.at_party);
  t.pump();
  t.a.tell(t.a.at_party);
  CHECK((x.died() && x.outcome.lost && !x.outcome.in_doubt));
  y.say(t.at_a, Parties::ask).begin(t.a.at_party);
  CHECK((y.died() && y.outcome.lost));
}

TEST_CASE("wire 14.2: what a peer may not do with a barrier, nor ask of a channel") {
  using F = w::Frame;
  using K = w::Kind;
  World t(2);
  Channel<int> c;
  const auto channel = t.a.give(c.reader());
  std::string why;
  const auto refused = [&](const F& f) {
    t.a.to_home(f);
    t.pump();
    return t.a.at_home.session.why();
  };
  SUBCASE("") { why = refused(F{K::parties, 0, channel, 0, 1, 1, {}}); }
  SUBCASE("") { why = refused(F{K::parties, 0, 99, 0, 1, 1, {}}); }
  SUBCASE("") { why = refused(F{K::parties, 0, t.at_a, 0, 0, 1, {}}); }
  SUBCASE("") { why = refused(F{K::parties, 0, t.at_a, 0, 1, 3, {}}); }
  SUBCASE("") { why = refused(F{K::poison, 0, t.at_a, 0, 0, 1, {}}); }
  SUBCASE("") { why = refused(F{K::offer, w::Flag::spans, t.at_a, 1, 1, 0, {}}); }
  SUBCASE("") { why = refused(F{K::offer, w::Flag::hold, t.at_a, 0, 1, 0, {}}); }
  CHECK_FALSE(why.empty());
  CHECK_FALSE(t.b.at_home.session.is_over());
}

TEST_CASE("wire 4.9, 13: barriers over links that lose, double, disorder and spoil") {
  int troubles = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    test::Random dice(seed);
    const auto parties = static_cast<std::size_t>(1 + dice.below(3));
    const int phases = 2 + dice.below(6);
    const auto home = w::Space::make("home", 1);
    Barrier bar(static_cast<std::uint32_t>(parties) + 1);
    std::deque<std::shared_ptr<w::Space>> spaces;
    std::deque<test::LossySession> links;
    std::deque<Op> ops;
    std::vector<int> phase(parties, 0);
    for (std::size_t i = 0; i < parties; ++i) {
      spaces.push_back(w::Space::make("party", i + 2));
      links.emplace_back(*home, *spaces.back(), dice);
      give(bar, *links.back().at_home);
      ops.emplace_back();
    }
    std::vector<Op*> now(parties, nullptr);
    LocalParty own;
    int mine = 0;
    bool waits = false;
    const auto over = [&] {
      bool all = mine == phases;
      for (const int p : phase) all = all && p == phases;
      return all;
    };
    int steps = 0;
    for (; !over() && steps < 2'000'000; ++steps) {
      for (std::size_t i = 0; i < parties; ++i) {
        links[i].step();
        if (now[i] && now[i]->is_over) {
          REQUIRE(now[i]->ok());
          ++phase[i];
          now[i] = nullptr;
          // No party is ahead of a party that has not arrived.
          for (const int p : phase) REQUIRE(std::abs(p - phase[i]) <= 1);
          REQUIRE(std::abs(mine - phase[i]) <= 1);
        }
        if (!now[i] && phase[i] < phases &&
            links[i].at_party->session.state() == w::Session::State::open && dice.below(4) == 0)
          now[i] = &ops.emplace_back().arrive(0).begin(*links[i].at_party);
      }
      if (waits && own.done) {
        REQUIRE(own.status == Status::ok);
        ++mine;
        waits = false;
      }
      if (!waits && mine < phases && dice.below(4) == 0) {
        own.done = false;
        own.sync(bar);
        waits = true;
      }
    }
    INFO("seed ", seed);
    CHECK((over() && bar.phases() == static_cast<std::uint64_t>(phases)));
    for (auto& l : links) troubles += l.troubles();
  }
  CHECK(troubles > 500);
}

}  // namespace
}  // namespace wire_barrier
