// Tests rule 7: composition.
#include "hosted.hpp"

using namespace test;

namespace {

ProcessOf<int> value(int v, int yields = 0) {
  for (int i = 0; i < yields; ++i) co_await weft::yield();
  co_return v;
}
Process fail(const char* text, int yields = 0) {
  for (int i = 0; i < yields; ++i) co_await weft::yield();
  throw std::runtime_error(text);
}
Process fail_when_cancelled(const char* text) {
  try {
    co_await weft::sleep(1h);
  } catch (const weft::Cancelled&) {
  }
  throw std::runtime_error(text);
}
ProcessOf<std::unique_ptr<int>> owner(int v) { co_return std::make_unique<int>(v); }

// Process objects: their members are the ends and values that the process needs, and their
// operator() returns the process. A block takes the object itself and keeps it until the object's
// process has ended. If the program calls operator() itself, the object must keep itself alive:
// run() moves the object into the process.
struct Producer {
  weft::Writer<int> out;
  int from, count;
  Process operator()() {
    for (int i = 0; i < count; ++i) co_await out.write(from + i);
  }
};
class Scaler {
 public:
  Scaler(weft::Reader<int> in, weft::Writer<int> out, int by)
      : in_(std::move(in)), out_(std::move(out)), by_(by) {}
  Process operator()() {
    while (auto v = co_await in_.next()) {
      if (*v < 0) throw std::runtime_error("scaler " + std::to_string(by_) + ": below nought");
      co_await out_.write(by_ * *v);
      ++done_;
    }
  }
  int done() const { return done_; }

 private:
  weft::Reader<int> in_;
  weft::Writer<int> out_;
  int by_, done_ = 0;
};
struct Adder {
  weft::Reader<int> in;
  int sum = 0;
  ProcessOf<int> operator()() {
    while (auto v = co_await in.next()) sum += *v;
    co_return sum;
  }
};
class ByHand {  // an object that moves into its own process
 public:
  ByHand(weft::Reader<int> in, weft::Writer<int> out) : scaler_(std::move(in), std::move(out), 2) {}
  Process operator()() && { return work(std::move(*this)); }

 private:
  static Process work(ByHand self) { co_await self.scaler_(); }
  Scaler scaler_;
};
static_assert(weft::Startable<Process> && !weft::Startable<Producer>);

}  // namespace

TEST_CASE("rule 7.1: par returns the results in order, whatever the order of ending") {
  auto [a, b, c] = weft::run(value(1, 5), value(2), value(3, 2));
  CHECK(a == 1);
  CHECK(b == 2);
  CHECK(c == 3);
  auto [v, n, u] = weft::run(weft::par(value(4), nothing(), owner(5)));
  CHECK(v == 4);
  CHECK(std::is_same_v<decltype(n), std::monostate>);
  CHECK(**u == 5);
  CHECK(weft::run(value(6)) == 6);
  static_assert(std::is_void_v<decltype(weft::run(nothing(), nothing()))>);
}

TEST_CASE("rule 7.1: par of a vector; of none") {
  std::vector<ProcessOf<int>> ps;
  for (int i = 0; i < 10; ++i) ps.push_back(value(i, 10 - i));
  auto r = weft::run(weft::par(std::move(ps)));
  REQUIRE(r.size() == 10);
  for (int i = 0; i < 10; ++i) CHECK(r[static_cast<std::size_t>(i)] == i);
  CHECK(weft::run(weft::par(std::vector<ProcessOf<int>>())).empty());
  weft::run(weft::par(std::vector<Process>()));
  auto inside = []() -> Process {
    co_await weft::par(std::vector<Process>());
    CHECK((co_await weft::par(std::vector<ProcessOf<int>>())).empty());
  };
  weft::run(inside());
}

TEST_CASE("rule 7.1: processes are started in order") {
  std::vector<int> order;
  auto p = [](int i, std::vector<int>& o) -> Process {
    o.push_back(i);
    co_return;
  };
  weft::run(p(0, order), p(1, order), p(2, order));
  CHECK(order == std::vector<int>{0, 1, 2});
}

TEST_CASE("rule 7.2: the first failure cancels the others; when all have ended it is raised") {
  bool cleaned = false;
  auto other = [](bool& c) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
    }
    co_await weft::yield();  // The clean-up takes some time.
    c = true;
  };
  CHECK_THROWS_WITH_AS(weft::run(virtually, weft::par(other(cleaned), fail("broken", 1))), "broken",
                       std::runtime_error);
  CHECK(cleaned);
}

