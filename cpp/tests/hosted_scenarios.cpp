// Twins of conformance/scenarios/rules_07_11_the_end_of_a_process.py and rules_07_12_limits.py:
// each twin has the name of its scenario, and tests the same in C++.
// conformance/tests/test_scenarios.py checks that no twin is missing, and gives the reason for each
// scenario without a twin.
#include <algorithm>
#include <limits>

#include "hosted.hpp"

using namespace test;
using weft::Ending;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

ProcessOf<std::string> returns(std::string value, weft::Span s) {
  co_await weft::sleep(s);
  co_return value;
}
ProcessOf<std::string> fails(std::string message, weft::Span s) {
  co_await weft::sleep(s);
  throw std::runtime_error(message);
}
Process holds(weft::Writer<int>, weft::Span s) { co_await weft::sleep(s); }
ProcessOf<std::pair<std::string, std::int64_t>> watches(weft::Watch<std::string> w) {
  co_await w.ended();
  const auto end = w.get();
  co_return std::pair(end.result ? *end.result : std::string("none"), weft::now());
}
Process sleeps(std::vector<std::string>& log, std::string name, weft::Span s) {
  try {
    co_await weft::sleep(s);
    log.push_back(name);
  } catch (const weft::Cancelled&) {
    log.push_back(name + " cancelled");
    throw;
  }
}
std::string text_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  }
}

}  // namespace

// --- 7.11 ----------------------------------------------------------------------------------------

TEST_CASE("scenario an_end_is_ready_once_the_process_has_ended_and_stays_so") {
  weft::Channel<int> c;
  auto p = [](weft::Reader<int> reader, weft::Writer<int>) -> Process {
    weft::Group g;
    const weft::Watch<std::string> w;
    g.start(w.of(returns("done", 2s)));
    CHOSEN(weft::select(w.ended(), reader, weft::after(1s)), 2);
    CHECK(weft::now() == kSecond);
    CHOSEN(weft::select(reader, w.ended(), weft::after(9s)), 1);
    CHECK(weft::now() == 2 * kSecond);
    const auto end = w.get();
    CHECK(end.how == Ending::returned);
    CHECK(*end.result == "done");
    CHECK_FALSE(end.error);
    co_await weft::sleep(5s);
    co_await w.ended();
    CHECK(w.get().result == end.result);
    CHOSEN(weft::select(w.ended(), weft::after(0s)), 0);
    co_await g.wait();
  };
  weft::run(virtually, p(c.reader(), c.writer()));
}

TEST_CASE("scenario it_says_how_the_process_ended_and_raises_nothing_of_it") {
  weft::Channel<int> c, d;
  auto p = [](weft::Channel<int>& left, weft::Channel<int>& poisoned_one) -> Process {
    auto c_writer = left.writer();
    auto d_writer = poisoned_one.writer();
    const weft::Watch<void> retired, poisoned;
    const weft::Watch<std::string> cancelled, failed;
    weft::Group g;
    g.start(retired.of(reads(left.reader())));
    g.start(poisoned.of(reads(poisoned_one.reader())));
    g.start(cancelled.of(returns("never", 100s)));
    g.start(failed.watched(fails("mine", 3s)));
    co_await weft::sleep(1s);
    c_writer.retire();
    d_writer.poison();
    cancelled.cancel();
    co_await retired.ended();
    co_await poisoned.ended();
    co_await cancelled.ended();
    co_await failed.ended();
    CHECK(retired.get().how == Ending::retired);
    CHECK(poisoned.get().how == Ending::poisoned);
    CHECK(cancelled.get().how == Ending::cancelled);
    const auto end = failed.get();
    CHECK(end.how == Ending::failed);
    CHECK_FALSE(end.result);
    CHECK(text_of(end.error) == "mine");
    co_await g.wait();
  };
  weft::run(virtually, p(c, d));
}

TEST_CASE("scenario it_has_let_go_of_its_ends_by_then") {
  weft::Channel<int> c;
  auto p = [](weft::Reader<int> reader, weft::Writer<int> writer) -> Process {
    const weft::Watch<void> w;
    weft::Group g;
    g.start(w.of(holds(std::move(writer), 1s)));
    co_await w.ended();
    CHECK_THROWS_AS(co_await weft::select(weft::in(reader).ends(), weft::after(0s)), weft::Retired);
    co_await g.wait();
  };
  weft::run(virtually, p(c.reader(), c.writer()));
}

