// Tests rule 5: choice.
#include <array>

#include "hosted.hpp"

using namespace test;
using weft::Mode;

namespace {

template <class P>
Process forever(weft::Writer<int, P> w, int v) {
  for (;;) co_await w.write(v);
}

}  // namespace

TEST_CASE_TEMPLATE("rule 5.2: a select gives the index of the guard and, for an input, its value",
                   P, POLICIES) {
  weft::Channel<int, P> a;
  weft::Channel<std::string, P> b;
  weft::Channel<double, P> out;
  auto p = [](weft::Reader<int, P> x, weft::Reader<std::string, P> y,
              weft::Writer<double, P> z) -> Process {
    for (int i = 0; i < 3; ++i) {
      auto [k, v] = co_await weft::select(x, y, weft::out(z, 0.5));
      if (k == 0) CHECK(std::get<int>(v) == 1);
      if (k == 1) CHECK(std::get<std::string>(v) == "one");
      if (k == 2) CHECK(std::holds_alternative<std::monostate>(v));
    }
  };
  auto q = [](weft::Writer<int, P> x, weft::Writer<std::string, P> y,
              weft::Reader<double, P> z) -> Process {
    co_await y.write("one");
    CHECK(co_await z.read() == 0.5);
    co_await x.write(1);
  };
  weft::run(p(a.reader(), b.reader(), out.writer()), q(a.writer(), b.writer(), out.reader()));
}

TEST_CASE_TEMPLATE("rule 5.2: a guard whose precondition is false does not take part", P,
                   POLICIES) {
  weft::Channel<int, P> a{weft::buffer(8)}, b{weft::buffer(8)};
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    for (int i = 0; i < 4; ++i) {
      auto r = co_await weft::select(weft::in(x).when(false), weft::in(y).when(true));
      CHECK(r.index == 1);
      CHECK(*r.value == 2);
    }
  };
  auto fill = [](weft::Writer<int, P> w, int v) -> Process {
    for (int i = 0; i < 4; ++i) co_await w.write(v);
  };
  auto ra = a.reader(), rb = b.reader();
  weft::run(fill(a.writer(), 1), fill(b.writer(), 2));
  weft::run(p(ra, rb));
}

TEST_CASE_TEMPLATE("rules 5.1, 5.3: selects meet each other, with input and output guards in each",
                   P, POLICIES) {
  weft::Channel<int, P> a, b;
  auto p = [](weft::Reader<int, P> x, weft::Writer<int, P> y, int rounds, int& in,
              int& out) -> Process {
    for (int i = 0; i < rounds; ++i) {
      auto r = co_await weft::select(x, weft::out(y, i));
      ++(r.index == 0 ? in : out);
    }
  };
  std::array<int, 4> n{};
  weft::run(p(a.reader(), b.writer(), 100, n[0], n[1]), p(b.reader(), a.writer(), 100, n[2], n[3]));
  CHECK(n[0] == n[3]);
  CHECK(n[1] == n[2]);
  CHECK(n[0] + n[1] == 100);
}

constexpr int kGuards = 7;

TEST_CASE_TEMPLATE("rule 5.4: fair, a guard that stays ready is chosen within N selects", P,
                   POLICIES) {
  std::vector<weft::Channel<int, P>> cs(kGuards);
  auto chooser = [](std::vector<weft::Reader<int, P>> rs) -> Process {
    std::array<int, kGuards> since{};
    for (int i = 0; i < 50 * kGuards; ++i) {
      auto r = co_await weft::select(rs);
      for (int& s : since) ++s;
      since[static_cast<std::size_t>(r.index)] = 0;
      if (i >= kGuards)
        for (int s : since) REQUIRE(s < kGuards);
      co_await weft::yield();  // The writer resumes.
    }
    for (auto& r : rs) r.poison();
  };
  std::vector<weft::Reader<int, P>> rs;
  std::vector<Process> ps;
  for (int i = 0; i < kGuards; ++i) {
    rs.push_back(cs[static_cast<std::size_t>(i)].reader());
    ps.push_back(forever<P>(cs[static_cast<std::size_t>(i)].writer(), i));
  }
  ps.push_back(chooser(std::move(rs)));
  weft::run(weft::par(std::move(ps)));
}

