// Tests blocks, replicated processes, several operations at once, types of channels, handles and
// mobiles, by rule.
#include "hosted.hpp"

#include <functional>
#include <thread>

using namespace test;

namespace {

template <class P>
Process forward(weft::Reader<int, P> in, weft::Writer<int, P> out, int k) {
  while (auto v = co_await in.next()) co_await out.write(*v * k);
}
void times_on_thread(int k, weft::Reader<int> in, weft::Writer<int> out) {
  for (int v : in) out(v * k);
}
ProcessOf<int> answer(int v) { co_return v; }

}  // namespace

TEST_CASE("rules 7.1, 7.3: blocks of processes, functions, closures, vectors and blocks, called") {
  weft::Channel<int> a, b, c, d;
  std::vector<int> got;
  std::vector<std::string> order;
  weft::par{send_all<weft::Shared>(a.writer(), {1, 2, 3}),
            weft::proc(forward<weft::Shared>, a, b, 10), weft::proc(times_on_thread, 2, b, c),
            [in = c.reader(), out = d.writer()]() -> Process {
              while (auto v = co_await in.next()) co_await out.write(*v + 1);
            },
            weft::par{collect<weft::Shared>(d, got), weft::seq{[&] { order.push_back("one"); },
                                                               [&] { order.push_back("two"); }}}}();
  CHECK(got == std::vector<int>{21, 41, 61});
  CHECK(order == std::vector<std::string>{"one", "two"});
  std::vector<std::function<void()>> functions(3,
                                               [n = std::make_shared<std::atomic<int>>(0), &got] {
                                                 if (++*n == 3) got.clear();
                                               });
  weft::par{functions}();
  CHECK(got.empty());
  auto [x, pair] = weft::par{answer(1), weft::par{answer(2), answer(3)}}();
  CHECK(x == 1);
  CHECK(std::get<1>(*pair) == 3);
  auto [y, z] = weft::seq{answer(4), answer(5)}();
  CHECK(*y + *z == 9);
}

TEST_CASE("rule 7.3: seq runs one after another: all of them, each once the one before has ended") {
  std::vector<int> order;
  auto slowly = [&](int n) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    order.push_back(n);
  };
  auto at_once = [&](int n) -> Process {
    order.push_back(n);
    co_return;
  };
  weft::seq{slowly(1), at_once(2), slowly(3), at_once(4)}();
  CHECK(order == std::vector<int>{1, 2, 3, 4});
  order.clear();
  std::vector<Process> ps;
  ps.push_back(slowly(1));
  ps.push_back(at_once(2));
  ps.push_back(slowly(3));
  weft::seq{std::move(ps)}();
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("rule 2.3: what proc binds is an end from then on, not when it runs") {
  weft::Channel<int> c;
  {
    auto p = weft::proc(times_on_thread, 2, c, c);
    CHECK(c.core()->reader_ends() == 1);
    CHECK(c.core()->writer_ends() == 1);
  }
  CHECK(c.core()->reader_ends() == 0);
}

TEST_CASE("a coroutine process on a thread runs there, with and without a result") {
  std::thread::id there;
  auto notes = [&]() -> Process {
    there = std::this_thread::get_id();
    co_return;
  };
  weft::run(weft::thread(notes()));
  CHECK(there != std::thread::id());
  CHECK(there != std::this_thread::get_id());
  CHECK(weft::run(weft::thread(answer(3))) == 3);
}

TEST_CASE("rule 7.6: a block runs once") {
  auto p = weft::par{answer(1)};
  p();
  CHECK_THROWS_AS(p(), weft::BadUse);
}

TEST_CASE("rule 4.3: a poison that ends a coroutine closure poisons the ends that it captured") {
  weft::Channel<int> a, b;
  int strength = 0;
  weft::par{[r = a.reader(), w = b.writer()]() -> Process {
              for (;;) co_await w.write(co_await r.read());
            },
            [w = a.writer()]() -> Process {
              co_await w.write(1);
              w.poison(4);
            },
            [r = b.reader(), &strength]() -> Process {
              try {
                for (;;) co_await r.read();
              } catch (const weft::Poisoned& e) {
                strength = e.strength;
              }
            }}();
  CHECK(strength == 4);
}

