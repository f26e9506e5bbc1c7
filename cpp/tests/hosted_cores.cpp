// Tests where processes run (rules 15.5 to 15.9): on multi-core executors, on single-core executors
// beside them, on certain CPUs, in blocking calls. The rules of the other sections hold there as
// well; the conformance twin checks them at random (twin --cores 2).
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "hosted.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

using namespace test;

namespace {

constexpr weft::RunOptions two_cores{weft::Clock::steady, 2};
constexpr weft::RunOptions two_cores_virtually{weft::Clock::virtual_time, 2};

Process produce(weft::Writer<int> w, int from, int n) {
  for (int i = 0; i < n; ++i) co_await w.write(from + i);
}
weft::ProcessOf<std::vector<int>> gather(weft::Reader<int> r) {
  std::vector<int> all;
  while (auto v = co_await r.next()) all.push_back(*v);
  co_return all;
}
Process relay(weft::Reader<int> r, weft::Writer<int> w) {
  while (auto v = co_await r.next()) co_await w.write(*v);
}
std::vector<int> first(int n) {
  std::vector<int> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}
// Computes without waiting until `stop` is set.
Process until(std::atomic<bool>& stop) {
  while (!stop.load()) std::this_thread::yield();
  co_return;
}

}  // namespace

TEST_CASE(
    "rules 1, 15.5, 15.6: everything arrives once, each writer's values in order, on two cores") {
  weft::Channel<int> a, b;
  std::vector<Process> ps;
  for (int p = 0; p < 4; ++p) ps.push_back(produce(a.writer(), 1000 * p, 500));
  for (int k = 0; k < 3; ++k) ps.push_back(relay(a.reader(), b.writer()));
  auto group = [](std::vector<Process> all) -> Process { co_await weft::par(std::move(all)); };
  auto [got, nothing] = weft::run(two_cores, gather(b.reader()), group(std::move(ps)));
  std::vector<int> want;
  for (int p = 0; p < 4; ++p)
    for (int i = 0; i < 500; ++i) want.push_back(1000 * p + i);
  std::sort(got->begin(), got->end());
  CHECK(got == want);
}

