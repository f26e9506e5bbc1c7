// Tests how an executor sleeps where a language runtime checks for signals around the sleep
// (runtime/parking.hpp, rule 6.7).
#include <atomic>
#include <thread>

#include <doctest/doctest.h>
#include "weft/runtime/parking.hpp"

using weft::runtime::around_sleep;
using weft::runtime::AroundSleep;
using weft::runtime::Parking;

namespace {

// Counts the active executors, as a run does.
struct Count final : weft::runtime::Activity {
  std::atomic<int> active{1};
  std::int64_t until = weft::prim::forever;
  void activated() noexcept override { ++active; }
  std::uint32_t deactivated() noexcept override {
    --active;
    return 0;
  }
  std::int64_t wake_time() noexcept override { return until; }
};

// The calls that the language runtime has received, and the effects that the next calls are to
// have.
struct Seen {
  Parking* by = nullptr;
  int looked = 0, ended = 0;
  bool go_on = true;         // the result of disturbed()
  int disturbed_checks = 0;  // how many more checks for signals are disturbed
} seen;

void* begin_stirred(Parking& p) {  // Called after the last check for signals, before the sleep.
  seen.by = &p;
  p.disturb();
  return &seen;
}
void* begin_quiet(Parking& p) {
  seen.by = &p;
  return &seen;
}
void end(void*) { ++seen.ended; }
bool disturbed(void*) {
  ++seen.looked;
  if (seen.disturbed_checks-- > 0) {
    seen.by->disturb();
    return false;
  }
  return seen.go_on;
}

void* begin_woken(Parking& p) {
  p.signal(Parking::woken);
  return &seen;
}
// step_aside() takes some time, as releasing a lock does, and signals before the thread sleeps.
struct Aside {
  Parking* by = nullptr;
  int stepped = 0, back = 0;
  std::int64_t takes = 0;  // in ns
} aside;
void* step_aside() {
  ++aside.stepped;
  for (const std::int64_t end = weft::prim::now() + aside.takes; weft::prim::now() < end;) {
  }
  aside.by->signal(Parking::woken);
  return &aside;
}
void step_back(void*) { ++aside.back; }

struct Around {
  AroundSleep before = around_sleep;
  explicit Around(void* (*begin)(Parking&)) {
    seen = {};
    around_sleep = {begin, &end, &disturbed};
  }
  Around(void* (*begin)(Parking&), Parking& p, std::int64_t takes) : Around(begin) {
    aside = {&p, 0, 0, takes};
    around_sleep.step_aside = &step_aside;
    around_sleep.step_back = &step_back;
  }
  ~Around() { around_sleep = before; }
};

}  // namespace

TEST_CASE("rule 6.7: a signal between the last look and the sleep is looked for at once") {
  const Around around(&begin_stirred);
  Count count;
  Parking p;
  p.activity = &count;
  CHECK(p.sleep() == Parking::nudged);
  CHECK(seen.looked == 1);
  CHECK(seen.ended == 1);
  CHECK(count.active == 1);
  CHECK(!p.signalled());
}

TEST_CASE("rule 6.7: a signal during the look is looked for after it") {
  const Around around(&begin_stirred);
  seen.disturbed_checks = 3;
  Count count;
  Parking p;
  p.activity = &count;
  CHECK(p.sleep() == Parking::nudged);
  CHECK(seen.looked == 4);
  CHECK(count.active == 1);
}

TEST_CASE("rule 6.7: a stirred sleeper is still asleep to whoever wakes it, and counted once") {
  const Around around(&begin_quiet);
  Count count;
  Parking p;
  p.activity = &count;
  // Another thread disturbs the sleeper and then wakes it; the sleeper sleeps until then, because
  // disturbed() returns false.
  seen.go_on = false;
  std::thread other([&] {
    while (count.active != 0) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) p.disturb();
    p.signal(Parking::woken);
  });
  CHECK(p.sleep() == Parking::woken);
  other.join();
  CHECK(count.active == 1);
  CHECK(!p.signalled());
}

TEST_CASE("rule 6.7: a sleeper whose time is up although it is stirred") {
  const Around around(&begin_stirred);
  seen.go_on = false;
  Count count;
  count.until = weft::prim::now();
  Parking p;
  p.activity = &count;
  CHECK(p.sleep() == 0);
  CHECK(count.active == 1);
  CHECK(!p.signalled());
}