TEST_CASE("rule 7.2: a failure inside a nested block cancels those around it") {
  weft::Channel<int> never;
  auto stuck = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  auto fails = []() -> Process {
    co_await weft::yield();
    throw std::runtime_error("inner");
  };
  const auto open = never.writer();
  CHECK_THROWS_WITH_AS((weft::par{stuck(never), weft::par{fails(), stuck(never)}}()), "inner",
                       std::runtime_error);
}

TEST_CASE_TEMPLATE("rule 7.1: par_for: processes, operations, numbers and ranges", P, POLICIES) {
  std::vector<weft::Channel<int, P>> cs(3);
  std::vector<weft::Writer<int, P>> ws;
  std::vector<int> sums(3);
  for (auto& c : cs) ws.push_back(c.writer());
  auto add = [](weft::Reader<int, P> r, int& sum) -> Process {
    while (auto v = co_await r.next()) sum += *v;
  };
  auto source = [](std::vector<weft::Writer<int, P>> outs) -> Process {
    for (int i = 1; i <= 3; ++i) co_await weft::par_for(outs, [i](auto& w) { return w.write(i); });
  };
  weft::par{source(std::move(ws)),
            weft::par_for(std::size_t{0}, std::size_t{3},
                          [&](std::size_t i) { return add(cs[i], sums[i]); })}();
  CHECK(sums == std::vector<int>{6, 6, 6});
}

TEST_CASE_TEMPLATE("rule 7.10: par_read, par_write: all are offered at once", P, POLICIES) {
  weft::Channel<int, P> a, b;
  // The two sides name their ends in different orders, so if the operations were in sequence, the
  // two sides would block each other.
  auto writer = [](weft::Writer<int, P> x, weft::Writer<int, P> y) -> Process {
    for (int i = 0; i < 3; ++i) {
      std::pair first(x, i), second(y, 10 * i);
      co_await weft::par_write(first, second);
    }
  };
  auto reader = [](weft::Reader<int, P> x, weft::Reader<int, P> y) -> Process {
    for (int i = 0; i < 3; ++i) {
      CHECK(co_await y.read() == 10 * i);
      CHECK(co_await x.read() == i);
    }
  };
  weft::run(writer(a, b), reader(a, b));
}

TEST_CASE_TEMPLATE(
    "rule 7.10: par_read: an end withdraws the others, which lose nothing, and the exception "
    "carries what was read",
    P, POLICIES) {
  weft::Channel<int, P> a, b, c;
  bool kept = false;
  auto reader = [](weft::Reader<int, P> x, weft::Reader<int, P> y, weft::Reader<int, P> z,
                   bool& ok) -> Process {
    try {
      co_await weft::par_read(x, y, z);
    } catch (const weft::Retired& e) {
      const auto* got = e.template value<std::vector<std::optional<int>>>();
      ok = got && got->size() == 3 && (*got)[0] == 1 && !(*got)[1] && !(*got)[2];
    }
    const int after = co_await z.read();  // The last read was withdrawn, so z has lost no value.
    CHECK(after == 7);
  };
  auto writer = [](weft::Writer<int, P> x, weft::Writer<int, P> y,
                   weft::Writer<int, P> z) -> Process {
    co_await x.write(1);
    co_await weft::yield();
    y.retire();
    co_await weft::yield();
    co_await z.write(7);
  };
  weft::run(reader(a, b, c, kept), writer(a, b, c));
  CHECK(kept);
}

TEST_CASE(
    "rules 6.2, 6.4, 7.10: a cancelled par_read or par_write takes and gives nothing; in "
    "coroutines and threads") {
  weft::Channel<int> a, b;
  auto fails = []() -> Process {
    co_await weft::yield();
    throw std::runtime_error("stop");
  };
  const auto ra = a.reader(), rb = b.reader();
  const auto wa = a.writer(), wb = b.writer();
  auto reads = [](weft::Reader<int> x, weft::Reader<int> y) -> Process {
    co_await weft::par_read(x, y);
  };
  CHECK_THROWS_WITH_AS(weft::run(reads(ra, rb), fails()), "stop", std::runtime_error);
  std::vector<std::optional<int>> unsent;
  auto writes = weft::thread([&] {
    try {
      weft::par_write(std::vector{wa, wb}, {1, 2})();
    } catch (const weft::Cancelled& e) {
      unsent = *e.value<std::vector<std::optional<int>>>();
      throw;
    }
  });
  CHECK_THROWS_WITH_AS(weft::run(std::move(writes), fails()), "stop", std::runtime_error);
  CHECK((unsent.empty() || unsent == std::vector<std::optional<int>>{1, 2}));
  CHECK(a.transfers() + b.transfers() == 0);
}

