// Exploration of the hosted library on the multi-core executor: coroutines, groups, choices,
// barriers, timers, ends that are dropped. The threads of the explorer are the workers; all other
// code is the production code, including the trampoline. (explore.cpp explores the primitives.)
#include <cxxabi.h>

#include "engine.hpp"
#include "weft/observe.hpp"
#include "weft/runtime/cores.hpp"
#include "weft/weft.hpp"

namespace weft::test {
using explorer::engine;

// The thread-local variables, kept apart for each thread of the explorer.
struct ThreadState {
  runtime::ThreadProcess* process = nullptr;
  runtime::Context* context = nullptr;
  runtime::Crew<runtime::Cores>::Worker* worker = nullptr;
  const runtime::Cores* crew = nullptr;
  core::RunQueue* queue = nullptr;
  runtime::CancelLine line;
  struct {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  } exceptions;  // has the layout of __cxa_eh_globals in the C++ ABI

  void swap() noexcept {
    process = runtime::ThreadProcess::become(process);
    std::swap(context, runtime::this_context);
    std::swap(worker, runtime::Cores::this_worker);
    std::swap(crew, runtime::Cores::this_crew);
    std::swap(queue, core::current_run_queue);
    std::swap(line, runtime::cancel_line);
    auto* const e = reinterpret_cast<decltype(exceptions)*>(abi::__cxa_get_globals());
    std::swap(exceptions.caught, e->caught);
    std::swap(exceptions.uncaught, e->uncaught);
  }
};
inline ThreadState states[8];

// A run on n workers. Its processes begin when the run begins.
class Net {
 public:
  explicit Net(unsigned workers, Clock clock = Clock::steady)
      : workers_(workers), run_(clock), self_(&run_), cores_(run_, workers, {}, &self_) {
    self_.function = "main";
    engine().expiry_costs = true;
    for (ThreadState& s : states) s = {};
    engine().switching = [](int from, int to) {
      if (from >= 0) states[from].swap();
      if (to >= 0) states[to].swap();
    };
  }
  // Returns the text of the exception that the run threw, or "" if it threw none.
  template <class... Ps>
  std::string run(Ps... ps) {
    auto all = par(std::move(ps)...);
    std::string what;
    for (unsigned i = 0; i < workers_; ++i) run_.activated();
    engine().spawn("A", [&] {
      const runtime::ThreadProcess::Scope scope(self_);
      try {
        const detail::StartOf start{
            [](void* x, runtime::Group& g) { static_cast<decltype(all)*>(x)->start(g); }, &all};
        detail::execute_on(cores_, {}, run_, self_, nullptr, start);
      } catch (const std::exception& e) {
        what = e.what();
      }
      cores_.stop();
      run_.deactivated();
    });
    for (unsigned i = 1; i < workers_; ++i)
      engine().spawn(i == 1 ? "B" : "C", [this, i] { cores_.help(i); });
    engine().run();
    engine().switching = nullptr;
    return what;
  }
  bool deadlocked() const noexcept { return run_.deadlocked(); }

