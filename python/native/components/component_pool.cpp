// Coroutines of components on the pool (rule 16.10): a few native threads of a run, each with its
// own scheduler and without the GIL.
//
//   start_pooled() ──posts to the thread that has the fewest──► pooled_run() ─► info->step() ──WEFT_PENDING──► parked (op says on what)
//                                                                   ▲                                             │ woken: posted
//                                                                   └─────────────────────────────────────────────┘
//   step() ends ──With──► ended: its group is notified; the last one ends its thread, and the group waits for the thread
//
// For a cancellation, nudge() posts a waker that belongs to the thread and withdraws the cancelled
// operation. The withdrawal is done with the GIL, which it may need. A thread that has the GIL may
// wait for the locks of groups (aside.hpp, invariant), so the GIL is taken before those locks.
//
// Invariants
//  1 A process stays on its thread: all of its steps and withdrawals are done there.
//  2 A thread of the pool has a Scheduler of its run, and exists as long as it has processes.
//    `live` and the run's list of its threads are protected by the GIL.
#include <algorithm>

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>

#include "channels/marks.hpp"
#include "checking/points.hpp"
#include "choice/watch.hpp"
#include "components/component.hpp"
#include "components/component_calls.hpp"
#include "components/components.hpp"
#include "gate.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/door.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/own_threads.hpp"
#include "interpreter/pending.hpp"
#include "processes/life.hpp"
#include "processes/rare.hpp"
#include "processes/run.hpp"
#include "values/cells.hpp"
#include "values/native_types.hpp"
#include "watching/observe.hpp"
#include "watching/steps.hpp"

namespace weft::py {

using namespace calls;

class PoolThread final : public runtime::Executor {
 public:
  explicit PoolThread(runtime::Run& r) noexcept : run(r), scheduler(r), withdrawer_(*this) {}

  void post(core::Waker* w) noexcept override { scheduler.post(w); }
  void nudge() noexcept override {
    if (!asked_.exchange(true, std::memory_order_seq_cst)) scheduler.post(&withdrawer_);
  }
  // Returns false on a thread without the GIL, because an immediate withdrawal needs the GIL.
  bool here() const noexcept override { return scheduler.here() && !aside(); }
  const runtime::ProcessOps& ops_here(const runtime::ProcessOps& ops) override {
    return scheduler.ops_here(ops);
  }

  runtime::Run& run;
  runtime::Scheduler scheduler;
  std::uint32_t live = 0;
  runtime::Group* last = nullptr;  // the group of the last process, which also waits for the thread
  WatchedStep step;                // the step that the thread runs