TEST_CASE(
    "rule 15.5: a process goes on on other threads, and what it did before has happened before") {
  // Eight processes yield again and again on two cores, so that they are moved between the cores.
  weft::Channel<int> c;
  auto mover = [](int rounds, std::set<std::thread::id>& seen) -> Process {
    std::vector<int> mine;
    for (int i = 0; i < rounds; ++i) {
      mine.push_back(i);
      seen.insert(std::this_thread::get_id());
      co_await weft::yield();
    }
    CHECK(mine == first(rounds));
  };
  std::vector<std::set<std::thread::id>> seen(8);
  std::vector<Process> ps;
  for (auto& s : seen) ps.push_back(mover(2000, s));
  weft::run(two_cores, weft::par(std::move(ps)));
  std::set<std::thread::id> all;
  for (auto& s : seen) all.insert(s.begin(), s.end());
  CHECK(all.size() <= 2);
  CHECK(all.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("rule 15.7: one that computes on and on does not hold up the others") {
  std::atomic<bool> stop{false};
  weft::Channel<int> c;
  auto last = [](weft::Reader<int> r, std::atomic<bool>& flag) -> Process {
    for (int i = 0; i < 100; ++i) CHECK(co_await r.read() == i);
    flag = true;
  };
  weft::run(two_cores, until(stop), produce(c.writer(), 0, 100), last(c.reader(), stop));
  CHECK(stop);
}

TEST_CASE("rule 15.5: a process runs where it is told to, and those that it starts with it") {
  weft::Cores pool(2);
  weft::Core one;
  auto where = [](std::set<std::thread::id>& seen) -> Process {
    seen.insert(std::this_thread::get_id());
    co_return;
  };
  auto starts = [where](auto, std::set<std::thread::id>& a,
                        std::set<std::thread::id>& b) -> Process {
    a.insert(std::this_thread::get_id());
    co_await weft::par(where(b), where(b));
    co_await where(b);
    weft::Group g;
    g.start(where(b));
    co_await g.wait();
    weft::spawn(where(b));
  };
  std::set<std::thread::id> here, on_one, by_one, on_pool;
  weft::run(where(here), starts(0, on_one, by_one).on(one), where(on_one).on(one),
            where(on_pool).on(pool));
  CHECK(here == std::set{std::this_thread::get_id()});
  CHECK(on_one.size() == 1);
  CHECK(on_one == by_one);
  CHECK(on_one.count(std::this_thread::get_id()) == 0);
  CHECK(on_pool.count(std::this_thread::get_id()) == 0);
}

TEST_CASE("rule 15.6: processes on four kinds of executors and a thread meet on one channel") {
  weft::Cores pool(2);
  weft::Core one;
  weft::Channel<int> c;
  auto from_thread = weft::thread([w = c.writer()] {
    for (int i = 0; i < 50; ++i) w(300 + i);
  });
  auto [got, a, b, d, e] = weft::run(
      gather(c.reader()), produce(c.writer(), 0, 50).on(pool), produce(c.writer(), 100, 50).on(one),
      produce(c.writer(), 200, 50).pinned(weft::runtime::cpus().front()), std::move(from_thread));
  std::sort(got->begin(), got->end());
  std::vector<int> want;
  for (int p = 0; p < 4; ++p)
    for (int i = 0; i < 50; ++i) want.push_back(100 * p + i);
  CHECK(got == want);
}

TEST_CASE("rules 5.1, 5.3: selects meet selects on two cores") {
  weft::Channel<int> c, d;
  auto chooser = [](weft::Reader<int> r, weft::Writer<int> w, int n, std::atomic<int>& in,
                    std::atomic<int>& out) -> Process {
    for (int i = 0; i < n; ++i) {
      auto x = co_await weft::select(weft::in(r), weft::out(w, 1));
      (x.index == 0 ? in : out)++;
    }
  };
  // Each of the two processes reads the values that the other writes: 400 transfers, with two
  // parties each.
  std::atomic<int> in{0}, out{0};
  weft::run(two_cores, chooser(c.reader(), d.writer(), 400, in, out),
            chooser(d.reader(), c.writer(), 400, in, out));
  CHECK(in + out == 800);
  CHECK(in == out);
}

TEST_CASE("rule 8: barriers and standing alternatives on two cores") {
  weft::Barrier bar(3);
  std::atomic<int> arrived{0};
  auto party = [](weft::Barrier b, std::atomic<int>& n) -> Process {
    for (int i = 1; i <= 200; ++i) {
      ++n;
      co_await b.sync();
      CHECK(n >= 3 * i);
      co_await b.sync();
    }
  };
  weft::run(two_cores, party(bar, arrived), party(bar, arrived), party(bar, arrived));
  CHECK(arrived == 600);
  CHECK(bar.phases() == 400);

  std::vector<weft::Channel<int>> cs(5);
  auto standing = [](std::vector<weft::Reader<int>> rs, int n) -> weft::ProcessOf<long> {
    weft::StandingAlternative alt(std::move(rs));
    long sum = 0;
    for (int i = 0; i < n; ++i) {
      auto x = co_await alt.select();
      sum += *x.value;
    }
    co_return sum;
  };
  std::vector<weft::Reader<int>> rs;
  std::vector<weft::Writer<int>> open;  // keeps the channels from ending
  std::vector<Process> ws;
  for (auto& c : cs) {
    rs.push_back(c.reader());
    open.push_back(c.writer());
    ws.push_back(produce(c.writer(), 0, 200));
  }
  auto group = [](std::vector<Process> all) -> Process { co_await weft::par(std::move(all)); };
  auto [sum, nothing] = weft::run(two_cores, standing(std::move(rs), 1000), group(std::move(ws)));
  CHECK(sum == 5 * 199 * 200 / 2);
}

TEST_CASE("rules 6, 7.2: a failure cancels those that wait and those that run, on all executors") {
  weft::Cores pool(2);
  std::atomic<int> ended{0};
  struct Note {
    std::atomic<int>& n;
    ~Note() { ++n; }
  };
  auto waits = [](weft::Reader<int> r, std::atomic<int>& n) -> Process {
    const Note note{n};
    co_await r.read();
  };
  auto yields = [](std::atomic<int>& n) -> Process {
    const Note note{n};
    for (;;) co_await weft::yield();
  };
  auto fails = []() -> Process {
    co_await weft::sleep(1ms);
    throw std::runtime_error("boom");
  };
  for (int i = 0; i < 20; ++i) {
    ended = 0;
    weft::Channel<int> never;
    CHECK(thrown([&] {
            weft::run(two_cores, waits(never.reader(), ended),
                      waits(never.reader(), ended).on(pool), yields(ended), yields(ended).on(pool),
                      fails());
          }) == "boom");
    CHECK(ended == 4);
  }
}

TEST_CASE("rule 10.1: a deadlock over several executors is found, and named") {
  weft::Cores pool(2);
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")};
  const std::string what = thrown([&] {
    weft::run(two_cores, relay(a.reader(), b.writer()), relay(b.reader(), a.writer()).on(pool));
  });
  CHECK(has(what, "deadlock: 2 processes are blocked"));
  CHECK(has(what, "read 'a'"));
}

TEST_CASE("rule 8.6: virtual time stands still while any core has something to do") {
  std::vector<int> order;
  std::mutex m;
  auto sleeper = [](int ms, std::vector<int>& into, std::mutex& lock) -> Process {
    const std::int64_t begin = weft::now();
    co_await weft::sleep(std::chrono::milliseconds(ms));
    CHECK(weft::now() - begin == ms * 1'000'000LL);
    const std::lock_guard g(lock);
    into.push_back(ms);
  };
  std::vector<Process> ps;
  for (int ms : {5000, 1000, 3000, 2000, 4000}) ps.push_back(sleeper(ms, order, m));
  weft::run(two_cores_virtually, weft::par(std::move(ps)));
  CHECK(order == std::vector<int>{1000, 2000, 3000, 4000, 5000});
}

TEST_CASE("rule 8.5: timers on two cores, in steady time") {
  auto sleeper = [](int us) -> Process {
    for (int i = 0; i < 10; ++i) {
      const std::int64_t begin = weft::now();
      co_await weft::sleep(std::chrono::microseconds(us));
      CHECK(weft::now() - begin >= us * 1000LL);
    }
  };
  weft::run(two_cores, sleeper(100), sleeper(150), sleeper(1000));
}

TEST_CASE("rule 7.7: yield lets the others at the same core run") {
  weft::Cores one(1);
  std::vector<int> order;
  auto p = [](int me, std::vector<int>& into) -> Process {
    for (int i = 0; i < 3; ++i) {
      into.push_back(me);
      co_await weft::yield();
    }
  };
  weft::run(weft::on(one), p(1, order), p(2, order));
  CHECK(order == std::vector<int>{1, 2, 1, 2, 1, 2});
}

TEST_CASE("rule 5.4: an ad hoc select is fair on a multi-core executor too") {
  weft::Cores pool(1);
  weft::Channel<int> a, b;
  auto spam = [](weft::Writer<int> w) -> Process {
    for (;;) co_await w.write(1);
  };
  auto choose = [](weft::Reader<int> x, weft::Reader<int> y) -> Process {
    int n[2] = {0, 0};
    for (int i = 0; i < 100; ++i) {
      auto c = co_await weft::select(x, y);
      ++n[c.index];
      co_await weft::yield();
    }
    CHECK(n[0] == 50);
    CHECK(n[1] == 50);
  };
  weft::run(weft::on(pool), spam(a.writer()), spam(b.writer()), choose(a.reader(), b.reader()));
}

TEST_CASE("rule 11.2: an end of a local channel on a multi-core executor") {
  weft::Channel<int, weft::Local> c, e, f;
  auto p = [](weft::Reader<int, weft::Local> r) -> Process { co_await r.next(); };
  auto q = [](std::vector<weft::Reader<int, weft::Local>> r) -> Process { co_await r[0].next(); };
  auto nothing = []() -> Process { co_return; };
  CHECK(has(thrown([&] { weft::run(two_cores, nothing(), p(c.reader())); }),
            "make the channel weft::Shared"));
  CHECK(has(thrown([&] { weft::run(two_cores, q({e.reader()})); }), "weft::Local channel"));
  weft::Cores pool(2);
  CHECK_THROWS_AS(weft::run(p(f.reader()).on(pool), nothing()), weft::BadUse);
  // The same works on a single-core executor.
  weft::Core one;
  weft::Channel<int, weft::Local> d;
  auto w = [](weft::Writer<int, weft::Local> out) -> Process { co_await out.write(1); };
  weft::run(p(d.reader()).on(one), w(d.writer()).on(one));
}

TEST_CASE("rule 11: numbers of cores and CPUs out of range") {
  CHECK(has(thrown([] { weft::Cores(0); }), "must be from 1 to 64"));
  CHECK(has(thrown([] { weft::Cores(65); }), "must be from 1 to 64"));
  CHECK(has(thrown([] { weft::Cores(2, {0}); }), "1 CPUs for 2 cores"));
  CHECK(has(thrown([] { weft::Core(100000); }), "CPU 100000 is not one that this program may use"));
  auto nothing = []() -> Process { co_return; };
  CHECK_THROWS_AS(nothing().pinned(-1), weft::BadUse);
  CHECK_THROWS_AS(weft::thread([] {}).pinned(100000), weft::BadUse);
  weft::RunOptions none;
  none.cores = 0;
  CHECK_THROWS_AS(weft::run(none, nothing()), weft::BadUse);
}

TEST_CASE("rule 15.9: what a blocking call returns and throws") {
  auto p = []() -> Process {
    CHECK(co_await weft::blocking([] { return 42; }) == 42);
    co_await weft::blocking([] {});
    const auto text =
        co_await weft::blocking([] { return std::make_unique<std::string>("moved"); });
    CHECK(*text == "moved");
    const auto here = std::this_thread::get_id();
    CHECK(co_await weft::blocking([] { return std::this_thread::get_id(); }) != here);
    CHECK_THROWS_WITH_AS(co_await weft::blocking([] { throw std::runtime_error("inside"); }),
                         "inside", std::runtime_error);
  };
  weft::run(p());
  weft::run(two_cores, p(), p());
  CHECK(weft::blocking([] { return 7; })() == 7);
}

TEST_CASE(
    "rules 10.3, 15.9: a blocking call is outside: no deadlock, no jump of virtual time; others go "
    "on") {
  weft::Channel<int> c;
  std::atomic<bool> release{false};
  auto waits = [](std::atomic<bool>& go) -> Process {
    const std::int64_t begin = weft::now();
    co_await weft::blocking([&go] {
      while (!go) std::this_thread::yield();
    });
    CHECK(weft::now() == begin);
  };
  auto frees = [](weft::Reader<int> r, std::atomic<bool>& go) -> Process {
    CHECK(co_await r.read() == 0);
    go = true;
    co_await weft::sleep(1h);
  };
  weft::run(virtually, waits(release), produce(c.writer(), 0, 1), frees(c.reader(), release));
}

TEST_CASE("rule 15.9: 64 blocking calls are under way at a time; others wait their turn, and run") {
  std::atomic<int> running{0}, most{0}, ended{0};
  std::atomic<bool> asked{false};
  const auto call = [&]() -> Process {
    co_await weft::blocking([&] {
      const int n = ++running;
      for (int m = most; m < n && !most.compare_exchange_weak(m, n);) continue;
      asked.wait(false);
      --running;
    });
    ++ended;
  };
  // Waits until all calls have been requested and the maximum number of calls runs. The other calls
  // are also given time to begin.
  const auto opens = [&]() -> Process {
    while (most < 64) co_await weft::yield();
    for (int i = 0; i < 1000 && most == 64; ++i) {
      std::this_thread::yield();
      co_await weft::yield();
    }
    asked = true;
    asked.notify_all();
  };
  std::vector<Process> all;
  for (int i = 0; i < 200; ++i) all.push_back(call());
  all.push_back(opens());
  weft::run(std::move(all));
  CHECK(most == 64);
  CHECK(ended == 200);
}

TEST_CASE("rule 15.9: a cancelled blocking call: taken back before it begins, completed after") {
  std::atomic<bool> begun{false}, go{false}, completed{false};
  auto call = [](std::atomic<bool>& b, std::atomic<bool>& g, std::atomic<bool>& done) -> Process {
    const int n = co_await weft::blocking([&] {
      b = true;
      while (!g) std::this_thread::yield();
      return 5;
    });
    CHECK(n == 5);
    done = true;
    co_await weft::yield();  // The process is cancelled here if yield is a point of cancellation.
  };
  auto fails = [](std::atomic<bool>& b, std::atomic<bool>& g) -> Process {
    while (!b) co_await weft::yield();
    g = true;
    throw std::runtime_error("boom");
  };
  CHECK(thrown([&] { weft::run(call(begun, go, completed), fails(begun, go)); }) == "boom");
  CHECK(completed);

  // All helper threads are busy, so the call does not begin.
  begun = go = false;
  std::atomic<int> busy{0};
  std::atomic<bool> called{false};
  auto holds = [](std::atomic<int>& n, std::atomic<bool>& g) -> Process {
    co_await weft::blocking([&] {
      ++n;
      while (!g) std::this_thread::yield();
    });
  };
  auto late = [](std::atomic<bool>& was) -> Process {
    co_await weft::blocking([&] { was = true; });
    FAIL("it was cancelled");
  };
  auto stop = [](std::atomic<int>& n, std::atomic<bool>& g, Process p) -> Process {
    while (n < static_cast<int>(weft::runtime::Helpers::kMaxThreads)) co_await weft::yield();
    weft::Group group;
    group.start(std::move(p));
    co_await weft::yield();
    group.cancel();
    co_await group.wait();
    g = true;
  };
  std::vector<Process> ps;
  for (unsigned i = 0; i < weft::runtime::Helpers::kMaxThreads; ++i) ps.push_back(holds(busy, go));
  auto group = [](std::vector<Process> all) -> Process { co_await weft::par(std::move(all)); };
  weft::run(group(std::move(ps)), stop(busy, go, late(called)));
  CHECK(!called);
}

TEST_CASE(
    "rule 15.5: a network inside a thread process, on two cores; executors serve several runs") {
  weft::Cores pool(2);
  for (int i = 0; i < 3; ++i) {
    auto t = weft::thread([&pool] {
      weft::Channel<int> c;
      auto [got, nothing] =
          weft::run(weft::on(pool), gather(c.reader()), produce(c.writer(), 0, 100));
      CHECK(got == first(100));
    });
    weft::run(std::move(t));
  }
}

#if defined(__linux__)
namespace {

using Cpus = std::vector<int>;

// Returns the CPUs that the system allows the calling thread. The thread must be running on one of
// these CPUs.
Cpus allowed() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  CHECK(CPU_ISSET(static_cast<std::size_t>(sched_getcpu()), &set));
  Cpus r;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) r.push_back(i);
  return r;
}
// Returns two CPUs that this program may use. If there are not two, prints a message and returns an
// empty list.
Cpus two_cpus() {
  const Cpus all = allowed();
  if (all.size() > 1) return {all.front(), all.back()};
  MESSAGE("this program may use one CPU only: nothing to choose from");
  return {};
}
Process held_on(int cpu, int* n) {
  for (int i = 0; i < 20; ++i) {
    CHECK(allowed() == Cpus{cpu});
    CHECK(sched_getcpu() == cpu);
    co_await weft::yield();
  }
  ++*n;
}
Process with_child(int cpu, int* n) {
  co_await held_on(cpu, n);
  co_await weft::par(held_on(cpu, n), held_on(cpu, n));
}

}  // namespace

