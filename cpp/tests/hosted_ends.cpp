// Tests rules 2, 3 and 4: ends, the quiet end, poison and death.
#include "hosted.hpp"

using namespace test;

TEST_CASE_TEMPLATE("rule 2.1: ends are counted; copies count, moves do not", P, POLICIES) {
  weft::Channel<int, P> c;
  auto w = -c;
  auto r = c.reader();
  CHECK(c.core()->reader_ends() == 1);
  {
    auto copy = r;
    CHECK(c.core()->reader_ends() == 2);
    auto moved = std::move(copy);
    CHECK(c.core()->reader_ends() == 2);
    CHECK_FALSE(copy);
    CHECK(moved);
  }
  CHECK(c.core()->reader_ends() == 1);
  r.retire();
  CHECK(c.core()->reader_ends() == 0);
  r.retire();  // The end is already closed.
  CHECK(c.core()->reader_ends() == 0);
  auto v = w;
  v = std::move(w);
  CHECK(c.core()->writer_ends() == 1);
}

TEST_CASE_TEMPLATE("rule 2.3: a network closes down by itself", P, POLICIES) {
  weft::Channel<int, P> a, b;
  std::vector<int> got;
  auto inc = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    while (auto v = co_await r.next()) co_await w.write(*v + 1);
  };
  weft::run(send_all<P>(a.writer(), {1, 2, 3}), inc(a.reader(), b.writer()),
            collect<P>(b.reader(), got));
  CHECK(got == std::vector<int>{2, 3, 4});
}

TEST_CASE_TEMPLATE("rule 2.3: a process that is never started lets go of its ends", P, POLICIES) {
  weft::Channel<int, P> c;
  auto keep = c.reader();
  { auto p = send_all<P>(c.writer(), {1}); }
  std::vector<int> got;
  weft::run(collect<P>(std::move(keep), got));
  CHECK(got.empty());
}

TEST_CASE_TEMPLATE("rule 2.4: an end written to a channel moves", P, POLICIES) {
  using End = weft::Writer<int, P>;
  weft::Channel<End, P> carrier;
  weft::Channel<int, P> c;
  std::vector<int> got;
  auto giver = [](weft::Writer<End, P> to, End w) -> Process {
    co_await w.write(1);
    co_await to.write(std::move(w));
    CHECK_FALSE(w);
    CHECK_THROWS_AS(co_await w.write(2), weft::BadUse);
  };
  auto taker = [](weft::Reader<End, P> from) -> Process {
    End w = co_await from.read();
    co_await w.write(3);
  };
  weft::run(giver(carrier.writer(), c.writer()), taker(carrier.reader()),
            collect<P>(c.reader(), got));
  CHECK(got == std::vector<int>{1, 3});
}

TEST_CASE_TEMPLATE("rule 2.4: a write that does not commit gives the end back", P, POLICIES) {
  using End = weft::Writer<int, P>;
  weft::Channel<End, P> carrier;
  weft::Channel<int, P> c;
  auto carry = carrier.writer();
  carrier.reader().retire();
  std::vector<int> got;
  auto giver = [](weft::Writer<End, P> to, End w) -> Process {
    try {
      co_await to.write(std::move(w));
    } catch (const weft::Retired& e) {
      REQUIRE(e.value<End>());
      w = std::move(*e.value<End>());
    }
    co_await w.write(5);
  };
  weft::run(giver(std::move(carry), c.writer()), collect<P>(c.reader(), got));
  CHECK(got == std::vector<int>{5});
}

TEST_CASE_TEMPLATE("rule 2.4: an end dropped undelivered is retired: overflow, retirement, poison",
                   P, POLICIES) {
  using End = weft::Writer<int, P>;
  for (int how = 0; how < 3; ++how) {
    weft::Channel<End, P> carrier{
        weft::buffer(1, how == 0 ? weft::Overflow::drop_oldest : weft::Overflow::block)};
    weft::Channel<int, P> c, d;
    auto in = carrier.reader();
    auto out = c.reader();
    auto giver = [](weft::Writer<End, P> to, End x, End y, int h) -> Process {
      co_await to.write(std::move(x));
      if (h == 0) co_await to.write(std::move(y));
    };
    weft::run(giver(carrier.writer(), c.writer(), d.writer(), how));
    if (how == 1) in.retire();
    if (how == 2) in.poison();
    // The channel is retired, not poisoned and not open: its reader ends quietly.
    std::vector<int> got;
    weft::run(collect<P>(std::move(out), got));
    CHECK(got.empty());
    CHECK(c.core()->poison_strength() == 0);
  }
}

