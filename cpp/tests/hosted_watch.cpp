// Tests rule 7.11: a process's end as a guard, awaited, and watched; cancelling one process by its
// handle.
#include "hosted.hpp"

using namespace test;
using weft::Ending;

namespace {

ProcessOf<int> fails(weft::Span s) {
  co_await weft::sleep(s);
  throw std::runtime_error("mine");
}

}  // namespace

TEST_CASE("rule 7.11: an end is chosen and awaited, and stays ready; several watch") {
  const weft::Watch<int> w;
  weft::Channel<int> c;
  auto keep = c.writer();
  auto watches = [](weft::Watch<int> x, weft::Reader<int> r) -> Process {
    CHECK_FALSE(x.done());
    CHECK_THROWS_AS(x.get(), weft::BadUse);
    CHOSEN(weft::select(x.ended(), r, weft::after(1s)), 2);
    CHOSEN(weft::select(r, x.ended(), weft::after(9s)), 1);
    CHECK(weft::now() == 2'000'000'000);
    co_await x.ended();
    CHOSEN(weft::select(x.ended(), r), 0);
    const weft::Ended<int> e = x.get();
    CHECK(e.how == Ending::returned);
    CHECK(*e.result == 7);
    CHECK_FALSE(e.error);
  };
  weft::run(virtually, watches(w, c.reader()), watches(w, c.reader()), w.of(later(2s, 7)));
  weft::run(weft::thread([w] { w.ended()(); }));
  CHECK_THROWS_AS(static_cast<void>(w.of(later(1s, 1))), weft::BadUse);
}

TEST_CASE_TEMPLATE("rule 7.11: an end in a list of guards that is put together as the program runs",
                   P, POLICIES) {
  const weft::Watch<int> w, never;
  weft::Channel<int, P> c;
  auto selects = [](weft::Watch<int> x, weft::Watch<int> y, weft::Reader<int, P> r,
                    weft::Writer<int, P> out) -> Process {
    for (const int last : {2, 1}) {
      std::vector<weft::AnyGuard<int, P>> gs;
      gs.push_back(y.ended());
      gs.push_back(x.ended().when(last == 1));
      gs.push_back(weft::in(r));
      auto got = co_await weft::select_among<int, P>(std::move(gs));
      CHECK(got.index == last);
      CHECK(got.value.has_value() == (last == 2));
    }
    CHECK(weft::now() == 2'000'000'000);
    CHECK(*x.get().result == 7);
    out.retire();
  };
  auto gives = [](weft::Writer<int, P> out) -> Process { co_await out.write(3); };
  weft::run(virtually, w.of(later(2s, 7)), selects(w, never, c.reader(), c.writer()),
            gives(c.writer()));
}

TEST_CASE("rule 7.11: every way to end") {
  weft::Channel<int> c, d;
  const weft::Watch<int> retired, poisoned, cancelled, before;
  const weft::Watch<void> quiet;
  auto reads = [](weft::Reader<int> r) -> ProcessOf<int> { co_return co_await r.read(); };
  auto ends = [](weft::Writer<int>, weft::Writer<int> v, weft::Watch<int> x) -> Process {
    co_await weft::sleep(1s);
    v.poison();
    x.cancel();
  };
  before.cancel();
  weft::run(virtually, retired.of(reads(c.reader())), poisoned.of(reads(d.reader())),
            cancelled.of(later(100s, 1)), before.of(later(100s, 1)), quiet.of(naps(1s)),
            ends(c.writer(), d.writer(), cancelled));
  CHECK(retired.get().how == Ending::retired);
  CHECK(poisoned.get().how == Ending::poisoned);
  CHECK(cancelled.get().how == Ending::cancelled);
  CHECK(before.get().how == Ending::cancelled);
  CHECK_FALSE(cancelled.get().result);
  CHECK(quiet.get().how == Ending::returned);
}

TEST_CASE(
    "rule 7.11: a watched failure is its watchers', as long as one is alive; else its group's") {
  auto supervisor = [](weft::Watch<int> w) -> ProcessOf<bool> {
    co_await w.ended();
    co_await weft::sleep(5s);  // No process is cancelled.
    co_return w.get().how == Ending::failed&& w.get().error != nullptr;
  };
  const weft::Watch<int> w;
  auto [ok, nothing] = weft::run(virtually, supervisor(w), w.watched(fails(1s)));
  CHECK(*ok);

  auto forgets = [](std::unique_ptr<weft::Watch<int>>) -> Process { co_return; };
  auto other = std::make_unique<weft::Watch<int>>();
  Process p = other->watched(fails(1s));
  CHECK_THROWS_WITH(weft::run(virtually, forgets(std::move(other)), std::move(p), naps(9s)),
                    "mine");

  const weft::Watch<int> not_watched;
  CHECK_THROWS_WITH(weft::run(virtually, not_watched.of(fails(1s)), naps(9s)), "mine");
  CHECK(not_watched.get().how == Ending::failed);
}

TEST_CASE(
    "rule 7.11: one's own end is bad use; one that is never started is not ready; a wait for it "
    "can be cancelled") {
  auto own = [](weft::Watch<int> w) -> ProcessOf<int> {
    CHECK_THROWS_WITH_AS(w.ended(), doctest::Contains("itself"), weft::BadUse);
    co_return 1;
  };
  const weft::Watch<int> w, never;
  auto waits = [](weft::Watch<int> x) -> Process {
    CHOSEN(weft::select(x.ended(), weft::after(1s)), 1);
    CHECK_FALSE(
        co_await weft::timeout(1s, [](weft::Watch<int> y) -> Process { co_await y.ended(); }(x)));
  };
  weft::run(virtually, w.of(own(w)), waits(never));
}

TEST_CASE(
    "rules 7.11, 10.2: in a deadlock the watcher waits for the process, which is named with its "
    "line") {
  const weft::Watch<int> w;
  weft::Channel<int> c(weft::named("c"));
  auto watches = [](weft::Watch<int> x, weft::Writer<int>) -> Process { co_await x.ended(); };
  auto reads = [](weft::Reader<int> r) -> ProcessOf<int> { co_return co_await r.read(); };
  const int here = __LINE__ + 2;
  try {
    weft::run(watches(w, c.writer()).named("watches"), w.of(reads(c.reader()).named("reads")));
    FAIL("no deadlock");
  } catch (const weft::Deadlock& e) {
    const std::string text = e.what();
    CHECK(text.find("watches: wait for 'the end of reads (hosted_watch.cpp:" +
                    std::to_string(here) + ")'") != std::string::npos);
    CHECK(e.knot.size() == 3);
  }
}

TEST_CASE("rules 7.11, 10.2: in a select too, and of a process on a thread; of none it says so") {
  const weft::Watch<void> of_thread, of_none;
  weft::Channel<int> c(weft::named("c"));
  auto selects = [](weft::Watch<void> x, weft::Watch<void> y, weft::Writer<int>) -> Process {
    co_await weft::select(x.ended(), y.ended());
  };
  try {
    weft::run(selects(of_thread, of_none, c.writer()).named("selects"),
              of_thread.of(weft::thread([r = c.reader()] { r(); }).named("in_a_thread")));
    FAIL("no deadlock");
  } catch (const weft::Deadlock& e) {
    const std::string text = e.what();
    CHECK(text.find("the end of in_a_thread (hosted_watch.cpp:") != std::string::npos);
    CHECK(text.find("'the end of a process'") != std::string::npos);
  }
}

TEST_CASE("rules 6.1, 7.11: who catches a cancellation by the handle is asked again by the next") {
  const weft::Watch<int> w;
  auto stubborn = []() -> ProcessOf<int> {
    int asked = 0;
    while (asked < 2) {
      try {
        co_await weft::sleep(60s);
      } catch (const weft::Cancelled&) {
        ++asked;
      }
    }
    co_return asked;
  };
  auto asks = [](weft::Watch<int> x) -> Process {
    for (int i = 0; i < 2; ++i) {
      co_await weft::sleep(1s);
      x.cancel();
    }
    co_await x.ended();
    CHECK(weft::now() == 2'000'000'000);
    CHECK(x.get().how == Ending::returned);
    REQUIRE(x.get().result);
    CHECK(*x.get().result == 2);
  };
  weft::run(virtually, w.of(stubborn()), asks(w));
}

TEST_CASE("rule 7.11: on two cores, many ends and cancellations by handle") {
  auto one = []() -> ProcessOf<int> {
    co_await weft::sleep(60s);
    co_return 1;
  };
  auto supervisor = [](weft::Watch<int> w) -> Process {
    co_await weft::yield();
    w.cancel();
    co_await w.ended();
    CHECK(w.get().how == Ending::cancelled);
  };
  std::vector<Process> ps;
  for (int i = 0; i < 200; ++i) {
    const weft::Watch<int> w;
    ps.push_back(w.of(one()));
    ps.push_back(supervisor(w));
  }
  weft::run(weft::RunOptions{weft::Clock::steady, 2}, weft::par(std::move(ps)));
}
