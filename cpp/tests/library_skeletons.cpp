// Tests skeletons: their sequential meaning, by random programs; failure, cancellation, poison,
// early termination and progress; on the scheduler, on threads and on two cores. The seed of each
// case is printed when it fails.
#include "hosted.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include <weft/skeletons.hpp>

using namespace test;
namespace sk = weft::skeletons;

namespace {

using Ints = std::vector<int>;
using Stage = sk::Stage<int, int>;

struct Dice {
  std::mt19937 gen;
  explicit Dice(unsigned seed) : gen(seed) {}
  int below(int n) { return static_cast<int>(gen() % static_cast<unsigned>(n)); }
  Ints items(int most) {
    Ints r(static_cast<std::size_t>(below(most + 1)));
    for (int& x : r) x = below(1000);
    return r;
  }
};

// A program, its meaning, and whether the program keeps the order.
struct Program {
  Stage stage;
  std::function<int(int)> meaning;
  bool ordered;
};

// Runs on two cores, which all workers share.
struct OnCores : sk::OnExecutor {
  OnCores() : OnExecutor(pool()) {}
  static const weft::Cores& pool() {
    static const weft::Cores two(2);
    return two;
  }
};
enum class Where { here, threads, cores };

Program program(Dice& r, int depth, Where where) {
  const auto crew = [&](unsigned n, const Program& p, sk::Order o) {
    return where == Where::threads ? Stage(sk::farm(sk::workers(n, sk::OnThreads()), p.stage, o))
           : where == Where::cores ? Stage(sk::farm(sk::workers(n, OnCores()), p.stage, o))
                                   : Stage(sk::farm(sk::workers(n), p.stage, o));
  };
  switch (depth == 0 ? 0 : r.below(5)) {
    case 1: {
      Program p = program(r, depth - 1, where), q = program(r, depth - 1, where);
      return {sk::pipeline(p.stage, q.stage), [p, q](int x) { return q.meaning(p.meaning(x)); },
              p.ordered && q.ordered};
    }
    case 2: {
      Program p = program(r, depth - 1, where);
      return {crew(static_cast<unsigned>(1 + r.below(3)), p, sk::Order::kept), p.meaning,
              p.ordered};
    }
    case 3: {
      Program p = program(r, depth - 1, where);
      return {crew(static_cast<unsigned>(1 + r.below(3)), p, sk::Order::any), p.meaning, false};
    }
    case 4: {
      Program p = program(r, depth - 1, where);
      const Program half{Stage(sk::each([](int x) { return x / 2; })), nullptr, true};
      const auto again = [](int x) { return x > 100; };
      const Stage body = crew(static_cast<unsigned>(1 + r.below(3)), half,
                              r.below(2) ? sk::Order::any : sk::Order::kept);
      return {sk::pipeline(p.stage,
                           Stage(sk::feedback(static_cast<unsigned>(1 + r.below(3)), body, again))),
              [p, again](int x) {
                x = p.meaning(x);
                do x /= 2;
                while (again(x));
                return x;
              },
              false};
    }
    default: {
      const int k = r.below(7);
      const auto f = [k](int x) { return (x * k + 1) % 1009; };
      return {sk::each(f), f, true};
    }
  }
}

template <class Start>
auto crew(unsigned n) {
  return sk::workers(n, Start());
}
#define STARTS sk::Here, sk::OnThreads, OnCores

}  // namespace

TEST_CASE("skeletons: random programs of stages mean what their functions mean") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Dice r(seed);
    const Where where = seed % 6 == 0 ? Where::threads : seed % 3 == 0 ? Where::cores : Where::here;
    const Program p = program(r, where == Where::threads ? 2 : 3, where);
    const Ints items = r.items(30);
    Ints expected;
    for (int x : items) expected.push_back(p.meaning(x));
    Ints got = weft::run(sk::apply(p.stage, items));
    if (!p.ordered) {
      std::sort(expected.begin(), expected.end());
      std::sort(got.begin(), got.end());
    }
    CHECK(got == expected);
  }
}

TEST_CASE_TEMPLATE("skeletons: map, reduce, map_reduce mean what loops mean", Start, STARTS) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Dice r(seed);
    const Ints items = r.items(40);
    const auto n = static_cast<unsigned>(1 + r.below(5));
    const auto square = [](int x) { return long{x} * x; };
    std::vector<long> squares;
    for (int x : items) squares.push_back(square(x));
    CHECK(weft::run(sk::map(crew<Start>(n), items, square)) == squares);
    CHECK(weft::run(sk::map_reduce(crew<Start>(n), items, square, 5L, std::plus())) ==
          std::accumulate(squares.begin(), squares.end(), 5L));
    // The operation on strings is associative, but not commutative.
    std::vector<std::string> words;
    for (int x : items) words.push_back(std::to_string(x) + " ");
    CHECK(weft::run(sk::reduce(crew<Start>(n), words, ">", std::plus())) ==
          std::accumulate(words.begin(), words.end(), std::string(">")));
  }
}

