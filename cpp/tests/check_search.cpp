// Tests the searches of `weft check` on little networks (rules 17.7 to 17.9): how few schedules
// represent all schedules, and that these few schedules produce every outcome.
#include <random>
#include <unordered_map>

#include <doctest/doctest.h>
#include "check_little.hpp"

using namespace little;

namespace {

Network chain(int stages, int values) {
  Network n;
  n.capacities.assign(static_cast<std::size_t>(stages), 0);
  n.processes.resize(static_cast<std::size_t>(stages) + 1);
  for (int i = 0; i <= stages; ++i)
    for (int k = 0; k < values; ++k) {
      auto& p = n.processes[static_cast<std::size_t>(i)];
      if (i > 0) p.push_back(read(i - 1));
      if (i < stages) p.push_back(write(i, k));
    }
  return n;
}
Network writers(int n) {
  Network x{{0}, {}};
  for (int i = 0; i < n; ++i) x.processes.push_back({write(0, i)});
  x.processes.emplace_back(static_cast<std::size_t>(n), read(0));
  return x;
}
// A fork is a buffer of one place.
Network philosophers(int n, bool ordered) {
  Network x{std::vector<int>(static_cast<std::size_t>(n), 1), {}};
  for (int i = 0; i < n; ++i) {
    int a = i, b = (i + 1) % n;
    if (ordered && i == n - 1) std::swap(a, b);
    x.processes.push_back({write(a), write(b), read(b), read(a)});
  }
  return x;
}

unsigned reduced_runs(const Network& n, bool deadlocks) {
  wc::Reduced reduced;
  const Found f = search(n, reduced);
  CHECK(f.complete);
  CHECK(f.blocked == 0);
  CHECK((f.deadlocks > 0) == deadlocks);
  return f.runs;
}

Network random_network(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  Network x;
  for (int i = 0; i < 2 + below(2); ++i) x.capacities.push_back(below(3) == 0 ? 1 : 0);
  const auto channels = static_cast<unsigned>(x.capacities.size());
  int value = 0;
  for (int i = 0; i < 3; ++i) {
    x.processes.emplace_back();
    for (int k = 0; k < 1 + below(3); ++k) {
      const int c = below(channels);
      switch (below(3)) {
        case 0: x.processes.back().push_back(read(c)); break;
        case 1: x.processes.back().push_back(write(c, ++value)); break;
        default: {
          const int d = (c + 1) % static_cast<int>(channels);
          x.processes.back().push_back(
              select({{c, below(2) == 0, ++value}, {d, below(2) == 0, ++value}}));
        }
      }
    }
  }
  return x;
}

}  // namespace

