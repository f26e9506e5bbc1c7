// Random little networks in C++: the reduced search has the outcomes of all schedules (rule 17.7),
// and the same processes as threads have the outcomes of the coroutines (rule 17.2).
//
// A process is a list of operations. An outcome contains, for each process, the values that it
// took, the guards that its selects chose, and how its channels and the process itself ended. It
// also contains whether the network was deadlocked.
#include <cstdlib>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <weft/check.hpp>
#include <weft/check/reduced.hpp>
#include <weft/check/strategies.hpp>
#include <weft/checker.hpp>
#include <weft/weft.hpp>

namespace {

using weft::checking::Stopped;
using Log = std::vector<int>;
using Outcome = std::vector<Log>;

enum class What : std::uint8_t {
  read,
  next,
  write,
  select,  // a select of two inputs or outputs
  poll,    // a select of two inputs or outputs, with a skip
  timed,   // a select of two inputs or outputs, with a time
  first,   // a select by priority
  full,    // an extended read
  sync,
  sleep,
  limit,  // a read within a time limit
  yield,
  retire,  // retirement of the reader's end, if the process holds one
  poison,
  copy,  // another end is made, and closed immediately
  par,   // a read and a write by two processes that run in parallel
  last = par
};
struct Act {
  What what;
  int c, d;                 // channels
  bool writes, writes_too;  // whether the guards are outputs
  int value;
};
struct Network {
  std::vector<weft::ChannelOptions> channels;
  std::vector<std::vector<Act>> processes;
};
struct Ends {
  // Indexed by channel; an end that the process does not need is closed.
  std::vector<weft::Reader<int>> r;
  std::vector<weft::Writer<int>> w;
};

weft::Process reads(weft::Reader<int> r, Log& log) { log.push_back(co_await r.read()); }
weft::Process writes(weft::Writer<int> w, int value) { co_await w.write(value); }

std::vector<weft::AnyGuard<int>> guards_of(const Act& a, const weft::Reader<int>& r,
                                           const weft::Writer<int>& w, const weft::Reader<int>& r2,
                                           const weft::Writer<int>& w2) {
  using namespace std::chrono_literals;
  std::vector<weft::AnyGuard<int>> guards;
  if (a.writes)
    guards.push_back(weft::out(w, a.value));
  else
    guards.push_back(weft::in(r));
  if (a.writes_too)
    guards.push_back(weft::out(w2, a.value + 50));
  else
    guards.push_back(weft::in(r2));
  if (a.what == What::poll) guards.push_back(weft::skip());
  if (a.what == What::timed) guards.push_back(weft::after(2ms));
  return guards;
}

weft::Process acts(const std::vector<Act>& all, Ends ends, weft::Barrier barrier, Log& log) {
  using namespace std::chrono_literals;
  try {
    for (const Act& a : all) {
      const auto& r = ends.r[static_cast<std::size_t>(a.c)];
      const auto& w = ends.w[static_cast<std::size_t>(a.c)];
      const auto& r2 = ends.r[static_cast<std::size_t>(a.d)];
      const auto& w2 = ends.w[static_cast<std::size_t>(a.d)];
      switch (a.what) {
        case What::read: log.push_back(co_await r.read()); break;
        case What::next: log.push_back((co_await r.next()).value_or(-9)); break;
        case What::write: co_await w.write(a.value); break;
        case What::full: {
          auto x = co_await r.extended();
          log.push_back(*x);
          co_await weft::yield();
          break;
        }
        case What::sync: co_await barrier.sync(); break;
        case What::sleep: co_await weft::sleep(std::chrono::milliseconds(1 + a.value % 3)); break;
        case What::limit: {
          weft::Timeout limit(2ms);
          try {
            log.push_back(co_await r.read());
          } catch (const weft::TimedOut&) {
            log.push_back(-8);
          }
          break;
        }
        case What::yield: co_await weft::yield(); break;
        case What::retire: ends.r[static_cast<std::size_t>(a.c)].retire(); break;
        case What::poison: w.poison(); break;
        case What::copy: weft::Writer<int>(w).retire(); break;
        case What::par: co_await weft::par(reads(r, log), writes(w2, a.value)); break;
        default: {
          std::vector<weft::AnyGuard<int>> guards = guards_of(a, r, w, r2, w2);
          const auto chosen = co_await weft::select_among<int>(
              guards, a.what == What::first ? weft::Mode::priority : weft::Mode::fair);
          log.push_back(1000 + chosen.index);
          if (chosen.value) log.push_back(*chosen.value);
        }
      }
    }
    log.push_back(-1);
  } catch (const weft::Retired&) {
    log.push_back(-2);
  } catch (const weft::Poisoned&) {
    log.push_back(-3);
  }
}

// Does as a thread process what acts() does as a coroutine.
void acts_in_thread(const std::vector<Act>& all, Ends& ends, const weft::Barrier& barrier,
                    Log& log) {
  using namespace std::chrono_literals;
  const auto next = [&log](const weft::Reader<int>& r, int if_none) {
    try {
      log.push_back(r());
    } catch (const weft::Retired&) {
      log.push_back(if_none);
    }
  };
  try {
    for (const Act& a : all) {
      const auto& r = ends.r[static_cast<std::size_t>(a.c)];
      const auto& w = ends.w[static_cast<std::size_t>(a.c)];
      const auto& r2 = ends.r[static_cast<std::size_t>(a.d)];
      const auto& w2 = ends.w[static_cast<std::size_t>(a.d)];
      switch (a.what) {
        case What::read: log.push_back(r()); break;
        case What::next: next(r, -9); break;
        case What::write: w(a.value); break;
        case What::full: {
          auto x = r.extended()();
          log.push_back(*x);
          weft::yield()();
          break;
        }
        case What::sync: barrier.sync()(); break;
        case What::sleep: weft::sleep(std::chrono::milliseconds(1 + a.value % 3))(); break;
        case What::limit: {
          weft::Timeout limit(2ms);
          try {
            log.push_back(r());
          } catch (const weft::TimedOut&) {
            log.push_back(-8);
          }
          break;
        }
        case What::yield: weft::yield()(); break;
        case What::retire: ends.r[static_cast<std::size_t>(a.c)].retire(); break;
        case What::poison: w.poison(); break;
        case What::copy: weft::Writer<int>(w).retire(); break;
        case What::par: weft::run(reads(r, log), writes(w2, a.value)); break;
        default: {
          std::vector<weft::AnyGuard<int>> guards = guards_of(a, r, w, r2, w2);
          const auto chosen = weft::select_among<int>(
              guards, a.what == What::first ? weft::Mode::priority : weft::Mode::fair)();
          log.push_back(1000 + chosen.index);
          if (chosen.value) log.push_back(*chosen.value);
        }
      }
    }
    log.push_back(-1);
  } catch (const weft::Retired&) {
    log.push_back(-2);
  } catch (const weft::Poisoned&) {
    log.push_back(-3);
  }
}

// Returns whether a process that performs these operations needs the writer's or the reader's end
// of the channel.
bool has(const std::vector<Act>& all, int channel, bool writer) {
  for (const Act& a : all) {
    const bool choice = a.what >= What::select && a.what <= What::first;
    const bool at_c = choice                ? a.writes == writer
                      : a.what == What::par ? !writer
                      : a.what == What::write || a.what == What::poison || a.what == What::copy
                          ? writer
                          : !writer;
    if (a.c == channel && at_c && a.what != What::sync && a.what != What::sleep &&
        a.what != What::yield)
      return true;
    if (a.d == channel && ((choice && a.writes_too == writer) || (a.what == What::par && writer)))
      return true;
  }
  return false;
}

void run_network(const Network& n, Outcome& logs, bool threads) {
  std::vector<weft::Channel<int>> channels;
  for (const auto& o : n.channels) channels.emplace_back(o);
  unsigned parties = 0;
  for (const auto& p : n.processes)
    for (const Act& a : p)
      if (a.what == What::sync) {
        ++parties;
        break;
      }
  const weft::Barrier barrier(parties + 1);
  barrier.resign();
  std::vector<weft::Process> processes;
  std::vector<weft::AnyProcess<>> in_threads;
  for (std::size_t i = 0; i < n.processes.size(); ++i) {
    Ends ends;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const int at = static_cast<int>(c);
      ends.r.push_back(has(n.processes[i], at, false) ? channels[c].reader() : weft::Reader<int>());
      ends.w.push_back(has(n.processes[i], at, true) ? channels[c].writer() : weft::Writer<int>());
    }
    if (threads)
      in_threads.emplace_back(
          weft::thread([&all = n.processes[i], ends = std::move(ends), barrier,
                        &log = logs[i]]() mutable { acts_in_thread(all, ends, barrier, log); }));
    else
      processes.push_back(acts(n.processes[i], std::move(ends), barrier, logs[i]));
  }
  if (threads)
    weft::run(std::move(in_threads));
  else
    weft::run(std::move(processes));
}

