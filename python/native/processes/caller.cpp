// The caller of an operation that blocks, and how it waits. Threads and greenlets differ only here.
//
//   Caller ──wait()──► a thread: ThreadProcess::block(); that of a block in ordinary code: wait_in_block()
//                 │    ordinary code that nothing can wake, now or any more: BadUse instead
//                 │    (rule 11.2); ordinary code that waits long: a report (10.6)
//                 └──► a greenlet: parked (op says on what) ──woken──► run again
//                                     └──thrown into──► withdrawn, or parked until the committed value arrives
#include "processes/caller.hpp"

#include <sched.h>

#include "checking/points.hpp"
#include "choice/choices.hpp"
#include "gate.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/foreign_threads.hpp"
#include "interpreter/handlers.hpp"
#include "interpreter/interrupt.hpp"
#include "interpreter/lock.hpp"
#include "interpreter/outside.hpp"
#include "interpreter/pending.hpp"
#include "processes/block_thread.hpp"
#include "processes/greenlet.hpp"
#include "processes/limit.hpp"
#include "processes/loops.hpp"
#include "processes/outcome.hpp"
#include "processes/run.hpp"
#include "rounds/report.hpp"
#include "rounds/runs.hpp"
#include "watching/observe.hpp"
#include "weft/runtime/limit.hpp"
#include "weft/runtime/scheduler.hpp"
#include "wire/feed.hpp"
#include "wire/wire.hpp"

