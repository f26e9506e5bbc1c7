// Tests rule 11.2: operations that are awaited twice, by two processes at once, or after they were
// moved away; and numbers and times that are out of range. Each of these is reported as an error,
// and has no other effect.
#include <array>
#include <functional>
#include <limits>

#include <weft/skeletons.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

const std::string text = "a text that is too long to lie in the string itself";

#define TWICE(op)                                                                          \
  do {                                                                                     \
    co_await std::move(op);                                                                \
    CHECK_THROWS_WITH_AS(co_await std::move(op), doctest::Contains("was awaited already"), \
                         weft::BadUse);                                                    \
  } while (false)

Process takes(weft::Reader<std::string> r, std::vector<std::string>& into) {
  while (auto s = co_await r.next()) into.push_back(*s);
}

}  // namespace

TEST_CASE("rule 11.2: a write whose value has gone with it is not awaited again") {
  weft::Channel<std::string> c, d;
  std::vector<std::string> got, got_too;
  auto p = [](weft::Writer<std::string> w, weft::Writer<std::string> v) -> Process {
    auto write = w.write(text);
    TWICE(write);
    auto select = weft::select(weft::out(w, text));
    co_await select;
    CHECK_THROWS_WITH_AS(co_await select, doctest::Contains("was awaited already"), weft::BadUse);
    auto both = weft::par_write(std::vector{w, v}, {text, text});
    TWICE(both);
    auto two = weft::par_write(w, text, v, text);
    TWICE(two);
    auto call = weft::blocking(std::function<void()>([] {}));
    TWICE(call);
  };
  weft::run(p(c.writer(), d.writer()), takes(c.reader(), got), takes(d.reader(), got_too));
  CHECK(got == std::vector(4, text));
  CHECK(got_too == std::vector(2, text));
}

TEST_CASE("rule 11.2: what has no value to lose may be awaited again") {
  weft::Channel<int> c;
  std::vector<int> got;
  auto p = [](weft::Writer<int> w) -> Process {
    auto write = w.write(5);
    co_await std::move(write);
    co_await std::move(write);
    auto not_sent = weft::select(weft::out(w, 6).when(false), weft::skip());
    CHOSEN(not_sent, 1);
    CHOSEN(not_sent, 1);
  };
  auto reads = [](weft::Reader<int> r, std::vector<int>& into) -> Process {
    auto read = r.read();
    into.push_back(co_await read);
    auto select = weft::select(r);
    CHOSEN(select, 0);
    CHECK_THROWS_AS(co_await select, weft::Retired);
  };
  weft::run(p(c.writer()), reads(c.reader(), got));
  CHECK(got == std::vector{5});
}

TEST_CASE("rule 11.2: an output that a select has not chosen is there for the next one") {
  weft::Channel<std::string> c;
  std::vector<std::string> got;
  auto p = [](weft::Writer<std::string> w, weft::Reader<int> r) -> Process {
    auto select = weft::select(weft::Mode::priority, r, weft::out(w, text));
    CHOSEN(select, 0);
    CHOSEN(select, 1);
  };
  weft::Channel<int> d{weft::buffer(1)};
  auto first = [](weft::Writer<int> w) -> Process { co_await w.write(1); };
  weft::run(first(d.writer()), p(c.writer(), d.reader()), takes(c.reader(), got));
  CHECK(got == std::vector{text});
}

// Makes two processes await one select: the second process gets the error, and the first is not
// affected.
template <class Select>
Process awaits_select(Select& s, int& told) {
  try {
    CHOSEN(s, 0);
  } catch (const weft::BadUse& e) {
    CHECK(has(e.what(), "another process is in this select"));
    ++told;
  }
}
template <class Alternative>
Process awaits_alternative(Alternative& a, int& told) {
  try {
    CHOSEN(a.select(), 0);
  } catch (const weft::BadUse& e) {
    CHECK(has(e.what(), "another process is in this select"));
    ++told;
  }
}
Process sends_last(weft::Writer<int> w) {
  co_await weft::yield();
  co_await w.write(1);
}

