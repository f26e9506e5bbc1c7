// Tests threads as processes, and mixed networks, which follow the same rules. Run these tests
// under ThreadSanitizer too.
#include <array>
#include <atomic>
#include <memory>
#include <numeric>

#include "hosted.hpp"

using namespace test;

TEST_CASE("rules 1.1, 3.4: a thread writes, a coroutine reads, and the other way round") {
  weft::Channel<int> a, b{weft::buffer(4)};
  std::vector<int> got;
  auto middle = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    while (auto v = co_await r.next()) co_await w.write(*v * 2);
  };
  weft::run(weft::thread([w = a.writer()] {
              for (int i = 0; i < 200; ++i) w(i);
            }),
            middle(a.reader(), b.writer()), weft::thread([r = b.reader(), &got] {
              for (int v : r) got.push_back(v);
            }));
  REQUIRE(got.size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(got[static_cast<std::size_t>(i)] == 2 * i);
}

TEST_CASE(
    "rules 5.3, 6.4: many threads and coroutines choose among shared channels; nothing is lost or "
    "doubled") {
  constexpr int senders = 4, each = 300;
  weft::Channel<int> a, b;
  std::atomic<long> sum{0}, count{0};
  std::vector<Process> ps;
  auto coroutine_sender = [](weft::Writer<int> x, weft::Writer<int> y, int base) -> Process {
    for (int i = 0; i < each; ++i)
      co_await weft::select(weft::out(x, base + i), weft::out(y, base + i));
  };
  auto coroutine_taker = [](weft::Reader<int> x, weft::Reader<int> y, std::atomic<long>& s,
                            std::atomic<long>& n) -> Process {
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
      try {
        auto r = co_await weft::select(weft::in(x).when(open[0]), weft::in(y).when(open[1]));
        s += *r.value;
        ++n;
      } catch (const weft::Retired& e) {
        open[e.guard] = false;
      }
    }
  };
  auto thread_sender = [](weft::Writer<int> x, weft::Writer<int> y, int base) {
    return weft::thread([x = std::move(x), y = std::move(y), base] {
      for (int i = 0; i < each; ++i) weft::select(weft::out(x, base + i), weft::out(y, base + i))();
    });
  };
  auto thread_taker = [&](weft::Reader<int> x, weft::Reader<int> y) {
    return weft::thread([x = std::move(x), y = std::move(y), &sum, &count] {
      bool open[2] = {true, true};
      while (open[0] || open[1]) {
        try {
          auto r = weft::select(weft::in(x).when(open[0]), weft::in(y).when(open[1]))();
          sum += *r.value;
          ++count;
        } catch (const weft::Retired& e) {
          open[e.guard] = false;
        }
      }
    });
  };
  weft::run(
      coroutine_sender(a.writer(), b.writer(), 0), thread_sender(a.writer(), b.writer(), 1000),
      coroutine_sender(a.writer(), b.writer(), 2000), thread_sender(a.writer(), b.writer(), 3000),
      coroutine_taker(a.reader(), b.reader(), sum, count), thread_taker(a.reader(), b.reader()),
      thread_taker(a.reader(), b.reader()));
  CHECK(count == senders * each);
  CHECK(sum == each * (0L + 1000 + 2000 + 3000) + 4L * each * (each - 1) / 2);
}

TEST_CASE("rule 4.3: poison spreads through a closure; a caught one stops") {
  weft::Channel<int> first, held, safe;
  auto r = first.reader(), r2 = first.reader();
  first.poison(3);
  weft::run(weft::thread([r = std::move(r), w = held.writer()] { r(); }),
            weft::thread([r = std::move(r2), w = safe.writer()] {
              try {
                r();
              } catch (const weft::Poisoned& e) {
                CHECK(e.strength == 3);
              }
            }));
  CHECK(held.core()->poison_strength() == 3);
  CHECK(safe.core()->poison_strength() == 0);

  weft::Channel<int> later;
  auto again = weft::Channel<int>();
  auto r3 = again.reader();
  again.poison();
  CHECK_THROWS_AS(weft::run(weft::thread([r = std::move(r3), w = later.writer()] {
                    try {
                      r();
                    } catch (const weft::Poisoned&) {
                    }
                    throw std::runtime_error("other");
                  })),
                  std::runtime_error);
  CHECK(later.core()->poison_strength() == 0);
}

