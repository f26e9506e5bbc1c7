// Tests rule 6: cancellation of every type of operation, before and after its commit.
#include "hosted.hpp"

using namespace test;

namespace {

// Starts p in a group, yields `yields` times so that p runs, cancels the group, and waits.
Process cancelled_after(int yields, Process p) {
  weft::Group g;
  g.start(std::move(p));
  for (int i = 0; i < yields; ++i) co_await weft::yield();
  g.cancel();
  co_await g.wait();
}

}  // namespace

TEST_CASE_TEMPLATE("rules 6.1, 6.2: a parked operation is withdrawn, nothing has happened", P,
                   POLICIES) {
  weft::Channel<int, P> c, other;
  weft::Barrier b(2);
  int cancelled = 0;
  auto read = [](weft::Reader<int, P> r, int& n) -> Process {
    try {
      co_await r.read();
    } catch (const weft::Cancelled&) {
      ++n;
      throw;
    }
  };
  auto write = [](weft::Writer<int, P> w, int& n) -> Process {
    try {
      co_await w.write(42);
    } catch (const weft::Cancelled& e) {
      REQUIRE(e.template value<int>());
      // The value of a withdrawn write stays with the writer.
      CHECK(*e.template value<int>() == 42);
      ++n;
      throw;
    }
  };
  auto choose = [](weft::Reader<int, P> r, weft::Writer<int, P> w, int& n) -> Process {
    try {
      co_await weft::select(r, weft::out(w, 1), weft::after(1h));
    } catch (const weft::Cancelled&) {
      ++n;
      throw;
    }
  };
  auto sleep = [](int& n) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
      ++n;
      throw;
    }
  };
  auto sync = [](weft::Barrier x, int& n) -> Process {
    try {
      co_await x.sync();
    } catch (const weft::Cancelled&) {
      ++n;
      throw;
    }
  };
  auto extended = [](weft::Reader<int, P> r, int& n) -> Process {
    try {
      auto x = co_await r.extended();
    } catch (const weft::Cancelled&) {
      ++n;
      throw;
    }
  };
  auto r = c.reader();
  auto w = c.writer();
  weft::run(virtually, cancelled_after(1, read(r, cancelled)));
  weft::run(virtually, cancelled_after(1, write(w, cancelled)));
  weft::run(virtually, cancelled_after(1, choose(r, other.writer(), cancelled)));
  weft::run(virtually, cancelled_after(1, sleep(cancelled)));
  weft::run(virtually, cancelled_after(1, sync(b, cancelled)));
  weft::run(virtually, cancelled_after(1, extended(r, cancelled)));
  CHECK(cancelled == 6);
  // No place in a waiting queue has been kept, so a new reader and a new writer meet each other.
  std::vector<int> got;
  weft::run(collect<P>(r, got, 2), send_all<P>(w, {1, 2}));
  CHECK(got == std::vector<int>{1, 2});
  // Rule 8.3: the cancelled arrival does not count, so two parties must arrive.
  weft::run(weft::par([](weft::Barrier x) -> Process { co_await x.sync(); }(b),
                      [](weft::Barrier x) -> Process { co_await x.sync(); }(b)));
  CHECK(b.phases() == 1);
}

TEST_CASE_TEMPLATE(
    "rule 6.1: it acts at the start of an operation, also of one that could commit at once; one "
    "request raises once",
    P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(4)};
  auto r = c.reader();
  std::vector<std::string> log;
  auto p = [](weft::Writer<int, P> w, std::vector<std::string>& l) -> Process {
    co_await w.write(1);
    co_await weft::yield();  // The request is made while the process is runnable.
    try {
      co_await w.write(2);
      l.push_back("wrote 2");
    } catch (const weft::Cancelled&) {
      l.push_back("cancelled");
    }
    co_await w.write(3);
    l.push_back("wrote 3");
  };
  auto driver = [](Process q) -> Process {
    weft::Group g;
    g.start(std::move(q));
    co_await weft::yield();
    g.cancel();
    co_await g.wait();
  };
  weft::run(driver(p(c.writer(), log)));
  CHECK(log == std::vector<std::string>{"cancelled", "wrote 3"});
  std::vector<int> got;
  weft::run(collect<P>(r, got));
  CHECK(got == std::vector<int>{1, 3});
}

TEST_CASE_TEMPLATE("rule 6.3: after the commit the operation completes", P, POLICIES) {
  weft::Channel<int, P> c;
  int got = 0;
  bool cancelled = false;
  auto reader = [](weft::Reader<int, P> r, int& g, bool& x) -> Process {
    g = co_await r.read();
    try {
      co_await r.read();
    } catch (const weft::Cancelled&) {
      x = true;
    }
  };
  auto driver = [](weft::Writer<int, P> w, Process q) -> Process {
    weft::Group g;
    g.start(std::move(q));
    co_await weft::yield();
    co_await w.write(5);  // The write has committed; the reader is runnable but has not run.
    g.cancel();
    co_await g.wait();
  };
  weft::run(driver(c.writer(), reader(c.reader(), got, cancelled)));
  CHECK(got == 5);
  CHECK(cancelled);
}