TEST_CASE("rule 11.2: a select is one process's at a time; one after the other is well") {
  weft::Channel<int> c;
  auto r = c.reader();
  {
    auto select = weft::select(r);
    int told = 0;
    weft::run(awaits_select(select, told), awaits_select(select, told), sends_last(c.writer()));
    CHECK(told == 1);
  }
  weft::Channel<int> d;
  auto s = d.reader();
  weft::Alternative a{weft::Mode::fair, s};
  int told = 0;
  auto writer = d.writer();
  weft::run(awaits_alternative(a, told), awaits_alternative(a, told), sends_last(writer));
  CHECK(told == 1);
  weft::run(weft::seq(awaits_alternative(a, told), awaits_alternative(a, told)),
            weft::seq(sends_last(writer), sends_last(writer)));
  CHECK(told == 1);
}
TEST_CASE("rule 11.2: so is a standing alternative (rule 5.9); who is cancelled in one leaves it") {
  weft::Channel<int> c;
  auto r = c.reader();
  auto w = c.writer();
  weft::StandingAlternative a{r};
  int told = 0;
  weft::run(awaits_alternative(a, told), awaits_alternative(a, told), sends_last(w));
  CHECK(told == 1);
  CHECK_FALSE(weft::run(virtually, weft::timeout(1ms, awaits_alternative(a, told))));
  weft::run(awaits_alternative(a, told), sends_last(w));
  CHECK(told == 1);
}
TEST_CASE("rule 11.2: a select that is none for this process leaves it free for the next") {
  weft::Channel<int> c;
  auto r = c.reader();
  auto w = c.writer();
  auto p = [](weft::Reader<int>& in, weft::Writer<int> out) -> Process {
    weft::Alternative a{weft::Mode::fair, weft::in(in), weft::skip()};
    a.enable(0, false);
    a.enable(1, false);
    CHECK_THROWS_WITH_AS(co_await a.select(), doctest::Contains("no guard's precondition holds"),
                         weft::BadUse);
    a.enable(1, true);
    CHOSEN(a.select(), 1);
    out.retire();
  };
  weft::run(p(r, std::move(w)));
}

TEST_CASE("rule 11.2: what was moved away says so") {
  weft::Channel<int> c{weft::buffer(3)};
  auto p = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
    co_await w.write(1);
    {
      auto x = co_await r.extended();
      auto y = std::move(x);
      CHECK(*y == 1);
      CHECK_THROWS_WITH_AS(*x, doctest::Contains("moved away"), weft::BadUse);
    }
    weft::Watch<void> gone;
    auto watch = std::move(gone);
    CHECK_THROWS_WITH_AS((void)gone.ended(), doctest::Contains("Watch was moved away"),
                         weft::BadUse);
    CHECK_THROWS_AS(gone.cancel(), weft::BadUse);
    CHECK_THROWS_AS((void)gone.done(), weft::BadUse);
    CHECK_THROWS_AS(gone.get(), weft::BadUse);
    CHECK_THROWS_AS(co_await gone.of(nothing()), weft::BadUse);
    auto end = watch.ended();
    auto other = std::move(end);
    CHECK_THROWS_AS(co_await end, weft::BadUse);
    CHECK_THROWS_AS(co_await weft::select(std::move(end), weft::skip()), weft::BadUse);
    weft::Cores cores(1);
    const auto kept = std::move(cores);
    CHECK_THROWS_WITH_AS(co_await nothing().on(cores), doctest::Contains("moved away"),
                         weft::BadUse);
    auto task = weft::thread([] {});
    auto moved = std::move(task);
    CHECK_THROWS_AS(co_await weft::par(std::move(task)), weft::BadUse);
  };
  weft::run(p(c.reader(), c.writer()));
}

