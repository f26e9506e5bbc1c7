// Thread processes under weft::check: they have the points and schedules of coroutines (rule 17.2),
// and what they cannot do in a check is refused (rule 17.9).
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Search, weft::Writer;

// Runs a search that must end. The time limit is generous, since the machine may be busy.
template <class F>
std::size_t runs(F f, bool fails = false, weft::CheckOptions o = {}) {
  o.search = Search::reduced;
  o.seconds = 250;
  o.keep_going = true;
  const auto r = weft::check(f, o);
  CHECK_MESSAGE(r.passed() != fails, r.text);
  CHECK(r.complete);
  return r.schedules;
}

void chain() {
  Channel<int> a, b, c;
  const auto pass = [](Reader<int> in, Writer<int> out) {
    for (const int v : in) out(v);
  };
  weft::run(weft::thread([w = a.writer()] {
              for (int i = 0; i < 5; ++i) w(i);
            }),
            weft::thread(pass, a.reader(), b.writer()), weft::thread(pass, b.reader(), c.writer()),
            weft::thread([r = c.reader()] {
              for ([[maybe_unused]] const int v : r) {
              }
            }));
}
void five_writers() {
  Channel<int> c;
  std::vector<weft::AnyProcess<>> all;
  for (int i = 0; i < 5; ++i) all.emplace_back(weft::thread([w = c.writer(), i] { w(i); }));
  all.emplace_back(weft::thread([r = c.reader()] {
    for (int i = 0; i < 5; ++i) r();
  }));
  weft::run(std::move(all));
}

Process eats(Writer<int> take, Writer<int> take_too, Reader<int> put, Reader<int> put_too) {
  co_await take.write(0);
  co_await take_too.write(0);
  co_await put_too.read();
  co_await put.read();
}
void eats_in_thread(Writer<int> take, Writer<int> take_too, Reader<int> put, Reader<int> put_too) {
  take(0);
  take_too(0);
  put_too();
  put();
}
// A fork is a buffer of one place. If `mixed`, every second philosopher is a coroutine.
void philosophers(std::size_t n, bool ordered, bool mixed) {
  std::vector<Channel<int>> forks;
  for (std::size_t i = 0; i < n; ++i) forks.emplace_back(weft::buffer(1));
  std::vector<weft::AnyProcess<>> all;
  for (std::size_t i = 0; i < n; ++i) {
    Channel<int> a = forks[i], b = forks[(i + 1) % n];
    if (ordered && i == n - 1) std::swap(a, b);
    if (mixed && i % 2 == 0)
      all.emplace_back(eats(a.writer(), b.writer(), a.reader(), b.reader()));
    else
      all.emplace_back(
          weft::thread(eats_in_thread, a.writer(), b.writer(), a.reader(), b.reader()));
  }
  weft::run(std::move(all));
}

// One thread process that performs every operation of threads, and its partner.
void everything() {
  Channel<int> c, d, e;
  const weft::Barrier barrier(2);
  weft::run(
      weft::thread([in = c.reader(), out = c.writer(), b = barrier, w = e.writer()]() mutable {
        weft::Watch<void> watch;
        weft::Group g;
        g.start(watch.of(weft::thread([out = std::move(out)] {
          out(1);
          out(2);
        })));
        weft::spawn(weft::thread([w = std::move(w)] { w(3); }));
        CHECK(in() == 1);
        {
          const weft::Timeout limit(1s);
          CHECK(in() == 2);
        }
        watch.ended()();
        g.wait()();
        b.sync()();
        weft::sleep(1h)();
        weft::sleep(0s)();
        weft::yield()();
        weft::run([]() -> Process { co_await weft::yield(); }(), weft::thread([] {}));
      }),
      weft::thread([b = barrier, in = e.reader(), w = d.writer(), r = d.reader()] {
        b.sync()();
        {
          auto x = in.extended()();
          CHECK(*x == 3);
        }
        weft::par(weft::thread([&] { w(4); }), weft::thread([&] { CHECK(r() == 4); }))();
        CHECK(weft::select(r, weft::after(1s))().index == 1);
        weft::Alternative alt(weft::Mode::fair, r, weft::skip());
        CHECK(alt.select()().index == 1);
        CHECK(weft::blocking([] { return 5; })() == 5);
      }));
}