TEST_CASE("rule 7.2: several failures come as one, in the order of the processes, not of failing") {
  weft::Channel<int> c;
  // The middle process holds an end, so it received its number when it was made, before the other
  // processes were started.
  auto with_end = [](weft::Reader<int>) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
    }
    throw std::runtime_error("second");
  };
  try {
    weft::run(virtually,
              weft::par(fail_when_cancelled("first"), with_end(c.reader()), fail("third")));
    CHECK(false);
  } catch (const weft::Failures& f) {
    REQUIRE(f.all.size() == 3);
    CHECK(std::string(f.what()) == "3 processes failed; first; second; third");
  }
}

TEST_CASE("rule 7.2: a failure inside a nested parallel goes outwards") {
  auto outer = [](bool& caught) -> Process {
    try {
      co_await weft::par(fail("inner", 2), nothing());
    } catch (const std::runtime_error& e) {
      caught = std::string(e.what()) == "inner";
    }
  };
  bool caught = false;
  weft::run(outer(caught), nothing());
  CHECK(caught);
}

TEST_CASE("rule 7.2: a process that is no exception's child but throws any type") {
  auto p = []() -> Process {
    co_await weft::yield();
    throw 7;
  };
  CHECK_THROWS_AS(weft::run(p()), int);
  try {
    weft::run(virtually, weft::par(p(), fail_when_cancelled("a")));
  } catch (const weft::Failures& f) {
    CHECK(has(f.what(), "an exception of another type"));
  }
}

TEST_CASE("rule 7.2: one process that throws in a network of ten thousand") {
  auto stage = [](weft::Reader<int> in, weft::Writer<int> out, int i) -> Process {
    while (auto v = co_await in.next()) {
      if (i == 5000 && *v == 3) throw std::runtime_error("stage 5000 broke at 3");
      co_await out.write(*v);
    }
  };
  std::vector<Process> ps;
  weft::Channel<int> first;
  auto in = first.reader();
  for (int i = 0; i < 10'000; ++i) {
    weft::Channel<int> next;
    ps.push_back(stage(std::move(in), next.writer(), i));
    in = next.reader();
  }
  std::vector<int> got;
  ps.push_back(collect<weft::Shared>(std::move(in), got));
  ps.push_back(send_all<weft::Shared>(first.writer(), {1, 2, 3, 4, 5}));
  CHECK_THROWS_WITH_AS(weft::run(weft::par(std::move(ps))), "stage 5000 broke at 3",
                       std::runtime_error);
  CHECK(got.size() <= 2);
}

TEST_CASE("rule 7.3: seq runs one after another and stops at the first failure") {
  std::vector<int> order;
  auto p = [](int i, std::vector<int>& o) -> Process {
    co_await weft::yield();
    o.push_back(i);
  };
  weft::run(weft::seq(p(1, order), p(2, order), p(3, order)));
  CHECK(order == std::vector<int>{1, 2, 3});
  CHECK_THROWS_WITH(weft::run(weft::seq(p(4, order), fail("stop"), p(5, order))), "stop");
  CHECK(order == std::vector<int>{1, 2, 3, 4});
  auto [a, n, b] = weft::run(weft::seq(value(1, 3), nothing(), value(2)));
  CHECK(a == 1);
  CHECK(b == 2);
  CHECK(std::is_same_v<decltype(n), std::monostate>);
}

TEST_CASE("rule 7.4: spawn outlives its group; the run waits for it") {
  std::vector<std::string> log;
  auto spawned = [](std::vector<std::string>& l) -> Process {
    co_await weft::sleep(1s);
    l.push_back("spawned");
  };
  auto p = [](std::vector<std::string>& l, auto s) -> Process {
    weft::spawn(s(l));
    l.push_back("group over");
    co_return;
  };
  weft::run(virtually, weft::par(p(log, spawned)));
  CHECK(log == std::vector<std::string>{"group over", "spawned"});
}

TEST_CASE("rule 7.4: a spawned process that fails, fails the run, and the other way round") {
  bool cancelled = false;
  auto other = [](bool& c) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
      c = true;
    }
  };
  auto p = [](auto o, bool& c) -> Process {
    weft::spawn(fail("spawned"));
    co_await o(c);
  };
  CHECK_THROWS_WITH(weft::run(virtually, p(other, cancelled)), "spawned");
  CHECK(cancelled);
  cancelled = false;
  auto q = [](auto o, bool& c) -> Process {
    weft::spawn(o(c));
    co_await weft::yield();
    throw std::runtime_error("main");
  };
  CHECK_THROWS_WITH(weft::run(virtually, q(other, cancelled)), "main");
  CHECK(cancelled);
}

