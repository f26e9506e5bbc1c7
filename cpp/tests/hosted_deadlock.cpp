// Tests rule 10: deadlock, and the processes that the report names.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "hosted.hpp"

using namespace test;

namespace {

template <class F>
weft::Deadlock deadlock_of(F&& f) {
  try {
    f();
  } catch (const weft::Deadlock& d) {
    return d;
  }
  FAIL("no deadlock");
  throw 0;
}
using Paths = std::vector<std::string>;
Paths sorted(Paths p) {
  std::sort(p.begin(), p.end());
  return p;
}

}  // namespace

TEST_CASE_TEMPLATE("rules 10.1, 10.2: two processes that wait for each other", P, POLICIES) {
  weft::Channel<int, P> a{weft::named("a")}, b{weft::named("b")}, c{weft::named("c")};
  bool cleaned = false;
  auto left = [](weft::Reader<int, P> r, weft::Writer<int, P> w, bool& clean) -> Process {
    try {
      co_await r.read();
    } catch (const weft::Cancelled&) {
      clean = true;
      throw;
    }
    co_await w.write(1);
  };
  auto right = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    co_await w.write(co_await r.read());
  };
  auto bystander = [](weft::Reader<int, P> r, weft::Writer<int, P>) -> Process {
    co_await r.read();
  };
  const auto d = deadlock_of([&] {
    weft::run(left(a.reader(), b.writer(), cleaned).named("left"),
              right(b.reader(), a.writer()).named("right"),
              bystander(c.reader(), c.writer()).named("bystander"));
  });
  // The bystander waits for itself, which is the smallest knot.
  CHECK(d.knot == Paths{"main/bystander"});
  CHECK(has(d.what(), "3 processes are blocked"));
  CHECK(has(d.what(), "main/left: read 'a' at hosted_deadlock.cpp:"));
  CHECK(has(d.what(), "main/right: read 'b' at hosted_deadlock.cpp:"));
  CHECK(cleaned);

  weft::Channel<int, P> x, y;
  const auto e = deadlock_of([&] {
    weft::run(left(x.reader(), y.writer(), cleaned).named("left"),
              right(y.reader(), x.writer()).named("right"));
  });
  CHECK(sorted(e.knot) == Paths{"main/left", "main/right"});
}

TEST_CASE("rule 10.2: a ring of three, and two who wait for it") {
  std::vector<weft::Channel<int>> c(5);
  auto node = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    for (;;) co_await w.write(co_await r.read());
  };
  auto tail = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  const auto d = deadlock_of([&] {
    weft::run(node(c[0].reader(), c[1].writer()).named("ring"),
              node(c[1].reader(), c[2].writer()).named("ring"),
              node(c[2].reader(), c[0].writer()).named("ring"),
              node(c[3].reader(), c[4].writer()).named("first"), tail(c[4].reader()).named("last"),
              node(c[1].reader(), c[3].writer()).named("feeder"));
  });
  // `first` and `last` wait for feeder, and feeder for the ring. The other reader of c[1] does not
  // matter.
  CHECK(sorted(d.knot) == Paths{"main/ring[0]", "main/ring[1]", "main/ring[2]"});
}

TEST_CASE("rule 10.2: with a choice a cycle is not enough, a knot is") {
  // chooser waits for partner or for lonely, partner waits for chooser, and lonely waits for an end
  // that no process holds.
  weft::Channel<int> a, b, back, nobody;
  auto chooser = [](weft::Reader<int> x, weft::Reader<int> y, weft::Writer<int>) -> Process {
    co_await weft::select(x, y);
  };
  auto partner = [](weft::Writer<int>, weft::Reader<int> r) -> Process { co_await r.read(); };
  auto w = nobody.writer();
  const auto d = deadlock_of([&] {
    weft::run(chooser(a.reader(), b.reader(), back.writer()).named("chooser"),
              partner(a.writer(), back.reader()).named("partner"),
              partner(b.writer(), nobody.reader()).named("lonely"));
  });
  CHECK(d.knot == Paths{"main/lonely"});
  CHECK(has(d.what(), "nobody that is known"));
  CHECK(has(d.what(),
            "\nif a thread that Weft did not start is to come there: hold a weft::Outside"));
}

