// Tests rule 7.12: timeouts as scopes and around a process, stop tokens, signals.
#include <csignal>
#include <stop_token>

#include "hosted.hpp"

using namespace test;

TEST_CASE_TEMPLATE("rule 7.12: what waits within a Timeout throws TimedOut, and nothing is lost", P,
                   POLICIES) {
  weft::Channel<std::string, P> c, d;
  auto p = [](weft::Reader<std::string, P> r, weft::Writer<std::string, P> w) -> Process {
    {
      weft::Timeout limit(1s);
      CHECK_FALSE(limit.expired());
      CHECK_THROWS_AS(co_await r.read(), weft::TimedOut);
      CHECK(limit.expired());
      co_await weft::sleep(1s);  // A limit that expires cancels only once.
    }
    CHECK(weft::now() == 2'000'000'000);
    try {
      weft::Timeout limit(1s);
      co_await w.write("mine");
      FAIL("it went on");
    } catch (const weft::TimedOut& e) {
      REQUIRE(e.value<std::string>());
      CHECK(*e.value<std::string>() == "mine");  // Rule 6.2: the value is still the writer's.
    }
    {
      weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await weft::select(r, weft::after(5s)), weft::TimedOut);
    }
    {
      weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await weft::par(naps(9s), later(9s, 1)), weft::TimedOut);
    }
    CHECK(weft::now() == 5'000'000'000);
  };
  auto keep_w = c.writer();
  auto keep_r = d.reader();
  weft::run(virtually, p(c.reader(), d.writer()));
}