TEST_CASE_TEMPLATE("rules 6.3, 1.6: a held writer cannot be cancelled", P, POLICIES) {
  weft::Channel<int, P> c;
  bool written = false;
  auto writer = [](weft::Writer<int, P> w, bool& ok) -> Process {
    co_await w.write(5);
    ok = true;
  };
  auto driver = [](weft::Reader<int, P> r, Process q, bool& ok) -> Process {
    weft::Group g;
    g.start(std::move(q));
    {
      auto x = co_await r.extended();
      g.cancel();
      for (int i = 0; i < 3; ++i) co_await weft::yield();
      CHECK_FALSE(ok);
    }
    co_await g.wait();
  };
  weft::run(driver(c.reader(), writer(c.writer(), written), written));
  CHECK(written);
}

TEST_CASE_TEMPLATE("rule 6.4: whenever a cancellation comes, nothing is lost or doubled", P,
                   POLICIES) {
  // Readers are cancelled after every possible number of steps. The next reader receives the value
  // from which a cancelled reader withdrew.
  for (std::uint32_t capacity : {0u, 1u, 2u})
    for (bool choosing : {false, true})
      for (int steps = 0; steps < 12; ++steps) {
        weft::Channel<int, P> c{weft::buffer(capacity)}, never;
        std::vector<int> got;
        auto reader = [](weft::Reader<int, P> r, weft::Reader<int, P> n, bool ch,
                         std::vector<int>& g) -> Process {
          for (;;) {
            if (ch) {
              auto x = co_await weft::select(n, r);
              g.push_back(*x.value);
            } else {
              g.push_back(co_await r.read());
            }
            co_await weft::yield();
          }
        };
        auto driver = [](weft::Reader<int, P> r, int k, Process q, std::vector<int>& g) -> Process {
          co_await cancelled_after(k, std::move(q));
          while (auto v = co_await r.next()) g.push_back(*v);
        };
        auto keep = never.writer();
        auto r = c.reader();
        weft::run(driver(r, steps, reader(r, never.reader(), choosing, got), got),
                  send_all<P>(c.writer(), {1, 2, 3, 4, 5, 6}));
        CAPTURE(steps);
        CHECK(got == std::vector<int>{1, 2, 3, 4, 5, 6});
      }
}

TEST_CASE("rule 6.5: an uncaught Cancelled is no failure; a value-less result stands for it") {
  auto p = []() -> ProcessOf<int> {
    co_await weft::sleep(1h);
    co_return 5;
  };
  auto driver = [](auto f) -> Process {
    weft::Group g;
    g.start(f());
    co_await weft::yield();
    g.cancel();
    co_await g.wait();
  };
  weft::run(virtually, driver(p));
}

TEST_CASE("rules 6.1, 7.6: a cancelled parent cancels its children and waits for them") {
  std::vector<std::string> log;
  auto child = [](std::vector<std::string>& l) -> Process {
    try {
      co_await weft::sleep(1h);
    } catch (const weft::Cancelled&) {
      l.push_back("child");
    }
  };
  auto parent = [](std::vector<std::string>& l, auto c) -> Process {
    try {
      co_await weft::par(c(l), c(l));
      l.push_back("not here");
    } catch (const weft::Cancelled&) {
      l.push_back("parent");
    }
  };
  weft::run(virtually, cancelled_after(1, cancelled_after(2, parent(log, child))));
  CHECK(log == std::vector<std::string>{"child", "child", "parent"});
}

TEST_CASE(
    "rules 6.1, 7.5: a failed block takes its own request back, whatever its owner was asked "
    "before, and met") {
  weft::Channel<int> never, go, done{weft::buffer(1)};
  const auto kept = never.writer();
  std::vector<std::string> log;
  auto fails = [](weft::Reader<int> r) -> Process {
    co_await r.read();
    throw std::runtime_error("member");
  };
  // The member fails after the write has committed and before its owner resumes, so the owner never
  // handles the request to cancel that the failure makes.
  auto owner = [](auto f, weft::Reader<int> n, weft::Reader<int> r, weft::Writer<int> w,
                  weft::Writer<int> d, std::vector<std::string>& l) -> Process {
    try {
      co_await n.read();
    } catch (const weft::Cancelled&) {
      l.push_back("met");
    }
    {
      weft::Group g;
      g.start(f(r));
      co_await w.write(1);
      try {
        co_await g.wait();
      } catch (const std::runtime_error&) {
        l.push_back("member");
      }
    }
    co_await d.write(1);  // The request to cancel is not pending any more.
    l.push_back("on");
  };
  SUBCASE("by its group") {
    weft::run(cancelled_after(
        1, owner(fails, never.reader(), go.reader(), go.writer(), done.writer(), log)));
    CHECK(log == std::vector<std::string>{"met", "member", "on"});
  }
  SUBCASE("by a block around it, which has failed too") {
    auto outer = [](auto f, weft::Reader<int> n, weft::Reader<int> r, weft::Writer<int> w,
                    weft::Writer<int> d, std::vector<std::string>& l) -> Process {
      auto boom = []() -> Process {
        throw std::runtime_error("outer");
        co_return;
      };
      weft::Group o;
      o.start(boom());
      try {
        co_await n.read();
      } catch (const weft::Cancelled&) {
        l.push_back("met");
      }
      {
        weft::Group g;
        g.start(f(r));
        co_await w.write(1);
        try {
          co_await g.wait();
        } catch (const std::runtime_error&) {
          l.push_back("member");
        }
      }
      co_await d.write(1);
      l.push_back("on");
      try {
        co_await o.wait();
      } catch (const std::runtime_error& e) {
        l.push_back(e.what());
      }
    };
    weft::run(outer(fails, never.reader(), go.reader(), go.writer(), done.writer(), log));
    CHECK(log == std::vector<std::string>{"met", "member", "on", "outer"});
  }
}

