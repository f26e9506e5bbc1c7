// Tests batch, rate_limit, keyed_pool and broadcast (rules 20.1 to 20.4), in virtual time: as
// coroutines on local and shared channels and on threads.
#include "plugnplay.hpp"

#include <map>

using namespace test;
namespace pnp = weft::plugnplay;

namespace {

using Timed = std::vector<std::pair<int, int>>;  // a time in ms, and a value

int in_ms() { return static_cast<int>(weft::now() / 1'000'000); }
template <class P>
Process at_times(weft::Writer<int, P> w, Timed values) {
  for (auto [t, v] : values) {
    co_await weft::sleep_until(t * 1'000'000LL);
    co_await w.write(v);
  }
}
template <class P>
Process stamps(weft::Reader<int, P> r, Timed* got, bool* cut_off = nullptr, int pause_us = 0) {
  try {
    while (auto v = co_await r.next()) {
      got->emplace_back(in_ms(), *v);
      if (pause_us) co_await weft::sleep(std::chrono::microseconds(pause_us));
    }
  } catch (const weft::Poisoned&) {
    if (cut_off) *cut_off = true;
  }
}
template <class P>
Process stamped(weft::Reader<Ints, P> r, std::vector<std::pair<int, Ints>>* got) {
  while (auto v = co_await r.next()) got->emplace_back(in_ms(), *v);
}

}  // namespace