TEST_CASE_TEMPLATE(
    "rules 2.4, 4.3: an end in a buffer is retired, also when the buffer goes with a poisoned "
    "process",
    P, POLICIES) {
  using End = weft::Writer<int, P>;
  weft::Channel<int, P> poisoned, c;
  auto in = c.reader();
  auto p = [](weft::Reader<int, P> r, weft::Reader<End, P>) -> Process { co_await r.read(); };
  {
    weft::Channel<End, P> carrier{weft::buffer(1)};
    auto q = [](weft::Writer<End, P> to, End x) -> Process { co_await to.write(std::move(x)); };
    auto r = carrier.reader();
    weft::run(q(carrier.writer(), c.writer()));
    auto dying = p(poisoned.reader(), std::move(r));
    poisoned.poison();
    CHECK_THROWS_AS(weft::run(std::move(dying)), weft::Poisoned);
  }
  std::vector<int> got;
  weft::run(collect<P>(std::move(in), got));
  CHECK(c.core()->poison_strength() == 0);
}

TEST_CASE_TEMPLATE("rule 2.5: a side that has ended is ended for good", P, POLICIES) {
  weft::Channel<int, P> c;
  auto r = c.reader();
  c.writer().retire();
  CHECK_THROWS_AS(c.writer(), weft::Retired);
  CHECK_THROWS_AS(c.reader(), weft::Retired);  // A read would raise the same error.
  CHECK_THROWS_AS(weft::run([](weft::Reader<int, P> x) -> Process {
                    CHECK_THROWS_AS(co_await x.read(), weft::Retired);
                    throw 1;
                  }(r)),
                  int);
  r.retire();
  CHECK_THROWS_AS(c.reader(), weft::Retired);

  weft::Channel<int, P> d;
  d.poison(3);
  CHECK_THROWS_AS(d.reader(), weft::Poisoned);
  CHECK_THROWS_AS(d.writer(), weft::Poisoned);

  weft::Channel<int, P> e;
  e.writer().die();
  CHECK_THROWS_AS(e.writer(), weft::PeerDied);
}

TEST_CASE_TEMPLATE("rule 2.6: an end keeps its channel alive", P, POLICIES) {
  auto c = std::make_unique<weft::Channel<int, P>>(weft::buffer(1));
  auto r = c->reader();
  auto w = c->writer();
  c.reset();
  std::vector<int> got;
  weft::run(send_all<P>(std::move(w), {4, 5}), collect<P>(std::move(r), got));
  CHECK(got == std::vector<int>{4, 5});
}

// Memory that is kept for a party that still waits is released only when the program ends.
#if defined(__SANITIZE_ADDRESS__)
extern "C" void __lsan_disable();
extern "C" void __lsan_enable();
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
extern "C" void __lsan_disable();
extern "C" void __lsan_enable();
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
template <class C, class... Args>
std::unique_ptr<C> never_given_back(Args... args) {
#if defined(__SANITIZE_ADDRESS__)
  __lsan_disable();
#endif
  auto c = std::make_unique<C>(args...);
#if defined(__SANITIZE_ADDRESS__)
  __lsan_enable();
#endif
  return c;
}

TEST_CASE_TEMPLATE("rules 3.2, 11.3: who waits by an end that another process closes", P,
                   POLICIES) {
  using Ends = std::pair<weft::Reader<int, P>, weft::Writer<int, P>>;
  auto reader = [](Ends& shared, std::string& how) -> Process {
    try {
      co_await shared.first.read();
    } catch (const weft::Retired& e) {
      how = e.what();
    }
  };
  auto closes = [](Ends& shared, std::unique_ptr<weft::Channel<int, P>> c) -> Process {
    const void* const was = c->core();
    c.reset();
    shared.first.retire();  // The reader that waits counts as an end.
    shared.second.retire();
    const weft::Channel<int, P> another;
    CHECK(another.core() != was);
    co_return;
  };
  auto c = never_given_back<weft::Channel<int, P>>();
  Ends shared{c->reader(), c->writer()};
  std::string how;
  weft::run(reader(shared, how), closes(shared, std::move(c)));
  CHECK(how.find("it has retired") != std::string::npos);
}