TEST_CASE("rule 10.2: a knot through a process that waits for its children") {
  weft::Channel<int> up, down;
  auto child = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  auto parent = [](weft::Reader<int> r, weft::Writer<int> w, auto c) -> Process {
    co_await c(std::move(r)).named("child");
    co_await w.write(1);
  };
  auto other = [](weft::Writer<int>, weft::Reader<int> r) -> Process { co_await r.read(); };
  const auto d = deadlock_of([&] {
    weft::run(parent(down.reader(), up.writer(), child).named("parent"),
              other(down.writer(), up.reader()).named("other"));
  });
  CHECK(sorted(d.knot) == Paths{"main/other", "main/parent", "main/parent/child"});
  CHECK(has(d.what(), "2 processes are blocked"));
}

TEST_CASE("rule 10.2: a barrier at which somebody is missing") {
  weft::Barrier b(2);
  auto sync = [](weft::Barrier x) -> Process { co_await x.sync(); };
  weft::Channel<int> c;
  auto other = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  auto keep = c.writer();
  const auto d =
      deadlock_of([&] { weft::run(sync(b).named("early"), other(c.reader()).named("missing")); });
  CHECK(d.knot == Paths{"main/missing"});
  CHECK(has(d.what(), "main/early: sync hosted_deadlock.cpp:"));
}

TEST_CASE("rule 10.1: every kind of operation is withdrawn, and the clean-up runs") {
  weft::Channel<int> c;
  weft::Barrier b(2);
  std::vector<std::string> log;
  auto keep = c.writer();
  auto p = [](weft::Reader<int> r, std::vector<std::string>& l) -> Process {
    try {
      co_await weft::select(r);
    } catch (const weft::Cancelled&) {
      l.push_back("select");
    }
    co_await weft::yield();  // The clean-up may use operations.
    l.push_back("cleaned");
  };
  auto q = [](weft::Barrier x, std::vector<std::string>& l) -> Process {
    try {
      co_await x.sync();
    } catch (const weft::Cancelled&) {
      l.push_back("sync");
    }
  };
  deadlock_of([&] { weft::run(p(c.reader(), log), q(b, log)); });
  CHECK(sorted(log) == Paths{"cleaned", "select", "sync"});
}

TEST_CASE(
    "rules 10.1, 10.3: threads and coroutines in one deadlock; a thread that works is no "
    "deadlock") {
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")};
  auto p = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    co_await w.write(co_await r.read());
  };
  // The thread process gets Cancelled, or, if the coroutine was cancelled first, Retired, because
  // the coroutine has closed its end.
  bool told = false;
  const auto d = deadlock_of([&] {
    weft::run(p(a.reader(), b.writer()).named("coroutine"),
              weft::thread([&told, r = b.reader(), w = a.writer()] {
                try {
                  w(r());
                } catch (const weft::Cancelled&) {
                  told = true;
                  throw;
                } catch (const weft::Retired&) {
                  told = true;
                  throw;
                }
              }).named("thread"));
  });
  CHECK(told);
  CHECK(has(d.what(), "main/coroutine: read 'a'"));
  CHECK(has(d.what(), "main/thread: read 'b'"));

  weft::Channel<int> c;
  std::vector<int> got;
  weft::run(collect<weft::Shared>(c.reader(), got), weft::thread([w = c.writer()] {
              for (int i = 0; i < 1000; ++i) std::this_thread::yield();
              w(1);
            }));
  CHECK(got == std::vector<int>{1});
}

TEST_CASE("rule 10.3: a thread that Weft did not start says that it is outside") {
  weft::Channel<int> c;
  std::vector<int> got;
  std::thread t([outside = weft::Outside(), w = c.writer()] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) w(i);
  });
  weft::run(collect<weft::Shared>(c.reader(), got));
  t.join();
  CHECK(got == std::vector<int>{0, 1, 2});

  // When the holder has ended without writing, there is a deadlock after all.
  weft::Channel<int> d;
  auto keep = d.writer();
  std::thread s([outside = weft::Outside()] {});
  deadlock_of([&] { weft::run(collect<weft::Shared>(d.reader(), got)); });
  s.join();
}

