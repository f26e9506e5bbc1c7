// The thread whose block is an outermost run (rules 7.5, 15.2) is a process of the block's
// scheduler, which has no other thread to run on.
//
//   ordinary code ──waits: wait_home()──► the scheduler's loop: all others run ──its own turn comes: home_run()──► ordinary code
//
// Invariants
//  1 The scheduler runs only while its thread waits for something of Weft. Processes that are woken
//    at other times lie in its inbox until then.
//  2 The thread waits nowhere but in that loop. Whoever wakes it posts it there, like a coroutine;
//    whoever cancels it asks the scheduler.
#include "processes/home.hpp"

#include "interpreter/pending.hpp"
#include "processes/generators.hpp"
#include "processes/thread.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

namespace {

ThreadProcess& self_of(core::Waker* w) noexcept {
  return static_cast<ThreadProcess&>(static_cast<runtime::ThreadProcess&>(
      static_cast<ProcessBase&>(*static_cast<core::Waiter*>(w))));
}
void run_loop(runtime::Scheduler& s) noexcept {
  const GeneratorHooks hooks(s.run);
  s.loop();
}
void home_wake(core::Waker* w) noexcept { self_of(w).home->post(w); }
void home_run(core::Waker* w) { self_of(w).home->stop(); }
runtime::Executor* home_of(ProcessBase& p) noexcept { return self_of(&p).home; }
const runtime::ProcessOps home_ops{{&home_wake, &home_run, nullptr, 0}, &home_of};

}  // namespace

void enter_home(ThreadProcess& t, runtime::Scheduler& s) {
  t.home = &s;
  t.ops = &s.ops_here(home_ops);
}

void leave_home(ThreadProcess& t) noexcept {
  t.on_its_own();
  t.home = nullptr;
}

runtime::Scheduler* home_here(runtime::ThreadProcess& t) noexcept {
  return t.ops->run == &home_run ? static_cast<ThreadProcess&>(t).home : nullptr;
}

void wait_home(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept {
  runtime::Scheduler& s = *static_cast<ThreadProcess&>(t).home;
  // A thread that cancels this one from now on withdraws this operation. One that did so before has
  // left a nudge, which the loop finds.
  t.op = &kind;
  run_loop(s);
  t.op = nullptr;
  run_deferred();
}

void yield_home(runtime::ThreadProcess& t) noexcept {
  runtime::Scheduler& s = *static_cast<ThreadProcess&>(t).home;
  s.give_way(&t);
  run_loop(s);
  run_deferred();
}

}  // namespace weft::py