TEST_CASE("rule 11.2: a number that is out of range is told as it was given") {
  const auto says = [](auto f, const char* what) {
    CHECK_THROWS_WITH_AS(f(), doctest::Contains(what), weft::BadUse);
  };
  says([] { (void)weft::buffer(-1); }, "buffer: the capacity must be from 0 to 4294967295, not -1");
  says([] { (void)weft::buffer(1LL << 40); }, "not 1099511627776");
  says([] { (void)weft::buffer(std::numeric_limits<std::uint64_t>::max()); },
       "the capacity must be");
  says([] { (void)weft::buffer(std::numeric_limits<std::int64_t>::min()); },
       "not -9223372036854775808");
  weft::ChannelOptions o;
  o.capacity = -5;
  says([&] { weft::Channel<int> c(o); },
       "a channel's capacity must be from 0 to 4294967295, not -5");
  says([&] { weft::Channel<int, weft::OneToOne> c(o); }, "not -5");
  o.capacity = 1;
  o.immunity = 300;
  says([&] { weft::Channel<int> c(o); }, "a channel's immunity must be from 0 to 255, not 300");
  weft::Channel<int> c;
  const auto r = c.reader();
  for (const int strength : {-1, 0, 256, 257}) {
    says([&] { c.poison(strength); }, "poison: the strength must be from 1 to 255, not ");
    says([&] { r.poison(strength); }, "the strength");
    says([&] { weft::ChannelHandle<int>(c).poison(strength); }, "the strength");
  }
  says([] { weft::Barrier b(-1); }, "Barrier: the parties must be from 0 to 4294967295, not -1");
  says([] { weft::Cores cores(-1); }, "Cores: the number of cores");
  says([] { weft::run({.cores = -1}, nothing()); }, "Cores: the number of cores");
  namespace sk = weft::skeletons;
  const auto same = sk::each([](int x) { return x; });
  says([] { (void)sk::workers(-1); }, "workers: their number must be from 0 to 4294967295, not -1");
  says([&] { (void)sk::feedback(-1, same, [](int) { return false; }); }, "feedback: the values");
  // Correct numbers are accepted in any type.
  enum { kSome = 3 };
  CHECK(weft::Channel<int>(weft::buffer(kSome)).name() != "");
  CHECK(weft::Channel<int>(weft::buffer(std::uint8_t{3})).name() != "");
  CHECK(weft::Channel<int>(weft::buffer(3, weft::Overflow::drop_oldest)).name() != "");
  CHECK(weft::Barrier(std::size_t{3}).parties() == 3);
}

TEST_CASE(
    "rule 8.5: a span of time of any unit; beyond the clock it never comes, before it is now") {
  using std::chrono::duration;
  using std::chrono::hours;
  auto p = []() -> Process {
    co_await weft::sleep(hours::min());
    co_await weft::sleep(duration<double>(-1e300));
    CHECK(weft::now() == 0);
    co_await weft::sleep(duration<double>(1.5));
    CHECK(weft::now() == 1'500'000'000);
    // The span is rounded up, so the sleep is never too short.
    co_await weft::sleep(duration<int, std::ratio<1, 3>>(1));
    CHECK(weft::now() == 1'833'333'334);
    co_await weft::sleep(duration<std::int64_t, std::pico>(1));
    CHECK(weft::now() == 1'833'333'335);
    for (const auto never : {hours::max(), hours(24 * 365 * 300)}) {
      CHOSEN(weft::select(weft::after(never), weft::after(1s)), 1);
      CHECK(co_await weft::timeout(never, nothing()));
      CHECK(weft::Timer(never).next() == std::numeric_limits<std::int64_t>::max());
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(co_await weft::sleep(duration<double>(nan)),
                         doctest::Contains("not a number"), weft::BadUse);
    CHECK_THROWS_AS((void)weft::after(duration<float>(nan)), weft::BadUse);
    CHECK_THROWS_AS(weft::Timeout{duration<double>(nan)}, weft::BadUse);
    CHECK_THROWS_AS(weft::Timer{hours(0)}, weft::BadUse);
    CHECK_THROWS_AS(weft::Timer{hours::min()}, weft::BadUse);
  };
  weft::run(virtually, p());
  CHECK_THROWS_AS(weft::run(naps(weft::Span::max())), weft::Deadlock);
}
