// Tests rule 1.8: the one-to-one buffer, a ring without a lock. The other rules of Part I hold for
// it.
#include <memory>

#include "hosted.hpp"

using namespace test;
using weft::OneToOne;
using In = weft::Reader<int, OneToOne>;
using Out = weft::Writer<int, OneToOne>;
using Ring = weft::Channel<int, OneToOne>;

namespace {
template <class R>
concept CanExtend = requires(const R& r) {
  r.extended();
};
static_assert(!std::is_copy_constructible_v<In> && !std::is_copy_constructible_v<Out>);
static_assert(std::is_nothrow_move_constructible_v<In>);
static_assert(!CanExtend<In> && CanExtend<weft::Reader<int>>);

Process send(Out out, int from, int to) {
  for (int i = from; i < to; ++i) co_await out.write(i);
}
weft::ProcessOf<long> sum(In in) {
  long s = 0;
  while (auto v = co_await in.next()) s += *v;
  co_return s;
}
}  // namespace

TEST_CASE("rules 1.3, 3.1: one-to-one keeps order, drains and ends") {
  for (std::uint32_t capacity : {1u, 2u, 3u, 64u}) {
    Ring c{weft::buffer(capacity)};
    std::vector<int> got;
    auto collect = [](In in, std::vector<int>& l) -> Process {
      while (auto v = co_await in.next()) l.push_back(*v);
    };
    weft::run(send(c.writer(), 0, 100), collect(c.reader(), got));
    REQUIRE(got.size() == 100);
    for (int i = 0; i < 100; ++i) CHECK(got[static_cast<std::size_t>(i)] == i);
    CHECK(c.transfers() == 100);
    CHECK(c.dropped() == 0);
  }
}

TEST_CASE(
    "rule 1.8: a second end is bad use, and so is a one-to-one channel that is no blocking "
    "buffer") {
  Ring c{weft::buffer(1)};
  const In in = c.reader();
  const Out out = c.writer();
  CHECK_THROWS_AS(c.reader(), weft::BadUse);
  CHECK_THROWS_AS(c.writer(), weft::BadUse);
  CHECK_THROWS_AS(Ring(), weft::BadUse);
  CHECK_THROWS_AS(Ring(weft::buffer(4, weft::Overflow::drop_oldest)), weft::BadUse);
  CHECK_THROWS_AS(Ring(weft::buffer(0, weft::Overflow::unbounded)), weft::BadUse);
}

TEST_CASE("rule 2.5: its side gone, a new end raises") {
  Ring c{weft::buffer(1)};
  In in = c.reader();
  in.retire();
  CHECK_THROWS_AS(c.writer(), weft::Retired);
  CHECK_THROWS_AS(c.reader(), weft::Retired);
}

TEST_CASE("rules 1.3, 8.4: threads at both sides") {
  for (std::uint32_t capacity : {1u, 7u, 256u}) {
    Ring c{weft::buffer(capacity)};
    long s = 0;
    weft::run(weft::thread([out = c.writer()] {
                for (int i = 0; i < 5000; ++i) out(i);
              }),
              weft::thread([in = c.reader(), &s] {
                for (int v : in) s += v;
              }));
    CHECK(s == 5000L * 4999 / 2);
  }
}

TEST_CASE("a thread writes, a coroutine reads") {
  Ring c{weft::buffer(4)};
  auto [s, none] = weft::run(sum(c.reader()), weft::thread([out = c.writer()] {
                               for (int i = 0; i < 2000; ++i) out(i);
                             }));
  CHECK(s == 2000L * 1999 / 2);
}

