// Tests barriers whose home is another program, over real links: they are given and taken by name,
// operated on, and used as guards of a FarSelect (WIRE.md 4.9 to 4.11, rule 8).
#include <doctest/doctest.h>

#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/meeting.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/shm.hpp"
#include "wire_world.hpp"

namespace wire_far_barrier {
namespace {
using namespace weft;
using namespace std::chrono_literals;
namespace w = weft::wire;

// A home, and two other programs' spaces.
template <class L>
struct Three {
  std::shared_ptr<w::Space> home = w::Space::make("home"), left = w::Space::make("left"),
                            right = w::Space::make("right");
  // The first letter names the space that has the link, the second the space to which the link
  // leads.
  std::optional<L> hl, lh, hr, rh;
  Three() {
    join(home, left, hl, lh);
    join(home, right, hr, rh);
  }
  static void join(const std::shared_ptr<w::Space>& a, const std::shared_ptr<w::Space>& b,
                   std::optional<L>& x, std::optional<L>& y) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    x.emplace(a, fds[0]);
    y.emplace(b, fds[1]);
  }
};
void until_somebody_waits(const Barrier& b) {
  while (!test::somebody_waits(*b.core())) std::this_thread::yield();
}
template <class F>
std::string bad_use_of(F&& f) {
  try {
    f();
  } catch (const BadUse& e) {
    return e.what();
  }
  return {};
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Counts the phases that each party has passed; no party may be two phases ahead of another.
using Counts = std::array<std::atomic<int>, 3>;
void count_phase(Counts& all, int me, std::atomic<int>& ahead) {
  const int mine = ++all[static_cast<std::size_t>(me)];
  for (const auto& c : all)
    if (std::abs(c.load() - mine) > 1) ++ahead;
}
Process syncs(w::FarBarrier b, int times, Counts& all, int me, std::atomic<int>& ahead) {
  for (int i = 0; i < times; ++i) {
    co_await b.sync();
    count_phase(all, me, ahead);
  }
}

TEST_CASE_TEMPLATE(
    "wire 4.9: parties of three programs meet by a name: a thread at home, a thread and a "
    "coroutine elsewhere (rule 8.1)",
    L, w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Barrier bar(3);
  t.hl->give(bar, "step");
  t.hr->give(bar, "step");
  Counts all{};
  std::atomic<int> ahead{0};
  const int times = 300;
  std::thread left([&, token = Outside()] {
    const w::FarBarrier b = t.lh->barrier("step");
    for (int i = 0; i < times; ++i) b.sync()(), count_phase(all, 1, ahead);
  });
  std::thread right([&] { run(syncs(t.rh->barrier("step"), times, all, 2, ahead)); });
  for (int i = 0; i < times; ++i) bar.sync()(), count_phase(all, 0, ahead);
  left.join();
  right.join();
  CHECK(ahead == 0);
  CHECK(bar.phases() == static_cast<std::uint64_t>(times));
  // Both programs have released their shares before they leave, so the barrier does not die.
  t.lh.reset();
  t.hl->wait();
  CHECK_FALSE(bar.core()->has_died());
}

Process counts(w::FarBarrier b, std::vector<std::uint32_t>& seen) {
  seen.push_back(co_await b.parties());
  co_await b.enrol();
  seen.push_back(co_await b.parties());
  co_await b.resign();
  co_await b.resign();
  seen.push_back(co_await b.parties());
}
TEST_CASE_TEMPLATE(
    "wire 4.9: parties are counted, enrolled and taken away from another program; with nobody "
    "enrolled an arrival is bad use (rule 8.2)",
    L, w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Barrier bar(1);
  t.hl->give(bar, "step");
  const w::FarBarrier b = t.lh->barrier("step");
  std::vector<std::uint32_t> seen;
  run(counts(b, seen));
  CHECK(seen == std::vector<std::uint32_t>{1, 2, 0});
  CHECK(has(bad_use_of([&] { b.sync()(); }), "nobody is enrolled"));
  CHECK(has(bad_use_of([&] { b.resign()(); }), "nobody is enrolled"));
  w::FarSelect s;
  CHECK(has(bad_use_of([&] { s.meet(b)(); }), "nobody is enrolled"));
  b.enrol()();
  CHECK(bar.parties() == 1);
  b.sync()();  // This party is the only one, so it does not wait.
  CHECK(b.parties()() == 1);
}

TEST_CASE_TEMPLATE(
    "wire 7.5, 4.9: a barrier is passed on to a third program by one that then leaves, and goes "
    "home again",
    L, w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;  // In this test `home` is in the middle, and `left` has the barrier.
  Barrier bar(2);
  t.lh->give(bar, "b");
  {
    const w::FarBarrier b = t.hl->barrier("b");
    // give() takes the share now, so the barrier does not die when the middle space leaves.
    t.hr->give(b, "b");
    t.hl->give(b, "back");
  }
  const std::string back = bad_use_of([&] { t.lh->barrier("back"); });
  CHECK(has(back, "this program: use the Barrier"));
  const w::FarBarrier there = t.rh->barrier("b");
  t.hl.reset();
  t.hr.reset();
  std::thread far([&, token = Outside()] { there.sync()(); });
  bar.sync()();
  far.join();
  CHECK(there.parties()() == 2);
  CHECK(bar.phases() == 1);
}

TEST_CASE("wire 12.3, 4.9: a barrier at a meeting point of two programs") {
  const Outside outside;
  char path[] = "/tmp/weft-test-XXXXXX";
  REQUIRE(::mkdtemp(path) != nullptr);
  {
    const w::MeetingOptions options{path, false};
    const auto a = w::Space::make("a"), b = w::Space::make("b");
    w::Meeting point(a, "steps", options);
    std::thread comes([&, token = Outside()] {
      auto link = w::meet(b, "steps", options);
      link->barrier("step").sync()();
      link->wait();
    });
    Barrier bar(2);
    auto link = point.next();
    REQUIRE(link);
    link->give(bar, "step");
    bar.sync()();
    link.reset();
    comes.join();
    CHECK(bar.phases() == 1);
  }
  CHECK(::rmdir(path) == 0);
}

TEST_CASE("wire 7.2, rule 11: what is no barrier, was taken already, or was never taken") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(1);
  Channel<int> c;
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  CHECK(has(bad_use_of([&] { t.lh->barrier("c"); }), "is of type i4, and barrier was asked for"));
  CHECK(has(bad_use_of([&] { t.lh->reader<int>("b"); }), "is of type barrier"));
  const w::FarBarrier b = t.lh->barrier("b"), none;
  CHECK(has(bad_use_of([&] { t.lh->barrier("b"); }), "taken already"));
  CHECK_FALSE(none);
  CHECK(b);
  CHECK_THROWS_AS(static_cast<void>(none.sync()), BadUse);
  CHECK_THROWS_AS(t.lh->give(none, "none"), BadUse);
  w::FarSelect s;
  CHECK_THROWS_AS(s.meet(none), BadUse);
  t.hl.reset();
  CHECK_THROWS_AS(t.lh->barrier("later"), PeerDied);
}

Process syncs_once(w::FarBarrier b, std::string& how) {
  try {
    co_await b.sync();
    how = "met";
  } catch (const Cancelled&) {
    how = "cancelled";
    throw;
  }
}
Process fails_after(Reader<int> go) {
  co_await go.read();
  throw std::runtime_error("enough");
}
TEST_CASE("wire 4.3, 4.9: a cancelled arrival counts no more (rule 8.3)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2);
  t.hl->give(bar, "b");
  Channel<int> go;
  std::string how;
  std::thread cancels([&, to = go.writer(), token = Outside()] {
    until_somebody_waits(bar);
    to(1);
  });
  const w::FarBarrier b = t.lh->barrier("b");
  CHECK_THROWS_AS(run(syncs_once(b, how), fails_after(go.reader())), std::runtime_error);
  cancels.join();
  CHECK(how == "cancelled");
  CHECK_FALSE(test::somebody_waits(*bar.core()));
  std::thread far([&, token = Outside()] { b.sync()(); });
  bar.sync()();
  far.join();
  CHECK(bar.phases() == 1);
}

// --- a barrier as a guard ------------------------------------------------------------------------

TEST_CASE_TEMPLATE(
    "wire 4.10: a barrier beside channels of its home: whichever is first (rule 8.4)", L,
    w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Barrier bar(2);
  Channel<int> c, d;
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  t.hl->give(d.writer(), "d");
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->template reader<int>("c");
  const auto to = t.lh->template writer<int>("d");
  const Writer<int> writes = c.writer();
  const Reader<int> reads = d.reader();
  for (const int who : {0, 1, 2, 0}) {
    int chosen = -1, got = 0;
    std::thread far([&, token = Outside()] {
      w::FarSelect s;
      s.in(r).meet(b).out(to, 7);
      chosen = s();
      if (chosen == 0) got = s.value<int>();
    });
    until_somebody_waits(bar);
    if (who == 0) writes(5);
    if (who == 1) bar.sync()();
    if (who == 2) CHECK(reads() == 7);
    far.join();
    CHECK(chosen == who);
    CHECK(got == (who == 0 ? 5 : 0));
    CHECK_FALSE(test::somebody_waits(*bar.core()));
  }
  CHECK(bar.phases() == 1);
}

Process selects(w::FarBarrier b, w::FarReader<int> r, int& chosen) {
  w::FarSelect s;
  s.in(r).meet(b);
  chosen = co_await s.go();
}
Process selects_late(w::FarBarrier b, w::FarReader<int> r, std::atomic<int>& first, int& second) {
  w::FarSelect late;
  late.meet(b).in(r).on(weft::after(1ms));
  first = co_await late.go();
  w::FarSelect s;
  s.meet(b).in(r).on(weft::after(1h));
  second = co_await s.go();
}
TEST_CASE("wire 4.10, 5.9: in a coroutine; and a deadline that comes asks it back (rule 8.3)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2);
  Channel<int> c;
  const Writer<int> kept = c.writer();
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->reader<int>("c");
  int chosen = -1;
  std::thread syncs([&, token = Outside()] { bar.sync()(); });
  run(selects(b, r, chosen));
  syncs.join();
  CHECK(chosen == 1);
  std::atomic<int> first{-1};
  int second = -1;
  std::thread far([&] { run(selects_late(b, r, first, second)); });
  while (first < 0) std::this_thread::yield();
  bar.sync()();  // The first arrival was withdrawn, so sync() waits for the second arrival.
  far.join();
  CHECK(first == 2);
  CHECK(second == 0);
  CHECK(bar.phases() == 2);
}

TEST_CASE(
    "wire 4.10: a select that polls meets who waits already, else takes the skip (rule 5.7)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2);
  Channel<int> c;
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  const Writer<int> kept = c.writer();
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->reader<int>("c");
  for (const bool timeout : {false, true}) {
    const auto look = [&](w::FarSelect& s) {
      timeout ? s.on(weft::after(0ns)) : s.on(weft::skip());
      return s();
    };
    w::FarSelect none;
    none.in(r).meet(b);
    CHECK(look(none) == 2);
    CHECK_FALSE(test::somebody_waits(*bar.core()));
    std::thread waits([&, token = Outside()] { bar.sync()(); });
    until_somebody_waits(bar);
    w::FarSelect some;
    some.in(r).meet(b);
    CHECK(look(some) == 1);
    waits.join();
  }
  w::FarSelect behind;  // With priority no guard behind a skip is tried.
  behind.in(r).on(weft::skip()).meet(b);
  CHECK(behind() == 1);
}

TEST_CASE("wire 4.10: from(i) begins at guard i, over one home too (rule 5.4)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier one(1);  // always ready
  Channel<int> c{buffer(4)};
  t.hl->give(one, "b");
  t.hl->give(c.reader(), "c");
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->reader<int>("c");
  const Writer<int> writes = c.writer();
  for (int i = 0; i < 4; ++i) writes(i);
  for (const bool timer : {false, true})
    for (int first = 0; first < 2; ++first) {
      w::FarSelect s;
      s.in(r).meet(b).from(first);
      if (timer) s.on(weft::after(1h));
      CHECK(s() == first);
      if (first == 0) CHECK(s.value<int>() == (timer ? 1 : 0));
    }
}

Process ends_when_told(Reader<int> go) {
  try {
    co_await go.read();
  } catch (const Retired&) {
  }
}
Process watches(w::FarBarrier b, w::FarReader<int> r, Watch<void> watch, Writer<int> lets_end,
                std::vector<int>& chosen) {
  for (int i = 0; i < 2; ++i) {
    w::FarSelect s;
    s.in(r).meet(b).on(watch.ended());
    chosen.push_back(co_await s.go());
    lets_end.retire();
  }
}
TEST_CASE("wire 4.10, 5.9: beside the end of a process (rule 7.11)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2);
  Channel<int> c, until;
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  const Writer<int> kept = c.writer();
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->reader<int>("c");
  const Watch<void> watch;
  std::vector<int> chosen;
  std::thread syncs([&, token = Outside()] { bar.sync()(); });
  run(watches(b, r, watch, until.writer(), chosen), watch.of(ends_when_told(until.reader())));
  syncs.join();
  CHECK(chosen == std::vector<int>{1, 2});
  CHECK_FALSE(test::somebody_waits(*bar.core()));
}

TEST_CASE("wire 4.10, 4.8: an output beside it makes its value after the commit (rule 5.8)") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2);
  Channel<int> c;
  t.hl->give(bar, "b");
  t.hl->give(c.writer(), "c");
  const auto b = t.lh->barrier("b");
  const auto to = t.lh->writer<int>("c");
  const Reader<int> reads = c.reader();
  int made = 0;
  for (const int who : {0, 1}) {
    int chosen = -1;
    std::thread far([&, token = Outside()] {
      w::FarSelect s;
      chosen = s.meet(b).out_with(to, [&] { return ++made; })();
    });
    until_somebody_waits(bar);
    if (who == 0)
      bar.sync()();
    else
      CHECK(reads() == 1);
    far.join();
    CHECK(chosen == who);
    CHECK(made == who);
  }
}

