// Tests rule 5.9: standing alternatives.
#include "hosted.hpp"

using namespace test;

TEST_CASE_TEMPLATE(
    "rule 5.9: a standing alternative serves those that became ready, first come, first served", P,
    POLICIES) {
  constexpr int n = 20;
  std::vector<weft::Reader<int, P>> rs;
  std::vector<Process> ps;
  std::vector<int> came, served;
  auto server = [&served](std::vector<weft::Reader<int, P>> r) -> Process {
    weft::StandingAlternative alt{r};
    for (;;) {
      auto c = co_await alt.select();
      CHECK(*c.value % 100 == c.index);
      served.push_back(c.index);
    }
  };
  auto client = [&came](weft::Writer<int, P> w, int k) -> Process {
    for (int i = 0; i < 5; ++i) {
      came.push_back(k);
      co_await w.write(100 * i + k);
    }
  };
  for (int i = 0; i < n; ++i) {
    weft::Channel<int, P> c;
    rs.push_back(c.reader());
    ps.push_back(client(c.writer(), i));
  }
  ps.push_back(server(std::move(rs)));
  weft::run(weft::par(std::move(ps)));
  CHECK(served.size() == 5 * n);
  CHECK(served == came);
}

TEST_CASE_TEMPLATE("rule 5.9: nothing is lost between selects, and an end is seen", P, POLICIES) {
  weft::Channel<int, P> a{weft::buffer(3)}, b;
  auto server = [](weft::Reader<int, P> x, weft::Reader<int, P> y, int& sum) -> Process {
    weft::StandingAlternative alt{x, y};
    alt.ends();
    int ended = 0;
    while (ended < 2) {
      try {
        auto r = co_await alt.select();
        sum += *r.value;
        co_await weft::yield();
      } catch (const weft::Retired& e) {
        ++ended;
        alt.enable(static_cast<std::uint32_t>(e.guard), false);
      }
    }
    CHECK_THROWS_AS(co_await alt.select(), weft::BadUse);  // Rule 5.5: all guards are off.
  };
  int sum = 0;
  weft::run(server(a.reader(), b.reader(), sum), send_all<P>(a.writer(), {1, 2, 3, 4, 5, 6}),
            send_all<P>(b.writer(), {10, 20, 30}));
  CHECK(sum == 81);
}

TEST_CASE_TEMPLATE("rule 5.9: enable(i, bool) is the precondition", P, POLICIES) {
  weft::Channel<int, P> a, b;
  auto server = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    weft::StandingAlternative alt{x, y};
    alt.enable(0, false);
    for (int i = 0; i < 3; ++i) {
      co_await weft::yield();
      CHOSEN(alt.select(), 1);
    }
    alt.enable(0, true);
    alt.enable(1, false);
    for (int i = 0; i < 3; ++i) CHOSEN(alt.select(), 0);
  };
  weft::run(server(a.reader(), b.reader()), send_all<P>(a.writer(), {1, 2, 3}),
            send_all<P>(b.writer(), {1, 2, 3}));
}

TEST_CASE_TEMPLATE("rule 5.9: with timers, skips, barriers and outputs it obeys the same rules", P,
                   POLICIES) {
  weft::Channel<int, P> in, out;
  weft::Barrier meeting(2);
  auto p = [](weft::Reader<int, P> x, weft::Writer<int, P> y, weft::Barrier b) -> Process {
    int made = 0;
    weft::StandingAlternative alt{x, weft::out_with(y, [&] { return ++made; }), b, weft::after(1s)};
    std::vector<int> chosen;
    for (int i = 0; i < 5; ++i) {
      auto r = co_await alt.select();
      chosen.push_back(r.index);
    }
    CHECK(chosen == std::vector<int>{3, 0, 1, 2, 3});
    CHECK(made == 1);
    CHECK(weft::now() == 4'300'000'000);
  };
  auto q = [](weft::Writer<int, P> x, weft::Reader<int, P> y, weft::Barrier b) -> Process {
    co_await weft::sleep(1500ms);
    co_await x.write(1);
    co_await weft::sleep(900ms);
    CHECK(co_await y.read() == 1);
    co_await weft::sleep(900ms);
    co_await b.sync();
    co_await weft::sleep(2s);
  };
  weft::run(virtually, weft::par(p(in.reader(), out.writer(), meeting),
                                 q(in.writer(), out.reader(), meeting)));
}

TEST_CASE_TEMPLATE("rule 5.3: two standing alternatives meet on a channel where both stand", P,
                   POLICIES) {
  weft::Channel<int, P> c, d;
  auto p = [](weft::Reader<int, P> x, weft::Writer<int, P> y) -> Process {
    int n = 0;
    weft::StandingAlternative alt{x, weft::out_with(y, [&] { return ++n; })};
    for (int i = 0; i < 50; ++i) co_await alt.select();
  };
  weft::run(p(c.reader(), d.writer()), p(d.reader(), c.writer()));
  CHECK(c.transfers() + d.transfers() == 50);
}

TEST_CASE_TEMPLATE(
    "rules 5.9, 5.10, 6.2: a standing alternative that is cancelled or dropped leaves no trace", P,
    POLICIES) {
  weft::Channel<int, P> a, b;
  auto server = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    weft::StandingAlternative alt{x, y};
    auto first = co_await alt.select();
    CHECK(*first.value == 1);
    co_await alt.select();
    CHECK(false);
  };
  auto p = [](weft::Channel<int, P> x, weft::Channel<int, P> y, auto* f) -> Process {
    auto keep = x.reader();
    auto w = x.writer();
    {
      weft::Group g;
      g.start((*f)(x.reader(), y.reader()));
      co_await w.write(1);
      co_await weft::yield();
      g.cancel();
      co_await g.wait();
    }
    weft::Group g;
    std::vector<int> got;
    g.start(collect<P>(std::move(keep), got));
    co_await w.write(2);
    w.retire();
    co_await g.wait();
    CHECK(got == std::vector<int>{2});
  };
  auto keep = b.writer();
  weft::run(p(a, b, &server));
}

