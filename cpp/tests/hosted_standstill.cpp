// Tests rule 10.6: where no deadlock can be proven, a standstill is reported, once and with one
// wake-up.
#include <atomic>
#include <cstdlib>
#include <mutex>

#include <weft/executors.hpp>
#include <weft/stopping.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

// Collects reports of standstills. While this object exists, a standstill is reported once no
// process has run for `after`. With 0 none is reported.
class StandstillReports {
 public:
  explicit StandstillReports(std::chrono::nanoseconds after = 1ms) {
    weft::on_standstill(
        [this](const weft::Standstill& s) {
          const std::lock_guard g(mutex_);
          all_.push_back(s);
          count_.fetch_add(1);
          count_.notify_all();
        },
        after);
  }
  StandstillReports(const StandstillReports&) = delete;
  StandstillReports& operator=(const StandstillReports&) = delete;
  ~StandstillReports() { weft::on_standstill(nullptr, 2s); }

  // Waits until n standstills have been reported.
  void wait(int n) {
    for (int c = count_.load(); c < n; c = count_.load()) count_.wait(c);
  }
  std::vector<weft::Standstill> all() {
    const std::lock_guard g(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<weft::Standstill> all_;
  std::atomic<int> count_{0};
};

Process holds(weft::Reader<int> r, weft::Writer<int> w) {
  co_await r.read();
  co_await w.write(1);
}

// Runs the process while a thread that Weft did not start holds the writer, and uses the writer
// when the standstill has been reported.
template <class Run>
weft::Standstill standstill_of(Run&& run) {
  StandstillReports told;
  weft::Channel<int> c(weft::named("c"));
  std::thread t([outside = weft::Outside(), w = c.writer(), &told]() mutable {
    told.wait(1);
    w(1);
  });
  run(c.reader());
  t.join();
  REQUIRE(told.all().size() == 1);
  return told.all()[0];
}

}  // namespace

TEST_CASE("rule 10.6: it names who waits where, and what might still wake it") {
  weft::Channel<int> d(weft::named("d"));
  const weft::Standstill s = standstill_of(
      [&](weft::Reader<int> r) { weft::run(holds(std::move(r), d.writer()), reads(d.reader())); });
  REQUIRE(s.processes.size() == 2);
  CHECK(s.processes[0].path == "main/holds");
  CHECK(s.processes[0].operation == "read");
  CHECK(s.processes[0].places == std::vector<std::string>{"'c'"});
  CHECK(s.processes[0].open == std::vector<std::string>{"'c'"});
  CHECK(s.processes[0].waits_for.empty());
  CHECK(s.processes[1].path == "main/reads");
  CHECK(s.processes[1].waits_for == std::vector<std::string>{"main/holds"});
  CHECK(s.processes[1].open.empty());
  CHECK(s.waited == 1ms);
  CHECK(s.outside == 1);
  CHECK(s.text().find("main/holds: read 'c' at hosted_standstill.cpp") != std::string::npos);
  CHECK(s.text().find("the holder of the other end of 'c' is not known") != std::string::npos);
  CHECK(s.text().find("held by main/holds") != std::string::npos);
}

TEST_CASE("rule 10.6: wherever the processes run: threads, several cores, executors of their own") {
  const auto in_thread = [](weft::Reader<int> r) {
    return weft::thread([r = std::move(r)]() mutable { r(); });
  };
  CHECK(standstill_of([&](weft::Reader<int> r) {
          weft::run(in_thread(std::move(r)));
        }).processes.size() == 1);
  CHECK(standstill_of([&](weft::Reader<int> r) {
          weft::run(in_thread(r), in_thread(r), reads(r), reads(r));
        }).processes.size() == 4);
  CHECK(standstill_of([&](weft::Reader<int> r) {
          weft::run({.cores = 3}, reads(r), reads(r), in_thread(r));
        }).processes.size() == 3);
  weft::Core one, other;
  CHECK(standstill_of([&](weft::Reader<int> r) {
          weft::run(reads(r).on(one), reads(r).on(other), reads(r));
        }).processes.size() == 3);
  weft::Cores pool(2);
  CHECK(standstill_of([&](weft::Reader<int> r) {
          weft::run(reads(r).on(one), reads(r).on(pool));
        }).processes.size() == 2);
}

TEST_CASE("rule 10.6: the last that ran may have ended, not fallen asleep") {
  const weft::Standstill s = standstill_of([&](weft::Reader<int> r) {
    weft::run(reads(std::move(r)), weft::thread([] {}),
              weft::thread([] { std::this_thread::yield(); }));
  });
  CHECK(s.processes.size() == 1);
}

TEST_CASE("rule 10.6: another place is told again, within one run") {
  StandstillReports told;
  weft::Channel<int> c(weft::named("c")), d(weft::named("d"));
  std::thread t([outside = weft::Outside(), w = c.writer(), x = d.writer(), &told]() mutable {
    told.wait(1);
    w(1);
    told.wait(2);
    x(1);
  });
  auto both = [](weft::Reader<int> r, weft::Reader<int> q) -> Process {
    co_await r.read();
    co_await q.read();
  };
  weft::run(both(c.reader(), d.reader()));
  t.join();
  REQUIRE(told.all().size() == 2);
  CHECK(told.all()[0].processes[0].places == std::vector<std::string>{"'c'"});
  CHECK(told.all()[1].processes[0].places == std::vector<std::string>{"'d'"});
}

TEST_CASE("rule 10.6: on a virtual clock a deadline to which it may not jump is not due") {
  StandstillReports told;
  auto p = []() -> Process { co_await weft::sleep(1s); };
  std::thread t([outside = weft::Outside(), &told] { told.wait(1); });
  weft::run(virtually, p());
  t.join();
  CHECK(told.all()[0].text().find(": sleep at hosted_standstill.cpp") != std::string::npos);
}

namespace {

// A run as its executors see it, with the result of conclude() when the last executor falls asleep.
struct Quiet {
  weft::runtime::Run run;
  explicit Quiet(weft::Clock clock = weft::Clock::steady) : run(clock) {
    run.look_at_standstill = [](weft::runtime::Run&) noexcept {
      return static_cast<weft::runtime::Run::Standstill*>(nullptr);
    };
  }
  bool stands_still() {
    run.activated();
    return run.deactivated() != 0;
  }
};

}  // namespace

TEST_CASE(
    "rules 10.3, 10.6: what is due is no standstill: a blocking call, a timer, a token that says "
    "so") {
  Quiet q;
  CHECK(q.stands_still());
  q.run.enter_outside();
  CHECK_FALSE(q.stands_still());
  q.run.leave_outside();
  q.run.enter_outside(false);
  CHECK(q.stands_still());
  q.run.enter_outside();
  CHECK_FALSE(q.stands_still());
  q.run.leave_outside();
  weft::core::Choice choice;
  choice.arm();
  weft::runtime::TimerNode timer;
  timer.choice = &choice;
  timer.deadline = weft::prim::now() + 3'600'000'000'000;
  q.run.arm(timer);
  CHECK_FALSE(q.stands_still());
  q.run.disarm(timer);
  CHECK(q.stands_still());
  timer.deadline = weft::prim::forever;  // Rule 8.5: no clock reaches this time.
  q.run.arm(timer);
  CHECK(q.stands_still());
  q.run.leave_outside(false);

  weft::runtime::Outsiders::all().join(q.run);
  {
    const weft::Outside due(weft::Outside::due);
    CHECK_FALSE(q.stands_still());
  }
  {
    const weft::Outside unknown;
    CHECK(q.stands_still());
  }
  {
    const weft::signals nobody_reads{SIGUSR1};
    CHECK(q.stands_still());
  }
  weft::runtime::Outsiders::all().leave(q.run);
}

TEST_CASE("rule 10.6: a standstill is over when anything ran, and 0 turns it off") {
  Quiet q;
  q.run.activated();
  const std::uint32_t first = q.run.deactivated();
  CHECK(q.run.is_standstill(first));
  q.run.activated();
  CHECK_FALSE(q.run.is_standstill(first));
  const std::uint32_t second = q.run.deactivated();
  CHECK_FALSE(q.run.is_standstill(first));
  CHECK(q.run.is_standstill(second));
  CHECK(q.run.first_of(17));
  CHECK_FALSE(q.run.first_of(17));
  const StandstillReports off(0s);
  CHECK_FALSE(q.stands_still());
}

TEST_CASE("rule 10.6: one wake-up in a sleep, however long that is") {
  const StandstillReports told;
  struct One final : weft::runtime::Activity {
    weft::runtime::Parking* by = nullptr;
    int looks = 0;
    void activated() noexcept override {}
    std::uint32_t deactivated() noexcept override { return 7; }
    std::int64_t wake_time() noexcept override { return weft::prim::forever; }
    bool stood_still(std::uint32_t number) noexcept override {
      CHECK(number == 7);
      ++looks;
      std::thread([p = by] { p->signal(weft::runtime::Parking::woken); }).detach();
      return false;
    }
  } one;
  weft::runtime::Parking p;
  one.by = &p;
  p.activity = &one;
  while (p.sleep() == 0) {
  }
  CHECK(one.looks == 1);
}

TEST_CASE("rule 10.6: looks that meet wake-ups, from another thread, at once") {
  const StandstillReports told(1ns);
  static constexpr int n = 300;
  const auto network = [](auto&& run) {
    weft::Channel<int> c;
    std::atomic<int> got{0};
    std::thread t([outside = weft::Outside(), w = c.writer()]() mutable {
      for (int i = 0; i < n; ++i) {
        if (i % 3 == 0) std::this_thread::yield();
        w(i);
      }
    });
    run(c.reader(), got);
    t.join();
    CHECK(got == n);
  };
  auto counts = [](weft::Reader<int> r, std::atomic<int>& got) -> Process {
    while (co_await r.next()) ++got;
  };
  const auto in_thread = [](weft::Reader<int> r, std::atomic<int>& got) {
    return weft::thread([r = std::move(r), &got]() mutable {
      for (const int x : r) got += x >= 0;
    });
  };
  network([&](weft::Reader<int> r, std::atomic<int>& got) {
    weft::run(counts(r, got), counts(r, got));
  });
  network([&](weft::Reader<int> r, std::atomic<int>& got) {
    weft::run(in_thread(r, got), in_thread(r, got), counts(r, got));
  });
  network([&](weft::Reader<int> r, std::atomic<int>& got) {
    weft::run({.cores = 2}, counts(r, got), counts(r, got));
  });
}