namespace weft::py {

namespace {

bool guest_interrupted(runtime::ThreadProcess&) { return guest_interrupt != nullptr; }

// For ordinary code outside any run, in an operation that has begun: returns whether nothing in the
// program can ever wake the code.
bool waits_for_ever(runtime::ThreadProcess& t, const runtime::OpKind& kind) noexcept {
  if (runtime::ThreadProcess::current_or_null() || !nobody_else() || any_board() ||
      runtime::Limit::any_armed(t, *t.run))
    return false;
  t.op = &kind;
  // A thread is not blocked if a timer is set, or if its operation has just received its outcome.
  const bool blocked = facing(t) == Facing::blocked;
  t.op = nullptr;
  return blocked && !handlers_may_act();
}
// Returns the names of the places at which the thread waits, each preceded by the type of the
// place, for a message.
std::string names_of(runtime::ThreadProcess& t, const runtime::OpKind& kind) {
  struct Names final : runtime::WaitVisitor {
    std::string all;
    std::size_t n = 0;
    void add(const core::SyncObject& p, const char* kind) {
      if (++n <= 8) all.append(n > 1 ? ", " : kind).append(runtime::name_of(p));
    }
    void channel(const core::SyncObject& p, bool) override { add(p, " on channel "); }
    void barrier(const core::SyncObject& p) override { add(p, " "); }
    void end(const core::SyncObject&) override {}
    void ended(const core::SyncObject& p, std::uint32_t) override { add(p, " on channel "); }
  } at;
  if (kind.visit) kind.visit(t, at);
  return at.all;
}
PyObject* told_so(runtime::ThreadProcess& t, const runtime::OpKind& kind) {
  const Owned where(to_str(names_of(t, kind)));
  if (where)
    bad_use(
        "%s%U in ordinary code would wait for ever: nothing runs that could meet it. Do it in a "
        "process that run(...) starts; a coroutine "
        "process awaits it (`await`)",
        kind.verb, where.get());
  return take_exception();
}

// Asks standstill.alone() what to do. Returns false if this thread must not be checked again.
bool tell_alone(runtime::ThreadProcess& t) noexcept {
  const SavedException kept;
  const Owned foreign(foreign_idents(nullptr));
  const Owned where(foreign ? to_str(names_of(t, *t.op)) : nullptr);
  PyObject* const handlers = on_main_thread() ? Py_True : Py_False;
  Owned<> r;
  if (where) {
    const OutsideGate beyond;
    // The module is imported only here, since it imports logging.
    const Owned m(PyImport_ImportModule("weft._watching.standstill"));
    if (m)
      r.reset(PyObject_CallMethod(
          m.get(), "alone", "sOOOId", t.op->verb, where.get(), foreign.get(), handlers,
          open_tokens().plain,
          static_cast<double>(runtime::patience().load(std::memory_order_relaxed)) * 1e-9));
  }
  // A handler of the logger, or of a signal, has raised. The operation will raise that exception.
  if (!r) {
    keep_interrupt_for(nullptr, take_exception());
    t.nudge();
  }
  return r == Py_True;
}

// Called when the thread has waited outside any run for as long as patience() allows. Reports the
// wait, unless a run might still wake the thread (rule 10.6). If nothing can wake the thread any
// more, the wait is bad use (rule 11.2). Returns true if this function must be called again.
bool stands_alone(runtime::ThreadProcess& t) noexcept {
  // A helper thread waits for other threads to act.
  if (is_helper(PyThreadState_Get())) return false;
  if (any_board() || open_tokens().due) return true;
  if (!t.op || facing(t) != Facing::blocked || runtime::Limit::any_armed(t, *t.run)) return false;
  // Everything that could have woken the thread has ended.
  if (nobody_else() && !handlers_may_act()) {
    const SavedException kept;
    keep_interrupt_for(nullptr, told_so(t, *t.op));  // the operation will raise this exception
    t.nudge();
    return false;
  }
  for (PyRun* run : every_run())
    if (!run->run.stands_still()) return true;
  return tell_alone(t);
}

}  // namespace

// Sends to another program the values that this thread has written but not sent yet. `kind` is the
// operation in which the thread waits for the answer; null if it does not wait.
static void send_said(const runtime::OpKind* kind) noexcept {
  runtime::ThreadProcess& t = runtime::ThreadProcess::self();
  t.waits_in(kind);  // so that signal handlers find the thread in an operation
  if (Feed::send_owed()) t.nudge();
  t.waits_in(nullptr);
}

int init_caller(PyObject*) {
  runtime::ThreadProcess::stands_alone = &stands_alone;
  return 0;
}

Caller::Caller(const char* verb) noexcept {
  ProcessBase* const p = this_process();
  if (ProcessObject* g = greenlet_of(p)) [[likely]] {
    if (p->op || g->done || deferred_runs_here()) {
      bad_use(
          "%s in a greenlet process that cannot wait there (%s ran there): do it in another "
          "thread",
          verb, who_ran_there());
      return;
    }
    process_ = p;
    greenlet_ = g;
    slot_ = &greenlet_slot(g);
    return;
  }
  if (coroutine_of(p)) {
    bad_use("%s blocks: in a coroutine process write `await` before it", verb);
    return;
  }
  runtime::ThreadProcess& t = runtime::ThreadProcess::self();
  // ordinary code in a thread that is not a process
  if (!runtime::ThreadProcess::current_or_null()) {
    t.interrupted = &guest_interrupted;
    note_foreign_thread();
  }
  if (in_asyncio()) {
    bad_use(
        "%s would block the running asyncio loop: await it, or do it in a thread "
        "(asyncio.to_thread)",
        verb);
    return;
  }
  if (t.op) {
    in_another_operation(verb, "do it");
    return;
  }
  process_ = thread_ = &t;
  // Greenlets that were started at a shallower depth use this part of the stack while they run
  // (greenlet.cpp, invariant 3). The slot is on the heap from the beginning, because a party that
  // does not need the interpreter's lock can meet this thread as soon as the operation is enrolled.
  // One slot for each thread is enough, since a thread is in only one operation at a time.
  static thread_local Value away;
  if (scheduler_of_block(t)) slot_ = &away;
}

Status Caller::wait(Status s, const runtime::OpKind& kind) noexcept {
  if (s != Status::pending) return s;
  waited_ = true;
  if (Feed::owes()) [[unlikely]]
    send_said(&kind);
  if (observing()) [[unlikely]]
    observe_park(*process_, kind);
  if (thread_) {
    if (scheduler_of_block(*thread_)) {
      if (checking) [[unlikely]]
        checking->begun(process_, Begun::parked);
      wait_in_block(*thread_, kind);
    } else if (waits_for_ever(*thread_, kind)) [[unlikely]] {
      Owned e(told_so(*thread_, kind));
      // The withdrawal always succeeds, since no other party can have committed the operation.
      if (kind.withdraw(*thread_)) thrown_ = std::move(e);
    } else {
      thread_->block(kind);
    }
    settle();
    return thread_->status;
  }
  if (checking) [[unlikely]]
    checking->begun(process_, Begun::parked);
  process_->op = &kind;
  while (!greenlet_park(greenlet_)) {
    thrown_.reset(take_exception());
    // If the withdrawal fails, the operation has committed, and the wake-up will follow.
    if (kind.withdraw(*process_)) break;
  }
  process_->op = nullptr;
  return process_->status;
}

bool Caller::sleeps_here() const noexcept { return thread_ && !scheduler_of_block(*thread_); }
void Caller::settle() noexcept {
  if (Feed::owes()) [[unlikely]]
    send_said(nullptr);
  if (!wire::Lazily::owes()) [[likely]]
    return;
  // The attendant's locks must be taken before the interpreter's.
  PyThreadState* const state = give_up_lock();
  wire::Lazily::not_so();
  take_lock(state);
}

void Caller::run_others() noexcept {
  while (!greenlet_park(greenlet_)) thrown_.reset(take_exception());
}

void Caller::yield() noexcept {
  waited_ = true;
  if (greenlet_) {
    runtime::Scheduler::current()->push(process_);
    return run_others();
  }
  PyThreadState* const state = give_up_lock();
  sched_yield();
  take_lock(state);
  if (scheduler_of_block(*thread_)) yield_in_block(*thread_);
}

PyObject* Caller::withdrawn(PyObject* value) {
  Owned instead(thread_ ? std::exchange(guest_interrupt, nullptr) : nullptr);
  if (!instead) instead = std::move(thrown_);
  if (!instead) return raise_cancelled(*process_, value);
  if (thread_) process_->take_cancel();
  restore_exception(instead.release());
  return nullptr;
}

PyObject* Caller::give_way(PyObject* owned) noexcept {
  Outcome kept;
  kept.keep(owned);
  if (greenlet_) {
    runtime::Scheduler::current()->give_way(process_);
    run_others();
  } else if (scheduler_of_block(*thread_)) {
    yield_in_block(*thread_);
  }
  return kept.take();
}

PyObject* Caller::give(PyObject* owned) noexcept {
  if (waited_)
    // Only the count in `line` starts anew. The number of the source line, which is also in it, is
    // kept: reports need it for a component's process.
    process_->line.begin_anew();
  else if (process_->line.at_once()) [[unlikely]] {
    process_->line.begin_anew();
    owned = give_way(owned);
  }
  if (!thrown_) [[likely]]
    return owned;
  Owned(owned).reset();
  PyErr_Clear();
  restore_exception(thrown_.release());
  return nullptr;
}

}  // namespace weft::py
