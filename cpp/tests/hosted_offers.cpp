// Tests rules 5.10 and 6.2: a value that a select offers by std::move is moved only when its guard
// is chosen. In all other cases its writer still has the value.
#include "hosted.hpp"

using namespace test;

namespace {

using U = std::unique_ptr<int>;

// The ways in which a select may end without choosing its output.
enum class Way {
  another,        // another guard is ready
  another_first,  // another guard precedes it by priority
  another_later,  // another guard is chosen while the select waits
  time,
  skip,
  limit,
  cancelled,
  stopped,  // its group was cancelled before it began
  loud,     // the channel has retired, and its guard has ends()
  loud_later,
  all_retired,
  poisoned,
  poisoned_later,
  died,
  another_poisoned,
  another_raises,
  off,
  none_on,
  both_ends,
  closed,
  last,
};

// Checks that the exception carries no value.
template <class E>
void has_no_value(const E& e) {
  CHECK_FALSE(e.template value<U>());
}

template <class P>
Process raises(weft::Writer<int, P> w, U& v, weft::Writer<U, P> to) {
  try {
    co_await weft::select(weft::Mode::priority, weft::out(to, std::move(v)),
                          weft::out_with(w, []() -> int { throw 5; }));
    FAIL("nothing was thrown");
  } catch (int) {
  }
}

template <class P>
Process after_a_moment(std::function<void()> f) {
  for (int i = 0; i < 3; ++i) co_await weft::yield();
  f();
}

// Makes a select that offers a value, and makes it end as `way` says. Afterwards the value must
// still be in its place.
template <class P>
Process offers(Way way, U& v) {
  weft::Channel<U, P> c;
  weft::Channel<int, P> d{weft::buffer(1)};
  auto r = c.reader();
  auto w = c.writer();
  auto stop = d.reader();
  auto stops = d.writer();
  weft::Group meanwhile;
  auto later = [&meanwhile](std::function<void()> f) {
    meanwhile.start(after_a_moment<P>(std::move(f)));
  };
  int* const there = v.get();
  int thrown = 0;
  try {
    switch (way) {
      case Way::another:
        co_await stops.write(1);
        CHOSEN(weft::select(weft::out(w, std::move(v)), stop), 1);
        break;
      case Way::another_first:
        co_await stops.write(1);
        CHOSEN(weft::select(weft::Mode::priority, stop, weft::out(w, std::move(v))), 0);
        break;
      case Way::another_later:
        later([&] { stops.poison(); });
        try {
          co_await weft::select(weft::Mode::random, weft::out(w, std::move(v)), stop);
        } catch (const weft::Poisoned& e) {
          CHECK(e.guard == 1);
          has_no_value(e);
        }
        break;
      case Way::time: CHOSEN(weft::select(weft::out(w, std::move(v)), weft::after(1ms)), 1); break;
      case Way::skip: CHOSEN(weft::select(weft::out(w, std::move(v)), weft::skip()), 1); break;
      case Way::limit: {
        weft::Timeout limit(1ms);
        co_await weft::select(weft::out(w, std::move(v)), weft::after(1h));
        break;
      }
      case Way::cancelled: {
        auto waits = [](weft::Writer<U, P>& to, U& value) -> Process {
          try {
            co_await weft::select(weft::out(to, std::move(value)), weft::after(1h));
          } catch (const weft::Cancelled& e) {
            has_no_value(e);
            throw;
          }
        };
        weft::Group g;
        g.start(waits(w, v));
        for (int i = 0; i < 3; ++i) co_await weft::yield();
        g.cancel();
        co_await g.wait();
        break;
      }
      case Way::stopped: {
        auto waits = [](weft::Writer<U, P>& to, U& value) -> Process {
          co_await weft::select(weft::out(to, std::move(value)), weft::after(1h));
        };
        weft::Group g;
        g.start(waits(w, v));
        g.cancel();
        co_await g.wait();
        break;
      }
      case Way::loud:
        r.retire();
        co_await weft::select(weft::out(w, std::move(v)).ends(), stop);
        break;
      case Way::loud_later:
        later([&] { r.retire(); });
        co_await weft::select(weft::out(w, std::move(v)), stop).ends();
        break;
      case Way::all_retired:
        later([&] { r.retire(); });
        co_await weft::select(weft::out(w, std::move(v)), weft::after(1h));
        break;
      case Way::poisoned:
        c.poison();
        co_await weft::select(weft::out(w, std::move(v)), weft::after(1h));
        break;
      case Way::poisoned_later:
        later([&] { c.poison(); });
        co_await weft::select(weft::out(w, std::move(v)), weft::after(1h));
        break;
      case Way::died:
        later([&] { r.die(); });
        co_await weft::select(weft::out(w, std::move(v)), weft::after(1h));
        break;
      case Way::another_poisoned:
        d.poison();
        co_await weft::select(weft::out(w, std::move(v)), stop);
        break;
      case Way::another_raises: co_await raises<P>(stops, v, w); break;
      case Way::off:
        CHOSEN(weft::select(weft::out(w, std::move(v)).when(false), weft::skip()), 1);
        break;
      case Way::none_on: co_await weft::select(weft::out(w, std::move(v)).when(false)); break;
      case Way::both_ends: co_await weft::select(weft::out(w, std::move(v)), r); break;
      case Way::closed:
        w.retire();
        co_await weft::select(weft::out(w, std::move(v)), stop);
        break;
      case Way::last: break;
    }
  } catch (const weft::Error& e) {
    ++thrown;
    has_no_value(e);
  }
  const bool throws = way == Way::limit || (way >= Way::loud && way <= Way::another_poisoned) ||
                      way >= Way::none_on;
  CHECK_MESSAGE(thrown == throws, "way ", static_cast<int>(way));
  co_await meanwhile.wait();
  CHECK(v.get() == there);
}

template <class P>
Process offers_in_every_way() {
  for (int way = 0; way < static_cast<int>(Way::last); ++way) {
    auto v = std::make_unique<int>(7);
    co_await offers<P>(static_cast<Way>(way), v);
    CHECK_MESSAGE(v, "way ", way);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("rule 5.10: an offered value that was not chosen is where it was", P, POLICIES) {
  weft::run(virtually, offers_in_every_way<P>());
}
TEST_CASE("rule 5.10: so it is on several cores") {
  weft::run({.cores = 2},
            weft::par(offers_in_every_way<weft::Shared>(), offers_in_every_way<weft::Shared>()));
}
TEST_CASE("rule 5.10: and in a thread") {
  weft::Channel<U> c;
  weft::Channel<int> d{weft::buffer(1)};
  auto r = c.reader();
  auto stop = d.reader();
  weft::run(weft::thread([&, w = c.writer(), stops = d.writer()]() mutable {
    auto v = std::make_unique<int>(7);
    CHECK(weft::select(weft::out(w, std::move(v)), weft::after(1ms))().index == 1);
    CHECK(v);
    stops(1);
    CHECK(weft::select(weft::out(w, std::move(v)), stop)().index == 1);
    CHECK(v);
    {
      weft::Timeout limit(1ms);
      CHECK_THROWS_AS(weft::select(weft::out(w, std::move(v)), stop)(), weft::TimedOut);
      CHECK(v);
    }
    stops.poison();
    CHECK_THROWS_AS(weft::select(weft::out(w, std::move(v)), stop)(), weft::Poisoned);
    CHECK(v);
    r.retire();
    CHECK_THROWS_AS(weft::select(weft::out(w, std::move(v)), weft::after(1h))(), weft::Retired);
    REQUIRE(v);
    CHECK(*v == 7);
  }));
}
TEST_CASE("rule 5.10: and at a one-to-one channel (rule 1.8)") {
  weft::Channel<U, weft::OneToOne> c{weft::buffer(1)};
  auto p = [](weft::Writer<U, weft::OneToOne> w, weft::Reader<U, weft::OneToOne> r) -> Process {
    auto v = std::make_unique<int>(7);
    CHOSEN(weft::select(weft::out(w, std::move(v)), weft::after(1ms)), 0);
    CHECK_FALSE(v);
    v = std::make_unique<int>(8);
    CHOSEN(weft::select(weft::out(w, std::move(v)), weft::after(1ms)), 1);  // The buffer is full.
    CHECK(v);
    r.retire();
    CHECK_THROWS_AS(co_await weft::select(weft::out(w, std::move(v)), weft::after(1ms)),
                    weft::Retired);
    REQUIRE(v);
    CHECK(*v == 8);
  };
  weft::run(virtually, p(c.writer(), c.reader()));
}

TEST_CASE_TEMPLATE("rule 5.10: the value of the guard that is chosen has gone, no other's", P,
                   POLICIES) {
  for (const auto& options : {weft::ChannelOptions{}, weft::ChannelOptions(weft::buffer(1))}) {
    weft::Channel<U, P> a{options}, b{options};
    auto p = [](weft::Writer<U, P> x, weft::Writer<U, P> y, int& sent) -> Process {
      auto v = std::make_unique<int>(1), u = std::make_unique<int>(2);
      for (int i = 0; i < 100; ++i) {
        auto c = co_await weft::select(weft::out(x, std::move(v)), weft::out(y, std::move(u)));
        U& gone = c.index == 0 ? v : u;
        U& kept = c.index == 0 ? u : v;
        CHECK_FALSE(gone);
        REQUIRE(kept);
        gone = std::make_unique<int>(c.index + 1);
        sent += c.index + 1;
      }
    };
    auto q = [](weft::Reader<U, P> x, weft::Reader<U, P> y, int& came) -> Process {
      for (;;) {
        auto c = co_await weft::select(x, y);
        CHECK(**c.value == c.index + 1);
        came += **c.value;
      }
    };
    int sent = 0, came = 0;
    weft::run(p(a.writer(), b.writer(), sent), q(a.reader(), b.reader(), came));
    CHECK(sent > 0);
    CHECK(sent == came);
  }
}

TEST_CASE_TEMPLATE("rule 1.4: an offered value that the buffer drops has gone too", P, POLICIES) {
  for (const auto overflow :
       {weft::Overflow::drop_newest, weft::Overflow::drop_oldest, weft::Overflow::drop_last}) {
    weft::Channel<Token, P> c{weft::buffer(1, overflow)};
    auto p = [](weft::Channel<Token, P> all) -> Process {
      auto w = all.writer();
      weft::Channel<weft::Writer<int>> ends{weft::buffer(1, weft::Overflow::drop_newest)};
      weft::Channel<int> inner;
      auto in = inner.reader();
      auto to = ends.writer();
      for (int i = 0; i < 3; ++i) {
        Token t(i);
        CHOSEN(weft::select(weft::out(w, std::move(t)), weft::skip()), 0);
        auto end = inner.writer();
        CHOSEN(weft::select(weft::out(to, std::move(end)), weft::skip()), 0);
        CHECK_FALSE(end);
      }
    };
    {
      const auto keeps = c.reader();
      weft::run(p(c));
    }
    CHECK(c.dropped() == 3);
  }
  CHECK(Token::alive == 0);
}

TEST_CASE("rule 5.10: an end that was offered and not chosen is open (rule 2.4)") {
  weft::Channel<weft::Writer<int>> c;
  auto p = [](weft::Writer<weft::Writer<int>> w) -> Process {
    weft::Channel<int> inner;
    auto in = inner.reader();
    auto end = inner.writer();
    CHOSEN(weft::select(weft::out(w, std::move(end)), weft::after(1ms)), 1);
    CHECK(end);
    auto reads_one = [](weft::Reader<int> r) -> Process { CHECK(co_await r.read() == 5); };
    auto writes_one = [](weft::Writer<int> x) -> Process { co_await x.write(5); };
    co_await weft::par(reads_one(std::move(in)), writes_one(std::move(end)));
  };
  const auto r = c.reader();
  weft::run(virtually, p(c.writer()));
}

TEST_CASE("rule 5.10: what is copied or converted is a value of the select's own") {
  weft::Channel<std::string> c;
  auto p = [](weft::Writer<std::string> w) -> Process {
    const std::string text = "a text that is too long to lie in the string itself";
    std::string own = text;
    CHOSEN(weft::select(weft::out(w, own), weft::skip()), 1);
    CHOSEN(weft::select(weft::out(w, "converted"), weft::skip()), 1);
    CHOSEN(weft::select(weft::out(w, text + " and more"), weft::skip()), 1);
    CHECK(own == text);
    auto kept = weft::out(w, own);  // `kept` may outlive this statement, since it holds a copy.
    CHOSEN(weft::select(std::move(kept), weft::skip()), 1);
    try {
      co_await weft::select(weft::out(w, own).ends(), weft::after(1h));
      FAIL("nothing was thrown");
    } catch (const weft::Retired& e) {
      REQUIRE(e.value<std::string>());
      CHECK(*e.value<std::string>() == text);
    }
    CHECK(own == text);
  };
  auto leaves = [](weft::Reader<std::string>) -> Process {
    for (int i = 0; i < 9; ++i) co_await weft::yield();
  };
  weft::run(virtually, weft::par(p(c.writer()), leaves(c.reader())));
}

// --- a list of guards ----------------------------------------------------------------------------

TEST_CASE_TEMPLATE("rule 5.10: in a list of guards the values are the list's", P, POLICIES) {
  weft::Channel<U, P> a, b;
  auto value = [](weft::AnyGuard<U, P>& g) -> U& { return std::get<weft::Out<U, P>>(g).value; };
  auto p = [](weft::Writer<U, P> x, weft::Writer<U, P> y, auto value_of) -> Process {
    std::vector<weft::AnyGuard<U, P>> gs;
    gs.push_back(weft::out(x, std::make_unique<int>(1)));
    gs.push_back(weft::out(y, std::make_unique<int>(2)).ends());
    gs.emplace_back(weft::after(1ms));
    CHOSEN((weft::select_among<U, P>(gs)), 2);
    CHECK(value_of(gs[0]));
    CHECK(value_of(gs[1]));
    try {
      weft::Timeout limit(1us);
      co_await weft::select_among<U, P>(gs);
      FAIL("nothing was thrown");
    } catch (const weft::TimedOut&) {
    }
    CHECK(value_of(gs[0]));
    CHECK(value_of(gs[1]));
    co_await weft::sleep(10ms);  // Now another process reads a, and no process can read b any more.
    CHOSEN((weft::select_among<U, P>(gs, weft::Mode::priority)), 0);
    CHECK_FALSE(value_of(gs[0]));
    CHECK(value_of(gs[1]));
    CHECK_THROWS_WITH_AS((co_await weft::select_among<U, P>(gs)),
                         doctest::Contains("was awaited already"), weft::BadUse);
    gs[0] = weft::out(x, std::make_unique<int>(3));
    co_await weft::sleep(10ms);
    try {
      co_await weft::select_among<U, P>(gs, weft::Mode::priority);
      FAIL("nothing was thrown");
    } catch (const weft::Retired& e) {
      CHECK(e.guard == 1);
      CHECK_FALSE(e.template value<U>());
    }
    REQUIRE(value_of(gs[0]));
    CHECK(*value_of(gs[0]) == 3);
    REQUIRE(value_of(gs[1]));
    CHECK(*value_of(gs[1]) == 2);
  };
  auto q = [](weft::Reader<U, P> x, weft::Reader<U, P> y) -> Process {
    co_await weft::sleep(5ms);
    CHECK(*co_await x.read() == 1);
    y.retire();
    co_await weft::sleep(1s);
  };
  weft::run(virtually, weft::par(p(a.writer(), b.writer(), value), q(a.reader(), b.reader())));
}

// --- several at once -----------------------------------------------------------------------------

TEST_CASE("rule 7.10: what parallel writes have not written is in their exception") {
  weft::Channel<U> a, b;
  auto p = [](weft::Writer<U> x, weft::Writer<U> y) -> Process {
    const auto holds = [](const weft::Error& e) {
      const auto* left = e.value<std::vector<std::optional<U>>>();
      REQUIRE(left);
      REQUIRE(left->size() == 2);
      CHECK_FALSE((*left)[0]);
      REQUIRE((*left)[1]);
      CHECK(**(*left)[1] == 2);
    };
    auto v = std::make_unique<int>(1), u = std::make_unique<int>(2);
    try {
      weft::Timeout limit(1ms);
      co_await weft::par_write(x, std::move(v), y, std::move(u));
      FAIL("nothing was thrown");
    } catch (const weft::TimedOut& e) {
      holds(e);
    }
    v = std::make_unique<int>(1), u = std::make_unique<int>(2);
    try {
      co_await weft::par_write(x, std::move(v), y, std::move(u));
      FAIL("nothing was thrown");
    } catch (const weft::Retired& e) {
      holds(e);
    }
  };
  auto q = [](weft::Reader<U> x, weft::Reader<U> y) -> Process {
    for (int i = 0; i < 2; ++i) CHECK(*co_await x.read() == 1);
    y.retire();
  };
  weft::run(virtually, weft::par(p(a.writer(), b.writer()), q(a.reader(), b.reader())));
}