void refused(const std::function<void()>& f, const char* why) {
  CAPTURE(std::string(why));
  try {
    weft::check(f);
    FAIL_CHECK("it was not refused");
  } catch (const weft::BadUse& e) {
    CHECK_MESSAGE(std::string(e.what()).find(why) != std::string::npos, e.what());
  }
}

}  // namespace

TEST_CASE("rules 17.2, 17.7: thread processes need as many runs as coroutines") {
  CHECK(runs(chain) == 1);
  CHECK(runs(five_writers) == 120);
  for (const bool mixed : {false, true}) {
    CHECK(runs([mixed] { philosophers(3, false, mixed); }, true) == 7);
    CHECK(runs([mixed] { philosophers(5, true, mixed); }) == 30);
  }
}
TEST_CASE("rule 17.2: with the grain park, philosophers in threads have no deadlock") {
  runs([] { philosophers(3, false, false); }, false, {.only_where_parked = true});
}
TEST_CASE("rule 17.2: every operation of a thread process is checked") {
  const auto r = weft::check(everything, {.seconds = 250, .schedules = 600});
  CHECK_MESSAGE(r.passed(), r.text);
  CHECK(r.schedules > 1);
}
TEST_CASE("rule 17.8: the failure of a thread process is told, and replayed by its token") {
  const auto f = [] { philosophers(2, false, false); };
  const auto r = weft::check(f, {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].kind == "deadlock");
  for (const char* part : {"thread[0]", "checked_threads.cpp:", "waits for ever", "knot:"}) {
    CAPTURE(part);
    CHECK_MESSAGE(r.text.find(part) != std::string::npos, r.text);
  }
  const auto again = weft::check(f, {.seconds = 0, .replay = {r.failures[0].token}});
  REQUIRE(again.failures.size() == 1);
  CHECK(again.failures[0].kind == "deadlock");
}
TEST_CASE("rule 17.5: an exception of a thread process fails the schedule") {
  const auto r = weft::check(
      [] {
        Channel<int> c;
        weft::run(weft::thread([w = c.writer()] { w(1); }),
                  weft::thread([w = c.writer()] { w(2); }), weft::thread([r = c.reader()] {
                    if (r() == 2) throw std::runtime_error("2 came first");
                    r();
                  }));
      },
      {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].what == "2 came first");
  CHECK(r.failures[0].deviations == 1);
}
TEST_CASE("rule 17.2: thread processes handle exceptions of their own between their operations") {
  // Each process lets the other process run while it handles an exception, and while an exception
  // unwinds its stack.
  struct Last {
    const Writer<int>& out;
    ~Last() { out(std::uncaught_exceptions()); }
  };
  const auto handles = [](Reader<int> in, Writer<int> out, const std::string& mine) {
    try {
      const Last last{out};
      throw std::runtime_error(mine);
    } catch (const std::exception& e) {
      CHECK(in() == 1);
      CHECK(e.what() == mine);
      CHECK(std::uncaught_exceptions() == 0);
      try {
        throw;
      } catch (const std::exception& same) {
        CHECK(same.what() == mine);
      }
    }
  };
  const auto r = weft::check(
      [&] {
        Channel<int> c(weft::buffer(1)), d(weft::buffer(1));
        weft::run(weft::thread(handles, c.reader(), d.writer(), std::string("first")),
                  weft::thread(handles, d.reader(), c.writer(), std::string("second")));
      },
      {.search = Search::all, .seconds = 250, .schedules = 500});
  CHECK_MESSAGE(r.passed(), r.text);
}
TEST_CASE("rule 17.9: what a thread process cannot do in a check is refused by name") {
  refused(
      [] {
        Channel<int> c, d;
        weft::run(weft::thread([r = c.reader(), w = c.writer()] { weft::par_read(r, r)(); }));
      },
      "par_read");
  refused([] { weft::run(weft::thread([] { weft::run({.cores = 2}, weft::seq()); })); },
          "executor");
  // A thread that Weft did not start performs each type of operation.
  const auto blocks = [](const Writer<int>& w) { w(1); };
  const auto awaits = [](const Writer<int>& w) {
    weft::run([](Writer<int> out) -> Process { co_await out.write(1); }(w));
  };
  const auto selects = [](const Writer<int>& w) { weft::select(weft::out(w, 1))(); };
  for (const std::function<void(const Writer<int>&)>& uses :
       {std::function<void(const Writer<int>&)>(blocks), {awaits}, {selects}})
    refused(
        [&uses] {
          Channel<int> c;
          const Reader<int> stays = c.reader();
          std::thread other([&uses, w = c.writer()] {
            try {
              uses(w);
            } catch (const weft::BadUse&) {
            }
          });
          weft::run(weft::thread([] {}));
          other.join();
        },
        "not Weft's");
#if defined(__linux__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
  refused(
      [] {
        std::mutex m;
        Channel<int> c;
        weft::run(weft::thread([&m, w = c.writer()] {
                    const std::lock_guard g(m);
                    w(1);
                  }),
                  weft::thread([&m, r = c.reader()] {
                    const std::lock_guard g(m);
                    r();
                  }));
      },
      "a lock (std::mutex)");
  // A lock that no process holds during an operation works as usual.
  CHECK(runs([] {
          std::mutex m;
          const auto locks = [&m] { const std::lock_guard g(m); };
          weft::run(weft::thread(locks), weft::thread(locks));
        }) == 1);
#endif
}
TEST_CASE("rule 15.9: in a check a coroutine calls a function that blocks where it stands") {
  CHECK(runs([] {
          weft::run([]() -> Process {
            const int five = co_await weft::blocking([] { return 5; });
            CHECK(five == 5);
          }());
        }) == 1);
}
TEST_CASE("rules 7.7, 17.2: a thread process that yields goes on after the others, usually") {
  std::string order;
  const auto r = weft::check(
      [&] {
        weft::run(weft::thread([&] {
                    weft::yield()();
                    order += 'a';
                  }),
                  weft::thread([&] { order += 'b'; }));
        order += ' ';
      },
      {.search = Search::all, .seconds = 250, .schedules = 1});
  CHECK_MESSAGE(r.passed(), r.text);
  CHECK(order == "ba ba ba ");  // two plain runs, and one schedule
}
TEST_CASE(
    "rule 17.8: what a thread process does while its stack is unwound is told with its line") {
  unsigned line = 0;
  struct Last {
    const Writer<int>& out;
    unsigned& line;
    ~Last() { out((line = __LINE__, 1)); }
  };
  const auto r = weft::check(
      [&line] {
        Channel<int> c(weft::buffer(1));
        weft::run(weft::thread([r = c.reader()] { r(); }), weft::thread([&line, w = c.writer()] {
                    const Last last{w, line};
                    throw std::runtime_error("wrong");
                  }));
      },
      {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].what == "wrong");
  CHECK_MESSAGE(
      r.text.find("checked_threads.cpp:" + std::to_string(line) + "  done") != std::string::npos,
      r.text);
}
TEST_CASE("rule 17.9: a coroutine that blocks is refused beside thread processes too") {
  const auto r = weft::check(
      [] {
        Channel<int> c;
        weft::run(weft::thread([r = c.reader()] { r(); }), [](Writer<int> w) -> Process {
          w(1);
          co_return;
        }(c.writer()));
      },
      {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK_MESSAGE(r.failures[0].what.find("in a coroutine process use co_await") != std::string::npos,
                r.text);
}
TEST_CASE("rule 17.2: times that come early, while a thread process could go on") {
  const auto sleeps = [](Writer<int> out) {
    for (int i = 1; i <= 2; ++i) {
      weft::sleep(std::chrono::seconds(i))();
      out(i);
    }
  };
  const auto r = weft::check(
      [&] {
        Channel<int> c;
        weft::run(weft::thread(sleeps, c.writer()), weft::thread(sleeps, c.writer()),
                  weft::thread([r = c.reader()] {
                    int sum = 0;
                    for (const int v : r) sum += v;
                    CHECK(sum == 6);
                  }));
      },
      {.search = Search::walk, .seconds = 250, .schedules = 200, .any_time = true});
  CHECK_MESSAGE(r.passed(), r.text);
  CHECK(r.schedules == 200);
}
TEST_CASE("rule 17.8: that a read of a thread process has raised is told, and that it has ended") {
  const auto r = weft::check(
      [] {
        Channel<int> c(weft::buffer(1));
        weft::run(weft::thread([w = c.writer()] { w(1); }), weft::thread([r = c.reader()] {
                    r();
                    try {
                      r();
                    } catch (const weft::Retired&) {
                      throw std::runtime_error("no second value");
                    }
                  }));
      },
      {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].what == "no second value");
  for (const char* part : {"its channel has ended\n", "main/thread[0]  ends\n"}) {
    CAPTURE(part);
    CHECK_MESSAGE(r.text.find(part) != std::string::npos, r.text);
  }
}
