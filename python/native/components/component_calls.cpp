// A running call of a component's process, and its table of functions. For values that are cells,
// this file does without holding the GIL what operation.cpp and choice.cpp do for Python threads.
//
//   run_call() ──Aside──► info->run(): read │ write │ select ─► core ──pending──► ThreadProcess::block() ──► status
//        ◄──with the GIL── its outcome, as the exception that a Python process would have raised
//
// Invariants
//  1 A slot at the core of a native channel holds cells only (cells.hpp).
//  2 Other code closes an end under the GIL. This file reads the state of an end without the GIL,
//    and never changes it.
#include "components/component_calls.hpp"

#include <algorithm>

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "choice/barrier.hpp"
#include "components/component.hpp"
#include "components/components.hpp"
#include "declare.hpp"
#include "interpreter/aside.hpp"
#include "interpreter/end_errors.hpp"
#include "interpreter/error_types.hpp"
#include "interpreter/errors.hpp"
#include "interpreter/own_threads.hpp"
#include "interpreter/pending.hpp"
#include "processes/life.hpp"
#include "processes/limit.hpp"
#include "processes/thread.hpp"
#include "values/cells.hpp"
#include "values/native_types.hpp"
#include "weft/runtime/function_info.hpp"

namespace weft::py {

namespace calls {

prim::atomic<std::uint32_t> task_waiters{0};
std::vector<Call*> running_calls;

namespace {

// (component, process, type, text) -> a weft.native.ComponentError
PyObject* component_error = nullptr;

}  // namespace

weft_status cancelled(Call& c) noexcept {
  runtime::Limit::take(*c.process);
  return WEFT_CANCELLED;
}
weft_status met(Call& c, weft_status end) noexcept {
  c.met = static_cast<std::uint8_t>(c.met | 1U << end);
  return end;
}
weft_status status_of(Call& c, Status s) noexcept {
  switch (s) {
    case Status::ok: return WEFT_OK;
    case Status::retired: return met(c, WEFT_RETIRED);
    case Status::poisoned: return met(c, WEFT_POISONED);
    case Status::cancelled: return cancelled(c);
    default: return met(c, WEFT_DIED);
  }
}

bool idle(Call& c, const char* verb) {
  if (!c.deciding) return true;
  bad(c, std::string(verb) +
             " in the function that makes a computed output's value: that function cannot use "
             "channels (rule 5.8)");
  return false;
}
bool may_wait(Call& c, const char* verb) {
  if (c.thread) [[likely]]
    return true;
  bad(c, std::string(verb) +
             ": this process runs on the pool, where a call cannot block: await the operation "
             "(weft::native::tasks)");
  return false;
}
EndObject* end_at(Call& c, std::uint32_t number, bool reads, const char* verb) {
  if (!idle(c, verb)) return nullptr;
  if (number >= c.ends.size() || is_reader(reinterpret_cast<PyObject*>(c.ends[number])) != reads) {
    bad(c, std::string(verb) + ": the process has no such end");
    return nullptr;
  }
  EndObject* const e = c.ends[number];
  if (e->state == EndState::open) return e;
  bad(c, std::string(verb) + " on channel " + channel_name(e->channel) + ": this end is closed");
  return nullptr;
}
void go_to(Call& c, weft_place at) noexcept {
  if (!at.file || !*at.file) return;
  c.process->stands_at(runtime::in_file(c.process->about, at.file), at.line);
}

namespace {

// --- read and write ------------------------------------------------------------------------------

// The call of the process that runs on this thread.
thread_local Call* this_call = nullptr;

template <Side S>
bool withdraw_plain(ProcessBase& p) noexcept {
  const Operation op(*this_call);
  return weft::detail::withdraw_plain<Engine, S>(p);
}
template <Side S>
constexpr runtime::OpKind waiting{S == Side::in ? "read" : "write", &withdraw_plain<S>,
                                  &weft::detail::visit_plain<S == Side::out>,
                                  &weft::detail::undecided_plain<Engine, S == Side::out>,
                                  &weft::detail::passed_plain<Engine, S == Side::out>};

// Returns false if the channel has ends in other OS processes (component_abroad.cpp).
template <Side S>
bool meet(Call& c, ChannelObject* channel, Value& slot, Status& s) noexcept {
  ThreadProcess& me = *c.thread;
  s = Status::cancelled;
  if (me.cancel().load(std::memory_order_relaxed)) return true;
  me.slot = &slot;
  {
    const Operation op(c);
    if (c.abroad.load(std::memory_order_relaxed) && is_wired(channel)) return false;
    s = channel->core.begin<S>(me);
  }
  if (s == Status::pending) {
    parks(c, waiting<S>);
    me.block(waiting<S>);
    s = me.status;
  }
  return true;
}

}  // namespace

weft_status taken(Call& c, std::uint32_t end, PyObject* o, weft_value* to) {
  if (!is_cell(o)) [[unlikely]]
    return taken_abroad(c, end, o, to);
  *to = take_cell(o);
  loan_moves(to->block, c.info->name, c.component, true);
  return WEFT_OK;
}
PyObject* given(Call& c, std::uint32_t end, const weft_value& v) {
  loan_moves(v.block, c.info->name, c.component, false);
  return new_cell(c.types[end], v);
}
void not_sent(Call& c, std::uint32_t end, PyObject* o, weft_value* from) noexcept {
  if (is_cell(o)) [[likely]] {
    *from = take_cell(o);
    loan_moves(from->block, c.info->name, c.component, true);
  } else {
    unsent_abroad(c, end, o, from);
  }
}

namespace {

weft_status read(weft_process* p, std::uint32_t end, weft_value* to, weft_place at) {
  Call& c = call_of(p);
  if (!may_wait(c, "read")) return WEFT_BAD_USE;
  EndObject* const e = end_at(c, end, true, "read");
  if (!e) return WEFT_BAD_USE;
  go_to(c, at);
  const Told told = begins("read", e);
  Value slot;
  Status s;
  if (!meet<Side::in>(c, e->channel, slot, s)) return read_abroad(c, end, to);
  if (s != Status::ok) return ends(c, told, status_of(c, s));
  e->channel->core.last_reader = c.thread->id;
  return ends(c, told, taken(c, end, slot.take(), to));
}

weft_status write(weft_process* p, std::uint32_t end, weft_value* from, weft_place at) {
  Call& c = call_of(p);
  if (!may_wait(c, "write")) return WEFT_BAD_USE;
  EndObject* const e = end_at(c, end, false, "write");
  if (!e) return WEFT_BAD_USE;
  go_to(c, at);
  const Told told = begins("write", e);
  Value slot(given(c, end, *from));
  if (!slot.o) return ends(c, told, bad(c, "write: there is no memory left"));
  Status s;
  if (!meet<Side::out>(c, e->channel, slot, s)) {
    *from = take_cell(slot.take());
    return write_abroad(c, end, from);
  }
  if (s != Status::ok) {
    not_sent(c, end, slot.take(), from);
    return ends(c, told, status_of(c, s));
  }
  e->channel->core.last_writer = c.thread->id;
  // the value that a full buffer has given back is dropped with the slot
  return ends(c, told, WEFT_OK);
}

// --- extended reads ------------------------------------------------------------------------------

bool withdraw_extended(ProcessBase& p) noexcept {
  return p.is(core::NodeFlags::queued) && withdraw_plain<Side::in>(p);
}
void visit_extended(ProcessBase& p, runtime::WaitVisitor& v) {
  if (p.is(core::NodeFlags::queued)) weft::detail::visit_plain<false>(p, v);
}
constexpr runtime::OpKind extended_op{"extended read", &withdraw_extended, &visit_extended};

weft_status begin_extended(weft_process* p, std::uint32_t end, weft_value* to, void** held,
                           weft_place at) {
  Call& c = call_of(p);
  EndObject* const e =
      may_wait(c, "extended read") ? end_at(c, end, true, "extended read") : nullptr;
  if (!e) return WEFT_BAD_USE;
  go_to(c, at);
  ThreadProcess& me = *c.thread;
  const Told told = begins("extended read", e);
  if (me.cancel().load(std::memory_order_relaxed)) return ends(c, told, cancelled(c));
  Engine& core = e->channel->core;
  Value slot;
  me.slot = &slot;
  me.set(core::NodeFlags::extended);
  Status s = Status::ok;
  bool far;
  {
    const Operation op(c);
    far = c.abroad.load(std::memory_order_relaxed) && is_wired(e->channel);
    if (!far) s = core.begin<Side::in>(me);
  }
  if (far) {
    me.clear(core::NodeFlags::extended);
    return ends(
        c, told,
        bad(c, "extended read on channel " + channel_name(e->channel) +
                   ": it has ends in other OS processes, where a native component has no extended "
                   "reads: read() it"));
  }
  if (s == Status::pending) {
    parks(c, extended_op);
    me.block(extended_op);
    s = me.status;
  }
  me.clear(core::NodeFlags::extended);
  if (s != Status::ok) return ends(c, told, status_of(c, s));
  core.last_reader = me.id;
  *held = me.partner();
  return ends(c, told, taken(c, end, slot.take(), to));
}
void end_extended(weft_process* p, std::uint32_t end, void* held) {
  Call& c = call_of(p);
  core::Node n;
  n.hold(static_cast<core::Node*>(held));
  const Operation op(c);
  c.ends[end]->channel->core.end_extended(n);
}

bool read_at_once_abroad(Call& c, std::uint32_t end, weft_value* to) {
  weft_guard g[2]{};
  g[0].end = end;
  g[0].on = g[1].on = 1;
  g[1].kind = WEFT_SKIP;
  std::uint32_t chosen;
  if (select_abroad(c, g, 2, false, &chosen) != WEFT_OK || chosen != 0) return false;
  *to = g[0].value;
  return true;
}
// Another reader could take the value between a test and a read. Therefore the core tests and reads
// in one step, by a choice with a skip.
bool read_at_once(Call& c, Engine& core, Value& slot) {
  core::Guard g[2];
  g[0].kind = core::Kind::input;
  g[0].ops = &core::channel_ops<Engine, Side::in>;
  g[0].where = &core;
  g[0].node.slot = &slot;
  g[1].kind = core::Kind::skip;
  core::Select one(g, 2, Mode::priority, c.thread);
  int i;
  {
    const Operation op(c);
    i = one.scan([]() noexcept { return std::int64_t{0}; });
  }
  // If the choice is parked, the read has committed, but its writer is still making the value.
  if (i == core::Select::parked) {
    c.thread->place = &core;
    static constexpr runtime::OpKind held{"read", [](ProcessBase&) noexcept { return false; },
                                          nullptr};
    c.thread->block(held);
    i = one.finish();
  }
  return i == 0 && one.status() == Status::ok;
}

weft_status read_many(weft_process* p, std::uint32_t end, weft_value* to, std::size_t most,
                      std::size_t* n, weft_place at) {
  *n = 0;
  if (most == 0) return bad(call_of(p), "read_many: ask for at least one value");
  weft_status s = read(p, end, to, at);
  if (s != WEFT_OK) return s;
  *n = 1;
  Call& c = call_of(p);
  ChannelObject* const channel = c.ends[end]->channel;
  Engine& core = channel->core;
  while (*n < most && c.abroad.load(std::memory_order_relaxed) && is_wired(channel)) {
    // An observer must see each value as a separate read, as with Python code (many.cpp), so no
    // more values are read here.
    if (observing()) return WEFT_OK;
    if (!read_at_once_abroad(c, end, to + *n)) return WEFT_OK;
    ++*n;
  }
  bool ready = false;
  while (*n < most && (core.look<Side::in>(ready) == Status::ok) && ready) {
    Value slot;
    if (!read_at_once(c, core, slot)) break;
    const Told told = begins("read", c.ends[end]);
    if (ends(c, told, taken(c, end, slot.take(), to + *n)) != WEFT_OK) break;
    ++*n;
  }
  return WEFT_OK;
}

weft_status write_many(weft_process* p, std::uint32_t end, weft_value* from, std::size_t count,
                       std::size_t* n, weft_place at) {
  for (*n = 0; *n < count; ++*n)
    if (const weft_status s = write(p, end, from + *n, at); s != WEFT_OK) return s;
  return WEFT_OK;
}

// --- barriers ------------------------------------------------------------------------------------

bool withdraw_sync(ProcessBase& p) noexcept {
  const Operation op(*this_call);
  if (!static_cast<BarrierEngine*>(static_cast<core::SyncObject*>(p.place))->withdraw(p))
    return false;
  p.status = Status::cancelled;
  return true;
}
void undecided_sync(ProcessBase& p, runtime::WaitVisitor& v) {
  auto& b = *static_cast<BarrierEngine*>(static_cast<core::SyncObject*>(p.place));
  if (runtime::in_line(b, p)) v.barrier(b);
}
constexpr runtime::OpKind sync_op{"sync", &withdraw_sync,
                                  [](ProcessBase& p, runtime::WaitVisitor& v) {
                                    v.barrier(*static_cast<core::SyncObject*>(p.place));
                                  },
                                  &undecided_sync};

}  // namespace

BarrierEngine* barrier_at(Call& c, std::uint32_t number, const char* verb, bool sync) {
  if (!idle(c, verb)) return nullptr;
  if (number >= c.barriers.size()) {
    bad(c, std::string(verb) + ": the process has no such barrier");
    return nullptr;
  }
  BarrierEngine* const b = &c.barriers[number]->core;
  if (!sync || b->enrolled() > 0) return b;
  bad(c, "sync on a barrier with nobody enrolled: make it with parties, or enrol() first");
  return nullptr;
}

core::SyncObject& place_of_barrier(Call& c, std::uint32_t number) noexcept {
  return c.barriers[number]->core;
}

namespace {

weft_status sync(weft_process* p, std::uint32_t number, weft_place at) {
  Call& c = call_of(p);
  BarrierEngine* const b = may_wait(c, "sync") ? barrier_at(c, number, "sync", true) : nullptr;
  if (!b) return WEFT_BAD_USE;
  go_to(c, at);
  ThreadProcess& me = *c.thread;
  const Told told = begins("sync", c.barriers[number]);
  if (me.cancel().load(std::memory_order_relaxed)) return ends(c, told, cancelled(c));
  Status s;
  {
    const Operation op(c);
    s = b->begin_sync(me);
  }
  if (s == Status::pending) {
    parks(c, sync_op);
    me.block(sync_op);
    s = me.status;
  }
  return ends(c, told, status_of(c, s));
}
weft_status enrol(weft_process* p, std::uint32_t number) {
  Call& c = call_of(p);
  BarrierEngine* const b = barrier_at(c, number, "enrol");
  if (b) b->enrol_party();
  return b ? WEFT_OK : WEFT_BAD_USE;
}
weft_status resign(weft_process* p, std::uint32_t number) {
  Call& c = call_of(p);
  BarrierEngine* const b = barrier_at(c, number, "resign");
  if (!b) return WEFT_BAD_USE;
  const Operation op(c);
  return b->resign() ? WEFT_OK : bad(c, "resign on a barrier with nobody enrolled");
}

// --- the rest ------------------------------------------------------------------------------------

weft_status retire(weft_process* p, std::uint32_t end) {
  Call& c = call_of(p);
  if (end >= c.ends.size()) return bad(c, "retire: the process has no such end");
  const With lock;
  close_end(c.ends[end], EndState::retired);
  return WEFT_OK;
}
weft_status poison(weft_process* p, std::uint32_t end, std::uint32_t strength) {
  Call& c = call_of(p);
  if (end >= c.ends.size()) return bad(c, "poison: the process has no such end");
  if (strength < 1 || strength > 255) return bad(c, "poison: the strength must be from 1 to 255");
  if (c.ends[end]->state != EndState::open) return bad(c, "poison: this end is closed");
  const Operation op(c);
  c.ends[end]->channel->core.poison(static_cast<std::uint8_t>(strength));
  return WEFT_OK;
}
std::int64_t now(weft_process* p) { return call_of(p).run->now(); }
const char* last_error(weft_process* p) { return call_of(p).error.c_str(); }

}  // namespace

constexpr weft_api table{WEFT_COMPONENT_ABI,
                         sizeof(weft_api),
                         [](std::size_t n) { return allocate_block(n); },
                         [](void* b) { release_block(b); },
                         &read,
                         &write,
                         &read_many,
                         &write_many,
                         &select,
                         &retire,
                         &poison,
                         &now,
                         &last_error,
                         [](void* b, void* p) { keep_part(b, p); },
                         [](void* b, void* p) { take_part(b, p); },
                         &sync,
                         &enrol,
                         &resign,
                         &begin_extended,
                         &end_extended,
                         &deliver,
                         &start_read,
                         &start_write,
                         &start_select,
                         &start_sync,
                         &finish};

namespace {

// --- how the process ended ----------------------------------------------------------------------

struct Text {  // the text of a failure
  char* text;
  ~Text() { release_block(text); }
  const char* c_str() const noexcept { return text ? text : ""; }
};

}  // namespace

PyObject* conclude(Call& c, weft_status s, weft_failure& f) {
  const Text type{f.type}, text{f.text};
  switch (s) {
    case WEFT_OK: Py_RETURN_NONE;
    case WEFT_CANCELLED: return raise_cancelled(*c.process, nullptr);
    case WEFT_RETIRED:
    case WEFT_POISONED:
    case WEFT_DIED:
      if ((c.met >> s & 1) == 0 || f.end >= c.ends.size())
        return PyErr_Format(s == WEFT_RETIRED    ? errors.Retired
                            : s == WEFT_POISONED ? errors.Poisoned
                                                 : errors.PeerDied,
                            "%s: the component has thrown this itself: none of its operations "
                            "ended in this way (rule 3.5)",
                            runtime::path_of(*c.process).c_str());
      return raise_end(s == WEFT_RETIRED    ? Status::retired
                       : s == WEFT_POISONED ? Status::poisoned
                                            : Status::died,
                       c.ends[f.end]->channel,
                       is_reader(reinterpret_cast<PyObject*>(c.ends[f.end])) ? "read" : "write", -1,
                       nullptr);
    default: break;
  }
  // The text can be in any encoding.
  const Owned e(PyObject_CallFunction(component_error, "ssNN", c.component, c.info->name,
                                      to_str(type.c_str()), to_str(text.c_str())));
  if (!e) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(e.get())), e.get());
  return nullptr;
}

