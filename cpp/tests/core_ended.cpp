// Tests ended channels, and guards that are off, in a choice (rules 5.2, 5.5, 5.6). For every small
// set of guards the select is compared with a second statement of the rule, for every engine,
// without threads.
#include <algorithm>
#include <numeric>
#include <vector>

#include "task.hpp"

using namespace weft;
using namespace weft::test;
using core::BarrierEngine;
using core::Fault;

namespace {

struct Spec {
  Kind kind;
  bool on = true, ends = false, open = true;
};
bool of_channel(const Spec& s) { return s.kind <= Kind::output; }

// Returns the specifications of all guards. Barriers wait for a second party, timers for a later
// time.
std::vector<Spec> all_specs() {
  std::vector<Spec> all;
  for (const bool on : {true, false}) {
    for (const Kind k : {Kind::input, Kind::output})
      for (const bool open : {true, false})
        for (const bool ends : {false, true})
          if (on || !ends) all.push_back({k, on, ends, open});
    for (const Kind k : {Kind::barrier, Kind::timer, Kind::skip}) all.push_back({k, on});
  }
  return all;
}

// Rule 5.6, taken literally. For each kind, `held` is whether a guard that is off was open when the
// select began.
struct Rule {
  std::vector<Spec> g;
  bool held[2] = {false, false};

  explicit Rule(std::vector<Spec> specs) : g(std::move(specs)) {
    for (const Spec& s : g)
      if (of_channel(s) && !s.on && s.open) held[static_cast<int>(s.kind)] = true;
  }
  template <class F>
  bool some(F&& f) const {
    return std::any_of(g.begin(), g.end(), f);
  }
  bool decides(const Spec& s) const {
    const bool outputs = some([](const Spec& x) { return x.kind == Kind::output && x.on; });
    if (!s.on || s.kind != (outputs ? Kind::output : Kind::input)) return false;
    return outputs || !some([](const Spec& x) { return x.kind == Kind::barrier && x.on; });
  }
  bool over() const {
    if (!some([&](const Spec& x) { return decides(x); })) return false;
    if (some([&](const Spec& x) { return decides(x) && x.open; })) return false;
    if (held[1] && some([](const Spec& x) { return x.kind == Kind::input && x.on && x.open; }))
      return false;
    return !(held[0] && some([](const Spec& x) {
               return (x.kind == Kind::timer || x.kind == Kind::skip) && x.on;
             }));
  }
  // Returns whether the select is ready with Retired at guard i, whichever guards cause that.
  bool retired_at(std::size_t i) const {
    const Spec& s = g[i];
    return of_channel(s) && s.on && !s.open && (s.ends || (over() && decides(s)));
  }
  bool any_retired() const {
    for (std::size_t i = 0; i < g.size(); ++i)
      if (retired_at(i)) return true;
    return false;
  }
  bool skips() const {
    return some([](const Spec& x) { return x.kind == Kind::skip && x.on; });
  }
};

template <class C>
struct Bench {
  std::vector<Spec> specs;
  C channels[3];
  BarrierEngine<Shared> barriers[3]{BarrierEngine<Shared>(2), BarrierEngine<Shared>(2),
                                    BarrierEngine<Shared>(2)};
  Selecting s;

  explicit Bench(const std::vector<Spec>& g) : specs(g) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      C& c = channels[i];
      c.first_reader(), c.first_writer();
      switch (g[i].kind) {
        case Kind::input: s.in(c); break;
        case Kind::output: s.out(c, 1); break;
        case Kind::barrier: s.barrier(barriers[i]); break;
        case Kind::latch:
        case Kind::descriptor: break;  // as for a barrier
        case Kind::timer: s.timer(5); break;
        case Kind::skip: s.skip(); break;
      }
      s.g[i].enabled = g[i].on;
      s.g[i].ends = g[i].ends;
      if (of_channel(g[i]) && !g[i].open) end(i);
    }
  }
  void end(std::size_t i) {
    specs[i].open = false;
    if (specs[i].kind == Kind::input)
      channels[i].drop_writer();
    else
      channels[i].drop_reader();
  }
};

// Calls `run` with each order in which the open guards may end.
template <class F>
void each_order(const Rule& begun, F&& run) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < begun.g.size(); ++i)
    if (of_channel(begun.g[i]) && begun.g[i].open) open.push_back(i);
  do run(open);
  while (std::next_permutation(open.begin(), open.end()));
}

template <class F>
void each_set(std::size_t most, F&& f) {
  const std::vector<Spec> all = all_specs();
  for (std::size_t n = 1; n <= most; ++n) {
    std::vector<std::size_t> at(n, 0);
    for (;;) {
      std::vector<Spec> g;
      for (const std::size_t i : at) g.push_back(all[i]);
      if (std::any_of(g.begin(), g.end(), [](const Spec& s) { return s.on; })) f(g);
      std::size_t k = 0;
      while (k < n && ++at[k] == all.size()) at[k++] = 0;
      if (k == n) break;
    }
  }
}

constexpr int kNone = Select::none;

// Returns the index that a fair select or a priority select must choose when it begins, the index
// of skip included; kNone if the select must wait.
int expected(const Rule& r, Mode m, std::size_t start) {
  const std::size_t n = r.g.size();
  bool placed = false;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = (start + k) % n;
    const Spec& s = r.g[i];
    if (m == Mode::priority && s.kind == Kind::skip && s.on) return static_cast<int>(i);
    if (!r.retired_at(i)) continue;
    if (s.ends || !placed) return static_cast<int>(i);
    placed = true;
  }
  for (std::size_t i = n; i-- > 0;)
    if (r.g[i].kind == Kind::skip && r.g[i].on) return static_cast<int>(i);
  return kNone;
}