TEST_CASE("rules 6.1, 7.2: a failure cancels threads that are parked in every kind of operation") {
  weft::Channel<int> c, d;
  weft::Barrier b(2);
  std::atomic<int> cancelled{0};
  auto count = [&](auto op) {
    return weft::thread([op = std::move(op), &cancelled] {
      try {
        op();
      } catch (const weft::Cancelled&) {
        ++cancelled;
        throw;
      }
    });
  };
  auto fail = []() -> Process {
    co_await weft::sleep(1ms);
    throw std::runtime_error("broken");
  };
  auto keep_w = c.writer();
  auto keep_r = d.reader();
  CHECK_THROWS_WITH(
      weft::run(count([r = c.reader()] { r(); }), count([w = d.writer()] { w(1); }),
                count([] { weft::sleep(1h)(); }), count([b] { b.sync()(); }),
                count([r = c.reader()] { weft::select(r, weft::after(1h))(); }),
                count([r = c.reader()] { r.extended()(); }),
                count([] { weft::run([]() -> Process { co_await weft::sleep(1h); }()); }), fail()),
      "broken");
  CHECK(cancelled == 7);
}

TEST_CASE(
    "rules 6.1, 7.2: a thread that is cancelled before it runs a network in it does not run it") {
  for (const bool inside : {false, true}) {
    // The request is made before run() is called, or during the call.
    for (const unsigned cores : {1U, 2U}) {
      CAPTURE(inside);
      CAPTURE(cores);
      weft::Channel<int> never;
      auto keep = never.writer();
      std::atomic<int> go{0}, asked{0}, cancelled{0}, started{0};
      auto spin_until = [](std::atomic<int>& flag) {
        while (!flag) std::this_thread::yield();
      };
      // The witness is started before `outer`, so it is cancelled after `outer`.
      auto witness = weft::thread([r = never.reader(), &asked] {
        try {
          r();
        } catch (const weft::Cancelled&) {
          asked = 1;
          throw;
        }
      });
      auto inner = [&]() -> Process {
        ++started;
        if (inside) {
          go = 1;
          spin_until(asked);
        }
        co_await weft::sleep(1h);
      };
      auto outer = weft::thread([&] {
        if (!inside) {
          go = 1;
          spin_until(asked);
        }
        try {
          weft::RunOptions o;
          o.cores = cores;
          weft::run(o, inner());
        } catch (const weft::Cancelled&) {
          ++cancelled;
          throw;
        }
      });
      auto fail = weft::thread([&] {
        spin_until(go);
        throw std::runtime_error("broken");
      });
      CHECK_THROWS_WITH(weft::run(std::move(witness), std::move(outer), std::move(fail)), "broken");
      CHECK(cancelled == 1);
      CHECK(started == (inside ? 1 : 0));
    }
  }
}

TEST_CASE("rule 6.4: cancellations race with commits between threads; nothing is lost or doubled") {
  for (int round = 0; round < 60; ++round) {
    weft::Channel<int> c;
    std::atomic<int> taken{0}, given{0};
    auto taker = [&](weft::Reader<int> r) {
      return weft::thread([r = std::move(r), &taken] {
        for (;;) {
          r();
          ++taken;
        }
      });
    };
    auto giver = [](weft::Writer<int> w, std::atomic<int>& n) -> Process {
      for (;;) {
        co_await w.write(1);
        ++n;
      }
    };
    auto fail = [](int k) -> Process {
      for (int i = 0; i < k; ++i) co_await weft::yield();
      throw 1;
    };
    CHECK_THROWS_AS(
        weft::run(taker(c.reader()), giver(c.writer(), given), taker(c.reader()), fail(round)),
        int);
    CHECK(taken == given);
    CHECK(c.transfers() == static_cast<std::uint64_t>(given));
  }
}

