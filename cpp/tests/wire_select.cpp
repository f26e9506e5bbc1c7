// Tests FarSelect with guards of this program beside far ends: timers, skips, ends of processes;
// and ends() (WIRE.md 5.9, rules 5.2, 5.6, 5.7). Also tests the list in which a FarSelect keeps its
// ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "random.hpp"
#include "weft/weft.hpp"
#include "weft/wire/link_base.hpp"
#include "weft/wire/stream.hpp"
#include "wire_pair.hpp"

namespace wire_select {
namespace {
using namespace weft;
using namespace std::chrono_literals;
namespace w = weft::wire;

struct Pair : test::Pair<> {
  Channel<int> c;
  w::FarReader<int> r;
  Pair() {
    h->give(c.reader(), "c");
    r = f->reader<int>("c");
  }
};

TEST_CASE(
    "wire 5.9: a select that polls takes what is there, else the skip, or the timeout of 0; with "
    "priority nothing behind a skip (rule 5.7)") {
  const Outside outside;
  Pair p;
  Channel<int> full{buffer(1)};
  p.h->give(full.reader(), "full");
  auto b = p.f->reader<int>("full");
  Writer<int> to = full.writer();
  for (const bool timeout : {false, true}) {
    w::FarSelect none;
    none.in(p.r);
    timeout ? none.on(weft::after(0ns)) : none.on(weft::skip());
    CHECK(none() == 1);
    to(7);
    w::FarSelect some;
    some.in(p.r).in(b);
    timeout ? some.on(weft::after(0ns)) : some.on(weft::skip());
    CHECK(some() == 1);
    CHECK(some.value<int>() == 7);
    to(8);
    w::FarSelect behind;
    behind.in(p.r).on(weft::skip()).in(b);
    CHECK(behind() == 1);
    w::FarSelect fair;
    fair.in(p.r).on(weft::skip()).in(b).from(1);
    CHECK(fair() == 2);
    CHECK(fair.value<int>() == 8);
  }
  w::FarSelect off;
  off.on(weft::skip().when(false)).in(p.r).on(weft::at(0));
  CHECK(off() == 2);
}

// Checks that a value that was not sent is still the writer's (rule 5.10), however the select
// ended. `run` makes the select end: with guard `chosen`, or without a chosen guard (-1).
void nothing_lost(w::FarSelect& s, int chosen, const std::function<void()>& run) {
  const std::string texts[] = {"a text that is too long to lie in the string itself", "another one",
                               "and one more", "the last"};
  run();
  for (int i = 0; i < 4; ++i) {
    CHECK_THROWS_AS(s.unsent<int>(i), BadUse);
    if (i != chosen) CHECK(s.unsent<std::string>(i) == texts[i]);
    CHECK_THROWS_WITH_AS(s.unsent<std::string>(i), doctest::Contains("was sent or taken"), BadUse);
  }
}

TEST_CASE("wire 5.9: what a select has not sent comes back (rules 5.10, 6.2)") {
  const Outside outside;
  for (int way = 0; way < 7; ++way) {
    CAPTURE(way);
    Pair p;
    Channel<std::string> a, b, local, other;
    p.h->give(a.writer(), "a");
    p.h->give(b.writer(), "b");
    auto ra = a.reader(), rb = b.reader(), rl = local.reader(), ro = other.reader();
    const auto wa = p.f->writer<std::string>("a"), wb = p.f->writer<std::string>("b");
    const auto here = local.writer(), too = other.writer();
    w::FarSelect s;
    s.out(wa, "a text that is too long to lie in the string itself");
    s.out(wb, "another one");
    s.out(here, "and one more");
    s.out(too, "the last");
    switch (way) {
      case 0:
        s.on(weft::after(1ms));
        nothing_lost(s, -1, [&] { CHECK(s() == 4); });
        break;
      case 1: {
        std::thread reads([&] { CHECK(rb() == "another one"); });
        nothing_lost(s, 1, [&] { CHECK(s() == 1); });
        reads.join();
        break;
      }
      case 2: {
        std::thread reads([&] { CHECK(rl() == "and one more"); });
        nothing_lost(s, 2, [&] { CHECK(s() == 2); });
        reads.join();
        break;
      }
      case 3:
        nothing_lost(s, -1, [&] {
          weft::run(weft::thread([&] {
            Timeout limit(1ms);
            CHECK_THROWS_AS(s(), TimedOut);
          }));
        });
        break;
      case 4:
        nothing_lost(s, -1, [&] {
          auto waits = [](w::FarSelect& x) -> Process { co_await x.go(); };
          CHECK_FALSE(weft::run(weft::timeout(1ms, waits(s))));
        });
        break;
      case 5:
        b.poison();
        nothing_lost(s, -1, [&] { CHECK_THROWS_AS(s(), Poisoned); });
        break;
      default: p.h.reset(); nothing_lost(s, -1, [&] { CHECK_THROWS_AS(s(), PeerDied); });
    }
  }
}

TEST_CASE("wire 5.9: so does an end that was not sent, and it is open (rule 2.4)") {
  const Outside outside;
  Pair p;
  Channel<w::WriterEnd<int>> a;
  Channel<int> inner;
  p.h->give(a.writer(), "a");
  const auto ra = a.reader();
  const auto wa = p.f->writer<w::WriterEnd<int>>("a");
  w::FarSelect s;
  s.out(wa, w::WriterEnd<int>(inner.writer())).on(weft::after(1ms));
  CHECK(s() == 1);
  const auto end = s.unsent<w::WriterEnd<int>>(0);
  std::thread reads([r = inner.reader()] { CHECK(r() == 5); });
  end(5);
  reads.join();
}

TEST_CASE("wire: few values lie in their list, more elsewhere; all are there, moved or not") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    weft::test::Random dice(seed);
    auto few = std::make_unique<w::InlineVector<std::unique_ptr<int>, 4>>();
    std::vector<int> as;
    for (int step = 0; step < 60; ++step) {
      switch (dice.below(8)) {
        case 0:
          few->clear();
          as.clear();
          break;
        case 1:
          few = std::make_unique<w::InlineVector<std::unique_ptr<int>, 4>>(std::move(*few));
          break;
        default:
          as.push_back(step);
          CHECK(*few->push_back(std::make_unique<int>(step)) == step);
          CHECK(*few->back() == step);
      }
      REQUIRE(few->size() == as.size());
      REQUIRE(few->empty() == as.empty());
      REQUIRE(std::equal(few->begin(), few->end(), as.begin(),
                         [](const std::unique_ptr<int>& a, int b) { return *a == b; }));
    }
  }
}

