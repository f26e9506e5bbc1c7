// Tests rules 7.12, 10.3, 10.6: `signals` counts as something outside only while a process waits
// for a signal; when no process reads them, signals have their previous effect.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>

#include <weft/executors.hpp>
#include <weft/stopping.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

using Start = std::function<void(weft::Reader<int> stop, weft::Reader<int> work)>;

// Waits for a signal, and then for work.
Process signal_then_work(weft::Reader<int> stop, weft::Reader<int> work) {
  CHECK(co_await stop.read() == SIGUSR1);
  stop.retire();
  co_await work.read();
}
Process chooses(weft::Reader<int> stop, weft::Reader<int> work) {
  CHOSEN(weft::select(work, stop), 1);
  stop.retire();
  co_await work.read();
}
Process chooses_for_ever(weft::Reader<int> stop, weft::Reader<int> work) {
  CHOSEN(weft::select(work, stop, weft::after(weft::Span::max())), 1);
  stop.retire();
  co_await work.read();
}
Process in_parallel(weft::Reader<int> stop, weft::Reader<int> work) {
  weft::Channel<int> other;
  auto more = other.writer();
  auto feeds = [](weft::Writer<int> w) -> Process { co_await w.write(1); };
  auto both = [](weft::Reader<int> r, weft::Reader<int> s) -> Process {
    const auto [x, y] = co_await weft::par_read(r, s);
    CHECK(x == 1);
    CHECK(y == SIGUSR1);
  };
  co_await weft::par(both(other.reader(), std::move(stop)), feeds(std::move(more)));
  co_await work.read();
}
void in_thread(weft::Reader<int> stop, weft::Reader<int> work) {
  CHECK(stop() == SIGUSR1);
  stop.retire();
  work();
}

struct Kind {
  const char* name;
  Start start;
};
const Kind kinds[] = {
    {"read", [](auto s, auto w) { weft::run(signal_then_work(s, w)); }},
    {"select", [](auto s, auto w) { weft::run(chooses(s, w)); }},
    {"select, with a time that never comes",
     [](auto s, auto w) { weft::run(chooses_for_ever(s, w)); }},
    {"parallel reads", [](auto s, auto w) { weft::run(in_parallel(s, w)); }},
    {"thread", [](auto s, auto w) { weft::run(weft::thread([s, w] { in_thread(s, w); })); }},
    {"cores", [](auto s, auto w) { weft::run({.cores = 3}, chooses(s, w), nothing()); }},
    {"cores, beside a thread",
     [](auto s, auto w) {
       weft::run({.cores = 2}, nothing(), weft::thread([s, w] { in_thread(s, w); }));
     }},
    {"a core of its own",
     [](auto s, auto w) {
       weft::Core core;
       weft::run(signal_then_work(s, w).on(core), nothing());
     }},
};

// The only run of this program, once all its processes wait. While this object exists, no run ends.
class AtRest {
 public:
  AtRest() : runs_(pin()) {
    while (runs_.empty() || runs_[0]->rests() == 0) {
      weft::runtime::Outsiders::all().unpin();
      std::this_thread::yield();
      runs_ = pin();
    }
  }
  AtRest(const AtRest&) = delete;
  AtRest& operator=(const AtRest&) = delete;
  ~AtRest() { weft::runtime::Outsiders::all().unpin(); }
  weft::runtime::Run* operator->() const { return runs_[0]; }

 private:
  static std::vector<weft::runtime::Run*> pin() { return weft::runtime::Outsiders::all().pin(); }
  std::vector<weft::runtime::Run*> runs_;
};

}  // namespace

TEST_CASE("rules 7.12, 10.3: a run waits for a signal, and is deadlocked once nobody does") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    weft::signals stop{SIGUSR1};
    weft::Channel<int> c(weft::named("c"));
    const auto kept = c.writer();
    std::thread other([] {
      const AtRest run;
      std::raise(SIGUSR1);
    });
    const std::string what = thrown([&] { kind.start(stop.reader(), c.reader()); });
    other.join();
    CHECK(has(what, "deadlock: 1 process is blocked"));
    CHECK(has(what, "read 'c'"));
  }
}

TEST_CASE("rule 10.3: signals that nobody waits for keep no deadlock from being told") {
  weft::signals stop{SIGUSR1, SIGUSR2};
  const weft::Reader<int> mine = stop.reader();  // `mine` is held, but not read.
  weft::Channel<int> a(weft::named("a")), b(weft::named("b"));
  auto relay = [](weft::Reader<int> in, weft::Writer<int> out, weft::Reader<int>) -> Process {
    co_await out.write(co_await in.read());
  };
  CHECK_THROWS_AS(weft::run(relay(a.reader(), b.writer(), stop.reader()),
                            relay(b.reader(), a.writer(), stop.reader())),
                  weft::Deadlock);
}

TEST_CASE("rule 10.3: another run's process that waits for a signal holds up no conclusion here") {
  weft::signals stop{SIGUSR1};
  std::thread other(
      [&] { CHECK(weft::run(weft::thread([r = stop.reader()] { return r(); })) == SIGUSR1); });
  { const AtRest run; }
  weft::Channel<int> c;
  const auto kept = c.writer();
  CHECK_THROWS_AS(weft::run(reads(c.reader())), weft::Deadlock);
  std::raise(SIGUSR1);
  other.join();
}

