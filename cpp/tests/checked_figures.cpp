// Tests weft::check as its user calls it: the number of runs that represent all runs, failures and
// their reports, tokens, and the programs that are refused (rule 17).
#include <set>
#include <stdexcept>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/io.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Search, weft::Writer;

Process writes(Writer<int> out, int n) {
  for (int i = 0; i < n; ++i) co_await out.write(i);
}
Process reads(Reader<int> in, int n) {
  for (int i = 0; i < n; ++i) co_await in.read();
}
Process drains(Reader<int> in) {
  while (const auto v = co_await in.next()) {
  }
}

template <class P>
void chain() {
  Channel<int, P> a, b, c, d;
  const auto pass = [](Reader<int, P> in, Writer<int, P> out) -> Process {
    while (const auto v = co_await in.next()) co_await out.write(*v);
  };
  const auto source = [](Writer<int, P> out) -> Process {
    for (int i = 0; i < 5; ++i) co_await out.write(i);
  };
  const auto sink = [](Reader<int, P> in) -> Process {
    while (const auto v = co_await in.next()) {
    }
  };
  weft::run(source(a.writer()), pass(a.reader(), b.writer()), pass(b.reader(), c.writer()),
            pass(c.reader(), d.writer()), sink(d.reader()));
}
void five_writers() {
  Channel<int> c;
  std::vector<Process> all;
  for (int i = 0; i < 5; ++i) all.push_back(writes(c.writer(), 1));
  all.push_back(reads(c.reader(), 5));
  weft::run(std::move(all));
}
// A fork is a buffer of one place.
Process eats(Writer<int> take, Writer<int> take_too, Reader<int> put, Reader<int> put_too) {
  co_await take.write(0);
  co_await take_too.write(0);
  co_await put_too.read();
  co_await put.read();
}
void philosophers(std::size_t n, bool ordered) {
  std::vector<Channel<int>> forks;
  for (std::size_t i = 0; i < n; ++i) forks.emplace_back(weft::buffer(1));
  std::vector<Process> all;
  for (std::size_t i = 0; i < n; ++i) {
    Channel<int> a = forks[i], b = forks[(i + 1) % n];
    if (ordered && i == n - 1) std::swap(a, b);
    all.push_back(eats(a.writer(), b.writer(), a.reader(), b.reader()));
  }
  weft::run(std::move(all));
}

// Two keys, which two processes take in opposite orders; in a plain run the second process begins
// late.
struct Key {
  Channel<int> taken, put;
  Key(const char* taken_name, const char* put_name)
      : taken(weft::named(taken_name)), put(weft::named(put_name)) {}
};
struct KeyEnds {
  Writer<int> take, put;
  explicit KeyEnds(const Key& k) : take(k.taken.writer()), put(k.put.writer()) {}
};
Process takes_both(KeyEnds first, KeyEnds second, Reader<int> go) {
  if (go) co_await go.read();
  co_await first.take.write(0);
  co_await second.take.write(0);
  co_await second.put.write(0);
  co_await first.put.write(0);
}
Process key(Reader<int> taken, Reader<int> put) {
  while (const auto v = co_await taken.next()) co_await put.read();
}
Process hop(Reader<int> in, Writer<int> out) { co_await out.write(co_await in.read()); }
void hidden(bool mended) {
  Key a("A", "A.free"), b("B", "B.free");
  Channel<int> h[4];
  weft::run(takes_both(KeyEnds(a), KeyEnds(b), Reader<int>()),
            takes_both(KeyEnds(mended ? a : b), KeyEnds(mended ? b : a), h[3].reader()),
            key(a.taken.reader(), a.put.reader()), key(b.taken.reader(), b.put.reader()),
            writes(h[0].writer(), 1), hop(h[0].reader(), h[1].writer()),
            hop(h[1].reader(), h[2].writer()), hop(h[2].reader(), h[3].writer()));
}

// Runs a search that must end. The time limit is generous, since the machine may be busy.
template <class F>
std::size_t runs(F f, bool fails = false) {
  const auto r = weft::check(f, {.search = Search::reduced, .seconds = 250, .keep_going = true});
  CHECK_MESSAGE(r.passed() != fails, r.text);
  CHECK(r.complete);
  return r.schedules;
}

}  // namespace