namespace {

void pin(int cpu) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // Whether the CPU can be used was already checked when the process was made.
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Called when the component has ended its thread (rule 7.14), so that its process has failed. The
// thread stays here forever: the next frames to unwind belong to the interpreter, and must not be
// unwound. Therefore the ThreadProcess of the call is not destroyed either.
[[noreturn]] void thread_ended(Call& c) {
  ThreadProcess* const t = c.thread;
  PyErr_Clear();
  bad_use(
      "its thread was ended, by pthread_exit() or pthread_cancel(): return from the function, or "
      "throw, in its place");
  c.process = c.thread = nullptr;
  PyThreadState* const state = PyThreadState_Get();
  // Restores the context that existed before this process ran (process.cpp).
  t->object->context = std::exchange(state->context, nullptr);
  ++state->context_ver;
  end_process(t->object, *t, nullptr);
  run_deferred();
  own_thread(state, nullptr);
  t->run->gone();
  give_up_lock();
  for (;;) pause();
}

PyMethodDef component_calls_functions[] = {
    {"_set_component_error", gated<keep_given<&component_error>>, METH_VARARGS, nullptr}, {}};

}  // namespace
}  // namespace calls

using namespace calls;

void task_waiter_comes() {
  task_waiters.fetch_add(1, std::memory_order_seq_cst);
  const auto busy = [](Call* c) { return c->in_core.load(std::memory_order_seq_cst); };
  while (std::any_of(running_calls.begin(), running_calls.end(), busy)) {
    // A busy call might be waiting for the GIL in order to conclude a run.
    PyThreadState* const mine = give_up_lock();
    sched_yield();
    take_lock(mine);
  }
}
bool in_component(const ThreadProcess& t) noexcept {
  return std::any_of(running_calls.begin(), running_calls.end(),
                     [&](const Call* c) { return c->thread == &t; });
}
void forget_calls() noexcept { running_calls.clear(); }
void task_waiter_goes() noexcept { task_waiters.fetch_sub(1, std::memory_order_seq_cst); }