template <class C>
void one_shot(const std::vector<Spec>& g, bool foreign) {
  const Rule begun(g);
  for (std::size_t start = 0; start < g.size(); ++start) {
    Bench<C> b(g);
    const int want = expected(begun, Mode::fair, start);
    const int got = b.s.go(Mode::fair, static_cast<std::uint32_t>(start), 0, foreign);
    REQUIRE(got == (want == kNone ? Select::parked : want));
    if (got >= 0)
      REQUIRE(b.s.status() ==
              (g[static_cast<std::size_t>(got)].kind == Kind::skip ? Status::ok : Status::retired));
  }
  {
    Bench<C> b(g);
    const int want = expected(begun, Mode::priority, 0);
    REQUIRE(b.s.go(Mode::priority, 0, 0, foreign) == (want == kNone ? Select::parked : want));
    b.s.finish();
  }
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    Bench<C> b(g);
    const int got = b.s.go(Mode::random, 0, seed, foreign);
    if (begun.any_retired())
      REQUIRE((got >= 0 && begun.retired_at(static_cast<std::size_t>(got))));
    else if (begun.skips())
      REQUIRE((got >= 0 && g[static_cast<std::size_t>(got)].kind == Kind::skip));
    else
      REQUIRE(got == Select::parked);
    b.s.finish();
  }
  if (expected(begun, Mode::fair, 0) != kNone) return;
  each_order(begun, [&](const std::vector<std::size_t>& order) {
    Bench<C> b(g);
    REQUIRE(b.s.go(Mode::fair, 0, 0, foreign) == Select::parked);
    Rule now = begun;
    int got = Select::parked;
    for (const std::size_t i : order) {
      if (got != Select::parked) break;
      b.end(i);
      now.g[i].open = false;
      if (b.s.task.wakes > 0)
        got = b.s.finish();
      else if (b.s.task.tells > 0)
        got = b.s.select->look_again();
      const bool done = now.any_retired();
      REQUIRE((got >= 0) == done);
      if (!done) continue;
      REQUIRE(now.retired_at(static_cast<std::size_t>(got)));
      REQUIRE(b.s.status() == Status::retired);
    }
    if (got == Select::parked) {
      REQUIRE(b.s.select->choice.finish_as(core::CANCELLED));
      REQUIRE(b.s.finish() == kNone);
    }
    for (std::size_t i = 0; i < g.size(); ++i) REQUIRE(empty(b.channels[i]));
  });
}

template <class C>
void standing(const std::vector<Spec>& g) {
  const Rule begun(g);
  const auto now_ns = [] { return std::int64_t{0}; };
  each_order(begun, [&](const std::vector<std::size_t>& order) {
    Bench<C> b(g);
    Standing alt{b.s.g, b.s.n, &b.s.task};
    for (std::uint32_t i = 0; i < b.s.n; ++i)
      if (!g[i].on) alt.enable(i, false);
    Rule now = begun;
    const auto next = [&] {
      now = Rule(b.specs);
      const int got = alt.start(now_ns);
      if (now.any_retired())
        REQUIRE((got >= 0 && now.retired_at(static_cast<std::size_t>(got)) &&
                 alt.status() == Status::retired));
      else if (now.skips())
        REQUIRE((got >= 0 && g[static_cast<std::size_t>(got)].kind == Kind::skip));
      else
        REQUIRE(got == Standing::parked);
      return got;
    };
    for (int again = 0; again < 3; ++again)
      if (next() == Standing::parked) {
        REQUIRE(alt.choice.finish_as(core::CANCELLED));
        REQUIRE(alt.finish() == Standing::none);
      }
    for (const std::size_t i : order) {
      const bool waits = next() == Standing::parked;
      b.end(i);
      if (!waits) continue;
      Rule then = now;
      then.g[i].open = false;
      int got = Standing::parked;
      if (alt.choice.done()) {
        got = alt.finish();
        if (got == Standing::again) got = alt.start(now_ns);
      }
      // A woken select checks its own guards again, and a guard that was off counts with its
      // state at that moment.
      if (then.any_retired() || Rule(b.specs).any_retired()) {
        if (g[i].on) REQUIRE((got >= 0 && Rule(b.specs).retired_at(static_cast<std::size_t>(got))));
      } else {
        REQUIRE(got == Standing::parked);
      }
      if (got == Standing::parked) {
        alt.choice.finish_as(core::CANCELLED);
        alt.finish();
      }
    }
    for (int again = 0; again < 3; ++again)
      if (next() == Standing::parked) {
        REQUIRE(alt.choice.finish_as(core::CANCELLED));
        REQUIRE(alt.finish() == Standing::none);
      }
  });
}

}  // namespace

TEST_CASE_TEMPLATE("rules 5.2, 5.6: every set of up to three guards, one-shot", P, POLICIES) {
  each_set(3, [](const std::vector<Spec>& g) { one_shot<Channel<P>>(g, false); });
}
TEST_CASE("rules 5.6, 6.6: every set of up to three guards, foreign") {
  each_set(3, [](const std::vector<Spec>& g) { one_shot<Channel<Shared>>(g, true); });
}
TEST_CASE_TEMPLATE("rules 5.6, 5.9: every set of up to three guards, standing", P, POLICIES) {
  each_set(3, [](const std::vector<Spec>& g) { standing<Channel<P>>(g); });
}