TEST_CASE("rule 10.1: a process asleep is no deadlock, on either clock") {
  weft::Channel<int> c;
  auto late = [](weft::Writer<int> w) -> Process {
    co_await weft::sleep(1ms);
    co_await w.write(4);
  };
  std::vector<int> got;
  weft::run(collect<weft::Shared>(c.reader(), got), late(c.writer()));
  weft::Channel<int> d;
  weft::run(virtually, weft::par(collect<weft::Shared>(d.reader(), got), late(d.writer())));
  CHECK(got == std::vector<int>{4, 4});
}

TEST_CASE(
    "rule 10.2: a ring of many, and as many who wait for it: the report is cut, and takes no more "
    "than its time") {
  constexpr int n = 50'000;
  std::vector<weft::Channel<int, weft::Local>> c;
  for (int i = 0; i <= n; ++i) c.emplace_back(weft::named("c"));
  auto node = [](weft::Reader<int, weft::Local> r, weft::Writer<int, weft::Local> w) -> Process {
    for (;;) co_await w.write(co_await r.read());
  };
  auto missing = [](weft::Barrier b) -> Process { co_await b.sync(); };
  std::vector<Process> all;
  for (int i = 0; i < n; ++i)
    all.push_back(node(c[i].reader(), c[(i + 1) % n].writer()).named("ring"));
  weft::Barrier b(n + 1);
  for (int i = 0; i < n; ++i) all.push_back(missing(b).named("waits"));
  const auto d = deadlock_of([&] { weft::run(weft::par(std::move(all))); });
  CHECK(d.knot.size() == n);
  CHECK(d.knot[0] == "main/ring[0]");
  CHECK(has(d.what(), "100000 processes are blocked"));
  CHECK(has(d.what(), "… and 99960 more\nknot:"));
  CHECK(has(d.what(), "… and 49960 more"));
  CHECK(std::string(d.what()).size() < 10'000);
}

TEST_CASE("rule 10.2: of two knots the smaller; those who wait for both are in none") {
  std::vector<weft::Channel<int>> c(7);
  auto node = [](weft::Reader<int> r, weft::Writer<int>) -> Process { co_await r.read(); };
  auto either = [](weft::Reader<int> x, weft::Reader<int> y) -> Process {
    co_await weft::select(x, y);
  };
  const auto d = deadlock_of([&] {
    weft::run(node(c[0].reader(), c[1].writer()).named("three"),
              node(c[1].reader(), c[2].writer()).named("three"),
              node(c[2].reader(), c[0].writer()).named("three"),
              node(c[3].reader(), c[4].writer()).named("two"),
              node(c[4].reader(), c[3].writer()).named("two"),
              either(c[0].reader(), c[3].reader()).named("both"));
  });
  CHECK(d.knot == Paths{"main/two[0]", "main/two[1]"});
  CHECK(has(d.what(), "main/two[0] waits for main/two[1]"));
}

TEST_CASE("rule 10.1: who is held by an extended read that nobody ends is told of on stderr") {
  // A thread reads stderr, and ends the extended read when the report has arrived.
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(STDERR_FILENO);
  REQUIRE(before >= 0);
  std::optional<weft::Extended<int>> kept;
  std::string told;
  std::thread frees([&] {
    char piece[256];
    while (told.find("waits for that\n") == std::string::npos) {
      const auto n = read(ends[0], piece, sizeof piece);
      if (n <= 0) break;
      told.append(piece, static_cast<std::size_t>(n));
    }
    kept.reset();
  });
  auto takes = [](weft::Reader<int> r, std::optional<weft::Extended<int>>& into) -> Process {
    auto x = co_await r.extended();
    into.emplace(std::move(x));
  };
  auto writes = [](weft::Writer<int> w) -> Process { co_await w.write(1); };
  weft::Channel<int> c{weft::named("c")};
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  std::string report;
  try {
    weft::run(takes(c.reader(), kept), writes(c.writer()).named("writes"));
  } catch (const weft::Deadlock& d) {
    report = d.what();
  }
  dup2(before, STDERR_FILENO);  // closes the end of the pipe
  frees.join();
  close(ends[0]);
  close(before);
  CHECK(report.find("main/writes: write 'c'") != std::string::npos);
  CHECK(told.find(report) != std::string::npos);
  CHECK(told.find("extended read whose block nobody ends") != std::string::npos);
}