TEST_CASE("rule 11.3: who waits at a barrier whose last handle another process drops") {
  auto waits = [](std::unique_ptr<weft::Barrier>& b) -> Process { co_await b->sync(); };
  auto drops = [](std::unique_ptr<weft::Barrier>& b) -> Process {
    b.reset();
    co_return;
  };
  auto b = never_given_back<weft::Barrier>(2u);
  CHECK_THROWS_WITH_AS(weft::run(waits(b), drops(b)), doctest::Contains("sync"), weft::Deadlock);
}

TEST_CASE_TEMPLATE(
    "rule 3.1: readers drain what was committed and what blocked writers hold, then Retired", P,
    POLICIES) {
  weft::Channel<int, P> c{weft::buffer(1)};
  std::vector<int> got;
  auto reader = [](weft::Reader<int, P> r, std::vector<int>& g) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    g.push_back(co_await r.read());
    g.push_back(co_await r.read());
    CHECK_THROWS_AS(co_await r.read(), weft::Retired);
    CHECK_THROWS_AS(co_await r.read(), weft::Retired);
  };
  weft::run(send_all<P>(c.writer(), {1, 2}), reader(c.reader(), got));
  CHECK(got == std::vector<int>{1, 2});
}

TEST_CASE_TEMPLATE("rule 3.2: a blocked party counts as an end", P, POLICIES) {
  // A write that waits when its end is closed still delivers; in this test another process closes
  // the end.
  weft::Channel<int, P> c;
  auto w = std::make_unique<weft::Writer<int, P>>(c.writer());
  auto writer = [](weft::Writer<int, P>& x) -> Process { co_await x.write(9); };
  auto closer = [](weft::Writer<int, P>& x, weft::Reader<int, P> r) -> Process {
    co_await weft::yield();
    x.retire();
    CHECK(co_await r.read() == 9);
    CHECK_THROWS_AS(co_await r.read(), weft::Retired);
  };
  weft::run(writer(*w), closer(*w, c.reader()));

  weft::Channel<int, P> d;
  auto r = std::make_unique<weft::Reader<int, P>>(d.reader());
  auto reader = [](weft::Reader<int, P>& x) -> Process { CHECK(co_await x.read() == 8); };
  auto other = [](weft::Reader<int, P>& x, weft::Writer<int, P> y) -> Process {
    co_await weft::yield();
    x.retire();
    co_await y.write(8);
    CHECK_THROWS_AS(co_await y.write(9), weft::Retired);
  };
  weft::run(reader(*r), other(*r, d.writer()));
}

TEST_CASE_TEMPLATE(
    "rule 3.3: when the last reader goes, buffered values are dropped and writers get theirs back",
    P, POLICIES) {
  weft::Channel<Token, P> c{weft::buffer(2)};
  auto r = c.reader();
  auto writer = [](weft::Writer<Token, P> w) -> Process {
    for (int i = 0; i < 2; ++i) co_await w.write(Token(i));
    for (int i = 2; i < 4; ++i) {  // The first write waits, the second completes immediately.
      try {
        co_await w.write(Token(i));
        CHECK(false);
      } catch (const weft::Retired& e) {
        REQUIRE(e.value<Token>());
        CHECK(e.value<Token>()->n == i);
        CHECK(e.value<int>() == nullptr);
      }
    }
  };
  auto closer = [](weft::Reader<Token, P> x) -> Process {
    co_await weft::yield();
    x.retire();
  };
  weft::run(writer(c.writer()), closer(std::move(r)));
  CHECK(c.dropped() == 2);
  CHECK(Token::alive == 0);
}

TEST_CASE_TEMPLATE("rule 3.4: iteration ends quietly on Retired and only on it", P, POLICIES) {
  weft::Channel<int, P> poisoned, died;
  auto r = poisoned.reader(), s = died.reader();
  poisoned.poison(2);
  died.writer().die();
  auto p = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    try {
      while (co_await x.next()) CHECK(false);
      CHECK(false);
    } catch (const weft::Poisoned& e) {
      CHECK(e.strength == 2);
      CHECK(e.guard == -1);
    }
    CHECK_THROWS_AS(co_await y.next(), weft::PeerDied);
  };
  weft::run(p(std::move(r), std::move(s)));
}

