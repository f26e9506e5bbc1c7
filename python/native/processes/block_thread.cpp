// The thread whose block is an outermost run (rules 7.5, 15.2) is a process of the block's
// scheduler, which has no other thread to run on.
//
//   ordinary code ──waits: wait_in_block()──► the scheduler's loop: all others run ──its own turn comes: block_thread_run()──► ordinary code
//
// Invariants
//  1 The scheduler runs only while its thread waits for a Weft operation or group. Processes that
//    are woken at other times stay in the scheduler's inbox until the thread waits again.
//  2 The thread waits only in that loop. It is woken like a coroutine, by being posted there; it is
//    cancelled through the scheduler.
#include "processes/block_thread.hpp"

#include "interpreter/pending.hpp"
#include "processes/generators.hpp"
#include "processes/thread.hpp"
#include "weft/runtime/scheduler.hpp"

namespace weft::py {

namespace {

ThreadProcess& thread_of(core::Waker* w) noexcept {
  return static_cast<ThreadProcess&>(static_cast<runtime::ThreadProcess&>(
      static_cast<ProcessBase&>(*static_cast<core::Waiter*>(w))));
}
void run_loop(runtime::Scheduler& s) noexcept {
  const GeneratorHooks hooks(s.run);
  s.loop();
}
void block_thread_wake(core::Waker* w) noexcept { thread_of(w).block_scheduler->post(w); }
}  // namespace

void block_thread_run(core::Waker* w) { thread_of(w).block_scheduler->stop(); }

namespace {

runtime::Executor* block_thread_executor(ProcessBase& p) noexcept {
  return thread_of(&p).block_scheduler;
}
const runtime::ProcessOps block_thread_ops{{&block_thread_wake, &block_thread_run, nullptr, 0},
                                           &block_thread_executor};

}  // namespace

void join_scheduler(ThreadProcess& t, runtime::Scheduler& s) {
  t.block_scheduler = &s;
  t.ops = &s.ops_here(block_thread_ops);
}

void leave_scheduler(ThreadProcess& t) noexcept {
  t.on_its_own();
  t.block_scheduler = nullptr;
}

runtime::Scheduler* scheduler_of_block(runtime::ThreadProcess& t) noexcept {
  return t.ops->run == &block_thread_run ? static_cast<ThreadProcess&>(t).block_scheduler : nullptr;
}

void wait_in_block(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept {
  runtime::Scheduler& s = *static_cast<ThreadProcess&>(t).block_scheduler;
  // From here on, a thread that cancels this one withdraws this operation. A thread that has
  // cancelled this one before has left a nudge, which the loop finds.
  t.op = &kind;
  run_loop(s);
  t.op = nullptr;
  run_deferred();
}

void yield_in_block(runtime::ThreadProcess& t) noexcept {
  runtime::Scheduler& s = *static_cast<ThreadProcess&>(t).block_scheduler;
  s.give_way(&t);
  run_loop(s);
  run_deferred();
}

core::RunQueue* queue_of_block(runtime::ThreadProcess& t) noexcept {
  runtime::Scheduler* const s = scheduler_of_block(t);
  if (!s) return nullptr;
  s->look_around();  // lets the scheduler see the processes that the thread has woken
  return t.ops->home;
}

void go_on_in_block(runtime::ThreadProcess& t) noexcept {
  run_loop(*scheduler_of_block(t));
  run_deferred();
}

}  // namespace weft::py