TEST_CASE("wire 4.10: what a barrier cannot be chosen beside is bad use, and nothing is sent") {
  const Outside outside;
  Three<w::StreamLink> t;
  Barrier bar(2), other(2);
  Channel<int> c, own;
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->reader<int>("c");
  Channel<int> third;
  t.rh->give(third.reader(), "third");
  t.hl->give(t.hr->reader_end<int>("third"), "third");
  const auto elsewhere = t.lh->reader_end<int>("third");
  REQUIRE(elsewhere.there());
  w::FarSelect local, spans, off, loud, barrier_off, twice;
  local.meet(b).in(own.reader());
  spans.in(*elsewhere.there()).meet(b);
  off.meet(b).in(r).when(false);
  loud.in(r).ends().meet(b);
  barrier_off.in(r).meet(b).when(false);
  for (w::FarSelect* s : {&local, &spans, &off, &loud, &barrier_off})
    CHECK(has(bad_use_of([&] { (*s)(); }), "a barrier can be a guard only if"));
  twice.meet(b).in(r).meet(b);
  CHECK(has(bad_use_of([&] { twice(); }), "one barrier"));
  CHECK_FALSE(test::somebody_waits(*bar.core()));
  CHECK(b.parties()() == 2);  // The session is still open.
}

// --- death ---------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE(
    "wire 4.11: a program that has the barrier and dies is its death: who waits there in another "
    "is told, by sync and by select, and who comes later (rule 8.7)",
    L, w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Barrier bar(4);
  Channel<int> c;
  const Writer<int> kept = c.writer();
  t.hl->give(bar, "b");
  t.hl->give(c.reader(), "c");
  t.hr->give(bar, "b");
  const auto b = t.lh->barrier("b");
  const auto r = t.lh->template reader<int>("c");
  const auto right = t.rh->barrier("b");
  std::string sync, select;
  int guard = -1;
  std::atomic<int> there{0};
  std::thread one([&, token = Outside()] {
    try {
      ++there;
      b.sync()();
    } catch (const PeerDied& e) {
      sync = e.what();
    }
  });
  std::thread two([&, token = Outside()] {
    try {
      ++there;
      w::FarSelect s;
      s.in(r).meet(b)();
    } catch (const PeerDied& e) {
      select = e.what();
      guard = e.guard;
    }
  });
  while (there < 2) std::this_thread::yield();
  until_somebody_waits(bar);
  t.rh.reset();
  one.join();
  two.join();
  CHECK(has(sync, "sync: the barrier has died, with a program that had it or has made it"));
  CHECK(has(select, "select: the barrier has died, with a program that had it or has made it"));
  CHECK(guard == 1);
  CHECK_THROWS_AS(b.sync()(), PeerDied);
  CHECK_THROWS_AS(b.parties()(), PeerDied);
  CHECK_THROWS_AS(bar.sync()(), PeerDied);
}

TEST_CASE_TEMPLATE("wire 4.4, 4.11: a home that is lost is PeerDied at its barriers", L,
                   w::StreamLink, w::ShmLink) {
  const Outside outside;
  Three<L> t;
  Barrier bar(2);
  t.hl->give(bar, "b");
  const auto b = t.lh->barrier("b");
  std::string how;
  std::thread waits([&, token = Outside()] {
    try {
      b.sync()();
    } catch (const PeerDied& e) {
      how = e.what();
      CHECK_FALSE(e.in_doubt);
    }
  });
  until_somebody_waits(bar);
  t.hl.reset();
  waits.join();
  CHECK(has(how, "the peer is gone"));
  CHECK_THROWS_AS(b.enrol()(), PeerDied);
}

}  // namespace
}  // namespace wire_far_barrier
