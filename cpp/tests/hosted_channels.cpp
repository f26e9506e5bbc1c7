// Tests rule 1: channels.
#include <functional>
#include <utility>

#include "hosted.hpp"

using namespace test;
using weft::Overflow;

TEST_CASE_TEMPLATE("rule 1.1: a rendezvous completes when its value has been taken, never before",
                   P, POLICIES) {
  weft::Channel<int, P> c;
  std::vector<std::string> log;
  auto writer = [](weft::Writer<int, P> w, std::vector<std::string>& l) -> Process {
    l.push_back("write");
    co_await w.write(1);
    l.push_back("written");
  };
  auto reader = [](weft::Reader<int, P> r, std::vector<std::string>& l) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    l.push_back("read");
    CHECK(co_await r.read() == 1);
  };
  weft::run(writer(c.writer(), log), reader(c.reader(), log));
  CHECK(log == std::vector<std::string>{"write", "read", "written"});
  CHECK(c.transfers() == 1);
}

TEST_CASE_TEMPLATE("rule 1.2: waiting readers are served first come, first served", P, POLICIES) {
  weft::Channel<int, P> c;
  std::vector<int> got(3);
  auto reader = [](weft::Reader<int, P> r, int& to) -> Process { to = co_await r.read(); };
  weft::run(reader(c.reader(), got[0]), reader(c.reader(), got[1]), reader(c.reader(), got[2]),
            send_all<P>(c.writer(), {1, 2, 3}));
  CHECK(got == std::vector<int>{1, 2, 3});
}

TEST_CASE_TEMPLATE("rule 1.2: so are waiting writers", P, POLICIES) {
  weft::Channel<int, P> c;
  std::vector<int> got;
  weft::run(send_all<P>(c.writer(), {1, 4}), send_all<P>(c.writer(), {2, 5}),
            send_all<P>(c.writer(), {3, 6}), collect<P>(c.reader(), got));
  CHECK(got == std::vector<int>{1, 2, 3, 4, 5, 6});
}

TEST_CASE_TEMPLATE("rule 1.2: a party whose select has committed elsewhere is passed over", P,
                   POLICIES) {
  weft::Channel<int, P> a, b;
  std::vector<int> got;
  auto chooser = [](weft::Reader<int, P> x, weft::Reader<int, P> y,
                    std::vector<int>& g) -> Process {
    auto [i, v] = co_await weft::select(x, y);
    g.push_back(*v);
    for (int k = 0; k < 3; ++k) co_await weft::yield();
  };
  auto writer = [](weft::Writer<int, P> first, weft::Writer<int, P> second) -> Process {
    co_await first.write(1);
    co_await second.write(2);
  };
  // The chooser is first in both waiting queues. The value of b must go to the plain reader behind
  // the chooser.
  weft::run(chooser(a.reader(), b.reader(), got), collect<P>(b.reader(), got),
            writer(a.writer(), b.writer()));
  CHECK(got == std::vector<int>{1, 2});
}

TEST_CASE_TEMPLATE(
    "rule 1.3: a buffer of n values keeps the order of commits; the write after blocks", P,
    POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2)};
  int written = 0;
  std::vector<int> got;
  auto writer = [](weft::Writer<int, P> w, int& n) -> Process {
    for (int i = 1; i <= 4; ++i) {
      co_await w.write(i);
      n = i;
    }
  };
  auto reader = [](weft::Reader<int, P> r, int& n, std::vector<int>& g) -> Process {
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    CHECK(n == 2);
    // Rule 1.5: the waiting writer's value enters the buffer in the same step.
    g.push_back(co_await r.read());
    for (int i = 0; i < 3; ++i) co_await weft::yield();
    CHECK(n == 3);
    while (auto v = co_await r.next()) g.push_back(*v);
  };
  weft::run(writer(c.writer(), written), reader(c.reader(), written, got));
  CHECK(got == std::vector<int>{1, 2, 3, 4});
  CHECK(c.dropped() == 0);
}

TEST_CASE_TEMPLATE("rule 1.4: drop_oldest", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2, Overflow::drop_oldest)};
  std::vector<int> got;
  weft::run(weft::seq(send_all<P>(c.writer(), {1, 2, 3}), collect<P>(c.reader(), got)));
  CHECK(got == std::vector<int>{2, 3});
  CHECK(c.dropped() == 1);
}

TEST_CASE_TEMPLATE("rule 1.4: drop_newest", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2, Overflow::drop_newest)};
  std::vector<int> got;
  weft::run(weft::seq(send_all<P>(c.writer(), {1, 2, 3}), collect<P>(c.reader(), got)));
  CHECK(got == std::vector<int>{1, 2});
  CHECK(c.dropped() == 1);
}