TEST_CASE("rules 1.6, 5.8: extended reads and computed outputs between threads") {
  weft::Channel<int> c;
  std::atomic<bool> inside{false};
  int sum = 0;
  weft::run(weft::thread([w = c.writer(), &inside] {
              for (int i = 1; i <= 50; ++i) {
                weft::select(weft::out_with(w, [&] { return i; }))();
                CHECK_FALSE(inside.load());
              }
            }),
            weft::thread([r = c.reader(), &inside, &sum] {
              for (int i = 1; i <= 50; ++i) {
                auto x = r.extended()();
                inside = true;
                std::this_thread::yield();
                sum += *x;
                inside = false;
              }
            }));
  CHECK(sum == 1275);
}

TEST_CASE("rules 8.1, 8.4: a barrier between threads and coroutines") {
  weft::Barrier b(4);
  std::array<std::atomic<int>, 50> here{};
  auto check = [&here](int phase) { CHECK(here[static_cast<std::size_t>(phase)] == 4); };
  auto co = [](weft::Barrier x, bool choose, auto& h, auto ok) -> Process {
    for (int i = 0; i < 50; ++i) {
      ++h[static_cast<std::size_t>(i)];
      if (choose)
        co_await weft::select(x, weft::after(1h));
      else
        co_await x.sync();
      ok(i);
    }
  };
  auto th = [&](bool choose) {
    return weft::thread([b, choose, &here, check] {
      for (int i = 0; i < 50; ++i) {
        ++here[static_cast<std::size_t>(i)];
        if (choose)
          weft::select(b, weft::after(1h))();
        else
          b.sync()();
        check(i);
      }
    });
  };
  weft::run(co(b, false, here, check), co(b, true, here, check), th(false), th(true));
  CHECK(b.phases() == 50);
}

TEST_CASE("rule 5.9: a standing alternative of a thread") {
  constexpr int n = 8;
  std::vector<weft::Reader<int>> rs;
  std::vector<Process> ps;
  for (int i = 0; i < n; ++i) {
    weft::Channel<int> c;
    rs.push_back(c.reader());
    ps.push_back(send_all<weft::Shared>(c.writer(), std::vector<int>(40, i)));
  }
  std::array<int, n> count{};
  ps.push_back([](auto t) -> Process {
    co_await weft::par(std::move(t));
  }(weft::thread([&count, rs = std::move(rs)] {
                 weft::StandingAlternative alt{rs};
                 for (int ended = 0; ended < n;) {
                   try {
                     auto c = alt.select()();
                     CHECK(*c.value == c.index);
                     ++count[static_cast<std::size_t>(c.index)];
                   } catch (const weft::Retired& e) {
                     alt.enable(static_cast<std::uint32_t>(e.guard), false);
                     ++ended;
                   }
                 }
               })));
  weft::run(weft::par(std::move(ps)));
  for (int c : count) CHECK(c == 40);
}

TEST_CASE("a guest: a thread that is no process of any run reads and writes") {
  weft::Channel<int> c{weft::buffer(2)};
  auto r = c.reader();
  auto w = c.writer();
  w(1);
  w(2);
  CHECK(r() == 1);
  auto x = weft::select(r, weft::after(1h))();
  CHECK(*x.value == 2);
  CHECK(weft::select(r, weft::after(1ms))().index == 1);
  w.retire();
  CHECK_THROWS_AS(r(), weft::Retired);
  int n = 0;
  for (int v : r) n += v;
  CHECK(n == 0);
}

TEST_CASE("rule 7.5: a group of a thread process") {
  int n = 0;
  auto p = [](int& k) -> Process {
    co_await weft::yield();
    ++k;
  };
  weft::run(weft::thread([&] {
    weft::Group g;
    g.start(p(n));
    g.wait()();
    CHECK(n == 1);
  }));
}

