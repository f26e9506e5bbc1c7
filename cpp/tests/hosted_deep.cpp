// Tests depth (rules 3.4, 4.3, 6.2, 7.1, 7.2): long chains of processes, each of which is started
// or woken by the process before it. If coroutines were resumed from within one another, the chain
// would need stack for all of them: g++ at -O0 makes no tail calls, and the tests must not need
// tail calls.
#include "hosted.hpp"

namespace {

using namespace test;
using weft::Local;
using weft::Shared;

constexpr int kDeep = 50'000;

ProcessOf<int> nest(int depth) {
  if (depth == 0) co_return 0;
  const int below = co_await nest(depth - 1);
  co_return below + 1;
}
Process nest_par(int depth, int& ended) {
  if (depth > 0) co_await weft::par(nest_par(depth - 1, ended), nest_par(0, ended));
  ++ended;
}
Process nest_and_fail(int depth) {
  if (depth == 0) throw std::runtime_error("at the bottom");
  co_await nest_and_fail(depth - 1);
}
Process nest_and_wait(int depth, weft::Reader<int> in, int& ended) {
  struct Count {
    int& n;
    ~Count() { ++n; }
  } count{ended};
  if (depth == 0)
    co_await in.read();
  else
    co_await nest_and_wait(depth - 1, in, ended);
}

template <class P>
Process pass_on(weft::Reader<int, P> in, weft::Writer<int, P> out) {
  while (auto v = co_await in.next()) co_await out.write(*v + 1);
}
template <class P>
Process for_ever(weft::Reader<int, P> in, weft::Writer<int, P> out) {
  for (;;) {
    const int v = co_await in.read();
    co_await out.write(v);
  }
}
template <class P>
Process poison_after(weft::Writer<int, P> w, int v) {
  co_await w.write(v);
  w.poison(3);
}

// Makes stages from one channel to another, and returns the last reader.
template <class P, class Make>
weft::Reader<int, P> chain(std::vector<Process>& all, weft::Reader<int, P> in, Make make) {
  for (int i = 0; i < kDeep; ++i) {
    weft::Channel<int, P> c;
    all.push_back(make(std::move(in), c.writer()));
    in = c.reader();
  }
  return in;
}

}  // namespace

TEST_CASE("rule 7.1: processes nest as deep as memory allows") {
  CHECK(weft::run(nest(kDeep)) == kDeep);
}

TEST_CASE("rule 7.1: parallels within parallels") {
  int ended = 0;
  weft::run(nest_par(kDeep, ended));
  CHECK(ended == 2 * kDeep + 1);
}

TEST_CASE("rule 7.2: a failure rises through all levels") {
  CHECK(thrown([] { weft::run(nest_and_fail(kDeep)); }) == "at the bottom");
}

TEST_CASE("rules 6.2, 7.2: a cancellation reaches the bottom") {
  weft::Channel<int> never;
  const auto keep = never.writer();
  int ended = 0;
  const auto fail = []() -> Process {
    co_await weft::sleep(1s);  // By then all processes are at the bottom.
    throw std::runtime_error("beside it");
  };
  CHECK(thrown([&] {
          weft::run(virtually, weft::par(nest_and_wait(2 * kDeep, never.reader(), ended), fail()));
        }) == "beside it");
  CHECK(ended == 2 * kDeep + 1);
}

TEST_CASE(
    "rules 7.8, 10.2: the report of a deep deadlock names the blocked, the outer part of a deep "
    "path left out") {
  weft::Channel<int> c{weft::named("never")};
  const auto keep = c.writer();
  int ended = 0;
  const std::string report = thrown([&] { weft::run(nest_and_wait(1'000, c.reader(), ended)); });
  CHECK(has(report, "deadlock: "));
  CHECK(has(report, "\n  …/nest_and_wait/"));
  CHECK(has(report, "/nest_and_wait: read 'never' at hosted_deep.cpp:"));
  CHECK(ended == 1'001);
}

TEST_CASE_TEMPLATE("rules 3.1, 3.4: values, and then the retirement, run down a long chain", P,
                   Local, Shared) {
  std::vector<Process> all;
  weft::Channel<int, P> first;
  const auto start = [](weft::Writer<int, P> w) -> Process { co_await w.write(0); };
  const auto finish = [](weft::Reader<int, P> r, std::vector<int>& into) -> Process {
    while (auto v = co_await r.next()) into.push_back(*v);
  };
  std::vector<int> got;
  auto last = chain<P>(all, first.reader(), pass_on<P>);
  all.push_back(start(first.writer()));
  all.push_back(finish(std::move(last), got));
  weft::run(weft::par(std::move(all)));
  CHECK(got == std::vector<int>{kDeep});
}

TEST_CASE_TEMPLATE("rule 4.3: poison spreads down a long chain", P, Local, Shared) {
  std::vector<Process> all;
  weft::Channel<int, P> first;
  auto last = chain<P>(all, first.reader(), for_ever<P>);
  int strength = 0;
  const auto finish = [](weft::Reader<int, P> r, int& s) -> Process {
    try {
      for (;;) co_await r.read();
    } catch (const weft::Poisoned& e) {
      s = e.strength;
    }
  };
  all.push_back(poison_after<P>(first.writer(), 7));
  all.push_back(finish(std::move(last), strength));
  weft::run(weft::par(std::move(all)));
  CHECK(strength == 3);
}