TEST_CASE("rule 5.4: fair selects of a thousand processes do not disturb each other") {
  using P = weft::Local;
  auto chooser = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    int last = -1;
    for (int i = 0; i < 10; ++i) {
      auto r = co_await weft::select(x, y);
      REQUIRE(r.index != last);  // Both guards are always ready, so they alternate.
      last = r.index;
      co_await weft::yield();
    }
  };
  std::vector<weft::Writer<int, P>> keep;
  std::vector<Process> ps;
  auto fill = [](std::vector<weft::Writer<int, P>>& ws) -> Process {
    for (auto& w : ws)
      for (int i = 0; i < 10; ++i) co_await w.write(i);
  };
  for (int i = 0; i < 1000; ++i) {
    weft::Channel<int, P> a{weft::buffer(10)}, b{weft::buffer(10)};
    keep.push_back(a.writer());
    keep.push_back(b.writer());
    ps.push_back(chooser(a.reader(), b.reader()));
  }
  weft::run(fill(keep));
  weft::run(weft::par(std::move(ps)));
}

TEST_CASE_TEMPLATE("rule 5.4: fairness counts an ended guard's turn too", P, POLICIES) {
  weft::Channel<int, P> ended, live{weft::buffer(4)};
  auto over = ended.reader();
  ended.writer().retire();
  auto r = live.reader();
  weft::run(send_all<P>(live.writer(), {1, 2, 3, 4}));
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    int ends = 0, values = 0;
    for (int i = 0; i < 8; ++i) {
      try {
        co_await weft::select(weft::in(x).ends(), y);
        ++values;
      } catch (const weft::Retired& e) {
        CHECK(e.guard == 0);
        ++ends;
      }
    }
    CHECK(values == 4);
    CHECK(ends == 4);
  };
  weft::run(p(std::move(over), r));
}

TEST_CASE_TEMPLATE("rule 5.4: priority takes the first ready guard", P, POLICIES) {
  weft::Channel<int, P> a{weft::buffer(3)}, b{weft::buffer(3)};
  auto ra = a.reader(), rb = b.reader();
  weft::run(send_all<P>(a.writer(), {1, 2, 3}), send_all<P>(b.writer(), {4, 5, 6}));
  std::vector<int> got;
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y, std::vector<int>& g) -> Process {
    for (int i = 0; i < 5; ++i) {
      try {
        auto r = co_await weft::select(Mode::priority, weft::in(x).when(i < 3), y);
        g.push_back(*r.value);
      } catch (const weft::Retired&) {
        CHECK(false);
      }
    }
  };
  weft::run(p(ra, rb, got));
  CHECK(got == std::vector<int>{1, 2, 3, 4, 5});
}

constexpr int kRounds = 7000;

TEST_CASE_TEMPLATE("rule 5.4: random is uniform over the ready guards", P, POLICIES) {
  std::vector<weft::Reader<int, P>> rs;
  std::vector<weft::Writer<int, P>> ws;
  for (int i = 0; i < kGuards + 1; ++i) {
    weft::Channel<int, P> c{weft::buffer(1)};
    rs.push_back(c.reader());
    ws.push_back(c.writer());
  }
  auto p = [](std::vector<weft::Reader<int, P>> r, std::vector<weft::Writer<int, P>> w) -> Process {
    std::array<int, kGuards> count{};
    // The last guard is never ready.
    for (int i = 0; i < kGuards; ++i) co_await w[static_cast<std::size_t>(i)].write(i);
    for (int i = 0; i < kRounds; ++i) {
      auto c = co_await weft::select(r, Mode::random);
      const auto k = static_cast<std::size_t>(c.index);
      REQUIRE(k < kGuards);
      ++count[k];
      co_await w[k].write(0);
    }
    // With 6 degrees of freedom the sum is above 27.9 once in 10,000 times. The seed is fixed, so
    // the result is always the same.
    double chi = 0;
    for (int c : count)
      chi += (c - kRounds / kGuards) * (c - kRounds / kGuards) / double(kRounds / kGuards);
    CAPTURE(chi);
    CHECK(chi < 27.9);
  };
  weft::run(p(std::move(rs), std::move(ws)));
}

