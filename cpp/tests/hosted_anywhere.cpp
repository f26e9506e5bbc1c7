// Placeable processes as coroutines of a C++ program (rules 19.1 to 19.4).
// python/tests/test_native_anywhere.py runs the same source as a component, with the same results.
#include <weft/anywhere.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace placed {
#include "anywhere_source.cpp"

weft::Process gives(weft::Writer<Int> out, std::vector<Int> values) {
  for (const Int v : values) co_await out.write(v);
}
template <class T>
weft::Process keeps(weft::Reader<T> in, std::vector<T>& got) {
  while (auto v = co_await in.next()) got.push_back(*v);
}

TEST_CASE("rule 19.1: a placeable process is a process of the hosted library") {
  weft::Channel<Int> a, b;
  std::vector<Int> got;
  weft::run(gives(a.writer(), {0, 1, 4, 9, 16, 25}), smooth(a.reader(), b.writer(), 2),
            keeps(b.reader(), got));
  CHECK(got == std::vector<Int>{0, 0, 2, 6, 12, 20});
}

TEST_CASE("rule 19.3: an end that a process does not ask about ends it") {
  weft::Channel<Int> a, b;
  std::vector<Int> got;
  weft::run(gives(a.writer(), {1, 2, 3}), copies(a.reader(), b.writer()), keeps(b.reader(), got));
  CHECK(got == std::vector<Int>{1, 2, 3});
}

TEST_CASE("rules 19.3, 4.3: so does poison, which spreads") {
  weft::Channel<Int> a, b;
  weft::Channel<std::string> log;
  std::vector<std::string> got;
  weft::run(tells(a.writer(), log.writer()), copies(a.reader(), b.writer()),
            stops(b.reader(), 3, true), keeps(log.reader(), got));
  REQUIRE(got.size() == 1);
  CHECK(got[0].rfind("poisoned after ", 0) == 0);
}

TEST_CASE("rule 19.4: write_or_end says how the channel has ended") {
  for (const bool poisons : {false, true}) {
    weft::Channel<Int> a;
    weft::Channel<std::string> log;
    std::vector<std::string> got;
    weft::run(tells(a.writer(), log.writer()), stops(a.reader(), 3, poisons),
              keeps(log.reader(), got));
    CHECK(got == std::vector<std::string>{poisons ? "poisoned after 3" : "retired after 3"});
  }
}

TEST_CASE("rule 19.4: write_or_end at a closed end is bad use") {
  weft::Channel<Int> a;
  auto w = a.writer();
  w.retire();
  CHECK_THROWS_AS(static_cast<void>(weft::write_or_end(w, 1)), weft::BadUse);
}

TEST_CASE("rules 19.4, 6.1: write_or_end of a cancelled process is Cancelled") {
  weft::Channel<Int> a;
  auto r = a.reader();
  weft::Channel<std::string> log;
  std::vector<std::string> got;
  CHECK_THROWS_AS(weft::run(tells(a.writer(), log.writer()), keeps(log.reader(), got)),
                  weft::Deadlock);
  CHECK(got.empty());
}

TEST_CASE("rule 19.2: a select gives the index and the value") {
  weft::Channel<Int> numbers;
  weft::Channel<std::string> texts, log;
  const auto open = numbers.writer();  // keeps the channel open, so the limit decides (rule 5.6)
  std::vector<std::string> got;
  auto feeds = [](weft::Writer<Int> n, weft::Writer<std::string> t) -> weft::Process {
    co_await n.write(7);
    t.retire();
  };
  weft::run({weft::Clock::virtual_time},
            weft::par(feeds(numbers.writer(), texts.writer()),
                      chooses(numbers.reader(), texts.reader(), log.writer(), "guard "),
                      keeps(log.reader(), got)));
  CHECK(got == std::vector<std::string>{"guard 0 7", "guard ", "guard 3", "over"});
}

TEST_CASE("rule 19.2: barriers and times") {
  weft::Barrier barrier(2);
  weft::Channel<Int> a, b, c;
  std::vector<Int> one, two, three;
  weft::run({weft::Clock::virtual_time},
            weft::par(phases(barrier, a.writer(), 2), phases(barrier, b.writer(), 2),
                      waits(c.writer()), nothing(), keeps(a.reader(), one), keeps(b.reader(), two),
                      keeps(c.reader(), three)));
  CHECK(one == std::vector<Int>{0, 1});
  CHECK(two == one);
  CHECK(three == std::vector<Int>{1});
}

}  // namespace placed