TEST_CASE(
    "rule 15.5: what is pinned to a CPU, or on a single core held there, runs on that CPU, and "
    "what it starts") {
  const Cpus before = allowed();
  for (const int cpu : two_cpus()) {
    int n = 0, m = 0;
    weft::run(with_child(cpu, &n).pinned(cpu));
    weft::Core core(cpu);
    weft::run(with_child(cpu, &m).on(core));
    CHECK(m == 3);
    // The test's thread is the executor's core while the process runs.
    weft::run(weft::on(core), with_child(cpu, &n));
    CHECK(allowed() == before);
    CHECK(n == 6);
  }
}

TEST_CASE("rules 15.5, 15.7: six workers on two CPUs: farms, rings and long steps at once") {
  const Cpus two = two_cpus();
  if (two.empty()) return;
  weft::Cores six(6, {two[0], two[1], two[0], two[1], two[0], two[1]});
  std::atomic<bool> stop{false};
  weft::Channel<int> jobs, results, turn, back;
  std::vector<Process> workers;
  for (int i = 0; i < 5; ++i) workers.push_back(relay(jobs.reader(), results.writer()));
  auto group = [](std::vector<Process> all) -> Process { co_await weft::par(std::move(all)); };
  auto lead = [](weft::Writer<int> w, weft::Reader<int> r, std::atomic<bool>& flag) -> Process {
    for (int i = 0; i < 2000; ++i) {
      co_await w.write(i);
      CHECK(co_await r.read() == i);
    }
    flag = true;
  };
  auto [got, a, b, c, d, e, f] =
      weft::run(weft::on(six), gather(results.reader()), produce(jobs.writer(), 0, 3000),
                group(std::move(workers)), lead(turn.writer(), back.reader(), stop),
                relay(turn.reader(), back.writer()), until(stop), until(stop));
  std::sort(got->begin(), got->end());
  CHECK(*got == first(3000));
  CHECK(stop);
}