TEST_CASE("rule 10.2: a blocked par_read is in the report, with its channels") {
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")};
  auto reads = [](weft::Reader<int> x, weft::Reader<int> y, weft::Writer<int>,
                  weft::Writer<int>) -> Process { co_await weft::par_read(x, y); };
  CHECK_THROWS_WITH_AS(weft::run(reads(a, b, a, b).named("reader")),
                       doctest::Contains("main/reader: read 'a', 'b'"), weft::Deadlock);
}

TEST_CASE_TEMPLATE(
    "rule 7.10: par_read and par_write between threads and coroutines: every value once, in order",
    P, POLICIES) {
  constexpr int n = 300;
  weft::Channel<int, P> a, b, c;
  auto writes = [](std::vector<weft::Writer<int, P>> ws) -> Process {
    for (int i = 0; i < n; ++i) co_await weft::par_write_all(ws, i);
  };
  auto reads = [](std::vector<weft::Reader<int, P>> rs) -> Process {
    for (int i = 0; i < n; ++i) {
      auto vs = co_await weft::par_read(rs);
      for (int v : vs) CHECK(v == i);
    }
  };
  std::vector<weft::Writer<int, P>> ws;
  std::vector<weft::Reader<int, P>> rs;
  for (auto* ch : {&a, &b, &c}) ws.push_back(ch->writer()), rs.push_back(ch->reader());
  if constexpr (P::shared)
    weft::par{weft::thread(writes(std::move(ws))), weft::thread(reads(std::move(rs)))}();
  else
    weft::par{writes(std::move(ws)), reads(std::move(rs))}();
}

TEST_CASE_TEMPLATE("rule 1.8: a side of one has one end at a time", P, POLICIES) {
  auto c = weft::one2one<int, P>(weft::named("single"));
  auto r = c.reader();
  CHECK_THROWS_WITH_AS(c.reader(), doctest::Contains("channel 'single' has a reader end already"),
                       weft::BadUse);
  CHECK_THROWS_AS((weft::Reader<int, P>(r)), weft::BadUse);
  auto moved = std::move(r);  // `moved` is the same end.
  auto w = c.writer();
  CHECK_THROWS_WITH_AS((weft::Writer<int, P>(w)), doctest::Contains("writer end already"),
                       weft::BadUse);
  std::vector<int> got;
  weft::run(send_all<P>(std::move(w), {1, 2}), collect<P>(std::move(moved), got));
  CHECK(got == std::vector<int>{1, 2});
  auto many_writers = weft::any2one<int, P>();
  auto w1 = many_writers.writer(), w2 = w1;
  auto one = many_writers.reader();
  CHECK_THROWS_AS(many_writers.reader(), weft::BadUse);
  auto many_readers = weft::one2any<int, P>(weft::buffer(2));
  auto r1 = many_readers.reader(), r2 = r1;
  auto w3 = many_readers.writer();
  CHECK_THROWS_AS(many_readers.writer(), weft::BadUse);
  auto any = weft::any2any<int, P>();
  auto r3 = any.reader(), r4 = r3, r5 = any.reader();
}

TEST_CASE("rule 2.1: where an end is wanted a channel gives a new one") {
  weft::Channel<int> c;
  weft::Reader<int> r = c;
  weft::Writer<int> w = c;
  CHECK(c.core()->reader_ends() == 1);
  CHECK(c.core()->writer_ends() == 1);
}

