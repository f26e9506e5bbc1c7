// Tests ended channels, and guards that are off, in a choice (rules 5.2, 5.5, 5.6), as programs see
// them.
#include <set>

#include "hosted.hpp"

using namespace test;
using weft::Mode;

namespace {

// The ways to select again and again over the same readers.
enum class Way { ad_hoc, kept, standing, list };
constexpr Way kWays[] = {Way::ad_hoc, Way::kept, Way::standing, Way::list};

template <class P>
Process merge(Way way, std::vector<weft::Reader<int, P>> ins, std::vector<int>& got) {
  weft::Alternative kept(ins);
  weft::StandingAlternative standing(ins);
  for (;;) {
    // g++ 12 does not compile a selection that is not stored in a variable.
    switch (way) {
      case Way::ad_hoc: {
        const auto s = co_await weft::select(ins);
        got.push_back(*s.value);
        break;
      }
      case Way::kept: {
        const auto s = co_await kept.select();
        got.push_back(*s.value);
        break;
      }
      case Way::standing: {
        const auto s = co_await standing.select();
        got.push_back(*s.value);
        break;
      }
      case Way::list: {
        std::vector<weft::AnyGuard<int, P>> gs;
        for (auto& r : ins) gs.emplace_back(weft::in(r));
        const auto s = co_await weft::select_among<int, P>(std::move(gs));
        got.push_back(*s.value);
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("rule 5.6: a merge ends with its last source, and nothing is lost", P,
                   POLICIES) {
  for (const Way way : kWays)
    for (const std::uint32_t capacity : {0u, 3u}) {
      CAPTURE(static_cast<int>(way));
      std::vector<weft::Reader<int, P>> ins;
      std::vector<Process> ps;
      std::vector<int> got;
      for (int k = 0; k < 4; ++k) {
        weft::Channel<int, P> c{weft::buffer(capacity)};
        ins.push_back(c.reader());
        std::vector<int> mine;
        for (int i = 0; i < 3 * k; ++i) mine.push_back(10 * k + i);
        ps.push_back(send_all<P>(c.writer(), mine));
      }
      ps.push_back(merge<P>(way, std::move(ins), got));
      weft::run(weft::par(std::move(ps)));
      CHECK(got.size() == 18);
      CHECK(std::set<int>(got.begin(), got.end()).size() == 18);
    }
}

TEST_CASE_TEMPLATE("rule 5.6: a dispatcher ends with its last worker, and has the value still", P,
                   POLICIES) {
  weft::Channel<int, P> a, b;
  auto dispatch = [](weft::Writer<int, P> x, weft::Writer<int, P> y, int& sent) -> Process {
    try {
      for (;; ++sent) co_await weft::select(weft::out(x, sent), weft::out(y, sent));
    } catch (const weft::Retired& e) {
      REQUIRE(e.value<int>());
      CHECK(*e.value<int>() == sent);
    }
  };
  auto work = [](weft::Reader<int, P> r, int n) -> Process {
    for (int i = 0; i < n; ++i) co_await r.read();
  };
  int sent = 0;
  weft::run(dispatch(a.writer(), b.writer(), sent), work(a.reader(), 2), work(b.reader(), 5));
  CHECK(sent == 7);
}

TEST_CASE_TEMPLATE(
    "rule 5.6: a buffer hands out what it holds, then ends; it takes no more if nobody is left to "
    "take",
    P, POLICIES) {
  auto buffer = [](weft::Reader<int, P> in, weft::Writer<int, P> out,
                   std::vector<int>& held) -> Process {
    for (;;) {
      auto c = co_await weft::select(
          weft::in(in).when(held.size() < 3),
          weft::out(out, held.empty() ? 0 : held.front()).when(!held.empty()));
      if (c.index == 0)
        held.push_back(*c.value);
      else
        held.erase(held.begin());
    }
  };
  auto take = [](weft::Reader<int, P> r, std::vector<int>& got, std::size_t most) -> Process {
    while (got.size() < most) got.push_back(co_await r.read());
  };
  std::vector<int> held, got;
  SUBCASE("the source ends first") {
    weft::Channel<int, P> a, b;
    weft::run(send_all<P>(a.writer(), {1, 2, 3, 4, 5}), buffer(a.reader(), b.writer(), held),
              take(b.reader(), got, 9));
    CHECK(got == std::vector<int>{1, 2, 3, 4, 5});
    CHECK(held.empty());
  }
  SUBCASE("the taker ends first") {
    weft::Channel<int, P> a, b;
    weft::run(send_all<P>(a.writer(), {1, 2, 3, 4, 5, 6, 7, 8, 9}),
              buffer(a.reader(), b.writer(), held), take(b.reader(), got, 2));
    CHECK(got == std::vector<int>{1, 2});
  }
}

TEST_CASE_TEMPLATE(
    "rule 5.6: ends() of a guard, of a select, of an alternative: its end is an outcome at once", P,
    POLICIES) {
  weft::Channel<int, P> over, open;
  auto r = over.reader();
  over.writer().retire();
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    const auto guard_of = [](auto op) -> weft::ProcessOf<int> {
      try {
        co_await std::move(op);
      } catch (const weft::Retired& e) {
        co_return e.guard;
      }
      co_return -1;
    };
    CHECK(co_await guard_of(weft::select(y, weft::in(x).ends())) == 1);
    CHECK(co_await guard_of(weft::select(y, weft::in(x).ends(), weft::skip())) == 1);
    CHECK(co_await guard_of(weft::select(y, x).ends()) == 1);
    const std::vector both{y, x};  // g++ 12 accepts no braced list inside a co_await.
    CHECK(co_await guard_of(weft::select(both).ends()) == 1);
    weft::Alternative kept(Mode::fair, y, x);
    kept.ends();
    weft::StandingAlternative standing(both);
    standing.ends();
    for (int i = 0; i < 2; ++i) {
      CHECK(co_await guard_of(kept.select()) == 1);
      CHECK(co_await guard_of(standing.select()) == 1);
    }
    CHECK_THROWS_WITH_AS(kept.ends(), doctest::Contains("before the first select"), weft::BadUse);
    // Without ends() the guards fall silent, and the open guard alone determines the outcome.
    CHOSEN(weft::select(y, x, weft::skip()), 2);
    CHOSEN(weft::select(y, x, weft::after(1s)), 2);
  };
  auto keep = open.writer();
  weft::run(virtually, p(std::move(r), open.reader()));
}

TEST_CASE("rule 5.6: in threads") {
  weft::Channel<int> a, b, stop;
  std::vector<int> got;
  auto source = [](weft::Writer<int> w, int n) {
    return weft::thread([n, w = std::move(w)] {
      for (int i = 0; i < n; ++i) w(i);
    });
  };
  auto merge = weft::thread([&got, x = a.reader(), y = b.reader()] {
    for (;;) got.push_back(*weft::select(x, y)().value);
  });
  weft::run(source(a.writer(), 3), source(b.writer(), 9), std::move(merge));
  CHECK(got.size() == 12);

  // The end of each channel wakes a standing alternative, which then continues.
  weft::Channel<int> c, d;
  got.clear();
  auto standing = weft::thread([&got, x = c.reader(), y = d.reader()] {
    weft::StandingAlternative alt{x, y};
    for (;;) got.push_back(*alt.select()().value);
  });
  weft::run(source(c.writer(), 3), source(d.writer(), 9), std::move(standing));
  CHECK(got.size() == 12);
}

TEST_CASE_TEMPLATE(
    "rules 5.6, 6.1: a cancellation meets an alternative that goes on without a guard", P,
    POLICIES) {
  weft::Channel<int, P> a, b;
  bool cancelled = false;
  auto wait = [](weft::Reader<int, P> x, weft::Reader<int, P> y, bool& c) -> Process {
    weft::StandingAlternative alt{x, y};
    try {
      co_await alt.select();
    } catch (const weft::Cancelled&) {
      c = true;
    }
  };
  auto driver = [](Process p, weft::Writer<int, P> w) -> Process {
    weft::Group g;
    g.start(std::move(p));
    co_await weft::yield();
    w.retire();  // The process has been woken, and has not run yet.
    g.cancel();
    co_await g.wait();
  };
  auto keep = b.writer();
  weft::run(driver(wait(a.reader(), b.reader(), cancelled), a.writer()));
  CHECK(cancelled);
}

TEST_CASE_TEMPLATE(
    "rules 5.6, 8.5: a standing alternative that goes on without a guard keeps its deadline", P,
    POLICIES) {
  weft::Channel<int, P> a, b;
  auto wait = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    weft::StandingAlternative alt{weft::in(x), weft::in(y), weft::after(3s)};
    CHOSEN(alt.select(), 2);
    CHECK(weft::now() == 3'000'000'000);
  };
  auto source = [](weft::Writer<int, P> w) -> Process {
    co_await weft::sleep(1s);
    w.retire();
  };
  auto keep = b.writer();
  weft::run(virtually, wait(a.reader(), b.reader()), source(a.writer()));
}

TEST_CASE_TEMPLATE("rules 5.2, 5.5: a guard that is off takes no part at all", P, POLICIES) {
  weft::Channel<int, P> c, d{weft::buffer(1)};
  auto p = [](weft::Channel<int, P>& c, weft::Channel<int, P>& d) -> Process {
    auto r = c.reader();
    auto w = c.writer();
    auto closed = d.reader();
    auto other = d.reader();
    auto gone = d.writer();
    auto stay = d.writer();
    closed.retire(), gone.retire();
    weft::Barrier b(2), empty(0);
    // None of the following is bad use in a guard that is off: both ends of one channel, a closed
    // end, one barrier twice, and a barrier without other parties.
    CHOSEN(weft::select(r, weft::out(w, 1).when(false), weft::skip()), 2);
    CHOSEN(weft::select(weft::in(r).when(false), weft::out(w, 1), weft::skip()), 2);
    CHOSEN(weft::select(weft::in(closed).when(false), weft::out(gone, 1).when(false), weft::skip()),
           2);
    CHOSEN(weft::select(weft::out_with(gone, [] { return 1; }).when(false), weft::skip()), 1);
    CHOSEN(weft::select(b, weft::meet(b).when(false), weft::skip()), 2);
    CHOSEN(weft::select(weft::meet(empty).when(false), weft::skip()), 1);
    CHECK_THROWS_WITH_AS(co_await weft::select(r, weft::out(w, 1), weft::skip()),
                         doctest::Contains("both ends of channel"), weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await weft::select(weft::in(closed), weft::skip()),
                         doctest::Contains("select on a reader end that is closed"), weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await weft::select(weft::out(gone, 1), weft::skip()),
                         doctest::Contains("select on a writer end that is closed"), weft::BadUse);
    CHECK_THROWS_WITH_AS(co_await weft::select(b, b, weft::skip()),
                         doctest::Contains("same barrier"), weft::BadUse);

    // enable() makes the same checks.
    weft::Alternative kept(Mode::priority, weft::in(r),
                           weft::out_with(w, [] { return 1; }).when(false), b,
                           weft::meet(b).when(false), weft::in(closed).when(false), weft::skip());
    weft::StandingAlternative standing(weft::in(r), weft::out_with(w, [] { return 1; }).when(false),
                                       b, weft::meet(b).when(false), weft::in(closed).when(false),
                                       weft::skip());
    CHOSEN(kept.select(), 5);
    CHOSEN(standing.select(), 5);
    const auto check = [](auto& alt) {
      CHECK_THROWS_WITH_AS(alt.enable(1, true),
                           doctest::Contains("enable: guards 0 and 1 are both ends"), weft::BadUse);
      CHECK_THROWS_WITH_AS(alt.enable(3, true),
                           doctest::Contains("enable: guards 2 and 3 are the same barrier"),
                           weft::BadUse);
      CHECK_THROWS_WITH_AS(alt.enable(4, true),
                           doctest::Contains("enable on a reader end that is closed"),
                           weft::BadUse);
      alt.enable(0, false);
      alt.enable(1, true);
      alt.enable(2, false);
      alt.enable(3, true);
    };
    check(kept);
    check(standing);
    CHOSEN(kept.select(), 5);
    CHOSEN(standing.select(), 5);
  };
  weft::run(p(c, d));
}

TEST_CASE_TEMPLATE("rule 5.5: the check of many guards finds both ends wherever they stand", P,
                   POLICIES) {
  auto p = []() -> Process {
    for (const int n : {3, 9, 200}) {
      std::vector<weft::Channel<int, P>> cs(static_cast<std::size_t>(n));
      std::vector<weft::Reader<int, P>> rs;
      for (auto& c : cs) rs.push_back(c.reader());
      weft::Channel<int, P> other;
      for (const int at : {-1, 0, n / 2, n - 1}) {
        std::vector<weft::AnyGuard<int, P>> gs;
        auto w = (at < 0 ? other : cs[static_cast<std::size_t>(at)]).writer();
        for (int i = 0; i < n; ++i) {
          if (i == n / 2) gs.emplace_back(weft::out(w, 1));
          for (int twice = 0; twice < 2; ++twice)
            gs.emplace_back(weft::in(rs[static_cast<std::size_t>(i)]));
        }
        gs.emplace_back(weft::skip());
        if (at < 0)
          CHOSEN((weft::select_among<int, P>(std::move(gs))), 2 * n + 1);
        else
          CHECK_THROWS_WITH_AS((co_await weft::select_among<int, P>(std::move(gs))),
                               doctest::Contains("both ends"), weft::BadUse);
      }
    }
  };
  weft::run(p());
}

TEST_CASE("rules 5.6, 10.2: a deadlock names the guards that fell silent, and says what to do") {
  weft::Channel<int> numbers{weft::named("numbers")}, stop{weft::named("stop")},
      results{weft::named("results")};
  auto worker = [](weft::Reader<int> s, weft::Reader<int> n, weft::Writer<int> out) -> Process {
    for (;;) co_await out.write(*(co_await weft::select(s, n)).value);
  };
  auto feeder = [](weft::Writer<int> n, weft::Reader<int> back) -> Process {
    for (;;) co_await n.write(co_await back.read());
  };
  auto once = [](weft::Writer<int>) -> Process { co_return; };
  try {
    weft::run(worker(stop.reader(), numbers.reader(), results.writer()).named("worker"),
              feeder(numbers.writer(), results.reader()), once(stop.writer()));
    FAIL("no deadlock");
  } catch (const weft::Deadlock& e) {
    const std::string text = e.what();
    CHECK(text.find("worker: select 'stop' (ended), 'numbers' at hosted_ended.cpp:") !=
          std::string::npos);
    const std::string last =
        "worker: guard 0 'stop' has ended; if that should end the process: say .ends() of that "
        "guard, weft::in(…).ends()";
    REQUIRE(text.size() > last.size());
    CHECK(text.substr(text.size() - last.size()) == last);
    CAPTURE(text);
  }
}