// Rule 20.1.
TEST_CASE_TEMPLATE("services: batches by number, by time and at the end", Form, FORMS) {
  using P = typename Form::P;
  weft::Channel<int, P> a, c;
  weft::Channel<Ints, P> b, d;
  std::vector<std::pair<int, Ints>> got, all;
  weft::run(virtually,
            weft::par{at_times(a.writer(),
                               {{0, 1}, {500, 2}, {4000, 3}, {4500, 4}, {4750, 5}, {6000, 6}}),
                      Form::as(pnp::batch<int>(a, b, 3, 1s)), stamped(b.reader(), &got)});
  CHECK(got == std::vector<std::pair<int, Ints>>{{1000, {1, 2}}, {4750, {3, 4, 5}}, {6000, {6}}});
  weft::run(virtually, weft::par{feed(c.writer(), Ints{0, 1, 2, 3}),
                                 Form::as(pnp::batch<int>(c, d, 2)), stamped(d.reader(), &all)});
  CHECK(all == std::vector<std::pair<int, Ints>>{{0, {0, 1}}, {0, {2, 3}}});
}
// Rule 20.2.
TEST_CASE_TEMPLATE("services: a rate and its burst", Form, FORMS) {
  using P = typename Form::P;
  weft::Channel<int, P> a, b;
  Timed got;
  weft::run(
      virtually,
      weft::par{
          at_times(a.writer(),
                   {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {20, 5}, {20, 6}, {20, 7}, {20, 8}}),
          Form::as(pnp::rate_limit<int>(a, b, 10, 10ms, 3)), stamps(b.reader(), &got)});
  CHECK(got == Timed{{0, 0}, {0, 1}, {0, 2}, {1, 3}, {2, 4}, {20, 5}, {20, 6}, {20, 7}, {21, 8}});
}
// Rule 20.3.
TEST_CASE_TEMPLATE("services: one key goes to one worker, in order", Form, FORMS) {
  using P = typename Form::P;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Ints values;
    for (int i = 0; i < 60; ++i) values.push_back(i * 7 + random.below(7));
    weft::Channel<int, P> a;
    weft::Channel<std::pair<int, int>, P> b;
    std::vector<std::pair<int, int>> got;
    int made = 0;
    auto worker = [&made](weft::Reader<int, P> r,
                          weft::Writer<std::pair<int, int>, P> w) -> Process {
      struct Body {
        static Process of(int me, weft::Reader<int, P> r, weft::Writer<std::pair<int, int>, P> w) {
          while (auto v = co_await r.next()) co_await w.write(std::pair(me, *v));
        }
      };
      return Body::of(made++, std::move(r), std::move(w));
    };
    weft::run(weft::par{feed(a.writer(), values),
                        Form::as(pnp::keyed_pool<int>(a, b, worker, 1 + random.below(4),
                                                      [](int v) { return v % 7; })),
                        gather(b.reader(), &got)});
    CHECK(got.size() == values.size());
    std::map<int, std::pair<int, int>> last;  // key → its worker, its last value
    for (auto [who, v] : got) {
      const auto known = last.find(v % 7);
      if (known != last.end()) {
        CHECK(known->second.first == who);
        CHECK(known->second.second < v);
      }
      last[v % 7] = {who, v};
    }
  }
}
// Rules 7.2, 20.3.
TEST_CASE("services: a failure of a worker is the pool's") {
  weft::Channel<int> a, b;
  auto worker = [](weft::Reader<int> r, weft::Writer<int>) -> Process {
    co_await r.read();
    throw std::runtime_error("worker");
  };
  auto net = [&] {
    weft::run(feed(a.writer(), Ints{1}),
              pnp::keyed_pool<int>(a, b, worker, 2, [](int v) { return v; }));
  };
  CHECK_THROWS_WITH_AS(net(), doctest::Contains("worker"), std::runtime_error);
}
// Rule 20.4.
TEST_CASE_TEMPLATE("services: a broadcast to readers that are slow, or join late", Form, FORMS) {
  using P = typename Form::P;
  for (const int how : {0, 1, 2}) {
    weft::Channel<int, P> a,
        slow{how == 2 ? weft::buffer(1, weft::Overflow::drop_oldest) : weft::buffer(1)},
        fast{weft::buffer(1)}, late{weft::buffer(1)};
    weft::Channel<weft::Writer<int, P>, P> joins;
    Timed slows, fasts, lates;
    bool cut_off = false;
    auto source = [](weft::Writer<int, P> w, weft::Writer<weft::Writer<int, P>, P> joining,
                     std::vector<weft::Writer<int, P>> ends) -> Process {
      co_await joining.write(std::move(ends[0]));
      co_await joining.write(std::move(ends[1]));
      for (int i = 0; i < 6; ++i) {
        co_await weft::sleep(1ms);
        if (i == 4) co_await joining.write(std::move(ends[2]));
        co_await w.write(i);
      }
    };
    std::vector<weft::Writer<int, P>> ends{slow.writer(), fast.writer(), late.writer()};
    weft::run(virtually, weft::par{source(a.writer(), joins.writer(), std::move(ends)),
                                   Form::as(pnp::broadcast<int>(
                                       a, joins, how == 1 ? pnp::Slow::cut_off : pnp::Slow::wait)),
                                   stamps(slow.reader(), &slows, &cut_off, 3500),
                                   stamps(fast.reader(), &fasts), stamps(late.reader(), &lates)});
    CAPTURE(how);
    Ints seen;
    for (auto [t, v] : slows) seen.push_back(v);
    CHECK(seen == (how == 0 ? Ints{0, 1, 2, 3, 4, 5} : how == 1 ? Ints{0} : Ints{0, 3, 5}));
    CHECK(cut_off == (how == 1));
    CHECK(fasts.size() == 6);
    if (how != 0) CHECK(fasts == Timed{{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 5}});
    REQUIRE(lates.size() == 2);
    CHECK(lates[0].second == 4);
  }
}
// Rule 4.3.
TEST_CASE_TEMPLATE("services: poison goes on from either side", Form, FORMS) {
  using P = typename Form::P;
  for (const bool from_input : {true, false}) {
    weft::Channel<int, P> a, b;
    bool told = false;
    auto poisons = [](weft::Writer<int, P> w, weft::Reader<int, P> r, bool first) -> Process {
      if (first) co_await w.write(1);
      if (first)
        w.poison();
      else
        r.poison();
    };
    auto hears = [](weft::Writer<int, P> w, weft::Reader<int, P> r, bool reads,
                    bool* heard) -> Process {
      try {
        for (;;) {
          if (reads)
            co_await r.read();
          else
            co_await w.write(2);
        }
      } catch (const weft::Poisoned&) {
        *heard = true;
      }
    };
    weft::run(virtually, weft::par{poisons(a.writer(), b.reader(), from_input),
                                   hears(a.writer(), b.reader(), from_input, &told),
                                   Form::as(pnp::rate_limit<int>(a, b, 1, 1s))});
    CHECK(told);
  }
}
// Rule 11.1.
TEST_CASE("services: bad arguments") {
  weft::Channel<int> a, b;
  weft::Channel<Ints> c;
  CHECK_THROWS_AS(static_cast<void>(pnp::batch<int>(a, c, 0)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(pnp::batch<int>(a, c, 1, 0ms)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(pnp::rate_limit<int>(a, b, 0, 1s)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(pnp::rate_limit<int>(a, b, 1, -1s)), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(pnp::rate_limit<int>(a, b, 1, 1s, 0)), weft::BadUse);
}
