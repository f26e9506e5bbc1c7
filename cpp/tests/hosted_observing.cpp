// Tests rules 10.5 and 14: partial deadlock, the watchdog, measuring.
#include <condition_variable>
#include <mutex>
#include <random>

#include <weft/observe.hpp>
#include <weft/runtime/going_on.hpp>

#include "hosted.hpp"

using namespace test;

namespace {

using Paths = std::vector<std::string>;
Paths paths(const weft::PartialDeadlock& d) {
  Paths r;
  for (const auto& s : d.processes) r.push_back(s.path);
  return r;
}

template <class P>
Process relay(weft::Reader<int, P> r, weft::Writer<int, P> w) {
  for (;;) co_await w.write(co_await r.read());
}
// Lets the other processes park, stores the result of deadlocks() in `found`, and poisons `ends` so
// that the processes resume.
template <class P, class... C>
Process look(weft::PartialDeadlock& found, C... ends) {
  for (int i = 0; i < 5; ++i) co_await weft::yield();
  found = weft::deadlocks();
  (ends.poison(), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("rules 10.5, 14.3: two that wait for each other while a third goes on", P,
                   POLICIES) {
  weft::Channel<int, P> a{weft::named("a")}, b{weft::named("b")};
  weft::PartialDeadlock d;
  weft::run(relay<P>(a.reader(), b.writer()).named("left"),
            relay<P>(b.reader(), a.writer()).named("right"), look<P>(d, a));
  REQUIRE(paths(d) == Paths{"main/left", "main/right"});
  CHECK(d.processes[0].operation == "read");
  CHECK(d.processes[0].places == Paths{"'a'"});
  CHECK(d.processes[0].waits_for == Paths{"main/right"});
  CHECK(has(d.processes[0].at, "hosted_observing.cpp:"));
  CHECK(has(d.text(), "2 processes are stuck"));
  CHECK(has(d.text(), "main/right: read 'b' at hosted_observing.cpp:"));
  CHECK(has(d.text(), "held by main/left"));
}

// A small random set of processes, numbered 1 to n. Each process is the child of an earlier
// process, or of no process (0).
namespace {

struct World {
  struct One {
    unsigned parent = 0;
    bool able = false, for_children = false;
    std::set<unsigned> places;
  };
  struct Place {
    bool barrier = false;
    std::set<unsigned> holders;
  };
  std::vector<One> all;  // number 0 stands for no process
  std::vector<Place> places;

  explicit World(std::mt19937& random) : all(2 + random() % 6), places(1 + random() % 4) {
    const auto anybody = [&] { return 1 + static_cast<unsigned>(random() % (all.size() - 1)); };
    for (Place& p : places) {
      p.barrier = random() % 4 == 0;
      for (unsigned k = random() % 3; k > 0 && !p.barrier; --k) p.holders.insert(anybody());
    }
    for (unsigned i = 1; i < all.size(); ++i) {
      all[i].parent = static_cast<unsigned>(random() % i);
      const unsigned state = random() % 5;
      all[i].able = state == 0;
      all[i].for_children = state == 1;
      for (unsigned k = 1 + random() % 2; k > 0 && state > 1; --k)
        all[i].places.insert(static_cast<unsigned>(random() % places.size()));
    }
  }
  // Returns whether a process for which `outside` is true can wake process i.
  template <class F>
  bool may_be_woken(unsigned i, F outside) const {
    if (all[i].able) return true;
    bool any = false, children = true;
    for (unsigned k = 1; k < all.size(); ++k) {
      any = any || outside(k);
      children = children && (all[k].parent != i || outside(k));
    }
    if (all[i].for_children) return children;
    for (const unsigned place : all[i].places) {
      if (places[place].barrier && any) return true;
      for (const unsigned h : places[place].holders)
        if (outside(h)) return true;
    }
    return false;
  }
  std::set<unsigned> stuck() const {
    weft::runtime::GoingOn g;
    const auto key = [](const auto& x) { return static_cast<const void*>(&x); };
    for (unsigned i = 1; i < all.size(); ++i) g.process(i, key(all[all[i].parent]));
    for (unsigned i = 1; i < all.size(); ++i) {
      if (all[i].able) g.able(i);
      if (all[i].for_children) g.waits_for(i, key(all[i]));
      for (const unsigned p : all[i].places)
        places[p].barrier ? g.waits_at_barrier(i) : g.waits_at(i, key(places[p]));
    }
    for (const Place& p : places)
      for (const unsigned h : p.holders) g.holds(h, key(p));
    g.solve();
    std::set<unsigned> r;
    for (unsigned i = 1; i < all.size(); ++i)
      if (!g.is_able(i)) r.insert(i);
    return r;
  }
  // Returns the union of all sets of which no process outside the set can wake a member.
  std::set<unsigned> stuck_by_definition() const {
    std::set<unsigned> r;
    for (unsigned bits = 0; bits < 1u << all.size(); bits += 2) {
      bool closed = true;
      for (unsigned i = 1; i < all.size(); ++i)
        closed = closed && (!(bits >> i & 1) ||
                            !may_be_woken(i, [&](unsigned k) { return !(bits >> k & 1); }));
      for (unsigned i = 1; i < all.size() && closed; ++i)
        if (bits >> i & 1) r.insert(i);
    }
    return r;
  }
};

}  // namespace

TEST_CASE("rule 14.3: the stuck, against their definition") {
  std::size_t some = 0, all = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const World w(random);
    CAPTURE(seed);
    const std::set<unsigned> stuck = w.stuck();
    REQUIRE(stuck == w.stuck_by_definition());
    some += !stuck.empty();
    all += stuck.size() + 1 == w.all.size();
  }
  CHECK(some > 200);  // Otherwise the random sets would prove nothing.
  CHECK(some > all);
}

TEST_CASE("rule 14.3: whoever could still be woken is not accused") {
  weft::Channel<int> a, b;
  weft::PartialDeadlock d;
  const auto two = [&](auto... more) {
    weft::Channel<int> x, y;
    weft::run(relay<weft::Shared>(x.reader(), y.writer()).named("left"),
              relay<weft::Shared>(y.reader(), x.writer()).named("right"), more(x, y)...);
    return paths(d);
  };
  const auto looks = [&](auto x, auto) { return look<weft::Shared>(d, x); };
  CHECK(two(looks).size() == 2);  // Otherwise the other checks would prove nothing.

  SUBCASE("an end in a local variable") {
    auto p = [](weft::Channel<int> x, weft::PartialDeadlock& to) -> Process {
      auto w = x.writer();
      for (int i = 0; i < 5; ++i) co_await weft::yield();
      to = weft::deadlocks();
      w.poison();
    };
    CHECK(two([&](auto x, auto) { return p(x, d); }).empty());
  }
  SUBCASE("an end of the side at which nobody waits counts too: its holder may poison it") {
    auto p = [](weft::Reader<int> r, weft::PartialDeadlock& to) -> Process {
      for (int i = 0; i < 5; ++i) co_await weft::yield();
      to = weft::deadlocks();
      r.poison();
    };
    CHECK(two([&](auto x, auto) { return p(x.reader(), d); }).empty());
  }
  SUBCASE("an end that a sleeper holds") {
    auto p = [](weft::Writer<int> w) -> Process {
      co_await weft::sleep(1ms);
      w.poison();
    };
    CHECK(two([&](auto x, auto) { return p(x.writer()); }, looks).empty());
  }
  SUBCASE("an end in a buffer, on its way to nobody yet") {
    weft::Channel<weft::Writer<int>> mail{weft::buffer(1)};
    auto p = [](weft::Writer<weft::Writer<int>> to, weft::Writer<int> w) -> Process {
      co_await to.write(std::move(w));
      for (int i = 0; i < 10; ++i) co_await weft::yield();
    };
    auto keep = mail.reader();
    CHECK(two([&](auto x, auto) { return p(mail.writer(), x.writer()); }, looks).empty());
  }
  SUBCASE("an end that was moved out of the arguments of one that is stuck itself") {
    weft::Writer<int> stolen;
    weft::Channel<int> own;
    auto p = [](weft::Writer<int> w, weft::Reader<int> r, weft::Writer<int>,
                weft::Writer<int>& to) -> Process {
      to = std::move(w);
      co_await r.read();
    };
    CHECK(
        two([&](auto x,
                auto) { return p(x.writer(), own.reader(), own.writer(), stolen).named("robbed"); },
            [&](auto x, auto) { return look<weft::Shared>(d, x, own); }) == Paths{"main/robbed"});
  }
  SUBCASE("a thread holds one") {
    std::mutex m;
    std::condition_variable cv;
    bool looked = false;
    auto p = [](weft::PartialDeadlock& to, std::mutex& mutex, std::condition_variable& c,
                bool& flag) -> Process {
      for (int i = 0; i < 5; ++i) co_await weft::yield();
      to = weft::deadlocks();
      const std::lock_guard g(mutex);
      flag = true;
      c.notify_all();
    };
    const auto thread = [&](auto x, auto) {
      return weft::thread([&, w = x.writer()] {
        std::unique_lock g(m);
        cv.wait(g, [&] { return looked; });
        w.poison();
      });
    };
    CHECK(two(thread, [&](auto, auto) { return p(d, m, cv, looked); }).empty());
  }
}

TEST_CASE("rule 14.3: selects, several at once, vectors of ends, barriers, children") {
  weft::PartialDeadlock d;
  weft::Channel<int> a, b, c, e, f, g;
  auto either = [](std::vector<weft::Reader<int>> r, weft::Writer<int>) -> Process {
    co_await weft::select(r);
  };
  auto either_or_late = [](std::vector<weft::Reader<int>> r, weft::Writer<int>) -> Process {
    co_await weft::select(r[0], weft::after(1h));
  };
  auto both = [](weft::Writer<int> x, weft::Writer<int> y, weft::Reader<int>,
                 weft::Reader<int>) -> Process { co_await weft::par_write(x, 1, y, 2); };
  auto reads = [](weft::Reader<int> r, weft::Writer<int>) -> Process { co_await r.read(); };
  auto parent = [](auto child, weft::Reader<int> r, weft::Writer<int> w) -> Process {
    co_await child(std::move(r), std::move(w)).named("child");
  };
  const auto readers = [](const auto&... x) {
    return std::vector<weft::Reader<int>>{x.reader()...};
  };
  weft::Barrier barrier(2);
  auto meets = [](weft::Barrier x) -> Process { co_await x.sync(); };
  auto release = [](weft::Barrier x) -> Process {
    for (int i = 0; i < 6; ++i) co_await weft::yield();
    co_await x.sync();
  };
  weft::run(either(readers(a, b), c.writer()).named("either"),
            both(a.writer(), b.writer(), c.reader(), e.reader()).named("reader of itself"),
            reads(c.reader(), e.writer()).named("reads"), meets(barrier).named("at barrier"),
            release(barrier), either_or_late(readers(f), f.writer()).named("has a timer"),
            parent(reads, g.reader(), g.writer()).named("parent"),
            look<weft::Shared>(d, a, b, c, f, g));
  // "either" and "both" met at a and b, so "either" has ended, and its end of c is closed. So
  // neither of these processes is stuck. The reader of g waits for itself.
  CHECK(paths(d) == Paths{"main/parent/child"});

  // The network is similar, but its processes have no party to meet.
  weft::Channel<int> h, i, j;
  weft::run(either(readers(h, i), j.writer()).named("either"),
            reads(j.reader(), h.writer()).named("one"), reads(j.reader(), i.writer()).named("two"),
            look<weft::Shared>(d, h, i, j));
  REQUIRE(paths(d) == Paths{"main/either", "main/one", "main/two"});
  CHECK(d.processes[0].waits_for == Paths{"main/one", "main/two"});
  CHECK(d.processes[1].waits_for == Paths{"main/either"});

  weft::Channel<int> k, l;
  weft::run(both(k.writer(), l.writer(), k.reader(), l.reader()).named("both"),
            look<weft::Shared>(d, k, l));
  CHECK(paths(d) == Paths{"main/both"});
}

TEST_CASE("rule 14.3: a child that is stuck holds its parent, and whoever waits for that") {
  weft::Channel<int> a, b;
  weft::PartialDeadlock d;
  auto child = [](weft::Reader<int> r, weft::Writer<int>) -> Process { co_await r.read(); };
  auto parent = [](auto c, weft::Reader<int> r, weft::Writer<int> w,
                   weft::Writer<int> mine) -> Process {
    co_await c(std::move(r), std::move(w)).named("child");
    co_await mine.write(1);
  };
  auto waits = [](weft::Reader<int> r) -> Process { co_await r.read(); };
  weft::run(parent(child, a.reader(), a.writer(), b.writer()).named("parent"),
            waits(b.reader()).named("waits"), look<weft::Shared>(d, a, b));
  CHECK(paths(d) == Paths{"main/parent/child", "main/waits"});
  CHECK(d.processes[1].waits_for == Paths{"main/parent"});
}

TEST_CASE("rule 10.5: asked from a thread process; outside any it is bad use") {
  weft::Channel<int> a, b;
  weft::PartialDeadlock d;
  weft::Channel<int> parked;
  // Both processes have parked once the scheduler has run the process that was started last.
  auto last = [](weft::Writer<int> w) -> Process {
    for (int i = 0; i < 5; ++i) co_await weft::yield();
    co_await w.write(1);
  };
  const auto thread = [&] {
    return weft::thread([&, r = parked.reader()] {
      r();
      d = weft::deadlocks();
      a.poison();
    });
  };
  weft::run(relay<weft::Shared>(a.reader(), b.writer()).named("left"),
            relay<weft::Shared>(b.reader(), a.writer()).named("right"), last(parked.writer()),
            thread());
  CHECK(paths(d) == Paths{"main/left", "main/right"});
  CHECK_THROWS_WITH_AS((void)weft::deadlocks(), doctest::Contains("inside a process"),
                       weft::BadUse);
  CHECK(weft::PartialDeadlock().text() == "no process is stuck");
}

TEST_CASE("rules 10.5, 15.6: on several cores, while others go on there and elsewhere") {
  for (const unsigned cores : {1u, 2u, 3u}) {
    weft::Channel<int> a, b, round, back, kept, away;
    weft::PartialDeadlock d;
    auto looks = [](weft::PartialDeadlock& found, auto... channels) -> Process {
      for (int i = 0; i < 1'000'000 && !found; ++i) {  // until both processes have parked
        co_await weft::yield();
        found = weft::deadlocks();
      }
      (channels.poison(), ...);
    };
    auto begins = [](weft::Reader<int> r, weft::Writer<int> w) -> Process {
      co_await w.write(0);
      for (;;) co_await w.write(co_await r.read());
    };
    const auto local = kept.writer();  // The library knows of no process that holds this end.
    weft::Core second;
    weft::Cores pool(cores);
    weft::run(weft::on(pool),
              weft::par(relay<weft::Shared>(a.reader(), b.writer()).named("left"),
                        relay<weft::Shared>(b.reader(), a.writer()).named("right"),
                        begins(round.reader(), back.writer()),
                        relay<weft::Shared>(back.reader(), round.writer()),
                        relay<weft::Shared>(kept.reader(), away.writer()),
                        relay<weft::Shared>(away.reader(), kept.writer()).on(second),
                        looks(d, a, round, kept)));
    CHECK(paths(d) == Paths{"main/left", "main/right"});
  }
}

TEST_CASE("rule 14.3: very many, in a time that grows as they do; the text is cut") {
  constexpr int n = 20'000;
  std::vector<weft::Channel<int, weft::Local>> c;
  for (int i = 0; i < n; ++i) c.emplace_back(weft::named("c"));
  std::vector<Process> all;
  for (int i = 0; i < n; ++i)
    all.push_back(relay<weft::Local>(c[i].reader(), c[(i + 1) % n].writer()).named("ring"));
  weft::PartialDeadlock d;
  weft::run(weft::par(weft::par(std::move(all)), look<weft::Local>(d, c[0])));
  CHECK(d.processes.size() == n);
  CHECK(has(d.text(), "… and 19960 more"));
  CHECK(d.text().size() < 10'000);
}

TEST_CASE("rule 10.5: looked for whenever a scheduler falls idle, and each told once") {
  weft::Channel<int> a, b, never;
  std::vector<Paths> told;
  auto clock = [](int n) -> Process {
    for (int i = 0; i < n; ++i) co_await weft::sleep(1ms);
  };
  {
    const weft::watching_deadlocks w([&](const weft::PartialDeadlock& d) {
      told.push_back(paths(d));
      a.poison();
    });
    weft::run(virtually,
              weft::par(relay<weft::Shared>(a.reader(), b.writer()).named("left"),
                        relay<weft::Shared>(b.reader(), a.writer()).named("right"), clock(5)));
  }
  CHECK(told == std::vector<Paths>{{"main/left", "main/right"}});

  // The ends stay open. The partial deadlock is reported once, although the scheduler falls idle
  // many times.
  told.clear();
  weft::Channel<int> x, y;
  auto ends = [](weft::Channel<int> c) -> Process {
    for (int i = 0; i < 5; ++i) co_await weft::sleep(1ms);
    c.poison();
  };
  {
    const weft::watching_deadlocks w(
        [&](const weft::PartialDeadlock& d) { told.push_back(paths(d)); });
    weft::run(virtually,
              weft::par(relay<weft::Shared>(x.reader(), y.writer()).named("left"),
                        relay<weft::Shared>(y.reader(), x.writer()).named("right"), ends(x)));
  }
  CHECK(told.size() == 1);
  // Once no watching object is left, nothing is reported.
  weft::Channel<int> p, q;
  weft::run(virtually, weft::par(relay<weft::Shared>(p.reader(), q.writer()),
                                 relay<weft::Shared>(q.reader(), p.writer()), ends(p)));
  CHECK(told.size() == 1);
}

TEST_CASE("rule 14.1: a process that keeps its scheduler is named, once, while it does") {
  std::mutex m;
  std::condition_variable cv;
  std::vector<weft::Hog> hogs;
  auto hog = [](weft::Reader<int> r, std::mutex& mutex, std::condition_variable& told,
                std::vector<weft::Hog>& list) -> Process {
    co_await r.read();
    std::unique_lock g(mutex);
    told.wait(g, [&] { return !list.empty(); });  // stands for a long computation
  };
  const auto run = [&](weft::RunOptions o) {
    hogs.clear();
    const weft::watchdog dog(2ms, [&](const weft::Hog& h) {
      const std::lock_guard g(m);
      if (has(h.path, "hog")) hogs.push_back(h);
      cv.notify_all();
    });
    weft::Channel<int> to;
    weft::run(o, weft::par(hog(to.reader(), m, cv, hogs).named("hog"),
                           send_all<weft::Shared>(to.writer(), {1}), weft::thread([&] {
                             std::unique_lock g(m);
                             cv.wait(g, [&] { return !hogs.empty(); });  // No thread is reported.
                           })));
    REQUIRE(hogs.size() == 1);
    CHECK(hogs[0].path == "main/hog");
    CHECK(hogs[0].seconds > 2ms);
    CHECK(has(hogs[0].at, "hosted_observing.cpp:"));
  };
  run({});
  run({.cores = 2});
  CHECK_THROWS_AS(weft::watchdog(0ms, [](const weft::Hog&) {}), weft::BadUse);
}

TEST_CASE("rule 14.4: a name that is not UTF-8 is JSON all the same") {
  const std::pair<const char*, const char*> names[] = {
      {"\xff\xc3\xa9", "\\ufffd\xc3\xa9"},        // a byte of no character; é
      {"\xe2\x82", "\\ufffd\\ufffd"},             // half a character
      {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},  // half of a UTF-16 surrogate pair
      {"\xc0\xaf\xf4\x90",
       "\\ufffd\\ufffd\\ufffd\\ufffd"},  // an overlong form, and a value that is too large
      {"\n\x1f\\", "\\u000a\\u001f\\\\"},
  };
  for (const auto& [name, text] : names) {
    weft::Channel<int> c{weft::named(name)};
    weft::measuring m;
    std::vector<int> got;
    weft::run(send_all<weft::Shared>(c.writer(), {1}), collect<weft::Shared>(c.reader(), got));
    m.stop();
    CHECK(has(m.json(), text));
  }
}

TEST_CASE_TEMPLATE("rule 14.4: who waited where, and how often", P, POLICIES) {
  weft::Channel<int, P> c{weft::named("a \"name\"")};
  weft::measuring m;
  std::vector<int> got;
  weft::run(send_all<P>(c.writer(), {1, 2, 3, 4}), collect<P>(c.reader(), got));
  m.stop();
  const auto rows = m.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "'a \"name\"'");
  CHECK(rows[0].channels == 1);
  CHECK(rows[0].transfers == 4);
  CHECK(rows[0].dropped == 0);
  // At a rendezvous on one scheduler, one side has parked in each meeting. The reader parks once
  // more at the end.
  CHECK(rows[0].parked_reads + rows[0].parked_writes >= 4);
  CHECK(rows[0].parked_reads + rows[0].parked_writes <= 5);
  CHECK(rows[0].blocked_readers.count() + rows[0].blocked_writers.count() > 0);
  CHECK(has(m.table(), "transfers"));
  CHECK(has(m.table(), "'a \"name\"'\n"));
  CHECK(
      has(m.json(),
          "[{\"name\": \"'a \\\"name\\\"'\", \"channels\": 1, \"transfers\": 4, \"dropped\": 0, "));
  CHECK(has(m.json(), "}]"));

  // When measuring has stopped, nothing more is counted, and a new measurement begins at zero.
  weft::Channel<int, P> more{weft::named("more")};
  weft::run(send_all<P>(more.writer(), {1}), collect<P>(more.reader(), got));
  CHECK(m.rows().size() == 1);
  CHECK(weft::measuring().rows().empty());
}

TEST_CASE(
    "rule 14.4: a select's waiting counts where it commits; threads; turned on within a process") {
  weft::Channel<int> a{weft::named("a")}, b{weft::named("b")}, t{weft::named("t")};
  std::unique_ptr<weft::measuring> m;
  auto chooses = [](weft::Reader<int> x, weft::Reader<int> y,
                    std::unique_ptr<weft::measuring>& to) -> Process {
    to = std::make_unique<weft::measuring>();
    co_await weft::yield();  // Counting begins with the process's next step.
    CHOSEN(weft::select(x, y), 1);
    CHOSEN(weft::select(x, y), 1);
  };
  auto later = [](weft::Writer<int> w, weft::Writer<int>) -> Process {
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 4; ++k) co_await weft::yield();
      co_await w.write(i);
    }
  };
  weft::run(chooses(a.reader(), b.reader(), m), later(b.writer(), a.writer()));
  auto rows = m->rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "'b'");
  CHECK(rows[0].parked_reads == 2);
  CHECK(rows[0].parked_writes == 0);

  weft::measuring n;
  weft::run(weft::thread([r = t.reader()] { r(); }), [](weft::Writer<int> w) -> Process {
    co_await weft::sleep(5ms);
    co_await w.write(1);
  }(t.writer()));
  rows = n.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].parked_reads + rows[0].parked_writes == 1);

  // Channels of the same name share a row, and on several cores no count is lost.
  weft::measuring k;
  std::vector<weft::Channel<int>> same;
  for (int i = 0; i < 3; ++i) same.emplace_back(weft::named("same"));
  std::vector<int> got;
  weft::run({.cores = 2}, weft::par(send_all<weft::Shared>(same[0].writer(), {1, 2, 3}),
                                    relay<weft::Shared>(same[0].reader(), same[1].writer()),
                                    relay<weft::Shared>(same[1].reader(), same[2].writer()),
                                    collect<weft::Shared>(same[2].reader(), got)));
  rows = k.rows();
  REQUIRE(rows.size() == 1);
  CHECK(got == std::vector<int>{1, 2, 3});
  CHECK(rows[0].channels == 3);
  CHECK(rows[0].transfers == 9);
  CHECK(has(k.table(), "'same' (3 channels)"));
}
