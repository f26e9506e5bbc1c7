// Tests rule 7.7: a process whose operations never wait lets the other processes of its scheduler
// run.
#include <weft/stopping.hpp>

#include <atomic>

#include "hosted.hpp"

using namespace test;

namespace giving_way {

// After this number of operations in a row that complete without waiting, an operation lets the
// other processes run.
constexpr int kOthersRunAfter = 1001;

struct Seen {
  int done = 0;    // how many operations are done
  int others = 0;  // how many operations were done when another process first ran, or 0
};

// Does one operation again and again, until another process has run, or until three times the usual
// number of operations is done.
template <class F, class... A>
Process again(Seen& seen, F operation, A... with) {
  while (seen.others == 0 && seen.done < 3 * kOthersRunAfter) {
    co_await operation(with...);
    ++seen.done;
  }
}
inline Process notes(Seen& seen) {
  seen.others = seen.done;
  co_return;
}
// Returns the number of operations after which another process runs. The process that never waits
// begins first.
template <class F, class... A>
int others_run_after(F operation, A... with) {
  Seen seen;
  weft::run(again(seen, operation, std::move(with)...), notes(seen));
  return seen.others;
}

}  // namespace giving_way

using namespace giving_way;

TEST_CASE_TEMPLATE("rule 7.7: writes that never wait, and reads of a full buffer, let others run",
                   P, POLICIES) {
  for (const auto overflow : {weft::Overflow::drop_oldest, weft::Overflow::drop_newest,
                              weft::Overflow::drop_last, weft::Overflow::unbounded}) {
    weft::Channel<int, P> c{weft::buffer(2, overflow)};
    const auto r = c.reader();
    CHECK(others_run_after([](weft::Writer<int, P>& w) { return w.write(1); }, c.writer()) ==
          kOthersRunAfter - 1);
  }
  weft::Channel<int, P> full{weft::buffer(8, weft::Overflow::unbounded)};
  auto fill = [](weft::Writer<int, P> w) -> Process {
    for (int i = 0; i < 5 * kOthersRunAfter; ++i) co_await w.write(i);
  };
  auto r = full.reader();
  weft::run(fill(full.writer()));
  std::vector<int> read;
  Seen seen;
  auto reads = [](weft::Reader<int, P> from, std::vector<int>& to, Seen& s) -> Process {
    while (s.others == 0) {
      to.push_back(co_await from.read());
      s.done = static_cast<int>(to.size());
    }
  };
  weft::run(reads(std::move(r), read, seen), notes(seen));
  CHECK(seen.others == kOthersRunAfter - 1);
  // `read` includes the value of the read after which the other processes ran.
  for (int i = 0; i < static_cast<int>(read.size()); ++i)
    CHECK(read[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("rules 5.7, 7.7: selects that never wait let others run") {
  weft::Channel<int> c;
  weft::Channel<int> full{weft::buffer(1, weft::Overflow::drop_newest)};
  const auto w = c.writer(), w2 = full.writer();
  const auto r = c.reader(), r2 = full.reader();
  const auto after = [](auto operation, auto... with) {
    CHECK(others_run_after(operation, std::move(with)...) == kOthersRunAfter - 1);
  };
  after([](weft::Reader<int>& x) { return weft::select(x, weft::skip()); }, c.reader());
  after([](weft::Reader<int>& x) { return weft::select(x, weft::after(0s)); }, c.reader());
  after([](weft::Writer<int>& x) { return weft::select(weft::out(x, 1)); }, full.writer());
  after([](weft::Writer<int>& x) { return weft::select(weft::out_with(x, [] { return 1; })); },
        full.writer());
  Seen seen;
  auto polls = [](weft::Reader<int> x, Seen& s) -> Process {
    weft::Alternative alt{weft::Mode::fair, x, weft::skip()};
    while (s.others == 0) {
      co_await alt.select();
      ++s.done;
    }
  };
  weft::run(polls(c.reader(), seen), notes(seen));
  CHECK(seen.others == kOthersRunAfter - 1);
}

TEST_CASE("rule 7.7: a barrier of one, groups without a process and ends that are there") {
  CHECK(others_run_after([](weft::Barrier& b) { return b.sync(); }, weft::Barrier(1)) ==
        kOthersRunAfter - 1);
  CHECK(others_run_after([] { return weft::par(std::vector<Process>{}); }) == kOthersRunAfter - 1);
  weft::Watch<void> ended;
  weft::run(ended.of(nothing()));
  CHECK(others_run_after([](weft::Watch<void>& x) { return x.ended(); }, ended) ==
        kOthersRunAfter - 1);
  weft::Channel<int> c{weft::buffer(4, weft::Overflow::drop_oldest)};
  const auto r = c.reader();
  CHECK(others_run_after(
            [](weft::Writer<int>& a, weft::Writer<int>& b) { return weft::par_write(a, 1, b, 2); },
            c.writer(), c.writer()) == kOthersRunAfter - 1);
}

TEST_CASE("rules 3.3, 7.7: a process that meets an end again and again lets others run") {
  weft::Channel<int> c;
  const auto w = c.writer();
  c.reader().retire();
  Seen seen;
  auto writes = [](weft::Writer<int> x, Seen& s) -> Process {
    while (s.others == 0 && s.done < 3 * kOthersRunAfter) {
      try {
        co_await x.write(s.done);
      } catch (const weft::Retired& e) {
        // The exception returns the value of every write, including the write after which the other
        // processes ran.
        CHECK(*e.value<int>() == s.done);
      }
      ++s.done;
    }
  };
  weft::run(writes(w, seen), notes(seen));
  CHECK(seen.others == kOthersRunAfter - 1);
}

TEST_CASE("rules 7.7, 7.12: a process whose limit has always expired lets others run") {
  weft::Channel<int> c;
  const auto w = c.writer();
  const auto held = c.reader();
  for (const bool selects : {false, true}) {
    Seen seen;
    auto tries = [](weft::Reader<int> x, Seen& s, bool by_select) -> Process {
      while (s.others == 0 && s.done < 3 * kOthersRunAfter) {
        weft::Timeout limit(0s);
        try {
          if (by_select)
            co_await weft::select(x);
          else
            co_await x.read();
        } catch (const weft::TimedOut&) {
          ++s.done;
        }
      }
    };
    weft::run(tries(c.reader(), seen, selects), notes(seen));
    CHECK(seen.others == kOthersRunAfter - 1);
  }
}

TEST_CASE(
    "rules 6.3, 7.7: who is cancelled while the others run meets that at its next operation") {
  weft::Channel<int> c{weft::buffer(8, weft::Overflow::unbounded)};
  auto r = c.reader();
  int written = 0;
  auto writes = [](weft::Writer<int> w, int& n) -> Process {
    for (;;) {
      co_await w.write(n);
      ++n;
    }
  };
  auto fails = []() -> Process {
    throw std::runtime_error("cancels the others");
    co_return;
  };
  CHECK_THROWS_WITH(weft::run(writes(c.writer(), written), fails()), "cancels the others");
  CHECK(written == kOthersRunAfter);
  std::vector<int> read;
  weft::run(collect(std::move(r), read));
  CHECK(read.size() == kOthersRunAfter);
}

TEST_CASE("rule 7.7: a process that waits now and then is not held up") {
  // Each round has 600 operations that complete without waiting, then one that waits. No other
  // process runs in between.
  weft::Channel<int> c, d{weft::buffer(8, weft::Overflow::unbounded)};
  const auto r = d.reader();
  std::vector<int> order;
  auto writes = [](weft::Writer<int> w, weft::Reader<int> waits, std::vector<int>& o) -> Process {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 600; ++i) co_await w.write(i);
      o.push_back(1);
      co_await waits.read();
    }
  };
  auto other = [](weft::Writer<int> w, std::vector<int>& o) -> Process {
    for (int i = 0; i < 3; ++i) {
      o.push_back(2);
      co_await w.write(i);
    }
  };
  weft::run(writes(d.writer(), c.reader(), order), other(c.writer(), order));
  CHECK(order == std::vector<int>{1, 2, 2, 1, 2, 1});
}

TEST_CASE("rule 7.7: values that come from a thread, one after the other") {
  std::atomic<bool> over{false};
  weft::Channel<int> c;
  auto feeds = [&over, &c] {
    return weft::thread([&over, w = c.writer()] {
      while (!over) w(1);
    });
  };
  auto reads = [](weft::Reader<int> r, std::atomic<bool>& stop) -> Process {
    while (!stop) co_await r.read();
  };
  auto ends = [](std::atomic<bool>& stop) -> Process {
    co_await weft::sleep(1ms);
    stop = true;
  };
  auto one = feeds();
  auto two = feeds();
  weft::run(reads(c.reader(), over), ends(over), std::move(one), std::move(two));
  CHECK(over);
}

TEST_CASE("rules 1.8, 7.7: values that come from a thread through a one-to-one channel") {
  std::atomic<bool> over{false};
  weft::Channel<int, weft::OneToOne> c{weft::buffer(4096)};
  auto feeds = weft::thread([&over, w = c.writer()] {
    while (!over) w(1);
  });
  auto reads = [](weft::Reader<int, weft::OneToOne> r, std::atomic<bool>& stop) -> Process {
    while (!stop && co_await r.next()) continue;
  };
  auto ends = [](std::atomic<bool>& stop) -> Process {
    co_await weft::sleep(1ms);
    stop = true;
  };
  weft::run(reads(c.reader(), over), ends(over), std::move(feeds));
  CHECK(over);
  // On one scheduler the other processes run after every 512th value, even if a larger buffer has
  // room.
  weft::Channel<int, weft::OneToOne> d{weft::buffer(4096)};
  auto r = d.reader();
  CHECK(others_run_after([](weft::Writer<int, weft::OneToOne>& w) { return w.write(1); },
                         d.writer()) == 511);
}

TEST_CASE("rules 7.7, 15.7: on several cores, of processes that never wait each has its turn") {
  constexpr int n = 6;
  std::vector<std::atomic<int>> done(n);
  auto never_waits = [](weft::Writer<int> w, std::vector<std::atomic<int>>& all,
                        int me) -> Process {
    for (;;) {
      co_await w.write(1);
      ++all[static_cast<std::size_t>(me)];
      bool each = true;
      for (const auto& other : all) each = each && other > 0;
      if (each) co_return;
    }
  };
  weft::Channel<int> c{weft::buffer(2, weft::Overflow::drop_oldest)};
  const auto r = c.reader();
  std::vector<Process> all;
  for (int i = 0; i < n; ++i) all.push_back(never_waits(c.writer(), done, i));
  weft::run({.cores = 2}, weft::par(std::move(all)));
  for (const auto& d : done) CHECK(d > 0);
}

TEST_CASE("rules 7.7, 8.5: a timer is met beside a process that never waits") {
  weft::Channel<int> c{weft::buffer(8, weft::Overflow::drop_oldest)};
  const auto r = c.reader();
  bool met = false;
  auto writes = [](weft::Writer<int> w, bool& over) -> Process {
    while (!over) co_await w.write(1);
  };
  auto waits = [](bool& over) -> Process {
    co_await weft::sleep(1ms);
    over = true;
  };
  weft::run(writes(c.writer(), met), waits(met));
  CHECK(met);
}