TEST_CASE_TEMPLATE("rule 3.5: a process that Retired leaves has ended quietly, its group goes on",
                   P, POLICIES) {
  weft::Channel<int, P> c;
  auto in = c.reader();
  c.writer().retire();
  bool went_on = false;
  auto p = [](weft::Reader<int, P> r) -> Process { co_await r.read(); };
  auto q = [](bool& b) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    b = true;
  };
  weft::run(p(std::move(in)), q(went_on));
  CHECK(went_on);
}

TEST_CASE_TEMPLATE("rule 4.1: poison is monotone and idempotent", P, POLICIES) {
  weft::Channel<int, P> c;
  auto r = c.reader();
  auto w = c.writer();
  r.poison(2);
  CHECK(c.core()->poison_strength() == 2);
  w.poison(1);
  CHECK(c.core()->poison_strength() == 2);
  c.poison(5);
  CHECK(c.core()->poison_strength() == 5);
}

TEST_CASE_TEMPLATE(
    "rule 4.2: waiting parties get Poisoned, buffered values are dropped, poison outranks "
    "retirement",
    P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(1)};
  int caught = 0;
  auto writer = [](weft::Writer<int, P> w, int& n) -> Process {
    co_await w.write(1);
    try {
      co_await w.write(2);
    } catch (const weft::Poisoned& e) {
      CHECK(e.strength == 3);
      REQUIRE(e.value<int>());
      CHECK(*e.value<int>() == 2);
      ++n;
    }
  };
  auto poisoner = [](weft::Reader<int, P> r, int& n) -> Process {
    co_await weft::yield();
    r.poison(3);
    co_await weft::yield();
    try {
      co_await r.read();
    } catch (const weft::Poisoned&) {
      ++n;
    }
  };
  weft::run(writer(c.writer(), caught), poisoner(c.reader(), caught));
  CHECK(caught == 2);
  CHECK(c.dropped() == 1);

  weft::Channel<int, P> d;
  auto reader = [](weft::Reader<int, P> r, int& n) -> Process {
    try {
      co_await r.read();
    } catch (const weft::Poisoned& e) {
      CHECK(e.strength == 1);
      ++n;
    }
  };
  auto end = [](weft::Writer<int, P> w) -> Process {
    co_await weft::yield();
    w.poison();
  };
  weft::run(reader(d.reader(), caught), reader(d.reader(), caught), end(d.writer()));
  CHECK(caught == 4);
}

TEST_CASE_TEMPLATE(
    "rule 4.3: poison spreads through arguments, locals and containers, with its strength", P,
    POLICIES) {
  weft::Channel<int, P> first, argument, local, listed;
  auto source = first.reader();
  first.poison(4);
  auto p = [](weft::Reader<int, P> r, weft::Writer<int, P>, std::vector<weft::Writer<int, P>>,
              weft::Channel<int, P> c) -> Process {
    auto w = c.writer();
    co_await r.read();
  };
  std::vector<weft::Writer<int, P>> ws;
  ws.push_back(listed.writer());
  weft::run(p(std::move(source), argument.writer(), std::move(ws), local),
            []() -> Process { co_return; }());
  CHECK(argument.core()->poison_strength() == 4);
  CHECK(local.core()->poison_strength() == 4);
  CHECK(listed.core()->poison_strength() == 4);
}

TEST_CASE_TEMPLATE("rule 4.3: a chain of processes comes down; one that catches stops the spread",
                   P, POLICIES) {
  weft::Channel<int, P> a, b, c, d;
  auto pass = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    for (;;) co_await w.write(co_await r.read());
  };
  auto guarded = [](weft::Reader<int, P> r, weft::Writer<int, P> w) -> Process {
    try {
      for (;;) co_await w.write(co_await r.read());
    } catch (const weft::Poisoned&) {
    }
  };
  auto poisoner = [](weft::Writer<int, P> w) -> Process {
    co_await w.write(1);
    w.poison();
  };
  std::vector<int> got;
  weft::run(poisoner(a.writer()), pass(a.reader(), b.writer()), pass(b.reader(), c.writer()),
            guarded(c.reader(), d.writer()), collect<P>(d.reader(), got));
  CHECK(b.core()->poison_strength() == 1);
  CHECK(c.core()->poison_strength() == 1);
  CHECK(d.core()->poison_strength() == 0);
}

