// Tests rule 8: barriers and time.
#include <weft/observe.hpp>
#include <weft/stopping.hpp>

#include "hosted.hpp"

using namespace test;

TEST_CASE("rule 8.1: a barrier lets all go on when all have arrived, phase by phase") {
  weft::Barrier b(3);
  std::vector<int> order;
  auto p = [](weft::Barrier x, int delay, std::vector<int>& o) -> Process {
    for (int phase = 0; phase < 4; ++phase) {
      for (int i = 0; i < delay; ++i) co_await weft::yield();
      co_await x.sync();
      o.push_back(phase);
    }
  };
  weft::run(p(b, 0, order), p(b, 3, order), p(b, 7, order));
  CHECK(order == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
  CHECK(b.phases() == 4);
}

TEST_CASE("rule 8.2: enrol and resign; resigning may complete the phase") {
  weft::Barrier b(2);
  int synced = 0;
  auto p = [](weft::Barrier x, int& n) -> Process {
    co_await x.sync();
    ++n;
  };
  auto q = [](weft::Barrier x, int& n) -> Process {
    x.enrol();
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    CHECK(n == 0);
    x.resign();
  };
  weft::run(q(b, synced), p(b, synced), p(b, synced));
  CHECK(synced == 2);
  weft::Barrier none(0);
  CHECK_THROWS_WITH_AS(none.resign(), doctest::Contains("nobody is enrolled"), weft::BadUse);
  CHECK_THROWS_WITH_AS(weft::run(p(none, synced)), doctest::Contains("nobody is enrolled"),
                       weft::BadUse);
}

TEST_CASE("rules 8.2, 8.4: a barrier at which nobody is enrolled is no guard") {
  auto p = []() -> Process {
    weft::Barrier none(0);
    CHECK_THROWS_WITH_AS(co_await weft::select(none, weft::skip()),
                         doctest::Contains("nobody is enrolled"), weft::BadUse);
  };
  weft::run(p());
}

TEST_CASE("rule 8.4: as a guard a barrier is ready when all others wait, by sync or by select") {
  weft::Barrier b(3);
  weft::Channel<int> c;
  auto chooser = [](weft::Barrier x, weft::Reader<int> r) -> Process {
    CHOSEN(weft::select(weft::meet(x), weft::skip()), 1);
    CHOSEN(weft::select(r, x), 1);
  };
  auto sync = [](weft::Barrier x) -> Process {
    for (int i = 0; i < 4; ++i) co_await weft::yield();
    co_await x.sync();
  };
  auto keep = c.writer();
  auto r = c.reader();
  weft::run(chooser(b, r), sync(b), chooser(b, r));
  CHECK(b.phases() == 1);
}

TEST_CASE("rule 8.4: a party whose select commits elsewhere does not count") {
  weft::Barrier b(2);
  weft::Channel<int> c;
  std::vector<int> chosen;
  auto chooser = [](weft::Barrier x, weft::Reader<int> r, std::vector<int>& l) -> Process {
    for (int i = 0; i < 2; ++i) {
      auto k = co_await weft::select(r, x);
      l.push_back(k.index);
    }
  };
  auto other = [](weft::Barrier x, weft::Writer<int> w) -> Process {
    co_await w.write(1);
    co_await x.sync();
  };
  weft::run(chooser(b, c.reader(), chosen), other(b, c.writer()));
  CHECK(chosen == std::vector<int>{0, 1});
}

TEST_CASE(
    "rules 8.5, 8.6: in virtual time a sleep takes exactly its span; equal deadlines fire in the "
    "order in which they were set") {
  std::vector<int> order;
  auto p = [](int i, weft::Span s, std::vector<int>& o) -> Process {
    const auto before = weft::now();
    co_await weft::sleep(s);
    CHECK(weft::now() == before + s.count());
    o.push_back(i);
  };
  auto q = [](int i, std::vector<int>& o) -> Process {
    co_await weft::sleep(1s);
    co_await weft::sleep(2s);  // due with the other sleeps at 3 s, but set later
    o.push_back(i);
  };
  weft::run(virtually, weft::par(q(9, order), p(0, 3s, order), p(1, 3s, order), p(2, 2s, order),
                                 p(3, 3s, order)));
  CHECK(order == std::vector<int>{2, 0, 1, 3, 9});
}

TEST_CASE("rules 8.5, 7.7: who waits by sleeps of no time hears of others, and of other threads") {
  weft::Channel<int> c;
  bool told = false, read = false;
  auto waits = [](bool& told, bool& read) -> Process {
    while (!told || !read) co_await weft::sleep(told ? 0ns : -1ns);
  };
  auto tells = [](bool& told) -> Process {
    told = true;
    co_return;
  };
  auto reads = [](weft::Reader<int> r, bool& read) -> Process {
    CHECK(co_await r.read() == 7);
    read = true;
  };
  weft::run(waits(told, read), reads(c.reader(), read), tells(told),
            weft::thread([w = c.writer()] { w(7); }));
  CHECK(read);
}

TEST_CASE("rule 8.5: on the steady clock nothing is early") {
  auto p = []() -> Process {
    for (int i = 0; i < 5; ++i) {
      const auto before = weft::now();
      co_await weft::sleep(2ms);
      CHECK(weft::now() >= before + 2'000'000);
      const auto then = weft::now();
      CHOSEN(weft::select(weft::after(1ms)), 0);
      CHECK(weft::now() >= then + 1'000'000);
    }
  };
  auto t = weft::thread([] {
    const auto before = weft::now();
    weft::sleep(3ms)();
    CHECK(weft::now() >= before + 3'000'000);
    auto r = weft::select(weft::after(1ms), weft::at(before))();
    CHECK(r.index == 1);
  });
  weft::run(p(), p(), std::move(t));
}

TEST_CASE("rule 8.5: a timer ticks without drift, and counts the ticks that were missed") {
  auto p = []() -> Process {
    weft::Timer t(10ms);
    const auto start = weft::now();
    for (int k = 1; k <= 3; ++k) {
      co_await t.tick();
      CHECK(t.ticked() == 1);
      CHECK(weft::now() == start + k * 10'000'000);
      co_await weft::sleep(3ms);
    }
    co_await weft::sleep(34ms);
    CHECK(t.ticked() == 3);
    CHECK(t.ticked() == 0);
    CHECK(t.next() == start + 70'000'000);
    CHOSEN(weft::select(weft::at(t.next())), 0);
    CHECK(weft::now() == start + 70'000'000);
  };
  weft::run(virtually, p());
  CHECK_THROWS_AS(weft::Timer(0s), weft::BadUse);
}

TEST_CASE("rule 8.6: virtual time stands still while a process can run") {
  auto busy = [](std::int64_t& seen) -> Process {
    for (int i = 0; i < 1000; ++i) co_await weft::yield();
    seen = weft::now();
  };
  auto sleeper = []() -> Process { co_await weft::sleep(1ns); };
  std::int64_t seen = -1;
  weft::run(virtually, weft::par(busy(seen), sleeper()));
  CHECK(seen == 0);
}

TEST_CASE("rule 8.6: an hour passes at once, also with threads") {
  std::int64_t t = 0;
  auto thread = weft::thread([&] {
    weft::sleep(1h)();
    t = weft::now();
  });
  auto p = []() -> Process { co_await weft::sleep(30min); };
  weft::run(virtually, weft::par(std::move(thread), p()));
  CHECK(t == 3'600'000'000'000);
}

TEST_CASE("rule 7.7: a loop of yields hears of timers and of threads") {
  auto p = [](bool& done) -> Process {
    while (!done) co_await weft::yield();
  };
  auto q = [](bool& done) -> Process {
    co_await weft::sleep(1ms);
    done = true;
  };
  bool done = false;
  weft::run(p(done), q(done));
  weft::Channel<int> c;
  bool got = false;
  auto r = [](weft::Reader<int> in, bool& g) -> Process {
    co_await in.read();
    g = true;
  };
  weft::run(p(got), r(c.reader(), got), weft::thread([w = c.writer()] { w(1); }));
  CHECK(got);
}

namespace {
// Checks the exception of `run` on either clock when a process waits for a time that is beyond the
// end of the clock.
template <class Make>
void never_comes(Make&& make) {
  for (const weft::RunOptions& o : {weft::RunOptions{}, virtually}) {
    INFO("clock " << static_cast<int>(o.clock));
    CHECK_THROWS_AS(weft::run(o, make()), weft::Deadlock);
  }
}
constexpr weft::Span never = weft::Span::max();
}  // namespace

TEST_CASE(
    "rules 8.5, 10.1: a deadline at or beyond the end of the clock never comes, and is nothing "
    "outside") {
  never_comes([] { return []() -> Process { co_await weft::sleep(never); }(); });
  never_comes([] {
    return
        []() -> Process { co_await weft::sleep(never - 1ns), co_await weft::sleep(never - 1ns); }();
  });
  never_comes(
      [] { return []() -> Process { co_await weft::sleep_until(weft::prim::forever); }(); });
  never_comes([] { return []() -> Process { co_await weft::select(weft::after(never)); }(); });
  never_comes([] { return []() -> Process { co_await weft::Timer(never).tick(); }(); });
  never_comes([] { return weft::thread([] { weft::sleep(never)(); }); });
  never_comes([] {
    return weft::thread([] { weft::select(weft::after(never), weft::at(weft::prim::forever))(); });
  });
  const weft::Channel<int> c;
  const auto keep = c.writer();
  const auto also = c.reader();
  auto reads = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  never_comes([&] { return weft::timeout(never, reads(c.reader())); });
  never_comes([&] {
    return [](weft::Reader<int> r) -> Process {
      const auto limit = weft::Timeout::until(weft::prim::forever);
      co_await weft::select(r, weft::after(never));
    }(c.reader());
  });
}

TEST_CASE("rules 8.5, 8.6: beside a deadline that never comes the others are as they were") {
  weft::Channel<int> c;
  auto q = [](weft::Writer<int> w) -> Process { co_await w.write(1); };
  auto r = [](weft::Reader<int> in) -> Process {
    CHOSEN(weft::select(in, weft::after(never)), 0);
    CHOSEN(weft::select(weft::after(never), weft::after(1h)), 1);
    CHECK(weft::now() == 3'600'000'000'000);
    weft::Timer t(never);
    CHECK(t.ticked() == 0);
    CHECK(t.next() == weft::prim::forever);
  };
  weft::run(virtually, weft::par(r(c.reader()), q(c.writer())));
}

TEST_CASE("rules 8.5, 10.5: who sleeps for ever is stuck") {
  std::string found;
  auto sleeps = []() -> Process { co_await weft::sleep(never); };
  auto looks = [](std::string& text) -> Process {
    co_await weft::yield();
    text = weft::deadlocks().text();
    throw std::runtime_error("that is all");
  };
  CHECK_THROWS_WITH(weft::run(sleeps().named("sleeps"), looks(found)), "that is all");
  CHECK(found.find("1 process is stuck") == 0);
  CHECK(found.find("main/sleeps: sleep at hosted_time.cpp") != std::string::npos);
}