TEST_CASE("wire 4.5: a choice of more ends than lie in the select") {
  const Outside outside;
  Pair p;
  for (int wanted = 0; wanted < 12; ++wanted) {
    std::vector<Channel<int>> all(12);
    std::vector<Writer<int>> writers;
    w::FarSelect s;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string name = std::to_string(wanted) + "." + std::to_string(i);
      writers.push_back(all[i].writer());
      p.h->give(all[i].reader(), name);
      s.in(p.f->reader<int>(name));
    }
    std::thread t([to = writers[static_cast<std::size_t>(wanted)], wanted, token = Outside()] {
      to(wanted);
    });
    CHECK(s() == wanted);
    CHECK(s.value<int>() == wanted);
    t.join();
  }
}

TEST_CASE(
    "wire 5.9: a deadline that comes asks the homes back: nothing is lost, whichever was first "
    "(rules 5.2, 6.4)") {
  const Outside outside;
  Pair p;
  Channel<int> own;
  const Reader<int> mine = own.reader();
  const Writer<int> nobody = own.writer();
  std::thread writes([to = p.c.writer(), token = Outside()] {
    for (int i = 0; i < 60; ++i) to(i);
  });
  int next = 0, late = 0;
  for (int round = 0; next < 60; ++round) {
    w::FarSelect s;
    s.on(weft::after(std::chrono::microseconds(round % 7 * 40))).in(p.r);
    if (round % 2) s.in(mine);
    const int k = s();
    if (k == 0) {
      ++late;
      continue;
    }
    CHECK(k == 1);
    CHECK(s.value<int>() == next++);
  }
  writes.join();
  CHECK(next == 60);
}

Process waits_with_deadline(w::FarReader<int> r, int& chosen) {
  w::FarSelect s;
  s.in(r).on(weft::after(1ms)).on(weft::at(prim::forever));
  chosen = co_await s.go();
}

TEST_CASE("wire 5.9: so it is in a coroutine") {
  Pair p;
  Writer<int> kept = p.c.writer();
  int chosen = -1;
  run(waits_with_deadline(p.r, chosen));
  CHECK(chosen == 1);
}

Process ends_when_told(Reader<int> go) {
  try {
    co_await go.read();
  } catch (const Retired&) {
  }
}
Process watches(w::FarReader<int> r, Writer<int> go, Watch<void> watch, Writer<int> lets_end,
                std::vector<int>& chosen) {
  {
    w::FarSelect s;
    s.on(watch.ended()).in(r);
    co_await go.write(1);
    chosen.push_back(co_await s.go());
  }
  lets_end.retire();
  w::FarSelect s;
  s.in(r).on(watch.ended());
  chosen.push_back(co_await s.go());
  w::FarSelect again;  // The session has ended, so the home is not asked.
  again.on(watch.ended()).in(r);
  chosen.push_back(co_await again.go());
}