weft_status refuse(NativeCall& c, std::string why) {
  c.error = std::move(why);
  return WEFT_BAD_USE;
}

void go_abroad(const ChannelObject* channel) {
  for (;;) {
    bool busy = false;
    for (Call* c : running_calls)
      for (const EndObject* e : c->ends)
        if (e->channel == channel) {
          c->abroad.store(true, std::memory_order_seq_cst);
          busy = busy || c->in_core.load(std::memory_order_seq_cst);
        }
    if (!busy) return;
    // A busy call might be waiting for the GIL in order to conclude a run.
    PyThreadState* const mine = give_up_lock();
    sched_yield();
    take_lock(mine);
  }
}

PyObject* run_call(NativeCall& c) {
  auto* const t = runtime::ThreadProcess::plain();
  if (!t || !t->run || c.started)
    return bad_use(
        "a native process is run once, as a process: give it to run, Parallel or a Group");
  c.started = true;
  c.process = c.thread = static_cast<ThreadProcess*>(t);
  c.run = t->run;
  if (ProcessObject* const p = process_object(t)) p->native_code = 1;
  // The place of the process is its declaration, until an operation gives another place.
  go_to(c, {c.info->file, c.info->line});
  if (c.cpu >= 0) pin(c.cpu);
  weft_failure f{0, nullptr, nullptr};
  weft_status s;
  for (const EndObject* e : c.ends)
    if (is_wired(e->channel)) c.abroad.store(true, std::memory_order_relaxed);
  running_calls.push_back(&c);
  this_call = &c;
  const auto over = [&c] {
    running_calls.erase(std::find(running_calls.begin(), running_calls.end(), &c));
    release_lent();
    run_deferred();
  };
  try {
    const Aside without;
    s = c.info->run(&table, reinterpret_cast<weft_process*>(&c), c.arguments.data(), &f);
  } catch (abi::__forced_unwind&) {
    over();
    thread_ended(c);
  }
  over();
  PyObject* const r = conclude(c, s, f);
  c.process = c.thread = nullptr;
  return r;
}

int init_component_calls(PyObject* m) {
  return PyModule_AddFunctions(m, component_calls_functions);
}

}  // namespace weft::py
