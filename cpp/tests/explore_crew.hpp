// The crew of a multi-core executor (rules 15.5 to 15.8): queues, thefts, sleeping, waking, timers,
// cancellations. Every thread of the explorer is a worker or a thread outside; a process is a
// function that is called step by step and that checks that no other thread calls it at the same
// time.
#pragma once
#include <functional>

#include "weft/runtime/crew.hpp"

namespace weft::test {

namespace crew {

class Crew;

// `word` is 0 while the job runs, 1 while it waits, 2 once it has been woken, 3 once it has been
// cancelled.
struct Job : runtime::ProcessBase {
  std::function<void(Job&)> step;
  const char* what = "";
  bool inside = false;
  int steps = 0;
  bool ended = false;
  prim::atomic<std::uint32_t> word{0};
};

class Crew : public runtime::Crew<Crew>, public runtime::Activity {
 public:
  using Base = runtime::Crew<Crew>;
  prim::atomic<std::int32_t> active;
  // The number of ready jobs. While a job is ready, no worker may find that there is nothing to do.
  int ready_jobs = 0;
  bool over = false;
  prim::atomic<std::int64_t> alarm{prim::forever};
  Job* at_alarm = nullptr;
  std::vector<Job*> jobs;
  bool looks_at_rest = false;
  prim::atomic<int> withdrawing{0};  // counts the withdrawals under way, if `looks_at_rest` is set

  Crew(unsigned workers, unsigned others, bool long_steps)
      : Base(workers, this, long_steps), active(static_cast<std::int32_t>(workers + others)) {
    engine().expiry_costs = true;
  }

  // Makes the calling thread of the explorer act as worker i, until `over` is set.
  void help(unsigned i) {
    work(worker(i), [this] { return over; });
    deactivated();
  }
  void finish() {
    over = true;
    for (unsigned i = 0; i < size(); ++i) call(i);
  }
  void go(Worker& w, Job& j) {
    ++ready_jobs;
    ready(w, &j);
  }
  void go_from_elsewhere(Job& j) {
    ++ready_jobs;
    ready_from_elsewhere(&j);
  }
  // Wakes the job if the job waits, or else as soon as the job waits.
  template <class Go>
  bool wake(Job& j, std::uint32_t to, Go&& go) {
    std::uint32_t waits = 1;
    if (!j.word.compare_exchange_strong(waits, to)) return false;
    go(j);
    return true;
  }

  // --- the functions of a run ---
  void activated() noexcept override { active.fetch_add(1); }
  std::uint32_t deactivated() noexcept override {
    if (active.fetch_sub(1) == 1 && ready_jobs != 0)
      engine().fail("a process is ready, and everybody is counted idle (rules 8.6, 10.1)");
    return 0;
  }
  std::int64_t wake_time() noexcept override { return alarm.load(); }

  // --- the functions of a host ---
  void step(Worker& w, runtime::ProcessBase* p) {
    auto& j = static_cast<Job&>(*p);
    --ready_jobs;
    if (j.ended) engine().fail("a process that has ended is run");
    if (j.inside) engine().fail("a process is run by two workers at once (rule 15.5)");
    j.inside = true;
    ++j.steps;
    on = &w;
    j.step(j);
    j.inside = false;
    p->runs_on.store(0);
  }
  void withdraw_cancelled(Worker& w) {
    for (Job* j : jobs)
      if (j->cancel().load() != 0)
        withdraw(*j, [&](runtime::ProcessBase&) {
          if (looks_at_rest) withdrawing.store(1);
          static_cast<void>(j->word.load());  // This load gives other threads the time to begin.
          if (j->inside) engine().fail("a process is withdrawn while it runs (rule 6.1)");
          wake(*j, 3, [&](Job& x) { go(w, x); });
          if (looks_at_rest) withdrawing.store(0);
        });
  }
  bool fire_due() noexcept {
    const std::int64_t at = alarm.load();
    if (at == prim::forever || at > prim::now()) return false;
    std::int64_t was = at;
    if (!alarm.compare_exchange_strong(was, prim::forever)) return false;
    go_from_elsewhere(*at_alarm);
    return true;
  }
  bool timers_armed() noexcept { return alarm.load() != prim::forever; }
  std::int64_t earliest() noexcept { return alarm.load(); }
  std::int64_t clock() const noexcept { return 0; }
  void heed() noexcept {}
  void asleep(Worker&) noexcept {}
  void awake(Worker&) noexcept {}