TEST_CASE_TEMPLATE("rule 5.5: bad selects", P, POLICIES) {
  weft::Channel<int, P> c{weft::named("looped")};
  auto p = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    auto text = std::string();
    try {
      co_await weft::select(r, weft::out(w, 1));
    } catch (const weft::BadUse& e) {
      text = e.what();
    }
    CHECK(has(text, "both ends of channel 'looped'"));
    CHECK(has(text, "main/"));
    std::vector<weft::Reader<int, P>> none;
    CHECK_THROWS_WITH_AS(co_await weft::select(none), doctest::Contains("at least one guard"),
                         weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await weft::select(weft::in(r).when(false)),
                         doctest::Contains("precondition"), weft::BadUse);
    // The same end twice makes two guards.
    CHOSEN(weft::select(r, r, weft::skip()), 2);
    weft::Barrier b(2);
    CHECK_THROWS_WITH_AS(co_await weft::select(b, b), doctest::Contains("same barrier"),
                         weft::BadUse);
    w.retire();
  };
  weft::run(p(c.reader(), c.writer()));
}

TEST_CASE_TEMPLATE("rule 5.6: a guard that has ended raises with its index and value", P,
                   POLICIES) {
  weft::Channel<int, P> quiet, out, poisoned;
  auto w = out.writer();
  out.reader().retire();
  auto pr = poisoned.reader();
  poisoned.poison(7);
  auto p = [](weft::Reader<int, P> x, weft::Writer<int, P> y, weft::Reader<int, P> z) -> Process {
    try {
      co_await weft::select(Mode::priority, x, weft::out(y, 9), z);
      CHECK(false);
    } catch (const weft::Retired& e) {
      CHECK(e.guard == 1);
      REQUIRE(e.value<int>());
      CHECK(*e.value<int>() == 9);
    }
    try {
      co_await weft::select(Mode::priority, x, z);
      CHECK(false);
    } catch (const weft::Poisoned& e) {
      CHECK(e.guard == 1);
      CHECK(e.strength == 7);
    }
  };
  auto keep = quiet.writer();
  weft::run(p(quiet.reader(), std::move(w), std::move(pr)));
}

TEST_CASE_TEMPLATE("rule 5.6: a parked select is woken by an end", P, POLICIES) {
  weft::Channel<int, P> a, b;
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    try {
      co_await weft::select(x, weft::in(y).ends());
      CHECK(false);
    } catch (const weft::Retired& e) {
      CHECK(e.guard == 1);
    }
    // The select left no trace at the other channel, so that channel can still be read (rule 5.10).
    CHECK(co_await x.read() == 3);
  };
  auto q = [](weft::Writer<int, P> x, weft::Writer<int, P> y) -> Process {
    co_await weft::yield();
    y.retire();
    co_await weft::yield();
    co_await x.write(3);
  };
  weft::run(p(a.reader(), b.reader()), q(a.writer(), b.writer()));
}