TEST_CASE("rule 17.7: channels with one reader and one writer each need one run") {
  CHECK(runs(chain<weft::Shared>) == 1);
  CHECK(runs(chain<weft::Local>) == 1);
}
TEST_CASE("rule 17.7: how many runs stand for all") {
  CHECK(runs(five_writers) == 120);
  CHECK(runs([] { philosophers(3, false); }, true) == 7);
  CHECK(runs([] { philosophers(5, true); }) == 30);
  CHECK(runs([] { philosophers(8, true); }) == 254);
  CHECK(runs([] { hidden(false); }, true) == 3);
  CHECK(runs([] { hidden(true); }) == 2);
}
TEST_CASE("rule 17.8: a failure is made short, told, and replayed by its token") {
  const auto r = weft::check([] { hidden(false); }, {.seconds = 250, .name = "hidden"});
  REQUIRE(r.failures.size() == 1);
  const weft::CheckFailure& f = r.failures[0];
  CHECK(f.kind == "deadlock");
  CHECK(f.schedule == 2);
  CHECK(f.deviations == 1);
  CHECK(f.least);
  for (const char* part :
       {"hidden: deadlock", "made short: 1 deviation; no schedule with fewer", "write 'A'",
        "checked_figures.cpp:", "waits for ever", "knot:", "goes first", "replay: weft::check("}) {
    CAPTURE(part);
    CHECK_MESSAGE(r.text.find(part) != std::string::npos, r.text);
  }
  // This check runs the token alone: the search has no schedule to run.
  weft::CheckOptions only{.seconds = 0, .replay = {f.token}};
  const auto again = weft::check([] { hidden(false); }, only);
  REQUIRE(again.failures.size() == 1);
  CHECK(again.failures[0].kind == "deadlock");
  CHECK(again.failures[0].token == f.token);
  CHECK(again.schedules == 0);
  // The token's schedule does not fail once the program's bug is fixed. A token that does not fit
  // the program is reported.
  CHECK(weft::check([] { hidden(true); }, only).passed());
  only.replay = {"w1:nobody@3=par"};
  const auto other = weft::check([] { hidden(true); }, only);
  CHECK(other.passed());
  CHECK_MESSAGE(other.text.find("does not fit") != std::string::npos, other.text);
}
TEST_CASE("rule 17.8: a token that cannot be read says so") {
  for (const char* token : {"", "shop", "w2:a@1=b", "w1:a@1", "w1:@1=b", "w1:a@x=b", "w1-3.1-2.1",
                            "w1-3", "w1:a@1+b", "w1:a@1=b,", "w1:a@1.0+1", "w1:a@1.2=b"}) {
    CAPTURE(token);
    CHECK_THROWS_AS(weft::check(five_writers, {.replay = {token}}), weft::BadUse);
  }
}
TEST_CASE("rule 17.4: every way of searching begins with a plain run, or finds what it would") {
  const auto stuck = [] {
    Channel<int> c, d;
    weft::run(hop(c.reader(), d.writer()), hop(d.reader(), c.writer()));
  };
  for (const Search way : {Search::automatic, Search::reduced, Search::all, Search::walk,
                           Search::priorities, Search::few}) {
    const auto r = weft::check(stuck, {.search = way, .seconds = 250});
    REQUIRE(r.failures.size() == 1);
    CHECK(r.failures[0].schedule == 1);
    CHECK(r.failures[0].deviations == 0);
    CHECK(r.failures[0].token == "w1");
  }
}
TEST_CASE("rule 17.5: an exception, a run without end, lost values") {
  const auto fails = [](auto f) {
    const auto r = weft::check(f, {.search = Search::reduced, .seconds = 250});
    REQUIRE(r.failures.size() == 1);
    return r.failures[0];
  };
  const auto thrown = fails([] { throw std::runtime_error("a comes first"); });
  CHECK(thrown.kind == "exception");
  CHECK(thrown.what == "a comes first");
  const auto no_end = fails([] {
    Channel<int> c, d;
    const auto echo = [](Reader<int> in, Writer<int> out) -> Process {
      for (;;) co_await out.write(co_await in.read());
    };
    weft::run(
        [](Writer<int> out, Reader<int> in) -> Process {
          for (;;) {
            co_await out.write(0);
            co_await in.read();
          }
        }(c.writer(), d.reader()),
        echo(c.reader(), d.writer()));
  });
  CHECK(no_end.kind == "no end");
  const auto lost = fails([] {
    Channel<int> c(weft::buffer(2));
    weft::run(writes(c.writer(), 2), reads(c.reader(), 1));
  });
  CHECK(lost.kind == "lost values");
}
TEST_CASE("rule 17.1: which ready guard a fair or a random select takes") {
  for (const weft::Mode mode : {weft::Mode::fair, weft::Mode::random}) {
    std::set<int> first;
    const auto r = weft::check(
        [&] {
          Channel<int> a(weft::buffer(1)), b(weft::buffer(1));
          weft::run([](Writer<int> x, Writer<int> y, Reader<int> p, Reader<int> q, weft::Mode how,
                       std::set<int>& seen) -> Process {
            co_await x.write(0);
            co_await y.write(0);
            const auto one = co_await weft::select(how, p, q);
            seen.insert(one.index);
            if (one.index == 0)
              co_await q.read();
            else
              co_await p.read();
          }(a.writer(), b.writer(), a.reader(), b.reader(), mode, first));
        },
        {.search = Search::reduced, .seconds = 250});
    CHECK(r.passed());
    CHECK(r.complete);
    CHECK(first == std::set<int>{0, 1});
  }
}
TEST_CASE("rule 17.3: time is virtual; a time comes early only with any_time") {
  const auto late = [] {
    Channel<int> c;
    weft::run([](Writer<int> out) -> Process { co_await out.write(1); }(c.writer()),
              [](Reader<int> in) -> Process {
                const auto got = co_await weft::select(in, weft::after(1h));
                if (got.index == 1) throw std::runtime_error("an hour is over");
                co_await weft::sleep(24h);
              }(c.reader()));
  };
  CHECK(weft::check(late, {.seconds = 250}).passed());
  const auto r = weft::check(late, {.search = Search::reduced, .seconds = 250, .any_time = true});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].what == "an hour is over");
  CHECK_MESSAGE(r.failures[0].token.ends_with("="), r.failures[0].token);
}
TEST_CASE("rule 17.2: the grain park has the orders of one scheduler") {
  weft::CheckOptions o{.search = Search::reduced, .seconds = 250, .only_where_parked = true};
  CHECK(weft::check([] { philosophers(3, false); }, o).passed());
}
TEST_CASE("rule 17.9: a program that is not the same twice") {
  for (const int every : {2, 3}) {  // Every second, or every third, run differs.
    int calls = 0;
    const auto r = weft::check(
        [&] {
          Channel<int> c;
          std::vector<Process> all;
          all.push_back(writes(c.writer(), 1));
          all.push_back(drains(c.reader()));
          if (++calls % every == 0) all.push_back(drains(c.reader()));
          weft::run(std::move(all));
        },
        {.search = Search::all, .seconds = 250});
    REQUIRE(r.failures.size() == 1);
    CHECK(r.failures[0].kind == "not the same");
    CHECK(r.text.find("not the same twice") != std::string::npos);
  }
}
TEST_CASE("rule 17.9: a token of outside keeps no checked network from its deadlock") {
  const weft::Outside token, due(weft::Outside::due);
  const auto r = weft::check([] {
    Channel<int> c;
    const auto mine = c.writer();
    weft::run(reads(c.reader(), 1));
  });
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].kind == "deadlock");
}

