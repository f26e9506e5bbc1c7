// Tests closures that return processes, wherever a process is expected: their captures exist as
// long as the process does (rule 2.3: in C++ a process holds the ends that its frame or closure
// contains).
#include <functional>
#include <optional>

#include "hosted.hpp"

using namespace test;

namespace {

const std::string text = "a text that is too long to lie in the string itself";

// A closure whose captures are used after all other code could have destroyed them. Each closure
// notes in `at_end` that its captures still exist; the channel's writer is destroyed with the
// closure.
auto waits(std::string s, std::shared_ptr<int> at_end, weft::Writer<int> w) {
  return [s = std::move(s), at_end = std::move(at_end), w = std::move(w)]() -> Process {
    co_await weft::sleep(1ms);
    CHECK(s == text);
    co_await w.write(1);
    ++*at_end;
  };
}
auto gives(std::string s) {
  return [s = std::move(s)]() -> ProcessOf<std::string> {
    co_await weft::sleep(1ms);
    co_return s + "!";
  };
}
ProcessOf<std::string> says(std::string s) {
  co_await weft::sleep(1ms);
  co_return s + "!";
}
ProcessOf<int> counts(weft::Reader<int> r) {
  int n = 0;
  while (co_await r.next()) ++n;
  co_return n;
}

// Starts closures of waits() by `start`, and counts how many of them have ended normally.
template <class Start>
int ended(Start start) {
  auto all = std::make_shared<int>(0);
  weft::Channel<int> c;
  const auto closure = [&] { return waits(text, all, c.writer()); };
  start(closure, counts(c.reader()));
  CHECK(all.use_count() == 1);  // The closures were destroyed, and their ends with them.
  return *all;
}

}  // namespace

TEST_CASE("rule 7.1: run takes closures") {
  CHECK(ended([](auto closure, auto counting) {
          auto [_, n] = weft::run(virtually, closure(), std::move(counting));
          CHECK(*n == 1);
        }) == 1);
  CHECK(ended([](auto closure, auto counting) {
          auto [_1, n, _2] = weft::run(closure(), std::move(counting), closure());
          CHECK(*n == 2);
        }) == 2);
  CHECK(weft::run(gives(text)) == text + "!");
  CHECK(weft::run(virtually, gives(text)) == text + "!");
  CHECK(weft::run({.cores = 2}, gives(text)) == text + "!");
  auto named = gives(text);
  CHECK(weft::run(named) == text + "!");  // runs a copy
  CHECK(weft::run(virtually, named) == text + "!");
  CHECK(weft::run([s = text] { return s.size(); }) == text.size());  // runs on a thread
  CHECK_THROWS_AS(weft::run([]() -> Process { throw weft::BadUse("no"); }), weft::BadUse);
}

TEST_CASE("rule 7.5: a group starts closures, in coroutines, threads and on several cores") {
  const auto in_group = [](auto closure, ProcessOf<int> counting, int& n) -> Process {
    weft::Group g;
    weft::Watch<int> w;
    g.start(w.of(std::move(counting)));
    {
      auto first = closure();
      g.start(first);  // starts a copy
      g.start(std::move(first));
      g.start(closure());
    }
    g.start([s = text] { CHECK(s == text); });  // runs on a thread
    co_await g.wait();
    n = *w.get().result;
  };
  for (const auto& options : {virtually, weft::RunOptions{}, weft::RunOptions{.cores = 2}})
    CHECK(ended([&](auto closure, auto counting) {
            int n = 0;
            weft::run(options, in_group(closure, std::move(counting), n));
            CHECK(n == 3);
          }) == 3);
  CHECK(ended([&](auto closure, auto counting) {
          weft::run(weft::thread([&] {
            weft::Group g;
            for (int i = 0; i < 3; ++i) g.start(closure());
            g.start(std::move(counting));
            g.wait()();
          }));
        }) == 3);
}

TEST_CASE("rule 7.4: spawn takes a closure") {
  CHECK(ended([](auto closure, auto counting) {
          auto p = [](auto make) -> Process {
            weft::spawn(make());
            weft::spawn([s = text] { CHECK(s == text); });
            co_return;
          };
          auto [_, n] = weft::run(virtually, p(closure), std::move(counting));
          CHECK(*n == 1);
        }) == 1);
}

TEST_CASE("rules 7.1, 7.3: par and seq take closures, in any number") {
  CHECK(ended([](auto closure, auto counting) {
          std::vector<decltype(closure())> several;
          for (int i = 0; i < 3; ++i) several.push_back(closure());
          weft::par{closure(), weft::seq{closure(), closure()}, std::move(several),
                    std::move(counting)}();
        }) == 6);
  auto p = [](auto make) -> Process {
    // g++ 12 accepts no closure with such captures in a co_await, so the block is made before the
    // co_await.
    auto block = weft::par(make(text), make(text));
    auto [a, b] = co_await std::move(block);
    CHECK(*a == text + "!");
    CHECK(*b == text + "!");
  };
  weft::run(virtually, p([](std::string s) { return gives(std::move(s)); }));
}

TEST_CASE("rules 7.11, 7.12: timeout and Watch take closures") {
  CHECK(weft::run(virtually, weft::timeout(1h, gives(text))) == text + "!");
  CHECK_FALSE(weft::run(virtually, weft::timeout(1us, gives(text))));
  const weft::Watch<std::string> w;
  weft::run(virtually, weft::par(w.of(gives(text))));
  CHECK(*w.get().result == text + "!");
  const weft::Watch<void> fails;
  weft::run(virtually, weft::par(fails.watched([s = text]() -> Process {
              co_await weft::yield();
              throw std::runtime_error(s);
            })));
  CHECK(fails.get().how == weft::Ending::failed);
}

TEST_CASE("a closure may return any process") {
  const weft::Cores pool(2);
  auto p = [s = text, &pool] { return says(s).on(pool); };
  CHECK(weft::run(p) == text + "!");
  CHECK(weft::run([p] { return weft::timeout(1h, p); }) == text + "!");
  CHECK(weft::run(weft::proc([s = text](int n) { return weft::thread([s, n] { return s[n]; }); },
                             2)) == text[2]);
}
