// Tests the forms that cpp/docs/lifetimes.md recommends: each object is made once and destroyed
// once, where it was made, also under g++ 12, which destroys some temporaries of a co_await
// expression twice.
#include <functional>

#include <weft/plugnplay.hpp>
#include <weft/skeletons.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

// Counts in `wrong` each object whose bits were copied or that was destroyed twice.
struct Whole {
  static inline int alive = 0, wrong = 0;
  const Whole* self = this;
  int n;
  explicit Whole(int k) noexcept : n(k) { ++alive; }
  Whole(const Whole& o) noexcept : n(o.n) {
    ++alive;
    o.look();
  }
  Whole(Whole&& o) noexcept : n(o.n) {
    ++alive;
    o.look();
  }
  Whole& operator=(const Whole&) = delete;
  ~Whole() {
    look();
    self = nullptr;
    --alive;
  }
  void look() const noexcept { wrong += self != this; }
  int value() const noexcept {
    look();
    return n;
  }
};
struct Found {  // an aggregate
  Whole what;
  int depth;
};
struct Made {  // the same members, with a constructor
  Whole what;
  int depth;
  Made(Whole w, int d) : what(std::move(w)), depth(d) {}
};

template <class F>
void all_whole(F p) {
  Whole::alive = Whole::wrong = 0;
  weft::run(virtually, p());
  CHECK(Whole::wrong == 0);
  CHECK(Whole::alive == 0);
}

}  // namespace

TEST_CASE("g++ 12: calls that block (rule 15.9)") {
  all_whole([]() -> Process {
    const Whole w(3);
    CHECK(co_await weft::blocking([&w] { return w.value(); }) == 3);
    auto call = weft::blocking([w] { return w.value(); });
    CHECK(co_await std::move(call) == 3);
    const auto f = [w] { return w.value(); };
    CHECK(co_await weft::blocking(f) == 3);
    CHECK(co_await weft::blocking(std::function<int()>(f)) == 3);
  });
}
TEST_CASE("g++ 12: blocks, threads, limits, handles (rules 7.1, 7.11, 7.12)") {
  all_whole([]() -> Process {
    const Whole w(3);
    int n = 0;
    co_await weft::par{[&]() -> Process {
                         co_await weft::yield();
                         n += w.value();
                       },
                       weft::thread([&w] { CHECK(w.value() == 3); })};
    co_await weft::seq([&]() -> Process {
      n += w.value();
      co_return;
    });
    const auto several = [&w]() -> ProcessOf<int> {
      co_await weft::yield();
      co_return w.value();
    };
    auto [a, b] = co_await weft::par(several, several);
    n += *a + *b;
    auto block = weft::par{[w]() -> ProcessOf<int> {
                             co_await weft::yield();
                             co_return w.value();
                           },
                           weft::thread([w] { return w.value(); })};
    auto [c, d] = co_await block;
    n += *c + *d;
    CHECK(co_await weft::timeout(1h, [&]() -> Process {
      n += w.value();
      co_return;
    }));
    const weft::Watch<void> watch;
    co_await watch.watched([&]() -> Process {
      n += w.value();
      co_return;
    });
    CHECK(n == 24);
    weft::Group group;
    group.start([w]() -> Process {
      co_await weft::yield();
      CHECK(w.value() == 3);
    });
    co_await group.wait();
  });
}
TEST_CASE("g++ 12: values of writes and of choices (rules 1.1, 5.2)") {
  all_whole([]() -> Process {
    weft::Channel<Found> c{weft::buffer(16)};
    weft::Channel<Made> m{weft::buffer(16)};
    weft::Channel<Whole> x{weft::buffer(16)};
    auto w = c.writer();
    auto to = m.writer();
    auto out = x.writer();
    const Whole what(3);
    Found found{what, 1};
    co_await w.write(found);
    CHOSEN(weft::select(weft::out(w, found), weft::skip()), 0);
    CHOSEN(weft::select(weft::out(w, std::move(found)), weft::skip()), 0);
    CHOSEN(weft::select(weft::out_with(w, [&what] { return Found{what, 1}; }), weft::skip()), 0);
    co_await to.write(Made(what, 1));
    co_await to.write(Made{what, 1});
    co_await to.write({what, 1});
    CHOSEN(weft::select(weft::out(to, Made(what, 1)), weft::skip()), 0);
    CHOSEN(weft::select(weft::out(to, {what, 1}), weft::skip()), 0);
    CHOSEN(weft::select(weft::out_with(to, [&what] { return Made(what, 1); }), weft::skip()), 0);
    co_await out.write(Whole(3));
    co_await weft::par_write(out, Whole(3), out, Whole(4));
    auto select = weft::select(weft::out_with(out, [what] { return what; }), weft::skip());
    CHOSEN(select, 0);
    w.retire();
    to.retire();
    out.retire();
    auto r = c.reader();
    int n = 0;
    while (auto f = co_await r.next()) n += f->what.value() + f->depth;
    auto s = m.reader();
    while (auto f = co_await s.next()) n += f->what.value() + f->depth;
    auto t = x.reader();
    while (auto f = co_await t.next()) n += f->value();
    CHECK(n == 4 * 4 + 6 * 4 + 3 * 3 + 4);
  });
}
TEST_CASE("g++ 12: processes to take and connect, skeletons, executors") {
  all_whole([]() -> Process {
    namespace pnp = weft::plugnplay;
    namespace sk = weft::skeletons;
    const Whole w(3);
    weft::Channel<int> a, b;
    int sum = 0;
    const auto adds = [](weft::Reader<int> r, int& to) -> Process {
      while (auto v = co_await r.next()) to += *v;
    };
    auto numbers = [](weft::Writer<int> out) -> Process {
      for (int i = 1; i <= 3; ++i) co_await out.write(i);
    };
    co_await weft::par(numbers(a.writer()),
                       pnp::transform<int, int>(a, b, [&w](int k) { return k * w.value(); }),
                       adds(b.reader(), sum));
    CHECK(sum == 18);
    const std::vector<int> items{1, 2, 3};
    const auto got = co_await sk::map(sk::workers(2), items, [&w](int k) { return k * w.value(); });
    CHECK(got == std::vector{3, 6, 9});
    const weft::Core core;
    const auto there = [](const Whole& what) -> Process {
      CHECK(what.value() == 3);
      co_return;
    };
    co_await weft::par(there(w).on(core), there(w).pinned(0));
  });
}