 private:
  runtime::FreshPool fresh_;
  const unsigned workers_;
  runtime::Run run_;
  runtime::ThreadProcess self_;
  runtime::Cores cores_;
};

Process send(Writer<int> w, int from, int to) {
  for (int i = from; i < to; ++i) co_await w.write(i);
}
ProcessOf<int> sum(Reader<int> r) {
  int s = 0;
  while (auto v = co_await r.next()) s += *v;
  co_return s;
}

SAMPLED(
    "hosted: a write meets a read on two cores, twice, and the channel retires (rules 1.1, 3.4, "
    "15.5)",
    -1) {
  Net net(2);
  int got = 0;
  auto reads = [](Reader<int> r, int& s) -> Process { s = co_await sum(std::move(r)); };
  {
    Channel<int> c;
    REQUIRE_THAT(net.run(send(c.writer(), 1, 3), reads(c.reader(), got)).empty());
  }
  REQUIRE_THAT(got == 3 && !net.deadlocked());
}

SAMPLED(
    "hosted: a failure on one core cancels who waits on another, and who is started just then "
    "(rules 6.1, 7.2)",
    0) {
  Net net(2);
  bool cancelled = false, started = true;
  auto fails = []() -> Process {
    throw std::runtime_error("failed");
    co_return;
  };
  auto waits = [](Reader<int> r, bool& c) -> Process {
    try {
      co_await r.read();
    } catch (const Cancelled&) {
      c = true;
    }
  };
  auto child = [](Reader<int> r) -> Process { co_await r.read(); };
  auto starts = [](Reader<int> r, auto f, bool& done) -> Process {
    try {
      co_await par(f(r));
    } catch (const Cancelled&) {
      done = true;
    }
  };
  Channel<int> c;
  const auto kept = c.writer();
  REQUIRE_THAT(net.run(fails(), waits(c.reader(), cancelled), starts(c.reader(), child, started)) ==
               "failed");
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED("hosted: a member fails as its block goes on, waits or has ended (rule 7.5)", 0) {
  Net net(2);
  auto fails = []() -> Process {
    throw std::runtime_error("member");
    co_return;
  };
  auto waits = [](Reader<int> r) -> Process { co_await r.read(); };
  std::string raised;
  bool again = false;
  Channel<int> never;
  const auto kept = never.writer();
  const bool goes_on = engine().choose(2) != 0;
  auto block = [](auto f, auto w, Reader<int> r, bool yields, std::string& what,
                  bool& later) -> Process {
    Group g;
    g.start(f());
    try {
      if (yields) co_await yield();
      g.start(w(r));
      if (yields) co_await yield();
      co_await g.wait();
    } catch (const Cancelled&) {
      what = "cancelled";
    } catch (const std::runtime_error& e) {
      what = e.what();
    }
    if (what == "cancelled") co_return;  // The group is left, and its owner fails.
    co_await yield();                    // The request to cancel was withdrawn at the block's end.
    later = true;
  };
  const std::string what = net.run(block(fails, waits, never.reader(), goes_on, raised, again));
  REQUIRE_THAT(raised == "cancelled" ? what == "member" && !again
                                     : raised == "member" && what.empty() && again);
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED("hosted: a member fails while its block waits for what will not come (rule 7.5)", 0) {
  Net net(2);
  auto fails = []() -> Process {
    throw std::runtime_error("member");
    co_return;
  };
  Channel<int> never;
  const auto kept = never.writer();
  auto block = [](auto f, Reader<int> r) -> Process {
    Group g;
    g.start(f());
    co_await r.read();
  };
  REQUIRE_THAT(net.run(block(fails, never.reader())) == "member");
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED(
    "hosted: a request is passed on to the children once, whoever else is cancelled meanwhile "
    "(rule 6.1)",
    -1) {
  Net net(2);
  int asked = 0, got = 0;
  auto child = [](Reader<int> first, Reader<int> second, int& n, int& value) -> Process {
    while (value == 0) {
      try {
        value = n == 0 ? co_await first.read() : co_await second.read();
      } catch (const Cancelled&) {
        ++n;
      }
    }
  };
  auto parent = [](Process c) -> Process { co_await par(std::move(c)); };
  auto sleeper = [](Reader<int> r) -> Process { co_await r.read(); };
  auto driver = [](Process p, Process s, Writer<int> w) -> Process {
    Group g, other;
    g.start(std::move(p));
    other.start(std::move(s));
    co_await yield();
    g.cancel();
    co_await yield();
    other.cancel();
    co_await other.wait();
    co_await w.write(7);
    co_await g.wait();
  };
  Channel<int> never, c;
  const auto kept = never.writer();
  REQUIRE_THAT(net.run(driver(parent(child(never.reader(), c.reader(), asked, got)),
                              sleeper(never.reader()), c.writer()))
                   .empty());
  REQUIRE_THAT(asked <= 1);
  REQUIRE_THAT(got == 7 || asked == 0);
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED(
    "hosted: a group is left by an exception while its processes are on two cores: the owner's "
    "waits for them (rules 7.5, 7.6)",
    -1) {
  Net net(2);
  int ended = 0;
  auto member = [](Reader<int> r, int& n) -> Process {
    try {
      co_await r.read();
    } catch (const Cancelled&) {
      ++n;
      throw;
    }
  };
  auto leaves = [](Process p) -> Process {
    Group g;
    g.start(std::move(p));
    co_await yield();
    throw std::runtime_error("left");
  };
  auto outer = [](Process p) -> Process { co_await std::move(p); };
  Channel<int> c;
  const auto kept = c.writer();
  REQUIRE_THAT(net.run(outer(leaves(member(c.reader(), ended)))) == "left");
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED("hosted: a timeout meets the value on another core; nothing is lost (rules 5.1, 5.7, 6.4)",
        0) {
  Net net(2);
  int got = 0;
  auto chooses = [](Reader<int> r, int& s) -> Process {
    for (int n = 0; n < 1;) {
      auto x = co_await select(Mode::priority, r, after(std::chrono::microseconds(1)));
      if (x.index == 0) s += *x.value, ++n;
      if (x.index == 1) s += co_await r.read(), ++n;
    }
  };
  Channel<int> c;
  REQUIRE_THAT(net.run(chooses(c.reader(), got), send(c.writer(), 5, 6)).empty());
  REQUIRE_THAT(got == 5 && !net.deadlocked());
}

SAMPLED("hosted: virtual time jumps once nobody can run, on whichever core (rules 8.6, 15.6)", -1) {
  Net net(2, Clock::virtual_time);
  int order = 0;
  auto sleeps = [](int ms, int& n, int place) -> Process {
    co_await sleep(std::chrono::milliseconds(ms));
    n = n * 10 + place;
  };
  REQUIRE_THAT(net.run(sleeps(2, order, 2), sleeps(1, order, 1)).empty());
  REQUIRE_THAT(order == 12 && !net.deadlocked());
}

SAMPLED(
    "hosted: a deadlock over two cores is declared once, everybody is cancelled (rules 10.1, 15.6)",
    -1) {
  Net net(2);
  int cancelled = 0;
  auto waits = [](Reader<int> r, Writer<int>, int& n) -> Process {
    try {
      co_await r.read();
    } catch (const Cancelled&) {
      ++n;
    }
  };
  Channel<int> c, d;
  const std::string what =
      net.run(waits(c.reader(), d.writer(), cancelled), waits(d.reader(), c.writer(), cancelled));
  REQUIRE_THAT(what.find("2 processes are blocked") != std::string::npos);
}

SAMPLED(
    "hosted: a barrier guard and a channel guard on two cores; the last one resigns (rules 8.2, "
    "8.4)",
    0) {
  Net net(2);
  int met = 0, read = 0;
  auto chooses = [](Barrier b, Reader<int> r, int& m, int& v) -> Process {
    for (bool open = true; m == 0;) {
      try {
        auto x = co_await select(Mode::priority, in(r).when(open), b);
        if (x.index == 0)
          v += *x.value;
        else
          ++m;
      } catch (const Retired&) {
        open = false;
      }
    }
  };
  auto other = [](Barrier b, Writer<int> w) -> Process {
    co_await w.write(4);
    b.resign();
  };
  Barrier b(2);
  Channel<int> c;
  REQUIRE_THAT(net.run(chooses(b, c.reader(), met, read), other(b, c.writer())).empty());
  REQUIRE_THAT(met == 1 && read == 4 && !net.deadlocked());
}

SAMPLED("hosted: a standing alternative with two writers on two cores (rules 5.9, 3.1)", -1) {
  Net net(2);
  int got = 0;
  auto stands = [](std::vector<Reader<int>> rs, int& s) -> Process {
    StandingAlternative alt(rs);
    for (int open = 2; open > 0;) {
      try {
        auto x = co_await alt.select();
        s += *x.value;
      } catch (const Retired& e) {
        alt.enable(static_cast<std::size_t>(e.guard), false);
        --open;
      }
    }
  };
  Channel<int> c, d;
  std::vector<Reader<int>> ends;
  ends.push_back(c.reader());
  ends.push_back(d.reader());
  REQUIRE_THAT(
      net.run(stands(std::move(ends), got), send(c.writer(), 1, 2), send(d.writer(), 10, 11))
          .empty());
  REQUIRE_THAT(got == 11 && !net.deadlocked());
}

SAMPLED(
    "hosted: poison meets retirement on two cores: one of them ends the reader, and is passed on "
    "(rules 3.5, 4.2, 4.3)",
    0) {
  Net net(2);
  std::string end;
  auto passes = [](Reader<int> r, Writer<int> w) -> Process {
    for (;;) co_await w.write(co_await r.read());
  };
  auto poisons = [](Writer<int> w) -> Process {
    w.poison(3);
    co_return;
  };
  auto last = [](Reader<int> r, std::string& how) -> Process {
    try {
      co_await r.read();
    } catch (const Poisoned& e) {
      how = e.strength == 3 ? "poisoned" : "poisoned otherwise";
    } catch (const Retired&) {
      how = "retired";
    }
  };
  Channel<int> c, d;
  REQUIRE_THAT(
      net.run(poisons(c.writer()), passes(c.reader(), d.writer()), last(d.reader(), end)).empty());
  REQUIRE_THAT(end == "poisoned" && !net.deadlocked());
}

SAMPLED("hosted: a look for partial deadlocks accuses nobody who goes on (rules 10.5, 14.3)", -1) {
  Net net(2);
  int got = 0;
  bool accused = false;
  auto looks = [](bool& found) -> Process {
    for (int i = 0; i < 2; ++i) {
      if (const PartialDeadlock d = deadlocks()) found = true;
      co_await yield();
    }
  };
  auto reads = [](Reader<int> r, int& s) -> Process {
    while (auto v = co_await r.next()) s += *v;
  };
  {
    Channel<int> c;
    REQUIRE_THAT(net.run(send(c.writer(), 1, 3), reads(c.reader(), got), looks(accused)).empty());
  }
  REQUIRE_THAT(got == 3 && !accused && !net.deadlocked());
}

SAMPLED("hosted: a look meets a cancellation: both are served (rules 6.1, 14.3)", -1) {
  Net net(2);
  bool cancelled = false;
  auto looks = []() -> Process {
    static_cast<void>(deadlocks());
    co_return;
  };
  auto waits = [](Reader<int> r, bool& c) -> Process {
    try {
      co_await r.read();
    } catch (const Cancelled&) {
      c = true;
    }
  };
  auto cancels = [](Process p) -> Process {
    Group g;
    g.start(std::move(p));
    co_await yield();
    g.cancel();
    co_await g.wait();
  };
  Channel<int> never;
  const auto kept = never.writer();
  REQUIRE_THAT(net.run(cancels(waits(never.reader(), cancelled)), looks()).empty());
  REQUIRE_THAT(!net.deadlocked());
}

SAMPLED(
    "hosted: what is spawned outlives its group, on another core, and its failure cancels the run "
    "(rule 7.4)",
    0) {
  Net net(2);
  bool cancelled = false;
  auto spawned = []() -> Process {
    co_await yield();
    throw std::runtime_error("spawned");
  };
  auto spawns = [](auto f) -> Process {
    spawn(f());
    co_return;
  };
  auto waits = [](Reader<int> r, bool& c) -> Process {
    try {
      co_await r.read();
    } catch (const Cancelled&) {
      c = true;
    }
  };
  Channel<int> c;
  const auto kept = c.writer();
  REQUIRE_THAT(net.run(spawns(spawned), waits(c.reader(), cancelled)) == "spawned");
  REQUIRE_THAT(!net.deadlocked());
}

// An executor that runs for a time on the thread of a thread process, and counts the nudges.
struct Hosted final : runtime::Executor {
  prim::atomic<int> nudges{0};
  prim::atomic<int> gone{0};
  prim::atomic<int> late{0};
  void post(core::Waker*) noexcept override {}
  void nudge() noexcept override {
    if (gone.load()) late.store(1);
    nudges.fetch_add(1);
  }
  bool here() const noexcept override { return false; }
};
const runtime::OpKind hosted_op{"wait for", nullptr, nullptr};

SCENARIO(
    "hosted: a thread process is asked to end as it begins to run a network: that is told (rule "
    "6.1)",
    2) {
  runtime::Run run;
  runtime::ThreadProcess self(&run);
  Hosted e;
  std::optional<runtime::ThreadProcess::Hosting> hosting;
  engine().spawn("A", [&] {
    hosting.emplace(self, e);
    hosting->waits(hosted_op, nullptr);
  });
  engine().spawn("B", [&] {
    self.cancel().store(1, std::memory_order_seq_cst);
    self.nudge();
  });
  engine().run();
  REQUIRE_THAT(e.nudges.load() > 0);
}

SCENARIO(
    "hosted: a thread process is asked to end as its network has: what ran it is told before it "
    "goes, or not at all (rule 6.1)",
    2) {
  runtime::Run run;
  runtime::ThreadProcess self(&run);
  Hosted e;
  engine().spawn("A", [&] {
    {
      runtime::ThreadProcess::Hosting hosting(self, e);
      hosting.waits(hosted_op, nullptr);
    }
    e.gone.store(1);
  });
  engine().spawn("B", [&] { self.nudge(); });
  engine().run();
  REQUIRE_THAT(e.late.load() == 0);
  REQUIRE_THAT(self.op == nullptr);
}

}  // namespace weft::test
