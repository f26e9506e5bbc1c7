// Each operation of a thread process has the points of a coroutine's (rule 17.2): a network of
// threads has as many schedules as the same network of coroutines, without any reduction.
#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::Process, weft::Reader, weft::Search, weft::Writer;

template <class F>
std::size_t schedules(F f, Search search) {
  const auto r = weft::check(f, {.search = search, .seconds = 250});
  CHECK_MESSAGE(r.passed(), r.text);
  CHECK(r.complete);
  return r.schedules;
}
// Checks that both networks have the same number of schedules. A network is a function that returns
// without a failure in every order.
template <class A, class B>
void alike(A in_threads, B in_coroutines) {
  for (const Search search : {Search::all, Search::reduced}) {
    const std::size_t n = schedules(in_threads, search);
    CHECK(n == schedules(in_coroutines, search));
    CHECK(n >= 1);
  }
}

// The two functions below are partners of the operation under test.
Process writes(Writer<int> out) { co_await out.write(1); }
Process nothing() { co_return; }

}  // namespace

TEST_CASE("rule 17.2: points of a read and of a write") {
  alike(
      [] {
        Channel<int> c;
        weft::run(weft::thread([w = c.writer()] { w(1), w(2); }),
                  weft::thread([r = c.reader()] { r(), r(); }));
      },
      [] {
        Channel<int> c;
        weft::run(
            [](Writer<int> w) -> Process {
              co_await w.write(1);
              co_await w.write(2);
            }(c.writer()),
            [](Reader<int> r) -> Process {
              co_await r.read();
              co_await r.read();
            }(c.reader()));
      });
}
TEST_CASE("rule 17.2: points of a read that raises") {
  alike(
      [] {
        Channel<int> c(weft::buffer(1));
        weft::run(writes(c.writer()), weft::thread([r = c.reader()] {
                    r();
                    try {
                      r();
                    } catch (const weft::Retired&) {
                    }
                  }),
                  weft::thread([r = c.reader()] {}));
      },
      [] {
        Channel<int> c(weft::buffer(1));
        weft::run(
            writes(c.writer()),
            [](Reader<int> r) -> Process {
              co_await r.read();
              try {
                co_await r.read();
              } catch (const weft::Retired&) {
              }
            }(c.reader()),
            [](Reader<int>) -> Process { co_return; }(c.reader()));
      });
}
TEST_CASE("rule 17.2: points of selects") {
  alike(
      [] {
        Channel<int> a, b;
        weft::run(writes(a.writer()), writes(b.writer()),
                  weft::thread([a = a.reader(), b = b.reader()] {
                    weft::select(a, b)();
                    weft::select(a, b)();
                  }));
      },
      [] {
        Channel<int> a, b;
        weft::run(writes(a.writer()), writes(b.writer()),
                  [](Reader<int> a, Reader<int> b) -> Process {
                    co_await weft::select(a, b);
                    co_await weft::select(a, b);
                  }(a.reader(), b.reader()));
      });
  alike(
      [] {
        Channel<int> a;
        weft::run(writes(a.writer()), weft::thread([a = a.reader()] {
                    weft::Alternative alt(weft::Mode::fair, a, weft::skip());
                    if (alt.select()().index == 1) a();
                  }));
      },
      [] {
        Channel<int> a;
        weft::run(writes(a.writer()), [](Reader<int> a) -> Process {
          weft::Alternative alt(weft::Mode::fair, a, weft::skip());
          const auto got = co_await alt.select();
          if (got.index == 1) co_await a.read();
        }(a.reader()));
      });
}
TEST_CASE("rule 17.2: points of an extended read") {
  alike(
      [] {
        Channel<int> c;
        weft::run(writes(c.writer()), weft::thread([r = c.reader()] { auto x = r.extended()(); }));
      },
      [] {
        Channel<int> c;
        weft::run(writes(c.writer()),
                  [](Reader<int> r) -> Process { auto x = co_await r.extended(); }(c.reader()));
      });
}
TEST_CASE("rule 17.2: points of a sync, a sleep and a yield") {
  alike(
      [] {
        const weft::Barrier barrier(2);
        const auto party = [b = barrier]() mutable { b.sync()(), b.sync()(); };
        weft::run(weft::thread(party), weft::thread(party));
      },
      [] {
        const weft::Barrier barrier(2);
        const auto party = [](weft::Barrier b) -> Process {
          co_await b.sync();
          co_await b.sync();
        };
        weft::run(party(barrier), party(barrier));
      });
  alike(
      [] {
        weft::run(weft::thread([] { weft::sleep(1s)(), weft::sleep(0s)(); }),
                  weft::thread([] { weft::sleep(2s)(); }));
      },
      [] {
        weft::run(
            []() -> Process {
              co_await weft::sleep(1s);
              co_await weft::sleep(0s);
            }(),
            []() -> Process { co_await weft::sleep(2s); }());
      });
  alike(
      [] {
        const auto yields = [] { weft::yield()(), weft::yield()(); };
        weft::run(weft::thread(yields), weft::thread(yields));
      },
      [] {
        const auto yields = []() -> Process {
          co_await weft::yield();
          co_await weft::yield();
        };
        weft::run(yields(), yields());
      });
}
TEST_CASE("rule 17.2: points of a wait for processes") {
  alike(
      [] {
        weft::run(weft::thread([] {
          weft::Group g;
          g.start(nothing());
          g.start(nothing());
          g.wait()();
        }));
      },
      [] {
        weft::run([]() -> Process {
          weft::Group g;
          g.start(nothing());
          g.start(nothing());
          co_await g.wait();
        }());
      });
  alike(
      [] {
        weft::Watch<void> watch;
        weft::run(watch.of(nothing()), weft::thread([&] { watch.ended()(); }));
      },
      [] {
        weft::Watch<void> watch;
        weft::run(watch.of(nothing()),
                  [](weft::Watch<void>& w) -> Process { co_await w.ended(); }(watch));
      });
  alike([] { weft::run(weft::thread([] { weft::run(nothing(), nothing()); }), nothing()); },
        [] {
          weft::run([]() -> Process { co_await weft::par(nothing(), nothing()); }(), nothing());
        });
}
