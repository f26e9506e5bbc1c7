// Processes that poll, and processes whose operations never wait, under a check: they let the
// others run first, as rule 7.7 says (rules 17.2, 17.3). A plain run ends each of these networks,
// so a check must not take them for runs without an end.
#include <stdexcept>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using weft::Channel, weft::CheckOptions, weft::Process, weft::Reader, weft::Search, weft::Writer;

Process polls(Reader<int> in) {
  for (;;) {
    const auto got = co_await weft::select(in, weft::skip());
    if (got.index == 0) co_return;
  }
}
Process polls_and_yields(Reader<int> in) {
  for (;;) {
    const auto got = co_await weft::select(in, weft::skip());
    if (got.index == 0) co_return;
    co_await weft::yield();
  }
}
Process writes(Writer<int> out, std::chrono::seconds after) {
  if (after > 0s) co_await weft::sleep(after);
  co_await out.write(1);
}
void polled(std::chrono::seconds after) {
  Channel<int> c(weft::named("c"));
  weft::run(polls(c.reader()), writes(c.writer(), after));
}
void two_poll(std::chrono::seconds after) {
  Channel<int> a(weft::named("a")), b(weft::named("b"));
  weft::run(polls(a.reader()), polls_and_yields(b.reader()), writes(a.writer(), after),
            writes(b.writer(), 2 * after));
}
void thread_polls(Reader<int> in) {
  while (weft::select(in, weft::skip())().index != 0) {
  }
}
void polled_by_a_thread(std::chrono::seconds after) {
  Channel<int> c(weft::named("c"));
  weft::run(weft::thread(thread_polls, c.reader()), writes(c.writer(), after));
}
void polled_in_vain() {
  Channel<int> c(weft::named("c"));
  const Writer<int> kept = c.writer();
  weft::run(polls(c.reader()));
}

Process pours(Writer<int> out) {
  try {
    for (int i = 0;; ++i) co_await out.write(i);
  } catch (const weft::Retired&) {
  }
}
Process sips(Reader<int> in) { co_await in.read(); }
void poured() {
  Channel<int> c(weft::buffer(1, weft::Overflow::drop_oldest).called("c"));
  weft::run(pours(c.writer()), sips(c.reader()));
}

}  // namespace

TEST_CASE("rules 7.7, 17.2: others run while a process polls") {
  for (const auto network : {polled, two_poll, polled_by_a_thread})
    for (const Search search : {Search::automatic, Search::all, Search::walk, Search::priorities,
                                Search::few, Search::reduced})
      for (const bool parked : {false, true})
        for (const auto after : {0s, 1s}) {
          CAPTURE(static_cast<int>(search));
          CAPTURE(parked);
          const auto r = weft::check([&] { network(after); }, {.search = search,
                                                               .seconds = 250,
                                                               .schedules = 40,
                                                               .any_time = parked && after > 0s,
                                                               .only_where_parked = parked});
          CHECK_MESSAGE(r.passed(), r.text);
        }
}
TEST_CASE("rules 17.2, 17.3: polls are no bound on the search, times that come by them are") {
  CHECK(weft::check([] { polled(0s); }, {.seconds = 250}).complete);
  const auto r = weft::check([] { polled(1s); }, {.seconds = 250, .schedules = 300});
  CHECK_MESSAGE(r.passed(), r.text);
  CHECK_FALSE(r.complete);
}
TEST_CASE("rule 17.3: no time comes while a process does something") {
  const auto r = weft::check(
      [] {
        Channel<int> own(weft::buffer(1).called("own")), c(weft::named("c"));
        weft::run(
            [](Writer<int> out, Reader<int> in, Writer<int> result) -> Process {
              for (int i = 0; i < 50; ++i) {
                co_await out.write(i);
                co_await in.read();
                co_await weft::select(in, weft::skip());
              }
              co_await result.write(1);
            }(own.writer(), own.reader(), c.writer()),
            [](Reader<int> result) -> Process {
              const auto got = co_await weft::select(result, weft::after(1s));
              if (got.index != 0) throw std::runtime_error("the time came early");
            }(c.reader()));
      },
      {.seconds = 250, .schedules = 50});
  CHECK_MESSAGE(r.passed(), r.text);
}
TEST_CASE("rule 17.5: a process that polls in vain has no end") {
  const auto r = weft::check(polled_in_vain, {.seconds = 250});
  REQUIRE(r.failures.size() == 1);
  CHECK(r.failures[0].kind == "no end");
}
TEST_CASE("rules 7.7, 17.2: after 1,000 operations at once the others run") {
  for (const bool parked : {false, true}) {
    const auto r =
        weft::check(poured, {.seconds = 250, .schedules = 2, .only_where_parked = parked});
    CHECK_MESSAGE(r.passed(), r.text);
  }
}
TEST_CASE("rule 17.3: the report says that times may come earlier, if a timer was set") {
  const auto text = [](std::chrono::seconds after, bool any) {
    return weft::check(
               [&] {
                 Channel<int> c(weft::named("c"));
                 weft::run(sips(c.reader()), writes(c.writer(), after));
               },
               {.seconds = 250, .any_time = any})
        .text;
  };
  const char* const hint = "with .any_time they may also come earlier";
  CHECK(text(1s, false).find(hint) != std::string::npos);
  CHECK(text(1s, true).find(hint) == std::string::npos);
  CHECK(text(0s, false).find(hint) == std::string::npos);
}