namespace {

// Collects the reports of standstills while this object exists: the names of channels.
class ToldChannels {
 public:
  ToldChannels() {
    weft::on_standstill(
        [this](const weft::Standstill& s) {
          const std::lock_guard g(mutex_);
          for (const weft::Waits& w : s.processes)
            places_.insert(places_.end(), w.places.begin(), w.places.end());
          some_.notify_all();
        },
        1ms);
  }
  ToldChannels(const ToldChannels&) = delete;
  ToldChannels& operator=(const ToldChannels&) = delete;
  ~ToldChannels() { weft::on_standstill(nullptr, 2s); }

  bool of(const std::string& channel) {
    const std::lock_guard g(mutex_);
    return known(channel);
  }
  void wait_for(const std::string& channel) {
    std::unique_lock g(mutex_);
    some_.wait(g, [&] { return known(channel); });
  }

 private:
  bool known(const std::string& channel) const {
    return std::find(places_.begin(), places_.end(), channel) != places_.end();
  }
  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<std::string> places_;
};

// Starts another run, and waits until its standstill is reported. By then enough time has passed
// for the first run to be reported.
void another_standstill_is_reported(ToldChannels& told) {
  weft::Channel<int> c(weft::named("another"));
  std::thread ends([outside = weft::Outside(), w = c.writer(), &told] {
    told.wait_for("'another'");
    w(1);
  });
  weft::run(reads(c.reader()));
  ends.join();
}

}  // namespace

TEST_CASE("rule 10.6: no standstill while a process waits for a signal; one once it does not") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    ToldChannels told;
    weft::signals stop{SIGUSR1};
    weft::Channel<int> c(weft::named("c"));
    std::thread other([outside = weft::Outside(), w = c.writer(), &told] {
      { const AtRest run; }
      another_standstill_is_reported(told);
      CHECK_FALSE(told.of("'signals'"));
      std::raise(SIGUSR1);
      told.wait_for("'c'");
      w(1);
    });
    kind.start(stop.reader(), c.reader());
    other.join();
  }
}

TEST_CASE("rule 8.6: a virtual clock does not wait for signals") {
  weft::signals stop{SIGUSR1};
  auto waits = [](weft::Reader<int> s) -> Process {
    CHOSEN(weft::select(s, weft::after(std::chrono::hours(1))), 1);
  };
  weft::run(virtually, waits(stop.reader()), naps(std::chrono::hours(2)));
}

namespace {

std::atomic<int> came{0};
void counts(int) {
  came.fetch_add(1);
  came.notify_all();
}
void wait_until_came(int n) {
  for (int c = came.load(); c < n; c = came.load()) came.wait(c);
}
// Records the effect that SIGUSR1 has outside any `signals`, while this object exists.
class Before {
 public:
  Before() : before_(std::signal(SIGUSR1, &counts)) { came = 0; }
  Before(const Before&) = delete;
  Before& operator=(const Before&) = delete;
  ~Before() { CHECK((std::signal(SIGUSR1, before_) == &counts)); }

 private:
  void (*before_)(int);
};

Process takes(weft::Reader<int> stop, int n) {
  while (n-- > 0) CHECK(co_await stop.read() == SIGUSR1);
}

}  // namespace

TEST_CASE("rule 7.12: when all readers have gone a signal does what it did before") {
  const Before before;
  const std::function<void(weft::Reader<int>)> reading[] = {
      [](auto r) { weft::run(takes(std::move(r), 1)); },
      [](auto r) { weft::run({.cores = 2}, takes(std::move(r), 1), nothing()); },
      [](auto r) { weft::run(weft::thread([r = std::move(r)] { r(); })); },
      [](auto r) {
        r();
        r.retire();
      },
      [](auto r) {
        r();
        r.poison();
      },
  };
  for (const auto& read : reading) {
    came = 0;
    weft::signals stop{SIGUSR1};
    std::raise(SIGUSR1);  // There is no reader yet, so the signal is kept.
    read(stop.reader());
    CHECK(came == 0);
    for (int n = 1; n <= 3; ++n) {
      std::raise(SIGUSR1);
      wait_until_came(n);
    }
    // The next reader receives signals as values again.
    auto again = stop.reader();
    std::raise(SIGUSR1);
    CHECK(again() == SIGUSR1);
    CHECK(came == 3);
  }
}

TEST_CASE("rule 7.12: a new reader right after the last one has gone misses nothing") {
  const Before before;
  weft::signals stop{SIGUSR1};
  for (int i = 0; i < 3; ++i) {
    auto r = stop.reader();  // The previous reader was closed, and no signal has arrived since.
    std::raise(SIGUSR1);
    CHECK(r() == SIGUSR1);
  }
  CHECK(came == 0);
}

TEST_CASE("rule 7.12: the object reads by an end of its own, which stays") {
  const Before before;
  weft::signals stop{SIGUSR1};
  std::raise(SIGUSR1);
  CHECK(stop() == SIGUSR1);
  weft::run(takes(stop.reader(), 0));
  std::raise(SIGUSR1);
  auto one = [](weft::signals& s) -> ProcessOf<int> { co_return co_await s.read(); };
  CHECK(weft::run(one(stop)) == SIGUSR1);
  CHECK(came == 0);
}

TEST_CASE("rule 7.12: what was let go of is free for another; then the first has it no more") {
  const Before before;
  weft::signals stop{SIGUSR1, SIGUSR2};
  stop.reader().retire();
  std::raise(SIGUSR1);
  wait_until_came(1);
  {
    weft::signals other{SIGUSR1};
    CHECK_THROWS_WITH_AS(stop.reader(), doctest::Contains("has it already"), weft::BadUse);
    weft::signals free{SIGUSR2};  // The object whose constructor failed has not kept the signals.
  }
  auto r = stop.reader();
  std::raise(SIGUSR2);
  CHECK(r() == SIGUSR2);
}