TEST_CASE_TEMPLATE(
    "rule 5.7: a ready guard beats an expired timer; skip only if nothing else, unless by priority",
    P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(4)};
  auto r = c.reader();
  auto w = c.writer();
  weft::run(send_all<P>(w, {1, 2, 3, 4}));
  auto p = [](weft::Reader<int, P> x) -> Process {
    co_await weft::sleep(1s);
    CHOSEN(weft::select(weft::at(1), x), 1);
    CHOSEN(weft::select(weft::skip(), x), 1);
    CHOSEN(weft::select(Mode::random, weft::skip(), x), 1);
    CHOSEN(weft::select(Mode::priority, weft::skip(), x), 0);
    CHOSEN(weft::select(Mode::priority, weft::after(0s), x), 0);
    CHOSEN(weft::select(weft::after(0s), x), 1);
    CHOSEN(weft::select(weft::after(0s), x), 0);
    CHOSEN(weft::select(weft::at(1), x), 0);
    CHOSEN(weft::select(weft::skip(), weft::after(1h)), 0);
  };
  weft::run(virtually, p(r));
}

TEST_CASE_TEMPLATE(
    "rule 5.8: the function of an output is called once, after the commit, by its owner", P,
    POLICIES) {
  weft::Channel<int, P> a, b;
  std::vector<std::string> log;
  auto p = [](weft::Writer<int, P> x, weft::Writer<int, P> y,
              std::vector<std::string>& l) -> Process {
    for (int i = 0; i < 2; ++i) {
      const auto r = co_await weft::select(weft::out_with(x,
                                                          [&] {
                                                            l.push_back("made");
                                                            return 5;
                                                          }),
                                           weft::out_with(y, [&] {
                                             l.push_back("never");
                                             return 6;
                                           }));
      CHECK(r.index == 0);
      l.push_back("sent");
    }
  };
  auto q = [](weft::Reader<int, P> x, std::vector<std::string>& l) -> Process {
    co_await weft::yield();
    for (int i = 0; i < 2; ++i) {  // First the select waits before the reader, then after it.
      l.push_back("read");
      CHECK(co_await x.read() == 5);
      l.push_back("got");
    }
  };
  auto keep = b.reader();
  weft::run(p(a.writer(), b.writer(), log), q(a.reader(), log));
  CHECK(log ==
        std::vector<std::string>{"read", "made", "sent", "got", "read", "made", "sent", "got"});
}

TEST_CASE_TEMPLATE(
    "rule 5.8: if the function raises, the select raises that and the reader gets PeerDied", P,
    POLICIES) {
  for (bool reader_first : {false, true}) {
    weft::Channel<int, P> c;
    auto p = [](weft::Writer<int, P> w, bool late) -> Process {
      if (late) co_await weft::yield();
      CHECK_THROWS_WITH_AS(co_await weft::select(weft::out_with(
                               w, []() -> int { throw std::runtime_error("no value"); })),
                           "no value", std::runtime_error);
      co_await w.write(2);  // The channel is still usable.
    };
    auto q = [](weft::Reader<int, P> r, bool late) -> Process {
      if (late) co_await weft::yield();
      CHECK_THROWS_AS(co_await r.read(), weft::PeerDied);
      CHECK(co_await r.read() == 2);
    };
    weft::run(p(c.writer(), reader_first), q(c.reader(), !reader_first));
  }
}

TEST_CASE_TEMPLATE(
    "rules 5.8, 1.4: a computed value into a buffer; one that raises leaves the buffer as it was",
    P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(1)};
  auto p = [](weft::Writer<int, P> w) -> Process {
    CHECK_THROWS_AS(co_await weft::select(weft::out_with(w, []() -> int { throw 1; })), int);
    co_await weft::select(weft::out_with(w, [] { return 3; }));
    CHOSEN(weft::select(weft::out_with(w, [] { return 4; }), weft::skip()), 1);
  };
  std::vector<int> got;
  auto r = c.reader();
  weft::run(p(c.writer()));
  weft::run(collect<P>(r, got));
  CHECK(got == std::vector<int>{3});
  CHECK(c.dropped() == 0);
}