 private:
  struct Withdrawer : core::Waiter {
    PoolThread& of;
    explicit Withdrawer(PoolThread& t) noexcept : of(t) { ops = &kOps; }
    static Withdrawer* self(core::Waker* w) noexcept {
      return static_cast<Withdrawer*>(static_cast<core::Waiter*>(w));
    }
    static void wake(core::Waker* w) noexcept { self(w)->of.scheduler.post(w); }
    static void run(core::Waker* w) {
      PoolThread& t = self(w)->of;
      const With lock;
      t.asked_.store(false, std::memory_order_seq_cst);
      t.run.serve_cancellations(t);
    }
    static constexpr core::WakerOps kOps{&wake, &run, nullptr, 0};
  } withdrawer_;
  prim::atomic<bool> asked_{false};
};

namespace {

ProcessObject* object_of_pooled(ProcessBase& p) noexcept {
  return object_of(static_cast<CoroutineProcess*>(&p));
}
runtime::Executor* executor_of_pooled(ProcessBase& p) noexcept { return object_of_pooled(p)->pool; }
void wake_pooled(core::Waker* w) noexcept {
  object_of_pooled(*static_cast<ProcessBase*>(w))->pool->scheduler.post(w);
}
const runtime::ProcessOps pooled_ops{{&wake_pooled, &pooled_run, nullptr, 0}, &executor_of_pooled};

unsigned cpus() noexcept {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  return std::clamp(known ? CPU_COUNT(&set) : 1, 1, 64);
}

// Ends a process, with the GIL. The last process of a thread ends the thread too.
void end_pooled(ProcessObject* p, PyObject* result) {
  PoolThread& t = *p->pool;
  const bool last = --t.live == 0;
  if (last) {
    auto& all = run_of(t.run).pool;
    all.erase(std::find(all.begin(), all.end(), &t));
    t.last = p->base.group;
    t.last->adopt();
  }
  Owned held(p);
  end_process(p, p->base, result);
  held.reset();
  if (last) t.scheduler.stop();
}

void pool_body(void* arg) {
  auto* t = static_cast<PoolThread*>(arg);
  const PyGILState_STATE gil = enter_interpreter();
  {
    const Gate inside;
    pthread_setname_np(pthread_self(), "weft-pool");
    t->step.thread = PyThread_get_thread_ident();
    own_thread(PyThreadState_Get(), &t->run);
    {
      const Aside without;
      t->scheduler.loop();
    }
    own_thread(PyThreadState_Get(), nullptr);
    t->last->finished(0, nullptr);
    // The thread leaves the run before any user code runs on this thread: as soon as another thread
    // has the GIL, the run can end.
    t->run.gone();
    delete t;
    run_deferred();
    disown_thread(PyThreadState_Get());
  }
  PyGILState_Release(gil);
}

// Returns a thread with the fewest processes, or a new one while there are fewer threads than CPUs.
// Returns null with an exception if there is no thread, and none can be started for `process`.
PoolThread* pool_thread(runtime::Run& run, const char* process) {
  auto& all = run_of(run).pool;
  static const unsigned most = cpus();
  if (all.size() < most || interpreter_ends()) {
    auto* const t = new PoolThread(run);
    run.activated();
    if (begin_thread(pool_body, t, process, "end some first")) {
      all.push_back(t);
      return t;
    }
    run.deactivated();
    delete t;
    if (all.empty() || interpreter_ends()) return nullptr;
    PyErr_Clear();
  }
  const auto least = std::min_element(
      all.begin(), all.end(), [](const auto* a, const auto* b) { return a->live < b->live; });
  return *least;
}

}  // namespace

weft_status resume(NativeCall& c, const weft_api& api, weft_failure& f) {
  try {
    return c.info->step(&api, reinterpret_cast<weft_process*>(&c), c.arguments.data(), &f,
                        &c.frame);
  } catch (abi::__forced_unwind&) {
    weft::detail::thread_needed(*c.process);
  }
}

PyObject* call_over(NativeCall& c, weft_status s, weft_failure& f) {
  running_calls.erase(std::find(running_calls.begin(), running_calls.end(), &c));
  release_lent();
  run_deferred();
  PyObject* const r = conclude(c, s, f);
  c.process = nullptr;
  return r;
}

void pooled_run(core::Waker* w) {
  ProcessObject* const p = object_of_pooled(*static_cast<ProcessBase*>(w));
  runtime::Context& here = *runtime::this_context;
  here.running = &p->base;
  p->base.waits_in(nullptr);
  p->base.line.begin_anew();
  Call& c = *p->native;
  weft_failure f{0, nullptr, nullptr};
  WatchedStep& watched = p->pool->step;
  if (stepping()) [[unlikely]]
    watched.begin(p);
  const weft_status s = resume(c, table, f);
  watched.end();
  if (s != WEFT_PENDING) {
    const With lock;
    PyObject* const r = call_over(c, s, f);
    here.running = nullptr;  // operations that finalisers begin after this point belong to no
                             // process
    end_pooled(p, r);
    run_deferred();
  }
  here.running = nullptr;
}

void each_pooled_step(PyRun& run, void (*f)(const WatchedStep&, void*), void* to) {
  for (const PoolThread* t : run.pool) f(t->step, to);
}

NativeCall& join_group(runtime::Group& g, ProcessObject* p, const runtime::ProcessOps& ops) {
  Call& c = native_call(PyTuple_GET_ITEM(p->body, 0));
  c.started = true;
  c.process = &p->base;
  c.run = &g.run;
  p->native = &c;
  p->native_code = 1;
  go_to(c, {c.info->file, c.info->line});
  p->base.ops = &ops;
  g.add(p->base);
  for (Py_ssize_t i = 0; i < Py_SIZE(p); ++i) {
    Engine& core = p->held[i]->channel->core;
    (is_reader(reinterpret_cast<PyObject*>(p->held[i])) ? core.last_reader : core.last_writer) =
        p->base.id;
  }
  if (p->watch()) name_watch(p);
  if (checking) [[unlikely]]
    checking->starts(p);
  if (observing()) [[unlikely]]
    observe_start(p);
  for (const EndObject* e : c.ends)
    if (is_wired(e->channel)) c.abroad.store(true, std::memory_order_relaxed);
  return c;
}

void start_pooled(runtime::Group& g, ProcessObject* p) {
  if (checking) [[unlikely]]
    return start_checked(g, p);
  PoolThread* const t = pool_thread(g.run, p->base.function);
  PyObject* const why_none = t ? nullptr : take_exception();
  if (t) {
    p->pool = t;
    ++t->live;
  }
  Call& c = join_group(g, p, t ? t->ops_here(pooled_ops) : pooled_ops);
  if (!t) {
    restore_exception(why_none);
    end_process(p, p->base, nullptr);
    return;
  }
  running_calls.push_back(&c);
  Py_INCREF(reinterpret_cast<PyObject*>(p));
  t->post(&p->base);
}

// --- operations ----------------------------------------------------------------------------------

namespace calls {

bool gives_way(Call& c) noexcept {
  ProcessBase& p = *c.process;
  if (!p.line.at_once()) [[likely]]
    return false;
  p.line.begin_anew();
  runtime::Scheduler::current()->give_way(&p);
  return true;
}

namespace {

// The operation is withdrawn with the GIL (see the top of the file).
template <Side S>
constexpr runtime::OpKind pooled_waiting{S == Side::in ? "read" : "write",
                                         &weft::detail::withdraw_plain<Engine, S>,
                                         &weft::detail::visit_plain<S == Side::out>,
                                         &weft::detail::undecided_plain<Engine, S == Side::out>,
                                         &weft::detail::passed_plain<Engine, S == Side::out>};
bool withdraw_pooled_sync(ProcessBase& p) noexcept {
  if (!static_cast<BarrierEngine*>(static_cast<core::SyncObject*>(p.place))->withdraw(p))
    return false;
  p.status = Status::cancelled;
  return true;
}
constexpr runtime::OpKind pooled_sync{"sync", &withdraw_pooled_sync,
                                      [](ProcessBase& p, runtime::WaitVisitor& v) {
                                        v.barrier(*static_cast<core::SyncObject*>(p.place));
                                      }};

weft_status finish_read(Call& c) {
  const Status s = c.process->status;
  if (s != Status::ok) return status_of(c, s);
  c.ends[c.begun.end]->channel->core.last_reader = c.process->id;
  return taken(c, c.begun.end, c.begun.slot.take(), c.begun.value);
}
weft_status finish_write(Call& c) {
  const Status s = c.process->status;
  PyObject* const left = c.begun.slot.take();
  if (s != Status::ok) {
    not_sent(c, c.begun.end, left, c.begun.value);
    return status_of(c, s);
  }
  c.ends[c.begun.end]->channel->core.last_writer = c.process->id;
  const Value dropped(left);  // the value that a full buffer has given back
  return WEFT_OK;
}
// Reports the outcome of the current operation to observers.
weft_status reported(Call& c, weft_status s) noexcept {
  return ends(c, std::exchange(c.begun.told, {}), s);
}
weft_status wait(Call& c, const runtime::OpKind& kind) noexcept {
  c.process->waits_in(&kind);
  parks(c, kind);
  return WEFT_PENDING;
}
weft_status finish_sync(Call& c) { return status_of(c, c.process->status); }
// Called when the current operation has completed without waiting, with status s.
weft_status over(Call& c, Status s) {
  c.process->status = s;
  return gives_way(c) ? WEFT_PENDING : finish(reinterpret_cast<weft_process*>(&c));
}

template <Side S>
weft_status start(Call& c, EndObject* e, std::uint32_t end, weft_value* value) {
  ProcessBase& me = *c.process;
  c.begun.end = end;
  c.begun.value = value;
  c.begun.finish = S == Side::in ? &finish_read : &finish_write;
  me.slot = &c.begun.slot;
  Status s = Status::ok;
  bool wired;
  {
    const Operation op(c);
    wired = c.abroad.load(std::memory_order_relaxed) && is_wired(e->channel);
    if (!wired) s = e->channel->core.begin<S>(me);
  }
  if (wired) {
    if (S == Side::out) *value = take_cell(c.begun.slot.take());
    return reported(c, wired_on_the_pool(c, S == Side::in ? "read" : "write", e->channel));
  }
  // If the operation is pending, the party that commits it writes its status.
  return s != Status::pending ? over(c, s) : wait(c, pooled_waiting<S>);
}

}  // namespace

weft_status wired_on_the_pool(Call& c, const char* verb, const ChannelObject* channel) {
  return bad(c, std::string(verb) + " on channel " +
                    channel_name(const_cast<ChannelObject*>(channel)) +
                    ": it has ends in other OS processes, which a process on the pool cannot wait "
                    "for: put this one on a thread, on='thread'");
}

weft_status start_read(weft_process* p, std::uint32_t end, weft_value* to, weft_place at) {
  Call& c = call_of(p);
  if (c.thread) return table.read(p, end, to, at);
  EndObject* const e = end_at(c, end, true, "read");
  if (!e) return WEFT_BAD_USE;
  go_to(c, at);
  c.begun.told = begins("read", e);
  if (c.process->cancel().load(std::memory_order_relaxed)) return reported(c, cancelled(c));
  return start<Side::in>(c, e, end, to);
}

weft_status start_write(weft_process* p, std::uint32_t end, weft_value* from, weft_place at) {
  Call& c = call_of(p);
  if (c.thread) return table.write(p, end, from, at);
  EndObject* const e = end_at(c, end, false, "write");
  if (!e) return WEFT_BAD_USE;
  go_to(c, at);
  c.begun.told = begins("write", e);
  if (c.process->cancel().load(std::memory_order_relaxed)) return reported(c, cancelled(c));
  c.begun.slot.o = given(c, end, *from);
  if (!c.begun.slot.o) return reported(c, bad(c, "write: there is no memory left"));
  *from = {0, nullptr};
  return start<Side::out>(c, e, end, from);
}

weft_status start_sync(weft_process* p, std::uint32_t number, weft_place at) {
  Call& c = call_of(p);
  if (c.thread) return table.sync(p, number, at);
  BarrierEngine* const b = barrier_at(c, number, "sync", true);
  if (!b) return WEFT_BAD_USE;
  go_to(c, at);
  ProcessBase& me = *c.process;
  c.begun.told = begins("sync", c.barriers[number]);
  if (me.cancel().load(std::memory_order_relaxed)) return reported(c, cancelled(c));
  c.begun.finish = &finish_sync;
  Status s;
  {
    const Operation op(c);
    s = b->begin_sync(me);
  }
  return s != Status::pending ? over(c, s) : wait(c, pooled_sync);
}

weft_status finish(weft_process* p) {
  Call& c = call_of(p);
  if (!c.begun.finish) return bad(c, "finish: no operation was begun");
  return reported(c, std::exchange(c.begun.finish, nullptr)(c));
}

}  // namespace calls
}  // namespace weft::py