TEST_CASE("rule 17.7: channels with one reader and one writer each need one run") {
  CHECK(reduced_runs(chain(4, 5), false) == 1);
}
TEST_CASE("rule 17.7: writers of one channel come in every order") {
  CHECK(reduced_runs(writers(3), false) == 6);
  CHECK(reduced_runs(writers(5), false) == 120);
}
TEST_CASE("rule 17.7: philosophers, a fork being a buffer of one place") {
  CHECK(reduced_runs(philosophers(3, false), true) == 7);
  CHECK(reduced_runs(philosophers(5, false), true) == 31);
  CHECK(reduced_runs(philosophers(5, true), false) == 30);
  CHECK(reduced_runs(philosophers(8, true), false) == 254);
}
TEST_CASE("rule 17.7: the reduced search has the outcomes of all schedules") {
  std::mt19937 random(40);
  unsigned compared = 0, all_runs = 0, reduced_of_them = 0;
  for (int i = 0; i < 400; ++i) {
    const Network n = random_network(random);
    wc::Bounded bounded;
    const Found all = search(n, bounded, 4000);
    if (!all.complete) continue;
    wc::Reduced reduced;
    const Found some = search(n, reduced, 20000);
    ++compared;
    all_runs += all.runs;
    reduced_of_them += some.runs;
    CAPTURE(i);
    CHECK(some.complete);
    CHECK(some.outcomes == all.outcomes);
  }
  MESSAGE(compared << " networks: " << all_runs << " schedules, reduced " << reduced_of_them);
  CHECK(compared > 100);
  CHECK(reduced_of_them * 10 < all_runs);
}
TEST_CASE("rule 17.8: a schedule is repeated by its deviations, also by number") {
  const Network n = philosophers(3, false);
  wc::Run run;
  wc::Walk walk;
  unsigned failed = 0;
  for (walk.seed = 1; walk.seed < 60; ++walk.seed) {
    const Outcome o = Machine(n, run).go(walk);
    failed += !o.first;
    wc::Replay by_name, by_number;
    for (std::size_t i = 0; i < run.decisions().size(); ++i) {
      const wc::Decision& d = run.decisions()[i];
      if (d.index == 0) continue;
      by_number.numbers.push_back({i, d.index});
      by_name.deviations.push_back({run.record.path(d.process), d.step, d.kind,
                                    d.choice < 0 ? "" : run.record.path(d.choice), 0});
    }
    CHECK(Machine(n, run).go(by_name) == o);
    CHECK(run.difference.empty());
    CHECK(Machine(n, run).go(by_number) == o);
    CHECK(run.difference.empty());
  }
  CHECK(failed > 0);
}
TEST_CASE("rule 17.8: a deviation that does not fit is told, and the usual order goes on") {
  const Network n = philosophers(3, false);
  wc::Run run;
  wc::Plain plain;
  const Outcome usual = Machine(n, run).go(plain);
  wc::Replay replay;
  replay.deviations = {{"main/p0", 99, wc::Kind::go, "main/p1", 0}};
  CHECK(Machine(n, run).go(replay) == usual);
  CHECK(run.difference.find("after step 99 of main/p0") == 0);
}
TEST_CASE(
    "rule 17.8: with few deviations there are few schedules, and every one with none is the "
    "usual") {
  const Network n = philosophers(3, false);
  wc::Bounded none, one;
  none.bound = 0;
  one.bound = 1;
  CHECK(search(n, none).runs == 1);
  const Found f = search(n, one);
  CHECK(f.complete);
  CHECK(f.runs > 1);
  CHECK(f.runs < 100);
}
TEST_CASE("rule 17.3: a random walk and random priorities are the same for the same seed") {
  const Network n = philosophers(5, false);
  wc::Run run;
  wc::Walk walk;
  wc::Priorities priorities;
  for (wc::Strategy* s :
       {static_cast<wc::Strategy*>(&walk), static_cast<wc::Strategy*>(&priorities)}) {
    std::set<std::vector<unsigned>> different;
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      walk.seed = priorities.seed = seed;
      std::vector<unsigned> first, again;
      Machine(n, run).go(*s);
      for (const wc::Decision& d : run.decisions()) first.push_back(d.index);
      Machine(n, run).go(*s);
      for (const wc::Decision& d : run.decisions()) again.push_back(d.index);
      CHECK(first == again);
      different.insert(first);
    }
    CHECK(different.size() > 10);
  }
}
TEST_CASE("rule 17.9: a program that is not the same twice is noticed") {
  wc::Run run;
  wc::Reduced reduced;
  const Network a = philosophers(3, false), b = writers(2);
  Machine(a, run).go(reduced);
  REQUIRE(reduced.advance());
  Machine(b, run).go(reduced);
  CHECK(run.why() == wc::Stopped::different);
  CHECK_FALSE(run.difference.empty());
}
// A key is usually the address of a place. If the number of a key outlived the place, a new place
// at the same address would be taken for the old one.
TEST_CASE("rule 17.9: numbers by key, which are forgotten all at once") {
  wc::Numbers numbers;
  std::unordered_map<std::uint64_t, int> expected;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t key = random() % 300 * 64;  // like addresses, many of which end in zeros
    if (random() % 3 == 0) {
      numbers.erase(key);
      expected.erase(key);
    } else {
      numbers.put(key, i);
      expected[key] = i;
    }
    if (random() % 500 == 0) {
      numbers.clear();
      expected.clear();
    }
    const std::uint64_t other = random() % 300 * 64;
    const auto found = expected.find(other);
    CHECK(numbers.of(other) == (found == expected.end() ? wc::kNone : found->second));
  }
}
