// Tests rule 11: bad use raises a clear error at once, which names process, operation and channel,
// and changes no state.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "hosted.hpp"

using namespace test;

TEST_CASE_TEMPLATE("rule 11.2: an operation on a closed end", P, POLICIES) {
  weft::Channel<int, P> c;
  auto p = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    auto kept = std::move(r);
    CHECK_THROWS_WITH_AS(co_await r.read(),
                         doctest::Contains("read on a reader end that is closed"), weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await r.next(), doctest::Contains("main/"), weft::BadUse);
    CHECK_THROWS_AS(co_await r.extended(), weft::BadUse);
    CHECK_THROWS_AS(co_await weft::select(r, weft::skip()), weft::BadUse);
    CHECK_THROWS_AS(r.poison(), weft::BadUse);
    weft::Writer<int, P> never;
    CHECK_THROWS_WITH_AS(co_await never.write(1),
                         doctest::Contains("write on a writer end that is closed"), weft::BadUse);
    CHECK_THROWS_AS(co_await weft::select(weft::out(never, 1), weft::skip()), weft::BadUse);
    CHECK_THROWS_AS(never.poison(), weft::BadUse);
    // The bad use has changed no state.
    CHOSEN(weft::select(kept, weft::skip()), 1);
    w.retire();
    CHECK_THROWS_AS(co_await kept.read(), weft::Retired);
  };
  weft::run(p(c.reader(), c.writer()));
}

TEST_CASE("rule 11.2: capacity, overflow, strength out of range") {
  CHECK_THROWS_WITH_AS(weft::Channel<int>(weft::buffer(0, weft::Overflow::drop_oldest)),
                       doctest::Contains("at least 1"), weft::BadUse);
  CHECK_THROWS_AS(weft::Channel<int>(weft::buffer(0, weft::Overflow::drop_newest)), weft::BadUse);
  weft::Channel<int> c;
  CHECK_THROWS_WITH_AS(c.poison(0), doctest::Contains("strength"), weft::BadUse);
  CHECK_THROWS_AS(c.reader().poison(0), weft::BadUse);
}

TEST_CASE("rule 11.2: a blocking operation in a coroutine") {
  weft::Channel<int> c;
  auto p = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    CHECK_THROWS_WITH_AS(r(), doctest::Contains("use co_await"), weft::BadUse);
    CHECK_THROWS_WITH_AS(w(1), doctest::Contains("use co_await"), weft::BadUse);
    CHECK_THROWS_WITH_AS(weft::select(r)(), doctest::Contains("use co_await"), weft::BadUse);
    CHECK_THROWS_WITH_AS(weft::sleep(1s)(), doctest::Contains("use co_await"), weft::BadUse);
    CHECK_THROWS_WITH_AS(weft::Barrier(2).sync()(), doctest::Contains("use co_await"),
                         weft::BadUse);
    CHECK_THROWS_WITH_AS(r.extended()(), doctest::Contains("use co_await"), weft::BadUse);
    co_return;
  };
  weft::run(p(c.reader(), c.writer()));
}

TEST_CASE("rule 11.1: an end that fails names the process, the operation and the channel") {
  weft::Channel<int> c{weft::named("orders")};
  auto in = c.reader();
  c.writer().retire();
  auto p = [](weft::Reader<int> r) -> Process {
    CHECK_THROWS_WITH_AS(co_await r.read(), "main/clerk: read on channel 'orders': it has retired",
                         weft::Retired);
    r.poison(2);
    CHECK_THROWS_WITH_AS(co_await weft::select(r),
                         "main/clerk: select on channel 'orders': it was poisoned", weft::Poisoned);
  };
  weft::run(p(std::move(in)).named("clerk"));
}

TEST_CASE("rule 11.2: time and barriers outside any process") {
  CHECK_THROWS_WITH_AS(weft::spawn([]() -> Process { co_return; }()),
                       doctest::Contains("outside any run"), weft::BadUse);
}

#if WEFT_CHECK_LOCAL
TEST_CASE("rule 11.2: a local channel used from a second scheduler, while somebody waits at it") {
  using End = weft::Writer<int, weft::Local>;
  weft::Channel<int, weft::Local> c;
  weft::Channel<int> go;
  weft::Channel<End> back;
  const auto kept = c.writer();
  int got = 0;
  auto waits = [](weft::Reader<int, weft::Local> r, int& n) -> Process { n = co_await r.read(); };
  auto at_home = [](weft::Writer<int> w, weft::Reader<End> b) -> Process {
    co_await w.write(1);  // By now the process `waits` has parked.
    End end = co_await b.read();
    co_await end.write(7);  // The bad use has changed no state.
  };
  auto elsewhere = [](weft::Reader<int> r, weft::Writer<End> b, End w) -> Process {
    co_await r.read();
    CHECK_THROWS_WITH_AS(co_await w.write(1),
                         doctest::Contains("write on local channel hosted_baduse.cpp:"),
                         weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await weft::select(weft::out(w, 2), weft::skip()),
                         doctest::Contains("one scheduler only"), weft::BadUse);
    CHECK_THROWS_AS(w.poison(), weft::BadUse);
    co_await b.write(std::move(w));
  };
  weft::Core second;
  weft::run(waits(c.reader(), got), at_home(go.writer(), back.reader()),
            elsewhere(go.reader(), back.writer(), c.writer()).on(second));
  CHECK(got == 7);
}

TEST_CASE("rule 11.2: what cannot raise (an end of a local channel that goes) stops the program") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) close(fd);
    signal(SIGABRT, SIG_DFL);  // Replaces the test framework's handler.
    weft::core::RunQueue here, home;
    weft::core::WakerOps ops{nullptr, nullptr, &home, 0};
    weft::core::Waker w;
    w.ops = &ops;
    weft::core::current_run_queue = &here;
    weft::Local::wake(&w);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}
#endif