Network random_network(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  Network x;
  for (int i = 0; i < 2; ++i)
    x.channels.push_back(below(3) > 0   ? weft::ChannelOptions{}
                         : below(3) > 0 ? weft::buffer(1)
                                        : weft::buffer(1, weft::Overflow::drop_oldest));
  const int processes = 2 + below(2);
  const unsigned steps = processes == 2 ? 4 : 2;
  for (int i = 0; i < processes; ++i) {
    x.processes.emplace_back();
    for (int k = 0; k < 1 + below(steps); ++k) {
      const int kind = below(30);
      const What what = kind < 6    ? What::read
                        : kind < 14 ? What::write
                                    : static_cast<What>(kind - 14 + static_cast<int>(What::next));
      const int c = below(2);
      x.processes.back().push_back({what > What::last ? What::write : what, c,
                                    what == What::par ? c : 1 - c, below(2) == 0, below(2) == 0,
                                    10 * i + k});
    }
  }
  return x;
}

struct Found {
  std::set<Outcome> outcomes;
  unsigned runs = 0;
  bool complete = false;
  std::string different;
};
Found search(const Network& n, weft::checking::Strategy& strategy, unsigned most, bool any_time,
             bool threads = false) {
  Found f;
  weft::runtime::Checker checker;
  checker.run.settings.any_time = any_time;
  while (f.runs < most) {
    Outcome logs(n.processes.size());
    checker.begin(strategy);
    try {
      run_network(n, logs, threads);
    } catch (const std::exception& e) {
      if (!checker.run.stopped()) logs.push_back({-4});
    }
    checker.end();
    const Stopped why = checker.run.why();
    if (why == Stopped::different) {
      f.different = checker.run.difference;
      return f;
    }
    if (strategy.restarts(checker.run)) continue;
    ++f.runs;
    if (why == Stopped::deadlock) logs.push_back({-5});
    if (why != Stopped::blocked) f.outcomes.insert(logs);
    if (strategy.advance()) continue;
    f.complete = true;
    break;
  }
  return f;
}