TEST_CASE_TEMPLATE("rule 1.4: drop_last", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2, Overflow::drop_last)};
  std::vector<int> got;
  weft::run(weft::seq(send_all<P>(c.writer(), {1, 2, 3, 4}), collect<P>(c.reader(), got)));
  CHECK(got == std::vector<int>{1, 4});
  CHECK(c.dropped() == 2);
}

TEST_CASE_TEMPLATE("rule 1.4: unbounded grows and drops nothing", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(2, Overflow::unbounded)};
  std::vector<int> want, got;
  for (int i = 0; i < 1000; ++i) want.push_back(i);
  weft::run(weft::seq(send_all<P>(c.writer(), want), collect<P>(c.reader(), got)));
  CHECK(got == want);
  CHECK(c.dropped() == 0);
}

TEST_CASE_TEMPLATE("rule 1.4: with an overflow policy an output guard is always ready", P,
                   POLICIES) {
  for (auto o :
       {Overflow::drop_oldest, Overflow::drop_newest, Overflow::drop_last, Overflow::unbounded}) {
    weft::Channel<int, P> c{weft::buffer(1, o)};
    auto reader = c.reader();
    auto p = [](weft::Writer<int, P> w) -> Process {
      for (int i = 0; i < 5; ++i) {
        auto r = co_await weft::select(weft::Mode::priority, weft::out(w, i), weft::skip());
        CHECK(r.index == 0);
      }
    };
    weft::run(p(c.writer()));
    CHECK(c.dropped() == (o == Overflow::unbounded ? 0 : 4));
  }
}

TEST_CASE_TEMPLATE(
    "rules 1.4, 12.2: what a buffer drops is destroyed once, what it delivers is not", P,
    POLICIES) {
  for (auto o :
       {Overflow::drop_oldest, Overflow::drop_newest, Overflow::unbounded, Overflow::block}) {
    {
      weft::Channel<Token, P> c{weft::buffer(3, o)};
      auto writer = [](weft::Writer<Token, P> w) -> Process {
        for (int i = 0; i < 10; ++i) co_await w.write(Token(i));
      };
      auto reader = [](weft::Reader<Token, P> r) -> Process {
        co_await weft::yield();
        for (int i = 0; i < 2; ++i) co_await r.read();
      };
      weft::run(writer(c.writer()), reader(c.reader()));
    }
    CHECK(Token::alive == 0);
  }
}

namespace {

// Calls a function when it is destroyed, unless it was moved from.
struct Calls {
  std::function<void()> then;
  Calls() = default;
  explicit Calls(std::function<void()> t) : then(std::move(t)) {}
  Calls(Calls&& o) noexcept : then(std::exchange(o.then, nullptr)) {}
  Calls& operator=(Calls&& o) noexcept {
    std::swap(then, o.then);
    return *this;
  }
  ~Calls() {
    if (then) then();
  }
};

}  // namespace

TEST_CASE_TEMPLATE(
    "rules 12.1, 12.2: the destructor of a value that is dropped may use its channel", P,
    POLICIES) {
  for (auto o : {Overflow::drop_oldest, Overflow::drop_newest, Overflow::drop_last}) {
    int gone = 0;
    bool open = true;
    weft::Channel<Calls, P> c{weft::buffer(2, o)};
    const auto stays = c.reader();
    const auto look = [&c, &gone, &open] {
      if (!open) return;
      ++gone;
      // This call takes the channel's lock. It is made on another thread, because the lock does not
      // detect that its owner acquires it twice.
      const auto asks = [&c] { const auto another = c.reader(); };
      if constexpr (P::shared)
        std::thread(asks).join();
      else
        asks();
    };
    auto writer = [](weft::Writer<Calls, P> w, std::function<void()> f) -> Process {
      for (int i = 0; i < 5; ++i) co_await w.write(Calls(f));
      for (int i = 0; i < 5; ++i) co_await weft::select(weft::out(w, Calls(f)), weft::after(1h));
    };
    weft::run(virtually, writer(c.writer(), look));
    CHECK(gone == 8);
    open = false;
  }
}