TEST_CASE_TEMPLATE("skeletons: divide and conquer sorts", Start, STARTS) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Dice r(seed);
    const Ints items = r.items(200);
    Ints expected = items;
    std::sort(expected.begin(), expected.end());
    const auto halves = [](Ints v) {
      const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
      return std::vector<Ints>{Ints(v.begin(), middle), Ints(middle, v.end())};
    };
    const auto merge = [](std::vector<Ints> parts) {
      Ints v;
      std::merge(parts[0].begin(), parts[0].end(), parts[1].begin(), parts[1].end(),
                 std::back_inserter(v));
      return v;
    };
    std::size_t done = 0, of = 0;
    auto sort = sk::divide_and_conquer(
        crew<Start>(3).told([&](std::size_t d, std::size_t t) {
          CHECK(d == ++done);
          of = t;
        }),
        items, [](const Ints& v) { return v.size() <= 1; }, [](Ints v) { return v; }, halves,
        merge);
    CHECK(weft::run(std::move(sort)) == expected);
    CHECK(done == of);
    CHECK((items.size() < 2 || of > 1));
  }
}

TEST_CASE_TEMPLATE("skeletons: progress is told once for each, in order", Start, STARTS) {
  std::vector<std::size_t> seen;
  auto ws = crew<Start>(4).told([&](std::size_t done, std::size_t total) {
    seen.push_back(done);
    CHECK(total == 10);
  });
  weft::run(sk::map(std::move(ws), Ints(10, 1), [](int x) { return x; }));
  std::vector<std::size_t> expected(10);
  std::iota(expected.begin(), expected.end(), std::size_t{1});
  CHECK(seen == expected);
}

TEST_CASE_TEMPLATE(
    "skeletons: a farm tells how many of its results have been taken, whatever their order", Start,
    STARTS) {
  using Counts = std::vector<std::size_t>;
  for (const sk::Order order : {sk::Order::kept, sk::Order::any}) {
    CAPTURE(order == sk::Order::kept);
    Counts seen;
    const auto net =
        sk::farm(crew<Start>(3).told([&seen](std::size_t done) { seen.push_back(done); }),
                 sk::each([](int x) { return x + 1; }), order);
    weft::run(sk::apply(net, Ints()));
    CHECK(seen.empty());
    Ints got = weft::run(sk::apply(net, Ints{1, 2, 3, 4, 5}));
    std::sort(got.begin(), got.end());
    CHECK(got == Ints{2, 3, 4, 5, 6});
    CHECK(seen == Counts{1, 2, 3, 4, 5});
    weft::run(sk::apply(net, Ints{1, 2}));  // Another process of the same stage has its own count.
    CHECK(seen == Counts{1, 2, 3, 4, 5, 1, 2});

    // The reader leaves after three values: the fourth value is not reported, and the source ends.
    seen.clear();
    weft::Channel<int> a, b;
    auto endless = [](weft::Writer<int> w) -> Process {
      for (;;) co_await w.write(1);
    };
    auto three = [](weft::Reader<int> r) -> Process {
      for (int i = 0; i < 3; ++i) co_await r.read();
    };
    weft::par{endless(a), net(a, b), three(b)}();
    CHECK(seen == Counts{1, 2, 3});

    const auto bad = sk::farm(crew<Start>(2).told([](std::size_t done) {
      if (done == 2) throw std::runtime_error("the second");
    }),
                              sk::each([](int x) { return x; }), order);
    CHECK_THROWS_WITH_AS(weft::run(sk::apply(bad, Ints{1, 2, 3, 4, 5})), "the second",
                         std::runtime_error);
  }
}