TEST_CASE(
    "rules 6.1, 7.5: of two blocks that ask at once the one that ends takes back nothing of the "
    "other's") {
  weft::Channel<int> go, ready, never;
  const auto kept = never.writer();
  std::vector<std::string> log;
  auto fails = [](weft::Reader<int> r) -> Process {
    co_await r.read();
    throw std::runtime_error("outer");
  };
  auto fails_first = [](weft::Writer<int> w, weft::Writer<int> v) -> Process {
    // The other member of the group runs next, and then the owner of the group, whose read has
    // committed.
    co_await w.write(1);
    co_await v.write(1);
    throw std::runtime_error("inner");
  };
  auto owner = [](auto f, auto first, weft::Channel<int> a, weft::Channel<int> b,
                  weft::Reader<int> n, std::vector<std::string>& l) -> Process {
    const auto r = b.reader();
    weft::Group outer;
    outer.start(f(a.reader()));
    {
      weft::Group inner;
      inner.start(first(a.writer(), b.writer()));
      CHECK(co_await r.read() == 1);
      try {
        co_await inner.wait();
      } catch (const std::runtime_error& e) {
        l.push_back(e.what());
      }
    }
    try {
      co_await n.read();
    } catch (const weft::Cancelled&) {
      l.push_back("met");
    }
    try {
      co_await outer.wait();
    } catch (const std::runtime_error& e) {
      l.push_back(e.what());
    }
  };
  weft::run(owner(fails, fails_first, go, ready, never.reader(), log));
  CHECK(log == std::vector<std::string>{"inner", "met", "outer"});
}

TEST_CASE(
    "rule 6.1: what is asked of a process stands beside its id, and neither changes the other") {
  using weft::runtime::Identity;
  for (const std::uint32_t id : {1u, 77u, Identity::kLast}) {
    CAPTURE(id);
    Identity i;
    CHECK(i == 0);
    CHECK_FALSE(i.is_uncancelled(id));
    i = id;
    CHECK(i == id);
    CHECK(i.is_uncancelled(id));
    // Other ids do not match, nor does 0, the id of an end that no process has used.
    CHECK_FALSE(i.is_uncancelled(id - 1));
    i.cancel().store(1);
    CHECK(i == id);
    CHECK_FALSE(i.is_uncancelled(id));
    CHECK(i.cancel().load() == 1);
    CHECK(i.cancel().fetch_or(2) == 1);
    CHECK(i.cancel().load() == 3);
    CHECK(i == id);
    CHECK(i.cancel().fetch_or(8) == 3);
    CHECK(i.cancel().take(8 | 4) == 8);
    CHECK(i.cancel().load() == 3);
    i.cancel().take_back(2);
    CHECK(i.cancel().load() == 1);
    CHECK(i.cancel().exchange(0) == 1);
    CHECK(i.cancel().exchange(0) == 0);
    CHECK(i == id);
    CHECK(i.is_uncancelled(id));
  }
  Identity early;  // The process is cancelled before it has an id.
  early.cancel().store(1);
  early = 5;
  CHECK(early == 5);
  CHECK(early.cancel().load() == 1);
}

TEST_CASE("rule 6.1: of many who ask at once one is the first") {
  for (int round = 0; round < 200; ++round) {
    weft::runtime::Identity i;
    i = 9;
    std::atomic<int> first{0};
    std::vector<std::thread> ts;
    for (int k = 0; k < 3; ++k)
      ts.emplace_back([&] {
        if (i.cancel().exchange(1) == 0) ++first;
      });
    for (auto& t : ts) t.join();
    CHECK(first == 1);
    CHECK(i == 9);
  }
}

TEST_CASE("the ids of processes begin again after the last one, and none is zero") {
  using weft::runtime::Identity;
  CHECK(Identity::nth(0) == 1);
  CHECK(Identity::nth(Identity::kLast - 1) == Identity::kLast);
  CHECK(Identity::nth(Identity::kLast) == 1);
  for (const std::uint32_t n : {1u, 1u << 28, 1u << 30, 3u << 30, ~0u}) {
    CHECK(Identity::nth(n) != 0);
    CHECK(Identity::nth(n) <= Identity::kLast);
  }
  const std::uint32_t one = weft::runtime::next_process_id();
  CHECK(weft::runtime::next_process_id() == one + 1);
}