TEST_CASE("rule 2.3: handles captured by copy: the network closes down by itself") {
  weft::ChannelHandle<int> a, b;
  std::vector<int> got;
  weft::par{[=] {
              for (int i = 0; i < 4; ++i) a(i);
            },
            [=]() -> Process {
              while (auto v = co_await a.next()) co_await b.write(*v * 2);
            },
            [=, &got] {
              for (int v : b.reader()) got.push_back(v);
            }}();
  CHECK(got == std::vector<int>{0, 2, 4, 6});
}

TEST_CASE("rule 2.3: a handle not yet used keeps its channel open: a late writer is not late") {
  weft::ChannelHandle<int> c;
  std::vector<int> got;
  auto late = [=]() -> Process {
    for (int i = 0; i < 5; ++i) co_await weft::yield();
    co_await c.write(2);
  };
  weft::par{[=]() -> Process { co_await c.write(1); }, std::move(late),
            collect<weft::Shared>(c, got)}();
  CHECK(got == std::vector<int>{1, 2});
  CHECK_THROWS_AS(
      weft::ChannelHandle<int>({0, weft::Overflow::block, 0, nullptr, weft::ChannelKind::one2one}),
      weft::BadUse);
}

TEST_CASE("rule 9.2: a mobile has one owner; touching it after it was sent is BadUse") {
  static_assert(!std::is_copy_constructible_v<weft::Mobile<int>>);
  weft::Channel<weft::Mobile<std::vector<int>>> c;
  const int* where = nullptr;
  auto sends = [](weft::Writer<weft::Mobile<std::vector<int>>> w, const int** at) -> Process {
    auto m = weft::make_mobile<std::vector<int>>(3, 7);
    *at = m->data();
    auto second = m.clone();
    co_await w.write(std::move(m));
    CHECK_FALSE(m);
    CHECK_THROWS_WITH_AS(static_cast<void>(m->size()),
                         doctest::Contains("it was sent or moved away"), weft::BadUse);
    CHECK_THROWS_AS(*m, weft::BadUse);
    CHECK(second->size() == 3);
  };
  auto gets = [](weft::Reader<weft::Mobile<std::vector<int>>> r, const int** at) -> Process {
    auto m = co_await r.read();
    CHECK(m->data() == *at);
  };
  weft::run(sends(c, &where), gets(c, &where));
}

TEST_CASE("rules 2.6, 11.3: a channel on which somebody waits outlives its handle") {
  auto c = std::make_unique<weft::Channel<int>>();
  int got = 0;
  auto waits = [](weft::Reader<int> r, int& v) -> Process { v = co_await r.read(); };
  auto destroys = [](weft::Writer<int> w, std::unique_ptr<weft::Channel<int>>& ch) -> Process {
    co_await weft::yield();
    ch.reset();
    co_await w.write(5);
  };
  weft::run(waits(*c, got), destroys(*c, c));
  CHECK(got == 5);
}

TEST_CASE(
    "rule 7.2: a process that throws while others wait, in every way of waiting, on schedulers and "
    "threads") {
  weft::Channel<int> c;
  const auto r = c.reader();
  const auto w = c.writer();
  weft::Barrier bar(2);
  auto reads = [](weft::Reader<int> x) -> Process { co_await x.read(); };
  auto meets = [](weft::Barrier b) -> Process { co_await b.sync(); };
  auto sleeps = []() -> Process { co_await weft::sleep(1h); };
  auto selects = [](weft::Reader<int> x, weft::Barrier b) -> Process {
    co_await weft::select(x, b, weft::after(1h));
  };
  auto fails = []() -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    throw std::runtime_error("one of many");
  };
  weft::Channel<int> d;
  const auto keep = d.writer();
  CHECK_THROWS_WITH_AS(
      (weft::par{reads(r), weft::thread(reads(d)), meets(bar), sleeps(),
                 selects(d, weft::Barrier(2)), [&r] { r(); }, [&bar] { bar.sync()(); }, fails()}()),
      "one of many", std::runtime_error);
}

TEST_CASE("thread processes use threads again: many in a row") {
  std::atomic<int> n{0};
  for (int i = 0; i < 200; ++i) weft::par{[&n] { ++n; }, [&n] { ++n; }}();
  CHECK(n == 400);
}