TEST_CASE("scenario any_number_may_watch") {
  const weft::Watch<std::string> w;
  const auto [nothing, a, b, c] = weft::run(
      virtually, weft::par(w.of(returns("seen", 2s)), watches(w), watches(w), watches(w)));
  for (const auto& seen : {a, b, c}) CHECK(*seen == std::pair(std::string("seen"), 2 * kSecond));
}

TEST_CASE("scenario to_watch_oneself_is_bad_use") {
  const weft::Watch<std::string> w;
  auto own = [](weft::Watch<std::string> mine) -> ProcessOf<std::string> {
    CHECK_THROWS_AS(mine.ended(), weft::BadUse);
    co_return "told";
  };
  weft::run(virtually, w.of(own(w)));
  CHECK(*w.get().result == "told");
}

TEST_CASE("scenario the_end_of_one_that_is_never_started_is_never_ready") {
  auto p = []() -> ProcessOf<std::string> {
    const weft::Watch<std::string> w;
    auto never = w.of(returns("never", 0s));
    CHOSEN(weft::select(w.ended(), weft::after(5s)), 1);
    CHECK(weft::now() == 5 * kSecond);
    co_await weft::par(std::move(never));
    co_return *w.get().result;
  };
  CHECK(weft::run(virtually, p()) == "never");
}

TEST_CASE("scenario a_watched_failure_is_its_watchers") {
  auto p = []() -> Process {
    weft::Group g;
    int tries = 0;
    for (Ending how = Ending::failed; how == Ending::failed;) {
      ++tries;
      const weft::Watch<std::string> w;
      g.start(w.watched(tries < 3 ? fails("again", 1s) : returns("at last", 1s)));
      co_await w.ended();
      how = w.get().how;
      if (how == Ending::returned) CHECK(*w.get().result == "at last");
    }
    CHECK(tries == 3);
    CHECK(weft::now() == 3 * kSecond);
    co_await g.wait();
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario one_that_nobody_watches_is_the_groups") {
  auto p = []() -> Process {
    // There is no other copy of the handle.
    auto unwatched = weft::Watch<std::string>().watched(fails("mine", 1s));
    try {
      co_await weft::par(std::move(unwatched), returns("cancelled", 50s));
      FAIL("it went on");
    } catch (const std::runtime_error& e) {
      CHECK(std::string(e.what()) == "mine");
    }
    CHECK(weft::now() == kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario in_a_parallel_a_watched_failure_is_no_result") {
  const weft::Watch<std::string> w;
  const auto [nothing, seen] =
      weft::run(virtually, weft::par(w.watched(fails("mine", 1s)), watches(w)));
  CHECK(*seen == std::pair(std::string("none"), kSecond));
}

TEST_CASE("scenario a_select_with_an_end_goes_on_without_its_sources") {
  weft::Channel<int> c;
  auto p = [](weft::Reader<int> reader, weft::Writer<int> writer) -> Process {
    writer.retire();
    const weft::Watch<std::string> w;
    weft::Group g;
    g.start(w.of(returns("done", 3s)));
    CHOSEN(weft::select(reader, w.ended()), 1);
    CHECK(*w.get().result == "done");
    CHECK(weft::now() == 3 * kSecond);
    co_await g.wait();
  };
  weft::run(virtually, p(c.reader(), c.writer()));
}

TEST_CASE("scenario who_waits_for_an_end_waits_for_that_process") {
  weft::Channel<int> c;
  const weft::Watch<void> w;
  auto waits_for = [](weft::Watch<void> other, weft::Writer<int>) -> Process {
    co_await other.ended();
  };
  try {
    weft::run(virtually, w.of(reads(c.reader()).named("reader")),
              waits_for(w, c.writer()).named("waiter"));
    FAIL("no deadlock");
  } catch (const weft::Deadlock& e) {
    const auto in_knot = [&](const char* name) {
      for (const std::string& path : e.knot)
        if (path.ends_with(name)) return true;
      return false;
    };
    CHECK(in_knot("/reader"));
    CHECK(in_knot("/waiter"));
    CHECK(has(e.what(), "the end of reader"));
  }
}

// --- 7.12 ----------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("scenario a_timeout_ends_what_the_block_waits_for", P, POLICIES) {
  weft::Channel<int, P> c;
  auto p = [](weft::Reader<int, P> reader, weft::Writer<int, P> writer) -> Process {
    weft::Barrier barrier(2);
    {
      const weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await reader.read(), weft::TimedOut);
    }
    {
      const weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await writer.write(1), weft::TimedOut);
    }
    {
      const weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await barrier.sync(), weft::TimedOut);
    }
    {
      const weft::Timeout limit(1s);
      CHECK_THROWS_AS(co_await weft::select(reader, weft::after(50s)), weft::TimedOut);
    }
    CHECK(weft::now() == 4 * kSecond);
    // No party waits here: neither guard is ready, and the barrier still lacks one party.
    CHOSEN(weft::select(weft::Mode::priority, reader, weft::skip()), 1);
    CHOSEN(weft::select(weft::Mode::priority, weft::out(writer, 2), weft::skip()), 1);
    CHOSEN(weft::select(weft::Mode::priority, weft::meet(barrier), weft::skip()), 1);
  };
  weft::run(virtually, p(c.reader(), c.writer()));
}