std::string text_of(const Network& n) {
  std::string s;
  for (const auto& o : n.channels)
    s += o.overflow != weft::Overflow::block ? "d" : std::to_string(o.capacity.up_to_32_bits(""));
  for (const auto& p : n.processes) {
    s += " |";
    for (const Act& a : p)
      s += " " + std::to_string(static_cast<int>(a.what)) + ":" + std::to_string(a.c) +
           std::to_string(a.d) + (a.writes ? "w" : "r") + (a.writes_too ? "w" : "r");
  }
  return s;
}

}  // namespace

TEST_CASE(
    "rules 17.2, 17.7: random networks: the reduced search has the outcomes of all schedules") {
  const char* const asked = std::getenv("WEFT_CHECKED_NETWORKS");
  const int count = asked ? std::atoi(asked) : 80;
  unsigned compared = 0, all_runs = 0, reduced_runs = 0, thread_runs = 0;
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const Network n = random_network(random);
    const bool any_time = random() % 4 == 0;
    weft::checking::Bounded bounded;
    const Found all = search(n, bounded, 3000, any_time);
    CAPTURE(seed);
    const std::string text = text_of(n);
    CAPTURE(text);
    CHECK(all.different.empty());
    if (!all.complete) continue;
    weft::checking::Reduced reduced;
    const Found some = search(n, reduced, 20000, any_time);
    ++compared;
    all_runs += all.runs;
    reduced_runs += some.runs;
    CHECK(some.complete);
    CHECK(some.different.empty());
    CHECK(some.outcomes.size() == all.outcomes.size());
    CHECK(some.outcomes == all.outcomes);
    weft::checking::Reduced in_threads;
    const Found same = search(n, in_threads, 20000, any_time, true);
    CHECK(same.complete);
    CHECK(same.different.empty());
    CHECK(same.outcomes == all.outcomes);
    thread_runs += same.runs;
  }
  MESSAGE(compared << " networks: " << all_runs << " schedules, reduced " << reduced_runs
                   << ", in threads " << thread_runs);
  CHECK(compared * 3 > static_cast<unsigned>(count));
}
TEST_CASE("rule 17.7: a wrong entry of the relation is found by these networks") {
  using weft::checking::Access;
  const auto differs = [](auto&& make_wrong) {
    for (unsigned seed = 0; seed < 400; ++seed) {
      std::mt19937 random(seed);
      const Network n = random_network(random);
      weft::checking::Reduced wrong;
      make_wrong(wrong.relation);
      const Found some = search(n, wrong, 3000, false);
      weft::checking::Reduced right;
      if (some.outcomes != search(n, right, 3000, false).outcomes) return true;
    }
    return false;
  };
  using Relation = weft::checking::Relation;
  CHECK(differs([](Relation& r) { r.flip(Access::write, Access::write, false); }));
  CHECK(differs([](Relation& r) { r.flip(Access::read, Access::read, false); }));
  CHECK(differs([](Relation& r) { r.flip(Access::write, Access::close, true); }));
}