TEST_CASE_TEMPLATE(
    "rule 5.9: a standing alternative outlives the process that selected by it; who comes to its "
    "channels meanwhile finds nobody",
    P, POLICIES) {
  using Standing = decltype(weft::StandingAlternative(std::vector<weft::Reader<int, P>>{}));
  auto first = [](Standing& a, std::vector<int>& got) -> Process {
    const auto [i, v] = co_await a.select();
    got.push_back(*v);
  };
  auto owner = [](std::vector<weft::Reader<int, P>> rs, std::vector<int>& got, auto f) -> Process {
    weft::StandingAlternative a(rs);
    co_await f(a, got);  // f is a process of its own, which has ended before this process resumes.
    for (int k = 0; k < 2; ++k) {
      const auto [i, v] = co_await a.select();
      got.push_back(*v);
    }
  };
  auto writer = [](weft::Writer<int, P> w) -> Process {
    co_await weft::yield();
    co_await w.write(1);
    // The first process takes the value and ends; its owner resumes after this process.
    co_await weft::yield();
    co_await w.write(2);
    co_await w.write(3);
  };
  weft::Channel<int, P> c;
  std::vector<int> got;
  weft::run(owner({c.reader()}, got, first), writer(c.writer()));
  CHECK(got == std::vector<int>{1, 2, 3});
}

TEST_CASE_TEMPLATE("rules 2.6, 5.2: guards that are kept outlast their ends, and the channel", P,
                   POLICIES) {
  using Fixed = decltype(weft::in(std::declval<weft::Reader<int, P>&>()));
  auto p = [](auto&& alt, weft::Reader<int, P> r,
              std::unique_ptr<weft::Channel<int, P>> c) -> Process {
    CHOSEN(alt->select(), 1);
    const void* const was = c->core();
    alt->enable(0, false);
    c.reset();
    r.retire();  // The guard is off, so its end may be closed.
    const weft::Channel<int, P> another;
    CHECK(another.core() != was);  // The alternative might still be enrolled at the first channel.
    CHOSEN(alt->select(), 1);
    alt->enable(0, true);  // No process is left that could write.
    CHOSEN(alt->select(), 1);
    alt.reset();
  };
  auto c = std::make_unique<weft::Channel<int, P>>();
  auto r = c->reader();
  using Kept = weft::Alternative<weft::detail::FixedGuards<Fixed, weft::DeadlineGuard>>;
  auto kept = std::make_unique<Kept>(weft::Mode::fair, weft::in(r), weft::after(1ms));
  weft::run(virtually, p(std::move(kept), std::move(r), std::move(c)));
  c = std::make_unique<weft::Channel<int, P>>();
  r = c->reader();
  using Standing = weft::StandingAlternative<weft::detail::FixedGuards<Fixed, weft::DeadlineGuard>>;
  auto standing = std::make_unique<Standing>(weft::in(r), weft::after(1ms));
  weft::run(virtually, p(std::move(standing), std::move(r), std::move(c)));
}

TEST_CASE_TEMPLATE("rules 2.6, 5.2: so do those of a vector of readers", P, POLICIES) {
  using Many = decltype(weft::Alternative(std::vector<weft::Reader<int, P>>{}));
  auto p = [](std::unique_ptr<weft::Channel<int, P>> c) -> Process {
    std::vector<weft::Reader<int, P>> rs{c->reader()};
    Many alt(rs);
    const void* const was = c->core();
    c.reset();
    rs.clear();
    const weft::Channel<int, P> another;
    CHECK(another.core() != was);
    CHECK_THROWS_AS(co_await alt.select(), weft::Cancelled);  // The deadlock cancels the process.
  };
  CHECK_THROWS_AS(weft::run(p(std::make_unique<weft::Channel<int, P>>())), weft::Deadlock);
}