TEST_CASE("rule 15.5: each thread of a multi-core executor is held on its CPU") {
  const Cpus two = two_cpus();
  if (two.empty()) return;
  const Cpus before = allowed();
  // Each of two processes computes until both have begun, so that they run on different cores.
  auto note = [](std::atomic<int>& begun, std::map<std::thread::id, Cpus>& where,
                 std::mutex& m) -> Process {
    for (++begun; begun < 2;) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) {
      const Cpus here = allowed();
      {
        const std::lock_guard g(m);
        const auto [known, added] = where.emplace(std::this_thread::get_id(), here);
        CHECK(known->second == here);
      }
      co_await weft::yield();
    }
  };
  const auto seen = [&](auto run) {
    std::atomic<int> begun{0};
    std::map<std::thread::id, Cpus> where;
    std::mutex m;
    run(note(begun, where, m), note(begun, where, m));
    std::vector<Cpus> r;
    for (const auto& [id, cpus] : where) r.push_back(cpus);
    std::sort(r.begin(), r.end());
    return r;
  };
  const std::vector<Cpus> each{{two[0]}, {two[1]}};
  weft::Cores held(2, two), same(2, {two[1], two[1]}), free(2);
  CHECK(seen([&](Process p, Process q) {
          weft::run(std::move(p).on(held), std::move(q).on(held));
        }) == each);
  CHECK(seen([&](Process p, Process q) {
          weft::run(weft::on(held), std::move(p), std::move(q));
        }) == each);
  CHECK(allowed() == before);
  CHECK(seen([&](Process p, Process q) {
          weft::run(std::move(p).on(same), std::move(q).on(same));
        }) == std::vector<Cpus>{{two[1]}, {two[1]}});
  CHECK(seen([&](Process p, Process q) {
          weft::run(std::move(p).on(free), std::move(q).on(free));
        }) == std::vector<Cpus>{before, before});
}

TEST_CASE(
    "a thread process is held on its CPU, a coroutine that has the thread too; one after it on the "
    "same thread is not") {
  const Cpus before = allowed();
  for (const int cpu : two_cpus()) {
    Cpus held, after;
    int n = 0;
    auto in_turn = [](auto first, auto second, auto third) -> Process {
      co_await weft::par(std::move(first));
      co_await weft::par(std::move(second));
      co_await weft::par(std::move(third));
    };
    weft::run(in_turn(weft::thread([&] {
                        held = allowed();
                        weft::run(held_on(cpu, &n));
                      }).pinned(cpu),
                      weft::thread([&] { after = allowed(); }),
                      weft::thread(held_on(cpu, &n)).pinned(cpu)));
    CHECK(held == Cpus{cpu});
    CHECK(n == 2);
    CHECK(after == before);
  }
}
#endif