TEST_CASE_TEMPLATE("rules 5.8, 1.6: a computed output meets an extended reader", P, POLICIES) {
  for (bool reader_first : {false, true})
    for (bool raises : {false, true}) {
      weft::Channel<int, P> c;
      std::vector<std::string> log;
      auto p = [](weft::Writer<int, P> w, bool late, bool bad,
                  std::vector<std::string>& l) -> Process {
        if (late) co_await weft::yield();
        auto f = [&]() -> int {
          if (bad) throw std::runtime_error("no value");
          return 8;
        };
        if (bad)
          CHECK_THROWS_AS(co_await weft::select(weft::out_with(w, f)), std::runtime_error);
        else
          CHOSEN(weft::select(weft::out_with(w, f)), 0);
        l.push_back("writer goes on");
      };
      auto q = [](weft::Reader<int, P> r, bool late, bool bad,
                  std::vector<std::string>& l) -> Process {
        if (late) co_await weft::yield();
        if (bad) {
          CHECK_THROWS_AS(co_await r.extended(), weft::PeerDied);
          co_return;
        }
        {
          auto x = co_await r.extended();
          CHECK(*x == 8);
          for (int i = 0; i < 3; ++i) co_await weft::yield();
          l.push_back("block ends");
        }
        co_await weft::yield();
      };
      weft::run(p(c.writer(), reader_first, raises, log),
                q(c.reader(), !reader_first, raises, log));
      CHECK(log == (raises ? std::vector<std::string>{"writer goes on"}
                           : std::vector<std::string>{"block ends", "writer goes on"}));
    }
}

TEST_CASE_TEMPLATE("rule 5.10: guards that were not chosen keep their values and their places", P,
                   POLICIES) {
  weft::Channel<std::string, P> a, b;
  auto p = [](weft::Writer<std::string, P> x, weft::Reader<std::string, P> y) -> Process {
    std::string text = "kept";
    for (int i = 0; i < 3; ++i) {
      auto r = co_await weft::select(weft::out(x, text), y);
      CHECK(r.index == 1);
      CHECK(*r.value == "in");
    }
    co_await x.write(text);
  };
  auto q = [](weft::Reader<std::string, P> x, weft::Writer<std::string, P> y) -> Process {
    for (int i = 0; i < 3; ++i) co_await y.write("in");
    CHECK(co_await x.read() == "kept");
    CHECK_THROWS_AS(co_await x.read(), weft::Retired);
  };
  weft::run(p(a.writer(), b.reader()), q(a.reader(), b.writer()));
}

TEST_CASE_TEMPLATE("a kept alternative: modes, preconditions, fairness by itself", P, POLICIES) {
  weft::Channel<int, P> a{weft::buffer(8)}, b{weft::buffer(8)};
  auto ra = a.reader(), rb = b.reader();
  auto wa = a.writer(), wb = b.writer();
  weft::run(send_all<P>(wa, {1, 1, 1, 1}), send_all<P>(wb, {2, 2, 2, 2}));
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    weft::Alternative alt{Mode::fair, x, y, weft::after(5s)};
    std::vector<int> got;
    for (int i = 0; i < 4; ++i) {
      auto r = co_await alt.select();
      got.push_back(r.index);
    }
    CHECK(got == std::vector<int>{0, 1, 0, 1});
    alt.enable(0, false);
    CHOSEN(alt.select(), 1);
    CHOSEN(alt.select(), 1);
    const auto before = weft::now();
    CHOSEN(alt.select(), 2);  // The span begins anew at each select.
    CHECK(weft::now() == before + 5'000'000'000);
    CHOSEN(alt.select(), 2);
    CHECK(weft::now() == before + 10'000'000'000);
    alt.enable(0, true);
    CHOSEN(alt.select(), 0);
    CHECK_THROWS_AS(alt.enable(3, true), weft::BadUse);
    alt.enable(0, false);
    alt.enable(1, false);
    alt.enable(2, false);
    CHECK_THROWS_AS(co_await alt.select(), weft::BadUse);
  };
  weft::run(virtually, p(ra, rb));
}