TEST_CASE_TEMPLATE(
    "rules 4.3, 4.6: after a caught poison another exception retires, it does not poison", P,
    POLICIES) {
  weft::Channel<int, P> first, held;
  auto r = first.reader();
  first.poison();
  auto p = [](weft::Reader<int, P> x, weft::Channel<int, P> c) -> Process {
    auto w = c.writer();
    try {
      co_await x.read();
    } catch (const weft::Poisoned&) {
    }
    throw std::runtime_error("other");
  };
  auto q = [](weft::Reader<int, P> x, weft::Channel<int, P> c) -> Process {
    auto w = c.writer();
    try {
      co_await x.read();
    } catch (const weft::Poisoned&) {
      throw std::runtime_error("in its place");
    }
  };
  CHECK_THROWS_AS(weft::run(p(r, held)), std::runtime_error);
  CHECK(held.core()->poison_strength() == 0);
  weft::Channel<int, P> again;
  CHECK_THROWS_AS(weft::run(q(r, again)), std::runtime_error);
  CHECK(again.core()->poison_strength() == 0);
}

TEST_CASE_TEMPLATE(
    "rules 4.3, 4.6: a poison that one process keeps does not spread by another one's exception, "
    "nor later by another of its own",
    P, POLICIES) {
  weft::Channel<int, P> first, theirs, own;
  auto r = first.reader();
  first.poison();
  std::exception_ptr kept;
  auto keeper = [](weft::Reader<int, P> x, weft::Channel<int, P> c,
                   std::exception_ptr& e) -> Process {
    auto w = c.writer();
    try {
      co_await x.read();
    } catch (const weft::Poisoned&) {
      e = std::current_exception();
    }
    co_await weft::yield();  // Meanwhile the other process fails.
    throw std::runtime_error("later");
  };
  auto other = [](weft::Channel<int, P> c) -> Process {
    auto w = c.writer();
    throw std::logic_error("other");
    co_return;
  };
  CHECK_THROWS(weft::run(weft::par(keeper(r, own, kept), other(theirs))));
  CHECK(kept);
  CHECK(theirs.core()->poison_strength() == 0);
  CHECK(own.core()->poison_strength() == 0);
}

TEST_CASE_TEMPLATE("rule 4.4: immunity", P, POLICIES) {
  weft::ChannelOptions o;
  o.immunity = 3;
  weft::Channel<int, P> c{o};
  c.poison(2);
  CHECK(c.core()->poison_strength() == 0);
  c.poison(3);
  CHECK(c.core()->poison_strength() == 3);
}

TEST_CASE_TEMPLATE("rule 4.5: death drains, then PeerDied, which is a failure", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2)};
  auto dying = [](weft::Writer<int, P> w) -> Process {
    co_await w.write(1);
    w.die();
  };
  auto reader = [](weft::Reader<int, P> r) -> Process {
    for (int i = 0; i < 2; ++i) co_await weft::yield();
    CHECK(co_await r.read() == 1);
    co_await r.next();
  };
  CHECK_THROWS_AS(weft::run(dying(c.writer()), reader(c.reader())), weft::PeerDied);

  weft::Channel<int, P> d;
  auto killed = [](weft::Reader<int, P> r) -> Process {
    co_await weft::yield();
    r.die();
  };
  auto writer = [](weft::Writer<int, P> w) -> Process {
    try {
      co_await w.write(6);
    } catch (const weft::PeerDied& e) {
      REQUIRE(e.value<int>());
      CHECK(*e.value<int>() == 6);
      throw;
    }
  };
  CHECK_THROWS_AS(weft::run(killed(d.reader()), writer(d.writer())), weft::PeerDied);
}

TEST_CASE_TEMPLATE("rule 4.6: a failed process retires its ends", P, POLICIES) {
  weft::Channel<int, P> c;
  auto r = c.reader();
  auto p = [](weft::Writer<int, P>) -> Process {
    co_await weft::yield();
    throw std::runtime_error("broken");
  };
  CHECK_THROWS_WITH(weft::run(p(c.writer())), "broken");
  std::vector<int> got;
  weft::run(collect<P>(r, got));
  CHECK(c.core()->poison_strength() == 0);
}