TEST_CASE("rule 17.9: what cannot be checked is refused by name") {
  const auto refused = [](auto f, const char* why) {
    CAPTURE(std::string(why));
    try {
      weft::check(f);
      FAIL_CHECK("it was not refused");
    } catch (const weft::BadUse& e) {
      CHECK_MESSAGE(std::string(e.what()).find(why) != std::string::npos, e.what());
    }
  };
  refused([] {}, "runs no network");
  refused([] { weft::run({.cores = 2}, weft::seq()); }, "executor");
  refused(
      [] {
        const weft::Core core;
        Channel<int> c;
        weft::run(writes(c.writer(), 1).on(core), reads(c.reader(), 1));
      },
      "another executor");
  refused([] { weft::check(five_writers); }, "within a checked function");
#if defined(__linux__)
  // rule 18.7
  refused(
      [] {
        weft::run(
            []() -> Process { co_await weft::select(weft::io::readable(0), weft::skip()); }());
      },
      "weft::io");
#endif
  refused(
      [] {
        Channel<int> c;
        c.writer()(1);
      },
      "writer(value)");
}
TEST_CASE("rule 17: groups, spawned processes, watches, barriers and limits are checked") {
  const auto all = [] {
    Channel<int> c, d;
    const weft::Barrier barrier(2);
    weft::run(
        [](Reader<int> in, Writer<int> out, weft::Barrier b, Writer<int> e) -> Process {
          weft::Watch<void> watch;
          weft::Group g;
          g.start(watch.of(writes(std::move(out), 2)));
          weft::spawn(writes(std::move(e), 1));
          co_await in.read();
          {
            weft::Timeout limit(1s);
            co_await in.read();
          }
          co_await watch.ended();
          co_await g.wait();
          co_await b.sync();
        }(c.reader(), c.writer(), barrier, d.writer()),
        [](weft::Barrier b, Reader<int> in) -> Process {
          co_await b.sync();
          const auto x = co_await in.extended();
          co_await weft::yield();
        }(barrier, d.reader()));
  };
  const auto r = weft::check(all, {.seconds = 250, .schedules = 2000});
  CHECK_MESSAGE(r.passed(), r.text);
}
TEST_CASE("a program that could be checked runs plainly, too") {
  philosophers(5, true);
  CHECK_THROWS_AS(
      weft::run([](Reader<int> in) -> Process { co_await in.read(); }(Channel<int>().reader())),
      weft::Error);
}
