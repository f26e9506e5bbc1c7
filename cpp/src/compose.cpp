// The definitions of compose.hpp.
#include <weft/compose.hpp>
#include <weft/inspect.hpp>
#include <weft/runtime/affinity.hpp>
#include <weft/runtime/cores.hpp>
#include <weft/runtime/outside.hpp>
#include <weft/runtime/own_thread.hpp>
#include <weft/runtime/points.hpp>
#include <weft/runtime/scheduler.hpp>

namespace weft::inline WEFT_ABI {
namespace detail {

void Runner::launch() {
#if WEFT_CHECKED
  if (runtime::points) {
    try {
      runtime::points->starts_thread(
          *this, [](void* me) { static_cast<Runner*>(me)->body(); }, this);
    } catch (...) {
      launch_failed();
    }
    return;
  }
#endif
  run->activated();
  try {
    run->keep([](void* me) { static_cast<Runner*>(me)->body(); }, this);
  } catch (...) {  // The system cannot start a thread; the group might have other children.
    run->deactivated();
    launch_failed();
  }
}

// Called in the handler of the exception because of which the process could not start.
void Runner::launch_failed() {
  runtime::Group& g = *group;
  const std::uint32_t my_order = order();
  g.unlink(*this);
  delete this;
  g.finished(my_order, std::current_exception());
}

// The destructor runs as the last action of the thread, even if the thread is cancelled within the
// function.
Runner::Over::~Over() {
  const Ending how = me->ending;
  group.unlink(*me);
  delete me;
  if (has_thread) run.thread_done();
  WEFT_POINT(ended(&group, how));
  group.finished(order, std::move(left), how);
  if (has_thread) run.gone();
}

void Runner::body() {
#if WEFT_CHECKED
  const bool has_thread = !runtime::points;
#else
  constexpr bool has_thread = true;
#endif
  Over over{this, *run, *group, order(), {}, has_thread};
  const runtime::Pinned pinned(has_thread ? cpu_ : -1);
  const Scope scope(*this);
  if (has_thread) {
    runtime::name_this_thread(*this);
    cpu_clock.store(runtime::clock_of_this_thread(), std::memory_order_relaxed);
  }
  struct Dropped {  // destroys the function before the group is notified (rule 7.7)
    Runner& me;
    ~Dropped() {
#if WEFT_CHECKED
      if (runtime::points && runtime::points->ends_later(me)) runtime::CheckedCall::lets_go(me);
#endif
      me.drop_function();
      me.context.dying = 0;
    }
  } dropped{*this};
  try {
    call();
#if defined(__GLIBCXX__)
  } catch (abi::__forced_unwind&) {
    ending = Ending::failed;
    over.left = std::make_exception_ptr(BadUse(runtime::joined(
        {who(),
         "its thread was ended, by pthread_exit() or pthread_cancel(): return from the "
         "function, or throw, in its place"})));
    throw;
#endif
  } catch (...) {
    const Left l = left_by_handled();
    ending = l.how;
    context.dying = dying = l.poison;
    if (ending == Ending::failed || group->keeps_end()) over.left = std::current_exception();
    if (ending != Ending::failed) call_gave_nothing();
  }
}

void raise_all(std::vector<std::exception_ptr> failures) {
  if (failures.size() == 1) std::rethrow_exception(failures[0]);
  throw Failures(std::move(failures));
}

bool withdraw_wait(runtime::ProcessBase& p) noexcept {
  static_cast<runtime::Group*>(p.place)->pass_on();
  return false;
}

void after_wait(runtime::ProcessBase& p, runtime::Group& g) {
  std::vector<std::exception_ptr> failures = g.take_failures();
  if (!failures.empty()) raise_all(std::move(failures));
  detail::meet_request(p);
  if (const std::exception_ptr end = g.take_end()) raise_again(end);
}

// An executor that runs a network on this thread.
struct Host {
  runtime::Executor& executor;
  core::Node& stop;  // a node whose wake-up ends the executor's loop
  void (*loop)(runtime::Executor&);
};

// Runs a network to its end. `key` is the key of the executor in the run, or null.
void execute_on(const Host& host, const RunOptions& o, runtime::Run& run,
                runtime::ThreadProcess& self, const Where* key, const StartOf& start) {
  runtime::Group group(run, &host.executor, &self);
  runtime::Group spawn_group(run, &host.executor, &self);
  const bool outermost = !run.spawned;
  if (outermost) {  // The two groups fail as one (rule 7.4).
    run.spawned = &spawn_group;
    spawn_group.also = &group;
    group.also = &spawn_group;
    if (key) run.list(key, host.executor);
  }
  {
    struct Spawned {
      runtime::Run& run;
      const bool outermost;
      ~Spawned() {
        if (outermost) run.spawned = nullptr;
      }
    } spawned{run, outermost};
    runtime::ThreadProcess::Hosting hosting(self, host.executor);
    start.f(start.x, group);
    const std::stop_callback asked(o.stop ? *o.stop : std::stop_token(), [&]() noexcept {
      group.cancel();
      spawn_group.cancel();
    });
    hosting.waits(wait_op, &group);
    while (!group.done() || !spawn_group.done()) {
      runtime::Group& g = group.done() ? spawn_group : group;
      if (g.begin_wait(host.stop) == Status::pending) host.loop(host.executor);
    }
  }
  std::vector<std::exception_ptr> failures = group.take_failures(&spawn_group);
  if (run.deadlocked() && outermost) throw Deadlock(run.deadlock_report(), run.take_knot());
  if (!failures.empty()) raise_all(std::move(failures));
  detail::meet_request(self);
  if (const std::exception_ptr end = group.take_end()) raise_again(end);
}

static void execute_solo(const RunOptions& o, runtime::Run& run, runtime::ThreadProcess& self,
                         const Where* where, const StartOf& start) {
  runtime::Scheduler scheduler(run, &self);
  runtime::Stop stop(scheduler);
  const Host host{scheduler, stop,
                  [](runtime::Executor& e) { static_cast<runtime::Scheduler&>(e).loop(); }};
  execute_on(host, o, run, self, where, start);
}
void execute_on(runtime::Cores& cores, const RunOptions& o, runtime::Run& run,
                runtime::ThreadProcess& self, const Where* where, const StartOf& start) {
  runtime::Cores::Release release(cores);
  const Host host{cores.executor(), release,
                  [](runtime::Executor& e) { static_cast<runtime::Cores&>(e).loop(); }};
  execute_on(host, o, run, self, where, start);
}

// Runs a network with this thread as the executor's thread, or as one of its threads.
static void execute_at(const Where& where, const RunOptions& o, runtime::Run& run,
                       runtime::ThreadProcess& self, const StartOf& start) {
  if (!where.multi) {
    const runtime::Pinned pinned(where.cpus.empty() ? -1 : where.cpus[0]);
    return execute_solo(o, run, self, &where, start);
  }
  runtime::Cores cores(run, where.threads, where.cpus, &self);
  cores.start(1);
  execute_on(cores, o, run, self, &where, start);
}

static void execute(const RunOptions& o, runtime::Run& run, runtime::ThreadProcess& self,
                    const StartOf& start) {
  if (o.on)
    execute_at(*o.on->where(), o, run, self, start);
  else if (o.cores.number() != 1)
    execute_at(*Cores(o.cores.number()).where(), o, run, self, start);
  else
    execute_solo(o, run, self, nullptr, start);
}

#if WEFT_CHECKED
static void refuse_executors(const RunOptions& o) {
  if (o.on || o.cores.number() != 1)
    runtime::points->refuses("a network on an executor of its own (cores, or on)");
}

// Runs a network within a thread process that is checked. The network's processes are on the
// scheduler of the check, since a scheduler of their own would take the thread from the check.
static void execute_checked(const RunOptions& o, runtime::ThreadProcess& self,
                            const StartOf& start) {
  refuse_executors(o);
  const ThreadCall call(self, Here::nowhere());
  detail::meet_request(self);
  runtime::Group group(*self.run, &runtime::executor_of(self), &self);
  const GroupAwaiter all{&self, &group};
  {
    start.f(start.x, group);
    const std::stop_callback asked(o.stop ? *o.stop : std::stop_token(),
                                   [&]() noexcept { group.cancel(); });
    if (!all.begin()) self.block(wait_op);
  }
  all.await_resume();
}
#endif

// Called from main, or from any thread that is not a process, execute() starts the outermost run.
// Called in a thread process, execute() starts a network inside the same run.
void execute(const RunOptions& o, StartOf start) {
  if (runtime::this_context && runtime::this_context->executor)
    bad_use(
        "weft::run inside a coroutine process would block its scheduler: use co_await "
        "weft::par(…)");
  if (runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null(); t && t->run) {
#if WEFT_CHECKED
    if (runtime::points && t->checked >= 0) return execute_checked(o, *t, start);
#endif
    detail::meet_request(*t);  // Rule 6.1: the network of a cancelled process is not started.
    execute(o, *t->run, *t, start);
    return;
  }
#if WEFT_CHECKED
  if (runtime::points) refuse_executors(o);
  runtime::Run run(runtime::points ? Clock::virtual_time : o.clock);
#else
  runtime::Run run(o.clock);
#endif
  run.on_deadlock = o.deadlocked;
  runtime::ThreadProcess self(&run);
  self.function = "main";
  run.activated();
  const runtime::ThreadProcess::Scope scope(self);
  struct Join {
    runtime::Run& r;
    explicit Join(runtime::Run& to) : r(to) {
#if WEFT_CHECKED
      if (runtime::points) return;  // Nothing outside wakes a checked network (rule 17.9).
#endif
      runtime::Outsiders::all().join(r);
    }
    ~Join() {
      r.dismiss();
      r.join_threads();
      runtime::Outsiders::all().leave(r);
    }
  } join{run};
  can_be_looked_at();
  execute(o, run, self, start);
}

runtime::Run* current_run() noexcept {
  if (const runtime::ProcessBase* p = runtime::this_process(); p && p->group) return &p->group->run;
  const runtime::ThreadProcess* t = runtime::ThreadProcess::current_or_null();
  return t ? t->run : nullptr;
}

}  // namespace detail

bool YieldOp::Awaiter::await_ready() const {
  detail::meet_request(*p);
  if (runtime::Scheduler* s = runtime::Scheduler::current()) [[likely]]
    // nobody_ready() checks for wake-ups by other threads and for timers; without that call a loop
    // of yields would never notice them.
    return !s->anything_ready() && s->nobody_ready();
  return runtime::this_context->executor->nobody_ready();
}

}  // namespace weft::inline WEFT_ABI