TEST_CASE(
    "wire 5.11, 4.8: an output that is off is offered without LATER: its value is never made, and "
    "the session lives (rules 5.2, 5.8)") {
  const Outside outside;
  Pair p;
  Channel<int> out;
  p.h->give(out.writer(), "out");
  auto to = p.f->writer<int>("out");
  Writer<int> writes = p.c.writer();
  for (const bool first : {true, false}) {
    std::thread t([&, token = Outside()] {
      try {
        writes(7);
      } catch (const PeerDied&) {  // A fault has ended the session.
      }
    });
    w::FarSelect s;
    const auto never = []() -> int { throw std::logic_error("a value that nobody asked for"); };
    if (first) s.out_with(to, never).when(false);
    s.in(p.r);
    if (!first) s.out_with(to, never).when(false);
    CHECK(s() == (first ? 1 : 0));
    CHECK(s.value<int>() == 7);
    t.join();
  }
}

TEST_CASE("wire 5.9: the end of a process beside far ends (rule 7.11)") {
  Pair p;
  Channel<int> go, until;
  const Watch<void> watch;
  std::vector<int> chosen;
  Writer<int> to = p.c.writer();
  std::thread writes([&, g = go.reader(), token = Outside()] { to(g()); });
  run(watches(p.r, go.writer(), watch, until.writer(), chosen),
      watch.of(ends_when_told(until.reader())));
  writes.join();
  CHECK(chosen == std::vector<int>{1, 1, 0});
}

TEST_CASE(
    "wire 5.9: ends(): that a channel has retired is ready at once, with its guard (rule 5.6); a "
    "select with a deadline is over by 5.6") {
  const Outside outside;
  Pair p;
  Channel<int> stop;
  p.h->give(stop.reader(), "stop");
  auto s = p.f->reader<int>("stop");
  Writer<int> kept = p.c.writer();
  stop.writer().retire();
  w::FarSelect loud;
  loud.in(p.r).in(s).ends();
  try {
    loud();
    CHECK(false);
  } catch (const Retired& e) {
    CHECK(e.guard == 1);
  }
  kept.retire();
  w::FarSelect all;
  all.in(p.r).in(s).on(weft::after(1h));
  CHECK_THROWS_AS(all(), Retired);
}

TEST_CASE(
    "wire 5.9, rule 11: when() and ends() of nothing, and of a timer, are bad use; so is a select "
    "without a far end") {
  Pair p;
  w::FarSelect a, b, c;
  CHECK_THROWS_AS(a.when(true), BadUse);
  b.in(p.r).on(weft::skip());
  CHECK_THROWS_AS(b.ends(), BadUse);
  c.on(weft::skip());
  CHECK_THROWS_AS(c(), BadUse);
  w::FarSelect once;
  once.in(p.r).on(weft::skip());
  const Outside outside;
  CHECK(once() == 1);
  CHECK_THROWS_AS(once(), BadUse);
}

// Polls a channel whose home does not answer yet; `what` becomes the outcome.
Process looks(w::FarReader<int> r, bool timeout, std::string& what) {
  w::FarSelect s;
  s.in(r);
  timeout ? s.on(weft::after(0ns)) : s.on(weft::skip());
  try {
    what = std::to_string(co_await s.go());
  } catch (const Cancelled&) {
    what = "cancelled";
  }
}
Process cancelled_while_it_looks(Pair& p, bool timeout, std::string& what) {
  Group g;
  std::optional<w::Space::Step> held;
  held.emplace(*p.home);  // The thread that serves the home now waits for the lock.
  g.start(looks(p.r, timeout, what));
  co_await yield();
  CHECK(what.empty());
  g.cancel();
  held.reset();
  co_await g.wait();
}

TEST_CASE(
    "wire 5.9, rule 6.1: who is cancelled while it looks is cancelled: its skip is not chosen "
    "before all homes have been asked") {
  Pair p;
  for (const bool timeout : {false, true}) {
    std::string what;
    run(cancelled_while_it_looks(p, timeout, what));
    CHECK(what == "cancelled");
  }
}

Process cancelled_once_it_has_looked(Pair& p, std::string& what) {
  Group g;
  g.start(looks(p.r, false, what));
  co_await yield();
  for (bool asked = true; asked;) {  // Meanwhile `looks` does not run.
    const w::Space::Step step(*p.far);
    asked = p.f->peer()->far.open() > 0;
  }
  g.cancel();
  co_await g.wait();
}

TEST_CASE(
    "wire 5.9, rule 6.3: who is cancelled once all homes have been asked has chosen its skip") {
  Pair p;
  std::string what;
  run(cancelled_once_it_has_looked(p, what));
  CHECK(what == "1");
}

}  // namespace
}  // namespace wire_select