TEST_CASE("skeletons: what is told takes one number or two; none at all is no matter") {
  const auto same = [](int x) { return x; };
  std::size_t done = 0, of = 0;
  const auto both = [&](std::size_t d, std::size_t total = 99) {
    done = d;
    of = total;
  };
  weft::run(sk::map(sk::workers(2).told(both), Ints(4), same));
  CHECK(done == 4);
  CHECK(of == 4);
  weft::run(sk::apply(sk::farm(sk::workers(2).told(both), sk::each(same)), Ints(5)));
  CHECK(done == 5);
  CHECK(of == 99);
  const auto one = [&](std::size_t d) { done = d; };
  weft::run(sk::map(sk::workers(2).told(one), Ints(6), same));
  CHECK(done == 6);
  CHECK(weft::run(sk::map_reduce(sk::workers(1).told(one), Ints(3, 1), same, 0, std::plus())) == 3);
  CHECK(done == 3);  // Here each block of neighbouring items has one item.
  CHECK(weft::run(sk::reduce(sk::workers(1).told(one), Ints(2, 1), 0, std::plus())) == 2);
  CHECK(done == 2);
  const auto found = weft::run(
      sk::search(sk::workers(1).told(one), Ints{7, 8}, [](int x) { return std::optional(x); }));
  CHECK(found == 7);
  CHECK(done == 1);
  weft::run(sk::map(sk::workers(2).told(sk::Progress()), Ints(4), same));
  weft::run(sk::map(sk::workers(2).told(sk::Count()), Ints(4), same));
  for (const sk::Order order : {sk::Order::kept, sk::Order::any})
    CHECK(weft::run(sk::apply(sk::farm(sk::workers(2).told(sk::Count()), sk::each(same), order),
                              Ints(4))) == Ints(4));
}

TEST_CASE_TEMPLATE("rule 7.2: a function that fails fails the whole", Start, STARTS) {
  const auto bad = [](int x) {
    if (x == 3) throw std::runtime_error("three");
    return x;
  };
  CHECK_THROWS_WITH_AS(weft::run(sk::map(crew<Start>(2), Ints{1, 2, 3, 4, 5}, bad)), "three",
                       std::runtime_error);
  const auto net =
      sk::pipeline(sk::each(bad), sk::farm(crew<Start>(3), sk::each([](int x) { return x; })));
  CHECK_THROWS_WITH_AS(weft::run(sk::apply(net, Ints{1, 2, 3, 4, 5})), "three", std::runtime_error);
  const auto inside = sk::farm(crew<Start>(2), sk::each(bad));
  CHECK_THROWS_WITH_AS(weft::run(sk::apply(inside, Ints{1, 2, 3, 4, 5})), "three",
                       std::runtime_error);
}