TEST_CASE("rule 7.4: a thread process spawns too") {
  int n = 0;
  auto child = [](int& k) -> Process {
    co_await weft::yield();
    ++k;
  };
  weft::run(weft::thread([&] { weft::spawn(child(n)); }));
  CHECK(n == 1);
}

TEST_CASE("rule 7.5: a group is waited for; left by an exception it is cancelled first") {
  std::vector<std::string> log;
  auto worker = [](std::vector<std::string>& l) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
      l.push_back("cancelled");
    }
  };
  auto p = [](std::vector<std::string>& l, auto w) -> Process {
    try {
      weft::Group g;
      g.start(w(l));
      co_await weft::yield();
      throw std::runtime_error("left");
    } catch (const std::runtime_error&) {
      l.push_back("left");
    }
  };
  auto outer = [](std::vector<std::string>& l, auto q, auto w) -> Process {
    co_await q(l, w);
    l.push_back("group of the owner is over");
  };
  weft::run(virtually, outer(log, p, worker));
  CHECK(log == std::vector<std::string>{"left", "cancelled", "group of the owner is over"});
}

TEST_CASE("rule 7.5: what fails in a group that was left fails its owner's group") {
  auto p = []() -> Process {
    weft::Group g;
    g.start(fail_when_cancelled("late"));
    co_await weft::yield();
    throw weft::Cancelled();
  };
  CHECK_THROWS_WITH(weft::run(virtually, p()), "late");
}

TEST_CASE(
    "rule 7.5: the first failure cancels the block; waiting raises it, else the owner's group "
    "fails with it") {
  auto block = [](weft::Reader<int> never, bool waits) -> Process {
    weft::Group g;
    g.start(fail("member", 2));
    try {
      co_await never.read();
      FAIL("the block goes on");
    } catch (const weft::Cancelled&) {
      if (!waits) throw;
    }
    CHECK_THROWS_WITH(co_await g.wait(), "member");
    // One request raises one Cancelled.
    CHECK_THROWS_WITH(co_await weft::par(fail("next")), "next");
    throw std::runtime_error("waited");
  };
  weft::Channel<int> c;
  const auto writer = c.writer();
  const auto reader = c.reader();
  CHECK_THROWS_WITH(weft::run(virtually, block(reader, true)), "waited");
  CHECK_THROWS_WITH(weft::run(virtually, block(reader, false)), "member");
}

TEST_CASE("rule 7.5: a request that the block has not met is withdrawn where it ends") {
  auto p = [](bool waits) -> Process {
    weft::Group g;
    g.start(weft::thread([] { throw std::runtime_error("member"); }));
    if (!waits) throw weft::Retired("left", -1, true);
    CHECK_THROWS_WITH(co_await g.wait(), "member");
    co_await weft::sleep(1s);
    g.start(fail("of the next block"));
    CHECK_THROWS_AS(co_await weft::sleep(1h), weft::Cancelled);
    CHECK_THROWS_WITH(co_await g.wait(), "of the next block");
    co_await weft::sleep(1s);
  };
  weft::run(virtually, p(true));
  CHECK_THROWS_WITH(weft::run(virtually, p(false)), "member");
}

TEST_CASE("rule 7.5: the block of a thread process is cancelled as well") {
  weft::Channel<int> c;
  const auto writer = c.writer();
  auto block = [r = c.reader()](bool waits) {
    weft::Group g;
    g.start(fail("member", 2));
    CHECK_THROWS_AS(r(), weft::Cancelled);
    if (waits) g.wait()();
  };
  for (const bool waits : {true, false})
    CHECK_THROWS_WITH(weft::run(virtually, weft::thread([&] { block(waits); })), "member");
}

TEST_CASE(
    "rules 7.5, 7.8: the path of a process whose group was left, and then the group that it was "
    "left to") {
  std::string path;
  auto stays = [](std::string& at) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
    }
    for (int i = 0; i < 8; ++i) co_await weft::yield();  // by now the processes above it have ended
    at = thrown([] { weft::Reader<int>().poison(); });
  };
  auto inner = [](Process p) -> Process {
    weft::Group g;
    g.start(std::move(p));
    co_await weft::yield();
    throw weft::Cancelled();
  };
  auto outer = [](Process p) -> Process {
    weft::Group g;
    g.start(std::move(p));
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    throw weft::Cancelled();
  };
  CHECK_THROWS_AS(weft::run(virtually, outer(inner(stays(path).named("stays")))), weft::Cancelled);
  CHECK(has(path, "main/stays: "));
}