TEST_CASE(
    "rules 3.3, 4.2: what nobody reads is destroyed and counted, a writer gets its value back") {
  weft::Channel<std::shared_ptr<int>, OneToOne> c{weft::buffer(2)};
  auto token = std::make_shared<int>(1);
  auto writer = [](weft::Writer<std::shared_ptr<int>, OneToOne> out, std::shared_ptr<int> v,
                   bool poison) -> Process {
    try {
      for (;;) co_await out.write(v);
    } catch (const weft::Poisoned& e) {
      CHECK(poison);
      CHECK(e.value<std::shared_ptr<int>>() != nullptr);
    } catch (const weft::Retired& e) {
      CHECK(!poison);
      CHECK(e.value<std::shared_ptr<int>>() != nullptr);
    }
  };
  SUBCASE("the reader retires") {
    auto reader = [](weft::Reader<std::shared_ptr<int>, OneToOne> in) -> Process {
      co_await in.read();
    };
    weft::run(writer(c.writer(), token, false), reader(c.reader()));
  }
  SUBCASE("the reader poisons") {
    auto reader = [](weft::Reader<std::shared_ptr<int>, OneToOne> in) -> Process {
      co_await in.read();
      in.poison();
      try {
        co_await in.read();
        CHECK(false);
      } catch (const weft::Poisoned&) {
      }
    };
    weft::run(writer(c.writer(), token, true), reader(c.reader()));
  }
  CHECK(c.transfers() == 1);
  CHECK(c.dropped() >= 1);
  CHECK(token.use_count() == 1);
}

TEST_CASE("rule 2.4: ends move through it; an end that it drops is retired") {
  weft::Channel<weft::Writer<int>, OneToOne> c{weft::buffer(2)};
  weft::Channel<int> d;
  auto giver = [](weft::Writer<weft::Writer<int>, OneToOne> out, weft::Writer<int> w) -> Process {
    co_await out.write(std::move(w));
  };
  auto waiter = [](weft::Reader<int> in) -> Process { CHECK(!co_await in.next()); };
  auto closer = [](weft::Reader<weft::Writer<int>, OneToOne> in) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    in.retire();
  };
  weft::run(giver(c.writer(), d.writer()), waiter(d.reader()), closer(c.reader()));
  CHECK(c.dropped() == 1);
}

TEST_CASE("rules 5.1, 5.9: its ends are guards, of a select and of a standing alternative") {
  for (const bool standing : {false, true}) {
    Ring a{weft::buffer(1)}, b{weft::buffer(2)};
    auto reader = [](In x, In y, bool stand) -> weft::ProcessOf<long> {
      long s = 0;
      std::vector<In> ins;
      ins.push_back(std::move(x));
      ins.push_back(std::move(y));
      std::size_t open = 2;
      if (stand) {
        weft::StandingAlternative alternative(ins);
        while (open > 0) {
          try {
            auto c = co_await alternative.select();
            s += *c.value;
          } catch (const weft::Retired& e) {
            alternative.enable(static_cast<std::size_t>(e.guard), false);
            --open;
          }
        }
      } else {
        std::array<bool, 2> live{true, true};
        while (open > 0) {
          try {
            auto c = co_await weft::select(weft::in(ins[0]).when(live[0]),
                                           weft::in(ins[1]).when(live[1]));
            s += *c.value;
          } catch (const weft::Retired& e) {
            live[static_cast<std::size_t>(e.guard)] = false;
            --open;
          }
        }
      }
      co_return s;
    };
    auto [s, n1, n2] = weft::run(reader(a.reader(), b.reader(), standing), send(a.writer(), 0, 50),
                                 send(b.writer(), 100, 150));
    CHECK(s == 50L * 49 / 2 + 50L * 249 / 2);
  }
}

TEST_CASE("rule 5.2: an output guard waits for room") {
  Ring a{weft::buffer(1)};
  auto writer = [](Out out) -> Process {
    for (int i = 0; i < 20; ++i) {
      auto c = co_await weft::select(weft::out(out, i));
      CHECK(c.index == 0);
    }
  };
  auto [s, none] = weft::run(sum(a.reader()), writer(a.writer()));
  CHECK(s == 190);
}

TEST_CASE("rules 6.2, 10.2: a waiting operation is cancelled whole, and named in a report") {
  Ring a{weft::buffer(1)};
  auto writer = [](Out out, In) -> Process {
    co_await out.write(1);
    co_await out.write(2);
  };
  bool reported = false;
  try {
    weft::run(writer(a.writer(), a.reader()));
  } catch (const weft::Deadlock& d) {
    reported = std::string(d.what()).find("write") != std::string::npos;
  }
  CHECK(reported);
}