TEST_CASE_TEMPLATE("move-only values pass by rendezvous, buffer and choice", P, POLICIES) {
  using U = std::unique_ptr<int>;
  weft::Channel<U, P> a;
  weft::Channel<U, P> b{weft::buffer(1)};
  auto source = [](weft::Writer<U, P> w) -> Process {
    for (int i = 0; i < 4; ++i) co_await w.write(std::make_unique<int>(i));
  };
  auto middle = [](weft::Reader<U, P> r, weft::Writer<U, P> w) -> Process {
    for (int i = 0; i < 4; ++i) {
      auto [k, v] = co_await weft::select(r, weft::after(1h));
      CHECK(k == 0);
      co_await weft::select(weft::out(w, std::move(*v)));
    }
  };
  auto sink = [](weft::Reader<U, P> r, int& sum) -> Process {
    while (auto v = co_await r.next()) sum += **v;
  };
  int sum = 0;
  weft::run(virtually,
            weft::par(source(a.writer()), middle(a.reader(), b.writer()), sink(b.reader(), sum)));
  CHECK(sum == 6);
}

TEST_CASE_TEMPLATE("rule 1.6: an extended read holds the writer until its block ends", P,
                   POLICIES) {
  weft::Channel<int, P> c;
  std::vector<std::string> log;
  auto writer = [](weft::Writer<int, P> w, std::vector<std::string>& l) -> Process {
    co_await w.write(7);
    l.push_back("written");
  };
  auto reader = [](weft::Reader<int, P> r, bool late, std::vector<std::string>& l) -> Process {
    if (late) co_await weft::yield();  // If `late`, the writer waits first, otherwise the reader.
    {
      auto x = co_await r.extended();
      CHECK(*x == 7);
      for (int i = 0; i < 3; ++i) co_await weft::yield();
      l.push_back("block ends");
    }
    co_await weft::yield();
  };
  for (bool late : {false, true}) {
    log.clear();
    weft::run(reader(c.reader(), late, log), writer(c.writer(), log));
    CHECK(log == std::vector<std::string>{"block ends", "written"});
    c = weft::Channel<int, P>();
  }
}

TEST_CASE_TEMPLATE("rule 1.6: on a buffered channel the slot stays occupied", P, POLICIES) {
  weft::Channel<int, P> c{weft::buffer(1)};
  int written = 0;
  auto writer = [](weft::Writer<int, P> w, int& n) -> Process {
    for (int i = 1; i <= 2; ++i) {
      co_await w.write(i);
      n = i;
    }
  };
  auto reader = [](weft::Reader<int, P> r, int& n) -> Process {
    co_await weft::yield();
    {
      auto x = co_await r.extended();
      CHECK(*x == 1);
      for (int i = 0; i < 4; ++i) co_await weft::yield();
      CHECK(n == 1);
    }
    CHECK(co_await r.read() == 2);
  };
  weft::run(writer(c.writer(), written), reader(c.reader(), written));
  CHECK(written == 2);
}

TEST_CASE_TEMPLATE(
    "rule 1.6: poison during the block does not take the value back, the writer succeeds", P,
    POLICIES) {
  weft::Channel<int, P> c;
  bool fine = false;
  auto writer = [](weft::Writer<int, P> w, bool& f) -> Process {
    co_await w.write(1);
    f = true;
    CHECK_THROWS_AS(co_await w.write(2), weft::Poisoned);
  };
  auto reader = [](weft::Reader<int, P> r, bool& f) -> Process {
    auto x = co_await r.extended();
    r.poison();
    co_await weft::yield();
    CHECK(*x == 1);
    CHECK_FALSE(f);
  };
  weft::run(writer(c.writer(), fine), reader(c.reader(), fine));
  CHECK(fine);
}

TEST_CASE_TEMPLATE(
    "rule 1.6: an extended read whose block is left by an exception lets the writer go", P,
    POLICIES) {
  weft::Channel<int, P> c;
  bool fine = false;
  auto writer = [](weft::Writer<int, P> w, bool& f) -> Process {
    co_await w.write(1);
    f = true;
  };
  auto reader = [](weft::Reader<int, P> r) -> Process {
    try {
      auto x = co_await r.extended();
      throw 1;
    } catch (int) {
    }
    co_await weft::yield();
  };
  weft::run(writer(c.writer(), fine), reader(c.reader()));
  CHECK(fine);
}

TEST_CASE("rule 1.7: a channel has a name, as given or where it was born") {
  weft::Channel<int> named{weft::named("orders")};
  CHECK(named.name() == "'orders'");
  weft::Channel<int> both{weft::buffer(2).called("orders")};
  CHECK(both.name() == "'orders'");
  both.writer()(1);  // The write does not wait, so the name has not changed the capacity.
  weft::Channel<int> born;
  CHECK(born.name() == "hosted_channels.cpp:" + std::to_string(__LINE__ - 1));
}