TEST_CASE("rules 7.6, 11.2: a process is started once; a par that cannot start changes nothing") {
  bool ran = false;
  auto mark = [](bool& r) -> Process {
    r = true;
    co_return;
  };
  auto p = nothing();
  auto q = std::move(p);
  CHECK_THROWS_WITH_AS(weft::run(mark(ran), std::move(p)), doctest::Contains("started already"),
                       weft::BadUse);
  CHECK_FALSE(ran);
  auto inside = [](Process a, Process b) -> Process {
    CHECK_THROWS_AS(co_await weft::par(std::move(b), std::move(a)), weft::BadUse);
  };
  auto gone = std::move(q);
  weft::run(inside(std::move(q), mark(ran)));
  CHECK_FALSE(ran);
  weft::run(std::move(gone));
}

TEST_CASE("rule 7.7: yield lets every other runnable process run") {
  std::vector<int> order;
  auto p = [](int i, std::vector<int>& o) -> Process {
    for (int k = 0; k < 3; ++k) {
      o.push_back(i);
      co_await weft::yield();
    }
  };
  weft::run(p(0, order), p(1, order), p(2, order));
  CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("rule 7.7: ends are let go before the group is told") {
  weft::Channel<int> c;
  auto r = c.reader();
  auto p = [](weft::Writer<int>) -> Process { co_return; };
  auto q = [](weft::Channel<int> x, auto f) -> Process {
    co_await f(x.writer());
    CHECK(x.core()->writer_ends() == 0);
  };
  weft::run(q(c, p));
}

TEST_CASE("rule 7.8: paths") {
  auto bad = [](weft::Reader<int> r) -> Process {
    r.retire();
    co_await r.read();
  };
  weft::Channel<int> c;
  CHECK(has(thrown([&] { weft::run(bad(c.reader()).named("worker")); }), "main/worker: "));
  weft::Channel<int> d;
  CHECK(has(thrown([&] { weft::run(bad(d.reader()).named("worker"), nothing().named("worker")); }),
            "main/worker[0]: "));
  auto outer = [](Process p) -> Process { co_await std::move(p).named("inner"); };
  weft::Channel<int> e;
  CHECK(
      has(thrown([&] { weft::run(outer(bad(e.reader())).named("outer")); }), "main/outer/inner: "));
}

TEST_CASE(
    "process objects in a block: they live as long as their process, results come out, the network "
    "closes down") {
  weft::Channel<int> a, b, c;
  auto [nothing1, nothing2, nothing3, sum] =
      weft::par{Producer{a, 1, 10}, Scaler(a, b, 3), Scaler(b, c, 2), Adder{c}}();
  CHECK(sum == 6 * 55);
  CHECK(a.core()->reader_ends() + a.core()->writer_ends() + c.core()->reader_ends() +
            c.core()->writer_ends() ==
        0);
}

TEST_CASE("process objects in vectors") {
  weft::Channel<int> a, b;
  std::vector<Producer> producers;
  std::vector<Scaler> scalers;
  for (int i = 0; i < 5; ++i) producers.push_back({a, 10 * i, 10});
  for (int i = 0; i < 3; ++i) scalers.emplace_back(a, b, 2);
  auto [nothing1, nothing2, sum] = weft::par{std::move(producers), std::move(scalers), Adder{b}}();
  CHECK(sum == 2 * 49 * 50 / 2);

  // A vector of processes with results gives a vector of results, in order.
  std::vector<weft::Channel<int>> cs(3);
  std::vector<Adder> adders;
  std::vector<Producer> one_each;
  for (int i = 0; i < 3; ++i) {
    adders.push_back({cs[static_cast<std::size_t>(i)]});
    one_each.push_back({cs[static_cast<std::size_t>(i)], 100 * i, 2});
  }
  auto [sums, nothing4] = weft::par{std::move(adders), std::move(one_each)}();
  REQUIRE(sums->size() == 3);
  for (int i = 0; i < 3; ++i) CHECK((*sums)[static_cast<std::size_t>(i)] == 200 * i + 1);
}

TEST_CASE("process objects in a chain that is made in a loop; their state is their own") {
  weft::Channel<int> first;
  weft::Reader<int> in = first.reader();
  std::vector<Scaler> chain;
  for (int i = 0; i < 8; ++i) {
    weft::Channel<int> next;
    chain.emplace_back(std::move(in), next.writer(), 2);
    in = next.reader();
  }
  auto [nothing1, nothing2, sum] =
      weft::par{Producer{first, 0, 4}, std::move(chain), Adder{std::move(in)}}();
  CHECK(sum == 256 * 6);
}

TEST_CASE("rules 4.3, 7.2: a process object that fails fails the block; poison goes through it") {
  weft::Channel<int> a, b;
  std::vector<Scaler> scalers;
  for (int i = 1; i <= 2; ++i) scalers.emplace_back(a, b, i);
  CHECK_THROWS_WITH_AS((weft::par{Producer{a, -1, 1}, std::move(scalers), Adder{b}}()),
                       doctest::Contains("below nought"), std::runtime_error);
  weft::Channel<int> c, d;
  int strength = 0;
  auto poisons = [](weft::Reader<int> r) -> Process {
    co_await r.read();
    r.poison(3);
  };
  auto feeds = [](weft::Writer<int> w, int* s) -> Process {
    try {
      for (;;) co_await w.write(1);
    } catch (const weft::Poisoned& e) {
      *s = e.strength;
    }
  };
  weft::par{feeds(c, &strength), Scaler(c, d, 1), poisons(d)}();
  CHECK(strength == 3);
}

TEST_CASE(
    "process objects by hand: moved into their process, or kept by who awaits it; in a run, a par, "
    "spawned") {
  weft::Channel<int> a, b, c;
  auto sum_of = [](Adder adder) -> ProcessOf<int> { co_return co_await adder(); };
  auto feed = [](Producer p) -> Process { co_await p(); };
  auto [nothing1, nothing2, nothing3, sum] =
      weft::run(feed({a, 1, 4}), ByHand(a, b)(), ByHand(b, c)(), sum_of({c}));
  CHECK(sum == 40);

  // The process that awaits the objects keeps them, so their counts and ends can be used
  // afterwards.
  auto keeps = [](auto feeds) -> Process {
    weft::Channel<int> x, y;
    Scaler scaler(x, y, 5);
    std::vector<int> got;
    co_await weft::par(feeds({x, 1, 3}), scaler(), collect<weft::Shared>(y.reader(), got, 3));
    CHECK(got == std::vector<int>{5, 10, 15});
    CHECK(scaler.done() == 3);
    CHECK(y.core()->writer_ends() == 1);
  };
  weft::run(keeps(feed));

  // The process that starts these objects, in a group or by spawn, does not keep them.
  std::vector<int> got;
  auto starts = [](std::vector<int>& into) -> Process {
    weft::Channel<int> x, y;
    weft::spawn(ByHand(x, y)());
    weft::Group g;
    g.start(collect<weft::Shared>(y.reader(), into));
    g.start(send_all<weft::Shared>(x.writer(), {1, 2, 3}));
    co_await g.wait();
  };
  weft::run(starts(got));
  CHECK(got == std::vector<int>{2, 4, 6});
}

TEST_CASE("rules 7.1, 7.2: a vector that is awaited is a par of what is in it") {
  const auto add = [](int& n, int more) -> Process {
    n += more;
    co_return;
  };
  int n = 0;
  auto awaits = [&](int& sum) -> Process {
    std::vector<Process> plain;
    for (int i = 1; i <= 3; ++i) plain.push_back(add(sum, i));
    co_await std::move(plain);
    CHECK(sum == 6);

    std::vector<ProcessOf<int>> values;
    for (int i = 0; i < 3; ++i) values.push_back(value(i, i));
    int next = 0;
    for (const auto& result : co_await std::move(values)) CHECK(*result == next++);
    CHECK(next == 3);

    std::vector<weft::AnyProcess<>> any;
    any.push_back(add(sum, 10));
    any.push_back(weft::thread([&] { sum += 100; }));
    co_await std::move(any);

    co_await std::vector<std::function<void()>>(1, [&] { sum += 1000; });
    co_await std::vector<Process>{};

    std::vector<Process> failing;
    failing.push_back(fail("of the test"));
    CHECK_THROWS_WITH_AS(co_await std::move(failing), "of the test", std::runtime_error);
  };
  weft::run(awaits(n));
  CHECK(n == 1116);
}

TEST_CASE("a run inside a run: bad in a coroutine, a network of its own in a thread") {
  auto p = []() -> Process {
    CHECK_THROWS_WITH_AS(weft::run(nothing()), doctest::Contains("co_await weft::par"),
                         weft::BadUse);
    co_return;
  };
  weft::run(p());
  int n = 0;
  weft::run(weft::thread([&] { n = weft::run(value(3)); }));
  CHECK(n == 3);
  CHECK_THROWS_WITH_AS(weft::spawn(nothing()), doctest::Contains("outside any run"), weft::BadUse);
  CHECK_THROWS_AS(weft::Group(), weft::BadUse);
}
