// Tests processes of any type in one list (AnyProcess), thread(f, args…), and a ProcessOf without
// co_return.
#include "hosted.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>

namespace {

using namespace test;

Process puts(weft::Writer<int> out, int v) { co_await out.write(v); }
void puts_in_thread(weft::Writer<int> out, int v) { out(v); }
ProcessOf<int> gives(int v) { co_return v; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // The missing co_return is intended.
ProcessOf<int> forgets(int v) {
  if (v > 0) co_return v;
}
constexpr unsigned read_line = __LINE__ + 2;
ProcessOf<int> forgets_after_read(weft::Reader<int> in) {
  const int v = co_await in.read();
  if (v > 0) co_return v;
}
#pragma GCC diagnostic pop
// Reads all values, and returns them sorted.
ProcessOf<std::vector<int>> all(weft::Reader<int> in) {
  std::vector<int> got;
  while (auto v = co_await in.next()) got.push_back(*v);
  std::sort(got.begin(), got.end());
  co_return got;
}
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("rule 7.1: processes of any kind stand in one vector, and run") {
  weft::Core core;
  weft::Channel<int> c;
  std::vector<weft::AnyProcess<>> ps;
  ps.push_back(puts(c.writer(), 1));
  ps.push_back(puts(c.writer(), 2).on(core));
  ps.push_back(weft::thread(puts_in_thread, c, 3));
  ps.push_back([w = c.writer()] { w(4); });
  ps.push_back([w = c.writer()] { return puts(w, 5); });
  ps.push_back(weft::par(puts(c.writer(), 6), puts(c.writer(), 7)));
  ps.push_back(weft::seq(puts(c.writer(), 8), puts(c.writer(), 9)));
  std::vector<Process> two;
  two.push_back(puts(c.writer(), 10));
  ps.push_back(std::move(two));
  const auto got = std::get<0>(weft::run(all(c.reader()), std::move(ps)));
  CHECK(*got == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("rules 7.1, 11.2: it runs once; an empty one is refused; ten thousand in one vector") {
  std::atomic<int> ran{0};
  weft::AnyProcess<> one(weft::thread([&] { ++ran; }));
  weft::run(std::move(one));
  CHECK_THROWS_AS(weft::run(std::move(one)), weft::BadUse);  // NOLINT: a second run is tested
  weft::AnyProcess<> first(weft::thread([&] { ++ran; }));
  weft::AnyProcess<> second(std::move(first));
  CHECK_THROWS_AS(weft::run(std::move(first)), weft::BadUse);  // NOLINT
  weft::run(std::move(second));
  CHECK(ran == 2);
  const auto adds = [](std::atomic<int>* n) -> weft::Process {
    ++*n;
    co_return;
  };
  std::vector<weft::AnyProcess<>> all;
  for (int i = 0; i < 10'000; ++i) all.emplace_back(adds(&ran));
  weft::run(std::move(all));
  CHECK(ran == 10'002);
  weft::run(std::vector<weft::AnyProcess<>>());  // There is nothing to do.
}

TEST_CASE("rule 7.1: run(vector), run(p, par(vector), q), vectors with results") {
  weft::Channel<int> c;
  const auto putting = [&](int v) {
    std::vector<Process> ps;
    ps.push_back(puts(c.writer(), v));
    ps.push_back(puts(c.writer(), v + 1));
    return ps;
  };
  const auto got = std::get<0>(
      weft::run(all(c.reader()), putting(1), weft::par(putting(3)), puts(c.writer(), 5)));
  CHECK(*got == std::vector<int>{1, 2, 3, 4, 5});

  std::vector<weft::AnyProcess<int>> giving;
  giving.push_back(gives(1));
  giving.push_back(weft::thread([](int v) { return v; }, 2));
  giving.push_back([] { return gives(3); });
  auto results = weft::run(std::move(giving));
  REQUIRE(results.size() == 3);
  CHECK(*results[0] + *results[1] + *results[2] == 6);

  CHECK(weft::run(weft::AnyProcess<int>(gives(4))) == 4);
  weft::run([]() -> Process {
    CHECK(co_await weft::AnyProcess<int>(gives(5)) == 5);
    weft::AnyProcess<> quiet([] {});
    co_await std::move(quiet);
    weft::Group g;
    g.start(weft::AnyProcess<>([] {}));
    weft::spawn(weft::AnyProcess<int>(gives(6)));
    co_await g.wait();
  });
  weft::AnyProcess<int> moved(gives(7));
  const auto there = std::move(moved);
  CHECK(there.startable());
  CHECK(has(message_of([&] { weft::run(std::move(moved)); }), "started already"));
}

TEST_CASE("rule 7.1: thread(f, args…) binds its arguments, as proc does") {
  weft::Channel<int> c;
  int sum = 0;
  const auto adds = [&sum](weft::Reader<int> in, int factor) {
    for (int v : in) sum += factor * v;
  };
  weft::run(weft::thread(puts_in_thread, c, 2), weft::thread(adds, c, 10).named("adder"));
  CHECK(sum == 20);
  CHECK(weft::run(weft::thread([](const char* text) { return std::string(text); }, "text")) ==
        "text");
  CHECK(weft::run(weft::thread(gives, 3)) == 3);  // The coroutine runs on the new thread.
  CHECK(weft::run(weft::thread([](std::unique_ptr<int> p) { return *p; },
                               std::make_unique<int>(4))) == 4);
}

TEST_CASE("rule 7.1: a ProcessOf that comes to its end without co_return has failed") {
  CHECK(weft::run(forgets(1)) == 1);
  CHECK_THROWS_AS(weft::run(forgets(0)), weft::BadUse);
  CHECK(has(message_of([] { weft::run(forgets(0)); }),
            "forgets: a ProcessOf gives its result by co_return"));
  weft::Channel<int> c;
  const std::string after =
      message_of([&] { weft::run(forgets_after_read(c.reader()), puts(c.writer(), 0)); });
  CAPTURE(after);
  CHECK(has(after, "library_any_process.cpp:" + std::to_string(read_line)));
  CHECK(has(after, "without one"));
  CHECK_THROWS_AS(weft::run([]() -> Process { co_await forgets(0); }), weft::BadUse);
  CHECK_THROWS_AS(weft::run([]() -> Process {
                    weft::spawn(forgets(0));
                    co_return;
                  }),
                  weft::BadUse);
}