TEST_CASE("rule 7.12: nested; the outer one's TimedOut is told from the inner one's") {
  auto p = []() -> Process {
    weft::Timeout outer(3s);
    {
      weft::Timeout inner(1s);
      try {
        co_await weft::sleep(9s);
        FAIL("it went on");
      } catch (const weft::TimedOut& e) {
        CHECK(e.of(inner));
        CHECK_FALSE(e.of(outer));
      }
    }
    weft::Timeout inner(9s);
    try {
      co_await weft::sleep(9s);
      FAIL("it went on");
    } catch (const weft::TimedOut& e) {
      CHECK(e.of(outer));
      CHECK_FALSE(inner.expired());
    }
    CHECK(weft::now() == 3'000'000'000);
  };
  weft::run(virtually, p());
}

TEST_CASE(
    "rule 7.12: s <= 0 acts at the first operation, and is taken back if there is none; max() "
    "never comes") {
  auto p = []() -> Process {
    { const weft::Timeout limit(0s); }
    co_await weft::sleep(1s);
    for (const weft::Span s : {weft::Span(0), weft::Span(-1s), weft::Span::min()}) {
      weft::Timeout limit(s);
      CHECK_THROWS_AS(co_await weft::sleep(0s), weft::TimedOut);
    }
    {
      const weft::Timeout limit(weft::Span::max());
      co_await weft::sleep(std::chrono::hours(1));
      CHECK_FALSE(limit.expired());
    }
    {
      const weft::Timeout limit = weft::Timeout::until(weft::now() + 1'000'000'000);
      CHECK_THROWS_AS(co_await weft::sleep(2s), weft::TimedOut);
    }
    weft::Timeout moved(0s);
    moved.reschedule(2s);
    co_await weft::sleep(1s);
    moved.reschedule(0s);
    CHECK_THROWS_AS(co_await weft::sleep(1s), weft::TimedOut);
    CHECK_THROWS_WITH_AS(moved.reschedule(1s), doctest::Contains("make another"), weft::BadUse);
  };
  weft::run(virtually, p());
}

TEST_CASE("rule 7.12: a cancellation from outside is Cancelled, also beside an expiry") {
  std::string seen;
  auto p = [](std::string& s) -> Process {
    const weft::Timeout limit(0s);
    weft::Group g;
    g.start([]() -> Process {
      throw std::runtime_error("mine");
      co_return;
    }());
    try {
      {
        for (int i = 0; i < 3; ++i) co_await weft::yield();
      }
    } catch (const weft::TimedOut&) {
      s += "timed out;";
    }
    try {
      co_await weft::sleep(1s);
    } catch (const weft::Cancelled&) {
      s += "cancelled;";
    }
    CHECK_THROWS_WITH(co_await g.wait(), "mine");
  };
  weft::run(virtually, p(seen));
  CHECK(seen == "timed out;cancelled;");
}

TEST_CASE("rule 7.12: a value that had committed is delivered") {
  weft::Channel<int> c;
  auto writes = [](weft::Writer<int> w) -> Process {
    {
      const weft::Timeout limit(1s);
      co_await w.write(7);  // The write is held until 2 s (rule 1.6).
      CHECK(limit.expired());
    }
    co_await weft::sleep(1s);
    CHECK(weft::now() == 3'000'000'000);
  };
  auto reads = [](weft::Reader<int> r) -> Process {
    auto x = co_await r.extended();
    CHECK(*x == 7);
    co_await weft::sleep(2s);
  };
  weft::run(virtually, writes(c.writer()), reads(c.reader()));
}

TEST_CASE("rule 7.12: in a thread, and on two cores") {
  weft::Channel<int> c;
  auto keep = c.writer();
  auto and_this = c.reader();
  weft::run(weft::thread([r = c.reader()] {
    const weft::Timeout limit(1ms);
    CHECK_THROWS_AS(r(), weft::TimedOut);
    CHECK_THROWS_AS(
        [] {
          const weft::Timeout inner(1ms);
          weft::sleep(60s)();
        }(),
        weft::TimedOut);
  }));
  auto p = [](weft::Reader<int> r, int n) -> ProcessOf<int> {
    int late = 0;
    for (int i = 0; i < 20; ++i) {
      const weft::Timeout limit(std::chrono::microseconds(i % 4 * n));
      try {
        co_await r.read();
      } catch (const weft::TimedOut&) {
        ++late;
      }
    }
    co_return late;
  };
  std::vector<ProcessOf<int>> ps;
  for (int n = 0; n < 8; ++n) ps.push_back(p(c.reader(), n));
  for (const auto& r :
       weft::run(weft::RunOptions{weft::Clock::steady, 2}, weft::par(std::move(ps))))
    CHECK(*r == 20);
}

TEST_CASE("rule 7.12: timeout(s, p) gives what p came to, if it was in time") {
  bool cleaned = false;
  auto long_one = [](bool& x) -> Process {
    try {
      co_await weft::sleep(100s);
    } catch (const weft::Cancelled&) {
      x = true;
      throw;
    }
  };
  auto fails = []() -> ProcessOf<int> {
    throw std::runtime_error("mine");
    co_return 1;
  };
  auto p = [](auto wrong, auto slow, bool& x) -> Process {
    CHECK(co_await weft::timeout(2s, later(1s, 7)) == std::optional(7));
    CHECK(co_await weft::timeout(2s, later(3s, 7)) == std::nullopt);
    CHECK(co_await weft::timeout(2s, naps(1s)));
    CHECK_FALSE(co_await weft::timeout(2s, slow(x)));
    CHECK(x);
    CHECK_THROWS_WITH(co_await weft::timeout(2s, wrong()), "mine");
    const auto inner = co_await weft::timeout(9s, weft::timeout(1s, later(3s, 7)));
    REQUIRE(inner.has_value());
    CHECK_FALSE(inner->has_value());
    CHECK(co_await weft::timeout(1s, weft::timeout(9s, later(3s, 7))) == std::nullopt);
  };
  weft::run(virtually, p(fails, long_one, cleaned));
  CHECK(weft::run(virtually, weft::timeout(1s, later(5s, 1))) == std::nullopt);
  CHECK(weft::run(weft::timeout(60s, weft::thread([] { return 3; }))) == std::optional(3));
}

TEST_CASE("rule 7.12: a stop token ends a run") {
  for (const bool before : {true, false}) {
    std::stop_source source;
    const std::stop_token token = source.get_token();
    if (before) source.request_stop();
    int cancelled = 0;
    auto p = [](weft::Reader<int> r, weft::Writer<int>, int& n) -> Process {
      try {
        co_await r.read();
      } catch (const weft::Cancelled&) {
        ++n;
        throw;
      }
    };
    auto asks = [](std::stop_source s) -> Process {
      co_await weft::yield();
      s.request_stop();
    };
    for (const unsigned cores : {1u, 2u}) {
      weft::Channel<int> c;
      weft::run(weft::RunOptions{.cores = cores, .stop = &token},
                weft::par(p(c.reader(), c.writer(), cancelled),
                          p(c.reader(), c.writer(), cancelled), asks(source)));
      source.request_stop();
    }
    CHECK(cancelled <= 4);
    CHECK((before || cancelled >= 2));
  }
  std::stop_source source;  // Another thread makes the request.
  const std::stop_token token = source.get_token();
  std::thread other([&] { source.request_stop(); });
  CHECK_THROWS_AS(weft::run(weft::RunOptions{.stop = &token}, naps(std::chrono::hours(1))),
                  weft::Cancelled);
  other.join();
}

TEST_CASE("rule 7.12: signals are read, selected on, and given back") {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  {
    weft::signals stop{SIGUSR1, SIGUSR2};
    const auto mine = stop.reader();
    CHECK_THROWS_WITH_AS(weft::signals{SIGUSR2}, doctest::Contains("has it already"), weft::BadUse);
    CHECK_THROWS_AS((weft::signals{SIGALRM, SIGALRM}), weft::BadUse);
    CHECK_THROWS_AS(weft::signals{SIGKILL}, weft::BadUse);
    weft::Channel<int> work;
    auto serves = [](weft::Reader<int> w, weft::Reader<int> s) -> ProcessOf<int> {
      for (int n = 0;; ++n) {
        auto [i, v] = co_await weft::select(w, s);
        if (i == 1) {
          CHECK(v == std::optional(int{SIGUSR1}));
          co_return n;
        }
      }
    };
    auto sends = [](weft::Writer<int> w) -> Process {
      co_await w.write(1);
      co_await w.write(2);
      std::raise(SIGUSR1);
    };
    auto [n, nothing] = weft::run(serves(work.reader(), stop.reader()), sends(work.writer()));
    CHECK(*n == 2);
    std::raise(SIGUSR2);
    CHECK(mine() == SIGUSR2);
    auto one = [](weft::signals& s) -> ProcessOf<int> {
      std::raise(SIGUSR1);
      co_return co_await s.read();
    };
    CHECK(weft::run(one(stop)) == SIGUSR1);
  }
  CHECK((std::signal(SIGUSR1, before) == SIG_IGN));
  weft::signals again{SIGUSR2};  // Another object can use this signal again.
}