TEST_CASE_TEMPLATE("skeletons: a search ends early; what is not begun is not begun", Start,
                   STARTS) {
  std::atomic<int> begun{0};
  Ints items(10'000);
  std::iota(items.begin(), items.end(), 0);
  const auto f = [&begun](int x) {
    ++begun;
    return x % 7 == 5 ? std::optional(x) : std::nullopt;
  };
  const auto found = weft::run(sk::search(crew<Start>(2), items, f));
  REQUIRE(found);
  CHECK(*found % 7 == 5);
  CHECK(begun < 10'000);
  begun = 0;
  CHECK_FALSE(weft::run(sk::search(crew<Start>(2), Ints(50, 0), f)));
  CHECK(begun == 50);
}

TEST_CASE_TEMPLATE("rule 3.3: when the reader of its output has gone, a stage ends, and its source",
                   Start, STARTS) {
  const auto net = sk::pipeline(sk::farm(crew<Start>(2), sk::each([](int x) { return 2 * x; })),
                                sk::each([](int x) { return x + 1; }));
  auto endless = [](weft::Writer<int> w) -> Process {
    for (int i = 0;; ++i) co_await w.write(i);
  };
  weft::Channel<int> a, b;
  Ints got;
  auto three = [](weft::Reader<int> r, Ints& into) -> Process {
    for (int i = 0; i < 3; ++i) into.push_back(co_await r.read());
  };
  weft::par{endless(a), net(a, b), three(b, got)}();
  CHECK(got == Ints{1, 3, 5});
}

TEST_CASE_TEMPLATE("rule 4.3: poison goes through stages, both ways", Start, STARTS) {
  const Stage nets[] = {
      sk::farm(crew<Start>(2), sk::each([](int x) { return x; })),
      sk::farm(crew<Start>(2), sk::each([](int x) { return x; }), sk::Order::any),
      sk::pipeline(sk::each([](int x) { return x; }),
                   sk::on(Start(), sk::each([](int x) { return x; }))),
      sk::feedback(2, sk::each([](int x) { return x; }), [](int) { return false; })};
  for (const Stage& net : nets) {
    auto write = [](weft::Writer<int> w, int* strength) -> Process {
      try {
        for (;;) co_await w.write(1);
      } catch (const weft::Poisoned& e) {
        *strength = e.strength;
      }
    };
    auto read = [](weft::Reader<int> r, int* strength) -> Process {
      try {
        for (;;) co_await r.read();
      } catch (const weft::Poisoned& e) {
        *strength = e.strength;
      }
    };
    auto poison_after = [](auto end, int values) -> Process {
      for (int i = 0; i < values; ++i) {
        if constexpr (requires { end.next(); })
          co_await end.read();
        else
          co_await end.write(i);
      }
      end.poison(2);
    };
    int writer = 0, reader = 0;
    weft::Channel<int> a, b, c, d;
    weft::par{write(a, &writer), net(a, b), poison_after(b.reader(), 3)}();
    weft::par{poison_after(c.writer(), 3), net(c, d), read(d, &reader)}();
    CHECK(writer == 2);
    CHECK(reader == 2);
  }
}

TEST_CASE_TEMPLATE("rule 6: cancelling what awaits a skeleton cancels its workers", Start, STARTS) {
  weft::Channel<int> never;
  auto waits = [](weft::Channel<int> c) -> Process {
    auto stuck = sk::farm(crew<Start>(2), sk::each([](int x) { return x; }));
    weft::Channel<int> out;
    const auto open = c.writer();  // No process writes.
    const auto reader = out.reader();
    co_await stuck(c.reader(), out.writer());
    CHECK(false);
  };
  auto fails = []() -> Process {
    co_await weft::yield();
    throw std::runtime_error("elsewhere");
  };
  CHECK_THROWS_WITH_AS(weft::run(waits(never), fails()), "elsewhere", std::runtime_error);
}

TEST_CASE("skeletons: values that only move; no workers; nothing to do") {
  std::vector<std::unique_ptr<int>> items;
  for (int i = 0; i < 5; ++i) items.push_back(std::make_unique<int>(i));
  const auto net = sk::farm(sk::workers(3), sk::each([](std::unique_ptr<int> p) {
                              ++*p;
                              return p;
                            }));
  auto out = weft::run(sk::apply(net, std::move(items)));
  for (int i = 0; i < 5; ++i) CHECK(*out[static_cast<std::size_t>(i)] == i + 1);
  CHECK_THROWS_WITH_AS(sk::workers(0), doctest::Contains("at least one"), weft::BadUse);
  CHECK(weft::run(sk::map(sk::workers(2), Ints(), [](int x) { return x; })).empty());
  CHECK(weft::run(sk::reduce(sk::workers(2), Ints(), 7, std::plus())) == 7);
  CHECK_THROWS_AS(weft::run(sk::divide_and_conquer(
                      sk::workers(1), 8, [](int) { return false; }, [](int x) { return x; },
                      [](int) { return Ints(); }, [](Ints) { return 0; })),
                  weft::BadUse);
}

TEST_CASE("skeletons: workers work side by side, each on a value of its own") {
  for (const sk::Order order : {sk::Order::kept, sk::Order::any}) {
    weft::Barrier both(2);  // No worker resumes before two workers have a value.
    const auto meeting = Stage([both](weft::Reader<int> r, weft::Writer<int> w) -> Process {
      return [](weft::Barrier b, weft::Reader<int> in, weft::Writer<int> out) -> Process {
        while (auto v = co_await in.next()) {
          co_await b.sync();
          co_await out.write(*v);
        }
      }(both, std::move(r), std::move(w));
    });
    Ints got = weft::run(sk::apply(sk::farm(sk::workers(2), meeting, order), Ints{1, 2, 3, 4}));
    std::sort(got.begin(), got.end());
    CHECK(got == Ints{1, 2, 3, 4});
  }
}

TEST_CASE("skeletons: with Order::any results come as they are ready") {
  weft::Channel<int> gate;
  const auto waiting = Stage([gate](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    return [](weft::Reader<int> go, weft::Reader<int> in, weft::Writer<int> out) -> Process {
      while (auto v = co_await in.next()) {
        if (*v == 1) co_await go.read();
        co_await out.write(*v);
      }
    }(gate.reader(), std::move(r), std::move(w));
  });
  const auto net = sk::farm(sk::workers(2), waiting, sk::Order::any);
  weft::Channel<int> a, b;
  Ints got;
  auto source = [](weft::Writer<int> w) -> Process {
    co_await w.write(1);
    co_await w.write(2);
  };
  auto sink = [](weft::Reader<int> r, weft::Writer<int> go, Ints& into) -> Process {
    into.push_back(co_await r.read());
    co_await go.write(0);  // Only now does the first worker resume.
    into.push_back(co_await r.read());
  };
  weft::par{source(a), net(a, b), sink(b, gate, got)}();
  CHECK(got == Ints{2, 1});
}

TEST_CASE_TEMPLATE("skeletons: a stage runs where it is told to", Start, STARTS) {
  std::thread::id there;
  const auto noting = sk::on(Start(), sk::each([&there](int x) {
                               there = std::this_thread::get_id();
                               return x;
                             }));
  CHECK(weft::run(sk::apply(noting, Ints{1})) == Ints{1});
  CHECK(there != std::thread::id());
  CHECK((there == std::this_thread::get_id()) == std::is_same_v<Start, sk::Here>);
}

TEST_CASE(
    "skeletons: workers on a single core of its own share its thread; a local channel inside "
    "works") {
  std::vector<std::thread::id> ids;
  const auto local = Stage([&ids](weft::Reader<int> in, weft::Writer<int> out) -> Process {
    return [](weft::Reader<int> r, weft::Writer<int> w,
              std::vector<std::thread::id>* seen) -> Process {
      weft::Channel<int, weft::Local> between;
      auto first = [](weft::Reader<int> from, weft::Writer<int, weft::Local> to,
                      auto* at) -> Process {
        while (auto v = co_await from.next()) {
          at->push_back(std::this_thread::get_id());  // All processes run on one thread.
          co_await to.write(*v);
        }
      };
      auto second = [](weft::Reader<int, weft::Local> from, weft::Writer<int> to) -> Process {
        while (auto v = co_await from.next()) co_await to.write(2 * *v);
      };
      co_await weft::par(first(std::move(r), between.writer(), seen),
                         second(between.reader(), std::move(w)));
    }(std::move(in), std::move(out), &ids);
  });
  const weft::Core one;
  CHECK(weft::run(sk::apply(sk::farm(sk::workers(3, sk::OnExecutor(one)), local),
                            Ints{1, 2, 3, 4})) == Ints{2, 4, 6, 8});
  REQUIRE(ids.size() == 4);
  for (const auto& id : ids) {
    CHECK(id == ids[0]);
    CHECK(id != std::this_thread::get_id());
  }
}

TEST_CASE_TEMPLATE("rule 15.5: workers on threads and on two cores compute at the same time", Start,
                   sk::OnThreads, OnCores) {
  // Neither worker resumes before the other has begun, and the workers do not wait by an operation,
  // so on one core neither would ever resume.
  std::atomic<int> begun{0};
  const auto together = [&begun](int x) {
    for (++begun; begun < 2;) std::this_thread::yield();
    return x;
  };
  CHECK(weft::run(sk::map(crew<Start>(2), Ints{1, 2}, together)) == Ints{1, 2});
  begun = 0;
  CHECK(weft::run(sk::apply(sk::farm(crew<Start>(2), sk::each(together)), Ints{1, 2})) ==
        Ints{1, 2});
}

TEST_CASE(
    "skeletons: feedback keeps its width, ends with its stage, and has room for one at least") {
  // The stage takes two values and lets all other processes run before it gives the values back.
  // Meanwhile the skeleton takes no third value in.
  int taken_in = 0, given_back = 0, most = 0;
  auto pairs = [&](weft::Reader<int> in, weft::Writer<int> out) -> Process {
    for (;;) {
      auto x = co_await in.next(), y = co_await in.next();
      if (!x || !y) co_return;
      for (int i = 0; i < 20; ++i) co_await weft::yield();
      most = std::max(most, taken_in - given_back);
      given_back += 2;
      co_await out.write(*x);
      co_await out.write(*y);
    }
  };
  auto source = [&](weft::Writer<int> w) -> Process {
    for (int i = 0; i < 8; ++i) {
      co_await w.write(i);
      ++taken_in;
    }
  };
  Ints got;
  auto sink = [&](weft::Reader<int> r) -> Process {
    while (auto v = co_await r.next()) got.push_back(*v);
  };
  weft::Channel<int> a, b;
  const auto net = sk::feedback(2, Stage(pairs), [](int) { return false; });
  weft::par{source(a), net(a, b), sink(b)}();
  CHECK(got.size() == 8);
  CHECK(most == 2);

  // A stage that ends of its own accord ends the whole network: the channel of its results retires,
  // as after the end of any process.
  auto once = [](weft::Reader<int> in, weft::Writer<int>) -> Process { co_await in.read(); };
  CHECK(weft::run(sk::apply(sk::feedback(2, Stage(once), [](int) { return false; }), Ints{1, 2, 3}))
            .empty());

  CHECK_THROWS_WITH_AS(
      sk::feedback(0, sk::each([](int x) { return x; }), [](int) { return false; }),
      doctest::Contains("width is 0, it must be 1 or more"), weft::BadUse);
}