TEST_CASE("scenario a_block_in_time_is_left_as_if_there_were_no_limit") {
  auto p = []() -> Process {
    {
      const weft::Timeout limit(10s);
      co_await weft::sleep(1s);
      CHECK_FALSE(limit.expired());
    }
    co_await weft::sleep(500ms);
    CHECK(weft::now() == kSecond + kSecond / 2);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario to_move_on_raises_nothing") {  // in C++ the block is a process
  auto p = []() -> Process {
    const bool slow = co_await weft::timeout(2s, naps(50s));
    CHECK_FALSE(slow);
    CHECK(weft::now() == 2 * kSecond);
    const bool quick = co_await weft::timeout(2s, naps(1s));
    CHECK(quick);
    CHECK(weft::now() == 3 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario a_deadline_is_a_time_of_the_clock") {
  auto p = []() -> Process {
    co_await weft::sleep(1s);
    // The second limit begins at 3 s, when its time has already passed.
    for (const std::int64_t at : {3 * kSecond, 2 * kSecond}) {
      const weft::Timeout limit = weft::Timeout::until(at);
      CHECK_THROWS_AS(co_await weft::sleep(50s), weft::TimedOut);
      CHECK(weft::now() == 3 * kSecond);
    }
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario nothing_or_less_acts_at_the_first_operation_and_none_never") {
  auto p = []() -> Process {
    for (const weft::Span s : {weft::Span(0s), weft::Span(-1s)}) {
      const weft::Timeout limit(s);
      CHECK_THROWS_AS(co_await weft::sleep(1s), weft::TimedOut);
    }
    CHECK(weft::now() == 0);
    const weft::Timeout never(weft::Span::max());
    const weft::Timeout nor_this = weft::Timeout::until(std::numeric_limits<std::int64_t>::max());
    co_await weft::sleep(1000s);
    CHECK(weft::now() == 1000 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario a_request_that_was_not_met_is_taken_back") {
  auto p = []() -> Process {
    { const weft::Timeout limit(0s); }
    co_await weft::sleep(1s);
    CHECK(weft::now() == kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario what_catches_it_goes_on_without_a_limit") {
  auto p = []() -> Process {
    const weft::Timeout limit(1s);
    CHECK_THROWS_AS(co_await weft::sleep(5s), weft::TimedOut);
    CHECK(limit.expired());
    co_await weft::sleep(5s);
    CHECK(weft::now() == 6 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("rule 7.18: a Timeout that asks again") {
  auto p = []() -> Process {
    {
      const weft::Timeout outer(0s);
      const weft::Timeout inner(0s, true);
      for (int i = 0; i < 3; ++i) {
        try {
          co_await weft::sleep(5s);
          FAIL("it went on");
        } catch (const weft::TimedOut& e) {
          // The exception that is raised again is that of the first limit that expired, the outer
          // limit.
          CHECK(e.of(outer));
        }
      }
      CHECK(inner.expired());
    }
    co_await weft::sleep(1s);
    CHECK(weft::now() == kSecond);
    {
      const weft::Timeout limit = weft::Timeout::until(2 * kSecond, true);
      CHECK_THROWS_AS(co_await weft::sleep(5s), weft::TimedOut);
      CHECK_THROWS_AS(co_await weft::yield(), weft::TimedOut);
    }
    co_await weft::yield();
    CHECK(weft::now() == 2 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario an_exception_of_the_block_passes") {
  auto p = []() -> Process {
    try {
      const weft::Timeout limit(1s);
      throw std::runtime_error("mine");
    } catch (const std::runtime_error& e) {
      CHECK(std::string(e.what()) == "mine");
    }
    try {
      const weft::Timeout limit(1s);
      bool late = false;
      try {
        co_await weft::sleep(5s);
      } catch (const weft::TimedOut&) {
        late = true;
      }
      if (late) throw std::out_of_range("mine too");
    } catch (const std::out_of_range& e) {
      CHECK(std::string(e.what()) == "mine too");
    }
    co_await weft::sleep(1s);
    CHECK(weft::now() == 2 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario scopes_within_let_the_outer_ones_pass") {
  auto p = []() -> Process {
    try {
      const weft::Timeout outer(1s);
      try {
        const weft::Timeout inner(5s);
        co_await weft::sleep(50s);
        FAIL("it went on");
      } catch (const weft::TimedOut& e) {
        CHECK(e.of(outer));
        throw;
      }
    } catch (const weft::TimedOut&) {
      CHECK(weft::now() == kSecond);
    }
    const weft::Timeout outer(5s);
    {
      const weft::Timeout inner(1s);
      try {
        co_await weft::sleep(50s);
        FAIL("it went on");
      } catch (const weft::TimedOut& e) {
        CHECK(e.of(inner));
        CHECK(inner.expired());
      }
    }
    co_await weft::sleep(1s);
    CHECK_FALSE(outer.expired());
    CHECK(weft::now() == 3 * kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario of_two_that_ask_before_it_is_met_the_outermost_is_told") {
  auto p = []() -> Process {
    const weft::Timeout outer(0s);
    {
      const weft::Timeout inner(0s);
      try {
        co_await weft::sleep(1s);
        FAIL("it went on");
      } catch (const weft::TimedOut& e) {
        CHECK(e.of(outer));
        CHECK_FALSE(e.of(inner));
        CHECK_FALSE(inner.expired());
      }
    }
    CHECK(outer.expired());
    co_await weft::sleep(1s);  // The limit raises TimedOut only once.
    CHECK(weft::now() == kSecond);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario it_may_be_set_anew") {
  auto p = []() -> Process {
    {
      weft::Timeout limit(1s);
      limit.reschedule(3s);
      co_await weft::sleep(2s);
      limit.reschedule(2s);
      CHECK_THROWS_AS(co_await weft::sleep(50s), weft::TimedOut);
      CHECK(weft::now() == 4 * kSecond);
    }
    weft::Timeout limit(1s);
    CHECK_THROWS_AS(co_await weft::sleep(5s), weft::TimedOut);
    CHECK_THROWS_AS(limit.reschedule(1s), weft::BadUse);
  };
  weft::run(virtually, p());
}

TEST_CASE("scenario what_the_block_started_and_waits_for_is_cancelled") {
  std::vector<std::string> log;
  auto p = [](std::vector<std::string>& l) -> Process {
    const weft::Timeout limit(2s);
    CHECK_THROWS_AS(
        co_await weft::par(sleeps(l, "a", 1s), sleeps(l, "b", 50s), sleeps(l, "c", 60s)),
        weft::TimedOut);
    CHECK(weft::now() == 2 * kSecond);
  };
  weft::run(virtually, p(log));
  std::sort(log.begin(), log.end());
  CHECK(log == std::vector<std::string>{"a", "b cancelled", "c cancelled"});
}

TEST_CASE_TEMPLATE("scenario no_value_is_lost_by_one", P, POLICIES) {
  weft::Channel<int, P> c;
  auto gives = [](weft::Writer<int, P> w, int value, weft::Span s) -> Process {
    co_await weft::sleep(s);
    co_await w.write(value);
  };
  auto takes = [](weft::Reader<int, P> r) -> ProcessOf<std::vector<int>> {
    std::vector<int> got;
    while (got.size() < 2) {
      const weft::Timeout limit(500ms);
      try {
        got.push_back(co_await r.read());
      } catch (const weft::TimedOut&) {
      }
    }
    std::sort(got.begin(), got.end());
    co_return got;
  };
  const auto [got, one, two] = weft::run(
      virtually, weft::par(takes(c.reader()), gives(c.writer(), 1, 1s), gives(c.writer(), 2, 2s)));
  CHECK(*got == std::vector<int>{1, 2});
}

TEST_CASE("scenario one_process_is_cancelled_by_its_handle") {
  std::vector<std::string> log;
  auto p = [](std::vector<std::string>& l) -> Process {
    weft::Group g;
    const weft::Watch<void> one;
    g.start(one.of(sleeps(l, "one", 5s)));
    g.start(sleeps(l, "other", 5s));
    co_await weft::sleep(1s);
    one.cancel();
    co_await g.wait();
    CHECK(weft::now() == 5 * kSecond);
  };
  weft::run(virtually, p(log));
  CHECK(log == std::vector<std::string>{"one cancelled", "other"});
}