namespace {
// The sleeper's time is up just when another thread is about to signal the sleeper. The signaller
// has seen the sleeper asleep and has counted it as active, and the sleeper counts itself too.
struct Meeting final : weft::runtime::Activity {
  Parking p;
  std::atomic<int> active{1};
  std::atomic<bool> asleep{false}, counted{false}, awake{false};
  bool late = false;  // whether the signaller called activated() when the sleeper might have left
  const std::thread::id sleeper = std::this_thread::get_id();
  static void until(const std::atomic<bool>& b) {
    while (!b) std::this_thread::yield();
  }
  void activated() noexcept override {
    ++active;
    if (std::this_thread::get_id() == sleeper) return;
    counted = true;
    until(awake);
  }
  std::uint32_t deactivated() noexcept override {
    --active;
    if (std::this_thread::get_id() == sleeper) {
      asleep = true;
      until(counted);
    } else {
      late = p.signalled();
    }
    return 0;
  }
  std::int64_t wake_time() noexcept override { return weft::prim::now(); }
};
}  // namespace

TEST_CASE(
    "rules 8.6, 10.1: who signals a sleeper that has woken by itself counts it once, and is done "
    "with it before it can go") {
  Meeting m;
  m.p.activity = &m;
  std::thread signals([&m] {
    Meeting::until(m.asleep);
    m.p.signal(Parking::woken);
  });
  CHECK(m.p.sleep() == 0);  // The time was up.
  m.awake = true;
  signals.join();
  CHECK(!m.late);
  CHECK(m.active == 1);
  CHECK(m.p.take() == Parking::woken);
}

TEST_CASE("rule 6.7: who is awake is not stirred") {
  Parking p;
  p.disturb();
  CHECK(!p.signalled());
  p.signal(Parking::woken);
  p.disturb();
  CHECK(p.take() == Parking::woken);
}

TEST_CASE("rule 6.7: a resting host that is stirred rises as one that is not") {
  Count count;
  Parking p;
  p.activity = &count;
  REQUIRE(p.end_turn());
  CHECK(count.active == 0);
  p.disturb();
  p.begin_turn();
  CHECK(count.active == 1);
  CHECK(!p.signalled());
}

TEST_CASE("rule 6.7: who is signalled while it lets go of the lock does not sleep") {
  Count count;
  Parking p;
  p.activity = &count;
  const Around around(&begin_quiet, p, 0);
  CHECK(p.sleep() == Parking::woken);
  CHECK(aside.stepped == 1);
  CHECK(aside.back == 1);
  CHECK(seen.by == nullptr);
  CHECK(count.active == 1);
  CHECK(!p.signalled());
}

TEST_CASE("who yielded to another program, which kept the CPU, sleeps at once for a while") {
  Count count;
  Parking p;
  p.activity = &count;
  const Around around(&begin_woken, p, 200'000);
  for (int forgone : {0, 128, 256, 512}) {  // how often p sleeps before it tries a yield again
    for (int i = 0; i < forgone; ++i) CHECK(p.sleep() == Parking::woken);
    CHECK(seen.ended == forgone);
    seen.ended = 0;
    const int before = aside.stepped;
    CHECK(p.sleep() == Parking::woken);
    CHECK(aside.stepped == before + 1);
    CHECK(aside.back == aside.stepped);
    CHECK(seen.ended == 0);
  }
  CHECK(count.active == 1);
}

namespace {
// Returns true, as if the awaited event had happened, but only after a longer time than a yield may
// take.
bool comes_late() {
  for (const std::int64_t end = weft::prim::now() + 200'000; weft::prim::now() < end;) {
  }
  return true;
}
}  // namespace

TEST_CASE("yields that succeed but take long are given up too, by whoever yields") {
  weft::runtime::GivingWay ways;
  for (int forgone : {0, 128, 256, 512}) {
    for (int i = 0; i < forgone; ++i) CHECK(!ways.worth_trying());
    CHECK(ways.worth_trying());
    CHECK(ways.until(comes_late));
  }
}

TEST_CASE("a yield that takes long is noticed among brief ones, within sixteen of them") {
  weft::runtime::GivingWay ways;
  int attempts = 0;
  for (; ways.worth_trying() && attempts < 100; ++attempts)
    CHECK(ways.until([&] { return attempts == 0 || comes_late(); }));
  // The first of sixteen attempts is timed. There are fewer attempts if the CPU was given to
  // another thread.
  CHECK(attempts <= 17);
}