TEST_CASE(
    "rules 7.5, 7.8: a thread process asks for its path while its group is left by an exception") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> asked{false};
    auto asks = [&asked] {
      for (int i = 0; i < 200; ++i) {
        CHECK(has(thrown([] { weft::Reader<int>()(); }), "asks: "));
        asked = true;
      }
    };
    auto leaves = [](auto f, std::atomic<bool>& go) -> Process {
      weft::Group g;
      g.start(weft::thread(std::move(f)).named("asks"));
      while (!go) co_await weft::yield();
      throw weft::Cancelled();
    };
    auto outer = [](auto q, auto f, std::atomic<bool>& go) -> Process {
      co_await q(std::move(f), go);
    };
    weft::run(outer(leaves, asks, asked));
  }
}

TEST_CASE(
    "rule 7.1: the function of a thread is copied, moved and assigned until it is started, and "
    "gone "
    "afterwards") {
  struct Add {
    std::shared_ptr<std::atomic<int>> to;
    int n;
    void operator()() const { *to += n; }
  };
  const auto sum = std::make_shared<std::atomic<int>>(0);
  auto a = weft::thread(Add{sum, 1});
  auto b = a;
  auto c = std::move(a);
  CHECK(sum.use_count() == 3);
  b = weft::thread(Add{sum, 10});
  CHECK(sum.use_count() == 3);
  weft::run(std::move(b), std::move(c),
            [](auto copy) { return copy; }(weft::thread(Add{sum, 100})));
  CHECK(*sum == 111);
  CHECK(sum.use_count() == 1);
}

TEST_CASE("rule 7.1: results of threads") {
  auto [a, b] = weft::run(weft::thread([] { return 3; }),
                          weft::thread([] { return std::make_unique<int>(4); }));
  CHECK(a == 3);
  CHECK(**b == 4);
}

TEST_CASE("rule 7.1: a run that makes threads again and again joins them as they end") {
  int n = 0;
  weft::run(weft::thread([&n] {
    for (int i = 0; i < 300; ++i) weft::run(weft::thread([&n] { ++n; }));
    // At most three threads are kept: the thread of this process, the thread that was made last,
    // and the thread that was made before it.
    CHECK(weft::detail::current_run()->threads_kept() <= 3);
  }));
  CHECK(n == 300);
}

TEST_CASE("rule 7.7: a busy scheduler hears within 64 steps what another thread has done") {
  // Two coroutines are always busy. The thread has written and ended before the count begins.
  weft::Channel<int, weft::Local> there, back;
  weft::Channel<int> from_thread;
  int steps = 0, told_at = -1;
  auto asks = [](weft::Writer<int, weft::Local> out, weft::Reader<int, weft::Local> in,
                 weft::Writer<int> w, int* n, const int* told) -> Process {
    for (int i = 0; i < 100; ++i) {  // until the other processes have begun and the reader waits
      co_await out.write(i);
      co_await in.read();
    }
    std::thread([outside = weft::Outside(), &w] { w(1); }).join();
    for (*n = 0; *told < 0 && *n < 10'000; ++*n) {
      co_await out.write(*n);
      co_await in.read();
    }
  };
  auto answers = [](weft::Reader<int, weft::Local> in,
                    weft::Writer<int, weft::Local> out) -> Process {
    while (auto v = co_await in.next()) co_await out.write(*v);
  };
  auto hears = [](weft::Reader<int> in, const int* n, int* told) -> Process {
    co_await in.read();
    *told = *n;
  };
  weft::run(asks(there.writer(), back.reader(), from_thread.writer(), &steps, &told_at),
            answers(there.reader(), back.writer()), hears(from_thread.reader(), &steps, &told_at));
  CAPTURE(told_at);
  CHECK(told_at >= 0);
  CHECK(told_at <= 64);  // Each round of `asks` is at least one step.
}