  // The worker that called the step which has just begun; a step must read this variable before
  // anything else.
  Worker* on = nullptr;
};

}  // namespace crew

SAMPLED("crew: what is put in from outside is run once, by one of two (rule 15.5)", 0) {
  crew::Crew c(2, 1, true);
  crew::Job j[2];
  prim::atomic<int> left{2};
  for (auto& x : j)
    x.step = [&](crew::Job& me) {
      me.ended = true;
      if (left.fetch_sub(1) == 1) c.finish();
    };
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("X", [&] {
    c.go_from_elsewhere(j[0]);
    c.go_from_elsewhere(j[1]);
    c.deactivated();
  });
  run();
  REQUIRE_THAT(j[0].steps == 1 && j[1].steps == 1 && c.ready_jobs == 0);
}

SAMPLED("crew: a surplus is shared, everybody runs once (rules 15.5, 15.7)", 0) {
  crew::Crew c(2, 0, true);
  crew::Job first, j[3];
  prim::atomic<int> left{3};
  for (auto& x : j)
    x.step = [&](crew::Job& me) {
      me.ended = true;
      if (left.fetch_sub(1) == 1) c.finish();
    };
  first.step = [&](crew::Job& me) {
    auto& w = *c.on;
    me.ended = true;
    for (auto& x : j) c.go(w, x);
  };
  c.ready_jobs = 1;
  c.worker(0).queue.push(&first);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  run();
  for (auto& x : j) REQUIRE_THAT(x.steps == 1);
}

SAMPLED("crew: woken while it is being suspended, by another worker (rule 15.5)", 1) {
  crew::Crew c(2, 0, true);
  crew::Job p, q;
  p.step = [&](crew::Job& me) {
    if (me.steps == 1) {
      // From here on the job can be woken, although it is suspended only when its step has ended.
      me.word.store(1);
      return;
    }
    me.ended = true;
    c.finish();
  };
  q.step = [&](crew::Job& me) {
    auto& w = *c.on;
    for (unsigned round = 0; p.word.load() == 0;) prim::pause(round++);
    REQUIRE_THAT(c.wake(p, 2, [&](crew::Job& x) { c.go(w, x); }));
    me.ended = true;
  };
  c.ready_jobs = 2;
  c.worker(0).queue.push(&p);
  c.worker(1).queue.push(&q);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  run();
  REQUIRE_THAT(p.steps == 2 && p.ended && q.ended);
}

// The job `behind` waits in the queue of a worker whose step does not end before `behind` has run.
inline void long_step(bool long_steps) {
  crew::Crew c(2, 0, long_steps);
  crew::Job longer, behind;
  prim::atomic<int> has_run{0};
  longer.step = [&](crew::Job& me) {
    auto& w = *c.on;
    c.go(w, behind);
    for (unsigned round = 0; has_run.load() == 0;) prim::pause(round++);
    me.ended = true;
    c.finish();
  };
  behind.step = [&](crew::Job& me) {
    me.ended = true;
    has_run.store(1);
  };
  c.ready_jobs = 1;
  c.worker(0).queue.push(&longer);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  run();
  REQUIRE_THAT(behind.steps == 1);
}
SAMPLED(
    "crew: a step that goes on and on does not hold up those behind it: somebody is woken (rule "
    "15.7)",
    1) {
  long_step(true);
}
SAMPLED(
    "crew: a step that goes on and on does not hold up those behind it: the keeper finds them "
    "(rule 15.7)",
    1) {
  long_step(false);
}

SAMPLED("crew: three workers, the keeper has left to work (rule 15.7)", -1) {
  crew::Crew c(3, 1, false);
  crew::Job one, two, behind;
  prim::atomic<int> has_run{0};
  const auto waits = [&](crew::Job& me) {
    auto& w = *c.on;
    if (&me == &two) c.go(w, behind);
    for (unsigned round = 0; has_run.load() == 0;) prim::pause(round++);
    me.ended = true;
    if (one.ended && two.ended) c.finish();
  };
  one.step = waits;
  two.step = waits;
  behind.step = [&](crew::Job& me) {
    me.ended = true;
    has_run.store(1);
  };
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("C", [&] { c.help(2); });
  spawn("X", [&] {
    c.go_from_elsewhere(one);
    c.go_from_elsewhere(two);
    c.deactivated();
  });
  run();
  REQUIRE_THAT(behind.steps == 1 && one.steps == 1 && two.steps == 1);
}

SAMPLED("crew: a cancelled process is withdrawn wherever it has got to (rule 6.1)", 0) {
  crew::Crew c(2, 1, true);
  crew::Job p;
  p.step = [&](crew::Job& me) {
    if (me.cancel().load() != 0 || me.steps == 2) {
      me.ended = true;
      c.finish();
      return;
    }
    me.word.store(1);
  };
  c.jobs = {&p};
  c.ready_jobs = 1;
  c.worker(0).queue.push(&p);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("X", [&] {
    p.cancel().store(1);
    c.nudge();
    c.deactivated();
  });
  run();
  REQUIRE_THAT(p.ended);
}

// The thread that serves the cancellation must wait for a worker that is taking a process but has
// not marked the process yet.
SAMPLED("crew: a cancellation is served while another worker takes the process (rule 6.1)", 1) {
  crew::Crew c(2, 0, true);
  crew::Job p, q;
  c.looks_at_rest = true;
  p.step = [&](crew::Job& me) {
    for (unsigned round = 0; c.withdrawing.load() != 0;) prim::pause(round++);
    me.ended = true;
    if (q.ended) c.finish();
  };
  q.step = [&](crew::Job& me) {
    p.cancel().store(1);
    c.nudge();
    me.ended = true;
    if (p.ended) c.finish();
  };
  c.jobs = {&p};
  c.ready_jobs = 2;
  c.worker(0).queue.push(&p);
  c.worker(1).queue.push(&q);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  run();
  REQUIRE_THAT(p.ended && q.ended);
}

SCENARIO("crew: the only worker goes to sleep as somebody is cancelled (rule 6.1)", 2) {
  crew::Crew c(1, 1, true);
  crew::Job p;
  p.step = [&](crew::Job& me) {
    if (me.cancel().load() != 0 || me.steps == 2) {
      me.ended = true;
      c.finish();
      return;
    }
    me.word.store(1);
  };
  c.jobs = {&p};
  c.ready_jobs = 1;
  c.worker(0).queue.push(&p);
  spawn("A", [&] { c.help(0); });
  spawn("X", [&] {
    p.cancel().store(1);
    c.nudge();
    c.deactivated();
  });
  run();
  REQUIRE_THAT(p.ended);
}

SAMPLED("crew: a cancellation meets a wake-up: one of them (rules 6.2, 6.3)", 0) {
  crew::Crew c(2, 1, true);
  crew::Job p, q;
  p.step = [&](crew::Job& me) {
    if (me.steps == 1) {
      const bool now = me.cancel().load() != 0;
      me.word.store(now ? 3 : 1);
      if (!now) return;
    }
    REQUIRE_THAT(me.word.load() >= 2 && me.steps <= 2);
    me.ended = true;
    if (q.ended) c.finish();
  };
  q.step = [&](crew::Job& me) {
    auto& w = *c.on;
    for (unsigned round = 0; p.word.load() == 0;) prim::pause(round++);
    c.wake(p, 2, [&](crew::Job& x) { c.go(w, x); });
    me.ended = true;
    if (p.ended) c.finish();
  };
  c.jobs = {&p};
  c.ready_jobs = 2;
  c.worker(0).queue.push(&p);
  c.worker(1).queue.push(&q);
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("X", [&] {
    p.cancel().store(1);
    c.nudge();
    c.deactivated();
  });
  run();
  REQUIRE_THAT(p.ended);
}

SAMPLED("crew: a timer that is armed when the keeper sleeps already is kept (rule 8.5)", 0) {
  crew::Crew c(2, 1, false);
  crew::Job sleeper;
  sleeper.step = [&](crew::Job& me) {
    if (me.steps == 1) {
      c.at_alarm = &me;
      c.alarm.store(1000);
      return;
    }
    me.ended = true;
    c.finish();
  };
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("X", [&] {
    c.go_from_elsewhere(sleeper);
    c.deactivated();
  });
  run();
  REQUIRE_THAT(sleeper.ended);
}

SAMPLED("crew: a timer is kept while a step goes on and on (rules 8.5, 15.7)", 0) {
  crew::Crew c(2, 1, false);
  crew::Job sleeper, longer;
  prim::atomic<int> has_run{0};
  sleeper.step = [&](crew::Job& me) {
    if (me.steps == 1) {
      c.at_alarm = &me;
      c.alarm.store(1000);
      return;
    }
    me.ended = true;
    has_run.store(1);
  };
  longer.step = [&](crew::Job& me) {
    for (unsigned round = 0; has_run.load() == 0;) prim::pause(round++);
    me.ended = true;
    c.finish();
  };
  spawn("A", [&] { c.help(0); });
  spawn("B", [&] { c.help(1); });
  spawn("X", [&] {
    c.go_from_elsewhere(sleeper);
    c.go_from_elsewhere(longer);
    c.deactivated();
  });
  run();
  REQUIRE_THAT(sleeper.ended && longer.ended);
}

}  // namespace weft::test
